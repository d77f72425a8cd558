// What a thread without the interpreter does meanwhile, for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <unistd.h>

#include "arranged.hpp"
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

  // The job, once it is done; whoever waits may `help` meanwhile.
  template <class Help>
  const Kind& finished(std::chrono::milliseconds patience, Help help) {
    while (true) {
      bool done = false;
      {
        Released unlocked;
        help(*job_);
        done = thread().finish(*job_, patience);
      }
      if (done) return *job_;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  const Kind& finished() {
    finished(kPatience, [](Kind&) {});
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
  WriteJob(int file, std::int64_t offset, Bytes& source, Ints& starts, Ints& stops, std::size_t together, IntsOut& checksums)
      : file(file), offset(offset), source(source.data()), starts(starts.data()), stops(stops.data()), count(starts.size()), together(together), checksums(checksums.data()) {}
  void run() override { error = write_pieces(file, offset, source, starts, stops, count, together, checksums); }

  int file;
  std::int64_t offset;
  const std::uint8_t* source;
  const std::int64_t* starts;
  const std::int64_t* stops;
  std::size_t count;
  std::size_t together;
  std::int64_t* checksums;
  int error = 0;
};

using Writing = Handed<WriteJob, Bytes, Ints, Ints, IntsOut>;

Writing write(nb::object errands, int file, std::int64_t offset, Bytes source, Ints starts, Ints stops, IntsOut checksums) {
  const std::uint64_t total = check_ranges(starts, stops, source.size());
  require(offset >= 0 && total <= static_cast<std::uint64_t>(INT64_MAX - offset), "there is no such place in a file");
  require(checksums.size() > 0 && starts.size() > 0 && starts.size() % checksums.size() == 0, "there is not a checksum for every piece");
  auto job = std::make_shared<WriteJob>(file, offset, source, starts, stops, starts.size() / checksums.size(), checksums);
  return Writing(std::move(errands), std::move(job), source, starts, stops, checksums);
}

using Arranging = Handed<ArrangeJob, Ints, Ints, Ints, Ints, std::vector<BytesOut>, IntsOut>;

Arranging read_arranged(nb::object errands, int file, Ints starts, Ints rows, Ints widths, Ints offsets, unsigned known, std::size_t skipped, nb::list blocks, std::size_t block_rows, IntsOut checksums) {
  require(starts.size() == rows.size() && starts.size() == checksums.size(), "starts, rows and checksums differ in length");
  require(widths.size() == offsets.size(), "widths and offsets differ in length");
  require(known <= 64, "a word has 64 bits");
  require(block_rows > 0, "a block has at least one row");
  // Each small enough that no sum or product below overflows.
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  std::int64_t row_bytes = sizeof(std::uint64_t);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    require(widths.data()[i] >= 0 && widths.data()[i] < kMost, "there is no such width");
    row_bytes += widths.data()[i];
    require(row_bytes < kMost, "the rows are too wide");
  }
  std::int64_t total = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    require(rows.data()[i] >= 0 && rows.data()[i] < kMost, "there are no so many rows in a piece");
    require(starts.data()[i] >= 0 && starts.data()[i] <= INT64_MAX - rows.data()[i] * row_bytes, "there is no such place in a file");
    total += rows.data()[i];
    require(total < kMost, "there are too many rows");
  }
  require(skipped < static_cast<std::size_t>(total) && block_rows < kMost, "there are no such rows");
  const std::size_t wanted = static_cast<std::size_t>(total) - skipped;
  require(blocks.size() == (wanted + block_rows - 1) / block_rows, "there is not a block for all rows");
  std::vector<BytesOut> kept;
  std::vector<std::uint8_t*> data;
  for (nb::handle each : blocks) {
    kept.push_back(nb::cast<BytesOut>(each, false));
    data.push_back(kept.back().data());
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::uint64_t column = static_cast<std::uint64_t>(widths.data()[i]) * block_rows;
      const std::int64_t offset = offsets.data()[i];
      require(offset >= 0 && column <= kept.back().size() && static_cast<std::uint64_t>(offset) <= kept.back().size() - column, "a column does not lie within its block");
    }
  }
  Arrangement arrangement{starts.data(), rows.data(), starts.size(), widths.data(), offsets.data(), widths.size(), known, skipped, std::move(data), block_rows};
  auto job = std::make_shared<ArrangeJob>(file, std::move(arrangement), checksums.data());
  return Arranging(std::move(errands), std::move(job), starts, rows, widths, offsets, std::move(kept), checksums);
}

// The order of a part is found in less time than it takes to look up again.
void arranged(Arranging& arranging) {
  raise_file_error(arranging.finished(std::chrono::milliseconds(1), [](ArrangeJob& job) { job.help(); }).error());
}

// Frees what the file takes on the disk, if it has no name: of one that is large, a second or so.
struct CloseJob : Job {
  explicit CloseJob(int file) : file(file) {}
  void run() override { ::close(file); }

  int file;
};

void close_file(Errands& errands, int file) {
  if (!errands.add(std::make_shared<CloseJob>(file))) ::close(file);
}

}  // namespace

void bind_errands(nb::module_& m) {
  nb::class_<Coming>(m, "Coming", "A stretch of a file that is on its way.")
      .def("wait", &wait, "How many bytes came, how many records are in all of them, and how many bytes these take.");
  nb::class_<Writing>(m, "Writing", "Pieces that are being written.")
      .def_prop_ro("done", &Writing::is_done)
      .def("wait", [](Writing& writing) { writing.finished(); }, "Returns once they have been written. OSError if they could not be.");
  nb::class_<Arranging>(m, "Arranging", "Rows that are being read and put in order.")
      .def("wait", &arranged, "Help until that has been done. EOFError if the file is too short.");
  nb::class_<Errands>(m, "Errands", "A thread that does one thing after another, without the interpreter.")
      .def(nb::init<>())
      .def("read", &read, nb::arg("file"), nb::arg("offset"), nb::arg("data").noconvert(), nb::arg("held"), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
           "Have data[held:] read from there on, and starts and stops of the TFRecords in data filled in.")
      .def("write", &write, nb::arg("file"), nb::arg("offset"), nb::arg("source").noconvert(), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(), nb::arg("checksums").noconvert(),
           "Have the ranges [starts[i], stops[i]) of source written behind one another from there on, and the CRC-32C of every so many, which are a piece, to checksums.")
      .def("read_arranged", &read_arranged, nb::arg("file"), nb::arg("starts").noconvert(), nb::arg("rows").noconvert(), nb::arg("widths").noconvert(), nb::arg("offsets").noconvert(), nb::arg("known"), nb::arg("skipped"), nb::arg("blocks"), nb::arg("block_rows"), nb::arg("checksums").noconvert(),
           "Have pieces of a file read, each the words of its rows and behind them the values of every column of these widths, and the rows put into blocks in the order of their words, whose first bits are known, without those that are skipped; the CRC-32C of each piece to checksums.")
      .def("close", &close_file, nb::arg("file"), "Have a file closed.")
      .def("settle", &Errands::settle, nb::call_guard<Released>(), "Returns once everything that was asked for before is done.")
      .def("stop", &Errands::stop, nb::call_guard<Released>(), "End the thread. What is asked for later starts another.");
}

}  // namespace forebay_bindings
