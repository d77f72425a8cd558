// Numbers in fields, each the fastest way that there is for it.
#pragma once

#include "decimal.hpp"
#include "text.hpp"

namespace forebay {

// The number that is data[begin:end], behind which there is at least one byte more. False if it is none, or does not
// fit.
FOREBAY_INLINE bool read(const std::uint8_t* data, std::size_t begin, std::size_t end, std::int64_t& out) {
  return plain_whole(data, begin, end, out) || parse_whole(data + begin, end - begin, INT64_MIN, INT64_MAX, out);
}

FOREBAY_INLINE bool read(const std::uint8_t* data, std::size_t begin, std::size_t end, std::int32_t& out) {
  std::int64_t whole;
  if (!read(data, begin, end, whole)) return false;
  out = static_cast<std::int32_t>(whole);
  return out == whole;
}

template <class T>
FOREBAY_INLINE bool read(const std::uint8_t* data, std::size_t begin, std::size_t end, T& out) {
  return plain_real(data, begin, end, out) || parse_real(data + begin, end - begin, out);
}

}  // namespace forebay
