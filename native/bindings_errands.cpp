// What a thread without the interpreter does meanwhile, for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
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
#include "read_together.hpp"
#include "scattering.hpp"

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

using Checking = Handed<TogetherJob, BytesOut>;

Checking read_checked(nb::object errands, int file, std::int64_t offset, BytesOut out) {
  require(offset >= 0 && out.size() <= static_cast<std::uint64_t>(INT64_MAX - offset), "there is no such place in a file");
  auto job = std::make_shared<TogetherJob>(file, offset, out.size(), out.data());
  return Checking(std::move(errands), std::move(job), out);
}

// None if the file ends before.
nb::object checked(Checking& checking) {
  std::uint32_t checksum = 0;
  const int error = checking.finished(kPatience, [](TogetherJob& job) { job.help(); }).result(&checksum);
  if (error == kEndOfFile) return nb::none();
  raise_file_error(error);
  return nb::int_(checksum);
}

using Arranging = Handed<ArrangeJob, Ints, Ints, Ints, Ints, std::vector<BytesOut>, IntsOut>;

Arranging read_arranged(nb::object errands, int file, int direct, std::int64_t far, Ints starts, Ints rows, Ints widths, Ints offsets, unsigned known, std::size_t skipped, nb::list blocks, std::size_t block_rows, IntsOut checksums) {
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
  auto job = std::make_shared<ArrangeJob>(*nb::inst_ptr<Errands>(errands), FarFile{file, direct, far}, std::move(arrangement), checksums.data());
  return Arranging(std::move(errands), std::move(job), starts, rows, widths, offsets, std::move(kept), checksums);
}

// The order of a part is found in less time than it takes to look up again.
void arranged(Arranging& arranging) {
  raise_file_error(arranging.finished(std::chrono::milliseconds(1), [](ArrangeJob& job) { job.help(); }).error());
}

// Rows on their way to buckets of a file, and what keeps their memory there.
class Scatter {
 public:
  Scatter(nb::object errands, int file, std::int64_t far, std::int64_t offset, Ints widths, unsigned shift, std::size_t buckets, std::size_t stride, BytesOut memory)
      : errands_(std::move(errands)), memory_(std::move(memory)) {
    require(offset >= 0, "there is no such place in a file");
    require(shift < 64, "a word has 64 bits");
    require(buckets > 0 && (buckets & (buckets - 1)) == 0, "the number of buckets is not a power of two");
    require(widths.size() > 0 && widths.data()[0] == sizeof(std::uint64_t), "the first column is not of words");
    std::size_t row_bytes = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      require(widths.data()[i] >= 0 && static_cast<std::uint64_t>(widths.data()[i]) <= stride - std::min(stride, row_bytes), "a slot has room for at least one row");
      widths_.push_back(static_cast<std::size_t>(widths.data()[i]));
      row_bytes += widths_.back();
    }
    require(memory_.size() / stride > buckets, "there are no more slots than buckets");
    forebay::ScatterShape shape{widths_, shift, buckets, stride, memory_.size() / stride};
    work_ = std::make_unique<Scattering>(*nb::inst_ptr<Errands>(errands_), FarFile{file, -1, far}, offset, std::move(shape), memory_.data());
  }

  void add(nb::list fields) {
    require(fields.size() == widths_.size(), "there is not a field for every column");
    std::vector<Bytes> kept;
    std::vector<const std::uint8_t*> data;
    for (nb::handle each : fields) {
      kept.push_back(nb::cast<Bytes>(each, false));
      data.push_back(kept.back().data());
    }
    std::size_t left = kept[0].size() / sizeof(std::uint64_t);
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      require(kept[i].size() == left * widths_[i], "the columns differ in their numbers of rows");
    }
    require(reinterpret_cast<std::uintptr_t>(data[0]) % sizeof(std::uint64_t) == 0, "the words do not lie where words do");
    while (left > 0) {
      std::size_t done = 0;
      {
        Released unlocked;
        done = work_->add(data.data(), left, kPatience);
      }
      raise_file_error(work_->error());
      for (std::size_t i = 0; i < widths_.size(); ++i) data[i] += done * widths_[i];
      left -= done;
      if (left > 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  void finish() {
    while (true) {
      bool done = false;
      {
        Released unlocked;
        done = work_->finish(kPatience);
      }
      raise_file_error(work_->error());
      if (done) return;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  void begin_far(int direct) { work_->begin_far(direct); }
  std::int64_t end_with(std::size_t rows) const { return work_->end_with(rows); }
  std::int64_t end_at_last() const { return work_->end_at_last(); }
  std::size_t untaken() const { return work_->untaken(); }

  void take(IntsOut out) {
    require(out.size() == 4 * work_->untaken(), "there is not room for every piece");
    std::int64_t* to = out.data();
    for (const ScatteredPiece& piece : work_->take()) {
      for (const std::int64_t field : {piece.bucket, piece.offset, piece.rows, piece.checksum}) *to++ = field;
    }
  }

 private:
  nb::object errands_;
  BytesOut memory_;
  std::vector<std::size_t> widths_;
  // Last, so that nobody writes any more when its memory goes.
  std::unique_ptr<Scattering> work_;
};

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
  nb::class_<Checking>(m, "Checking", "A stretch of a file that is on its way, and its checksum.")
      .def("wait", &checked, "Help until it has come, and return the CRC-32C of it; None if the file ends before.");
  nb::class_<Arranging>(m, "Arranging", "Rows that are being read and put in order.")
      .def("wait", &arranged, "Help until that has been done. EOFError if the file is too short.");
  nb::class_<Scatter>(m, "Scattering", "Rows on their way to buckets of a file, which their words name.")
      .def(nb::init<nb::object, int, std::int64_t, std::int64_t, Ints, unsigned, std::size_t, std::size_t, BytesOut>(), nb::arg("errands"), nb::arg("file"), nb::arg("far"), nb::arg("offset"), nb::arg("widths").noconvert(), nb::arg("shift"), nb::arg("buckets"), nb::arg("stride"), nb::arg("memory").noconvert())
      .def("add", &Scatter::add, nb::arg("fields"), "Add rows: the bytes of their words, then those of every column. OSError if what was added before could not be written.")
      .def("finish", &Scatter::finish, "Returns once everything has been written; no more may be added.")
      .def("begin_far", &Scatter::begin_far, nb::arg("direct"), "Write what is far by this descriptor, past the page cache, and not like everything else.")
      .def("end_with", &Scatter::end_with, nb::arg("rows"), "Where the file ends at most while so many more rows are added.")
      .def("end_at_last", &Scatter::end_at_last, "Where it ends at most if there are no more.")
      .def_prop_ro("untaken", &Scatter::untaken, "How many pieces have been written that were not taken.")
      .def("take", &Scatter::take, nb::arg("out").noconvert(), "Their buckets, offsets, numbers of rows and CRC-32C, one after another.");
  nb::class_<Errands>(m, "Errands", "A thread that does one thing after another, without the interpreter.")
      .def(nb::init<>())
      .def("read", &read, nb::arg("file"), nb::arg("offset"), nb::arg("data").noconvert(), nb::arg("held"), nb::arg("starts").noconvert(), nb::arg("stops").noconvert(),
           "Have data[held:] read from there on, and starts and stops of the TFRecords in data filled in.")
      .def("read_checked", &read_checked, nb::arg("file"), nb::arg("offset"), nb::arg("out").noconvert(),
           "Have out filled from that place of a file on. The file has to stay open until that has been waited for.")
      .def("read_arranged", &read_arranged, nb::arg("file"), nb::arg("direct"), nb::arg("far"), nb::arg("starts").noconvert(), nb::arg("rows").noconvert(), nb::arg("widths").noconvert(), nb::arg("offsets").noconvert(), nb::arg("known"), nb::arg("skipped"), nb::arg("blocks"), nb::arg("block_rows"), nb::arg("checksums").noconvert(),
           "Have pieces of a file read, past the page cache where they are far, each the words of its rows and behind them the values of every column of these widths, and the rows put into blocks in the order of their words, whose first bits are known, without those that are skipped; the CRC-32C of each piece to checksums.")
      .def("close", &close_file, nb::arg("file"), "Have a file closed.")
      .def("allow", &Errands::allow, nb::arg("threads"), "Let there be so many threads instead of one: for what waits for a disk.")
      .def("settle", &Errands::settle, nb::call_guard<Released>(), "Returns once everything that was asked for before is done.")
      .def("stop", &Errands::stop, nb::call_guard<Released>(), "End the thread. What is asked for later starts another.");
}

}  // namespace forebay_bindings
