// Images turned round: every pixel as it is, in another place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forebay {

// Images x height x width x channels values of `item` bytes, with the distance in bytes from each to the next.
struct ImageView {
  const std::uint8_t* data;
  std::size_t shape[4];
  std::ptrdiff_t strides[4];
  std::size_t item;
};

// Copies images one behind another into `out`, those whose mark is not 0 upside down or with left and right exchanged.
void flip(const ImageView& images, const std::uint8_t* marks, bool upside_down, std::uint8_t* out);

}  // namespace forebay
