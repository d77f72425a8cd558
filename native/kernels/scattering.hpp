// Rows of one size on their way to buckets of a file, which random words name.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "errands.hpp"
#include "far_file.hpp"

namespace forebay {

// What rows are made of, and where they wait to be written.
struct ScatterShape {
  std::vector<std::size_t> widths;  // Of a row's word, which comes first, and of its values in every column.
  unsigned shift;                   // The lowest of a word's bits that name the row's bucket.
  std::size_t buckets;              // A power of two.
  std::size_t stride;               // The bytes of a slot: at least those of a row.
  std::size_t slots;                // More than there are buckets.
};

// A piece of the file: the words of its rows and behind them their values, column by column.
struct ScatteredPiece {
  std::int64_t bucket;
  std::int64_t offset;
  std::int64_t rows;
  std::int64_t checksum;  // CRC-32C.
};

// Every bucket has a slot of memory that its rows are collected in. One that is full is written by the thread of errands
// as a piece, behind all others, and the bucket gets one that is free. If none is, whoever adds rows writes too.
class Scattering {
 public:
  // The memory has room for all slots and stays there as long as this does.
  Scattering(Errands& errands, FarFile file, std::int64_t offset, ScatterShape shape, std::uint8_t* memory);
  ~Scattering();
  Scattering(const Scattering&) = delete;
  Scattering& operator=(const Scattering&) = delete;

  // From now on, full slots that are far are written past the page cache, if memory, offset and stride are whole pages.
  void begin_far(int direct) { file_.direct = direct; }

  // Adds rows; the values of row i of column c are at fields[c] + i * widths[c], those of the first column being words.
  // Returns how many were added: all, unless the disk did not keep up for so long or something could not be written.
  std::size_t add(const std::uint8_t* const* fields, std::size_t count, std::chrono::milliseconds patience);

  // Whether everything has been written, which is waited for no longer than that. No rows may be added afterwards.
  bool finish(std::chrono::milliseconds patience);

  // 0, or the errno of what failed.
  int error() const { return error_; }

  // Where the file will end at most, once so many more rows have been added, or after those that are there are written.
  std::int64_t end_with(std::size_t more) const;
  std::int64_t end_at_last() const;

  // Pieces that have been written and were not taken before, those of a bucket in the order of their rows.
  std::vector<ScatteredPiece> take() { return std::move(written_); }
  std::size_t untaken() const { return written_.size(); }

 private:
  struct Slot {
    std::uint8_t* memory;
    std::size_t rows;
  };
  class WriteJob;

  std::size_t place(const std::uint64_t* words, std::size_t count);
  void copy(const std::uint8_t* const* fields, std::size_t start, std::size_t count);
  void hand_over(std::size_t bucket, Slot slot, std::size_t align);
  bool make_room(std::chrono::milliseconds patience);
  bool help(std::chrono::milliseconds patience);
  void collect();
  void close_up(Slot slot) const;

  Errands& errands_;
  FarFile file_;
  std::int64_t offset_;
  ScatterShape shape_;
  std::size_t row_bytes_ = 0;
  std::size_t room_ = 0;
  std::size_t pending_ = 0;  // Rows that were not handed over yet.
  bool finishing_ = false;
  int error_ = 0;
  std::vector<Slot> current_;
  std::vector<std::uint8_t*> free_;
  std::deque<std::shared_ptr<WriteJob>> writing_;
  std::vector<ScatteredPiece> written_;
  // Of the rows that are being added: what is full with them, and the slot of each and its number in it.
  std::vector<std::pair<std::size_t, Slot>> full_;
  std::vector<Slot> places_;
  std::vector<std::uint8_t*> targets_;
};

}  // namespace forebay
