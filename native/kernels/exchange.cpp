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

}  // namespace forebay
