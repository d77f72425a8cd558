// The checksum of messages of many lengths and places in memory, by the processor's instruction and by tables. For
// processors that this was not written on: see tests/native/test_arm64.py.
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "crc32c.hpp"

int main() {
  const std::uint8_t digits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  if (forebay::crc32c(digits, sizeof digits) != 0xe3069283u) {
    std::puts("the checksum that everybody knows is another one here");
    return 1;
  }
  std::mt19937_64 chance(1);
  std::vector<std::uint8_t> data(1 << 17);
  for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(chance());
  int checked = 0;
  for (std::size_t size = 0; size < (1 << 16); size += size < 1024 ? 1 : 997) {
    for (const std::size_t at : {0, 1, 7, 8, 63}) {
      if (forebay::crc32c(data.data() + at, size) != forebay::crc32c_portable(data.data() + at, size)) {
        std::printf("%zu bytes at %zu differ\n", size, at);
        return 1;
      }
      // In two pieces, cut anywhere: the second goes on from the first.
      const std::size_t cut = size == 0 ? 0 : chance() % size;
      const std::uint8_t* rest = data.data() + at + cut;
      const std::uint32_t before = forebay::crc32c(data.data() + at, cut);
      if (forebay::crc32c(rest, size - cut, before) != forebay::crc32c_portable(data.data() + at, size) ||
          forebay::crc32c_portable(rest, size - cut, before) != forebay::crc32c_portable(data.data() + at, size)) {
        std::printf("%zu bytes at %zu differ when cut at %zu\n", size, at, cut);
        return 1;
      }
      ++checked;
    }
  }
  std::printf("%d checksums\n", checked);
  return 0;
}
