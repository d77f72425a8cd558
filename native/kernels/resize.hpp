// Images in another size: every pixel a weighted sum of a rectangle of pixels, in each axis by itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forebay {

// Along one axis: pixel i is the sum of `taps` pixels from starts[i] on, with the weights from i * taps on.
struct Taps {
  const std::int64_t* starts;
  const float* weights;
  std::size_t count;
  std::size_t taps;
};

// Images of height x width x channels, one behind another, to rows.count x columns.count x channels. All taps must lie
// inside the images. Whole numbers are rounded and kept within 0 to 255.
template <typename In, typename Out>
void resize(const In* in, std::size_t images, std::size_t height, std::size_t width, std::size_t channels,
            const Taps& rows, const Taps& columns, Out* out);

// The weighed sum of `taps` rows of `size` values that are `stride` apart.
template <typename In>
void weigh_rows(const In* in, std::size_t stride, std::size_t size, const float* weights, std::size_t taps, float* out);

// Values as they are, or rounded and kept within 0 to 255.
void store_values(const float* values, std::size_t size, float* out);
void store_values(const float* values, std::size_t size, std::uint8_t* out);

}  // namespace forebay
