// Memory for the length of a kernel: each thread keeps one block, from which nested users take their parts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tapeflow {

// Bytes on the top of this thread's block; what does not fit is allocated apart, and the block is larger next time. Let
// go of by the same thread, in the opposite order.
class ScratchBytes {
 public:
  explicit ScratchBytes(size_t bytes);
  ~ScratchBytes();
  ScratchBytes(ScratchBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), apart_(other.apart_) {}
  void* data() const { return data_; }

 private:
  void* data_;
  size_t size_;
  bool apart_;
};

// An array of `size` elements, not set to anything.
template <class T> class Scratch {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit Scratch(int64_t size) : size_(size_t(size)), bytes_(size_ * sizeof(T)) {}
  size_t size() const { return size_; }
  T* data() const { return static_cast<T*>(bytes_.data()); }
  T& operator[](size_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + size_; }

 private:
  size_t size_;
  ScratchBytes bytes_;
};

}  // namespace tapeflow
