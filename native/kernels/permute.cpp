// A keyed bijection of [0, size): a balanced Feistel network over the next even number of bits, walked along
// its cycles until it lands inside the range. O(1) per index in both memory and time, whatever the size.
#include "kernels.hpp"

namespace forebay {
namespace {

// Enough for a Luby-Rackoff construction to be far from any test that counts positions or neighbours.
constexpr int kRounds = 8;

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

class Bijection {
 public:
  Bijection(std::uint64_t size, const std::uint64_t key[2]) : size_(size) {
    while (half_ < 32 && (size - 1) >> (2 * half_) != 0) ++half_;
    mask_ = half_ == 32 ? 0xffffffffULL : (std::uint64_t{1} << half_) - 1;
    for (int round = 0; round < kRounds; ++round) {
      keys_[round] = mix(key[round & 1] + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(round + 1));
    }
  }

  std::uint64_t operator()(std::uint64_t position) const {
    // At most 4 * size values are in the network's domain, so a walk is short: 4 steps on average at worst.
    do {
      std::uint64_t left = position >> half_;
      std::uint64_t right = position & mask_;
      for (const std::uint64_t key : keys_) {
        const std::uint64_t next = left ^ (mix(right + key) & mask_);
        left = right;
        right = next;
      }
      position = left << half_ | right;
    } while (position >= size_);
    return position;
  }

 private:
  std::uint64_t size_;
  int half_ = 1;
  std::uint64_t mask_;
  std::uint64_t keys_[kRounds];
};

}  // namespace

std::ptrdiff_t permute(const std::int64_t* positions, std::size_t count, std::uint64_t size,
                       const std::uint64_t key[2], std::int64_t* out) {
  const Bijection bijection(size, key);
  for (std::size_t i = 0; i < count; ++i) {
    const auto position = static_cast<std::uint64_t>(positions[i]);
    if (position >= size) return static_cast<std::ptrdiff_t>(i);
    out[i] = static_cast<std::int64_t>(bijection(position));
  }
  return -1;
}

}  // namespace forebay
