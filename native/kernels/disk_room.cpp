#include <fcntl.h>
#if defined(__linux__)
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

#include <cerrno>

#include "kernels.hpp"

namespace forebay {

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

bool free_range(int file, std::int64_t offset, std::int64_t size) {
#if defined(__linux__)
  while (::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
#else
  static_cast<void>(file), static_cast<void>(offset), static_cast<void>(size);
  return false;
#endif
}

}  // namespace forebay
