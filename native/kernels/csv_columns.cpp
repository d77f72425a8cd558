// Records that are all alike, converted column by column: then every field is of the kind of the one before, and a
// processor guesses right what will have to be done.
#include <cstring>
#include <string_view>

#include "csv_marks.hpp"
#include "csv_numbers.hpp"

namespace forebay {
namespace {

// One field of each of the records.
struct Fields {
  const std::uint8_t* data;
  std::size_t size;
  const std::size_t* marks;
  std::size_t step;
  bool quoted;
  std::uint8_t behind;  // What has to stand behind each of them.
  std::string_view missing;

  bool is_empty(std::size_t begin, std::size_t end) const {
    const std::size_t length = end - begin;
    return length == 0 || (length == missing.size() && std::memcmp(data + begin, missing.data(), length) == 0);
  }

  bool has_quotes(const std::size_t* at) const {
    return data[at[0]] == kCsvQuote && at[0] == at[-1] + 1 && data[at[1]] == kCsvQuote && at[2] == at[1] + 1;
  }
};

template <bool kQuoted, class Take>
std::size_t each_of(const Fields fields, std::size_t rows, Take take) {
  const std::size_t* at = fields.marks;
  for (std::size_t row = 0; row < rows; ++row, at += fields.step) {
    if (fields.data[at[kQuoted ? 2 : 0]] != fields.behind || (kQuoted && !fields.has_quotes(at))) return row;
    const std::size_t begin = at[kQuoted ? 0 : -1] + 1;
    const std::size_t end = at[kQuoted ? 1 : 0];
    if (!take(row, begin, end, fields.is_empty(begin, end))) return row;
  }
  return rows;
}

// Calls `take` with the start and the end of each field, and whether it is empty; how many until it says no, or a
// record is not like the first.
template <class Take>
std::size_t each(const Fields& fields, std::size_t rows, Take take) {
  return fields.quoted ? each_of<true>(fields, rows, take) : each_of<false>(fields, rows, take);
}

template <class T>
std::size_t numbers(const Fields& fields, std::size_t rows, const CsvColumn& column, T otherwise, T* out) {
  const std::uint8_t* const data = fields.data;
  const bool required = column.required;
  return each(fields, rows, [=](std::size_t row, std::size_t begin, std::size_t end, bool empty) {
    if (!empty) return read(data, begin, end, out[row]);
    out[row] = otherwise;
    return !required;
  });
}

// Most are short: a copy of one size takes less time than one of the size that is needed.
constexpr std::size_t kShort = 32;

std::size_t texts(const Fields& fields, std::size_t rows, const CsvColumn& column, std::int64_t* offsets,
                  Buffer<std::uint8_t>& bytes) {
  const std::size_t longest = fields.marks[(rows - 1) * fields.step + fields.quoted] - fields.marks[-1];
  const std::size_t before = bytes.size();
  std::uint8_t* const first = bytes.extend(longest + rows * column.bytes.size() + kShort);
  std::uint8_t* to = first;
  const std::size_t good = each(fields, rows, [&](std::size_t row, std::size_t begin, std::size_t end, bool empty) {
    if (empty && column.required) return false;
    if (!empty && end - begin <= kShort && begin + kShort <= fields.size) {
      std::memcpy(to, fields.data + begin, kShort);
      to += end - begin;
    } else if (!empty) {
      std::memcpy(to, fields.data + begin, end - begin);
      to += end - begin;
    } else {
      std::memcpy(to, column.bytes.data(), column.bytes.size());
      to += column.bytes.size();
    }
    offsets[row + 1] = static_cast<std::int64_t>(before + static_cast<std::size_t>(to - first));
    return true;
  });
  bytes.cut(before + static_cast<std::size_t>(to - first));
  return good;
}

}  // namespace

std::size_t CsvParser::convert_run(const std::uint8_t* data, std::size_t size, const CsvRun& run, std::size_t row,
                                   std::vector<CsvValues>& out) const {
  const std::size_t width = columns_.size();
  if (selected_.empty() ? run.fields != width : run.fields <= static_cast<std::size_t>(selected_.back())) return 0;
  std::size_t rows = run.rows;
  std::size_t next = 0;
  const std::size_t* marks = run.marks;
  for (std::size_t number = 0; number < run.fields && rows > 0; ++number) {
    const bool quoted = data[*marks] == kCsvQuote;
    const std::uint8_t behind = number + 1 == run.fields ? run.end : dialect_.delimiter;
    const Fields fields{data, size, marks, run.step, quoted, behind, missing_};
    marks += quoted ? 3 : 1;
    if (!selected_.empty() && (next == width || static_cast<std::size_t>(selected_[next]) != number)) {
      rows = each(fields, rows, [](std::size_t, std::size_t, std::size_t, bool) { return true; });
      continue;
    }
    const CsvColumn& column = columns_[next];
    CsvValues& values = out[next++];
    switch (column.type) {
      case CsvType::kInt32:
        rows = numbers(fields, rows, column, static_cast<std::int32_t>(column.whole), values.int32s.data() + row);
        break;
      case CsvType::kInt64:
        rows = numbers(fields, rows, column, column.whole, values.int64s.data() + row);
        break;
      case CsvType::kFloat:
        rows = numbers(fields, rows, column, static_cast<float>(column.real), values.floats.data() + row);
        break;
      case CsvType::kDouble:
        rows = numbers(fields, rows, column, column.real, values.doubles.data() + row);
        break;
      case CsvType::kBytes:
        rows = texts(fields, rows, column, values.offsets.data() + row, values.bytes);
        break;
    }
  }
  if (rows == run.rows) return rows;
  // Columns before the one at fault have gone further.
  for (std::size_t i = 0; i < width; ++i) {
    if (columns_[i].type == CsvType::kBytes) out[i].bytes.cut(static_cast<std::size_t>(out[i].offsets[row + rows]));
  }
  return rows;
}

}  // namespace forebay
