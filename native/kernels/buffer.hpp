// A growing array whose memory can be handed over. Unlike std::vector it does not clear what is about to be written.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "memory.hpp"

namespace forebay {

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), room_(std::exchange(other.room_, 0)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
    return *this;
  }
  ~Buffer() { give_memory(data_, room_ * sizeof(T)); }

  std::size_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }

  void reserve(std::size_t room) {
    if (room <= room_) return;
    if (room > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    data_ = static_cast<T*>(resize_memory(data_, room_ * sizeof(T), room * sizeof(T)));
    room_ = room;
  }

  // Room for so many more at the end, which the caller fills.
  T* extend(std::size_t count) {
    if (count > room_ - size_) {
      if (count > static_cast<std::size_t>(-1) / sizeof(T) - size_) throw std::bad_alloc();
      const std::size_t needed = size_ + count;
      reserve(needed < 2 * room_ ? 2 * room_ : needed < 16 ? 16 : needed);
    }
    T* end = data_ + size_;
    size_ += count;
    return end;
  }

  // Only the first `size` are left.
  void cut(std::size_t size) { size_ = size; }

  void push(T value) { *extend(1) = value; }

  void append(const T* values, std::size_t count) {
    if (count != 0) std::memcpy(extend(count), values, count * sizeof(T));
  }

  // The memory and its size, for a new owner, who has to give it back; never null.
  std::pair<T*, std::size_t> release() {
    reserve(1);
    size_ = 0;
    const std::size_t bytes = std::exchange(room_, 0) * sizeof(T);
    return {std::exchange(data_, nullptr), bytes};
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

}  // namespace forebay
