// Lines, CSV and footers of tables for Python. Columns that kernels made are handed over without a copy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "parquet_footer.hpp"
#include "text.hpp"

namespace nb = nanobind;

namespace forebay_bindings {
namespace {

using namespace forebay;

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using IntsOut = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// rows, consumed, stop, fault, field, start, end, where the next record begins
using End = std::tuple<std::size_t, std::size_t, int, int, std::int64_t, std::size_t, std::size_t, std::size_t>;

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

std::string text_of(nb::handle given) {
  const auto bytes = nb::cast<nb::bytes>(given);
  return std::string(bytes.c_str(), bytes.size());
}

std::pair<std::size_t, std::size_t> find_lines(Bytes data, bool last, IntsOut starts, IntsOut stops) {
  require(starts.size() == stops.size(), "starts and stops differ in length");
  Released unlocked;
  const Lines found = scan_lines(data.data(), data.size(), last, starts.size(), starts.data(), stops.data());
  return {found.rows, found.consumed};
}

End as_tuple(const CsvEnd& end) {
  return {end.rows, end.consumed, static_cast<int>(end.stop), static_cast<int>(end.fault), end.field, end.start, end.end, end.record_end};
}

CsvDialect dialect_of(int delimiter, bool quotes) {
  require(delimiter >= 0 && delimiter < 256, "a delimiter is one byte");
  require(delimiter != '\n' && delimiter != '\r' && delimiter != '"', "a delimiter is no line end and no quote");
  return {static_cast<std::uint8_t>(delimiter), quotes};
}

// columns: (type, required, default)
CsvParser make_csv(nb::list columns, std::vector<std::int64_t> selected, int delimiter, bool quotes, nb::bytes missing) {
  std::vector<CsvColumn> wanted;
  for (nb::handle each : columns) {
    const auto parts = nb::cast<nb::tuple>(each);
    const int type = nb::cast<int>(parts[0]);
    require(type >= 0 && type <= 4, "a type is a number from 0 to 4");
    CsvColumn column{static_cast<CsvType>(type), nb::cast<bool>(parts[1]), 0, 0, {}};
    if (!column.required && type <= 1) column.whole = nb::cast<std::int64_t>(parts[2]);
    if (!column.required && (type == 2 || type == 3)) column.real = nb::cast<double>(parts[2]);
    if (!column.required && type == 4) column.bytes = text_of(parts[2]);
    wanted.push_back(std::move(column));
  }
  require(!wanted.empty(), "there are no columns");
  require(selected.empty() || selected.size() == wanted.size(), "columns and their numbers differ in count");
  for (std::size_t i = 0; i < selected.size(); ++i) {
    require(selected[i] >= 0 && (i == 0 || selected[i] > selected[i - 1]), "numbers of columns must rise");
  }
  return CsvParser(std::move(wanted), std::move(selected), dialect_of(delimiter, quotes), text_of(missing));
}

// One array for each column of numbers; (bytes, offsets) for one of bytes.
std::pair<nb::list, End> parse(const CsvParser& parser, Bytes data, bool last, std::size_t most) {
  std::vector<CsvValues> values;
  CsvEnd end;
  {
    Released unlocked;
    end = parser.parse(data.data(), data.size(), last, most, values);
  }
  nb::list columns;
  for (std::size_t i = 0; i < values.size(); ++i) {
    CsvValues& each = values[i];
    switch (parser.columns()[i].type) {
      case CsvType::kInt32: columns.append(handed_over(each.int32s, end.rows)); break;
      case CsvType::kInt64: columns.append(handed_over(each.int64s, end.rows)); break;
      case CsvType::kFloat: columns.append(handed_over(each.floats, end.rows)); break;
      case CsvType::kDouble: columns.append(handed_over(each.doubles, end.rows)); break;
      case CsvType::kBytes: {
        // What a record at fault has left behind the last row does not count.
        const auto size = static_cast<std::size_t>(each.offsets[end.rows]);
        columns.append(nb::make_tuple(handed_over(each.bytes, size), handed_over(each.offsets, end.rows + 1)));
        break;
      }
    }
  }
  return {columns, as_tuple(end)};
}

std::pair<nb::list, End> fields(Bytes data, bool last, int delimiter, bool quotes) {
  std::vector<std::string> found;
  const CsvEnd end = csv_fields(data.data(), data.size(), last, dialect_of(delimiter, quotes), found);
  nb::list out;
  for (const std::string& each : found) out.append(nb::bytes(each.data(), each.size()));
  return {out, as_tuple(end)};
}

nb::object footer_fault(Bytes data) {
  const char* fault;
  {
    Released unlocked;
    fault = parquet_fault(data.data(), data.size());
  }
  return fault == nullptr ? nb::none() : nb::object(nb::str(fault));
}

}  // namespace

void bind_text(nb::module_& m) {
  m.def("scan_lines", &find_lines, nb::arg("data").noconvert(), nb::arg("last"), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
        "Find lines; how many there are, and the bytes that they take with their ends.");
  m.def("csv_fields", &fields, nb::arg("data").noconvert(), nb::arg("last"), nb::arg("delimiter"), nb::arg("quotes"),
        "The fields of the first record.");
  m.def("parquet_fault", &footer_fault, nb::arg("data").noconvert(), "What is wrong with a Parquet footer, or None.");
  nb::class_<CsvParser>(m, "CsvParser", "Parses CSV records into columns.")
      .def("__init__", [](CsvParser* self, nb::list columns, std::vector<std::int64_t> selected, int delimiter, bool quotes, nb::bytes missing) {
        new (self) CsvParser(make_csv(columns, std::move(selected), delimiter, quotes, missing));
      }, nb::arg("columns"), nb::arg("selected"), nb::arg("delimiter"), nb::arg("quotes"), nb::arg("missing"))
      .def("parse", &parse, nb::arg("data").noconvert(), nb::arg("last"), nb::arg("most"),
           "Columns of up to so many records, and where and why that ended.");
}

}  // namespace forebay_bindings
