// Protobuf's wire format, as far as Examples need it. No Python here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace forebay {

struct Span {
  const std::uint8_t* data;
  std::size_t size;
};

constexpr std::uint8_t delimited(int field) { return static_cast<std::uint8_t>(field << 3 | 2); }
constexpr std::uint8_t kVarintOne = 1 << 3 | 0;
constexpr std::uint8_t kFixed32One = 1 << 3 | 5;
constexpr std::size_t kLongestVarint = 10;

// A stretch of it. Reading beyond it fails.
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
    for (std::size_t i = 0; i < kLongestVarint; ++i) {
      if (at == end) return false;
      const std::uint8_t byte = *at++;
      // Bits beyond the 64th are dropped, as protobuf does.
      value |= std::uint64_t{byte & 0x7fu} << (7 * i);
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

}  // namespace forebay
