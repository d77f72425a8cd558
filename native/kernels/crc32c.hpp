// CRC-32C (Castagnoli). No Python here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forebay {

// That of the data, or of it behind other data whose checksum was `before`.
std::uint32_t crc32c(const std::uint8_t* data, std::size_t size, std::uint32_t before = 0);
// The same without the processor's instruction.
std::uint32_t crc32c_portable(const std::uint8_t* data, std::size_t size, std::uint32_t before = 0);
// That of two pieces of data behind one another, from those of each, of which the second has so many bytes.
std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::size_t size);

}  // namespace forebay
