#include <algorithm>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels.hpp"

namespace forebay {
namespace {

// A width that is known when this is compiled becomes one load and one store instead of a call for each row.
template <std::size_t kWidth>
void gather_fixed(const std::uint8_t* records, std::size_t stride, const std::int64_t* places, std::size_t count,
                  std::uint8_t* rows) {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(rows + i * kWidth, records + static_cast<std::size_t>(places[i]) * stride, kWidth);
  }
}

// So many rows ahead, a row is on its way from memory while others are copied: the processor foresees the next bytes of
// a row, but not the next row. To the second cache, which so many rows fit into: in the first, which takes in only a
// dozen lines at a time, they would wait for one another and push out what is being copied. A third of the time less.
constexpr std::size_t kAhead = 16;
constexpr int kSecondCache = 2;
constexpr std::size_t kLine = 64;
// Of a longer row only the beginning: the rest the processor foresees by itself.
constexpr std::size_t kMostAhead = 4096;

// Of random words so many bits tell nearly all that there are in memory apart; more would only be tables to go through.
constexpr unsigned kMostBits = 18;
// As long a list is sorted fastest by putting one after another where it belongs.
constexpr std::size_t kFew = 24;

void gather_any(const std::uint8_t* records, std::size_t stride, const std::int64_t* places, std::size_t count,
                std::size_t width, std::uint8_t* rows) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      const std::uint8_t* coming = records + static_cast<std::size_t>(places[i + kAhead]) * stride;
      for (std::size_t line = 0; line < width && line < kMostAhead; line += kLine) {
        __builtin_prefetch(coming + line, 0, kSecondCache);
      }
    }
    std::memcpy(rows + i * width, records + static_cast<std::size_t>(places[i]) * stride, width);
  }
}

// Rows as long as this go past the caches on their way to places all over a large piece of memory: nothing is read from
// there only to be overwritten, and nothing else is pushed out. Half the time for rows of 1 KiB. Of shorter ones too many
// lines are shared with the rows beside them.
constexpr std::size_t kPastCaches = 256;

void put_past_caches(std::uint8_t* to, const std::uint8_t* from, std::size_t width) {
#if defined(__SSE2__)
  const std::size_t before = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  std::memcpy(to, from, before);
  std::size_t at = before;
  for (; at + kLine <= width; at += kLine) {
    for (std::size_t part = 0; part < kLine; part += sizeof(__m128i)) {
      const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + part));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + part), value);
    }
  }
  std::memcpy(to + at, from + at, width - at);
#else
  std::memcpy(to, from, width);
#endif
}

// Whoever is told that they are there finds them there.
void finish_past_caches() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

template <std::size_t kWidth>
void put_fixed(const std::uint8_t* rows, std::uint8_t* const* targets, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (targets[i] != nullptr) std::memcpy(targets[i], rows + i * kWidth, kWidth);
  }
}

}  // namespace

void scatter_rows(const std::uint8_t* rows, std::size_t width, std::uint8_t* const* targets, std::size_t count) {
  switch (width) {
    case 1: return put_fixed<1>(rows, targets, count);
    case 2: return put_fixed<2>(rows, targets, count);
    case 4: return put_fixed<4>(rows, targets, count);
    case 8: return put_fixed<8>(rows, targets, count);
    case 16: return put_fixed<16>(rows, targets, count);
    default: break;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (targets[i] == nullptr) continue;
    if (width < kPastCaches) {
      std::memcpy(targets[i], rows + i * width, width);
    } else {
      put_past_caches(targets[i], rows + i * width, width);
    }
  }
  finish_past_caches();
}

void gather_rows(const std::uint8_t* records, std::size_t stride, const std::int64_t* places, std::size_t count,
                 std::size_t width, std::uint8_t* rows) {
  switch (width) {
    case 1: return gather_fixed<1>(records, stride, places, count, rows);
    case 2: return gather_fixed<2>(records, stride, places, count, rows);
    case 4: return gather_fixed<4>(records, stride, places, count, rows);
    case 8: return gather_fixed<8>(records, stride, places, count, rows);
    case 16: return gather_fixed<16>(records, stride, places, count, rows);
    default: return gather_any(records, stride, places, count, width, rows);
  }
}

void order_words(const std::uint64_t* words, std::size_t count, unsigned known, std::int64_t* order) {
  unsigned bits = 0;
  while (bits < kMostBits && bits + known < 64 && (std::size_t{2} << bits) <= count) ++bits;
  const unsigned shift = bits == 0 ? 0 : 64 - known - bits;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  // Where the rows with each value of these bits begin, behind those with the values before.
  std::vector<std::size_t> next((std::size_t{1} << bits) + 1);
  for (std::size_t i = 0; i < count; ++i) ++next[((words[i] >> shift) & mask) + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  for (std::size_t i = 0; i < count; ++i) order[next[(words[i] >> shift) & mask]++] = static_cast<std::int64_t>(i);
  const auto before = [words](std::int64_t one, std::int64_t other) {
    return words[static_cast<std::size_t>(one)] < words[static_cast<std::size_t>(other)];
  };
  for (std::size_t value = 0, start = 0; value <= mask; start = next[value], ++value) {
    if (next[value] - start > kFew) {
      std::stable_sort(order + start, order + next[value], before);
      continue;
    }
    for (std::size_t i = start + 1; i < next[value]; ++i) {
      const std::int64_t row = order[i];
      std::size_t place = i;
      for (; place > start && before(row, order[place - 1]); --place) order[place] = order[place - 1];
      order[place] = row;
    }
  }
}

}  // namespace forebay
