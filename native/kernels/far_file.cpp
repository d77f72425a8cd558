#include "far_file.hpp"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "kernels.hpp"

namespace forebay {
namespace {

int write_whole(int file, std::int64_t offset, const std::uint8_t* memory, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t put = ::pwrite(file, memory + done, size - done, static_cast<off_t>(offset) + static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    done += static_cast<std::size_t>(put);
  }
  return 0;
}

bool is_whole(std::uint64_t value) { return value % kPage == 0; }

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

Staging::Staging(std::size_t slices, std::size_t bytes) : bytes_((bytes + kPage - 1) / kPage * kPage), slices_(slices) {
  const std::size_t wanted = (slices_ * bytes_ + kHugePage - 1) / kHugePage * kHugePage;
  size_ = wanted + kHugePage;
  void* const found = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return;
  memory_ = found;
  const std::size_t place = reinterpret_cast<std::uintptr_t>(memory_) % kHugePage;
  first_ = static_cast<std::uint8_t*>(memory_) + (kHugePage - place) % kHugePage;
#if defined(MADV_HUGEPAGE)
  ::madvise(first_, wanted, MADV_HUGEPAGE);  // Where there are none, others serve.
#endif
}

Staging::~Staging() {
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

std::uint8_t* Staging::take() {
  const std::size_t slice = taken_++;
  return memory_ == nullptr || slice >= slices_ ? nullptr : first_ + slice * bytes_;
}

int write_far(const FarFile& file, std::int64_t offset, const std::uint8_t* memory, std::size_t size,
              std::size_t stride) {
  if (file.is_far(offset) && is_whole(static_cast<std::uint64_t>(offset)) && is_whole(stride) &&
      is_whole(reinterpret_cast<std::uintptr_t>(memory))) {
    const int error = write_whole(file.direct, offset, memory, stride);
    // A disk may want more than whole pages, and a part that was written is followed by one that does not begin with one.
    if (error != EINVAL) return error;
  }
  return write_whole(file.file, offset, memory, size);
}

int read_far(const FarFile& file, std::int64_t offset, std::size_t size, std::uint8_t* out) {
  if (file.is_far(offset)) {
    const std::size_t lead = static_cast<std::size_t>(offset) % kPage;
    const std::size_t wanted = (lead + size + kPage - 1) / kPage * kPage;
    ssize_t got = 0;
    do {
      got = ::pread(file.direct, out - lead, wanted, static_cast<off_t>(offset) - static_cast<off_t>(lead));
    } while (got < 0 && errno == EINTR);
    if (got >= static_cast<ssize_t>(lead + size)) return 0;
    if (got < 0 && errno != EINVAL) return errno;
  }
  const std::int64_t row = 0;
  return read_rows(file.file, offset, 0, size, &row, 1, out);
}

}  // namespace forebay
