#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "crc32c.hpp"
#include "kernels.hpp"

namespace forebay {
namespace {

// What is read only to have it in the page cache goes here, and stays in the processor's.
constexpr std::size_t kPiece = std::size_t{1} << 17;

// Whether pages that a file is mapped to are in the page cache.
bool in_memory(void* pages, std::size_t bytes, std::size_t page) {
  std::vector<unsigned char> present((bytes + page - 1) / page);
  const auto is_present = [](unsigned char flags) { return (flags & 1) != 0; };
  return mincore(pages, bytes, present.data()) == 0 && std::all_of(present.begin(), present.end(), is_present);
}

// Has bytes of a file in the page cache; whether they could be read. The system reads ahead for whoever reads, more than
// it does for accesses to a mapping.
bool bring_in(int file, std::int64_t offset, std::size_t bytes) {
  std::vector<std::uint8_t> piece(std::min(kPiece, bytes));
  const std::int64_t row = 0;
  for (std::size_t done = 0; done < bytes; done += piece.size()) {
    const std::size_t some = std::min(piece.size(), bytes - done);
    if (read_rows(file, offset + static_cast<std::int64_t>(done), 0, some, &row, 1, piece.data()) != 0) return false;
  }
  return true;
}

}  // namespace

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
  const auto step = static_cast<std::size_t>(page);
  if (!in_memory(pages, bytes, step) &&
      (!bring_in(file, offset - before, bytes) || !in_memory(pages, bytes, step))) {
    unmap(*out);
    return false;
  }
  *checksum = crc32c(out->data, size, 0);
  return true;
}

void unmap(const Mapping& mapping) noexcept { munmap(mapping.pages, mapping.bytes); }

}  // namespace forebay
