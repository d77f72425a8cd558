#include "jpeg_frame.hpp"

#include <algorithm>
#include <cstring>

namespace forebay {
namespace {

// Numbers from the front of a segment; `good` turns false where they end.
struct Segment {
  const std::uint8_t* data;
  std::size_t size;
  bool good = true;

  std::size_t byte() {
    if (size == 0) {
      good = false;
      return 0;
    }
    --size;
    return *data++;
  }

  std::size_t two() {
    const std::size_t high = byte();
    return high << 8 | byte();
  }

  const std::uint8_t* bytes(std::size_t count) {
    if (count > size) {
      good = false;
      return nullptr;
    }
    const std::uint8_t* const found = data;
    data += count;
    size -= count;
    return found;
  }
};

bool read_quantisation(JpegFrame& frame, Segment segment) {
  while (segment.size != 0) {
    const std::size_t which = segment.byte();
    if (which >> 4 > 1 || (which & 15) > 3) return false;
    for (std::uint16_t& value : frame.quantisation[which & 15]) {
      value = static_cast<std::uint16_t>(which >> 4 ? segment.two() : segment.byte());
    }
    frame.has_quantisation[which & 15] = true;
  }
  return segment.good;
}

bool read_codes(JpegFrame& frame, Segment segment) {
  while (segment.size != 0) {
    const std::size_t which = segment.byte();
    if (which >> 4 > 1 || (which & 15) > 3) return false;
    const std::uint8_t* const counts = segment.bytes(16);
    if (counts == nullptr) return false;
    std::size_t total = 0;
    for (std::size_t i = 0; i < 16; ++i) total += counts[i];
    const std::uint8_t* const symbols = segment.bytes(total);
    if (symbols == nullptr || total > 256) return false;
    // No difference has more bits, whether the symbol is used or not; libjpeg refuses such a code too.
    if (which >> 4 == 0 && std::any_of(symbols, symbols + total, [](std::uint8_t each) { return each > 15; })) {
      return false;
    }
    auto& codes = which >> 4 ? frame.ac : frame.dc;
    if (!codes[which & 15].define(counts, symbols, total)) return false;
    (which >> 4 ? frame.has_ac : frame.has_dc)[which & 15] = true;
  }
  return segment.good;
}

bool read_size(JpegFrame& frame, Segment segment) {
  if (frame.components != 0 || segment.byte() != 8) return false;
  frame.height = segment.two();
  frame.width = segment.two();
  frame.components = segment.byte();
  if (frame.height == 0 || frame.width == 0 || (frame.components != 1 && frame.components != 3)) return false;
  for (std::size_t i = 0; i < frame.components; ++i) {
    JpegComponent& each = frame.component[i];
    each.id = static_cast<std::uint8_t>(segment.byte());
    const std::size_t factors = segment.byte();
    each.across = factors >> 4;
    each.down = factors & 15;
    each.quantisation = static_cast<unsigned>(segment.byte());
    if (each.quantisation > 3 || each.across - 1 > 3 || each.down - 1 > 3) return false;
  }
  JpegComponent& first = frame.component[0];
  if (frame.components == 1) {
    // There is nothing that it could be sampled against: a unit is one block.
    first.across = first.down = 1;
    return segment.good;
  }
  for (std::size_t i = 1; i < 3; ++i) {
    if (frame.component[i].across != 1 || frame.component[i].down != 1) return false;
  }
  return segment.good && (first.across == 1 || first.across == 2) && (first.down == 1 || first.down == 2);
}

bool read_scan(JpegFrame& frame, Segment segment) {
  if (frame.components == 0 || segment.byte() != frame.components) return false;
  for (std::size_t i = 0; i < frame.components; ++i) {
    JpegComponent& each = frame.component[i];
    if (segment.byte() != each.id) return false;
    const std::size_t codes = segment.byte();
    each.dc = static_cast<unsigned>(codes >> 4);
    each.ac = static_cast<unsigned>(codes & 15);
    if (each.dc > 3 || each.ac > 3) return false;
    if (!frame.has_dc[each.dc] || !frame.has_ac[each.ac] || !frame.has_quantisation[each.quantisation]) return false;
  }
  const std::size_t first = segment.byte(), last = segment.byte(), bits = segment.byte();
  return segment.good && segment.size == 0 && first == 0 && last == 63 && bits == 0;
}

// What decoders guess from marks of programs, as far as it is certain: that colours are YCbCr.
bool is_ycbcr(const JpegFrame& frame, bool jfif, int transform) {
  if (frame.components == 1 || jfif) return true;
  if (transform >= 0) return transform == 1;
  return frame.component[0].id == 1 && frame.component[1].id == 2 && frame.component[2].id == 3;
}

}  // namespace

bool JpegFrame::read(const std::uint8_t* data, std::size_t size) {
  components = restart = 0;
  has_quantisation.fill(false);
  has_dc.fill(false);
  has_ac.fill(false);
  bool jfif = false;
  int transform = -1;
  std::size_t at = 2;
  while (at + 4 <= size) {
    if (data[at] != 0xFF) return false;
    const unsigned marker = data[at + 1];
    const std::size_t length = static_cast<std::size_t>(data[at + 2]) << 8 | data[at + 3];
    if (length < 2 || length > size - at - 2) return false;
    Segment segment{data + at + 4, length - 2};
    at += 2 + length;
    bool good = true;
    switch (marker) {
      case 0xC0:
      case 0xC1:
        good = read_size(*this, segment);
        break;
      case 0xC4:
        good = read_codes(*this, segment);
        break;
      case 0xDA:
        pixels = at;
        return read_scan(*this, segment) && is_ycbcr(*this, jfif, transform);
      case 0xDB:
        good = read_quantisation(*this, segment);
        break;
      case 0xDD:
        restart = segment.two();
        good = segment.good;
        break;
      case 0xE0:
        jfif = jfif || (segment.size >= 5 && std::memcmp(segment.data, "JFIF", 5) == 0);
        break;
      case 0xEE:
        if (segment.size >= 12 && std::memcmp(segment.data, "Adobe", 5) == 0) transform = segment.data[11];
        break;
      default:
        // Comments and what programs leave for each other. Everything else is another kind of file.
        good = marker == 0xFE || (marker >= 0xE1 && marker <= 0xEF);
    }
    if (!good) return false;
  }
  return false;
}

}  // namespace forebay
