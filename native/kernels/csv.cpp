#include <cstring>
#include <utility>

#include "csv_marks.hpp"
#include "csv_numbers.hpp"

namespace forebay {
namespace {

// The first thing that is wrong with a record; what comes behind it is only looked at for where the record ends.
struct Note {
  CsvFault fault = CsvFault::kNone;
  std::int64_t field = 0;
  std::size_t start = 0;
  std::size_t end = 0;

  void set(CsvFault what, std::int64_t number, std::size_t from, std::size_t to) {
    if (fault == CsvFault::kNone) *this = Note{what, number, from, to};
  }
};

// Where the record that begins at `at` ends, or `at` itself if it ends within quotes; false if it goes on behind the
// data. `take` gets the number of each field, its bytes, and whether there are doubled quotes in it.
template <class Take>
bool walk(const std::uint8_t* data, std::size_t size, bool last, std::size_t at, CsvDialect dialect,
          CsvMarks& marks, Note& note, std::size_t& record_end, Take&& take) {
  std::size_t pos = at;
  for (std::int64_t field = 0;; ++field) {
    const std::size_t first = pos;
    std::size_t begin = pos;
    std::size_t end = pos;
    bool doubled = false;
    bool good = true;
    if (dialect.quotes && pos < size && data[pos] == kCsvQuote) {
      begin = ++pos;
      for (;;) {
        const void* found = pos < size ? std::memchr(data + pos, kCsvQuote, size - pos) : nullptr;
        if (found == nullptr) {
          if (!last) return false;
          note.set(CsvFault::kOpenQuote, field, first, size);
          record_end = at;
          return true;
        }
        end = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - data);
        pos = end + 1;
        if (pos == size) {
          if (!last) return false;
          break;
        }
        const std::uint8_t next = data[pos];
        if (next == dialect.delimiter || next == '\n' || next == '\r') break;
        if (next == kCsvQuote) {
          doubled = true;
        } else {
          note.set(CsvFault::kStrayQuote, field, end, end + 1);
          good = false;
        }
        ++pos;
      }
    } else {
      for (pos = marks.find(pos); pos < size && data[pos] == kCsvQuote; pos = marks.find(pos + 1)) {
        note.set(CsvFault::kQuoteInside, field, pos, pos + 1);
        good = false;
      }
      if (pos == size && !last) return false;
      end = pos;
    }
    // A carriage return may have its line feed behind the data.
    if (pos + 1 == size && !last && data[pos] == '\r') return false;
    if (good && note.fault == CsvFault::kNone) take(field, begin, end, doubled);
    if (pos < size && data[pos] == dialect.delimiter) {
      ++pos;
      continue;
    }
    if (pos < size) pos += data[pos] == '\r' && pos + 1 < size && data[pos + 1] == '\n' ? 2 : 1;
    record_end = pos;
    return true;
  }
}

// A field; if there are `doubled` quotes in it, without the second of each pair.
std::string copied(const std::uint8_t* field, std::size_t size, bool doubled) {
  if (!doubled) return std::string(reinterpret_cast<const char*>(field), size);
  std::string out;
  out.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    out.push_back(static_cast<char>(field[i]));
    if (field[i] == kCsvQuote) ++i;
  }
  return out;
}

}  // namespace

CsvParser::CsvParser(std::vector<CsvColumn> columns, std::vector<std::int64_t> selected, CsvDialect dialect,
                     std::string missing)
    : columns_(std::move(columns)), selected_(std::move(selected)), dialect_(dialect), missing_(std::move(missing)) {}

CsvFault CsvParser::convert(const CsvColumn& column, const std::uint8_t* data, std::size_t begin, std::size_t end,
                            std::size_t row, CsvValues& out) const {
  const std::size_t size = end - begin;
  const bool empty = size == 0 || (size == missing_.size() && std::memcmp(data + begin, missing_.data(), size) == 0);
  if (empty && column.required) return CsvFault::kMissing;
  bool good = true;
  switch (column.type) {
    case CsvType::kInt32:
      out.int32s[row] = static_cast<std::int32_t>(column.whole);
      good = empty || read(data, begin, end, out.int32s[row]);
      break;
    case CsvType::kInt64:
      out.int64s[row] = column.whole;
      good = empty || read(data, begin, end, out.int64s[row]);
      break;
    case CsvType::kFloat:
      out.floats[row] = static_cast<float>(column.real);
      good = empty || read(data, begin, end, out.floats[row]);
      break;
    case CsvType::kDouble:
      out.doubles[row] = column.real;
      good = empty || read(data, begin, end, out.doubles[row]);
      break;
    case CsvType::kBytes:
      if (empty) {
        out.bytes.append(reinterpret_cast<const std::uint8_t*>(column.bytes.data()), column.bytes.size());
      } else {
        out.bytes.append(data + begin, size);
      }
      out.offsets[row + 1] = static_cast<std::int64_t>(out.bytes.size());
      break;
  }
  return good ? CsvFault::kNone : CsvFault::kNoNumber;
}

CsvEnd CsvParser::parse(const std::uint8_t* data, std::size_t size, bool last, std::size_t most,
                        std::vector<CsvValues>& out) const {
  const std::size_t width = columns_.size();
  // A record has a byte for each of its fields at least, so there is no need for room for more.
  const std::size_t room = size / (width > 0 ? width : 1) + 1;
  if (most > room) most = room;
  out.clear();
  out.resize(width);
  for (std::size_t i = 0; i < width; ++i) {
    switch (columns_[i].type) {
      case CsvType::kInt32: out[i].int32s.extend(most); break;
      case CsvType::kInt64: out[i].int64s.extend(most); break;
      case CsvType::kFloat: out[i].floats.extend(most); break;
      case CsvType::kDouble: out[i].doubles.extend(most); break;
      case CsvType::kBytes: *out[i].offsets.extend(most + 1) = 0; break;
    }
  }
  CsvEnd result{0, 0, CsvStop::kRows, CsvFault::kNone, 0, 0, 0, 0};
  CsvMarks marks(data, size, dialect_);
  while (result.rows < most && result.consumed < size) {
    const CsvRun run = marks.run(result.consumed, most - result.rows);
    if (const std::size_t rows = convert_run(data, size, run, result.rows, out); rows > 0) {
      result.rows += rows;
      result.consumed = run.behind(rows);
      marks.pass(run, rows);
      if (rows == run.rows) continue;
    }
    marks.expect_quotes();
    Note note;
    std::size_t column = 0;
    std::int64_t fields = 0;
    std::size_t end = 0;
    const auto take = [&](std::int64_t field, std::size_t begin, std::size_t stop, bool doubled) {
      fields = field + 1;
      if (!selected_.empty() && (column == width || selected_[column] != field)) return;
      if (column == width) {
        note.set(CsvFault::kManyFields, static_cast<std::int64_t>(column), begin, stop);
        return;
      }
      CsvFault fault;
      if (doubled || stop == size) {
        // A copy, behind which there is a byte.
        const std::string own = copied(data + begin, stop - begin, doubled);
        fault = convert(columns_[column], reinterpret_cast<const std::uint8_t*>(own.c_str()), 0, own.size(),
                        result.rows, out[column]);
      } else {
        fault = convert(columns_[column], data, begin, stop, result.rows, out[column]);
      }
      if (fault != CsvFault::kNone) note.set(fault, static_cast<std::int64_t>(column), begin, stop);
      ++column;
    };
    if (!walk(data, size, last, result.consumed, dialect_, marks, note, end, take)) {
      result.stop = CsvStop::kMore;
      break;
    }
    if (column < width) note.set(CsvFault::kFewFields, fields, result.consumed, end);
    if (note.fault != CsvFault::kNone) {
      result.stop = CsvStop::kFault;
      result.fault = note.fault;
      result.field = note.field;
      result.start = note.start;
      result.end = note.end;
      result.record_end = end;
      break;
    }
    result.consumed = end;
    ++result.rows;
  }
  return result;
}

CsvEnd csv_fields(const std::uint8_t* data, std::size_t size, bool last, CsvDialect dialect,
                  std::vector<std::string>& fields) {
  CsvEnd result{0, 0, CsvStop::kRows, CsvFault::kNone, 0, 0, 0, 0};
  Note note;
  std::size_t end = 0;
  const auto take = [&](std::int64_t, std::size_t begin, std::size_t stop, bool doubled) {
    fields.push_back(copied(data + begin, stop - begin, doubled));
  };
  if (size == 0) return result;
  CsvMarks marks(data, size, dialect);
  if (!walk(data, size, last, 0, dialect, marks, note, end, take)) {
    result.stop = CsvStop::kMore;
  } else if (note.fault != CsvFault::kNone) {
    result.stop = CsvStop::kFault;
    result.fault = note.fault;
    result.field = note.field;
    result.start = note.start;
    result.end = note.end;
    result.record_end = end;
  } else {
    result.rows = 1;
    result.consumed = end;
  }
  return result;
}

}  // namespace forebay
