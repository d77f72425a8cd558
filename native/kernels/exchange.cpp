#include "kernels.hpp"

namespace forebay {
namespace {

bool inside(std::int64_t slot, std::size_t size) { return static_cast<std::uint64_t>(slot) < size; }

}  // namespace

std::ptrdiff_t exchange(std::int64_t* buffer, std::size_t size, const std::int64_t* slots,
                        const std::int64_t* incoming, std::size_t count, std::int64_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!inside(slots[i], size)) return static_cast<std::ptrdiff_t>(i);
    std::int64_t& slot = buffer[slots[i]];
    out[i] = slot;
    slot = incoming[i];
  }
  return -1;
}

std::ptrdiff_t drain(std::int64_t* buffer, std::size_t live, const std::int64_t* slots, std::size_t count,
                     std::int64_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!inside(slots[i], live)) return static_cast<std::ptrdiff_t>(i);
    std::int64_t& slot = buffer[slots[i]];
    out[i] = slot;
    slot = buffer[--live];
  }
  return -1;
}

std::size_t keep_last(std::uint8_t* seen, std::size_t bytes, std::int64_t low, const std::int64_t* slots,
                      std::size_t count, std::uint8_t* kept) {
  std::size_t found = 0;
  for (std::size_t i = count; i-- > 0;) {
    // Unsigned, so that slots before `low` are far behind the end.
    const std::uint64_t slot = static_cast<std::uint64_t>(slots[i]) - static_cast<std::uint64_t>(low);
    if (slot / 8 >= bytes) continue;
    const auto bit = static_cast<std::uint8_t>(1U << (slot % 8));
    if ((seen[slot / 8] & bit) != 0) continue;
    seen[slot / 8] = static_cast<std::uint8_t>(seen[slot / 8] | bit);
    kept[i / 8] = static_cast<std::uint8_t>(kept[i / 8] | (1U << (i % 8)));
    ++found;
  }
  return found;
}

}  // namespace forebay
