#include "example_template.hpp"

#include <cstring>

namespace forebay {
namespace {

// A record with more than this to compare is parsed as fast without a template.
constexpr std::size_t kMostBytes = 4096;
constexpr std::size_t kMostSteps = 512;
constexpr std::size_t kLongestRecord = 1 << 24;

template <class T>
T load(const std::uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

// Stretches are short: a call to compare them would cost more than comparing them does.
bool same(const std::uint8_t* one, const std::uint8_t* other, std::size_t size) {
  if (size >= 8) {
    const std::size_t last = size - 8;
    for (std::size_t i = 0; i < last; i += 8) {
      if (load<std::uint64_t>(one + i) != load<std::uint64_t>(other + i)) return false;
    }
    return load<std::uint64_t>(one + last) == load<std::uint64_t>(other + last);
  }
  if (size >= 4) {
    return load<std::uint32_t>(one) == load<std::uint32_t>(other) &&
           load<std::uint32_t>(one + size - 4) == load<std::uint32_t>(other + size - 4);
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (one[i] != other[i]) return false;
  }
  return true;
}

// How many numbers a stretch of varints holds; -1 if the last is cut off or one is too long.
std::int64_t count_varints(const std::uint8_t* data, std::size_t size) {
  std::int64_t count = 0;
  std::size_t begun = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] < 0x80) {
      ++count;
      begun = 0;
    } else if (++begun == kLongestVarint) {
      return -1;
    }
  }
  return begun == 0 ? count : -1;
}

}  // namespace

bool Template::learn(Span record, const std::vector<SeenValue>& seen, const std::vector<Wanted>& wanted) {
  if (record.size > kLongestRecord) return false;
  size_ = record.size;
  std::vector<bool> there(wanted.size());
  for (const SeenValue& each : seen) {
    const auto begin = static_cast<std::size_t>(each.value.data - record.data);
    if (!keep_between(record, begin)) return false;
    if (each.slot >= 0) {
      const auto slot = static_cast<std::size_t>(each.slot);
      there[slot] = true;
      if (!add_feature(record.data, each, wanted[slot])) return false;
      if (!keep_between(record, begin + each.value.size)) return false;
    }
    // The value of an entry that does not count was not looked at, and need not be alike.
    kept_to_ = begin + each.value.size;
  }
  if (!keep_between(record, record.size) || steps_.size() > kMostSteps) return false;
  for (std::size_t slot = 0; slot < wanted.size(); ++slot) {
    if (!there[slot]) steps_.push_back({Kind::kMissing, static_cast<std::uint32_t>(slot), 0, 0});
  }
  return true;
}

// The bytes of the record from where the last value ended up to `end` have to be alike.
bool Template::keep_between(Span record, std::size_t end) {
  const std::size_t size = end - kept_to_;
  if (bytes_.size() + size > kMostBytes) return false;
  if (size != 0) {
    stretches_.push_back({static_cast<std::uint32_t>(kept_to_), static_cast<std::uint32_t>(bytes_.size()),
                          static_cast<std::uint32_t>(size)});
    bytes_.insert(bytes_.end(), record.data + kept_to_, record.data + end);
  }
  kept_to_ = end;
  return true;
}

void Template::add_value(const std::uint8_t* record, Kind kind, std::int64_t slot, Span value) {
  const Step step{kind, static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(value.data - record),
                  static_cast<std::uint32_t>(value.size)};
  steps_.push_back(step);
  if (kind == Kind::kInts) ints_.push_back(step);
}

// Reads what the parser has read before, and so need not check again what it has checked.
bool Template::add_feature(const std::uint8_t* record, SeenValue seen, const Wanted& wanted) {
  Wire wire(seen.value);
  ++wire.at;
  Span list;
  if (!wire.message(list)) return false;
  Wire values(list);
  Span value;
  std::uint32_t count = 0;
  const Span whole{record, size_};
  if (wanted.type == Type::kBytes) {
    for (; !values.done(); ++count) {
      if (!values.take(delimited(1)) || !values.string(value)) return false;
      if (!keep_between(whole, static_cast<std::size_t>(value.data - record))) return false;
      add_value(record, Kind::kString, seen.slot, value);
      kept_to_ += value.size;
    }
  } else {
    const bool floats = wanted.type == Type::kFloat;
    value = {values.at, 0};
    // Numbers that are not packed have a tag each, between which nothing is alike.
    if (!values.done() && (!values.take(delimited(1)) || !values.message(value))) return false;
    if (!keep_between(whole, static_cast<std::size_t>(value.data - record))) return false;
    add_value(record, floats ? Kind::kFloats : Kind::kInts, seen.slot, value);
    kept_to_ += value.size;
    count = floats ? static_cast<std::uint32_t>(value.size / sizeof(float)) : 0;
  }
  if (wanted.count < 0 && wanted.type != Type::kInt64) {
    steps_.push_back({Kind::kCount, static_cast<std::uint32_t>(seen.slot), count, 0});
  }
  return true;
}

bool Template::apply(Span record, const std::vector<Wanted>& wanted, std::vector<Values>& out) const {
  if (record.size != size_) return false;
  for (const Stretch& each : stretches_) {
    if (!same(record.data + each.at, bytes_.data() + each.kept, each.size)) return false;
  }
  for (const Step& each : ints_) {
    const std::int64_t count = count_varints(record.data + each.at, each.size);
    if (count < 0 || (wanted[each.slot].count >= 0 && count != wanted[each.slot].count)) return false;
  }
  for (const Step& each : steps_) {
    Values& values = out[each.slot];
    const std::uint8_t* data = record.data + each.at;
    switch (each.kind) {
      case Kind::kFloats:
        if (each.size != 0) std::memcpy(values.floats.extend(each.size / sizeof(float)), data, each.size);
        break;
      case Kind::kInts: {
        const std::size_t before = values.ints.size();
        for (Wire wire({data, each.size}); !wire.done();) {
          std::uint64_t value = 0;
          wire.varint(value);
          values.ints.push(static_cast<std::int64_t>(value));
        }
        if (wanted[each.slot].count < 0) values.lengths.push(static_cast<std::int64_t>(values.ints.size() - before));
        break;
      }
      case Kind::kString:
        values.bytes.append(data, each.size);
        values.ends.push(static_cast<std::int64_t>(values.bytes.size()));
        break;
      case Kind::kCount:
        values.lengths.push(each.at);
        break;
      case Kind::kMissing:
        values.add_missing(wanted[each.slot]);
        break;
    }
  }
  return true;
}

}  // namespace forebay
