// Philox4x64 with ten rounds, as NumPy has it: the counter is one more when its first words are drawn.
#include "kernels.hpp"

namespace forebay {
namespace {

constexpr int kRounds = 10;
constexpr std::size_t kWords = 4;
// Counters at once: one has to wait for its own product in every round, several need not wait for one another.
constexpr std::size_t kLanes = 4;

struct Counters {
  std::uint64_t words[kWords][kLanes];
};

void multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& high, std::uint64_t& low) {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a) * b;
  high = static_cast<std::uint64_t>(product >> 64);
  low = static_cast<std::uint64_t>(product);
}

void mix(Counters& counters, const std::uint64_t key[2]) {
  std::uint64_t first = key[0];
  std::uint64_t second = key[1];
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      auto& words = counters.words;
      std::uint64_t high[2];
      std::uint64_t low[2];
      multiply(words[0][lane], 0xd2e7470ee14c6c93ULL, high[0], low[0]);
      multiply(words[2][lane], 0xca5a826395121157ULL, high[1], low[1]);
      words[0][lane] = high[1] ^ words[1][lane] ^ first;
      words[1][lane] = low[1];
      words[2][lane] = high[0] ^ words[3][lane] ^ second;
      words[3][lane] = low[0];
    }
    first += 0x9e3779b97f4a7c15ULL;
    second += 0xbb67ae8584caa73bULL;
  }
}

}  // namespace

void philox(const std::uint64_t key[2], std::uint64_t start, std::size_t count, std::uint64_t* out) {
  std::uint64_t counter = start / kWords + 1;
  std::size_t skipped = start % kWords;
  for (std::size_t done = 0; done < count; counter += kLanes, skipped = 0) {
    Counters counters{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) counters.words[0][lane] = counter + lane;
    mix(counters, key);
    for (std::size_t i = skipped; i < kLanes * kWords && done < count; ++i) {
      out[done++] = counters.words[i % kWords][i / kWords];
    }
  }
}

}  // namespace forebay
