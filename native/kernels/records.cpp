#include "records.hpp"

#include <cstring>

namespace forebay {
namespace {

std::uint64_t load_le(const std::uint8_t* data, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::uint64_t{data[i]} << (8 * i);
  return value;
}

void store_le(std::uint8_t* out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

bool matches(const std::uint8_t* data, std::size_t size, const std::uint8_t* checksum) {
  return masked(crc32c(data, size)) == load_le(checksum, 4);
}

}  // namespace

Scan scan_records(const std::uint8_t* data, std::size_t size, std::size_t most, bool verify, std::int64_t* starts,
                  std::int64_t* stops) {
  Scan scan{0, 0, ScanStop::kRows, -1};
  const std::uint8_t* good = nullptr;  // A header that has been checked: those of records of the same length are equal.
  while (scan.rows < most) {
    const std::uint8_t* record = data + scan.consumed;
    const std::size_t left = size - scan.consumed;
    if (left < kHeader) {
      scan.stop = ScanStop::kMore;
      return scan;
    }
    const std::uint64_t length = load_le(record, 8);
    if (good == nullptr || std::memcmp(record, good, kHeader) != 0) {
      if (!matches(record, 8, record + 8)) {
        scan.stop = ScanStop::kBadLength;
        return scan;
      }
      good = record;
    }
    if (left < kFraming || length > left - kFraming) {
      scan.stop = ScanStop::kMore;
      scan.length = length > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(length);
      return scan;
    }
    if (verify && !matches(record + kHeader, length, record + kHeader + length)) {
      scan.stop = ScanStop::kBadData;
      scan.length = static_cast<std::int64_t>(length);
      return scan;
    }
    starts[scan.rows] = static_cast<std::int64_t>(scan.consumed + kHeader);
    stops[scan.rows] = static_cast<std::int64_t>(scan.consumed + kHeader + length);
    ++scan.rows;
    scan.consumed += kFraming + length;
  }
  return scan;
}

std::ptrdiff_t find_header(const std::uint8_t* data, std::size_t size, std::size_t from, std::uint64_t longest) {
  for (; size >= kHeader && from <= size - kHeader; ++from) {
    if (load_le(data + from, 8) <= longest && matches(data + from, 8, data + from + 8)) {
      return static_cast<std::ptrdiff_t>(from);
    }
  }
  return -1;
}

void frame_records(const std::uint8_t* data, const std::int64_t* offsets, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* record = data + offsets[i];
    const auto length = static_cast<std::size_t>(offsets[i + 1] - offsets[i]);
    store_le(out, length, 8);
    store_le(out + 8, masked(crc32c(out, 8)), 4);
    if (length != 0) std::memcpy(out + kHeader, record, length);
    store_le(out + kHeader + length, masked(crc32c(record, length)), 4);
    out += kFraming + length;
  }
}

}  // namespace forebay
