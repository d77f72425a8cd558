// Decimals whose end is known, without a loop over their digits: how many there are differs from field to field, and
// cannot be guessed. What is not plain, or not on such a processor, is left to parse_whole and parse_real.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "vectors.hpp"

#if defined(__x86_64__) && defined(__SSE2__)
#define FOREBAY_SSE2 1
#include <emmintrin.h>
#endif

namespace forebay {

// Bytes before the end of a number that are looked at, whatever its size.
constexpr std::size_t kBeforeDecimal = 48;
// So many digits fit into 64 bits, whatever they are.
constexpr std::size_t kMostDigits = 19;
constexpr int kMostInverse = 27;

template <class T, std::size_t kCount>
constexpr std::array<T, kCount> powers_of_ten() {
  std::array<T, kCount> powers{};
  T power = 1;
  for (std::size_t i = 0; i < kCount; ++i, power *= 10) powers[i] = power;
  return powers;
}

constexpr auto kWholeTens = powers_of_ten<std::uint64_t, kMostDigits + 1>();

// The numbers of a type for which a quotient or a product is the nearest to what it should be: whole numbers, and
// powers of ten, that the type holds without rounding.
template <class T>
struct Exact {
  static constexpr std::uint64_t kWhole = std::uint64_t{1} << std::numeric_limits<T>::digits;
  static constexpr int kPower = sizeof(T) == 8 ? 22 : 10;
  static constexpr auto kTens = powers_of_ten<T, kPower + 1>();
};

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

// The number below zero if it is `negative`. Not a choice between two, which would be guessed wrongly half of the time.
template <class T>
T with_sign(T number, bool negative) {
  BitsOf<T> bits;
  std::memcpy(&bits, &number, sizeof bits);
  bits |= static_cast<BitsOf<T>>(negative) << (8 * sizeof bits - 1);
  std::memcpy(&number, &bits, sizeof bits);
  return number;
}

#if defined(__SIZEOF_INT128__)
// 5 to the power of -i, as `factor` times 2 to the power of -`scale`. The factor has its highest bit set, and its
// error is less than 1.
struct Inverse {
  std::uint64_t factor;
  int scale;
};

constexpr std::array<Inverse, kMostInverse + 1> kInverses = [] {
  __extension__ typedef unsigned __int128 Wide;
  std::array<Inverse, kMostInverse + 1> inverses{};
  std::uint64_t power = 1;
  for (auto& each : inverses) {
    int bits = 0;
    while (bits < 63 && (std::uint64_t{1} << bits) < power) ++bits;
    each = {static_cast<std::uint64_t>((Wide{1} << (63 + bits)) / power), 63 + bits};
    power *= 5;
  }
  return inverses;
}();

// `digits` divided by 10 to the power of `places`, kMostInverse at most. False where the nearest number cannot be told
// from one product, one time in a thousand for double.
template <class T>
FOREBAY_INLINE bool divide_by_ten(std::uint64_t digits, std::size_t places, T& out) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  if (digits == 0) {
    out = 0;
    return true;
  }
  const Inverse inverse = kInverses[places];
  const int shift = __builtin_clzll(digits);
  __extension__ typedef unsigned __int128 Wide;
  const auto product = static_cast<std::uint64_t>((Wide{digits << shift} * inverse.factor) >> 64);
  // The quotient is at least `product`, and less than 2 more: only next to the middle between two numbers that matters.
  const int dropped = 63 + static_cast<int>(product >> 63) - kBits;
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  if ((product & (2 * half - 1)) - (half - 1) <= 1) return false;
  const std::uint64_t mantissa = ((product >> (dropped - 1)) + 1) >> 1;
  const int power = 64 - inverse.scale - static_cast<int>(places) - shift + dropped;
  // The highest bit of the mantissa, which is not stored, and a carry beyond it go into the exponent.
  const int exponent = power + kBits - 2 + std::numeric_limits<T>::max_exponent - 1;
  const auto bits = (static_cast<BitsOf<T>>(exponent) << (kBits - 1)) + static_cast<BitsOf<T>>(mantissa);
  std::memcpy(&out, &bits, sizeof bits);
  return true;
}
#else
template <class T>
bool divide_by_ten(std::uint64_t, std::size_t, T&) {
  return false;
}
#endif

#ifdef FOREBAY_SSE2
// From byte n on: 16 bytes, the last n of which are to be kept.
alignas(32) constexpr std::uint8_t kLastOf16[32] = {
    0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

inline __m128i sixteen(const std::uint8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }

// The number that the last `count` of 16 bytes are; `strange` is set if they are not all digits.
FOREBAY_INLINE std::uint64_t number_of(__m128i text, std::size_t count, unsigned& strange) {
  const __m128i digits = _mm_and_si128(_mm_xor_si128(text, _mm_set1_epi8('0')), sixteen(kLastOf16 + count));
  strange |= static_cast<unsigned>(_mm_movemask_epi8(_mm_adds_epu8(digits, _mm_set1_epi8(127 - 9))));
  // Neighbours are put together to pairs, these to fours, and those to eights.
  const __m128i pairs = _mm_srli_epi16(_mm_mullo_epi16(digits, _mm_set1_epi16(10 << 8 | 1)), 8);
  const __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(1 << 16 | 100));
  const __m128i eights = _mm_madd_epi16(_mm_packs_epi32(fours, fours), _mm_set1_epi32(1 << 16 | 10000));
  const auto both = static_cast<std::uint64_t>(_mm_cvtsi128_si64(eights));
  return (both & 0xffffffff) * 100000000 + (both >> 32);
}

// The number that `count` digits before `end` are, up to 16.
FOREBAY_INLINE std::uint64_t digits_before(const std::uint8_t* end, std::size_t count, unsigned& strange) {
  return number_of(sixteen(end - 16), count, strange);
}

// The same if there is one byte among them that does not count, a point. Up to 16 digits are behind it.
FOREBAY_INLINE std::uint64_t digits_around(const std::uint8_t* end, std::size_t behind, std::size_t count,
                                           unsigned& strange) {
  const __m128i kept = sixteen(kLastOf16 + behind);
  const __m128i late = _mm_and_si128(kept, sixteen(end - 16));
  const __m128i early = _mm_andnot_si128(kept, sixteen(end - 17));
  return number_of(_mm_or_si128(late, early), count, strange);
}

// Bytes before the first point among the last `size` before `end`, which are less than 32; `size` if there is none.
inline std::size_t before_point(const std::uint8_t* end, std::size_t size) {
  const __m128i point = _mm_set1_epi8('.');
  const auto late = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(sixteen(end - 16), point)));
  const auto early = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(sixteen(end - 32), point)));
  const std::uint32_t points = (late << 16 | early) >> (32 - size) | std::uint32_t{1} << size;
  return static_cast<std::size_t>(__builtin_ctz(points));
}

// 1 if a number begins with a sign.
inline std::size_t sign_at(const std::uint8_t* text) { return (*text == '-') | (*text == '+'); }

// A whole number of up to 16 digits, with a sign or not, which is data[begin:end]. False if it is anything else, or
// stands too near the start of the data to tell.
FOREBAY_INLINE bool plain_whole(const std::uint8_t* data, std::size_t begin, std::size_t end, std::int64_t& out) {
  if (end < kBeforeDecimal || begin == end) return false;
  const std::size_t count = end - begin - sign_at(data + begin);
  if (count - 1 >= 16) return false;
  unsigned strange = 0;
  const auto whole = static_cast<std::int64_t>(digits_before(data + end, count, strange));
  out = data[begin] == '-' ? -whole : whole;
  return strange == 0;
}

// The same for a number with a point in it or not, and up to 19 digits. One byte behind it is looked at too.
template <class T>
FOREBAY_INLINE bool plain_real(const std::uint8_t* data, std::size_t begin, std::size_t end, T& out) {
  if (end < kBeforeDecimal || begin == end) return false;
  const std::size_t size = end - begin - sign_at(data + begin);
  if (size - 1 >= kMostDigits + 1) return false;
  const std::size_t before = before_point(data + end, size);
  // One without a point is taken as if what stands behind it were a point.
  const std::uint8_t* const stop = data + end + (before == size);
  const std::size_t places = size - before - (before < size);
  const std::size_t count = before + places;
  if (count - 1 >= kMostDigits) return false;
  unsigned strange = 0;
  T value;
  if (count <= 16) {
    const std::uint64_t digits = digits_around(stop, places, count, strange);
    if (strange != 0) return false;
    if (digits <= Exact<T>::kWhole && places <= Exact<T>::kPower) {
      value = static_cast<T>(static_cast<std::int64_t>(digits)) / Exact<T>::kTens[places];
    } else if (!divide_by_ten(digits, places, value)) {
      return false;
    }
  } else {
    const std::size_t late = places < 16 ? places : 16;
    const std::uint64_t first = digits_around(stop - 16, places - late, count - 16, strange);
    const std::uint64_t digits = first * kWholeTens[16] + digits_around(stop, late, 16, strange);
    if (strange != 0 || !divide_by_ten(digits, places, value)) return false;
  }
  out = with_sign(value, data[begin] == '-');
  return true;
}
#else
inline bool plain_whole(const std::uint8_t*, std::size_t, std::size_t, std::int64_t&) { return false; }

template <class T>
bool plain_real(const std::uint8_t*, std::size_t, std::size_t, T&) {
  return false;
}
#endif

}  // namespace forebay
