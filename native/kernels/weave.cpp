#include "kernels.hpp"

namespace forebay {

std::size_t weave(WeaveSource* sources, std::size_t count, std::size_t done, std::size_t length, std::size_t rows,
                  std::int64_t* which, std::int64_t* starts, std::int64_t* stops) {
  std::size_t row = 0;
  std::size_t left = length - done;  // Of the turn.
  for (std::size_t at = 0; row < rows; at = at + 1 == count ? 0 : at + 1, left = length) {
    WeaveSource& source = sources[at];
    for (; left != 0 && row < rows; --left, ++row) {
      while (source.parts != source.end && source.given == source.parts->rows) {
        ++source.parts;
        source.given = 0;
      }
      if (source.parts == source.end) return row;
      which[row] = source.parts->number;
      starts[row] = source.parts->starts[source.given];
      stops[row] = source.parts->stops[source.given];
      ++source.given;
    }
  }
  return row;
}

}  // namespace forebay
