#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bindings.hpp"
#include "flip.hpp"
#include "jpeg.hpp"
#include "resize.hpp"

namespace nb = nanobind;

namespace {

template <typename T>
using Images = nb::ndarray<T, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Starts = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Weights = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

forebay::Taps taps(const Starts& starts, const Weights& weights, std::size_t size, std::size_t count) {
  if (weights.shape(0) != starts.size() || starts.size() != count) {
    throw std::invalid_argument("starts, weights and the image made differ in length");
  }
  if (weights.shape(1) == 0 || weights.shape(1) > size) throw std::invalid_argument("more weights than pixels");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t start = starts.data()[i];
    if (start < 0 || static_cast<std::uint64_t>(start) > size - weights.shape(1)) {
      throw std::out_of_range("weights reach beyond the image");
    }
  }
  return {starts.data(), weights.data(), starts.size(), weights.shape(1)};
}

template <typename In, typename Out>
void resize(Images<const In> in, Starts row_starts, Weights row_weights, Starts column_starts, Weights column_weights,
            Images<Out> out) {
  if (out.shape(0) != in.shape(0) || out.shape(3) != in.shape(3)) {
    throw std::invalid_argument("as many images and channels go in as come out");
  }
  const forebay::Taps rows = taps(row_starts, row_weights, in.shape(1), out.shape(1));
  const forebay::Taps columns = taps(column_starts, column_weights, in.shape(2), out.shape(2));
  forebay_bindings::Released unlocked;
  forebay::resize(in.data(), in.shape(0), in.shape(1), in.shape(2), in.shape(3), rows, columns, out.data());
}

// Any values in any order in memory, which cannot all be had as arrays of nanobind's.
class Strided {
 public:
  Strided(nb::handle of, int flags) {
    if (PyObject_GetBuffer(of.ptr(), &view_, flags) != 0) throw nb::python_error();
  }
  ~Strided() { PyBuffer_Release(&view_); }
  Strided(const Strided&) = delete;
  Strided& operator=(const Strided&) = delete;

  const Py_buffer* operator->() const { return &view_; }

 private:
  Py_buffer view_;
};

void flip(nb::handle images, nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu> marks,
          bool upside_down, nb::handle out) {
  const Strided from(images, PyBUF_STRIDES);
  const Strided to(out, PyBUF_WRITABLE | PyBUF_ND);
  if (from->ndim != 4 || to->ndim != 4) throw std::invalid_argument("images have four axes");
  forebay::ImageView view{static_cast<const std::uint8_t*>(from->buf), {}, {}, static_cast<std::size_t>(from->itemsize)};
  for (int axis = 0; axis < 4; ++axis) {
    if (from->shape[axis] != to->shape[axis]) throw std::invalid_argument("images and out differ in shape");
    view.shape[axis] = static_cast<std::size_t>(from->shape[axis]);
    view.strides[axis] = from->strides[axis];
  }
  if (from->itemsize != to->itemsize) throw std::invalid_argument("images and out differ in dtype");
  if (marks.size() != view.shape[0]) throw std::invalid_argument("there is a mark for every image");
  const forebay_bindings::Unlocked unlocked(static_cast<std::size_t>(to->len));
  forebay::flip(view, reinterpret_cast<const std::uint8_t*>(marks.data()), upside_down,
                static_cast<std::uint8_t*>(to->buf));
}

using Size = std::pair<std::size_t, std::size_t>;

// Sizes of the planes of brightness and of colours, if the image is of a kind that is decoded here.
std::optional<std::pair<Size, Size>> decode(forebay::JpegPlanes& planes, nb::bytes data, unsigned ratio, bool grey,
                                            std::size_t max_pixels) {
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) throw std::invalid_argument("ratio is 1, 2, 4 or 8");
  const std::uint8_t* const bytes = static_cast<const std::uint8_t*>(data.data());
  const std::size_t size = data.size();
  forebay_bindings::Released unlocked;
  if (!planes.decode(bytes, size, ratio, grey, max_pixels)) return std::nullopt;
  const forebay::Plane& first = planes.plane(0);
  const forebay::Plane& last = planes.plane(planes.planes() - 1);
  return std::pair{Size{first.height, first.width}, Size{last.height, last.width}};
}

template <typename Out>
void resize_planes(forebay::JpegPlanes& planes, Starts row_starts, Weights row_weights, Starts column_starts,
                   Weights column_weights, Starts colour_row_starts, Weights colour_row_weights,
                   Starts colour_column_starts, Weights colour_column_weights,
                   nb::ndarray<Out, nb::ndim<3>, nb::c_contig, nb::device::cpu> out) {
  if (planes.planes() == 0) throw std::invalid_argument("nothing has been decoded");
  if (out.shape(2) != 1 && out.shape(2) != 3) throw std::invalid_argument("images have 1 or 3 channels");
  const forebay::Plane& first = planes.plane(0);
  const forebay::Plane& last = planes.plane(planes.planes() - 1);
  const forebay::Taps rows = taps(row_starts, row_weights, first.height, out.shape(0));
  const forebay::Taps columns = taps(column_starts, column_weights, first.width, out.shape(1));
  const forebay::Taps colour_rows = taps(colour_row_starts, colour_row_weights, last.height, out.shape(0));
  const forebay::Taps colour_columns = taps(colour_column_starts, colour_column_weights, last.width, out.shape(1));
  forebay_bindings::Released unlocked;
  planes.resize(rows, columns, colour_rows, colour_columns, out.shape(2), out.data());
}

}  // namespace

namespace forebay_bindings {

void bind_images(nb::module_& m) {
  // Arrays of another dtype must not be converted on the way in: the result would be written to a copy.
  const auto in = nb::arg("images").noconvert();
  const auto out = nb::arg("out").noconvert();
  const nb::arg a("row_starts"), b("row_weights"), c("column_starts"), d("column_weights");
  m.def("resize", &resize<std::uint8_t, std::uint8_t>, in, a, b, c, d, out);
  m.def("resize", &resize<std::uint8_t, float>, in, a, b, c, d, out);
  m.def("resize", &resize<float, std::uint8_t>, in, a, b, c, d, out);
  m.def("resize", &resize<float, float>, in, a, b, c, d, out);
  m.def("flip", &flip, nb::arg("images"), nb::arg("marks").noconvert(), nb::arg("upside_down"), nb::arg("out"));
  const nb::arg e("colour_row_starts"), f("colour_row_weights"), g("colour_column_starts"), h("colour_column_weights");
  nb::class_<forebay::JpegPlanes>(m, "JpegPlanes")
      .def(nb::init<>())
      .def("decode", &decode, nb::arg("data"), nb::arg("ratio"), nb::arg("grey"), nb::arg("max_pixels"))
      .def("resize", &resize_planes<std::uint8_t>, a, b, c, d, e, f, g, h, out)
      .def("resize", &resize_planes<float>, a, b, c, d, e, f, g, h, out);
}

}  // namespace forebay_bindings
