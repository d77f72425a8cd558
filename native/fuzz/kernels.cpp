// Hostile bytes for the kernels that read files. With clang this is a libFuzzer target; otherwise it has a main of its
// own, which mutates the files that it is given: kernels SEED ROUNDS FILE...
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "example.hpp"
#include "jpeg.hpp"
#include "parquet_footer.hpp"
#include "records.hpp"
#include "text.hpp"

namespace {

using namespace forebay;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// In memory of exactly its size, so that a sanitizer sees the first byte beyond it.
std::vector<std::uint8_t> own(const std::uint8_t* data, std::size_t size) { return {data, data + size}; }

void records(const std::vector<std::uint8_t>& data) {
  std::vector<std::int64_t> starts(64);
  std::vector<std::int64_t> stops(64);
  for (const bool verify : {false, true}) {
    const Scan scan = scan_records(data.data(), data.size(), starts.size(), verify, starts.data(), stops.data());
    require(scan.rows <= starts.size() && scan.consumed <= data.size(), "a scan stays in its data");
    for (std::size_t i = 0; i < scan.rows; ++i) {
      require(starts[i] >= 0 && stops[i] >= starts[i] && stops[i] <= static_cast<std::int64_t>(data.size()), "records lie in the data");
    }
  }
  const std::ptrdiff_t found = find_header(data.data(), data.size(), 0, data.size());
  require(found >= -1 && found < static_cast<std::ptrdiff_t>(data.size()) + 1, "a header lies in the data");
  require(crc32c(data.data(), data.size()) == crc32c_portable(data.data(), data.size()), "both checksums agree");
  const std::size_t cut = data.size() / 3;
  require(crc32c(data.data() + cut, data.size() - cut, crc32c(data.data(), cut)) == crc32c(data.data(), data.size()),
          "a checksum goes on from that of what was before");
}

Wanted wanted(const char* key, Type type, std::int64_t count, bool sequence, bool required) {
  Wanted made;
  made.key = key;
  made.type = type;
  made.count = count;
  made.sequence = sequence;
  made.required = required;
  for (std::int64_t i = 0; !required && i < count; ++i) {
    made.missing.floats.push(0.5f);
    made.missing.ints.push(i);
    made.missing.bytes.push('d');
    made.missing.ends.push(i + 1);
  }
  return made;
}

const Parser& parser(bool sequences, bool compares = true) {
  const auto make = [](bool with_lists) {
    std::vector<Wanted> features;
    features.push_back(wanted("x", Type::kInt64, 1, false, false));
    features.push_back(wanted("f", Type::kFloat, 4, false, false));
    features.push_back(wanted("s", Type::kBytes, 1, false, false));
    features.push_back(wanted("v", Type::kInt64, -1, false, false));
    features.push_back(wanted("vf", Type::kFloat, -1, false, false));
    features.push_back(wanted("vs", Type::kBytes, -1, false, false));
    if (with_lists) {
      features.push_back(wanted("l", Type::kInt64, 2, true, false));
      features.push_back(wanted("lv", Type::kBytes, -1, true, false));
    }
    return features;
  };
  static const Parser plain(make(false), false);
  static const Parser plainest(make(false), false, false);
  static const Parser lists(make(true), true);
  return sequences ? lists : compares ? plain : plainest;
}

template <class T>
bool equal(const Buffer<T>& one, const Buffer<T>& other) {
  return one.size() == other.size() && (one.size() == 0 || std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0);
}

// Records among good ones of the same length, which they are compared with, come out as they do alone.
void likenesses(const std::vector<std::uint8_t>& data) {
  static std::map<std::size_t, std::vector<std::uint8_t>> good;
  const auto found = good.find(data.size());
  const std::vector<std::uint8_t>& like = found == good.end() ? data : found->second;
  std::vector<Span> rows;
  for (int i = 0; i < 12; ++i) {
    const std::vector<std::uint8_t>& row = i % 3 == 2 ? data : like;
    rows.push_back({row.data(), row.size()});
  }
  std::vector<Values> out[2];
  Fault faults[2];
  for (const bool compares : {false, true}) faults[compares] = parser(false, compares).parse(rows.data(), rows.size(), out[compares]);
  require(faults[0].code == faults[1].code && faults[0].row == faults[1].row && faults[0].feature == faults[1].feature &&
              faults[0].found == faults[1].found, "compared records fail as others do");
  if (faults[0].code != Code::kNone) return;
  for (std::size_t i = 0; i < out[0].size(); ++i) {
    const Values& one = out[0][i];
    const Values& other = out[1][i];
    require(equal(one.floats, other.floats) && equal(one.ints, other.ints) && equal(one.bytes, other.bytes) &&
                equal(one.ends, other.ends) && equal(one.lengths, other.lengths), "compared records have the same values");
  }
  if (good.size() < 4096) good.emplace(data.size(), data);
}

void examples(const std::vector<std::uint8_t>& data, bool sequences) {
  const Parser& known = parser(sequences);
  // The same record three times, so that what is remembered of the first is used for the others.
  const Span rows[3] = {{data.data(), data.size()}, {data.data(), data.size()}, {data.data(), data.size()}};
  std::vector<Values> out;
  const Fault fault = known.parse(rows, 3, out);
  if (fault.code != Code::kNone) {
    require(fault.row == 0, "a record is as bad the first time as the second");
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Wanted& feature = known.wanted()[i];
    if (feature.sequence) {
      require(out[i].steps.size() == 3, "every record has a number of steps");
    } else if (feature.count < 0) {
      require(out[i].lengths.size() == 3, "every record has a length");
      std::int64_t total = 0;
      for (std::size_t row = 0; row < 3; ++row) total += out[i].lengths[row];
      require(total == static_cast<std::int64_t>(out[i].count(feature.type)), "lengths add up");
    } else {
      require(out[i].count(feature.type) == 3 * static_cast<std::size_t>(feature.count), "fixed lengths are fixed");
    }
  }
}

void lines(const std::vector<std::uint8_t>& data) {
  std::vector<std::int64_t> starts(64);
  std::vector<std::int64_t> stops(64);
  for (const bool last : {false, true}) {
    const Lines found = scan_lines(data.data(), data.size(), last, starts.size(), starts.data(), stops.data());
    require(found.rows <= starts.size() && found.consumed <= data.size(), "lines stay in their data");
    for (std::size_t i = 0; i < found.rows; ++i) {
      require(starts[i] >= 0 && stops[i] >= starts[i] && stops[i] <= static_cast<std::int64_t>(data.size()), "a line lies in the data");
    }
  }
}

template <class T>
bool equal_at(const Buffer<T>& one, std::size_t row, const Buffer<T>& other) {
  return other.size() == 0 || std::memcmp(one.data() + row, other.data(), sizeof(T)) == 0;
}

// Records are read many at a time if they are alike; each of them comes out as it does alone.
void csv_alone(const CsvParser& parser, const std::vector<std::uint8_t>& data, const std::vector<CsvValues>& all, const CsvEnd& end) {
  std::size_t at = 0;
  for (std::size_t row = 0; row <= end.rows; ++row) {
    const std::vector<std::uint8_t> rest = own(data.data() + at, data.size() - at);
    std::vector<CsvValues> out;
    const CsvEnd one = parser.parse(rest.data(), rest.size(), true, 1, out);
    if (row == end.rows) {
      require(row == 64 || (one.rows == 0 && one.fault == end.fault && one.field == end.field), "a record is as bad alone");
      require(row == 64 || end.fault == CsvFault::kNone || (at + one.start == end.start && at + one.record_end == end.record_end), "and in the same place");
      break;
    }
    require(one.rows == 1, "a record is as good alone");
    for (std::size_t i = 0; i < out.size(); ++i) {
      const CsvValues& whole = all[i];
      const CsvValues& value = out[i];
      bool same = equal_at(whole.int32s, row, value.int32s) && equal_at(whole.int64s, row, value.int64s) &&
                  equal_at(whole.floats, row, value.floats) && equal_at(whole.doubles, row, value.doubles);
      if (value.offsets.size() != 0) {
        const std::int64_t* offsets = whole.offsets.data() + row;
        const auto size = static_cast<std::size_t>(offsets[1] - offsets[0]);
        same = same && static_cast<std::int64_t>(size) == value.offsets.data()[1] &&
               (size == 0 || std::memcmp(whole.bytes.data() + offsets[0], value.bytes.data(), size) == 0);
      }
      require(same, "a record has the same values alone");
    }
    at += one.consumed;
  }
}

void csv(const std::vector<std::uint8_t>& data) {
  const CsvDialect dialect{',', data.size() % 2 == 0};
  const auto column = [](int type) {
    return CsvColumn{static_cast<CsvType>(type), type == 0, 7, 0.5, "none"};
  };
  const CsvParser all({column(0), column(1), column(2), column(3), column(4)}, {}, dialect, "NA");
  const CsvParser some({column(4), column(3)}, {0, 2}, dialect, "");
  for (const CsvParser* parser : {&all, &some}) {
    std::size_t rows[2];
    for (const bool last : {false, true}) {
      std::vector<CsvValues> out;
      const CsvEnd end = parser->parse(data.data(), data.size(), last, 64, out);
      require(end.rows <= 64 && end.consumed <= data.size(), "records stay in their data");
      require(end.stop != CsvStop::kMore || !last, "the last record is whole");
      if (end.stop == CsvStop::kFault) {
        require(end.start <= end.end && end.end <= data.size() && end.record_end <= data.size(), "a fault lies in the data");
      }
      rows[last] = end.rows;
      if (last) csv_alone(*parser, data, out, end);
    }
    require(rows[0] <= rows[1], "what is whole without the end is whole with it");
  }
  std::vector<std::string> fields;
  const CsvEnd end = csv_fields(data.data(), data.size(), true, dialect, fields);
  require(end.rows == 0 || !fields.empty(), "a record has a field");
}

void footer(const std::vector<std::uint8_t>& data) {
  const char* fault = parquet_fault(data.data(), data.size());
  require(fault == nullptr || *fault != 0, "a fault has a name");
  require(!data.empty() || fault != nullptr, "nothing is no footer");
}

// Kept from one image to the next, as a worker keeps it.
void jpeg(const std::vector<std::uint8_t>& data) {
  static JpegPlanes planes;
  constexpr std::size_t kMost = 1 << 16;
  for (const unsigned ratio : {1u, 2u, 4u, 8u}) {
    const bool grey = data.size() % 2 == 0;
    if (!planes.decode(data.data(), data.size(), ratio, grey, kMost)) {
      require(planes.planes() == 0, "there is no image after a failure");
      continue;
    }
    require(planes.planes() == 1 || planes.planes() == 3, "an image has colours or none");
    const Plane& first = planes.plane(0);
    const Plane& last = planes.plane(planes.planes() - 1);
    require(first.height > 0 && first.width > 0 && first.height * first.width <= kMost, "an image has its size");
    require(first.pixels.size() >= first.height * first.stride, "an image has all of its pixels");
    // Its corners, which are the first and the last that can be asked for.
    const float weights[] = {1.0f, 1.0f};
    const auto ends = [](std::size_t size) { return std::vector<std::int64_t>{0, static_cast<std::int64_t>(size) - 1}; };
    const std::vector<std::int64_t> starts[] = {ends(first.height), ends(first.width), ends(last.height), ends(last.width)};
    const auto taps = [&](int axis) { return Taps{starts[axis].data(), weights, 2, 1}; };
    std::vector<std::uint8_t> out(2 * 2 * 3);
    planes.resize(taps(0), taps(1), taps(2), taps(3), 3, out.data());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> input = own(data, size);
  records(input);
  examples(input, false);
  examples(input, true);
  likenesses(input);
  lines(input);
  csv(input);
  footer(input);
  jpeg(input);
  return 0;
}

#ifdef FOREBAY_STANDALONE
namespace {

std::vector<std::uint8_t> mutated(const std::vector<std::vector<std::uint8_t>>& corpus, std::mt19937_64& chance) {
  std::vector<std::uint8_t> data = corpus[chance() % corpus.size()];
  for (std::uint64_t change = chance() % 5; change > 0 && !data.empty(); --change) {
    const auto at = static_cast<std::ptrdiff_t>(chance() % data.size());
    switch (chance() % 7) {
      case 0:
        data[at] = static_cast<std::uint8_t>(chance());
        break;
      case 1:
        data[at] = static_cast<std::uint8_t>(data[at] ^ (1u << chance() % 8));
        break;
      case 2:
        data.erase(data.begin() + at);
        break;
      case 3:
        data.insert(data.begin() + at, static_cast<std::uint8_t>(chance() % 2 != 0 ? 0xff : chance()));
        break;
      case 4:
        data.resize(at);
        break;
      case 5:
        for (int i = 0; i < 9 && at + i < static_cast<std::ptrdiff_t>(data.size()); ++i) data[at + i] = 0xff;
        break;
      default: {
        const std::vector<std::uint8_t>& other = corpus[chance() % corpus.size()];
        data.insert(data.begin() + at, other.begin(), other.begin() + static_cast<std::ptrdiff_t>(chance() % (other.size() + 1)));
      }
    }
  }
  return data;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  std::mt19937_64 chance(std::strtoull(arguments[1], nullptr, 10));
  const std::uint64_t rounds = std::strtoull(arguments[2], nullptr, 10);
  std::vector<std::vector<std::uint8_t>> corpus;
  for (int i = 3; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    LLVMFuzzerTestOneInput(corpus.back().data(), corpus.back().size());
  }
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::vector<std::uint8_t> data = mutated(corpus, chance);
    LLVMFuzzerTestOneInput(data.data(), data.size());
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(rounds + corpus.size()));
}
#endif
