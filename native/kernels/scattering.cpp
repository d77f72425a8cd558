#include "scattering.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "crc32c.hpp"
#include "kernels.hpp"

namespace forebay {
namespace {

// Rows that are placed before any of them is copied: enough that a column at a time pays, few enough for lists that stay
// in the processor's first cache.
constexpr std::size_t kAtOnce = 1024;
// Pieces that are not full lie as close to one another as what is read from memory likes.
constexpr std::size_t kLine = 64;

}  // namespace

class Scattering::WriteJob : public Job {
 public:
  // Of `size` bytes, and `stride` may be written: what is behind them does not matter.
  WriteJob(FarFile file, ScatteredPiece piece, std::uint8_t* memory, std::size_t size, std::size_t stride)
      : piece(piece), memory(memory), file_(file), size_(size), stride_(stride) {}

  ScatteredPiece piece;
  std::uint8_t* memory;
  int error = 0;

 private:
  void run() override {
    piece.checksum = crc32c(memory, size_);
    error = write_far(file_, piece.offset, memory, size_, stride_);
  }

  FarFile file_;
  std::size_t size_;
  std::size_t stride_;
};

Scattering::Scattering(Errands& errands, FarFile file, std::int64_t offset, ScatterShape shape, std::uint8_t* memory)
    : errands_(errands), file_(file), offset_(offset), shape_(std::move(shape)) {
  row_bytes_ = std::accumulate(shape_.widths.begin(), shape_.widths.end(), std::size_t{0});
  room_ = shape_.stride / row_bytes_;
  for (std::size_t i = 0; i < shape_.slots; ++i) {
    std::uint8_t* const slot = memory + i * shape_.stride;
    if (i < shape_.buckets) {
      current_.push_back({slot, 0});
    } else {
      free_.push_back(slot);
    }
  }
  places_.resize(kAtOnce);
  targets_.resize(kAtOnce);
}

Scattering::~Scattering() {
  constexpr std::chrono::milliseconds kPatience{100};
  for (const auto& job : writing_) {
    while (!errands_.withdraw(*job)) errands_.finish(*job, kPatience);
  }
}

std::size_t Scattering::add(const std::uint8_t* const* fields, std::size_t count, std::chrono::milliseconds patience) {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(fields[0]);
  std::size_t done = 0;
  while (done < count && error_ == 0) {
    const std::size_t some = std::min(kAtOnce, count - done);
    const std::size_t placed = place(words + done, some);
    if (placed > 0) copy(fields, done, placed);
    done += placed;
    for (const auto& [bucket, slot] : full_) hand_over(bucket, slot, shape_.stride);
    full_.clear();
    if (placed < some && !make_room(patience)) break;
  }
  collect();
  return done;
}

// Finds room for rows, up to the first for which there is none.
std::size_t Scattering::place(const std::uint64_t* words, std::size_t count) {
  const std::uint64_t mask = shape_.buckets - 1;
  std::size_t i = 0;
  for (; i < count; ++i) {
    const auto bucket = static_cast<std::size_t>((words[i] >> shape_.shift) & mask);
    Slot& slot = current_[bucket];
    if (slot.rows == room_) {
      if (free_.empty()) break;
      full_.emplace_back(bucket, slot);
      slot = {free_.back(), 0};
      free_.pop_back();
    }
    places_[i] = slot;
    ++slot.rows;
  }
  pending_ += i;
  return i;
}

void Scattering::copy(const std::uint8_t* const* fields, std::size_t start, std::size_t count) {
  std::size_t before = 0;
  for (std::size_t column = 0; column < shape_.widths.size(); ++column) {
    const std::size_t width = shape_.widths[column];
    if (width == 0) continue;
    for (std::size_t i = 0; i < count; ++i) targets_[i] = places_[i].memory + before * room_ + places_[i].rows * width;
    scatter_rows(fields[column] + start * width, width, targets_.data(), count);
    before += width;
  }
}

void Scattering::hand_over(std::size_t bucket, Slot slot, std::size_t align) {
  const std::size_t size = slot.rows * row_bytes_;
  const std::size_t stride = (size + align - 1) / align * align;
  const ScatteredPiece piece{static_cast<std::int64_t>(bucket), offset_, static_cast<std::int64_t>(slot.rows), 0};
  const auto job = std::make_shared<WriteJob>(file_, piece, slot.memory, size, stride);
  offset_ += static_cast<std::int64_t>(stride);
  pending_ -= slot.rows;
  writing_.push_back(job);
  errands_.add(job);
}

// Whether there is a free slot.
bool Scattering::make_room(std::chrono::milliseconds patience) {
  collect();
  if (!free_.empty() || writing_.empty()) return !free_.empty();
  help(patience);
  return !free_.empty();
}

// Writes a piece that nobody has begun with, and waits for the first of all; whether that was done in time.
bool Scattering::help(std::chrono::milliseconds patience) {
  for (const auto& job : writing_) {
    if (errands_.try_run(*job)) break;
  }
  const bool done = errands_.finish(*writing_.front(), patience);
  collect();
  return done;
}

void Scattering::collect() {
  for (; !writing_.empty() && errands_.is_done(*writing_.front()); writing_.pop_front()) {
    const WriteJob& job = *writing_.front();
    if (error_ == 0) error_ = job.error;
    written_.push_back(job.piece);
    free_.push_back(job.memory);
  }
}

bool Scattering::finish(std::chrono::milliseconds patience) {
  if (!finishing_) {
    finishing_ = true;
    for (std::size_t bucket = 0; bucket < shape_.buckets; ++bucket) {
      if (current_[bucket].rows == 0) continue;
      close_up(current_[bucket]);
      hand_over(bucket, current_[bucket], kLine);
    }
  }
  while (!writing_.empty() && error_ == 0) {
    if (!help(patience)) return false;
  }
  return true;
}

// Columns of a slot that is not full begin where they would if it had no room for more.
void Scattering::close_up(Slot slot) const {
  std::size_t before = 0;
  for (const std::size_t width : shape_.widths) {
    std::memmove(slot.memory + before * slot.rows, slot.memory + before * room_, width * slot.rows);
    before += width;
  }
}

std::int64_t Scattering::end_with(std::size_t more) const {
  const std::size_t rows = pending_ + more;
  return offset_ + static_cast<std::int64_t>(rows / room_ * shape_.stride + rows % room_ * row_bytes_);
}

std::int64_t Scattering::end_at_last() const {
  return offset_ + static_cast<std::int64_t>(pending_ * row_bytes_ + shape_.buckets * kLine);
}

}  // namespace forebay
