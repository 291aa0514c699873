// Memory of lists that live no longer than a call: each thread keeps the blocks it let go of, so a call like one before
// takes nothing from the system.
#pragma once
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace tapeflow {

void* take_block(size_t bytes);
void give_block(void* block, size_t bytes) noexcept;  // as many bytes as were taken; any thread may give it
void trim_blocks() noexcept;                          // gives what this thread keeps back to the system

// An object in a block.
template <class T, class... Arguments> T* new_in_block(Arguments&&... arguments) {
  void* block = take_block(sizeof(T));
  try {
    return new (block) T(std::forward<Arguments>(arguments)...);
  } catch (...) {
    give_block(block, sizeof(T));
    throw;
  }
}
template <class T> void delete_in_block(T* object) noexcept {
  object->~T();
  give_block(object, sizeof(T));
}

// A vector whose elements lie in a block.
template <class T> struct BlockAllocator {
  using value_type = T;
  BlockAllocator() = default;
  template <class U> BlockAllocator(const BlockAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(take_block(n * sizeof(T))); }
  void deallocate(T* items, size_t n) noexcept { give_block(items, n * sizeof(T)); }
  friend bool operator==(const BlockAllocator&, const BlockAllocator&) { return true; }
};
template <class T> using BlockVector = std::vector<T, BlockAllocator<T>>;

}  // namespace tapeflow
