#include "resize.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "vectors.hpp"

namespace forebay {
namespace {

// Columns are weighed four values at a time, of which only the first `channels` count: rows in between have room for
// the others behind their end.
typedef float Four __attribute__((vector_size(16)));
constexpr std::size_t kRoom = 4;

FOREBAY_CLONES
void weigh_one(const std::uint8_t* __restrict in, float weight, std::size_t size, float* __restrict out) {
  for (std::size_t i = 0; i < size; ++i) out[i] = weight * static_cast<float>(in[i]);
}

FOREBAY_CLONES
void weigh_one(const float* __restrict in, float weight, std::size_t size, float* __restrict out) {
  for (std::size_t i = 0; i < size; ++i) out[i] = weight * in[i];
}

FOREBAY_CLONES
void weigh_two(const std::uint8_t* __restrict a, const std::uint8_t* __restrict b, float weight_a, float weight_b,
               std::size_t size, float* __restrict out) {
  for (std::size_t i = 0; i < size; ++i) {
    out[i] = weight_a * static_cast<float>(a[i]) + weight_b * static_cast<float>(b[i]);
  }
}

FOREBAY_CLONES
void weigh_two(const float* __restrict a, const float* __restrict b, float weight_a, float weight_b, std::size_t size,
               float* __restrict out) {
  for (std::size_t i = 0; i < size; ++i) out[i] = weight_a * a[i] + weight_b * b[i];
}

FOREBAY_CLONES
void add_one(const std::uint8_t* __restrict in, float weight, std::size_t size, float* __restrict out) {
  for (std::size_t i = 0; i < size; ++i) out[i] += weight * static_cast<float>(in[i]);
}

FOREBAY_CLONES
void add_one(const float* __restrict in, float weight, std::size_t size, float* __restrict out) {
  for (std::size_t i = 0; i < size; ++i) out[i] += weight * in[i];
}

void weigh_columns_by_four(const float* row, std::size_t channels, const Taps& columns, float* out) {
  for (std::size_t x = 0; x < columns.count; ++x) {
    const float* from = row + static_cast<std::size_t>(columns.starts[x]) * channels;
    const float* weights = columns.weights + x * columns.taps;
    Four sum = {0.0f, 0.0f, 0.0f, 0.0f};
    for (std::size_t k = 0; k < columns.taps; ++k) {
      Four values;
      std::memcpy(&values, from + k * channels, sizeof values);
      sum += values * weights[k];
    }
    std::memcpy(out + x * channels, &sum, sizeof sum);
  }
}

void weigh_columns(const float* row, std::size_t channels, const Taps& columns, float* out) {
  if (channels <= kRoom) {
    weigh_columns_by_four(row, channels, columns, out);
    return;
  }
  for (std::size_t x = 0; x < columns.count; ++x) {
    const float* from = row + static_cast<std::size_t>(columns.starts[x]) * channels;
    const float* weights = columns.weights + x * columns.taps;
    for (std::size_t c = 0; c < channels; ++c) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < columns.taps; ++k) sum += weights[k] * from[k * channels + c];
      out[x * channels + c] = sum;
    }
  }
}

}  // namespace

template <typename In>
void weigh_rows(const In* in, std::size_t stride, std::size_t size, const float* weights, std::size_t taps,
                float* out) {
  // Rows without weight are left out: they are all but a few at the borders, where what counts is cut off.
  std::size_t first = 0;
  while (first + 1 < taps && weights[first] == 0.0f) ++first;
  std::size_t last = taps;
  while (last > first + 1 && weights[last - 1] == 0.0f) --last;
  if (last - first == 1) {
    weigh_one(in + first * stride, weights[first], size, out);
    return;
  }
  weigh_two(in + first * stride, in + (first + 1) * stride, weights[first], weights[first + 1], size, out);
  for (std::size_t k = first + 2; k < last; ++k) add_one(in + k * stride, weights[k], size, out);
}

template void weigh_rows(const std::uint8_t*, std::size_t, std::size_t, const float*, std::size_t, float*);

void store_values(const float* __restrict values, std::size_t size, float* __restrict out) {
  std::memcpy(out, values, size * sizeof(float));
}

FOREBAY_CLONES
void store_values(const float* __restrict values, std::size_t size, std::uint8_t* __restrict out) {
  for (std::size_t i = 0; i < size; ++i) {
    // By comparisons that are false for it, not-a-number becomes 0 instead of undefined behaviour. Clipping what is
    // whole already, instead of the float, is what compilers know how to do for many values at once.
    const float value = values[i] + 0.5f;
    const float near = value > -1.0f ? value : 0.0f;
    const std::int32_t whole = static_cast<std::int32_t>(near < 256.0f ? near : 255.0f);
    out[i] = static_cast<std::uint8_t>(whole < 0 ? 0 : whole);
  }
}

template <typename In, typename Out>
void resize(const In* in, std::size_t images, std::size_t height, std::size_t width, std::size_t channels,
            const Taps& rows, const Taps& columns, Out* out) {
  const std::size_t stride = width * channels;
  const std::size_t out_stride = columns.count * channels;
  std::vector<float> row(stride + kRoom);
  std::vector<float> made(out_stride + kRoom);
  for (std::size_t image = 0; image < images; ++image) {
    const In* from = in + image * height * stride;
    for (std::size_t y = 0; y < rows.count; ++y) {
      weigh_rows(from + static_cast<std::size_t>(rows.starts[y]) * stride, stride, stride, rows.weights + y * rows.taps,
                 rows.taps, row.data());
      weigh_columns(row.data(), channels, columns, made.data());
      store_values(made.data(), out_stride, out);
      out += out_stride;
    }
  }
}

template void resize(const std::uint8_t*, std::size_t, std::size_t, std::size_t, std::size_t, const Taps&, const Taps&,
                     std::uint8_t*);
template void resize(const std::uint8_t*, std::size_t, std::size_t, std::size_t, std::size_t, const Taps&, const Taps&,
                     float*);
template void resize(const float*, std::size_t, std::size_t, std::size_t, std::size_t, const Taps&, const Taps&,
                     std::uint8_t*);
template void resize(const float*, std::size_t, std::size_t, std::size_t, std::size_t, const Taps&, const Taps&,
                     float*);

}  // namespace forebay
