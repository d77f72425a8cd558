#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "crc32c.hpp"
#include "kernels.hpp"

namespace forebay {

bool map_checked(int file, std::int64_t offset, std::size_t size, Mapping* out, std::uint32_t* checksum) {
  const auto page = static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  const std::int64_t before = offset % page;
  struct stat found;
  if (size == 0 || fstat(file, &found) != 0 || found.st_size < offset ||
      static_cast<std::uint64_t>(found.st_size - offset) < size) {
    return false;
  }
  const std::size_t bytes = size + static_cast<std::size_t>(before);
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, offset - before);
  if (pages == MAP_FAILED) return false;
  *out = {pages, bytes, static_cast<std::uint8_t*>(pages) + before};
  std::vector<unsigned char> present((bytes + static_cast<std::size_t>(page) - 1) / static_cast<std::size_t>(page));
  const auto is_missing = [](unsigned char flags) { return (flags & 1) == 0; };
  if (mincore(pages, bytes, present.data()) != 0 || std::any_of(present.begin(), present.end(), is_missing)) {
    unmap(*out);
    return false;
  }
  *checksum = crc32c(out->data, size, 0);
  return true;
}

void unmap(const Mapping& mapping) noexcept { munmap(mapping.pages, mapping.bytes); }

}  // namespace forebay
