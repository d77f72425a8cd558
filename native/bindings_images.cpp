#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>

#include "bindings.hpp"
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
  nb::gil_scoped_release unlocked;
  forebay::resize(in.data(), in.shape(0), in.shape(1), in.shape(2), in.shape(3), rows, columns, out.data());
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
}

}  // namespace forebay_bindings
