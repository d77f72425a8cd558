#include "arranged.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "crc32c.hpp"
#include "kernels.hpp"

namespace forebay {
namespace {

// So much is read at once, and is still in the processor's second cache when it is copied on.
constexpr std::size_t kAtOnce = std::size_t{1} << 18;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint32_t kNowhere = UINT32_MAX;

int read_at(int file, std::int64_t offset, std::size_t size, std::uint8_t* out) {
  const std::int64_t row = 0;
  return read_rows(file, offset, 0, size, &row, 1, out);
}

// At the same place of a page as in the file, where the system puts what it reads in the least time.
std::uint8_t* for_place(std::vector<std::uint8_t>& memory, std::size_t bytes, std::int64_t offset) {
  if (memory.size() < bytes + 2 * kPage) memory.resize(bytes + 2 * kPage);
  const std::size_t start = kPage - reinterpret_cast<std::uintptr_t>(memory.data()) % kPage;
  return memory.data() + start + static_cast<std::size_t>(offset) % kPage;
}

}  // namespace

ArrangeJob::ArrangeJob(int file, Arrangement wanted, std::int64_t* checksums)
    : file_(file), wanted_(std::move(wanted)), checksums_(checksums) {}

void ArrangeJob::run() {
  try {
    error_ = find_order();
  } catch (const std::bad_alloc&) {
    error_ = ENOMEM;
  }
  if (error_ != 0) return;
  ordered_ = true;
  help();
}

void ArrangeJob::help() {
  if (!ordered_) return;
  try {
    std::vector<std::uint8_t> memory;
    std::vector<std::uint8_t*> targets;
    for (std::size_t i = next_++; i < wanted_.pieces && error_ == 0; i = next_++) put_piece(i, memory, targets);
  } catch (const std::bad_alloc&) {
    error_ = ENOMEM;
  }
}

int ArrangeJob::find_order() {
  for (std::size_t i = 0; i < wanted_.pieces; ++i) {
    first_.push_back(i == 0 ? 0 : first_[i - 1] + static_cast<std::size_t>(wanted_.rows[i - 1]));
  }
  const std::size_t total = wanted_.pieces == 0 ? 0 : first_.back() + static_cast<std::size_t>(wanted_.rows[wanted_.pieces - 1]);
  std::vector<std::uint64_t> words(total);
  const int error = read_words(words.data());
  if (error != 0) return error;
  std::vector<std::int64_t> order(total);
  order_words(words.data(), total, wanted_.known, order.data());
  places_.assign(total, kNowhere);
  for (std::size_t i = wanted_.skipped; i < total; ++i) {
    places_[static_cast<std::size_t>(order[i])] = static_cast<std::uint32_t>(i - wanted_.skipped);
  }
  return 0;
}

// Those of all pieces, and the checksum of each so far.
int ArrangeJob::read_words(std::uint64_t* words) {
  for (std::size_t i = 0; i < wanted_.pieces; ++i) {
    const std::size_t size = static_cast<std::size_t>(wanted_.rows[i]) * kWord;
    auto* const bytes = reinterpret_cast<std::uint8_t*>(words + first_[i]);
    const int error = read_at(file_, wanted_.starts[i], size, bytes);
    if (error != 0) return error;
    checksums_[i] = crc32c(bytes, size);
  }
  return 0;
}

void ArrangeJob::put_piece(std::size_t piece, std::vector<std::uint8_t>& memory, std::vector<std::uint8_t*>& targets) {
  const auto rows = static_cast<std::size_t>(wanted_.rows[piece]);
  const auto block_rows = static_cast<std::uint32_t>(wanted_.block_rows);
  const std::uint32_t* const places = places_.data() + first_[piece];
  std::int64_t offset = wanted_.starts[piece] + static_cast<std::int64_t>(rows * kWord);
  auto checksum = static_cast<std::uint32_t>(checksums_[piece]);
  for (std::size_t column = 0; column < wanted_.columns; ++column) {
    const auto width = static_cast<std::size_t>(wanted_.widths[column]);
    const std::size_t at_once = width == 0 ? rows : std::max<std::size_t>(kAtOnce / width, 1);
    for (std::size_t row = 0; row < rows; row += at_once) {
      const std::size_t some = std::min(at_once, rows - row);
      std::uint8_t* const read = for_place(memory, some * width, offset);
      const int error = read_at(file_, offset, some * width, read);
      if (error != 0) {
        error_ = error;
        return;
      }
      checksum = crc32c(read, some * width, checksum);
      targets.resize(some);
      for (std::size_t i = 0; i < some; ++i) {
        const std::uint32_t place = places[row + i];
        targets[i] = place == kNowhere ? nullptr
                                       : wanted_.blocks[place / block_rows] + wanted_.offsets[column] +
                                             place % block_rows * width;
      }
      scatter_rows(read, width, targets.data(), some);
      offset += static_cast<std::int64_t>(some * width);
    }
  }
  checksums_[piece] = checksum;
}

}  // namespace forebay
