// TFRecord framing: length (8 bytes), its masked checksum (4), the record, its masked checksum (4), little-endian.
// No Python here. Every length is checked against what is there before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crc32c.hpp"

namespace forebay {

// Checksums of data that holds checksums are weak, so those in the file are rotated and offset.
constexpr std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

constexpr std::size_t kHeader = 12;
constexpr std::size_t kFraming = 16;

enum class ScanStop : int {
  kRows = 0,       // As many records as were wanted.
  kMore = 1,       // The next one goes on behind the data; `length` is its length if the header is there, else -1.
  kBadLength = 2,  // The next one's length does not match its checksum.
  kBadData = 3,    // The next one's bytes do not match their checksum; `length` is how many there are.
};

struct Scan {
  std::size_t rows;
  std::size_t consumed;  // Bytes of whole good records.
  ScanStop stop;
  std::int64_t length;
};

// Finds up to `most` whole records from the start of the data on: record i is data[starts[i]:stops[i]].
// Without `verify` only lengths are checked.
Scan scan_records(const std::uint8_t* data, std::size_t size, std::size_t most, bool verify, std::int64_t* starts,
                  std::int64_t* stops);

// Where from `from` on a length stands that matches its checksum, and is no more than `longest`; -1 if nowhere.
std::ptrdiff_t find_header(const std::uint8_t* data, std::size_t size, std::size_t from, std::uint64_t longest);

// Writes `count` records, record i being data[offsets[i]:offsets[i + 1]], with their framing to `out`, which has room
// for offsets[count] - offsets[0] + count * kFraming bytes.
void frame_records(const std::uint8_t* data, const std::int64_t* offsets, std::size_t count, std::uint8_t* out);

}  // namespace forebay
