#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "kernels.hpp"

namespace forebay {
namespace {

// Fewer rows than this with something between them are written one by one, since that has to be read first.
constexpr std::size_t kWorthReading = 3;

int write_whole(int file, off_t offset, const std::uint8_t* in, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t put = ::pwrite(file, in + done, size - done, offset + static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    done += static_cast<std::size_t>(put);
  }
  return 0;
}

// What lies beyond the end of the file is zeros, as it will be once something was written behind it.
int read_window(int file, off_t offset, std::uint8_t* out, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(file, out + done, size - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  std::memset(out + done, 0, size - done);
  return 0;
}

}  // namespace

int write_rows(int file, std::size_t row_bytes, const std::int64_t* rows, std::size_t count, const std::uint8_t* in) {
  const auto row = static_cast<std::int64_t>(row_bytes);
  std::vector<std::uint8_t> window;
  for (std::size_t i = 0; i < count;) {
    std::size_t run = rows_at_once(rows + i, count - i, row, kWriteGap);
    if (rows[i + run - 1] - rows[i] != static_cast<std::int64_t>(run) - 1 && run < kWorthReading) {
      run = rows_at_once(rows + i, count - i, row, 0);
    }
    const auto place = static_cast<off_t>(rows[i] * row);
    const auto span = static_cast<std::size_t>((rows[i + run - 1] - rows[i] + 1) * row);
    int error = 0;
    if (span == run * row_bytes) {
      error = write_whole(file, place, in, span);
    } else {
      window.resize(static_cast<std::size_t>(kWindow));
      error = read_window(file, place, window.data(), span);
      for (std::size_t j = 0; error == 0 && j < run; ++j) {
        std::memcpy(window.data() + (rows[i + j] - rows[i]) * row, in + j * row_bytes, row_bytes);
      }
      if (error == 0) error = write_whole(file, place, window.data(), span);
    }
    if (error != 0) return error;
    in += run * row_bytes;
    i += run;
  }
  return 0;
}

}  // namespace forebay
