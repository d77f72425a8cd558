// TFRecord and tf.train.Example for Python. Arrays that kernels made are handed over without a copy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "example.hpp"
#include "kernels.hpp"
#include "records.hpp"

namespace nb = nanobind;

namespace forebay_bindings {
namespace {

using namespace forebay;

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using BytesOut = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using IntsOut = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// Offsets that rise from 0 or more up to no more than `size`.
void check_offsets(Ints offsets, std::size_t size) {
  require(offsets.size() > 0, "there are no offsets");
  std::int64_t before = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    require(offsets.data()[i] >= before, "offsets go down");
    before = offsets.data()[i];
  }
  require(static_cast<std::uint64_t>(before) <= size, "offsets go beyond the data");
}

std::uint32_t checksum(nb::object data, std::uint32_t before, bool portable) {
  const Contents bytes(data);
  const auto kernel = portable ? crc32c_portable : crc32c;
  if (bytes.size() < kWorthUnlocking) return kernel(bytes.data(), bytes.size(), before);
  Released unlocked;
  return kernel(bytes.data(), bytes.size(), before);
}

std::tuple<std::size_t, std::size_t, int, std::int64_t> scan(Bytes data, bool verify, IntsOut starts, IntsOut stops) {
  require(starts.size() == stops.size(), "starts and stops differ in length");
  Released unlocked;
  const Scan found = scan_records(data.data(), data.size(), starts.size(), verify, starts.data(), stops.data());
  return {found.rows, found.consumed, static_cast<int>(found.stop), found.length};
}

std::ptrdiff_t find(Bytes data, std::size_t from, std::uint64_t longest) {
  Released unlocked;
  return find_header(data.data(), data.size(), from, longest);
}

void frame(Bytes data, Ints offsets, BytesOut out) {
  check_offsets(offsets, data.size());
  const std::size_t count = offsets.size() - 1;
  const auto bytes = static_cast<std::size_t>(offsets.data()[count] - offsets.data()[0]);
  require(out.size() == bytes + count * kFraming, "out does not have the size of all records with their framing");
  Released unlocked;
  frame_records(data.data(), offsets.data(), count, out.data());
}

void check_range(std::int64_t start, std::int64_t stop, std::size_t size) {
  require(start >= 0 && stop >= start && static_cast<std::uint64_t>(stop) <= size, "a range goes beyond the data");
}

// Ranges that lie in the data.
void check_ranges(Ints starts, Ints stops, std::size_t size) {
  require(starts.size() == stops.size(), "starts and stops differ in length");
  for (std::size_t i = 0; i < starts.size(); ++i) check_range(starts.data()[i], stops.data()[i], size);
}

// A bytes object for each string in place of what is there, copied once.
void make_strings(PyObject** places, Bytes data, Ints starts, Ints stops) {
  check_ranges(starts, stops, data.size());
  const char* bytes = reinterpret_cast<const char*>(data.data());
  std::vector<std::pair<char*, std::size_t>> later;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t start = starts.data()[i];
    const std::int64_t size = stops.data()[i] - start;
    const bool large = size >= static_cast<std::int64_t>(kWorthUnlocking);
    PyObject* item = PyBytes_FromStringAndSize(large ? nullptr : bytes + start, static_cast<Py_ssize_t>(size));
    if (item == nullptr) throw nb::python_error();
    if (large) later.emplace_back(PyBytes_AS_STRING(item), i);
    Py_XDECREF(std::exchange(places[i], item));
  }
  if (later.empty()) return;
  // Nobody else knows of them yet.
  Released unlocked;
  for (const auto& [to, i] : later) std::memcpy(to, bytes + starts.data()[i], static_cast<std::size_t>(stops.data()[i] - starts.data()[i]));
}

nb::list split(Bytes data, Ints starts, Ints stops) {
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(starts.size())));
  if (!list.is_valid()) throw nb::python_error();
  make_strings(reinterpret_cast<PyListObject*>(list.ptr())->ob_item, data, starts, stops);
  return nb::cast<nb::list>(list);
}

// The same in an object array.
void fill_bytes(nb::object out, Bytes data, Ints starts, Ints stops) {
  Py_buffer view;
  if (PyObject_GetBuffer(out.ptr(), &view, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  const std::unique_ptr<Py_buffer, decltype(&PyBuffer_Release)> released(&view, &PyBuffer_Release);
  const bool fits = std::string_view(view.format) == "O" && static_cast<std::size_t>(view.len) == starts.size() * sizeof(PyObject*);
  require(fits, "out is no array of as many objects");
  make_strings(static_cast<PyObject**>(view.buf), data, starts, stops);
}

// Memory of an earlier array that nobody refers to any more, if there is some.
nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> spare_bytes(std::size_t size, bool roomy) {
  return array_of(static_cast<std::uint8_t*>(take_memory(size, roomy)), size, size);
}

template <class T>
nb::object handed_over(Buffer<T>& buffer) {
  return forebay_bindings::handed_over(buffer, buffer.size());
}

nb::object offsets_from(const Buffer<std::int64_t>& ends) {
  Buffer<std::int64_t> offsets;
  offsets.reserve(ends.size() + 1);
  offsets.push(0);
  offsets.append(ends.data(), ends.size());
  return handed_over(offsets);
}

Values values_of(Type type, nb::handle given) {
  Values values;
  if (type == Type::kFloat) {
    const auto floats = nb::cast<Floats>(given);
    values.floats.append(floats.data(), floats.size());
  } else if (type == Type::kInt64) {
    const auto ints = nb::cast<Ints>(given);
    values.ints.append(ints.data(), ints.size());
  } else {
    for (nb::handle item : nb::cast<nb::list>(given)) {
      const auto bytes = nb::cast<nb::bytes>(item);
      values.bytes.append(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      values.ends.push(static_cast<std::int64_t>(values.bytes.size()));
    }
  }
  return values;
}

// (key, type, count, sequence, what stands for it if it is missing, or None)
Parser make_parser(nb::list features, bool sequences, bool compares) {
  std::vector<Wanted> wanted;
  for (nb::handle each : features) {
    const auto parts = nb::cast<nb::tuple>(each);
    Wanted feature;
    const auto key = nb::cast<nb::bytes>(parts[0]);
    feature.key.assign(key.c_str(), key.size());
    const int type = nb::cast<int>(parts[1]);
    require(type >= 1 && type <= 3, "a type is 1, 2 or 3");
    feature.type = static_cast<Type>(type);
    feature.count = nb::cast<std::int64_t>(parts[2]);
    require(feature.count >= -1, "a count is -1 or more");
    feature.sequence = nb::cast<bool>(parts[3]);
    feature.required = parts[4].is_none();
    if (!feature.required) feature.missing = values_of(feature.type, parts[4]);
    wanted.push_back(std::move(feature));
  }
  return Parser(std::move(wanted), sequences, compares);
}

std::size_t bytes_of(const std::vector<Span>& rows) {
  std::size_t total = 0;
  for (const Span& row : rows) total += row.size;
  return total;
}

// (values, lengths or None, steps or None) of each feature; the values of strings are (bytes, offsets). Then the fault:
// (code, row, feature, found), code 0 if there is none.
nb::tuple columns_of(const Parser& parser, const std::vector<Span>& rows) {
  std::vector<Values> out;
  Fault fault;
  {
    const Unlocked unlocked(bytes_of(rows));
    fault = parser.parse(rows.data(), rows.size(), out);
  }
  nb::tuple place = nb::make_tuple(static_cast<int>(fault.code), fault.row, fault.feature, fault.found);
  nb::list columns;
  if (fault.code == Code::kNone) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Wanted& wanted = parser.wanted()[i];
      nb::object values;
      if (wanted.type == Type::kFloat) {
        values = handed_over(out[i].floats);
      } else if (wanted.type == Type::kInt64) {
        values = handed_over(out[i].ints);
      } else {
        nb::object offsets = offsets_from(out[i].ends);
        values = nb::make_tuple(handed_over(out[i].bytes), offsets);
      }
      nb::object lengths = wanted.count < 0 ? handed_over(out[i].lengths) : nb::object(nb::none());
      nb::object steps = wanted.sequence ? handed_over(out[i].steps) : nb::object(nb::none());
      columns.append(nb::make_tuple(values, lengths, steps));
    }
  }
  return nb::make_tuple(columns, place);
}

// The strings buffers[which[i]][starts[i]:stops[i]]; all of the first buffer if `which` is nothing.
nb::tuple parse_apart(const Parser& parser, const std::vector<Bytes>& buffers, std::optional<Ints> which, Ints starts, Ints stops) {
  require(!buffers.empty() && starts.size() == stops.size(), "starts and stops differ in length");
  require(!which || which->size() == starts.size(), "which and starts differ in length");
  std::vector<Span> rows;
  {
    Released unlocked;
    rows.reserve(starts.size());
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const auto buffer = which ? static_cast<std::uint64_t>(which->data()[i]) : 0;
      require(buffer < buffers.size(), "there is no such buffer");
      const std::int64_t start = starts.data()[i];
      const std::int64_t stop = stops.data()[i];
      check_range(start, stop, buffers[buffer].size());
      rows.push_back({buffers[buffer].data() + start, static_cast<std::size_t>(stop - start)});
    }
  }
  return columns_of(parser, rows);
}

nb::tuple parse_column(const Parser& parser, Bytes data, Ints starts, Ints stops) {
  return parse_apart(parser, {data}, std::nullopt, starts, stops);
}

nb::tuple parse_list(const Parser& parser, nb::list records) {
  std::vector<nb::bytes> held;  // What the list holds may be changed by others meanwhile.
  std::vector<Span> rows;
  held.reserve(records.size());
  rows.reserve(records.size());
  for (nb::handle record : records) {
    held.push_back(nb::cast<nb::bytes>(record));
    rows.push_back({reinterpret_cast<const std::uint8_t*>(held.back().data()), held.back().size()});
  }
  return columns_of(parser, rows);
}

// sources[s] are (starts, stops) of parts that follow one another; parts are numbered through all sources.
nb::tuple weave_ranges(const std::vector<std::vector<std::pair<Ints, Ints>>>& sources, std::size_t done, std::size_t length) {
  require(!sources.empty() && done < length, "there is nobody whose turn it is");
  std::vector<WeavePart> parts;
  std::vector<WeaveSource> woven(sources.size());
  std::size_t rows = 0;
  for (const auto& source : sources) {
    for (const auto& [starts, stops] : source) {
      require(starts.size() == stops.size(), "starts and stops differ in length");
      parts.push_back({static_cast<std::int64_t>(parts.size()), starts.data(), stops.data(), starts.size()});
      rows += starts.size();
    }
  }
  const WeavePart* next = parts.data();
  for (std::size_t i = 0; i < sources.size(); next = woven[i++].end) woven[i] = {next, next + sources[i].size(), 0};
  Buffer<std::int64_t> which, starts, stops;
  {
    const Unlocked unlocked(rows * sizeof(std::int64_t));
    std::size_t done_rows = weave(woven.data(), woven.size(), done, length, rows, which.extend(rows), starts.extend(rows), stops.extend(rows));
    require(done_rows == rows, "a source has too few rows");
  }
  nb::object first = handed_over(which);
  nb::object second = handed_over(starts);
  return nb::make_tuple(first, second, handed_over(stops));
}

// (key, type, values, rows): values of strings are (bytes, offsets).
nb::tuple write(nb::list features, std::size_t count) {
  std::vector<Written> written;
  std::vector<nb::object> held;
  for (nb::handle each : features) {
    const auto parts = nb::cast<nb::tuple>(each);
    Written feature;
    const auto key = nb::cast<nb::bytes>(parts[0]);
    feature.key.assign(key.c_str(), key.size());
    const int type = nb::cast<int>(parts[1]);
    require(type >= 0 && type <= 3, "a type is 0, 1, 2 or 3");
    feature.type = static_cast<Type>(type);
    const auto rows = nb::cast<Ints>(parts[3]);
    require(rows.size() == count + 1, "there are not as many rows");
    feature.rows = rows.data();
    std::size_t size = 0;
    if (feature.type == Type::kFloat) {
      const auto values = nb::cast<Floats>(parts[2]);
      feature.floats = values.data();
      size = values.size();
    } else if (feature.type == Type::kInt64) {
      const auto values = nb::cast<Ints>(parts[2]);
      feature.ints = values.data();
      size = values.size();
    } else if (feature.type == Type::kBytes) {
      const auto pair = nb::cast<nb::tuple>(parts[2]);
      const auto bytes = nb::cast<Bytes>(pair[0]);
      const auto offsets = nb::cast<Ints>(pair[1]);
      check_offsets(offsets, bytes.size());
      feature.bytes = bytes.data();
      feature.ends = offsets.data();
      size = offsets.size() - 1;
    }
    check_offsets(rows, size);
    held.push_back(nb::borrow(each));  // And with it the arrays that are pointed to.
    written.push_back(std::move(feature));
  }
  Buffer<std::uint8_t> out;
  Buffer<std::int64_t> ends;
  {
    Released unlocked;
    write_examples(written, count, out, ends);
  }
  nb::object offsets = offsets_from(ends);
  return nb::make_tuple(handed_over(out), offsets);
}

}  // namespace

void bind_records(nb::module_& m) {
  m.def("crc32c", &checksum, nb::arg("data"), nb::arg("before") = 0, nb::arg("portable") = false,
        "The CRC-32C of the data, or of it behind other data whose checksum was `before`.");
  m.def("scan_records", &scan, nb::arg("data").noconvert(), nb::arg("verify"), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
        "Find whole TFRecords: how many, how many bytes they take, why it stopped, and the length of the next.");
  m.def("find_header", &find, nb::arg("data").noconvert(), nb::arg("start"), nb::arg("longest"),
        "Where from start on a TFRecord's length stands that matches its checksum; -1 if nowhere.");
  m.def("frame_records", &frame, nb::arg("data").noconvert(), nb::arg("offsets").noconvert(), nb::arg("out").noconvert(),
        "Write the strings data[offsets[i]:offsets[i + 1]] as TFRecords to out.");
  m.def("weave_ranges", &weave_ranges, nb::arg("sources"), nb::arg("done"), nb::arg("length"),
        "Take ranges from sources in turns; each has (starts, stops) of its parts. The number of the part, start and stop of each.");
  m.def("split_bytes", &split, nb::arg("data").noconvert(), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
        "A bytes object for each string data[starts[i]:stops[i]].");
  m.def("fill_bytes", &fill_bytes, nb::arg("out"), nb::arg("data").noconvert(), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
        "Set the elements of an object array to the strings data[starts[i]:stops[i]].");
  m.def("spare_bytes", &spare_bytes, nb::arg("size"), nb::arg("roomy") = false,
        "An array of so many bytes, whatever they are. Large ones begin at a page, and need not be cleared by the system.");
  m.def("clear_spare", &clear_memory, "Give memory that is kept for such arrays back to the system; how many bytes that was.");
  m.def("kept_spare", &kept_memory, "How many bytes are kept for such arrays at the moment.");
  m.def("beyond_spare", &memory_beyond, "By how many bytes such arrays that are in use are larger than was asked for.");
  nb::class_<Parser>(m, "Parser", "Features that are wanted of serialized Examples.")
      .def("__init__",
           [](Parser* self, nb::list features, bool sequences, bool compares) {
             new (self) Parser(make_parser(features, sequences, compares));
           },
           nb::arg("features"), nb::arg("sequences"), nb::arg("compares") = true)
      .def("parse_column", &parse_column, nb::arg("data").noconvert(), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
           "Parse the strings data[starts[i]:stops[i]].")
      .def("parse_apart", &parse_apart, nb::arg("buffers"), nb::arg("which").none(), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
           "Parse the strings buffers[which[i]][starts[i]:stops[i]]; those of the first buffer if which is None.")
      .def("parse_list", &parse_list, nb::arg("records"), "Parse bytes objects.");
  m.def("write_examples", &write, nb::arg("features"), nb::arg("count"), "Serialize Examples: their bytes, and where each begins and ends.");
}

}  // namespace forebay_bindings
