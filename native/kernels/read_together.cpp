#include "read_together.hpp"

#include <algorithm>

#include "crc32c.hpp"
#include "kernels.hpp"

namespace forebay {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 19;

}  // namespace

TogetherJob::TogetherJob(int file, std::int64_t offset, std::size_t size, std::uint8_t* out)
    : file_(file), offset_(offset), size_(size), out_(out), pieces_((size + kPiece - 1) / kPiece) {}

void TogetherJob::help() {
  for (std::size_t i = next_++; i < pieces_.size(); i = next_++) {
    const std::size_t start = i * kPiece;
    Piece& piece = pieces_[i];
    piece.error = read_checked(file_, offset_ + static_cast<std::int64_t>(start), std::min(kPiece, size_ - start),
                               out_ + start, &piece.checksum);
  }
}

int TogetherJob::result(std::uint32_t* checksum) const {
  *checksum = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].error != 0) return pieces_[i].error;
    *checksum = crc32c_joined(*checksum, pieces_[i].checksum, std::min(kPiece, size_ - i * kPiece));
  }
  return 0;
}

}  // namespace forebay
