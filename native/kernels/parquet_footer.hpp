// The footer of a Parquet file, as far as it must be sound before Arrow is given it. No Python here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forebay {

// What is wrong with the metadata of a file, in Thrift's compact protocol; nullptr if the columns of all row groups are
// those of the schema.
const char* parquet_fault(const std::uint8_t* data, std::size_t size);

}  // namespace forebay
