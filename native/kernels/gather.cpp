#include <cstring>

#include "kernels.hpp"

namespace forebay {

std::ptrdiff_t gather_ranges(const std::uint8_t* source, std::int64_t source_size, const std::int64_t* starts,
                             const std::int64_t* stops, std::size_t count, std::uint8_t* out,
                             std::size_t room) {
  for (std::size_t i = 0; i < count; ++i) {
    if (starts[i] < 0 || stops[i] < starts[i] || stops[i] > source_size) return static_cast<std::ptrdiff_t>(i);
    const auto size = static_cast<std::size_t>(stops[i] - starts[i]);
    if (size > room) return static_cast<std::ptrdiff_t>(i);
    if (size != 0) std::memcpy(out, source + starts[i], size);
    out += size;
    room -= size;
  }
  return -1;
}

}  // namespace forebay
