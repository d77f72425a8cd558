#include "example.hpp"

#include <algorithm>
#include <cstring>

namespace forebay {
namespace {

constexpr std::uint8_t delimited(int field) { return static_cast<std::uint8_t>(field << 3 | 2); }
constexpr std::uint8_t kVarintOne = 1 << 3 | 0;
constexpr std::uint8_t kFixed32One = 1 << 3 | 5;

// A stretch of protobuf's wire format. Reading beyond it fails.
struct Wire {
  const std::uint8_t* at;
  const std::uint8_t* end;

  explicit Wire(Span span) : at(span.data), end(span.data + span.size) {}

  bool done() const { return at == end; }
  std::size_t left() const { return static_cast<std::size_t>(end - at); }

  bool take(std::uint8_t tag) {
    if (at == end || *at != tag) return false;
    ++at;
    return true;
  }

  bool varint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at == end) return false;
      const std::uint8_t byte = *at++;
      // Bits beyond the 64th are dropped, as protobuf does.
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool length(std::size_t& value) {
    if (at != end && *at < 0x80) {
      value = *at++;
      return true;
    }
    std::uint64_t whole;
    if (!varint(whole)) return false;
    value = static_cast<std::uint32_t>(whole);
    return true;
  }

  // A string must be there as a whole.
  bool string(Span& value) {
    std::size_t size;
    if (!length(size) || size > left()) return false;
    value = {at, size};
    at += size;
    return true;
  }

  // A field that nobody knows, behind its tag; one that goes beyond the end ends there. Groups are not skipped.
  bool skip(std::uint64_t tag) {
    std::uint64_t ignored;
    Span unknown;
    switch (tag & 7) {
      case 0:
        return varint(ignored);
      case 1:
      case 5:
        at += std::min<std::size_t>(left(), (tag & 7) == 1 ? 8 : 4);
        return true;
      case 2:
        return message(unknown);
      default:
        return false;
    }
  }

  // A message that says it is longer than what is around it ends with that: a limit within a limit.
  bool message(Span& value) {
    std::size_t size;
    if (!length(size)) return false;
    size = std::min(size, left());
    value = {at, size};
    at += size;
    return true;
  }
};

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
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  Wire wire(list);
  Span packed;
  if (wire.take(delimited(1))) {
    // Unlike other numbers, packed floats must be there as a whole.
    if (!wire.string(packed) || packed.size % 4 != 0) return false;
    if (packed.size != 0) std::memcpy(out.extend(packed.size / 4), packed.data, packed.size);
    return true;
  }
#endif
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

void add_missing(const Values& missing, Type type, Values& out) {
  if (type == Type::kFloat) {
    out.floats.append(missing.floats.data(), missing.floats.size());
  } else if (type == Type::kInt64) {
    out.ints.append(missing.ints.data(), missing.ints.size());
  } else {
    const auto before = static_cast<std::int64_t>(out.bytes.size());
    out.bytes.append(missing.bytes.data(), missing.bytes.size());
    for (std::size_t i = 0; i < missing.ends.size(); ++i) out.ends.push(before + missing.ends.data()[i]);
  }
}

}  // namespace

std::size_t Values::count(Type type) const {
  return type == Type::kFloat ? floats.size() : type == Type::kInt64 ? ints.size() : ends.size();
}

Parser::Parser(std::vector<Wanted> wanted, bool sequences) : wanted_(std::move(wanted)), sequences_(sequences) {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    (wanted_[i].sequence ? lists_ : context_).emplace(wanted_[i].key, static_cast<std::int64_t>(i));
  }
}

// One call of ``parse``: the row at hand, and what its features were last time.
class Parser::Reading {
 public:
  Reading(const Parser& parser, std::vector<Values>& out) : parser_(parser), out_(out), found_(parser.wanted_.size()) {}

  Fault row(Span row) {
    for (Found& each : found_) each.there = false;
    entries_ = 0;
    if (!(parser_.sequences_ ? sequence_example(row) : example(row))) return {Code::kMalformed, 0, -1, 0};
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const Fault fault = parser_.wanted_[i].sequence ? list(i) : feature(i);
      if (fault.code != Code::kNone) return fault;
    }
    return {};
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
      add_missing(wanted.missing, wanted.type, out);
      if (wanted.count < 0) out.lengths.push(static_cast<std::int64_t>(wanted.missing.count(wanted.type)));
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

  const Parser& parser_;
  std::vector<Values>& out_;
  std::vector<Found> found_;
  std::vector<Entry> known_;
  std::size_t entries_ = 0;
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
  Reading reading(*this, out);
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
