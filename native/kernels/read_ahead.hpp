// Stretches of files, read ahead of need.
#pragma once

#include <cstddef>
#include <cstdint>

#include "errands.hpp"
#include "records.hpp"

namespace forebay {

// Bytes from `offset` of a file on are read to data[held:size], and records looked for in all of the data.
struct ReadJob : Job {
  ReadJob(int file, std::int64_t offset, std::uint8_t* data, std::size_t held, std::size_t size, std::size_t most,
          std::int64_t* starts, std::int64_t* stops)
      : file(file), offset(offset), data(data), held(held), size(size), most(most), starts(starts), stops(stops) {}

  int file;
  std::int64_t offset;
  std::uint8_t* data;
  std::size_t held;
  std::size_t size;
  std::size_t most;  // Records.
  std::int64_t* starts;
  std::int64_t* stops;

  std::size_t got = 0;
  int error = 0;
  Scan found{0, 0, ScanStop::kMore, -1};

 private:
  void run() override;
};

}  // namespace forebay
