#include <cstring>

#include "kernels.hpp"

namespace forebay {
namespace {

// A width that is known when this is compiled becomes one load and one store instead of a call for each row.
template <std::size_t kWidth>
void copy_fixed(std::size_t count, const std::uint8_t* from, std::size_t from_stride, const std::int64_t* from_rows,
                std::uint8_t* to, std::size_t to_stride, const std::int64_t* to_rows) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t source = from_rows ? static_cast<std::size_t>(from_rows[i]) : i;
    const std::size_t target = to_rows ? static_cast<std::size_t>(to_rows[i]) : i;
    std::memcpy(to + target * to_stride, from + source * from_stride, kWidth);
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

void copy_any(std::size_t width, std::size_t count, const std::uint8_t* from, std::size_t from_stride,
              const std::int64_t* from_rows, std::uint8_t* to, std::size_t to_stride, const std::int64_t* to_rows) {
  for (std::size_t i = 0; i < count; ++i) {
    if (from_rows && i + kAhead < count) {
      const std::uint8_t* coming = from + static_cast<std::size_t>(from_rows[i + kAhead]) * from_stride;
      for (std::size_t line = 0; line < width && line < kMostAhead; line += kLine) {
        __builtin_prefetch(coming + line, 0, kSecondCache);
      }
    }
    const std::size_t source = from_rows ? static_cast<std::size_t>(from_rows[i]) : i;
    const std::size_t target = to_rows ? static_cast<std::size_t>(to_rows[i]) : i;
    std::memcpy(to + target * to_stride, from + source * from_stride, width);
  }
}

void copy_rows(std::size_t width, std::size_t count, const std::uint8_t* from, std::size_t from_stride,
               const std::int64_t* from_rows, std::uint8_t* to, std::size_t to_stride, const std::int64_t* to_rows) {
  switch (width) {
    case 1: return copy_fixed<1>(count, from, from_stride, from_rows, to, to_stride, to_rows);
    case 2: return copy_fixed<2>(count, from, from_stride, from_rows, to, to_stride, to_rows);
    case 4: return copy_fixed<4>(count, from, from_stride, from_rows, to, to_stride, to_rows);
    case 8: return copy_fixed<8>(count, from, from_stride, from_rows, to, to_stride, to_rows);
    case 16: return copy_fixed<16>(count, from, from_stride, from_rows, to, to_stride, to_rows);
    default: return copy_any(width, count, from, from_stride, from_rows, to, to_stride, to_rows);
  }
}

}  // namespace

std::size_t place_rows(const std::uint64_t* words, std::size_t count, unsigned shift, const std::int64_t* first,
                       std::int64_t* filled, std::size_t buckets, std::int64_t room, std::int64_t* places) {
  const std::uint64_t mask = buckets - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bucket = (words[i] >> shift) & mask;
    if (filled[bucket] >= room) return i;
    places[i] = first[bucket] + filled[bucket]++;
  }
  return count;
}

void scatter_rows(const std::uint8_t* rows, std::size_t width, const std::int64_t* places, std::size_t count,
                  std::uint8_t* records, std::size_t stride) {
  copy_rows(width, count, rows, width, nullptr, records, stride, places);
}

void gather_rows(const std::uint8_t* records, std::size_t stride, const std::int64_t* places, std::size_t count,
                 std::size_t width, std::uint8_t* rows) {
  copy_rows(width, count, records, stride, places, rows, width, nullptr);
}

}  // namespace forebay
