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

}  // namespace forebay
