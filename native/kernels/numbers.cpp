// Numbers in text. Decimals are computed outright where that is certain to be the nearest number; others go to the
// standard library.
#include <locale.h>
#include <stdlib.h>

#include <charconv>
#include <cstring>
#include <string>
#include <type_traits>

#include "decimal.hpp"
#include "text.hpp"

namespace forebay {
namespace {

bool is_space(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(std::uint8_t c) { return static_cast<std::uint8_t>(c - '0') < 10; }

// The digits from `i` on behind those of `number`, and `i` behind them. More than 19 of them do not fit.
void take_digits(const std::uint8_t* text, std::size_t size, std::size_t& i, std::uint64_t& number) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  // Eight at once: neighbours are put together to pairs, these to fours, and those to all.
  for (; i + 8 <= size; i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, text + i, sizeof eight);
    const std::uint64_t above = eight + 0x0606060606060606;  // Carries into the upper half of what is more than '9'.
    if (((eight & above) & 0xf0f0f0f0f0f0f0f0) != 0x3030303030303030) break;
    eight -= 0x3030303030303030;
    eight = (eight * 10 + (eight >> 8)) & 0x00ff00ff00ff00ff;
    eight = (eight * 100 + (eight >> 16)) & 0x0000ffff0000ffff;
    number = number * 100000000 + ((eight * 10000 + (eight >> 32)) & 0xffffffff);
  }
#endif
  for (; i < size && is_digit(text[i]); ++i) number = number * 10 + (text[i] - '0');
}

void trim(const std::uint8_t*& text, std::size_t& size) {
  while (size > 0 && is_space(*text)) ++text, --size;
  while (size > 0 && is_space(text[size - 1])) --size;
}

// Whatever the program's locale is, a decimal point is a point.
locale_t plain_locale() {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return plain;
}

double by_library(const char* text, char** end, double) { return strtod_l(text, end, plain_locale()); }
float by_library(const char* text, char** end, float) { return strtof_l(text, end, plain_locale()); }

template <class T>
bool parse_any(const std::uint8_t* text, std::size_t size, T& out) {
  const std::string copy(reinterpret_cast<const char*>(text), size);
  char* end = nullptr;
  out = by_library(copy.c_str(), &end, T{});
  return size > 0 && end == copy.c_str() + size;
}

template <class T>
bool parse_decimal(const std::uint8_t* text, std::size_t size, T& out) {
  trim(text, size);
  std::size_t i = 0;
  const bool negative = size > 0 && text[0] == '-';
  if (size > 0 && (text[0] == '-' || text[0] == '+')) ++i;
  const std::size_t first = i;
  std::uint64_t digits = 0;
  int power = 0;
  take_digits(text, size, i, digits);
  std::size_t counted = i - first;
  if (i < size && text[i] == '.') {
    const std::size_t point = ++i;
    take_digits(text, size, i, digits);
    counted += i - point;
    power = -static_cast<int>(i - point < 1000 ? i - point : 1000);
  }
  if (counted == 0) return parse_any(text, size, out);
  if (i < size && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    const bool down = j < size && text[j] == '-';
    if (j < size && (text[j] == '-' || text[j] == '+')) ++j;
    const std::size_t exponent = j;
    int value = 0;
    for (; j < size && is_digit(text[j]); ++j) value = value < 10000 ? value * 10 + (text[j] - '0') : value;
    if (j == exponent) return false;
    power += down ? -value : value;
    i = j;
  }
  // Not a decimal all through: hexadecimal, or no number.
  if (i != size) return parse_any(text, size, out);
  if (counted <= kMostDigits) {
    if (digits <= Exact<T>::kWhole && power <= Exact<T>::kPower && power >= -Exact<T>::kPower) {
      const T whole = static_cast<T>(digits);
      const T ten = Exact<T>::kTens[static_cast<std::size_t>(power < 0 ? -power : power)];
      out = with_sign(power < 0 ? whole / ten : whole * ten, negative);
      return true;
    }
    T value;
    if (power <= 0 && power >= -kMostInverse && divide_by_ten(digits, static_cast<std::size_t>(-power), value)) {
      out = with_sign(value, negative);
      return true;
    }
  }
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
  const char* begin = reinterpret_cast<const char*>(text);
  T value{};
  const auto result = std::from_chars(begin + first, begin + size, value);
  if (result.ec == std::errc() && result.ptr == begin + size) {
    out = negative ? -value : value;
    return true;
  }
#endif
  return parse_any(text, size, out);
}

}  // namespace

bool parse_whole(const std::uint8_t* text, std::size_t size, std::int64_t least, std::int64_t most, std::int64_t& out) {
  trim(text, size);
  std::size_t i = 0;
  const bool negative = size > 0 && text[0] == '-';
  if (size > 0 && (text[0] == '-' || text[0] == '+')) ++i;
  if (i == size) return false;
  if (size - i <= 18) {
    // Too few digits for a number that would not fit.
    std::uint64_t digits = 0;
    take_digits(text, size, i, digits);
    if (i != size) return false;
    const auto whole = static_cast<std::int64_t>(digits);
    out = negative ? -whole : whole;
    return out >= least && out <= most;
  }
  // Downwards, where there is one number more.
  std::int64_t value = 0;
  for (; i < size; ++i) {
    if (!is_digit(text[i])) return false;
    const std::int64_t digit = text[i] - '0';
    if (value < (INT64_MIN + digit) / 10) return false;
    value = value * 10 - digit;
  }
  if (!negative) {
    if (value == INT64_MIN) return false;
    value = -value;
  }
  out = value;
  return value >= least && value <= most;
}

bool parse_real(const std::uint8_t* text, std::size_t size, float& out) { return parse_decimal(text, size, out); }
bool parse_real(const std::uint8_t* text, std::size_t size, double& out) { return parse_decimal(text, size, out); }

}  // namespace forebay
