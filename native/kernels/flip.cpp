#include "flip.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "vectors.hpp"

namespace forebay {
namespace {

typedef std::uint8_t Sixteen __attribute__((vector_size(16)));

// Where byte `to` comes from if the last pixels of sixteen bytes are to come first. Bytes of no whole pixel come from
// anywhere: the next pixels are written over them.
constexpr int reversed(std::size_t pixel, std::size_t to) {
  return to / pixel < 16 / pixel ? static_cast<int>(16 - (to / pixel + 1) * pixel + to % pixel) : 0;
}

template <std::size_t kPixel, std::size_t... kTo>
FOREBAY_INLINE void reverse_sixteen(const std::uint8_t* from, std::uint8_t* to, std::index_sequence<kTo...>) {
  Sixteen bytes;
  std::memcpy(&bytes, from, 16);
  bytes = __builtin_shufflevector(bytes, bytes, reversed(kPixel, kTo)...);
  std::memcpy(to, &bytes, 16);
}

// Pixels of at most sixteen bytes that lie one behind another, the last one first.
template <std::size_t kPixel>
FOREBAY_INLINE void reverse(const std::uint8_t* row, std::size_t count, std::uint8_t* out) {
  while (count * kPixel >= 16) {
    reverse_sixteen<kPixel>(row + count * kPixel - 16, out, std::make_index_sequence<16>{});
    count -= 16 / kPixel;
    out += 16 / kPixel * kPixel;
  }
  for (; count != 0; out += kPixel) std::memcpy(out, row + --count * kPixel, kPixel);
}

// Whether pixels are of a size that goes by sixteen bytes.
FOREBAY_CLONES
bool reverse_small(const std::uint8_t* row, std::size_t count, std::size_t pixel, std::uint8_t* out) {
  switch (pixel) {
    case 1: return reverse<1>(row, count, out), true;
    case 2: return reverse<2>(row, count, out), true;
    case 3: return reverse<3>(row, count, out), true;
    case 4: return reverse<4>(row, count, out), true;
    case 6: return reverse<6>(row, count, out), true;
    case 8: return reverse<8>(row, count, out), true;
    case 12: return reverse<12>(row, count, out), true;
    case 16: return reverse<16>(row, count, out), true;
    default: return false;
  }
}

// As many bytes as `kSize` says, or as `size` does where that is 0.
template <std::size_t kSize>
void copy_apart(const std::uint8_t* from, std::ptrdiff_t step, std::size_t count, std::size_t size, std::uint8_t* out) {
  const std::size_t bytes = kSize == 0 ? size : kSize;
  for (std::size_t i = 0; i < count; ++i, from += step, out += bytes) std::memcpy(out, from, bytes);
}

// Pieces of `size` bytes that are `step` apart, one behind another.
void copy_pieces(const std::uint8_t* from, std::ptrdiff_t step, std::size_t count, std::size_t size, std::uint8_t* out) {
  const auto whole = static_cast<std::ptrdiff_t>(size);
  if (step == whole) {
    std::memcpy(out, from, count * size);
    return;
  }
  if (step == -whole && reverse_small(from - static_cast<std::ptrdiff_t>(count - 1) * whole, count, size, out)) return;
  switch (size) {
    case 1: return copy_apart<1>(from, step, count, size, out);
    case 2: return copy_apart<2>(from, step, count, size, out);
    case 3: return copy_apart<3>(from, step, count, size, out);
    case 4: return copy_apart<4>(from, step, count, size, out);
    case 8: return copy_apart<8>(from, step, count, size, out);
    case 12: return copy_apart<12>(from, step, count, size, out);
    case 16: return copy_apart<16>(from, step, count, size, out);
    case 24: return copy_apart<24>(from, step, count, size, out);
    case 32: return copy_apart<32>(from, step, count, size, out);
    default: return copy_apart<0>(from, step, count, size, out);
  }
}

}  // namespace

void flip(const ImageView& images, const std::uint8_t* marks, bool upside_down, std::uint8_t* out) {
  const auto [count, height, width, channels] = images.shape;
  if (count == 0 || height == 0 || width == 0 || channels == 0) return;
  const std::size_t pixel = channels * images.item;
  const bool whole = channels == 1 || images.strides[3] == static_cast<std::ptrdiff_t>(images.item);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* row = images.data + static_cast<std::ptrdiff_t>(i) * images.strides[0];
    std::ptrdiff_t down = images.strides[1];
    std::ptrdiff_t right = images.strides[2];
    if (marks[i] != 0) {
      std::ptrdiff_t& turned = upside_down ? down : right;
      row += static_cast<std::ptrdiff_t>((upside_down ? height : width) - 1) * turned;
      turned = -turned;
    }
    for (std::size_t y = 0; y < height; ++y, row += down, out += width * pixel) {
      if (whole) {
        copy_pieces(row, right, width, pixel, out);
        continue;
      }
      const std::uint8_t* from = row;
      for (std::size_t x = 0; x < width; ++x, from += right) {
        copy_pieces(from, images.strides[3], channels, images.item, out + x * pixel);
      }
    }
  }
}

}  // namespace forebay
