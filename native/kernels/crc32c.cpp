// CRC-32C (Castagnoli). The processor's own instruction where there is one, found out when first used.
#include <cstring>

#include "crc32c.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace forebay {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // Bits reversed, as the instruction has them.

struct Tables {
  std::uint32_t of[8][256];

  Tables() {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
      of[0][byte] = crc;
    }
    for (int k = 1; k < 8; ++k) {
      for (int byte = 0; byte < 256; ++byte) of[k][byte] = (of[k - 1][byte] >> 8) ^ of[0][of[k - 1][byte] & 0xff];
    }
  }
};

const Tables& tables() {
  static const Tables made;
  return made;
}

// The product of two remainders. The lowest power of x is the highest bit.
std::uint32_t multiplied(std::uint32_t one, std::uint32_t other) {
  std::uint32_t product = 0;
  for (; one != 0; one <<= 1) {
    if ((one & 0x80000000) != 0) product ^= other;
    other = (other >> 1) ^ ((other & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

std::uint64_t load64(const std::uint8_t* data) {
  std::uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

#if defined(__x86_64__) || (defined(__aarch64__) && defined(__linux__))
#define FOREBAY_CRC_INSTRUCTION 1

// What `bytes` zero bytes behind a message do to its checksum. It is linear, so four lookups are enough.
struct Shift {
  std::uint32_t of[4][256];

  explicit Shift(std::size_t bytes) {
    const Tables& t = tables();
    std::uint32_t bit_of[32];
    for (int bit = 0; bit < 32; ++bit) {
      std::uint32_t crc = std::uint32_t{1} << bit;
      for (std::size_t i = 0; i < bytes; ++i) crc = (crc >> 8) ^ t.of[0][crc & 0xff];
      bit_of[bit] = crc;
    }
    for (int k = 0; k < 4; ++k) {
      for (int byte = 0; byte < 256; ++byte) {
        std::uint32_t crc = 0;
        for (int bit = 0; bit < 8; ++bit) crc ^= ((byte >> bit) & 1) != 0 ? bit_of[8 * k + bit] : 0;
        of[k][byte] = crc;
      }
    }
  }

  std::uint32_t operator()(std::uint32_t crc) const {
    return of[0][crc & 0xff] ^ of[1][(crc >> 8) & 0xff] ^ of[2][(crc >> 16) & 0xff] ^ of[3][crc >> 24];
  }
};

#if defined(__x86_64__)
#define FOREBAY_CRC_TARGET __attribute__((target("sse4.2")))
#define FOREBAY_CRC64(crc, word) _mm_crc32_u64(crc, word)
#define FOREBAY_CRC8(crc, byte) _mm_crc32_u8(static_cast<std::uint32_t>(crc), byte)
bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#else
#define FOREBAY_CRC_TARGET __attribute__((target("+crc")))
#define FOREBAY_CRC64(crc, word) __crc32cd(static_cast<std::uint32_t>(crc), word)
#define FOREBAY_CRC8(crc, byte) __crc32cb(static_cast<std::uint32_t>(crc), byte)
bool has_instruction() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#endif

// The instruction takes three cycles and one can begin in each: three parts of the message keep it busy.
template <std::size_t kPart>
FOREBAY_CRC_TARGET std::uint64_t three_parts(std::uint64_t crc, const std::uint8_t*& data, std::size_t& size) {
  static const Shift shift(kPart);
  while (size >= 3 * kPart) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kPart; i += 8) {
      crc = FOREBAY_CRC64(crc, load64(data + i));
      second = FOREBAY_CRC64(second, load64(data + kPart + i));
      third = FOREBAY_CRC64(third, load64(data + 2 * kPart + i));
    }
    crc = shift(static_cast<std::uint32_t>(crc)) ^ second;
    crc = shift(static_cast<std::uint32_t>(crc)) ^ third;
    data += 3 * kPart;
    size -= 3 * kPart;
  }
  return crc;
}

#if defined(__x86_64__)
#define FOREBAY_FOLD_TARGET __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.2")))

bool has_folding() {
  return __builtin_cpu_supports("vpclmulqdq") != 0 && __builtin_cpu_supports("avx2") != 0 && has_instruction();
}

// x to the power of `exponent`, modulo the polynomial. The lowest power is the highest bit.
std::int64_t power(int exponent) {
  std::uint32_t value = 0x80000000;
  for (; exponent > 0; --exponent) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
  for (; exponent < 0; ++exponent) value = (value & 0x80000000) != 0 ? (value ^ kPolynomial) << 1 | 1 : value << 1;
  return value;
}

// Factors that move 16 bytes of a message so many bytes on: what is left of them there has the same remainder.
struct Fold {
  std::int64_t low;
  std::int64_t high;

  explicit Fold(int bytes) : low(power(8 * bytes + 31)), high(power(8 * bytes - 33)) {}
};

FOREBAY_FOLD_TARGET inline __m256i moved(__m256i part, __m256i factors) {
  return _mm256_xor_si256(_mm256_clmulepi64_epi128(part, factors, 0x00), _mm256_clmulepi64_epi128(part, factors, 0x11));
}

FOREBAY_FOLD_TARGET inline __m256i loaded(const std::uint8_t* data) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
}

// Long messages: eight parts of 16 bytes are carried along the message without a remainder being taken of them.
// At least 256 bytes; leaves less than 128.
FOREBAY_FOLD_TARGET std::uint64_t by_folding(std::uint64_t crc, const std::uint8_t*& data, std::size_t& size) {
  static const Fold over_128(128);
  static const Fold over_32(32);
  static const Fold over_16(16);
  const __m256i far = _mm256_set_epi64x(over_128.high, over_128.low, over_128.high, over_128.low);
  __m256i parts[4];
  for (int i = 0; i < 4; ++i) parts[i] = loaded(data + 32 * i);
  parts[0] = _mm256_xor_si256(parts[0], _mm256_set_epi64x(0, 0, 0, static_cast<std::int64_t>(crc)));
  data += 128;
  size -= 128;
  for (; size >= 128; data += 128, size -= 128) {
    for (int i = 0; i < 4; ++i) parts[i] = _mm256_xor_si256(moved(parts[i], far), loaded(data + 32 * i));
  }
  const __m256i near = _mm256_set_epi64x(over_32.high, over_32.low, over_32.high, over_32.low);
  for (int i = 1; i < 4; ++i) parts[i] = _mm256_xor_si256(parts[i], moved(parts[i - 1], near));
  const __m128i first = _mm256_castsi256_si128(parts[3]);
  const __m128i factors = _mm_set_epi64x(over_16.high, over_16.low);
  __m128i last = _mm256_extracti128_si256(parts[3], 1);
  last = _mm_xor_si128(last, _mm_clmulepi64_si128(first, factors, 0x00));
  last = _mm_xor_si128(last, _mm_clmulepi64_si128(first, factors, 0x11));
  crc = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_extract_epi64(last, 0)));
  return _mm_crc32_u64(crc, static_cast<std::uint64_t>(_mm_extract_epi64(last, 1)));
}

#define FOREBAY_WIDE_TARGET __attribute__((target("avx512f,avx2,vpclmulqdq,pclmul,sse4.2")))

bool has_wide_folding() { return __builtin_cpu_supports("avx512f") != 0 && has_folding(); }

constexpr std::size_t kWideLeast = 2048;  // Below this, taking the parts together costs more than is won.

// A part, moved on, and what lies there: the sum of three in one instruction.
FOREBAY_WIDE_TARGET inline __m512i onto(__m512i part, __m512i factors, __m512i there) {
  const __m512i low = _mm512_clmulepi64_epi128(part, factors, 0x00);
  return _mm512_ternarylogic_epi64(low, _mm512_clmulepi64_epi128(part, factors, 0x11), there, 0x96);
}

FOREBAY_WIDE_TARGET inline __m512i loaded_wide(const std::uint8_t* data) { return _mm512_loadu_si512(data); }

FOREBAY_WIDE_TARGET inline __m512i fourfold(const Fold& fold) {
  return _mm512_broadcast_i32x4(_mm_set_epi64x(fold.high, fold.low));
}

// As by_folding, with parts twice as wide, which such processors multiply in the same time. More parts than four are
// no faster, nor is the instruction beside them: the same unit does both. Leaves less than 256 bytes.
FOREBAY_WIDE_TARGET std::uint64_t by_wide_folding(std::uint64_t crc, const std::uint8_t*& data, std::size_t& size) {
  static const Fold over_256(256);
  static const Fold over_64(64);
  const __m512i far = fourfold(over_256);
  const __m512i near = fourfold(over_64);
  __m512i parts[4];
  for (int i = 0; i < 4; ++i) parts[i] = loaded_wide(data + 64 * i);
  parts[0] = _mm512_xor_si512(parts[0], _mm512_zextsi128_si512(_mm_cvtsi64_si128(static_cast<std::int64_t>(crc))));
  data += 256;
  size -= 256;
  for (; size >= 256; data += 256, size -= 256) {
    for (int i = 0; i < 4; ++i) parts[i] = onto(parts[i], far, loaded_wide(data + 64 * i));
  }
  for (int i = 1; i < 4; ++i) parts[i] = onto(parts[i - 1], near, parts[i]);
  alignas(64) std::uint64_t words[8];
  _mm512_store_si512(words, parts[3]);
  crc = 0;
  for (const std::uint64_t word : words) crc = _mm_crc32_u64(crc, word);
  return crc;
}

#define FOREBAY_THIRDS_TARGET __attribute__((target("pclmul,sse4.2")))

bool has_product() { return __builtin_cpu_supports("pclmul") != 0 && has_instruction(); }

constexpr std::size_t kThirdsMost = 1024;  // Beyond this, folding is faster.

// Factors that move a checksum on by a third of a message, and by two thirds, for thirds of so many words.
struct Thirds {
  std::int64_t one[kThirdsMost / 24 + 1];
  std::int64_t two[kThirdsMost / 24 + 1];

  Thirds() {
    for (int words = 0; words <= static_cast<int>(kThirdsMost / 24); ++words) {
      one[words] = power(64 * words - 33);
      two[words] = power(128 * words - 33);
    }
  }
};

FOREBAY_THIRDS_TARGET inline std::uint64_t product(std::uint64_t crc, std::int64_t factor) {
  const __m128i both = _mm_set_epi64x(factor, static_cast<std::int64_t>(crc));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_clmulepi64_si128(both, both, 0x10)));
}

// Short messages: as three_parts, but of any length, so that next to nothing is left for one part alone.
FOREBAY_THIRDS_TARGET std::uint64_t by_thirds(std::uint64_t crc, const std::uint8_t*& data, std::size_t& size) {
  static const Thirds factors;
  const std::size_t words = size / 24;
  const std::uint8_t* middle = data + 8 * words;
  const std::uint8_t* right = middle + 8 * words;
  std::uint64_t second = 0;
  std::uint64_t third = 0;
  for (std::size_t i = 0; i < 8 * words; i += 8) {
    crc = _mm_crc32_u64(crc, load64(data + i));
    second = _mm_crc32_u64(second, load64(middle + i));
    third = _mm_crc32_u64(third, load64(right + i));
  }
  data += 24 * words;
  size -= 24 * words;
  return third ^ _mm_crc32_u64(0, product(crc, factors.two[words]) ^ product(second, factors.one[words]));
}
#endif

FOREBAY_CRC_TARGET std::uint32_t by_instruction(const std::uint8_t* data, std::size_t size, std::uint32_t before) {
  std::uint64_t crc = before ^ 0xffffffff;
#if defined(__x86_64__)
  static const bool folds_wide = has_wide_folding();
  static const bool folds = has_folding();
  static const bool multiplies = has_product();
  if (folds_wide && size >= kWideLeast) crc = by_wide_folding(crc, data, size);
  if (folds && size >= kThirdsMost) crc = by_folding(crc, data, size);
  if (multiplies && size >= 192 && size < kThirdsMost) crc = by_thirds(crc, data, size);
#endif
  if (size >= 3 * 4096) crc = three_parts<4096>(crc, data, size);
  if (size >= 3 * 256) crc = three_parts<256>(crc, data, size);
  if (size >= 3 * 64) crc = three_parts<64>(crc, data, size);
  for (; size >= 8; data += 8, size -= 8) crc = FOREBAY_CRC64(crc, load64(data));
  for (; size != 0; ++data, --size) crc = FOREBAY_CRC8(crc, *data);
  return static_cast<std::uint32_t>(crc) ^ 0xffffffff;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(const std::uint8_t* data, std::size_t size, std::uint32_t before) {
  const Tables& t = tables();
  std::uint32_t crc = before ^ 0xffffffff;
  for (; size >= 8; data += 8, size -= 8) {
    crc ^= std::uint32_t{data[0]} | std::uint32_t{data[1]} << 8 | std::uint32_t{data[2]} << 16 | std::uint32_t{data[3]} << 24;
    crc = t.of[7][crc & 0xff] ^ t.of[6][(crc >> 8) & 0xff] ^ t.of[5][(crc >> 16) & 0xff] ^ t.of[4][crc >> 24] ^
          t.of[3][data[4]] ^ t.of[2][data[5]] ^ t.of[1][data[6]] ^ t.of[0][data[7]];
  }
  for (; size != 0; ++data, --size) crc = (crc >> 8) ^ t.of[0][(crc ^ *data) & 0xff];
  return crc ^ 0xffffffff;
}

std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::size_t size) {
  // What zero bytes behind the first do to it is a multiplication by a power of x: of x to 8 * 1, 2, 4 ... in turn.
  std::uint32_t factor = 0x00800000;
  for (; size != 0; size >>= 1) {
    if ((size & 1) != 0) first = multiplied(first, factor);
    factor = multiplied(factor, factor);
  }
  return first ^ second;
}

std::uint32_t crc32c(const std::uint8_t* data, std::size_t size, std::uint32_t before) {
#ifdef FOREBAY_CRC_INSTRUCTION
  static const bool fast = has_instruction();
  if (fast) return by_instruction(data, size, before);
#endif
  return crc32c_portable(data, size, before);
}

}  // namespace forebay
