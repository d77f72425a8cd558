#include "csv_marks.hpp"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace forebay {
namespace {

constexpr std::size_t kStep = 64;

// A bit for each of 64 bytes, set if it is a mark.
class Finder {
 public:
  explicit Finder(CsvDialect dialect)
      : delimiter_(dialect.delimiter), quote_(dialect.quotes ? kCsvQuote : dialect.delimiter) {}

#if defined(__SSE2__)
  std::uint64_t operator()(const std::uint8_t* data) const {
    std::uint64_t marks = 0;
    for (int i = 0; i < 4; ++i) {
      const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i));
      const __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(some, all('\n')), _mm_cmpeq_epi8(some, all('\r')));
      const __m128i others = _mm_or_si128(_mm_cmpeq_epi8(some, all(delimiter_)), _mm_cmpeq_epi8(some, all(quote_)));
      const auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(ends, others)));
      marks |= static_cast<std::uint64_t>(found) << (16 * i);
    }
    return marks;
  }

 private:
  static __m128i all(std::uint8_t byte) { return _mm_set1_epi8(static_cast<char>(byte)); }
#else
  std::uint64_t operator()(const std::uint8_t* data) const {
    std::uint64_t marks = 0;
    for (int i = 0; i < 8; ++i) {
      std::uint64_t some;
      std::memcpy(&some, data + 8 * i, sizeof some);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
      some = __builtin_bswap64(some);
#endif
      const std::uint64_t found = equal(some, '\n') | equal(some, '\r') | equal(some, delimiter_) | equal(some, quote_);
      // Their lowest bits, put next to each other.
      marks |= (found >> 7) * 0x0102040810204080 >> 56 << (8 * i);
    }
    return marks;
  }

 private:
  // The highest bit of each byte that is equal.
  static std::uint64_t equal(std::uint64_t some, std::uint8_t byte) {
    constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
    const std::uint64_t other = some ^ (0x0101010101010101 * byte);
    return ~(((other & kLow) + kLow) | other | kLow);
  }
#endif

  std::uint8_t delimiter_;
  std::uint8_t quote_;
};

// How many bits are set. Not every processor has an instruction for it.
std::size_t ones(std::uint64_t bits) {
  bits -= bits >> 1 & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
  return (((bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101) >> 56;
}

// The places of the bits that are set, counted from `base`; how many there are. Eight are written at a time, whether
// there are as many or not: how many there are cannot be guessed.
std::size_t list(std::uint64_t bits, std::size_t base, std::size_t* places) {
  const std::size_t count = ones(bits);
  for (std::size_t i = 0; i < count; i += 8) {
    for (std::size_t j = i; j < i + 8; ++j) {
      places[j] = base + static_cast<std::size_t>(__builtin_ctzll(bits | std::uint64_t{1} << 63));
      bits &= bits - 1;
    }
  }
  return count;
}

}  // namespace

bool CsvMarks::more() {
  const std::size_t left = count_ - at_;
  std::memmove(found_ + 1, found_ + at_, left * sizeof *found_);
  at_ = 1;
  count_ = 1 + left;
  const std::size_t before = next_;
  const Finder finder(dialect_);
  const std::size_t until = next_ + std::min(size_ - next_, piece_);
  for (; next_ < until && count_ + kStep <= kRoom; next_ += kStep) {
    std::uint64_t bits;
    if (size_ - next_ >= kStep) {
      bits = finder(data_ + next_);
    } else {
      std::uint8_t rest[kStep] = {};
      std::memcpy(rest, data_ + next_, size_ - next_);
      bits = finder(rest) & ((std::uint64_t{1} << (size_ - next_)) - 1);
    }
    count_ += list(bits, next_, found_ + count_);
  }
  if (next_ > size_) next_ = size_;
  return next_ > before;
}

CsvRun CsvMarks::run(std::size_t start, std::size_t most) {
  find(start);
  // Of the first record. Where marks are changes when more of them are noted.
  const auto mark = [this](std::size_t i) { return found_[at_ + i]; };
  std::size_t fields = 0;
  std::size_t last = 0;
  for (std::size_t begin = start;; begin = mark(last++) + 1) {
    if (!has(last)) return {};
    if (mark(last) == begin && data_[begin] == kCsvQuote) {
      if (!has(last + 2) || data_[mark(last + 1)] != kCsvQuote || mark(last + 2) != mark(last + 1) + 1) return {};
      last += 2;
    }
    ++fields;
    if (data_[mark(last)] != dialect_.delimiter) break;
  }
  std::size_t* ends = found_ + at_;
  const std::size_t at_hand = count_ - at_;
  ends[-1] = start - 1;
  const std::uint8_t end = data_[ends[last]];
  if (end == '\n') return {ends, std::min(at_hand / (last + 1), most), fields, last + 1, end};
  if (end != '\r') return {};
  const auto is_followed = [&](std::size_t i) { return ends[i + 1] == ends[i] + 1 && data_[ends[i + 1]] == '\n'; };
  const std::size_t step = last + 2;
  std::size_t rows = 0;
  while (rows < most && (rows + 1) * step <= at_hand && is_followed(rows * step + last)) ++rows;
  return {ends, rows, fields, step, end};
}

}  // namespace forebay
