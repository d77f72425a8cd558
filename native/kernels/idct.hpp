// Blocks of frequencies to blocks of pixels, of 8 x 8 or, as means of several pixels, of 4 x 4, 2 x 2 or one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace forebay {

// How a block's coefficients, in the order of the file, become numbers of a block of `side` x `side`: where each of
// them goes, what it is multiplied with, and the last that counts.
struct Dequantisation {
  std::size_t side;
  unsigned last;
  // Room for what broken data leaves behind the end of a block; what does not count goes to a place behind the others.
  std::array<std::uint8_t, 64 + 16> places;
  std::array<float, 64 + 16> factors;

  Dequantisation(std::size_t side, const std::array<std::uint16_t, 64>& quantisation);
};

// Pixels of a block to rows that are `stride` apart. `flat` says that all but the first number are 0.
template <std::size_t side>
void inverse(const float* block, bool flat, std::uint8_t* out, std::size_t stride);

}  // namespace forebay
