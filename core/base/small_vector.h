// A vector that keeps its first N elements inside itself, and more in a block of its thread.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <new>
#include <span>
#include <utility>

#include "base/blocks.h"

namespace tapeflow {

template <class T, size_t N> class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> items) {
    for (const T& item : items) push_back(item);
  }
  explicit SmallVector(std::span<const T> items) { append(items); }
  SmallVector(const SmallVector& other) { append(other); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      this->~SmallVector();
      new (this) SmallVector(std::move(other));
    }
    return *this;
  }
  ~SmallVector() {
    clear();
    if (items_ != inner()) give_block(items_, capacity_ * sizeof(T));
  }

  void push_back(T item) {
    if (size_ == capacity_) [[unlikely]]
      reserve(2 * capacity_);
    new (items_ + size_++) T(std::move(item));
  }
  T& emplace_back() {
    if (size_ == capacity_) [[unlikely]]
      reserve(2 * capacity_);
    return *new (items_ + size_++) T();
  }
  void pop_back() { items_[--size_].~T(); }
  void resize(size_t n) {
    if (n > capacity_) [[unlikely]]
      reserve(n);
    const size_t before = std::exchange(size_, n);
    T* items = items_;
    for (size_t i = before; i > n; --i) items[i - 1].~T();
    for (size_t i = before; i < n; ++i) new (items + i) T();
  }
  void append(std::span<const T> items) {
    if (size_ + items.size() > capacity_) [[unlikely]]
      reserve(size_ + items.size());
    for (const T& item : items) new (items_ + size_++) T(item);
  }
  void clear() { resize(0); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  T& back() { return items_[size_ - 1]; }
  const T& back() const { return items_[size_ - 1]; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  T* data() { return items_; }
  const T* data() const { return items_; }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }

 private:
  T* inner() { return reinterpret_cast<T*>(storage_); }
  void reserve(size_t n) {
    T* bigger = static_cast<T*>(take_block(n * sizeof(T)));
    for (size_t i = 0; i < size_; ++i) {
      new (bigger + i) T(std::move(items_[i]));
      items_[i].~T();
    }
    if (items_ != inner()) give_block(items_, capacity_ * sizeof(T));
    items_ = bigger;
    capacity_ = n;
  }
  void take(SmallVector& other) {
    if (other.items_ != other.inner()) {
      items_ = std::exchange(other.items_, other.inner());
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
      return;
    }
    for (size_t i = 0; i < other.size_; ++i) new (items_ + i) T(std::move(other.items_[i]));
    size_ = other.size_;
    other.clear();
  }

  alignas(T) unsigned char storage_[N * sizeof(T)];
  T* items_ = inner();
  size_t size_ = 0, capacity_ = N;
};

}  // namespace tapeflow
