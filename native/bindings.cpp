// The files of bindings alone know both Python and the kernels: they check lengths, release the interpreter's lock,
// and turn a kernel's "bad index" into an exception.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "kernels.hpp"

namespace nb = nanobind;

namespace {

using namespace forebay_bindings;

// A file that is open for as long as the object is there. Python's own opening leaves a moment in which an interrupt
// loses the number of a file that is open already.
class OpenedFile {
 public:
  explicit OpenedFile(nb::bytes path) {
    require(std::strlen(path.c_str()) == path.size(), "embedded null byte");
    do {
      number_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (number_ < 0 && errno == EINTR);
    if (number_ >= 0) return;
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
    throw nb::python_error();
  }
  ~OpenedFile() { close(); }
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

void gather_ranges(Bytes source, Ints starts, Ints stops, BytesOut out) {
  require(starts.size() == stops.size(), "starts and stops differ in length");
  std::ptrdiff_t bad = -1;
  {
    Released unlocked;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      total += static_cast<std::uint64_t>(stops.data()[i]) - static_cast<std::uint64_t>(starts.data()[i]);
    }
    require(total == out.size(), "out does not have the size of all ranges together");
    bad = forebay::gather_ranges(source.data(), static_cast<std::int64_t>(source.size()), starts.data(), stops.data(),
                                 starts.size(), out.data(), out.size());
  }
  check_index(bad, "range");
}

void permute(Ints positions, std::uint64_t size, std::uint64_t key0, std::uint64_t key1, IntsOut out) {
  require(positions.size() == out.size(), "positions and out differ in length");
  require(size > 0 && size <= std::uint64_t{1} << 63, "size must be in [1, 2**63]");
  const std::uint64_t key[2] = {key0, key1};
  std::ptrdiff_t bad = -1;
  {
    Released unlocked;
    bad = forebay::permute(positions.data(), positions.size(), size, key, out.data());
  }
  check_index(bad, "position");
}

void philox(std::uint64_t key0, std::uint64_t key1, std::uint64_t start, Array<std::uint64_t> out) {
  const std::uint64_t key[2] = {key0, key1};
  Released unlocked;
  forebay::philox(key, start, out.size(), out.data());
}

void exchange(IntsOut buffer, Ints slots, Ints incoming, IntsOut out) {
  require(slots.size() == incoming.size() && slots.size() == out.size(), "slots, incoming and out differ in length");
  std::ptrdiff_t bad = -1;
  {
    Released unlocked;
    bad = forebay::exchange(buffer.data(), buffer.size(), slots.data(), incoming.data(), slots.size(), out.data());
  }
  check_index(bad, "slot");
}

void drain(IntsOut buffer, Ints slots, IntsOut out) {
  require(slots.size() == out.size(), "slots and out differ in length");
  require(slots.size() <= buffer.size(), "more slots than the buffer has entries");
  std::ptrdiff_t bad = -1;
  {
    Released unlocked;
    bad = forebay::drain(buffer.data(), buffer.size(), slots.data(), slots.size(), out.data());
  }
  check_index(bad, "slot");
}

std::size_t keep_last(BytesOut seen, std::int64_t low, Ints slots, BytesOut kept) {
  require(kept.size() == (slots.size() + 7) / 8, "kept does not have a bit for every slot");
  Released unlocked;
  return forebay::keep_last(seen.data(), seen.size(), low, slots.data(), slots.size(), kept.data());
}

void read_rows(int file, std::int64_t offset, std::int64_t stride, Ints rows, BytesOut out) {
  require(rows.size() > 0 && out.size() % rows.size() == 0, "out does not hold a whole number of bytes per row");
  require(offset >= 0 && stride >= 0, "offset and stride must not be negative");
  const std::int64_t last = stride > 0 ? (INT64_MAX - offset - static_cast<std::int64_t>(out.size())) / stride : 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_index(rows.data()[i] < 0 || (stride > 0 && rows.data()[i] > last) ? static_cast<std::ptrdiff_t>(i) : -1, "row");
  }
  int error = 0;
  {
    Released unlocked;
    error = forebay::read_rows(file, offset, stride, out.size() / rows.size(), rows.data(), rows.size(), out.data());
  }
  raise_file_error(error);
}

void read_ranges(int file, Ints starts, Ints stops, BytesOut out) {
  require(check_ranges(starts, stops, INT64_MAX) == out.size(), "out is not as long as all ranges together");
  int error = 0;
  {
    Released unlocked;
    error = forebay::read_ranges(file, starts.data(), stops.data(), starts.size(), out.data());
  }
  raise_file_error(error);
}

// None if the file ends before.
nb::object read_checked(int file, std::int64_t offset, nb::object out) {
  const Contents bytes(out, true);
  require(offset >= 0 && bytes.size() <= static_cast<std::uint64_t>(INT64_MAX - offset), "there is no such place in a file");
  std::uint32_t checksum = 0;
  int error = 0;
  {
    Released unlocked;
    error = forebay::read_checked(file, offset, bytes.size(), bytes.data(), &checksum);
  }
  if (error == forebay::kEndOfFile) return nb::none();
  raise_file_error(error);
  return nb::int_(checksum);
}

void write_rows(int file, Ints rows, Bytes values) {
  require(rows.size() > 0 && values.size() > 0 && values.size() % rows.size() == 0,
          "values do not hold a whole number of bytes per row");
  const std::size_t row_bytes = values.size() / rows.size();
  const auto last = static_cast<std::int64_t>((static_cast<std::size_t>(INT64_MAX) - values.size()) / row_bytes);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_index(rows.data()[i] < 0 || rows.data()[i] > last ? static_cast<std::ptrdiff_t>(i) : -1, "row");
  }
  int error = 0;
  {
    Released unlocked;
    error = forebay::write_rows(file, row_bytes, rows.data(), rows.size(), values.data());
  }
  if (error != 0) {
    errno = error;
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
}

bool allocate_ahead(int file, std::int64_t offset, std::int64_t size) {
  require(offset >= 0 && size > 0 && size <= INT64_MAX - offset, "there is no such place in a file");
  Released unlocked;
  return forebay::allocate_ahead(file, offset, size);
}

bool free_range(int file, std::int64_t offset, std::int64_t size) {
  require(offset >= 0 && size > 0 && offset <= INT64_MAX - size, "there is no such place in a file");
  Released unlocked;
  return forebay::free_range(file, offset, size);
}

double queued_seconds() { return static_cast<double>(forebay::queued_nanoseconds()) * 1e-9; }

std::uintptr_t lock_holder() {
#if PY_VERSION_HEX < 0x030C0000
  return reinterpret_cast<std::uintptr_t>(_PyThreadState_UncheckedGet());
#else
  return 0;  // From 3.12 on a thread is told of itself only.
#endif
}

double seconds_of(clockid_t clock) {
  timespec now;
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Naps differ in length, and the lock is not asked for in between: who waits for it falls into step with whoever has it,
// and would then look at the same point of every call.
nb::tuple lock_wait(double nap, std::size_t naps, std::uintptr_t thread, int clock) {
  require(nap >= 0 && nap < 1 && naps < 1000, "nap must be in [0, 1), and there may not be a thousand");
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  Clock::time_point asked;
  std::int64_t queued = 0;
  std::size_t looks = 0, held = 0;
  {
    Released unlocked;
    Clock::time_point before = Clock::now();
    double used_before = seconds_of(clock);
    std::uint32_t chance = static_cast<std::uint32_t>(before.time_since_epoch().count());
    for (std::size_t i = 0; i < naps; ++i) {
      chance = chance * 1664525u + 1013904223u;
      std::this_thread::sleep_for(Seconds(nap * (0.5 + (chance >> 8) / static_cast<double>(1u << 24))));
      const bool has = lock_holder() == thread;
      const Clock::time_point now = Clock::now();
      const double used = seconds_of(clock);
      // A thread that had no processor, or nothing to do, says nothing.
      if (used - used_before > Seconds(now - before).count() / 2) {
        ++looks;
        held += has;
      }
      before = now;
      used_before = used;
    }
    queued = forebay::queued_nanoseconds();
    asked = Clock::now();
  }
  // Both clocks are read next to the lock: what else a thread waits for must not count.
  const Seconds waited = Clock::now() - asked;
  const double in_line = static_cast<double>(forebay::queued_nanoseconds() - queued) * 1e-9;
  return nb::make_tuple(waited.count() > in_line ? waited.count() - in_line : 0.0, in_line, looks, held);
}

// Whether all records that are named lie within `size` bytes, with a field of `width` bytes at `offset` in each.
void check_records(Ints places, std::size_t stride, std::size_t offset, std::size_t width, std::size_t size) {
  require(stride > 0 && offset <= stride && width <= stride - offset, "the field does not lie within a record");
  const std::size_t records = size / stride;
  for (std::size_t i = 0; i < places.size(); ++i) {
    check_index(static_cast<std::uint64_t>(places.data()[i]) < records ? -1 : static_cast<std::ptrdiff_t>(i), "place");
  }
}

void gather_rows(Bytes records, std::size_t stride, std::size_t offset, Ints places, BytesOut rows) {
  require(places.size() > 0 && rows.size() % places.size() == 0, "rows is not a whole number of bytes per place");
  const std::size_t width = rows.size() / places.size();
  check_records(places, stride, offset, width, records.size());
  Released unlocked;
  forebay::gather_rows(records.data() + offset, stride, places.data(), places.size(), width, rows.data());
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Forebay's kernels. They work on int64 and uint8 arrays in place and run without the interpreter's lock.";
  bind_errands(m);
  m.def("gather_ranges", &gather_ranges, nb::arg("source").noconvert(), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(), nb::arg("out").noconvert(),
        "Copy the byte ranges [starts[i], stops[i]) of source behind one another into out.");
  m.def("permute", &permute, nb::arg("positions").noconvert(), nb::arg("size"), nb::arg("key0"), nb::arg("key1"), nb::arg("out").noconvert(),
        "Write where each position of [0, size) goes under the bijection that the key selects.");
  m.def("philox", &philox, nb::arg("key0"), nb::arg("key1"), nb::arg("start"), nb::arg("out").noconvert(),
        "Write random words from number start on of the stream that the key names.");
  m.def("exchange", &exchange, nb::arg("buffer").noconvert(), nb::arg("slots").noconvert(), nb::arg("incoming").noconvert(), nb::arg("out").noconvert(),
        "For each slot in turn: move its entry to out and the incoming entry into the slot.");
  m.def("drain", &drain, nb::arg("buffer").noconvert(), nb::arg("slots").noconvert(), nb::arg("out").noconvert(),
        "For each slot in turn: move its entry to out and the last live entry into the slot.");
  m.def("keep_last", &keep_last, nb::arg("seen").noconvert(), nb::arg("low"), nb::arg("slots").noconvert(), nb::arg("kept").noconvert(),
        "Set the bit of every slot in kept that is the last of its number and has no bit in seen yet, which begins at low, and that bit; return how many there were.");
  m.def("read_rows", &read_rows, nb::arg("file"), nb::arg("offset"), nb::arg("stride"), nb::arg("rows").noconvert(), nb::arg("out").noconvert(),
        "Read rows of equal size from an open file, row r lying at offset + r * stride, into out.");
  m.def("write_rows", &write_rows, nb::arg("file"), nb::arg("rows").noconvert(), nb::arg("values").noconvert(),
        "Write rows of equal size to an open file, row r at r times that size.");
  m.def("read_ranges", &read_ranges, nb::arg("file"), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(), nb::arg("out").noconvert(),
        "Read the byte ranges [starts[i], stops[i]) of an open file behind one another into out.");
  nb::class_<OpenedFile>(m, "OpenedFile", "A file that is open to be read, until it is closed or nobody refers to it.")
      .def(nb::init<nb::bytes>(), nb::arg("path"))
      .def_prop_ro("number", &OpenedFile::number, "What the system knows it by; -1 once it is closed.")
      .def("close", &OpenedFile::close, "At once. May be called again.");
  m.def("allocate_ahead", &allocate_ahead, nb::arg("file"), nb::arg("offset"), nb::arg("size"),
        "Have the disk set that part of a file aside, whose size stays as it is; whether it has.");
  m.def("free_range", &free_range, nb::arg("file"), nb::arg("offset"), nb::arg("size"),
        "Give that part of a file back to the disk; whether it could be.");
  m.def("read_checked", &read_checked, nb::arg("file"), nb::arg("offset"), nb::arg("out"),
        "Fill out from that place of an open file on, and return the CRC-32C of what was read; None if the file ends before.");
  m.def("queued_seconds", &queued_seconds, "How long this thread could have run, had a processor been free; 0 where the system does not tell.");
  m.def("lock_wait", &lock_wait, nb::arg("nap"), nb::arg("naps"), nb::arg("thread"), nb::arg("clock"),
        "Sleep some naps without the interpreter's lock, ask for it, and return for how many seconds others kept it, for how many more no processor was free, behind how many naps the thread whose clock that is had been at work, and behind how many of these it had the lock.");
  m.def("lock_holder", &lock_holder, "A number for the thread that has the interpreter's lock, which is the one that asks; 0 where others cannot be told of it.");
  m.def("gather_rows", &gather_rows, nb::arg("records").noconvert(), nb::arg("stride"), nb::arg("offset"), nb::arg("places").noconvert(), nb::arg("rows").noconvert(),
        "Copy the field at `offset` of record places[i] into row i.");
  bind_images(m);
  bind_records(m);
  bind_text(m);
  // Parsers may live as long as the interpreter, in functions of modules: that is no leak.
  nb::set_leak_warnings(false);
}
