// What a thread without the interpreter does meanwhile, for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "bindings.hpp"
#include "errands.hpp"
#include "read_ahead.hpp"

namespace nb = nanobind;

namespace forebay_bindings {
namespace {

using namespace forebay;

// Who waits looks up so often, since a Ctrl-C may have come.
constexpr std::chrono::milliseconds kPatience{100};

// A job on its way, and what keeps its memory there: as long as it may be at work, this waits to be destroyed.
template <class Kind, class... Kept>
class Handed {
 public:
  Handed(nb::object errands, std::shared_ptr<Kind> job, Kept... kept)
      : errands_(std::move(errands)), kept_(std::move(kept)...), job_(std::move(job)) {
    thread().add(job_);
  }
  ~Handed() {
    while (job_ && !thread().withdraw(*job_)) thread().finish(*job_, kPatience);
  }
  Handed(Handed&& other) noexcept = default;
  Handed(const Handed&) = delete;
  Handed& operator=(const Handed&) = delete;

  bool is_done() { return thread().is_done(*job_); }

  const Kind& finished() {
    while (true) {
      bool done = false;
      {
        Released unlocked;
        done = thread().finish(*job_, kPatience);
      }
      if (done) break;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    raise_file_error(job_->error);
    return *job_;
  }

 private:
  Errands& thread() { return *nb::inst_ptr<Errands>(errands_); }

  nb::object errands_;
  std::tuple<Kept...> kept_;
  std::shared_ptr<Kind> job_;
};

using Coming = Handed<ReadJob, BytesOut, IntsOut, IntsOut>;

Coming read(nb::object errands, int file, std::int64_t offset, BytesOut data, std::size_t held, IntsOut starts, IntsOut stops) {
  require(held <= data.size(), "more is held than there is room for");
  require(starts.size() == stops.size(), "starts and stops differ in length");
  auto job = std::make_shared<ReadJob>(file, offset, data.data(), held, data.size(), starts.size(), starts.data(), stops.data());
  return Coming(std::move(errands), std::move(job), data, starts, stops);
}

// How many bytes there were, and in how many bytes how many whole good records.
std::tuple<std::size_t, std::size_t, std::size_t> wait(Coming& coming) {
  const ReadJob& job = coming.finished();
  return {job.got, job.found.rows, job.found.consumed};
}

struct WriteJob : Job {
  WriteJob(int file, std::int64_t offset, Bytes& source, Ints& starts, Ints& stops, IntsOut& checksums)
      : file(file), offset(offset), source(source.data()), starts(starts.data()), stops(stops.data()), count(starts.size()), checksums(checksums.data()) {}
  void run() override { error = write_pieces(file, offset, source, starts, stops, count, checksums); }

  int file;
  std::int64_t offset;
  const std::uint8_t* source;
  const std::int64_t* starts;
  const std::int64_t* stops;
  std::size_t count;
  std::int64_t* checksums;
  int error = 0;
};

using Writing = Handed<WriteJob, Bytes, Ints, Ints, IntsOut>;

Writing write(nb::object errands, int file, std::int64_t offset, Bytes source, Ints starts, Ints stops, IntsOut checksums) {
  const std::uint64_t total = check_ranges(starts, stops, source.size());
  require(offset >= 0 && total <= static_cast<std::uint64_t>(INT64_MAX - offset), "there is no such place in a file");
  require(checksums.size() == starts.size(), "there is not a checksum for every range");
  auto job = std::make_shared<WriteJob>(file, offset, source, starts, stops, checksums);
  return Writing(std::move(errands), std::move(job), source, starts, stops, checksums);
}

struct OrderJob : Job {
  OrderJob(int file, Ints& starts, Ints& stops, BytesOut& out, IntsOut& checksums, std::size_t width, unsigned known, IntsOut& order)
      : file(file), starts(starts.data()), stops(stops.data()), count(starts.size()), out(out.data()), checksums(checksums.data()), width(width), known(known), order(order.data()), rows(order.size()) {}
  void run() override {
    error = read_pieces(file, starts, stops, count, out, checksums);
    if (error == 0) order_records(out, width, rows, known, order);
  }

  int file;
  const std::int64_t* starts;
  const std::int64_t* stops;
  std::size_t count;
  std::uint8_t* out;
  std::int64_t* checksums;
  std::size_t width;
  unsigned known;
  std::int64_t* order;
  std::size_t rows;
  int error = 0;
};

using Ordering = Handed<OrderJob, Ints, Ints, BytesOut, IntsOut, IntsOut>;

Ordering read_ordered(nb::object errands, int file, Ints starts, Ints stops, BytesOut out, IntsOut checksums, std::size_t width, unsigned known, IntsOut order) {
  require(check_ranges(starts, stops, INT64_MAX) == out.size(), "out is not as long as all ranges together");
  require(checksums.size() == starts.size(), "there is not a checksum for every range");
  require(width >= sizeof(std::uint64_t) && out.size() % width == 0 && out.size() / width == order.size(), "order is not as long as there are records");
  require(known <= 64, "a word has 64 bits");
  auto job = std::make_shared<OrderJob>(file, starts, stops, out, checksums, width, known, order);
  return Ordering(std::move(errands), std::move(job), starts, stops, out, checksums, order);
}

}  // namespace

void bind_errands(nb::module_& m) {
  nb::class_<Coming>(m, "Coming", "A stretch of a file that is on its way.")
      .def("wait", &wait, "How many bytes came, how many records are in all of them, and how many bytes these take.");
  nb::class_<Writing>(m, "Writing", "Pieces that are being written.")
      .def_prop_ro("done", &Writing::is_done)
      .def("wait", [](Writing& writing) { writing.finished(); }, "Returns once they have been written. OSError if they could not be.");
  nb::class_<Ordering>(m, "Ordering", "Records that are being read and put in order.")
      .def("wait", [](Ordering& ordering) { ordering.finished(); }, "Returns once that has been done. EOFError if the file is too short.");
  nb::class_<Errands>(m, "Errands", "A thread that does one thing after another, without the interpreter.")
      .def(nb::init<>())
      .def("read", &read, nb::arg("file"), nb::arg("offset"), nb::arg("data").noconvert(), nb::arg("held"), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
           "Have data[held:] read from there on, and starts and stops of the TFRecords in data filled in.")
      .def("write", &write, nb::arg("file"), nb::arg("offset"), nb::arg("source").noconvert(), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(), nb::arg("checksums").noconvert(),
           "Have the ranges [starts[i], stops[i]) of source written behind one another from there on, and their CRC-32C to checksums.")
      .def("read_ordered", &read_ordered, nb::arg("file"), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(), nb::arg("out").noconvert(), nb::arg("checksums").noconvert(), nb::arg("width"), nb::arg("known"), nb::arg("order").noconvert(),
           "Have ranges of a file read as by read_pieces, and the order of the records of that width in them by the words that they begin with, whose first bits are known, filled in.")
      .def("stop", &Errands::stop, nb::call_guard<Released>(), "End the thread. What is asked for later starts another.");
}

}  // namespace forebay_bindings
