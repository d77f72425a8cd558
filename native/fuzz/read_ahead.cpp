// Stretches of a file read ahead by one thread and asked for by two others, who help with some, for a sanitizer that
// watches threads.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "arranged.hpp"
#include "crc32c.hpp"
#include "read_ahead.hpp"
#include "read_together.hpp"

namespace {

using forebay::Errands;
using forebay::ReadJob;
using forebay::TogetherJob;

constexpr std::size_t kSize = 1 << 16;
constexpr std::size_t kRecord = 1000;

struct Asked {
  std::vector<std::uint8_t> data = std::vector<std::uint8_t>(kSize);
  std::vector<std::int64_t> starts = std::vector<std::int64_t>(kSize / kRecord);
  std::vector<std::int64_t> stops = starts;
  std::shared_ptr<ReadJob> job;
};

std::unique_ptr<Asked> ask(Errands& ahead, int file) {
  auto asked = std::make_unique<Asked>();
  asked->job = std::make_shared<ReadJob>(file, 0, asked->data.data(), 0, kSize, asked->starts.size(),
                                         asked->starts.data(), asked->stops.data());
  ahead.add(asked->job);
  return asked;
}

bool is_right(Errands& ahead, const Asked& asked) {
  while (!ahead.finish(*asked.job, std::chrono::milliseconds(1))) {
  }
  return asked.job->error == 0 && asked.job->got == kSize && asked.job->found.rows == kSize / (kRecord + 16) &&
         asked.stops[0] - asked.starts[0] == static_cast<std::int64_t>(kRecord);
}

// Asks for several, and ends the thread in between if it `stops`.
bool is_used(Errands& ahead, int file, bool stops) {
  std::vector<std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 20; ++i) asked.push_back(ask(ahead, file));
  if (stops) ahead.stop();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    // From the back, so that some have not been begun with; every fourth is not wanted any more.
    const Asked& each = *asked[asked.size() - 1 - i];
    if (i % 4 == 3) {
      while (!ahead.withdraw(*each.job)) ahead.finish(*each.job, std::chrono::milliseconds(1));
    } else if (!is_right(ahead, each)) {
      return false;
    }
  }
  return true;
}

// A large stretch that whoever asks reads together with the thread.
bool is_read_together(Errands& ahead, int file, const std::vector<std::uint8_t>& data) {
  std::vector<std::uint8_t> out(data.size());
  std::uint32_t checksum = 0;
  const auto job = std::make_shared<TogetherJob>(file, 0, out.size(), out.data());
  ahead.add(job);
  job->help();
  while (!ahead.finish(*job, std::chrono::milliseconds(1))) continue;
  const int error = job->result(&checksum);
  return error == 0 && out == data && checksum == forebay::crc32c(data.data(), data.size());
}

// Rows of 1 KiB in pieces, whose words say that they belong in the opposite order.
bool is_arranged(Errands& ahead, forebay::FarFile file, std::size_t pieces) {
  constexpr std::size_t kRows = 100;
  constexpr std::int64_t kWidth = 1024;
  const std::int64_t offset = 0;
  const std::size_t total = pieces * kRows;
  std::vector<std::int64_t> starts, rows(pieces, kRows), checksums(pieces);
  for (std::size_t i = 0; i < pieces; ++i) starts.push_back(static_cast<std::int64_t>(i * kRows * (kWidth + 8)));
  std::vector<std::uint8_t> block(total * kWidth);
  forebay::Arrangement wanted{starts.data(), rows.data(), pieces, &kWidth, &offset, 1, 0, 0, {block.data()}, total};
  const auto job = std::make_shared<forebay::ArrangeJob>(ahead, file, wanted, checksums.data());
  ahead.add(job);
  do job->help();
  while (!ahead.finish(*job, std::chrono::milliseconds(1)));
  for (std::size_t i = 0; i < total; ++i) {
    if (block[i * kWidth] != (total - 1 - i) % 251 || block[(i + 1) * kWidth - 1] != block[i * kWidth]) return false;
  }
  return job->error() == 0;
}

std::FILE* file_of(const std::vector<std::uint8_t>& data) {
  std::FILE* file = std::tmpfile();
  if (file == nullptr) std::exit(2);
  std::fwrite(data.data(), 1, data.size(), file);
  std::fflush(file);
  return file;
}

// What is_arranged reads.
std::vector<std::uint8_t> arranged_pieces(std::size_t pieces) {
  constexpr std::size_t kRows = 100;
  std::vector<std::uint8_t> data;
  for (std::size_t i = 0; i < pieces; ++i) {
    for (std::size_t row = i * kRows; row < (i + 1) * kRows; ++row) {
      const std::uint64_t word = (pieces * kRows - row) << 40;
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(&word);
      data.insert(data.end(), bytes, bytes + sizeof word);
    }
    for (std::size_t row = i * kRows; row < (i + 1) * kRows; ++row) data.insert(data.end(), 1024, static_cast<std::uint8_t>(row % 251));
  }
  return data;
}

}  // namespace

int main() {
  const std::vector<std::uint8_t> record(kRecord, 7);
  const std::int64_t offsets[] = {0, static_cast<std::int64_t>(kRecord)};
  std::vector<std::uint8_t> framed(kRecord + 16);
  forebay::frame_records(record.data(), offsets, 1, framed.data());
  std::FILE* file = std::tmpfile();
  if (file == nullptr) return 2;
  for (std::size_t i = 0; i <= kSize / framed.size(); ++i) std::fwrite(framed.data(), 1, framed.size(), file);
  std::fflush(file);

  constexpr std::size_t kPieces = 20;
  const std::vector<std::uint8_t> pieces = arranged_pieces(kPieces);
  std::FILE* large = file_of(pieces);
  std::atomic<bool> wrong{false};
  for (int round = 0; round < 20; ++round) {
    Errands ahead;
    ahead.allow(round % 4 + 1);
    const auto use = [&] {
      for (int turn = 0; turn < 5; ++turn) {
        if (!is_used(ahead, fileno(file), turn % 3 == 0)) wrong = true;
        if (!is_read_together(ahead, fileno(large), pieces)) wrong = true;
        // What is far is read by several.
        const forebay::FarFile far{fileno(large), turn % 2 == 0 ? fileno(large) : -1, 0};
        if (!is_arranged(ahead, far, kPieces)) wrong = true;
        ahead.settle();
      }
    };
    std::thread other(use);
    use();
    other.join();
  }
  std::fclose(file);
  std::fclose(large);
  return wrong ? 1 : 0;
}
