// What the engine asks of native code. No Python here: every function takes plain pointers that the
// bindings have already checked, and may run without the interpreter's lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forebay {

// Copies `count` byte ranges [starts[i], stops[i]) of `source` behind one another into `out`, which has `room`.
// Returns the index of the first range that is not inside the source or does not fit, or -1 when all were copied.
std::ptrdiff_t gather_ranges(const std::uint8_t* source, std::int64_t source_size, const std::int64_t* starts,
                             const std::int64_t* stops, std::size_t count, std::uint8_t* out,
                             std::size_t room);

// Ranges [starts[i], stops[i]) of a buffer that is known by a number.
struct WeavePart {
  std::int64_t number;
  const std::int64_t* starts;
  const std::int64_t* stops;
  std::size_t rows;
};

// What of its parts, up to `end`, a source has left to give: all but the first `given` rows of the first one.
struct WeaveSource {
  const WeavePart* parts;
  const WeavePart* end;
  std::size_t given;
};

// Takes ranges from `count` sources, at least one, in turns of `length` rows, of the first of which `done` < `length`
// have been taken. Returns how many: fewer than `rows` only if the source whose turn it is has no more.
std::size_t weave(WeaveSource* sources, std::size_t count, std::size_t done, std::size_t length, std::size_t rows,
                  std::int64_t* which, std::int64_t* starts, std::int64_t* stops);

// Writes to out[i] where positions[i] of the range [0, size) goes under a keyed bijection of that range.
// Returns the index of the first position outside the range, or -1 when all were mapped.
std::ptrdiff_t permute(const std::int64_t* positions, std::size_t count, std::uint64_t size,
                       const std::uint64_t key[2], std::int64_t* out);

// Writes random words number `start` and on of the stream that a key names: those of NumPy's Philox with that key and a
// counter of start / 4, from word start % 4 on.
void philox(const std::uint64_t key[2], std::uint64_t start, std::size_t count, std::uint64_t* out);

// One step of a shuffle buffer per slot: out[i] takes what lies in slots[i], and incoming[i] takes its place.
// Returns the index of the first slot outside the buffer, or -1 when all were exchanged.
std::ptrdiff_t exchange(std::int64_t* buffer, std::size_t size, const std::int64_t* slots,
                        const std::int64_t* incoming, std::size_t count, std::int64_t* out);

// The same when nothing comes in any more: the last of the `live` entries moves into the slot that was emptied.
std::ptrdiff_t drain(std::int64_t* buffer, std::size_t live, const std::int64_t* slots, std::size_t count,
                     std::int64_t* out);

// From the last of `slots` to the first: sets bit i of `kept` if slots[i] - low is one of the 8 * `bytes` bits of `seen`
// and was not set there, and sets it. Returns how many were. Bits of a byte are counted from the lowest on.
std::size_t keep_last(std::uint8_t* seen, std::size_t bytes, std::int64_t low, const std::int64_t* slots,
                      std::size_t count, std::uint8_t* kept);

// How many of these rows, at least one, lie behind one another with at most `gap` bytes between two of them, all within
// kWindow bytes. A call of the system takes longer than copying what is between.
constexpr std::int64_t kWindow = 1 << 16;
constexpr std::int64_t kReadGap = 2048;
constexpr std::int64_t kWriteGap = 1024;
std::size_t rows_at_once(const std::int64_t* rows, std::size_t count, std::int64_t stride, std::int64_t gap);

// Reads rows of `row_bytes` bytes, row r lying at offset + r * stride of an open file, behind one another into `out`.
// Returns 0, an errno, or kEndOfFile if a row lies beyond the end.
constexpr int kEndOfFile = -1;
int read_rows(int file, std::int64_t offset, std::int64_t stride, std::size_t row_bytes, const std::int64_t* rows,
              std::size_t count, std::uint8_t* out);

// Writes `count` rows of `row_bytes` bytes each from `in`, row r to r * row_bytes of the file, and may write what lies
// between them as it is: nobody else may write to the file. Returns 0, or the errno of what failed.
int write_rows(int file, std::size_t row_bytes, const std::int64_t* rows, std::size_t count, const std::uint8_t* in);

// The same for the byte ranges [starts[i], stops[i]), which must not be negative, one behind another.
int read_ranges(int file, const std::int64_t* starts, const std::int64_t* stops, std::size_t count, std::uint8_t* out);

// Reads `size` bytes from `offset` on and takes their CRC-32C on the way. Returns the same.
int read_checked(int file, std::int64_t offset, std::size_t size, std::uint8_t* out, std::uint32_t* checksum);

// Has the disk set that part of a file aside, whose size stays as it is: who then writes there takes a quarter to a third
// less time. False if it could not, or did not for the file system keeping its files in memory.
bool allocate_ahead(int file, std::int64_t offset, std::int64_t size);

// Gives the disk that part of a file back, of which whole pages read as zeros from now on. False if it could not.
bool free_range(int file, std::int64_t offset, std::int64_t size);

// Nanoseconds in which the calling thread could have run, had a processor been free; 0 where the system does not tell.
std::int64_t queued_nanoseconds();

// Copies rows of `width` bytes that lie behind one another, each to its target, if it has one: rows that are long enough
// past the caches.
void scatter_rows(const std::uint8_t* rows, std::size_t width, std::uint8_t* const* targets, std::size_t count);

// Copies a field of `width` bytes of record places[i] to row i; the first record begins at the field that is meant, and the
// others are `stride` bytes apart.
void gather_rows(const std::uint8_t* records, std::size_t stride, const std::int64_t* places, std::size_t count,
                 std::size_t width, std::uint8_t* rows);

// The order of random words, of which the first `known` bits are the same in all; equal ones as they lie.
void order_words(const std::uint64_t* words, std::size_t count, unsigned known, std::int64_t* order);

}  // namespace forebay
