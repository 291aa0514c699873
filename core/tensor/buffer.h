// Memory of tensors: reference-counted buffers from a bounded, caching allocator.
// All calls are made under the interpreter lock, so counts and free lists are plain integers and vectors. While threads
// help a call, free lists have a lock of their own (tensor/shared_memory.h), and the counts of one buffer belong to one
// thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tapeflow {

// A block of memory with a count of its holders. The header lies in front of the data, or apart for foreign memory.
struct Buffer {
  union {
    int64_t references;
    Buffer* next_free;  // while it waits for its next use
  };
  size_t bytes;  // usable size
  void* data;
  void* owner;                   // foreign memory: what keeps it alive
  void (*release)(void* owner);  // foreign memory: lets go of the owner; null for our own blocks
  uint32_t size_class;
  bool strings;  // holds std::string elements, destroyed with the buffer
  bool writable;

  void retain() { ++references; }
  void drop() {
    if (--references == 0) destroy();
  }

 private:
  void destroy();
};

Buffer* allocate_buffer(size_t bytes);
Buffer* wrap_foreign_memory(void* data, size_t bytes, void* owner, void (*release)(void*));

struct MemoryInfo {
  int64_t current;  // bytes in live buffers
  int64_t peak;     // the largest `current` since the start or the last reset
  int64_t cached;   // bytes in free blocks kept for reuse
};
MemoryInfo memory_info();
void reset_memory_peak();
void trim_memory();                   // gives all free blocks back to the system
void set_cache_limit(int64_t bytes);  // most bytes kept in free blocks

}  // namespace tapeflow
