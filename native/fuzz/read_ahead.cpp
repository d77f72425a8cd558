// Stretches of a file read ahead by one thread and asked for by two others, for a sanitizer that watches threads.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "read_ahead.hpp"

namespace {

using forebay::Errands;
using forebay::ReadJob;

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

  std::atomic<bool> wrong{false};
  for (int round = 0; round < 20; ++round) {
    Errands ahead;
    const auto use = [&] {
      for (int turn = 0; turn < 5; ++turn) {
        if (!is_used(ahead, fileno(file), turn % 3 == 0)) wrong = true;
      }
    };
    std::thread other(use);
    use();
    other.join();
  }
  std::fclose(file);
  return wrong ? 1 : 0;
}
