// A file of which a part is read and written past the page cache: what does not stay there would only pass through it,
// and take the memory and the processor of whatever is worth keeping.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace forebay {

constexpr std::size_t kPage = 4096;

// Memory for several threads to read to, in pages that are as large as the system has them: of many small ones, which may
// lie anywhere, a disk is asked one by one. A virtual one gives twice as much for it.
class Staging {
 public:
  // None if there is no memory for it.
  Staging(std::size_t slices, std::size_t bytes);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // One that nobody else has, at the start of a page; null if there is none left.
  std::uint8_t* take();
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* memory_ = nullptr;
  std::size_t size_ = 0;
  std::uint8_t* first_ = nullptr;
  std::size_t slices_;
  std::atomic<std::size_t> taken_{0};
};

struct FarFile {
  int file;
  int direct;        // The same file, opened with O_DIRECT; -1 if there is no such thing.
  std::int64_t far;  // Where that part begins, a multiple of the page.

  bool is_far(std::int64_t offset) const { return direct >= 0 && offset >= far; }
};

// Writes `size` bytes; past the page cache if they are far, with those behind them up to `stride`, and memory, offset and
// stride are of whole pages. Returns 0, or the errno of what failed.
int write_far(const FarFile& file, std::int64_t offset, const std::uint8_t* memory, std::size_t size, std::size_t stride);

// Reads `size` bytes to `out`, which lies at the same place of a page as `offset` and belongs to the caller from the start
// of its page to the end of the last. Returns 0, or as read_rows.
int read_far(const FarFile& file, std::int64_t offset, std::size_t size, std::uint8_t* out);

}  // namespace forebay
