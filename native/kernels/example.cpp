#include "example.hpp"

#include <algorithm>
#include <cstring>

#include "example_template.hpp"

namespace forebay {
namespace {

constexpr bool kLittleEndian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

// In a stretch of repeated fields, either packed into one or one by one.
template <std::uint8_t kTag, class Read>
bool each_number(Span list, Read read) {
  Wire wire(list);
  if (wire.done()) return true;
  if (wire.take(delimited(1))) {
    Span packed;
    if (!wire.message(packed)) return false;
    Wire values(packed);
    while (!values.done()) {
      if (!read(values)) return false;
    }
    return true;
  }
  while (!wire.done()) {
    if (!wire.take(kTag) || !read(wire)) return false;
  }
  return true;
}

bool add_float(Wire& wire, Buffer<float>& out) {
  if (wire.left() < 4) return false;
  std::uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= std::uint32_t{wire.at[i]} << (8 * i);
  float value;
  std::memcpy(&value, &bits, 4);
  out.push(value);
  wire.at += 4;
  return true;
}

bool add_floats(Span list, Buffer<float>& out) {
  Wire wire(list);
  Span packed;
  if (kLittleEndian && wire.take(delimited(1))) {
    // Unlike other numbers, packed floats must be there as a whole.
    if (!wire.string(packed) || packed.size % 4 != 0) return false;
    if (packed.size != 0) std::memcpy(out.extend(packed.size / 4), packed.data, packed.size);
    return true;
  }
  return each_number<kFixed32One>(list, [&](Wire& values) { return add_float(values, out); });
}

bool add_ints(Span list, Buffer<std::int64_t>& out) {
  return each_number<kVarintOne>(list, [&](Wire& wire) {
    std::uint64_t value;
    if (!wire.varint(value)) return false;
    out.push(static_cast<std::int64_t>(value));
    return true;
  });
}

bool add_strings(Span list, Values& out) {
  Wire wire(list);
  while (!wire.done()) {
    Span string;
    if (!wire.take(delimited(1)) || !wire.string(string)) return false;
    out.bytes.append(string.data, string.size);
    out.ends.push(static_cast<std::int64_t>(out.bytes.size()));
  }
  return true;
}

// Whose values a feature holds: the tag of its first byte tells.
bool feature_type(Span feature, Type& type) {
  type = Type::kNone;
  if (feature.size == 0) return true;
  for (const Type known : {Type::kBytes, Type::kFloat, Type::kInt64}) {
    if (feature.data[0] == delimited(static_cast<int>(known))) {
      type = known;
      return true;
    }
  }
  return false;
}

bool add_values(Span feature, Type type, Values& out) {
  Wire wire(feature);
  ++wire.at;
  Span list;
  if (!wire.message(list)) return false;
  if (type == Type::kFloat) return add_floats(list, out.floats);
  if (type == Type::kInt64) return add_ints(list, out.ints);
  return add_strings(list, out);
}

}  // namespace

std::size_t Values::count(Type type) const {
  return type == Type::kFloat ? floats.size() : type == Type::kInt64 ? ints.size() : ends.size();
}

void Values::add_missing(const Wanted& wanted) {
  const Values& missing = wanted.missing;
  if (wanted.type == Type::kFloat) {
    floats.append(missing.floats.data(), missing.floats.size());
  } else if (wanted.type == Type::kInt64) {
    ints.append(missing.ints.data(), missing.ints.size());
  } else {
    const auto before = static_cast<std::int64_t>(bytes.size());
    bytes.append(missing.bytes.data(), missing.bytes.size());
    for (std::size_t i = 0; i < missing.ends.size(); ++i) ends.push(before + missing.ends.data()[i]);
  }
  if (wanted.count < 0) lengths.push(static_cast<std::int64_t>(missing.count(wanted.type)));
}

Parser::Parser(std::vector<Wanted> wanted, bool sequences, bool compares)
    : wanted_(std::move(wanted)), sequences_(sequences), compares_(compares && !sequences && kLittleEndian) {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    (wanted_[i].sequence ? lists_ : context_).emplace(wanted_[i].key, static_cast<std::int64_t>(i));
  }
}

// One call of ``parse``: the row at hand, and what its features were last time.
class Parser::Reading {
 public:
  // Rows are compared with earlier ones only if there are some to come.
  Reading(const Parser& parser, std::size_t rows, std::vector<Values>& out)
      : parser_(parser), out_(out), found_(parser.wanted_.size()), compares_(parser.compares_ && rows >= kWorthComparing) {}

  Fault row(Span row) {
    if (!compares_) return parsed(row);
    if (templates_.apply(row, parser_.wanted_, out_)) return {};
    seen_.clear();
    const Fault fault = parsed(row);
    if (fault.code == Code::kNone) learn(row);
    return fault;
  }

 private:
  struct Found {
    Span span{nullptr, 0};
    bool there = false;
  };
  struct Entry {
    std::string_view key;
    std::int64_t slot;
    const void* of;
  };

  Fault parsed(Span row) {
    for (Found& each : found_) each.there = false;
    entries_ = 0;
    if (!(parser_.sequences_ ? sequence_example(row) : example(row))) return {Code::kMalformed, 0, -1, 0};
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const Fault fault = parser_.wanted_[i].sequence ? list(i) : feature(i);
      if (fault.code != Code::kNone) return fault;
    }
    return {};
  }

  void learn(Span row) {
    // Of several entries with one key, only one counts.
    for (SeenValue& each : seen_) {
      if (each.slot < 0) continue;
      const Found& found = found_[static_cast<std::size_t>(each.slot)];
      if (!found.there || found.span.data != each.value.data || each.value.size == 0) each.slot = -1;
    }
    templates_.learn(row, seen_, parser_.wanted_);
    compares_ = templates_.useful();
  }

  // Keys are short: a call to compare them would cost more than comparing them does.
  static bool same(std::string_view one, std::string_view other) {
    if (one.size() != other.size()) return false;
    if (one.size() > 16) return one == other;
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (one[i] != other[i]) return false;
    }
    return true;
  }

  bool example(Span row) {
    Wire wire(row);
    // Messages written behind one another are one message.
    while (!wire.done()) {
      Span features;
      if (!wire.take(delimited(1))) {
        std::uint64_t tag;
        if (!wire.varint(tag) || !wire.skip(tag)) return false;
      } else if (!wire.message(features) || !map(features, parser_.context_)) {
        return false;
      }
    }
    return true;
  }

  bool sequence_example(Span row) {
    Wire wire(row);
    while (!wire.done()) {
      const bool context = *wire.at == delimited(1);
      Span features;
      if (!wire.take(delimited(context ? 1 : 2)) || !wire.message(features)) return false;
      if (!map(features, context ? parser_.context_ : parser_.lists_)) return false;
    }
    return true;
  }

  // The last of several entries with one key counts.
  bool map(Span entries, const std::unordered_map<std::string_view, std::int64_t>& slots) {
    Wire wire(entries);
    while (!wire.done()) {
      Span entry;
      if (!wire.take(delimited(1)) || !wire.message(entry)) return false;
      Wire parts(entry);
      Span key{nullptr, 0};
      Span value{nullptr, 0};
      // The order is free, though nearly always this one.
      if (!parts.take(delimited(1)) || !parts.string(key) || !parts.take(delimited(2)) || !parts.string(value)) {
        parts = Wire(entry);
        for (int part = 0; part < 2; ++part) {
          std::uint64_t tag;
          if (!parts.varint(tag)) return false;
          tag = static_cast<std::uint32_t>(tag);
          if (tag != delimited(1) && tag != delimited(2)) return false;
          if (!parts.string(tag == delimited(1) ? key : value)) return false;
        }
      }
      if (!parts.done()) return false;
      const std::int64_t slot = slot_of({reinterpret_cast<const char*>(key.data), key.size}, slots);
      if (slot >= 0) {
        // Nothing in it counts as nothing there.
        Found& found = found_[static_cast<std::size_t>(slot)];
        if (value.size != 0 || parser_.wanted_[static_cast<std::size_t>(slot)].sequence) found = {value, true};
      }
      if (compares_) seen_.push_back({value, slot});
    }
    return true;
  }

  // Rows tend to have the same keys in the same order, so the one that stood here last time is tried first.
  std::int64_t slot_of(std::string_view key, const std::unordered_map<std::string_view, std::int64_t>& slots) {
    const std::size_t place = entries_++;
    if (place < known_.size() && known_[place].of == &slots && same(known_[place].key, key)) return known_[place].slot;
    const auto found = slots.find(key);
    const Entry entry{key, found == slots.end() ? -1 : found->second, &slots};
    if (place < known_.size()) {
      known_[place] = entry;
    } else if (place == known_.size() && place < kRemembered) {
      known_.push_back(entry);
    }
    return entry.slot;
  }

  Fault feature(std::size_t slot) {
    const Wanted& wanted = parser_.wanted_[slot];
    Values& out = out_[slot];
    const auto index = static_cast<std::int64_t>(slot);
    if (!found_[slot].there) {
      if (wanted.required) return {Code::kMissing, 0, index, 0};
      out.add_missing(wanted);
      return {};
    }
    return values(found_[slot].span, wanted, index, out);
  }

  Fault values(Span feature, const Wanted& wanted, std::int64_t index, Values& out) {
    Type type;
    if (!feature_type(feature, type)) return {Code::kMalformed, 0, index, 0};
    if (type != wanted.type) return {Code::kType, 0, index, static_cast<std::int64_t>(type)};
    const std::size_t before = out.count(type);
    if (!add_values(feature, type, out)) return {Code::kMalformed, 0, index, 0};
    const auto count = static_cast<std::int64_t>(out.count(type) - before);
    if (wanted.count < 0) {
      out.lengths.push(count);
    } else if (count != wanted.count) {
      return {Code::kCount, 0, index, count};
    }
    return {};
  }

  Fault list(std::size_t slot) {
    const Wanted& wanted = parser_.wanted_[slot];
    Values& out = out_[slot];
    const auto index = static_cast<std::int64_t>(slot);
    if (!found_[slot].there) {
      if (wanted.required) return {Code::kMissing, 0, index, 0};
      out.steps.push(0);
      return {};
    }
    Wire wire(found_[slot].span);
    std::int64_t steps = 0;
    while (!wire.done()) {
      Span step;
      if (!wire.take(delimited(1)) || !wire.string(step)) return {Code::kMalformed, 0, index, 0};
      if (step.size == 0 && wanted.count < 0) {
        out.lengths.push(0);
      } else {
        const Fault fault = values(step, wanted, index, out);
        if (fault.code != Code::kNone) return fault;
      }
      ++steps;
    }
    out.steps.push(steps);
    return {};
  }

  static constexpr std::size_t kRemembered = 4096;
  static constexpr std::size_t kWorthComparing = 8;

  const Parser& parser_;
  std::vector<Values>& out_;
  std::vector<Found> found_;
  std::vector<Entry> known_;
  std::size_t entries_ = 0;
  bool compares_;
  Templates templates_;
  std::vector<SeenValue> seen_;
};

Fault Parser::parse(const Span* rows, std::size_t count, std::vector<Values>& out) const {
  out.resize(wanted_.size());
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) total += rows[i].size;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const Wanted& wanted = wanted_[i];
    if (wanted.sequence || wanted.count < 0) continue;
    // A value takes at least a byte, so a shape that asks for more than there can be is not believed.
    const std::size_t most = static_cast<std::size_t>(wanted.count) > total / std::max<std::size_t>(count, 1)
                                 ? total
                                 : count * static_cast<std::size_t>(wanted.count);
    if (wanted.type == Type::kFloat) out[i].floats.reserve(most);
    if (wanted.type == Type::kInt64) out[i].ints.reserve(most);
    if (wanted.type == Type::kBytes) out[i].ends.reserve(most);
  }
  Reading reading(*this, count, out);
  for (std::size_t i = 0; i < count; ++i) {
    Fault fault = reading.row(rows[i]);
    if (fault.code != Code::kNone) {
      fault.row = i;
      return fault;
    }
  }
  return {};
}

}  // namespace forebay
