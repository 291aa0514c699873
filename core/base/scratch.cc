// The blocks of the threads.
#include "base/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace tapeflow {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kMostKept = size_t(64) << 20;

void* allocate_lines(size_t bytes) {
  void* memory = std::aligned_alloc(kLine, bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}

struct Block {
  char* memory = nullptr;
  size_t size = 0;
  size_t used = 0, apart = 0;  // by those alive: bytes of the block, and bytes that did not fit
  size_t most = 0;             // that were needed at one time
  ~Block() { std::free(memory); }
};
thread_local Block block;

}  // namespace

ScratchBytes::ScratchBytes(size_t bytes) : size_(std::max(kLine, (bytes + kLine - 1) / kLine * kLine)) {
  const size_t held = block.used + block.apart;
  if (held + size_ <= kMostKept) block.most = std::max(block.most, held + size_);
  if (held == 0 && block.size < block.most) {
    void* bigger = allocate_lines(block.most);
    std::free(block.memory);
    block.memory = static_cast<char*>(bigger);
    block.size = block.most;
  }
  apart_ = size_ > block.size - block.used;
  data_ = apart_ ? allocate_lines(size_) : block.memory + block.used;
  (apart_ ? block.apart : block.used) += size_;
}

ScratchBytes::~ScratchBytes() {
  (apart_ ? block.apart : block.used) -= size_;
  if (apart_) std::free(data_);
}

}  // namespace tapeflow
