#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "kernels.hpp"

namespace forebay {
namespace {

int read_whole(int file, std::int64_t offset, std::size_t size, std::uint8_t* out) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::pread(file, out + done, size - done, static_cast<off_t>(offset + static_cast<std::int64_t>(done)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return kEndOfFile;
    done += static_cast<std::size_t>(got);
  }
  return 0;
}

}  // namespace

std::size_t rows_at_once(const std::int64_t* rows, std::size_t count, std::int64_t stride, std::int64_t gap) {
  std::size_t run = 1;
  while (run < count && rows[run] > rows[run - 1] && (rows[run] - rows[run - 1] - 1) <= gap / stride &&
         (rows[run] - rows[0] + 1) <= kWindow / stride) {
    ++run;
  }
  return run;
}

int read_rows(int file, std::int64_t offset, std::int64_t stride, std::size_t row_bytes, const std::int64_t* rows,
              std::size_t count, std::uint8_t* out) {
  const auto row = static_cast<std::int64_t>(row_bytes);
  std::vector<std::uint8_t> window;
  for (std::size_t i = 0; i < count;) {
    const std::size_t run = stride >= row && stride > 0 ? rows_at_once(rows + i, count - i, stride, kReadGap) : 1;
    const std::int64_t first = offset + rows[i] * stride;
    const auto span = static_cast<std::size_t>((rows[i + run - 1] - rows[i]) * stride + row);
    int error = 0;
    if (span == run * row_bytes) {
      error = read_whole(file, first, span, out);
    } else {
      window.resize(static_cast<std::size_t>(kWindow));
      error = read_whole(file, first, span, window.data());
      for (std::size_t j = 0; error == 0 && j < run; ++j) {
        std::memcpy(out + j * row_bytes, window.data() + (rows[i + j] - rows[i]) * stride, row_bytes);
      }
    }
    if (error != 0) return error;
    out += run * row_bytes;
    i += run;
  }
  return 0;
}

int read_ranges(int file, const std::int64_t* starts, const std::int64_t* stops, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bytes = static_cast<std::size_t>(stops[i] - starts[i]);
    const int error = read_whole(file, starts[i], bytes, out);
    if (error != 0) return error;
    out += bytes;
  }
  return 0;
}

}  // namespace forebay
