#include <algorithm>
#include <cstring>

#include "jpeg.hpp"
#include "vectors.hpp"

namespace forebay {
namespace {

constexpr std::size_t kRows = 8;
constexpr float kNoColour = 128.0f;

std::size_t whole_eights(std::size_t size) { return (size + 7) / 8 * 8; }

// Eight rows, each of a multiple of eight values, to as many columns of eight values.
FOREBAY_CLONES
void to_columns(const float* rows, std::size_t width, float* columns) {
  for (std::size_t x = 0; x < width; x += 8) {
    Eight v[8];
    load_all(v, rows + x, width);
    transpose(v);
    for (std::size_t i = 0; i < 8; ++i) store(v[i], columns + (x + i) * 8);
  }
}

// The other way round, within 0 to 255: sums of rounded numbers go a little beyond.
FOREBAY_CLONES
void to_rows(const float* columns, std::size_t width, float* rows) {
  for (std::size_t x = 0; x < width; x += 8) {
    Eight v[8];
    load_all(v, columns + x * 8, 8);
    for (Eight& each : v) keep_within_pixels(each);
    transpose(v);
    for (std::size_t y = 0; y < 8; ++y) store(v[y], rows + y * width + x);
  }
}

FOREBAY_CLONES
void weigh_columns(const float* columns, const Taps& taps, float* out) {
  for (std::size_t x = 0; x < taps.count; ++x) {
    const float* from = columns + static_cast<std::size_t>(taps.starts[x]) * 8;
    const float* weights = taps.weights + x * taps.taps;
    Eight sum = {};
    for (std::size_t k = 0; k < taps.taps; ++k) {
      Eight values;
      load(values, from + k * 8);
      sum += values * weights[k];
    }
    store(sum, out + x * 8);
  }
}

// The colours of JFIF.
FOREBAY_CLONES
void colour(const float* brightness, const float* blue, const float* red, std::size_t width, float* out) {
  for (std::size_t x = 0; x < width; ++x, out += 24) {
    Eight y, cb, cr;
    load(y, brightness + x * 8);
    load(cb, blue + x * 8);
    load(cr, red + x * 8);
    cb -= kNoColour;
    cr -= kNoColour;
    store(y + cr * 1.402f, out);
    store(y - cb * 0.344136f - cr * 0.714136f, out + 8);
    store(y + cb * 1.772f, out + 16);
  }
}

}  // namespace

template <typename Out>
void JpegPlanes::resize(const Taps& rows, const Taps& columns, const Taps& colour_rows, const Taps& colour_columns,
                        std::size_t channels, Out* out) {
  const std::size_t size = columns.count * channels, wide = whole_eights(size);
  coloured_.resize(wide * kRows);
  // What a plane that is not there would hold: no colour.
  for (auto& each : made_) each.assign(columns.count * kRows, kNoColour);
  for (std::size_t first = 0; first < rows.count; first += kRows) {
    const std::size_t count = std::min(kRows, rows.count - first);
    for (std::size_t i = 0; i < planes_; ++i) {
      const Plane& plane = plane_[i];
      const Taps& down = i == 0 ? rows : colour_rows;
      const std::size_t width = whole_eights(plane.width);
      rows_.resize(width * kRows);
      columns_.resize(width * kRows);
      for (std::size_t y = 0; y < count; ++y) {
        const std::size_t top = static_cast<std::size_t>(down.starts[first + y]);
        const float* weights = down.weights + (first + y) * down.taps;
        float* const row = rows_.data() + y * width;
        weigh_rows(plane.pixels.data() + top * plane.stride, plane.stride, plane.width, weights, down.taps, row);
      }
      to_columns(rows_.data(), width, columns_.data());
      weigh_columns(columns_.data(), i == 0 ? columns : colour_columns, made_[i].data());
    }
    const float* made = made_[0].data();
    if (channels == 3) {
      colour(made, made_[1].data(), made_[2].data(), columns.count, coloured_.data());
    } else {
      std::memcpy(coloured_.data(), made, size * kRows * sizeof(float));
    }
    rows_.resize(wide * kRows);
    to_rows(coloured_.data(), wide, rows_.data());
    for (std::size_t y = 0; y < count; ++y, out += size) store_values(rows_.data() + y * wide, size, out);
  }
}

template void JpegPlanes::resize(const Taps&, const Taps&, const Taps&, const Taps&, std::size_t, std::uint8_t*);
template void JpegPlanes::resize(const Taps&, const Taps&, const Taps&, const Taps&, std::size_t, float*);

}  // namespace forebay
