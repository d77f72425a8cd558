#include "memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace forebay {
namespace {

constexpr std::size_t kPage = 4096;
// The C library keeps smaller ones by itself.
constexpr std::size_t kLarge = 1 << 16;
// Counted once however many pipelines run: a part of the fixed allowance above a budget.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kKeptBytes = 0;  // So that a piece that is used after it was given back is noticed.
#else
constexpr std::size_t kKeptBytes = 12 << 20;
#endif
constexpr std::size_t kKeptPieces = 32;
// One that was not asked for while so many others were is of a size that has gone out of use. Blocks differ in size as
// they grow, and from time to time; all those of the past would add up to the most that is kept.
constexpr std::size_t kKeptTakes = 64;

// A roomy piece is larger by no more than a part of so many.
constexpr std::size_t kSpareShare = 12;

// Sizes that differ a little are made equal, so that one piece serves for all of them.
std::size_t rounded(std::size_t bytes) {
  std::size_t step = kPage;
  while (step < bytes / 16) step *= 2;
  if (bytes > static_cast<std::size_t>(-1) - step) throw std::bad_alloc();
  return (bytes + step - 1) / step * step;
}

// Before every large piece.
struct Head {
  void* begin;
  std::size_t bytes;
};

Head head_of(const void* memory) {
  Head head;
  std::memcpy(&head, static_cast<const std::uint8_t*>(memory) - sizeof(Head), sizeof(Head));
  return head;
}

// At the start of a page. Not by `aligned_alloc`, which leaves what lies before that to small objects: with these in the
// way, the next piece of the same size no longer fits to where the last one was, and the heap grows with every other one.
void* take_pages(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(-1) - 2 * kPage) return nullptr;
  const Head head{std::malloc(bytes + kPage + sizeof(Head)), bytes};
  if (head.begin == nullptr) return nullptr;
  const auto place = reinterpret_cast<std::uintptr_t>(head.begin) + sizeof(Head);
  std::uint8_t* const memory = static_cast<std::uint8_t*>(head.begin) + sizeof(Head) + (kPage - place % kPage) % kPage;
  std::memcpy(memory - sizeof(Head), &head, sizeof(Head));
  return memory;
}

void free_pages(void* memory) noexcept { std::free(head_of(memory).begin); }

std::atomic<std::size_t> beyond{0};

// What a piece takes, if only that many bytes of it were asked for, besides these.
std::size_t beyond_of(const void* memory, std::size_t bytes) noexcept {
  const Head head = head_of(memory);
#if defined(__GLIBC__)
  return malloc_usable_size(head.begin) - bytes;
#else
  return head.bytes + kPage + sizeof(Head) - bytes;
#endif
}

struct Piece {
  void* memory;
  std::size_t bytes;
  std::size_t given;  // After how many takes.
};

class Kept {
 public:
  // One of that size, or a little larger if it may be `roomy`; null if there is none.
  void* take(std::size_t bytes, bool roomy) {
    const std::lock_guard<std::mutex> locked(lock_);
    ++takes_;
    std::size_t found = count_;
    for (std::size_t i = count_; i-- > 0;) {
      const std::size_t size = pieces_[i].bytes;
      if (size < bytes || size - bytes > (roomy ? size / kSpareShare : 0)) continue;
      if (found == count_ || size < pieces_[found].bytes) found = i;
    }
    if (found == count_) return nullptr;
    void* memory = pieces_[found].memory;
    remove(found);
    return memory;
  }

  // Whether it is kept; older ones may have to go for it.
  bool give(void* memory) {
    const std::size_t bytes = head_of(memory).bytes;
    if (bytes > kKeptBytes) return false;
    const std::lock_guard<std::mutex> locked(lock_);
    while (count_ != 0 && (count_ == kKeptPieces || bytes_ + bytes > kKeptBytes ||
                           takes_ - pieces_[0].given > kKeptTakes)) {
      free_pages(pieces_[0].memory);
      remove(0);
    }
    pieces_[count_++] = {memory, bytes, takes_};
    bytes_ += bytes;
    return true;
  }

  std::size_t clear() {
    const std::lock_guard<std::mutex> locked(lock_);
    const std::size_t bytes = bytes_;
    while (count_ != 0) {
      free_pages(pieces_[count_ - 1].memory);
      remove(count_ - 1);
    }
    return bytes;
  }

  std::size_t bytes() {
    const std::lock_guard<std::mutex> locked(lock_);
    return bytes_;
  }

 private:
  void remove(std::size_t place) {
    bytes_ -= pieces_[place].bytes;
    std::copy(pieces_ + place + 1, pieces_ + count_, pieces_ + place);
    --count_;
  }

  std::mutex lock_;
  Piece pieces_[kKeptPieces];
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  std::size_t takes_ = 0;
};

Kept& kept() {
  // Never destroyed: arrays may be let go of until the very end of the process.
  static Kept& made = *new Kept;
  return made;
}

}  // namespace

void* take_memory(std::size_t bytes, bool roomy) {
  void* memory = nullptr;
  if (bytes < kLarge) {
    memory = std::malloc(std::max<std::size_t>(bytes, 1));
  } else {
    const std::size_t whole = rounded(bytes);
    memory = kept().take(whole, roomy);
    if (memory == nullptr) memory = take_pages(whole);
    if (memory != nullptr) beyond.fetch_add(beyond_of(memory, bytes), std::memory_order_relaxed);
  }
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give_memory(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  if (bytes < kLarge) {
    std::free(memory);
    return;
  }
  beyond.fetch_sub(beyond_of(memory, bytes), std::memory_order_relaxed);
  if (!kept().give(memory)) free_pages(memory);
}

std::size_t clear_memory() noexcept { return kept().clear(); }

std::size_t kept_memory() noexcept { return kept().bytes(); }

std::size_t memory_beyond() noexcept { return beyond.load(std::memory_order_relaxed); }

void* resize_memory(void* memory, std::size_t bytes, std::size_t wanted) {
  if (memory != nullptr && std::max(bytes, wanted) < kLarge) {
    void* grown = std::realloc(memory, std::max<std::size_t>(wanted, 1));
    if (grown == nullptr) throw std::bad_alloc();
    return grown;
  }
  void* other = take_memory(wanted);
  if (memory != nullptr) {
    std::memcpy(other, memory, std::min(bytes, wanted));
    give_memory(memory, bytes);
  }
  return other;
}

}  // namespace forebay
