// TFRecord and tf.train.Example for Python. Arrays that kernels made are handed over without a copy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "example.hpp"
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

std::uint32_t checksum(Bytes data, bool portable) {
  nb::gil_scoped_release unlocked;
  return portable ? crc32c_portable(data.data(), data.size()) : crc32c(data.data(), data.size());
}

std::tuple<std::size_t, std::size_t, int, std::int64_t> scan(Bytes data, bool verify, IntsOut starts, IntsOut stops) {
  require(starts.size() == stops.size(), "starts and stops differ in length");
  nb::gil_scoped_release unlocked;
  const Scan found = scan_records(data.data(), data.size(), starts.size(), verify, starts.data(), stops.data());
  return {found.rows, found.consumed, static_cast<int>(found.stop), found.length};
}

std::ptrdiff_t find(Bytes data, std::size_t from, std::uint64_t longest) {
  nb::gil_scoped_release unlocked;
  return find_header(data.data(), data.size(), from, longest);
}

void frame(Bytes data, Ints offsets, BytesOut out) {
  check_offsets(offsets, data.size());
  const std::size_t count = offsets.size() - 1;
  const auto bytes = static_cast<std::size_t>(offsets.data()[count] - offsets.data()[0]);
  require(out.size() == bytes + count * kFraming, "out does not have the size of all records with their framing");
  nb::gil_scoped_release unlocked;
  frame_records(data.data(), offsets.data(), count, out.data());
}

// Ranges that lie in the data.
void check_ranges(Ints starts, Ints stops, std::size_t size) {
  require(starts.size() == stops.size(), "starts and stops differ in length");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t start = starts.data()[i];
    const std::int64_t stop = stops.data()[i];
    require(start >= 0 && stop >= start && static_cast<std::uint64_t>(stop) <= size, "a range goes beyond the data");
  }
}

// One bytes object for each string, copied once.
nb::list split(Bytes data, Ints starts, Ints stops) {
  check_ranges(starts, stops, data.size());
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(starts.size())));
  if (!list.is_valid()) throw nb::python_error();
  const char* bytes = reinterpret_cast<const char*>(data.data());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t start = starts.data()[i];
    PyObject* item = PyBytes_FromStringAndSize(bytes + start, static_cast<Py_ssize_t>(stops.data()[i] - start));
    if (item == nullptr) throw nb::python_error();
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), item);
  }
  return nb::cast<nb::list>(list);
}

template <class T>
nb::object handed_over(Buffer<T>& buffer) {
  const std::size_t size = buffer.size();
  T* data = buffer.release();
  nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
  nb::object array = nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
  // NumPy has two dtypes of 64 bits, which are equal and not the same; this is the other one.
  if constexpr (std::is_same_v<T, std::int64_t>) return array.attr("view")("int64");
  return array;
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
Parser make_parser(nb::list features, bool sequences) {
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
  return Parser(std::move(wanted), sequences);
}

// (values, lengths or None, steps or None) of each feature; the values of strings are (bytes, offsets). Then the fault:
// (code, row, feature, found), code 0 if there is none.
nb::tuple columns_of(const Parser& parser, const std::vector<Span>& rows) {
  std::vector<Values> out;
  Fault fault;
  {
    nb::gil_scoped_release unlocked;
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

nb::tuple parse_column(const Parser& parser, Bytes data, Ints starts, Ints stops) {
  check_ranges(starts, stops, data.size());
  std::vector<Span> rows(starts.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t start = starts.data()[i];
    rows[i] = {data.data() + start, static_cast<std::size_t>(stops.data()[i] - start)};
  }
  return columns_of(parser, rows);
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
    nb::gil_scoped_release unlocked;
    write_examples(written, count, out, ends);
  }
  nb::object offsets = offsets_from(ends);
  return nb::make_tuple(handed_over(out), offsets);
}

}  // namespace

void bind_records(nb::module_& m) {
  m.def("crc32c", &checksum, nb::arg("data").noconvert(), nb::arg("portable") = false, "The CRC-32C of the data.");
  m.def("scan_records", &scan, nb::arg("data").noconvert(), nb::arg("verify"), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
        "Find whole TFRecords: how many, how many bytes they take, why it stopped, and the length of the next.");
  m.def("find_header", &find, nb::arg("data").noconvert(), nb::arg("start"), nb::arg("longest"),
        "Where from start on a TFRecord's length stands that matches its checksum; -1 if nowhere.");
  m.def("frame_records", &frame, nb::arg("data").noconvert(), nb::arg("offsets").noconvert(), nb::arg("out").noconvert(),
        "Write the strings data[offsets[i]:offsets[i + 1]] as TFRecords to out.");
  m.def("split_bytes", &split, nb::arg("data").noconvert(), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
        "A bytes object for each string data[starts[i]:stops[i]].");
  nb::class_<Parser>(m, "Parser", "Features that are wanted of serialized Examples.")
      .def("__init__", [](Parser* self, nb::list features, bool sequences) { new (self) Parser(make_parser(features, sequences)); },
           nb::arg("features"), nb::arg("sequences"))
      .def("parse_column", &parse_column, nb::arg("data").noconvert(), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
           "Parse the strings data[starts[i]:stops[i]].")
      .def("parse_list", &parse_list, nb::arg("records"), "Parse bytes objects.");
  m.def("write_examples", &write, nb::arg("features"), nb::arg("count"), "Serialize Examples: their bytes, and where each begins and ends.");
}

}  // namespace forebay_bindings
