// Where the bytes of CSV data are that mean something: delimiters, line ends and quotes.
#pragma once

#include "text.hpp"

namespace forebay {

constexpr std::uint8_t kCsvQuote = '"';

// Marks that may be those of records behind one another that are like the first: as many fields, quotes around the same
// ones, and none inside. Of others than the first, whoever reads them has to look. Record i has `step` marks from
// marks[i * step] on: what stands behind a field, after both of its quotes if it has some. What stands behind the last
// is `end`, and for "\r\n" the second of them, which is known to be there, has a mark too.
struct CsvRun {
  const std::size_t* marks = nullptr;
  std::size_t rows = 0;
  std::size_t fields = 0;
  std::size_t step = 0;
  std::uint8_t end = 0;

  // Where the record behind so many of them begins.
  std::size_t behind(std::size_t count) const { return marks[count * step - 1] + 1; }
};

// Goes forwards only. Marks are noted for a few kilobytes at a time, which stay in the processor's nearest cache until
// their fields are read.
class CsvMarks {
 public:
  CsvMarks(const std::uint8_t* data, std::size_t size, CsvDialect dialect)
      : data_(data), size_(size), dialect_(dialect) {}

  // The first mark from `pos` on; the size of the data if there is none.
  std::size_t find(std::size_t pos) {
    for (;; ++at_) {
      if (at_ == count_ && next_ < pos) next_ = pos;
      if (!has(0)) return size_;
      if (found_[at_] >= pos) return found_[at_];
    }
  }

  // The records from `start` on, up to `most` of those at hand; none if the first is not so plain. Good until the next
  // call.
  CsvRun run(std::size_t start, std::size_t most);

  // Goes behind the first so many records of a run.
  void pass(const CsvRun& run, std::size_t rows) {
    at_ += rows * run.step;
    piece_ = kPiece;
  }

  // A record had to be read by itself. More of them may come, with long text in quotes, in which marks mean nothing:
  // fewer are noted ahead.
  void expect_quotes() { piece_ = kLeastPiece; }

 private:
  static constexpr std::size_t kPiece = 4096;
  static constexpr std::size_t kLeastPiece = 128;
  static constexpr std::size_t kRoom = 4096;

  // Goes on noting them; false if there is no more data, or no room.
  bool more();
  // Whether there are more than so many at hand, or can be.
  bool has(std::size_t count) {
    while (count_ - at_ <= count) {
      if (!more()) return false;
    }
    return true;
  }

  const std::uint8_t* data_;
  std::size_t size_;
  CsvDialect dialect_;
  std::size_t next_ = 0;  // Noted up to here.
  std::size_t piece_ = kPiece;
  // Those at hand are from `at` to `count`. There is always one before, for where the first field begins.
  std::size_t at_ = 1;
  std::size_t count_ = 1;
  std::size_t found_[kRoom];
};

}  // namespace forebay
