#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

#include <array>
#include <cerrno>

#include "crc32c.hpp"
#include "kernels.hpp"

namespace forebay {
namespace {

// Enough for pieces of the usual size to be written some MiB at a time, and no list on the heap.
constexpr std::size_t kAtOnce = 64;

int write_vectors(int file, off_t offset, iovec* vectors, std::size_t count) {
  while (count > 0) {
    ssize_t put = ::pwritev(file, vectors, static_cast<int>(count), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    offset += put;
    while (count > 0 && static_cast<std::size_t>(put) >= vectors->iov_len) {
      put -= static_cast<ssize_t>(vectors->iov_len);
      ++vectors;
      --count;
    }
    if (put > 0) {
      vectors->iov_base = static_cast<std::uint8_t*>(vectors->iov_base) + put;
      vectors->iov_len -= static_cast<std::size_t>(put);
    }
  }
  return 0;
}

}  // namespace

bool allocate_ahead(int file, std::int64_t offset, std::int64_t size) {
#if defined(__linux__)
  struct statfs found;
  if (::fstatfs(file, &found) != 0 || found.f_type == TMPFS_MAGIC) return false;
  while (::fallocate(file, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
#else
  static_cast<void>(file), static_cast<void>(offset), static_cast<void>(size);
  return false;
#endif
}

int write_pieces(int file, std::int64_t offset, const std::uint8_t* source, const std::int64_t* starts,
                 const std::int64_t* stops, std::size_t count, std::size_t together, std::int64_t* checksums) {
  std::array<iovec, kAtOnce> vectors;
  std::uint32_t checksum = 0;
  for (std::size_t i = 0; i < count;) {
    std::size_t some = 0;
    std::int64_t bytes = 0;
    for (; some < kAtOnce && i < count; ++i, ++some) {
      const auto size = static_cast<std::size_t>(stops[i] - starts[i]);
      checksum = crc32c(source + starts[i], size, i % together == 0 ? 0 : checksum);
      checksums[i / together] = checksum;
      // The system reads from there only; its type for both directions knows no constants.
      vectors[some] = {const_cast<std::uint8_t*>(source + starts[i]), size};
      bytes += stops[i] - starts[i];
    }
    const int error = write_vectors(file, static_cast<off_t>(offset), vectors.data(), some);
    if (error != 0) return error;
    offset += bytes;
  }
  return 0;
}

}  // namespace forebay
