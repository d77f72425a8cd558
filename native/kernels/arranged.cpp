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
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint32_t kNowhere = UINT32_MAX;

int read_at(int file, std::int64_t offset, std::size_t size, std::uint8_t* out) {
  const std::int64_t row = 0;
  return read_rows(file, offset, 0, size, &row, 1, out);
}

}  // namespace

// Memory that one thread reads to: what was set aside for it, or its own if that is none or not enough.
class ArrangeJob::Buffer {
 public:
  explicit Buffer(Staging* staging) : staged_(staging ? staging->take() : nullptr), bytes_(staged_ ? staging->bytes() : 0) {}

  // At the same place of a page as in the file, where the system puts what it reads in the least time.
  std::uint8_t* at(std::int64_t offset, std::size_t bytes) {
    const std::size_t place = static_cast<std::size_t>(offset) % kPage;
    if (bytes + 2 * kPage <= bytes_) return staged_ + place;
    if (own_.size() < bytes + 3 * kPage) own_.resize(bytes + 3 * kPage);
    return own_.data() + (kPage - reinterpret_cast<std::uintptr_t>(own_.data()) % kPage) + place;
  }

 private:
  std::uint8_t* staged_;
  std::size_t bytes_;
  std::vector<std::uint8_t> own_;
};

// What another thread does of a job, which it keeps there as long as that takes.
class ArrangeJob::Help : public Job {
 public:
  explicit Help(std::shared_ptr<ArrangeJob> job) : job_(std::move(job)) {}

 private:
  void run() override { job_->help(); }

  std::shared_ptr<ArrangeJob> job_;
};

ArrangeJob::ArrangeJob(Errands& errands, FarFile file, Arrangement wanted, std::int64_t* checksums)
    : errands_(errands), file_(file), wanted_(std::move(wanted)), checksums_(checksums) {}

void ArrangeJob::run() {
  try {
    error_ = find_order();
    if (error_ == 0) ask_for_help();
  } catch (const std::bad_alloc&) {
    error_ = ENOMEM;
  }
  help();
  // Whoever waits for this lets go of the memory then. No more can begin: nothing is left, or something has failed.
  std::unique_lock<std::mutex> locked(lock_);
  nobody_.wait(locked, [&] { return helping_ == 0; });
}

// One thread waits for one piece at a time, and a disk gives several in little more time.
void ArrangeJob::ask_for_help() {
  // For whoever waits, too.
  const std::size_t most = std::min(errands_.allowed(), wanted_.pieces);
  if (std::none_of(wanted_.starts, wanted_.starts + wanted_.pieces, [&](auto start) { return file_.is_far(start); })) {
    ordered_ = true;
    return;
  }
  staging_ = std::make_unique<Staging>(most + 1, kAtOnce + 2 * kPage);
  ordered_ = true;
  for (std::size_t i = 1; i < most; ++i) errands_.add(std::make_shared<Help>(shared_from_this()));
}

void ArrangeJob::help() {
  if (!ordered_) return;
  {
    const std::lock_guard<std::mutex> locked(lock_);
    ++helping_;
  }
  try {
    Buffer memory(staging_.get());
    std::vector<std::uint8_t*> targets;
    for (std::size_t i = next_++; i < wanted_.pieces && error_ == 0; i = next_++) put_piece(i, memory, targets);
  } catch (const std::bad_alloc&) {
    error_ = ENOMEM;
  }
  const std::lock_guard<std::mutex> locked(lock_);
  if (--helping_ == 0) nobody_.notify_all();
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
    // Of a few pages, which the system reads ahead.
    const int error = read_at(file_.file, wanted_.starts[i], size, bytes);
    if (error != 0) return error;
    checksums_[i] = crc32c(bytes, size);
  }
  return 0;
}

void ArrangeJob::put_piece(std::size_t piece, Buffer& memory, std::vector<std::uint8_t*>& targets) {
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
      std::uint8_t* const read = memory.at(offset, some * width);
      const int error = read_far(file_, offset, some * width, read);
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
