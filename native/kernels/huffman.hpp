// The entropy code of JPEG images: a stream of bits, and the tables by which it is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vectors.hpp"

namespace forebay {

// Bits from the front. Reads up to 8 bytes behind what it was given, and never asks whether there is anything left:
// whoever uses it leaves room, and looks at `used` from time to time.
class Bits {
 public:
  explicit Bits(const std::uint8_t* data) : data_(data), next_(data) {}

  // At least 56 bits to peek at. Without asking how many there are: to guess that wrong takes longer.
  void fill() {
    std::uint64_t word;
    std::memcpy(&word, next_, sizeof word);
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    held_ |= word >> count_;
    next_ += (63 - count_) >> 3;
    count_ |= 56;
  }

  // Up to 32 bits.
  std::uint32_t peek(unsigned bits) const { return static_cast<std::uint32_t>(held_ >> 1 >> (63 - bits)); }

  void skip(unsigned bits) {
    held_ <<= bits;
    count_ -= bits;
  }

  std::size_t used() const { return static_cast<std::size_t>(next_ - data_) * 8 - count_; }

 private:
  const std::uint8_t* data_;
  const std::uint8_t* next_;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;
};

// A number of `size` bits that follows its size: those with a leading 0 are negative.
inline std::int32_t extended(std::uint32_t bits, unsigned size) {
  const std::int32_t value = static_cast<std::int32_t>(bits);
  return value < (std::int32_t{1} << size >> 1) ? value - (std::int32_t{1} << size) + 1 : value;
}

// A code as the file defines it, with tables for all that short codes may be followed by.
class HuffmanCode {
 public:
  static constexpr unsigned kLook = 10;
  static constexpr unsigned kFar = 12;
  static constexpr unsigned kEnd = 64;

  // A coefficient that is found by its first bits: so many zeros, then its value. A value of 0 says that there is
  // more to do; `run` is then kEnd where a block ends.
  struct Step {
    std::int16_t value;
    std::uint8_t run;
    std::uint8_t bits;
  };

  // All coefficients that lie in the next bits, to be passed over: by how many the place in the block goes on. Where
  // the block ends among them, its end counts as one.
  struct Leap {
    std::uint16_t packed;

    unsigned bits() const { return packed & 15; }  // 0: not even one fits.
    bool ends() const { return packed & 16; }
    unsigned places() const { return packed >> 8; }
  };

  // How many codes there are of each length from 1 to 16, and what they stand for: at most 256. False if no such code
  // can be.
  bool define(const std::uint8_t* counts, const std::uint8_t* symbols, std::size_t size);

  // To be called before steps and leaps are asked for. They take about as long to find as many an image to read.
  void prepare_steps();
  void prepare_leaps();

  Step step(const Bits& bits) const { return steps_[bits.peek(kLook)]; }
  Leap leap(const Bits& bits) const { return leaps_[bits.peek(kFar)]; }

  // The next symbol, of which a code of up to 16 bits is there to peek at; -1 if there is none.
  FOREBAY_INLINE int symbol(Bits& bits) const {
    std::uint32_t found = short_[bits.peek(kLook)];
    // By value: bits that something else has a reference to do not stay in registers.
    if (found == 0) found = long_symbol(bits.peek(16));
    bits.skip(found >> 8);
    return found == 0 ? -1 : static_cast<int>(found & 0xFF);
  }

 private:
  // Length and symbol of the code that these 16 bits begin with, if it has more than kLook bits; 0 if there is none.
  std::uint32_t long_symbol(std::uint32_t next) const;

  bool defined_ = false;
  bool has_steps_ = false;
  bool has_leaps_ = false;
  std::array<std::uint8_t, 16> counts_{};
  std::array<std::uint8_t, 256> symbols_{};
  std::array<std::uint32_t, 17> ends_{};  // One beyond the last code of each length, moved to 16 bits.
  std::array<std::int32_t, 17> offsets_{};
  std::array<std::uint16_t, 1 << kLook> short_{};  // Length and symbol.
  std::array<Step, 1 << kLook> steps_{};
  std::array<Leap, 1 << kFar> leaps_{};
};

}  // namespace forebay
