#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "crc32c.hpp"
#include "kernels.hpp"

namespace forebay {
namespace {

// So much is read at once, and is still in the processor's second cache when it is copied on.
constexpr std::size_t kAtOnce = std::size_t{1} << 18;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint32_t kNowhere = UINT32_MAX;

// Where the system puts what it reads, at the same place of a page as in the file, which takes it the least time.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : memory_(bytes + 2 * kPage) {}

  std::uint8_t* for_place(std::int64_t offset) {
    const std::size_t start = kPage - reinterpret_cast<std::uintptr_t>(memory_.data()) % kPage;
    return memory_.data() + start + static_cast<std::size_t>(offset) % kPage;
  }

 private:
  std::vector<std::uint8_t> memory_;
};

int read_at(int file, std::int64_t offset, std::size_t size, std::uint8_t* out) {
  const std::int64_t row = 0;
  return read_rows(file, offset, 0, size, &row, 1, out);
}

// The words of all pieces, and the checksum of each so far.
int read_words(int file, const Arrangement& wanted, std::uint64_t* words, std::int64_t* checksums) {
  for (std::size_t i = 0; i < wanted.pieces; ++i) {
    const auto rows = static_cast<std::size_t>(wanted.rows[i]);
    auto* const bytes = reinterpret_cast<std::uint8_t*>(words);
    const int error = read_at(file, wanted.starts[i], rows * kWord, bytes);
    if (error != 0) return error;
    checksums[i] = crc32c(bytes, rows * kWord);
    words += rows;
  }
  return 0;
}

// Which of the wanted rows each is, or that it is none.
std::vector<std::uint32_t> places_of(const std::vector<std::uint64_t>& words, const Arrangement& wanted) {
  std::vector<std::int64_t> order(words.size());
  order_words(words.data(), words.size(), wanted.known, order.data());
  std::vector<std::uint32_t> places(words.size(), kNowhere);
  for (std::size_t i = wanted.skipped; i < order.size(); ++i) {
    places[static_cast<std::size_t>(order[i])] = static_cast<std::uint32_t>(i - wanted.skipped);
  }
  return places;
}

}  // namespace

int read_arranged(int file, const Arrangement& wanted, std::int64_t* checksums) {
  std::size_t total = 0;
  std::size_t row_bytes = kWord;
  std::size_t widest = 1;
  for (std::size_t column = 0; column < wanted.columns; ++column) {
    const auto width = static_cast<std::size_t>(wanted.widths[column]);
    row_bytes += width;
    widest = std::max(widest, width);
  }
  for (std::size_t i = 0; i < wanted.pieces; ++i) {
    const auto rows = static_cast<std::size_t>(wanted.rows[i]);
    total += rows;
    // What is not in memory comes while what is before it is read.
    ::posix_fadvise(file, static_cast<off_t>(wanted.starts[i]), static_cast<off_t>(rows * row_bytes), POSIX_FADV_WILLNEED);
  }
  const auto block_rows = static_cast<std::uint32_t>(wanted.block_rows);
  std::vector<std::uint32_t> places;
  {
    std::vector<std::uint64_t> words(total);
    const int error = read_words(file, wanted, words.data(), checksums);
    if (error != 0) return error;
    places = places_of(words, wanted);
  }
  Scratch scratch(std::max(kAtOnce, widest));
  std::vector<std::uint8_t*> targets;
  const std::uint32_t* place = places.data();
  for (std::size_t i = 0; i < wanted.pieces; ++i) {
    const auto rows = static_cast<std::size_t>(wanted.rows[i]);
    std::int64_t offset = wanted.starts[i] + static_cast<std::int64_t>(rows * kWord);
    auto checksum = static_cast<std::uint32_t>(checksums[i]);
    for (std::size_t column = 0; column < wanted.columns; ++column) {
      const auto width = static_cast<std::size_t>(wanted.widths[column]);
      const std::size_t at_once = width == 0 ? 0 : kAtOnce / width + (width > kAtOnce ? 1 : 0);
      for (std::size_t row = 0; row < rows && at_once != 0;) {
        const std::size_t some = std::min(at_once, rows - row);
        std::uint8_t* const read = scratch.for_place(offset);
        const int error = read_at(file, offset, some * width, read);
        if (error != 0) return error;
        checksum = crc32c(read, some * width, checksum);
        targets.resize(some);
        for (std::size_t j = 0; j < some; ++j) {
          const std::uint32_t found = place[row + j];
          targets[j] = found == kNowhere ? nullptr
                                         : wanted.blocks[found / block_rows] + wanted.offsets[column] +
                                               found % block_rows * width;
        }
        scatter_rows(read, width, targets.data(), some);
        offset += static_cast<std::int64_t>(some * width);
        row += some;
      }
    }
    checksums[i] = checksum;
    place += rows;
  }
  return 0;
}

}  // namespace forebay
