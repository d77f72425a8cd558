// tf.train.Example and tf.train.SequenceExample, from their serialized form straight into columns and back.
// No Python here. What is read is what TensorFlow's own fast parser reads, and what it refuses is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "buffer.hpp"
#include "wire.hpp"

namespace forebay {

// The numbers are those of the fields of the message Feature.
enum class Type : int { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

struct Wanted;

// Values of one feature, in however many rows.
struct Values {
  Buffer<float> floats;
  Buffer<std::int64_t> ints;
  Buffer<std::uint8_t> bytes;       // Strings behind one another;
  Buffer<std::int64_t> ends;        // where each of them ends.
  Buffer<std::int64_t> lengths;     // How many values each row has, or, in a sequence, each step.
  Buffer<std::int64_t> steps;       // Sequences: how many steps each row has.

  std::size_t count(Type type) const;
  // What stands for a feature that a row has not got.
  void add_missing(const Wanted& wanted);
};

struct Wanted {
  std::string key;
  Type type = Type::kInt64;
  std::int64_t count = -1;  // Values that a row, or a step of a sequence, must have; -1 for any number.
  bool sequence = false;    // In the feature lists of a SequenceExample.
  bool required = true;     // Otherwise `missing` stands for what is not there.
  Values missing;
};

enum class Code : int { kNone = 0, kMalformed = 1, kMissing = 2, kType = 3, kCount = 4 };

struct Fault {
  Code code = Code::kNone;
  std::size_t row = 0;
  std::int64_t feature = -1;  // Which of those wanted.
  std::int64_t found = 0;     // The type or the number of values that was found.
};

// Thread-safe once made.
class Parser {
 public:
  // With `compares`, rows like earlier ones are parsed by what these had in common, with the same result.
  Parser(std::vector<Wanted> wanted, bool sequences, bool compares = true);
  // Keys are looked up where they lie.
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  const std::vector<Wanted>& wanted() const { return wanted_; }

  // Values of all rows for each of the features wanted. Stops at the first row that is at fault.
  Fault parse(const Span* rows, std::size_t count, std::vector<Values>& out) const;

 private:
  class Reading;

  std::vector<Wanted> wanted_;
  bool sequences_;
  bool compares_;
  std::unordered_map<std::string_view, std::int64_t> context_;
  std::unordered_map<std::string_view, std::int64_t> lists_;
};

// One feature to be written for all rows: row r has the values [rows[r], rows[r + 1]). Value i of a bytes feature is
// bytes[ends[i]:ends[i + 1]].
struct Written {
  std::string key;
  Type type = Type::kInt64;
  const std::int64_t* rows = nullptr;
  const float* floats = nullptr;
  const std::int64_t* ints = nullptr;
  const std::uint8_t* bytes = nullptr;
  const std::int64_t* ends = nullptr;
};

// Appends `count` Examples to `out` and where each ends to `ends`.
void write_examples(const std::vector<Written>& features, std::size_t count, Buffer<std::uint8_t>& out,
                    Buffer<std::int64_t>& ends);

}  // namespace forebay
