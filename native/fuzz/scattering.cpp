// Rows are scattered to a file and come back in the order of their words, with threads that write and read meanwhile, for
// ThreadSanitizer and AddressSanitizer: they are stopped at any moment, and what is under way is let go of at any moment.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "arranged.hpp"
#include "errands.hpp"
#include "scattering.hpp"

namespace {

using forebay::Arrangement;
using forebay::ArrangeJob;
using forebay::Errands;
using forebay::FarFile;
using forebay::ScatteredPiece;
using forebay::Scattering;

using Chance = std::mt19937_64;
constexpr std::chrono::milliseconds kMoment{1};

struct Pages {
  explicit Pages(std::size_t size)
      : size(size), data(static_cast<std::uint8_t*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { ::munmap(data, size); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::size_t size;
  std::uint8_t* data;
};

struct Rows {
  Rows(Chance& chance, std::size_t count, std::size_t width) : width(width), words(count), values(count * width) {
    for (std::size_t i = 0; i < count; ++i) {
      words[i] = chance();
      std::memset(values.data() + i * width, static_cast<int>(words[i] & 255), width);
    }
  }

  std::size_t width;
  std::vector<std::uint64_t> words;
  std::vector<std::uint8_t> values;
};

// The pieces of all rows; of as many as come before it is given up, if it is.
std::vector<ScatteredPiece> scattered(Chance& chance, Errands& errands, int file, int direct, const Rows& rows, unsigned bits, bool given_up) {
  const std::size_t buckets = std::size_t{1} << bits;
  const std::size_t stride = direct >= 0 ? forebay::kPage * (1 + chance() % 4) : 64 * (8 + chance() % 64);
  const std::size_t slots = buckets + 1 + chance() % 8;
  const Pages memory(slots * stride);
  std::vector<ScatteredPiece> found;
  const auto take = [&](Scattering& work) {
    const auto some = work.take();
    found.insert(found.end(), some.begin(), some.end());
  };
  Scattering work(errands, FarFile{file, -1, 0}, 0, {{8, rows.width}, 64 - bits, buckets, stride, slots}, memory.data);
  const std::size_t end = given_up ? chance() % rows.words.size() : rows.words.size();
  const std::size_t far = chance() % rows.words.size();
  for (std::size_t done = 0; done < end;) {
    if (done >= far) work.begin_far(direct);
    const std::uint8_t* fields[] = {reinterpret_cast<const std::uint8_t*>(rows.words.data() + done), rows.values.data() + done * rows.width};
    done += work.add(fields, std::min<std::size_t>(end - done, 1 + chance() % 2000), kMoment);
    if (work.error() != 0) return {};
    if (chance() % 7 == 0) take(work);
    if (chance() % 11 == 0) errands.stop();
  }
  while (!given_up && !work.finish(kMoment)) continue;
  take(work);
  return found;
}

// Whether the rows of a bucket come back.
bool come_back(Chance& chance, Errands& errands, FarFile file, const Rows& rows, unsigned bits, std::uint64_t bucket, const std::vector<ScatteredPiece>& pieces) {
  std::vector<std::int64_t> starts, counts, wanted;
  std::vector<std::uint64_t> words;
  for (const ScatteredPiece& piece : pieces) {
    if (piece.bucket != static_cast<std::int64_t>(bucket)) continue;
    starts.push_back(piece.offset);
    counts.push_back(piece.rows);
    wanted.push_back(piece.checksum);
  }
  std::copy_if(rows.words.begin(), rows.words.end(), std::back_inserter(words), [&](std::uint64_t word) { return word >> (64 - bits) == bucket; });
  std::sort(words.begin(), words.end());
  if (words.empty()) return starts.empty();
  const auto width = static_cast<std::int64_t>(rows.width);
  const std::int64_t offset = 0;
  const std::size_t skipped = chance() % words.size();
  const std::size_t block_rows = 1 + chance() % words.size();
  std::vector<std::vector<std::uint8_t>> blocks((words.size() - skipped + block_rows - 1) / block_rows);
  std::vector<std::uint8_t*> data;
  for (auto& block : blocks) {
    block.resize(block_rows * rows.width);
    data.push_back(block.data());
  }
  std::vector<std::int64_t> checksums(starts.size());
  const Arrangement arrangement{starts.data(), counts.data(), starts.size(), &width, &offset, 1, bits, skipped, data, block_rows};
  const auto job = std::make_shared<ArrangeJob>(errands, file, arrangement, checksums.data());
  errands.add(job);
  if (chance() % 5 == 0) {
    if (chance() % 2 == 0) errands.finish(*job, std::chrono::milliseconds(0));
    while (!errands.withdraw(*job)) errands.finish(*job, kMoment);
    return true;
  }
  if (chance() % 9 == 0) errands.stop();
  do job->help();
  while (!errands.finish(*job, kMoment));
  if (job->error() != 0 || checksums != wanted) return false;
  for (std::size_t i = skipped; i < words.size(); ++i) {
    const std::uint8_t* const row = data[(i - skipped) / block_rows] + (i - skipped) % block_rows * rows.width;
    if (row[0] != (words[i] & 255) || row[rows.width - 1] != row[0]) return false;
  }
  return true;
}

bool is_right(std::uint64_t seed) {
  Chance chance(seed);
  std::FILE* const opened = std::tmpfile();
  if (opened == nullptr) return false;
  const int file = ::fileno(opened);
  // Past the page cache, where the file system knows of that.
  const std::string name = "/proc/self/fd/" + std::to_string(file);
  const int direct = chance() % 2 == 0 ? ::open(name.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC) : -1;
  const bool given_up = chance() % 3 == 0;
  const unsigned bits = 1 + static_cast<unsigned>(chance() % 4);
  const Rows rows(chance, 500 + chance() % 6000, 1 + chance() % 300);
  bool right = true;
  {
    Errands errands;
    errands.allow(1 + chance() % 4);
    const auto pieces = scattered(chance, errands, file, direct, rows, bits, given_up);
    // What was given up is not done, or would be done now to memory that has gone.
    errands.settle();
    for (std::uint64_t bucket = 0; right && !given_up && bucket < std::uint64_t{1} << bits; ++bucket) {
      right = come_back(chance, errands, {file, direct, 0}, rows, bits, bucket, pieces);
    }
  }
  if (direct >= 0) ::close(direct);
  std::fclose(opened);
  return right;
}

}  // namespace

int main() {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    if (is_right(seed)) continue;
    std::fprintf(stderr, "wrong with seed %llu\n", static_cast<unsigned long long>(seed));
    return 1;
  }
  return 0;
}
