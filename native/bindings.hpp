// What the files of bindings know of each other.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "buffer.hpp"

namespace forebay_bindings {

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
  std::optional<nanobind::gil_scoped_release> released_;
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

void bind_images(nanobind::module_& m);
void bind_records(nanobind::module_& m);
void bind_text(nanobind::module_& m);

}  // namespace forebay_bindings
