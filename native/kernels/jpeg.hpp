// JPEG images in another size, decoded no larger than that takes.
//
// Brightness and colours are decoded to planes, of the resolution that each has in the file or less, and brought to
// the new size by themselves. What only the whole image would need is left out: colours for every one of its pixels,
// and of frequencies that are too fine for the new size all but their length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "jpeg_frame.hpp"
#include "resize.hpp"

namespace forebay {

struct Plane {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t stride = 0;
  std::vector<std::uint8_t> pixels;
};

// Keeps its memory from one image to the next. Not for several threads at once.
class JpegPlanes {
 public:
  // Decodes an image to planes that are 1, 2, 4 or 8 times smaller; without its colours if only `grey` is wanted. False
  // for other kinds of files, larger ones than `max_pixels` and damaged ones alike: there are better judges of those.
  bool decode(const std::uint8_t* data, std::size_t size, unsigned ratio, bool grey, std::size_t max_pixels);

  // How many planes the last image has: brightness, and two of colours, which are equal in size.
  std::size_t planes() const { return planes_; }
  const Plane& plane(std::size_t index) const { return plane_[index]; }

  // The image in red, green and blue, or grey. Rows and columns are those of the first plane and of the others.
  template <typename Out>
  void resize(const Taps& rows, const Taps& columns, const Taps& colour_rows, const Taps& colour_columns,
              std::size_t channels, Out* out);

 private:
  bool unstuff(const std::uint8_t* data, std::size_t size);
  bool scan(unsigned ratio, std::size_t planes);

  JpegFrame frame_;
  std::size_t planes_ = 0;
  std::array<Plane, 3> plane_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::size_t> intervals_;  // Where the bytes up to each restart end.
  // Eight rows of the new image at a time: rows of a plane, the same as columns, and what becomes of each plane.
  std::vector<float> rows_;
  std::vector<float> columns_;
  std::array<std::vector<float>, 3> made_;
  std::vector<float> coloured_;
};

}  // namespace forebay
