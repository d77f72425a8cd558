// What records that were written one after the other have in common. No Python here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "example.hpp"

namespace forebay {

// An entry of an Example's map: where its value lies, and for which of the features wanted it counts; -1 for none.
struct SeenValue {
  Span value;
  std::int64_t slot;
};

// The bytes of an accepted Example that say what is where, and the places of the values between them. A record that has
// the same bytes in the same places is parsed in the same way, whatever its values are: they need only be copied.
class Template {
 public:
  // `seen` are all entries of the record in order. False if the record is not of the usual form.
  bool learn(Span record, const std::vector<SeenValue>& seen, const std::vector<Wanted>& wanted);

  // Adds the record's values to `out`, if it is one of these; otherwise nothing is added.
  bool apply(Span record, const std::vector<Wanted>& wanted, std::vector<Values>& out) const;

 private:
  struct Stretch {
    std::uint32_t at;  // In the record,
    std::uint32_t kept;  // and in `bytes_`.
    std::uint32_t size;
  };
  enum class Kind : std::uint8_t { kFloats, kInts, kString, kCount, kMissing };
  struct Step {
    Kind kind;
    std::uint32_t slot;
    std::uint32_t at;    // In the record; of kCount, how many values there are.
    std::uint32_t size;  // In bytes.
  };

  bool add_feature(const std::uint8_t* record, SeenValue seen, const Wanted& wanted);
  void add_value(const std::uint8_t* record, Kind kind, std::int64_t slot, Span value);
  bool keep_between(Span record, std::size_t end);

  std::size_t size_ = 0;
  std::size_t kept_to_ = 0;  // While learning: up to where the record's bytes are kept or known to be values.
  std::vector<std::uint8_t> bytes_;
  std::vector<Stretch> stretches_;
  std::vector<Step> steps_;
  std::vector<Step> ints_;  // Those of the steps whose bytes have to be looked at before anything is added.
};

// Templates of the records of one call, found by a record's size.
class Templates {
 public:
  // The values of the record, if it is like an earlier one.
  bool apply(Span record, const std::vector<Wanted>& wanted, std::vector<Values>& out) {
    const std::unique_ptr<Template>& known = known_[record.size % kMost];
    if (known != nullptr && known->apply(record, wanted, out)) {
      ++hits_;
      return true;
    }
    ++misses_;
    return false;
  }

  // Whether records have been alike often enough to go on comparing.
  bool useful() const { return misses_ <= kPatience + hits_; }

  void learn(Span record, const std::vector<SeenValue>& seen, const std::vector<Wanted>& wanted) {
    auto made = std::make_unique<Template>();
    known_[record.size % kMost] = made->learn(record, seen, wanted) ? std::move(made) : nullptr;
  }

 private:
  static constexpr std::size_t kMost = 128;
  static constexpr std::size_t kPatience = 64;

  std::unique_ptr<Template> known_[kMost];
  std::size_t hits_ = 0;
  std::size_t misses_ = 0;
};

}  // namespace forebay
