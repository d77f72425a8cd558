// What a JPEG file says about itself in front of its pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "huffman.hpp"

namespace forebay {

struct JpegComponent {
  std::uint8_t id = 0;
  unsigned across = 0;  // Blocks of 8 x 8 in one unit of the scan.
  unsigned down = 0;
  unsigned quantisation = 0;
  unsigned dc = 0;
  unsigned ac = 0;
};

// Kept from one image to the next: tables that stay the same are not made again.
struct JpegFrame {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t components = 0;
  std::array<JpegComponent, 3> component;
  std::size_t restart = 0;  // Units between two restarts; 0: there are none.
  std::size_t pixels = 0;   // Where the scan begins.
  std::array<std::array<std::uint16_t, 64>, 4> quantisation{};  // In the order of the file.
  std::array<bool, 4> has_quantisation{};
  std::array<HuffmanCode, 4> dc;
  std::array<HuffmanCode, 4> ac;
  std::array<bool, 4> has_dc{};
  std::array<bool, 4> has_ac{};

  // False unless the file is of the most common kind: 8 bits, sequential, Huffman coded, one scan, grey or YCbCr whose
  // colours have full or half the resolution. That is no judgement on the file.
  bool read(const std::uint8_t* data, std::size_t size);
};

}  // namespace forebay
