// Hostile bytes for the kernels that read files. With clang this is a libFuzzer target; otherwise it has a main of its
// own, which mutates the files that it is given: kernels SEED ROUNDS FILE...
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "example.hpp"
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

const Parser& parser(bool sequences) {
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
  static const Parser lists(make(true), true);
  return sequences ? lists : plain;
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
    }
    require(rows[0] <= rows[1], "what is whole without the end is whole with it");
  }
  std::vector<std::string> fields;
  const CsvEnd end = csv_fields(data.data(), data.size(), true, dialect, fields);
  require(end.rows == 0 || !fields.empty(), "a record has a field");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> input = own(data, size);
  records(input);
  examples(input, false);
  examples(input, true);
  lines(input);
  csv(input);
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
