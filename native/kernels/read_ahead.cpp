#include "read_ahead.hpp"

#include <unistd.h>

#include <cerrno>

namespace forebay {
namespace {

// So much at once is still near the processor when its records are looked at.
constexpr std::size_t kPiece = std::size_t{1} << 18;

}  // namespace

void ReadJob::run() {
  got = 0;
  found = {0, 0, ScanStop::kMore, -1};
  std::size_t there = held;
  while (there < size) {
    const std::size_t piece = size - there < kPiece ? size - there : kPiece;
    const ssize_t now = ::pread(file, data + there, piece, static_cast<off_t>(offset + static_cast<std::int64_t>(got)));
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) error = errno;
    if (now <= 0) break;
    got += static_cast<std::size_t>(now);
    there += static_cast<std::size_t>(now);
    if (found.rows == most || found.stop != ScanStop::kMore) continue;
    const std::size_t before = found.rows;
    const std::size_t from = found.consumed;
    const Scan next = scan_records(data + from, there - from, most - before, true, starts + before, stops + before);
    found = {before + next.rows, from + next.consumed, next.stop, next.length};
    for (std::size_t i = before; i < found.rows; ++i) {
      starts[i] += static_cast<std::int64_t>(from);
      stops[i] += static_cast<std::int64_t>(from);
    }
  }
}

}  // namespace forebay
