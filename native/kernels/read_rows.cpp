#include <unistd.h>

#include <cerrno>

#include "kernels.hpp"

namespace forebay {

int read_rows(int file, std::int64_t offset, std::int64_t stride, std::size_t row_bytes, const std::int64_t* rows,
              std::size_t count, std::uint8_t* out) {
  const bool dense = stride == static_cast<std::int64_t>(row_bytes);
  for (std::size_t i = 0; i < count;) {
    std::size_t run = 1;
    while (dense && i + run < count && rows[i + run] == rows[i] + static_cast<std::int64_t>(run)) ++run;
    const std::size_t size = run * row_bytes;
    std::size_t done = 0;
    while (done < size) {
      const auto at = static_cast<off_t>(offset + rows[i] * stride + static_cast<std::int64_t>(done));
      const ssize_t got = ::pread(file, out + done, size - done, at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno;
      if (got == 0) return kEndOfFile;
      done += static_cast<std::size_t>(got);
    }
    out += size;
    i += run;
  }
  return 0;
}

int read_ranges(int file, const std::int64_t* starts, const std::int64_t* stops, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bytes = static_cast<std::size_t>(stops[i] - starts[i]);
    const std::int64_t at = 0;
    const int error = read_rows(file, starts[i], 0, bytes, &at, 1, out);
    if (error != 0) return error;
    out += bytes;
  }
  return 0;
}

}  // namespace forebay
