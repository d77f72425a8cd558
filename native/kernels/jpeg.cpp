#include "jpeg.hpp"

#include <algorithm>
#include <cstring>

#include "idct.hpp"
#include "vectors.hpp"

namespace forebay {
namespace {

constexpr unsigned kPlaces = 64;
// What a unit of the scan can take: 6 blocks, of each 64 codes with numbers behind them of at most 31 bits together.
// Bits are read without asking for their end, which is looked for once in a unit.
constexpr std::size_t kUnitBytes = 6 * kPlaces * 4 + 16;
constexpr unsigned kStepsPerFill = 56 / HuffmanCode::kLook;
constexpr unsigned kLeapsPerFill = 56 / HuffmanCode::kFar;
// Numbers of more bits do not occur in images of 8 bits.
constexpr int kLargestDifference = 11;

// A number that takes more than its first bits to find: zeros in front of it, and its bits, which are still to be read.
// Where the block ends, `zeros` is HuffmanCode::kEnd.
struct Rare {
  unsigned zeros;
  unsigned size;
};

// False if no number is written like that.
FOREBAY_INLINE bool read_rare(Bits& bits, const HuffmanCode& code, Rare& found) {
  bits.fill();
  const int symbol = code.symbol(bits);
  found = {static_cast<unsigned>(symbol) >> 4, static_cast<unsigned>(symbol) & 15};
  if (symbol == 0) found.zeros = HuffmanCode::kEnd;
  // Without a number, there is either no zero in front of it or a whole run of them.
  return symbol >= 0 && (found.size != 0 || found.zeros == 15 || symbol == 0);
}

// Goes on behind coefficients that do not count; false if the data is damaged.
FOREBAY_INLINE bool pass_over(Bits& bits, const HuffmanCode& code, unsigned place) {
  while (place < kPlaces) {
    bits.fill();
    bool rare = false;
    for (unsigned i = 0; i < kLeapsPerFill && place < kPlaces; ++i) {
      const HuffmanCode::Leap leap = code.leap(bits);
      rare = leap.bits() == 0 || place + leap.places() > kPlaces;
      if (rare) break;
      bits.skip(leap.bits());
      if (leap.ends()) return true;
      place += leap.places();
    }
    if (!rare) continue;
    Rare found;
    if (!read_rare(bits, code, found)) return false;
    if (found.zeros == HuffmanCode::kEnd) return true;
    bits.skip(found.size);
    place += found.zeros + 1;
  }
  return place == kPlaces;
}

// One of brightness and colours, while its blocks are read.
struct Component {
  const HuffmanCode& dc;
  const HuffmanCode& ac;
  Dequantisation numbers;
  std::uint32_t level = 0;  // Unsigned, so that damaged data may go round.

  // Blocks begin with their mean, as its difference from that of the block before. False if the data is damaged.
  FOREBAY_INLINE bool read_level(Bits& bits) {
    bits.fill();
    const int size = dc.symbol(bits);
    if (size < 0 || size > kLargestDifference) return false;
    level += static_cast<std::uint32_t>(extended(bits.peek(static_cast<unsigned>(size)), static_cast<unsigned>(size)));
    bits.skip(static_cast<unsigned>(size));
    return true;
  }

  // The coefficients that count. `flat` stays true if all of them are 0.
  FOREBAY_INLINE bool read_numbers(Bits& bits, float* block, bool& flat) const {
    unsigned place = 1;
    while (place <= numbers.last) {
      bits.fill();
      bool rare = false;
      for (unsigned i = 0; i < kStepsPerFill && place <= numbers.last; ++i) {
        const HuffmanCode::Step step = ac.step(bits);
        rare = step.value == 0;
        if (rare) {
          if (step.run != HuffmanCode::kEnd) break;
          bits.skip(step.bits);
          return true;
        }
        bits.skip(step.bits);
        place += step.run;
        block[numbers.places[place]] = static_cast<float>(step.value) * numbers.factors[place];
        ++place;
        flat = false;
      }
      if (!rare) continue;
      Rare found;
      if (!read_rare(bits, ac, found)) return false;
      if (found.zeros == HuffmanCode::kEnd) return true;
      place += found.zeros;
      if (found.size != 0) {
        const std::int32_t value = extended(bits.peek(found.size), found.size);
        block[numbers.places[place]] = static_cast<float>(value) * numbers.factors[place];
        bits.skip(found.size);
        flat = false;
      }
      ++place;
    }
    return pass_over(bits, ac, place);
  }

  // The next block, of `side` x `side` pixels.
  template <std::size_t side>
  bool read(Bits& stream, std::uint8_t* out, std::size_t stride) {
    // A copy can stay in registers.
    Bits bits = stream;
    alignas(32) float block[side * side + 1] = {};
    bool flat = true;
    if (!read_level(bits)) return false;
    // Half of one: what comes out is cut.
    block[0] = static_cast<float>(static_cast<std::int32_t>(level)) * numbers.factors[0] + 128.5f;
    if (!(side == 1 ? pass_over(bits, ac, 1) : read_numbers(bits, block, flat))) return false;
    stream = bits;
    inverse<side>(block, flat, out, stride);
    return true;
  }

  bool read(Bits& stream, std::uint8_t* out, std::size_t stride) {
    switch (numbers.side) {
      case 8:
        return read<8>(stream, out, stride);
      case 4:
        return read<4>(stream, out, stride);
      case 2:
        return read<2>(stream, out, stride);
      default:
        return read<1>(stream, out, stride);
    }
  }

  bool pass(Bits& bits) { return read_level(bits) && pass_over(bits, ac, 1); }
};

std::size_t parts(std::size_t whole, std::size_t part) { return (whole + part - 1) / part; }

}  // namespace

bool JpegPlanes::decode(const std::uint8_t* data, std::size_t size, unsigned ratio, bool grey, std::size_t max_pixels) {
  planes_ = 0;
  if (size < 4 || data[0] != 0xFF || data[1] != 0xD8 || !frame_.read(data, size)) return false;
  if (frame_.height * frame_.width > max_pixels) return false;
  const std::size_t planes = grey ? 1 : frame_.components;
  if (!unstuff(data + frame_.pixels, size - frame_.pixels) || !scan(ratio, planes)) return false;
  planes_ = planes;
  return true;
}

// Copies the scan without what keeps its bytes apart from marks, and cuts it at restarts.
bool JpegPlanes::unstuff(const std::uint8_t* data, std::size_t size) {
  bytes_.resize(size + kUnitBytes);
  intervals_.clear();
  std::uint8_t* out = bytes_.data();
  const std::uint8_t* const end = data + size;
  while (true) {
    const void* const found = std::memchr(data, 0xFF, static_cast<std::size_t>(end - data));
    // Without a mark at its end the file is cut short.
    if (found == nullptr) return false;
    const std::uint8_t* const mark = static_cast<const std::uint8_t*>(found);
    if (end - mark < 2) return false;
    const std::size_t run = static_cast<std::size_t>(mark - data);
    std::memcpy(out, data, run);
    out += run;
    data = mark + 2;
    if (mark[1] == 0x00) {
      *out++ = 0xFF;
      continue;
    }
    const std::size_t so_far = static_cast<std::size_t>(out - bytes_.data());
    if (mark[1] == 0xD0 + intervals_.size() % 8) {
      intervals_.push_back(so_far);
      continue;
    }
    intervals_.push_back(so_far);
    std::memset(out, 0, kUnitBytes);
    return mark[1] == 0xD9;
  }
}

bool JpegPlanes::scan(unsigned ratio, std::size_t planes) {
  const std::size_t across = frame_.component[0].across, down = frame_.component[0].down;
  const std::size_t units_across = parts(frame_.width, 8 * across), units_down = parts(frame_.height, 8 * down);
  const std::size_t units = units_across * units_down;
  const std::size_t restart = frame_.restart != 0 ? frame_.restart : units;
  if (intervals_.size() != parts(units, restart)) return false;
  // A block takes two bits at least. A size that is only claimed costs no memory.
  if (units * (frame_.components == 3 ? across * down + 2 : 1) * 2 > intervals_.back() * 8) return false;

  std::vector<Component> components;
  for (std::size_t i = 0; i < frame_.components; ++i) {
    const JpegComponent& each = frame_.component[i];
    // Colours of half the resolution need not be made as much smaller.
    const std::size_t side = i != 0 && across == 2 && down == 2 && ratio > 1 ? 16 / ratio : 8 / ratio;
    HuffmanCode& ac = frame_.ac[each.ac];
    components.push_back({frame_.dc[each.dc], ac, {side, frame_.quantisation[each.quantisation]}});
    if (side < 8 || i >= planes) ac.prepare_leaps();
    if (i >= planes) continue;
    if (side > 1) ac.prepare_steps();
    Plane& plane = plane_[i];
    plane.height = parts(frame_.height * each.down * side, down * 8);
    plane.width = parts(frame_.width * each.across * side, across * 8);
    plane.stride = units_across * each.across * side;
    plane.pixels.resize(plane.stride * units_down * each.down * side);
  }

  std::size_t unit = 0, began = 0;
  for (const std::size_t ended : intervals_) {
    Bits bits(bytes_.data() + began);
    const std::size_t most = (ended - began) * 8;
    for (Component& each : components) each.level = 0;
    for (const std::size_t stop = std::min(unit + restart, units); unit < stop; ++unit) {
      const std::size_t row = unit / units_across, column = unit % units_across;
      for (std::size_t i = 0; i < components.size(); ++i) {
        Component& component = components[i];
        const JpegComponent& each = frame_.component[i];
        const std::size_t side = component.numbers.side;
        for (std::size_t y = 0; y < each.down; ++y) {
          for (std::size_t x = 0; x < each.across; ++x) {
            if (i >= planes) {
              if (!component.pass(bits)) return false;
              continue;
            }
            Plane& plane = plane_[i];
            const std::size_t top = (row * each.down + y) * side, left = (column * each.across + x) * side;
            if (!component.read(bits, plane.pixels.data() + top * plane.stride + left, plane.stride)) return false;
          }
        }
      }
      if (bits.used() > most) return false;
    }
    // Whole bytes that are left over are none of the image's.
    if (most - bits.used() >= 8) return false;
    began = ended;
  }
  return true;
}

}  // namespace forebay
