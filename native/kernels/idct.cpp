#include "idct.hpp"

#include <cmath>
#include <cstring>

#include "vectors.hpp"

namespace forebay {
namespace {

constexpr double kPi = 3.14159265358979323846;

// The way through a block from low to high frequencies: rows and columns of it.
struct Zigzag {
  std::array<std::uint8_t, 64> row{};
  std::array<std::uint8_t, 64> column{};

  Zigzag() {
    int y = 0, x = 0;
    for (std::size_t k = 0; k < 64; ++k) {
      row[k] = static_cast<std::uint8_t>(y);
      column[k] = static_cast<std::uint8_t>(x);
      const bool up = (x + y) % 2 == 0;
      if (up ? x == 7 : y == 7) {
        up ? ++y : ++x;
      } else if (up ? y == 0 : x == 0) {
        up ? ++x : ++y;
      } else {
        y += up ? -1 : 1;
        x += up ? 1 : -1;
      }
    }
  }
};

// What frequency u of 8 counts along one axis of a block of `side`. The mean of neighbouring pixels is a cosine of the
// same frequency, only weaker. Factors of the sums below are taken in here.
double share(std::size_t side, unsigned u) {
  const double normal = u == 0 ? std::sqrt(0.125) : 0.5;
  const double pair = std::cos(u * kPi / 16), four = std::cos(u * kPi / 8);
  switch (side) {
    case 8:
      return normal * pair;
    case 4:
      return normal * pair * (u == 2 ? std::sqrt(0.5) : 1);
    case 2:
      return normal * pair * four * (u == 1 ? std::sqrt(0.5) : 1);
    default:
      return normal;
  }
}

inline std::uint8_t pixel(float value) {
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : static_cast<int>(value));
}

FOREBAY_INLINE void pass_eight(Eight* v) {
  // Arai, Agui and Nakajima's: five multiplications, the others are part of the factors.
  const Eight even = v[0] + v[4], odd = v[0] - v[4], sum = v[2] + v[6], turned = (v[2] - v[6]) * 1.414213562f - sum;
  const Eight e0 = even + sum, e3 = even - sum, e1 = odd + turned, e2 = odd - turned;
  const Eight z13 = v[5] + v[3], z10 = v[5] - v[3], z11 = v[1] + v[7], z12 = v[1] - v[7];
  const Eight o7 = z11 + z13, between = (z11 - z13) * 1.414213562f, z5 = (z10 + z12) * 1.847759065f;
  const Eight o6 = z5 - z10 * 2.613125930f - o7, o5 = between - o6, o4 = z5 - z12 * 1.082392200f - o5;
  v[0] = e0 + o7;
  v[7] = e0 - o7;
  v[1] = e1 + o6;
  v[6] = e1 - o6;
  v[2] = e2 + o5;
  v[5] = e2 - o5;
  v[3] = e3 + o4;
  v[4] = e3 - o4;
}

FOREBAY_CLONES
void inverse_eight(const float* block, std::uint8_t* out, std::size_t stride) {
  Eight v[8];
  load_all(v, block, 8);
  pass_eight(v);
  transpose(v);
  pass_eight(v);
  // By way of memory: compilers know how to make many numbers smaller at once, but not those of one register.
  alignas(32) float values[64];
  for (std::size_t i = 0; i < 8; ++i) {
    keep_within_pixels(v[i]);
    store(v[i], values + 8 * i);
  }
  alignas(32) std::uint8_t pixels[64];
  for (std::size_t i = 0; i < 64; ++i) pixels[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(values[i]));
  for (std::size_t y = 0; y < 8; ++y) std::memcpy(out + y * stride, pixels + 8 * y, 8);
}

void inverse_four(const float* block, std::uint8_t* out, std::size_t stride) {
  constexpr float c1 = 0.92387953f, c3 = 0.38268343f;
  float between[16];
  for (std::size_t i = 0; i < 4; ++i) {
    const float t0 = block[i], t1 = block[4 + i], t2 = block[8 + i], t3 = block[12 + i];
    const float e0 = t0 + t2, e1 = t0 - t2, o0 = t1 * c1 + t3 * c3, o1 = t1 * c3 - t3 * c1;
    between[i] = e0 + o0;
    between[4 + i] = e1 + o1;
    between[8 + i] = e1 - o1;
    between[12 + i] = e0 - o0;
  }
  for (std::size_t x = 0; x < 4; ++x) {
    const float* t = between + 4 * x;
    const float e0 = t[0] + t[2], e1 = t[0] - t[2], o0 = t[1] * c1 + t[3] * c3, o1 = t[1] * c3 - t[3] * c1;
    out[x] = pixel(e0 + o0);
    out[stride + x] = pixel(e1 + o1);
    out[2 * stride + x] = pixel(e1 - o1);
    out[3 * stride + x] = pixel(e0 - o0);
  }
}

void inverse_two(const float* block, std::uint8_t* out, std::size_t stride) {
  const float left = block[0] + block[2], right = block[0] - block[2];
  const float down_left = block[1] + block[3], down_right = block[1] - block[3];
  out[0] = pixel(left + down_left);
  out[1] = pixel(right + down_right);
  out[stride] = pixel(left - down_left);
  out[stride + 1] = pixel(right - down_right);
}

}  // namespace

Dequantisation::Dequantisation(std::size_t side, const std::array<std::uint16_t, 64>& quantisation)
    : side(side), last(0) {
  static const Zigzag way;
  const std::uint8_t nowhere = static_cast<std::uint8_t>(side * side);
  places.fill(nowhere);
  factors.fill(0.0f);
  for (unsigned k = 0; k < 64; ++k) {
    const unsigned v = way.row[k], u = way.column[k];
    if (v >= side || u >= side) continue;
    // Turned, so that what comes out is upright again after one more turn half-way.
    places[k] = static_cast<std::uint8_t>(u * side + v);
    factors[k] = static_cast<float>(quantisation[k] * share(side, u) * share(side, v));
    last = k;
  }
}

template <std::size_t side>
void inverse(const float* block, bool flat, std::uint8_t* out, std::size_t stride) {
  if (flat) {
    const std::uint8_t value = pixel(block[0]);
    for (std::size_t y = 0; y < side; ++y) std::memset(out + y * stride, value, side);
  } else if constexpr (side == 8) {
    inverse_eight(block, out, stride);
  } else if constexpr (side == 4) {
    inverse_four(block, out, stride);
  } else if constexpr (side == 2) {
    inverse_two(block, out, stride);
  }
}

template void inverse<8>(const float*, bool, std::uint8_t*, std::size_t);
template void inverse<4>(const float*, bool, std::uint8_t*, std::size_t);
template void inverse<2>(const float*, bool, std::uint8_t*, std::size_t);
template void inverse<1>(const float*, bool, std::uint8_t*, std::size_t);

}  // namespace forebay
