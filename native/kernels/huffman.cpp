#include "huffman.hpp"

#include <algorithm>

namespace forebay {

bool HuffmanCode::define(const std::uint8_t* counts, const std::uint8_t* symbols, std::size_t size) {
  // Most files have the codes that the standard suggests.
  const bool same_lengths = std::equal(counts, counts + 16, counts_.begin());
  if (defined_ && same_lengths && std::equal(symbols, symbols + size, symbols_.begin())) return true;
  defined_ = has_steps_ = has_leaps_ = false;
  std::copy(counts, counts + 16, counts_.begin());
  std::copy(symbols, symbols + size, symbols_.begin());
  short_.fill(0);
  std::uint32_t code = 0;
  std::size_t index = 0;
  for (unsigned length = 1; length <= 16; ++length) {
    offsets_[length] = static_cast<std::int32_t>(index) - static_cast<std::int32_t>(code);
    for (unsigned i = 0; i < counts[length - 1]; ++i, ++index, ++code) {
      if (code >= 1u << length) return false;
      if (length <= kLook) {
        const auto first = short_.begin() + (code << (kLook - length));
        std::fill(first, first + (1 << (kLook - length)), static_cast<std::uint16_t>(length << 8 | symbols[index]));
      }
    }
    ends_[length] = code << (16 - length);
    code <<= 1;
  }
  defined_ = true;
  return true;
}

std::uint32_t HuffmanCode::long_symbol(std::uint32_t next) const {
  for (unsigned length = kLook + 1; length <= 16; ++length) {
    if (next < ends_[length]) {
      const std::int32_t index = static_cast<std::int32_t>(next >> (16 - length)) + offsets_[length];
      return length << 8 | symbols_[static_cast<std::size_t>(index)];
    }
  }
  return 0;
}

void HuffmanCode::prepare_steps() {
  if (has_steps_) return;
  has_steps_ = true;
  for (std::uint32_t next = 0; next < steps_.size(); ++next) {
    const unsigned length = short_[next] >> 8;
    const unsigned run = short_[next] >> 4 & 15, size = short_[next] & 15;
    Step step{0, 0, 0};
    if (length != 0 && size != 0 && length + size <= kLook) {
      const std::uint32_t value = next >> (kLook - length - size) & ((1u << size) - 1);
      step = {static_cast<std::int16_t>(extended(value, size)), static_cast<std::uint8_t>(run),
              static_cast<std::uint8_t>(length + size)};
    } else if (length != 0 && size == 0 && run == 0) {
      step = {0, kEnd, static_cast<std::uint8_t>(length)};
    }
    steps_[next] = step;
  }
}

void HuffmanCode::prepare_leaps() {
  if (has_leaps_) return;
  has_leaps_ = true;
  for (std::uint32_t next = 0; next < leaps_.size(); ++next) {
    unsigned bits = 0, places = 0;
    bool ends = false;
    while (!ends) {
      const std::uint16_t found = short_[(next << bits & ((1u << kFar) - 1)) >> (kFar - kLook)];
      const unsigned length = found >> 8, run = found >> 4 & 15, size = found & 15;
      if (length == 0 || bits + length + size > kFar || (size == 0 && run != 0 && run != 15)) break;
      bits += length + size;
      ends = size == 0 && run == 0;
      places += ends ? 1 : run + 1;
    }
    leaps_[next] = {static_cast<std::uint16_t>(places << 8 | ends << 4 | bits)};
  }
}

}  // namespace forebay
