// A stretch of a file that a thread begins to read, and whoever asks for it helps with.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "errands.hpp"

namespace forebay {

// Reads `size` bytes from `offset` on, piece by piece: whoever is free takes the next one, so that nothing is lost if the
// other comes late or never.
class TogetherJob : public Job {
 public:
  TogetherJob(int file, std::int64_t offset, std::size_t size, std::uint8_t* out);

  // Take pieces until none is left.
  void help();

  // Once nobody is at work any more: 0, or as read_rows says; and the CRC-32C of all.
  int result(std::uint32_t* checksum) const;

 private:
  void run() override { help(); }

  int file_;
  std::int64_t offset_;
  std::size_t size_;
  std::uint8_t* out_;
  std::atomic<std::size_t> next_{0};
  struct Piece {
    int error = 0;
    std::uint32_t checksum = 0;
  };
  std::vector<Piece> pieces_;
};

}  // namespace forebay
