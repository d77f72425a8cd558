// Lines of text and records of CSV files. No Python here; nothing is read beyond `size`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "buffer.hpp"

namespace forebay {

struct Lines {
  std::size_t rows;
  std::size_t consumed;  // Bytes of whole lines, ends included.
};

// Finds up to `most` lines from the start of the data on: line i is data[starts[i]:stops[i]], without its "\n" or
// "\r\n". With `last`, what stands behind the last end is a line too.
Lines scan_lines(const std::uint8_t* data, std::size_t size, bool last, std::size_t most, std::int64_t* starts,
                 std::int64_t* stops);

enum class CsvType : int { kInt32 = 0, kInt64 = 1, kFloat = 2, kDouble = 3, kBytes = 4 };

struct CsvDialect {
  std::uint8_t delimiter;  // Neither a line end nor a quote.
  bool quotes;
};

struct CsvColumn {
  CsvType type;
  bool required;  // A field that is empty is a fault; otherwise the default stands for it.
  std::int64_t whole = 0;
  double real = 0;
  std::string bytes;
};

enum class CsvStop : int {
  kRows = 0,   // As many records as were wanted, or the end of the data.
  kMore = 1,   // The next record goes on behind the data.
  kFault = 2,  // The next record cannot be read.
};

enum class CsvFault : int {
  kNone = 0,
  kOpenQuote = 1,    // The data ends within quotes.
  kStrayQuote = 2,   // A quote within quotes that is not doubled.
  kQuoteInside = 3,  // A quote in a field that does not begin with one.
  kFewFields = 4,
  kManyFields = 5,
  kMissing = 6,  // A field without a default is empty.
  kNoNumber = 7,
};

struct CsvEnd {
  std::size_t rows;
  std::size_t consumed;  // Bytes of whole good records.
  CsvStop stop;
  CsvFault fault;
  std::int64_t field;       // Of the fault, by its number among the columns; the number of fields if that is wrong.
  std::size_t start, end;   // The field at fault.
  std::size_t record_end;   // Where the next record begins; where this one does if its quotes are never closed.
};

// The values of one column. Numbers have room for all rows; of bytes, row i is from offsets[i] to offsets[i + 1].
struct CsvValues {
  Buffer<std::uint8_t> bytes;
  Buffer<std::int64_t> offsets;
  Buffer<std::int32_t> int32s;
  Buffer<std::int64_t> int64s;
  Buffer<float> floats;
  Buffer<double> doubles;
};

struct CsvRun;

// Parses records into columns. Fields with the numbers in `selected`, which rise, are the columns; all fields if it is
// empty. tf.data's rules: records end with "\n", "\r\n" or "\r"; an empty line is a record of one empty field; a field
// that equals `missing` counts as empty.
class CsvParser {
 public:
  CsvParser(std::vector<CsvColumn> columns, std::vector<std::int64_t> selected, CsvDialect dialect, std::string missing);

  CsvEnd parse(const std::uint8_t* data, std::size_t size, bool last, std::size_t most,
               std::vector<CsvValues>& out) const;

  const std::vector<CsvColumn>& columns() const { return columns_; }

 private:
  // Converts the field data[begin:end], behind which there is at least one byte more.
  CsvFault convert(const CsvColumn& column, const std::uint8_t* data, std::size_t begin, std::size_t end,
                   std::size_t row, CsvValues& out) const;
  // Converts records column by column, from `row` on; how many until one is at fault.
  std::size_t convert_run(const std::uint8_t* data, std::size_t size, const CsvRun& run, std::size_t row,
                          std::vector<CsvValues>& out) const;

  std::vector<CsvColumn> columns_;
  std::vector<std::int64_t> selected_;
  CsvDialect dialect_;
  std::string missing_;
};

// The fields of the first record, and what it ends with (see CsvEnd: rows is 1 if it is good).
CsvEnd csv_fields(const std::uint8_t* data, std::size_t size, bool last, CsvDialect dialect,
                  std::vector<std::string>& fields);

// Numbers as tf.data reads them: white space around them is passed over. False if it is no number, or does not fit.
bool parse_whole(const std::uint8_t* text, std::size_t size, std::int64_t least, std::int64_t most, std::int64_t& out);
bool parse_real(const std::uint8_t* text, std::size_t size, float& out);
bool parse_real(const std::uint8_t* text, std::size_t size, double& out);

}  // namespace forebay
