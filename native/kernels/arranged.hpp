// Rows of a file, put where they belong.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "errands.hpp"
#include "far_file.hpp"

namespace forebay {

// Pieces of rows in a file, fewer than 2 to the power of 32 in all, and where the rows belong by the order of their words.
// A piece has the words of all its rows, and behind them their values, column by column.
struct Arrangement {
  // Where pieces begin, and how many rows they have.
  const std::int64_t* starts;
  const std::int64_t* rows;
  std::size_t pieces;
  // The bytes of a row in each column, and where its column begins in a block.
  const std::int64_t* widths;
  const std::int64_t* offsets;
  std::size_t columns;
  // Bits that all words begin with, and how many of the first rows in order are not wanted.
  unsigned known;
  std::size_t skipped;
  // The others, so many in each but the last.
  std::vector<std::uint8_t*> blocks;
  std::size_t block_rows;
};

// Reads all pieces, takes the CRC-32C of each, and puts their rows where they belong; those with the same word as they
// come. Once the order is known, others may help.
class ArrangeJob : public Job, public std::enable_shared_from_this<ArrangeJob> {
 public:
  // Other threads of `errands` help with what is far.
  ArrangeJob(Errands& errands, FarFile file, Arrangement wanted, std::int64_t* checksums);

  // Take pieces until none is left, if the order is known.
  void help();

  // Once nobody is at work any more: 0, or as read_rows says.
  int error() const { return error_; }

 private:
  void run() override;
  class Help;
  class Buffer;

  void ask_for_help();
  int find_order();
  int read_words(std::uint64_t* words);
  void put_piece(std::size_t piece, Buffer& memory, std::vector<std::uint8_t*>& targets);

  Errands& errands_;
  FarFile file_;
  Arrangement wanted_;
  std::int64_t* checksums_;
  // Which of the wanted rows each is, and the first row of every piece.
  std::vector<std::uint32_t> places_;
  std::vector<std::size_t> first_;
  std::unique_ptr<Staging> staging_;
  std::atomic<bool> ordered_{false};
  std::atomic<std::size_t> next_{0};
  std::atomic<int> error_{0};
  // How many are at it.
  std::mutex lock_;
  std::condition_variable nobody_;
  std::size_t helping_ = 0;
};

}  // namespace forebay
