#include <cstring>

#include "text.hpp"

namespace forebay {

Lines scan_lines(const std::uint8_t* data, std::size_t size, bool last, std::size_t most, std::int64_t* starts,
                 std::int64_t* stops) {
  std::size_t rows = 0;
  std::size_t at = 0;
  while (rows < most && at < size) {
    const void* found = std::memchr(data + at, '\n', size - at);
    if (found == nullptr && !last) break;
    const std::size_t end = found == nullptr ? size : static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - data);
    const bool carriage = found != nullptr && end > at && data[end - 1] == '\r';
    starts[rows] = static_cast<std::int64_t>(at);
    stops[rows] = static_cast<std::int64_t>(end - (carriage ? 1 : 0));
    ++rows;
    at = found == nullptr ? size : end + 1;
  }
  return {rows, at};
}

}  // namespace forebay
