#include "example.hpp"

namespace forebay {
namespace {

std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

std::uint8_t* put_varint(std::uint8_t* out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<std::uint8_t>(value | 0x80);
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}

std::uint8_t* put_field(std::uint8_t* out, int field, std::size_t size) {
  *out++ = static_cast<std::uint8_t>(field << 3 | 2);
  return put_varint(out, size);
}

std::size_t field_size(std::size_t size) { return 1 + varint_size(size) + size; }

// The values of one feature of one row.
struct Row {
  const Written& feature;
  std::int64_t first;
  std::int64_t last;

  std::size_t packed_size() const {
    if (feature.type == Type::kFloat) return 4 * static_cast<std::size_t>(last - first);
    std::size_t size = 0;
    for (std::int64_t i = first; i < last; ++i) size += varint_size(static_cast<std::uint64_t>(feature.ints[i]));
    return size;
  }

  std::size_t string_size(std::int64_t i) const { return static_cast<std::size_t>(feature.ends[i + 1] - feature.ends[i]); }

  std::size_t list_size() const {
    if (feature.type != Type::kBytes) return first == last ? 0 : field_size(packed_size());
    std::size_t size = 0;
    for (std::int64_t i = first; i < last; ++i) size += field_size(string_size(i));
    return size;
  }

  // A feature of no type has no list in it.
  std::size_t feature_size() const { return feature.type == Type::kNone ? 0 : field_size(list_size()); }

  std::size_t entry_size() const { return field_size(feature.key.size()) + field_size(feature_size()); }

  std::uint8_t* put(std::uint8_t* out) const {
    out = put_field(out, 1, feature.key.size());
    std::memcpy(out, feature.key.data(), feature.key.size());
    out = put_field(out + feature.key.size(), 2, feature_size());
    if (feature.type == Type::kNone) return out;
    out = put_field(out, static_cast<int>(feature.type), list_size());
    if (feature.type == Type::kBytes) {
      for (std::int64_t i = first; i < last; ++i) {
        out = put_field(out, 1, string_size(i));
        if (string_size(i) != 0) std::memcpy(out, feature.bytes + feature.ends[i], string_size(i));
        out += string_size(i);
      }
    } else if (first != last) {
      out = put_field(out, 1, packed_size());
      for (std::int64_t i = first; i < last; ++i) {
        if (feature.type == Type::kInt64) {
          out = put_varint(out, static_cast<std::uint64_t>(feature.ints[i]));
          continue;
        }
        std::uint32_t bits;
        std::memcpy(&bits, feature.floats + i, 4);
        for (int byte = 0; byte < 4; ++byte) *out++ = static_cast<std::uint8_t>(bits >> (8 * byte));
      }
    }
    return out;
  }
};

}  // namespace

void write_examples(const std::vector<Written>& features, std::size_t count, Buffer<std::uint8_t>& out,
                    Buffer<std::int64_t>& ends) {
  for (std::size_t r = 0; r < count; ++r) {
    std::size_t entries = 0;
    for (const Written& feature : features) {
      entries += field_size(Row{feature, feature.rows[r], feature.rows[r + 1]}.entry_size());
    }
    std::uint8_t* at = out.extend(field_size(entries));
    at = put_field(at, 1, entries);
    for (const Written& feature : features) {
      const Row row{feature, feature.rows[r], feature.rows[r + 1]};
      at = row.put(put_field(at, 1, row.entry_size()));
    }
    ends.push(static_cast<std::int64_t>(out.size()));
  }
}

}  // namespace forebay
