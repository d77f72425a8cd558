// Memory for blocks of rows. One that is let go of is likely to be asked for again at once, and memory that comes from
// the system has to be cleared first, page by page: a few large pieces are kept. No Python here.
#pragma once

#include <cstddef>

namespace forebay {

// At least so many bytes, to be given back with `give_memory` and the same number. Large pieces begin at a page. A `roomy`
// one may be a twelfth larger: for blocks that come one after another and are rarely of one size, since to have pages
// cleared takes longer than to fill them; of many at once the rest would add up.
void* take_memory(std::size_t bytes, bool roomy = false);
void give_memory(void* memory, std::size_t bytes) noexcept;

// Gives what is kept back to the system; how many bytes that was.
std::size_t clear_memory() noexcept;

// How many bytes are kept: in use as far as the C library knows, and by nobody.
std::size_t kept_memory() noexcept;

// By how much the large pieces that are in use are larger than was asked for: the C library counts all of it.
std::size_t memory_beyond() noexcept;

// The same piece with another size; what was in it is still there.
void* resize_memory(void* memory, std::size_t bytes, std::size_t wanted);

}  // namespace forebay
