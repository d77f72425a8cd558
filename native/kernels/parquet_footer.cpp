#include "parquet_footer.hpp"

#include <vector>

namespace forebay {
namespace {

constexpr int kTrue = 1, kFalse = 2, kByte = 3, kInt16 = 4, kInt32 = 5, kInt64 = 6, kDouble = 7, kBinary = 8, kList = 9,
              kSet = 10, kStruct = 12;
// The deepest that the format itself goes is less than half of this.
constexpr int kDeepest = 32;
constexpr std::int64_t kNone = -1;

// Follows the framing. Whatever goes beyond the end, or cannot be, sets `fault` and moves to the end.
struct Walk {
  const std::uint8_t* at;
  const std::uint8_t* end;
  const char* fault = nullptr;

  void fail(const char* what) {
    if (fault == nullptr) fault = what;
    at = end;
  }

  std::size_t left() const { return static_cast<std::size_t>(end - at); }

  std::uint8_t byte() {
    if (at == end) {
      fail("it ends in the middle of a field");
      return 0;
    }
    return *at++;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const std::uint8_t each = byte();
      value |= std::uint64_t{each & 0x7fu} << shift;
      if (each < 0x80) return value;
    }
    fail("it has a number of more than 64 bits");
    return 0;
  }

  std::int64_t number() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }

  void pass(std::uint64_t size) {
    if (size > left()) {
      fail("it ends in the middle of a field");
    } else {
      at += size;
    }
  }

  // How many items there are, each of which takes a byte at least, and of what type.
  std::size_t list(int& kind) {
    const std::uint8_t head = byte();
    kind = head & 15;
    const std::uint64_t count = head >> 4 < 15 ? head >> 4 : varint();
    if (count <= left()) return static_cast<std::size_t>(count);
    fail("it has a list that is longer than itself");
    return 0;
  }

  std::size_t structs() {
    int kind;
    const std::size_t count = list(kind);
    if (count != 0 && kind != kStruct) fail("it has a list of other things than the format says");
    return fault == nullptr ? count : 0;
  }

  // The next field of a struct; false behind the last one.
  bool field(std::int64_t& id, int& kind) {
    const std::uint8_t head = byte();
    if (head == 0) return false;
    kind = head & 15;
    // Numbers of fields are small; what wraps around is none that anybody knows.
    id = head >> 4 != 0 ? static_cast<std::int64_t>(static_cast<std::uint64_t>(id) + (head >> 4)) : number();
    return fault == nullptr;
  }

  bool is(int kind, int wanted) {
    if (kind == wanted) return true;
    fail("it has a field of another type than the format says");
    return false;
  }

  void skip(int kind, int depth) {
    if (depth > kDeepest) return fail("it has too many levels");
    switch (kind) {
      case kTrue:
      case kFalse:
        return;
      case kByte:
        return pass(1);
      case kInt16:
      case kInt32:
      case kInt64:
        varint();
        return;
      case kDouble:
        return pass(8);
      case kBinary:
        return pass(varint());
      case kList:
      case kSet: {
        int inner;
        const std::size_t count = list(inner);
        // In lists, a truth value takes a byte.
        if (inner == kTrue || inner == kFalse) inner = kByte;
        for (std::size_t i = 0; i < count && fault == nullptr; ++i) skip(inner, depth + 1);
        return;
      }
      case kStruct: {
        std::int64_t id = 0;
        int inner;
        while (field(id, inner)) skip(inner, depth + 1);
        return;
      }
      default:
        // A map too: the format has none.
        return fail("it has a field of no known type");
    }
  }
};

// A column of the schema: its physical type, the bytes of a value (0 if they differ), and the most levels that say where
// lists and nulls are.
struct Leaf {
  std::int64_t type, width, definition, repetition;
};

constexpr std::int64_t kByteArray = 6;

std::int64_t width_of(std::int64_t type, std::int64_t length) {
  // Truth values, whole numbers of 32, 64 and 96 bits, real numbers of 32 and 64 bits, strings, strings of one length.
  constexpr std::int64_t kWidths[] = {1, 4, 8, 12, 4, 8, 0};
  if (type >= 0 && type <= kByteArray) return kWidths[type];
  return length;
}

struct Element {
  std::int64_t type = kNone, length = 0, repetition = 0, children = 0;
};

Element read_element(Walk& walk) {
  Element element;
  std::int64_t id = 0;
  int kind;
  while (walk.field(id, kind)) {
    if (id == 1 && walk.is(kind, kInt32)) {
      element.type = walk.number();
    } else if (id == 2 && walk.is(kind, kInt32)) {
      element.length = walk.number();
    } else if (id == 3 && walk.is(kind, kInt32)) {
      element.repetition = walk.number();
    } else if (id == 5 && walk.is(kind, kInt32)) {
      element.children = walk.number();
    } else {
      walk.skip(kind, 0);
    }
  }
  return element;
}

// The schema is a tree, each group before what is in it; the first element is the root.
std::vector<Leaf> read_schema(Walk& walk) {
  constexpr std::int64_t kOptional = 1, kRepeated = 2;
  struct Group {
    std::int64_t left, definition, repetition;
  };
  std::vector<Leaf> leaves;
  std::vector<Group> groups;
  const std::size_t count = walk.structs();
  for (std::size_t i = 0; i < count && walk.fault == nullptr; ++i) {
    const Element element = read_element(walk);
    Group inside{element.children, 0, 0};
    if (i != 0) {
      while (!groups.empty() && groups.back().left == 0) groups.pop_back();
      if (groups.empty()) {
        walk.fail("its schema is no tree");
        break;
      }
      --groups.back().left;
      const bool repeated = element.repetition == kRepeated;
      inside.definition = groups.back().definition + (repeated || element.repetition == kOptional ? 1 : 0);
      inside.repetition = groups.back().repetition + (repeated ? 1 : 0);
    }
    if (element.children < 0) walk.fail("its schema is no tree");
    if (i == 0 || element.children > 0 || element.type == kNone) {
      groups.push_back(inside);
    } else {
      leaves.push_back({element.type, width_of(element.type, element.length), inside.definition, inside.repetition});
    }
  }
  return leaves;
}

// Statistics: the least and the greatest value, which may be empty, but not a part of one.
void check_statistics(Walk& walk, const Leaf& leaf) {
  std::int64_t id = 0;
  int kind;
  while (walk.field(id, kind)) {
    if ((id != 1 && id != 2 && id != 5 && id != 6) || !walk.is(kind, kBinary)) {
      walk.skip(kind, 0);
      continue;
    }
    const std::uint64_t size = walk.varint();
    if (size != 0 && leaf.width > 0 && size < static_cast<std::uint64_t>(leaf.width)) {
      return walk.fail("the least or the greatest value of a column is shorter than a value");
    }
    walk.pass(size);
  }
}

// SizeStatistics: how often each level occurs, for all levels or for none, and bytes of strings.
void check_sizes(Walk& walk, const Leaf& leaf) {
  std::int64_t id = 0;
  int kind;
  while (walk.field(id, kind)) {
    if (id == 1 && leaf.type != kByteArray) return walk.fail("it tells how long the strings are of a column without any");
    if ((id != 2 && id != 3) || !walk.is(kind, kList)) {
      walk.skip(kind, 0);
      continue;
    }
    int inner;
    const std::size_t count = walk.list(inner);
    const std::int64_t most = id == 2 ? leaf.repetition : leaf.definition;
    if (count != 0 && count != static_cast<std::size_t>(most) + 1) {
      return walk.fail("a column has another number of levels than the schema says");
    }
    for (std::size_t i = 0; i < count && walk.fault == nullptr; ++i) walk.skip(inner, 0);
  }
}

// ColumnMetaData. Its type comes first, and if not, what depends on it is compared with the schema all the same.
std::int64_t column_type(Walk& walk, const Leaf& leaf) {
  std::int64_t id = 0, type = kNone;
  int kind;
  while (walk.field(id, kind)) {
    if (id == 1 && walk.is(kind, kInt32)) {
      type = walk.number();
    } else if (id == 12 && walk.is(kind, kStruct)) {
      check_statistics(walk, leaf);
    } else if (id == 16 && walk.is(kind, kStruct)) {
      check_sizes(walk, leaf);
    } else {
      walk.skip(kind, 0);
    }
  }
  return type;
}

// ColumnChunk. What is encrypted is known to nobody but who has the key.
void check_column(Walk& walk, const Leaf& leaf) {
  std::int64_t id = 0, type = kNone;
  int kind;
  bool encrypted = false;
  while (walk.field(id, kind)) {
    if (id == 3 && walk.is(kind, kStruct)) {
      type = column_type(walk, leaf);
    } else {
      encrypted |= id == 8;
      walk.skip(kind, 0);
    }
  }
  if (!encrypted && type != leaf.type) walk.fail("a row group has a column of another type than the schema says");
}

void check_group(Walk& walk, const std::vector<Leaf>& schema) {
  std::int64_t id = 0;
  int kind;
  std::size_t columns = 0;
  while (walk.field(id, kind)) {
    if (id == 1 && walk.is(kind, kList)) {
      columns = walk.structs();
      if (columns != schema.size()) break;
      for (std::size_t i = 0; i < columns && walk.fault == nullptr; ++i) check_column(walk, schema[i]);
    } else {
      walk.skip(kind, 0);
    }
  }
  if (columns != schema.size()) walk.fail("a row group has another number of columns than the schema says");
}

}  // namespace

const char* parquet_fault(const std::uint8_t* data, std::size_t size) {
  Walk walk{data, data + size};
  std::vector<Leaf> schema;
  std::int64_t id = 0;
  int kind;
  bool told = false;
  while (walk.field(id, kind)) {
    if (id == 2 && walk.is(kind, kList)) {
      // A second one would be the one that counts, for row groups that were compared with the first.
      if (told) walk.fail("it has two schemas");
      schema = read_schema(walk);
      told = true;
    } else if (id == 4 && walk.is(kind, kList)) {
      if (!told) walk.fail("it has row groups before a schema");
      const std::size_t count = walk.structs();
      for (std::size_t i = 0; i < count && walk.fault == nullptr; ++i) check_group(walk, schema);
    } else {
      walk.skip(kind, 0);
    }
  }
  return walk.fault;
}

}  // namespace forebay
