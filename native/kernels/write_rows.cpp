#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "kernels.hpp"

namespace forebay {

int write_rows(int file, std::size_t row_bytes, const std::int64_t* rows, std::size_t count, const std::uint8_t* in) {
  for (std::size_t i = 0; i < count;) {
    std::size_t run = 1;
    while (i + run < count && rows[i + run] == rows[i] + static_cast<std::int64_t>(run)) ++run;
    const std::size_t size = run * row_bytes;
    const auto place = static_cast<off_t>(rows[i]) * static_cast<off_t>(row_bytes);
    for (std::size_t done = 0; done < size;) {
      const ssize_t put = ::pwrite(file, in + done, size - done, place + static_cast<off_t>(done));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return errno;
      done += static_cast<std::size_t>(put);
    }
    in += size;
    i += run;
  }
  return 0;
}

}  // namespace forebay
