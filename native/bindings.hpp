// What the files of bindings know of each other.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cxxabi.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "buffer.hpp"
#include "kernels.hpp"

namespace forebay_bindings {

template <class T>
using Array = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Bytes = Array<const std::uint8_t>;
using BytesOut = Array<std::uint8_t>;
using Ints = Array<const std::int64_t>;
using IntsOut = Array<std::int64_t>;
using Words = Array<const std::uint64_t>;

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

inline void check_index(std::ptrdiff_t bad, const char* what) {
  if (bad >= 0) throw std::out_of_range(std::string(what) + " " + std::to_string(bad) + " is out of range");
}

// Checks that all ranges lie within `size`; what they come to.
inline std::uint64_t check_ranges(const Ints& starts, const Ints& stops, std::uint64_t size) {
  require(starts.size() == stops.size(), "starts and stops differ in length");
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t start = starts.data()[i];
    const std::int64_t stop = stops.data()[i];
    const bool bad = start < 0 || stop < start || static_cast<std::uint64_t>(stop) > size;
    check_index(bad ? static_cast<std::ptrdiff_t>(i) : -1, "range");
    total += static_cast<std::uint64_t>(stop - start);
    require(total <= INT64_MAX, "the ranges are too long together");
  }
  return total;
}

// What a kernel says of a file, as an exception.
inline void raise_file_error(int error) {
  if (error == forebay::kEndOfFile) {
    PyErr_SetString(PyExc_EOFError, "the file ends before the row");
    throw nanobind::python_error();
  }
  if (error != 0) {
    errno = error;
    PyErr_SetFromErrno(PyExc_OSError);
    throw nanobind::python_error();
  }
}

// The bytes of anything that has some in one piece: bytes, memory views, arrays. Cheaper to get at than as an array,
// which counts where much is called for little.
class Contents {
 public:
  explicit Contents(nanobind::handle of, bool writable = false) {
    if (PyObject_GetBuffer(of.ptr(), &view_, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) throw nanobind::python_error();
  }
  ~Contents() { PyBuffer_Release(&view_); }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  std::uint8_t* data() const { return static_cast<std::uint8_t*>(view_.buf); }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_;
};

// Gives the interpreter's lock away for as long as it lives. When the interpreter ends meanwhile, a daemon thread that
// wants the lock back is told to exit there and then, by unwinding a stack on which nobody expects that, and which would
// end the process as a crash. It rests instead, until the process is gone.
class Released {
 public:
  Released() : thread_(PyEval_SaveThread()) {}
  ~Released() {
    try {
      PyEval_RestoreThread(thread_);
    } catch (abi::__forced_unwind&) {
      while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* thread_;
};

// Bytes that take longer to work on than others would take to get hold of the interpreter's lock meanwhile.
constexpr std::size_t kWorthUnlocking = 4096;

// Gives the interpreter's lock away while so many bytes are worked on, if they are worth it. A function that gives it
// away for an instant in every call seems to need it hardly at all, and is put on threads that then hold each other up.
class Unlocked {
 public:
  explicit Unlocked(std::size_t bytes) {
    if (bytes >= kWorthUnlocking) released_.emplace();
  }

 private:
  std::optional<Released> released_;
};

// An array of memory that goes back to where it came from with the last reference to the array.
template <class T>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>> array_of(T* data, std::size_t size, std::size_t bytes) {
  struct Lent {
    void* memory;
    std::size_t bytes;
  };
  nanobind::capsule owner(new Lent{data, bytes}, [](void* given) noexcept {
    const Lent* lent = static_cast<const Lent*>(given);
    forebay::give_memory(lent->memory, lent->bytes);
    delete lent;
  });
  return nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(data, {size}, owner);
}

// What a kernel has put into a buffer, without a copy.
template <class T>
nanobind::object handed_over(forebay::Buffer<T>& buffer, std::size_t size) {
  const auto [data, bytes] = buffer.release();
  nanobind::object array = nanobind::cast(array_of(data, size, bytes));
  // NumPy has two dtypes of 64 bits, which are equal and not the same; this is the other one.
  if constexpr (std::is_same_v<T, std::int64_t>) return array.attr("view")("int64");
  return array;
}

void bind_errands(nanobind::module_& m);
void bind_images(nanobind::module_& m);
void bind_records(nanobind::module_& m);
void bind_text(nanobind::module_& m);

}  // namespace forebay_bindings
