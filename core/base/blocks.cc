// The blocks that threads keep, in a stack for each power of two.
#include "base/blocks.h"

#include <bit>
#include <new>

namespace tapeflow {
namespace {

constexpr size_t kSmallest = 64;  // bytes
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kMostKept = 0;  // so that the sanitizer sees who uses a block too late
#else
constexpr size_t kMostKept = size_t(64) << 20;
#endif
constexpr int kClasses = 21;  // larger blocks are not kept

struct Free {
  Free* next;
};
struct Kept {
  Free* blocks[kClasses];
  size_t bytes;
  bool opened, closed;  // something is kept; the thread ends
};
constinit thread_local Kept kept __attribute__((tls_model("initial-exec"))){};

void open() {
  // Lets go of what the thread kept when it ends.
  struct Closer {
    ~Closer() {
      kept.closed = true;
      trim_blocks();
    }
  };
  static thread_local Closer closer;
  kept.opened = true;
}

int class_of(size_t bytes) { return bytes <= kSmallest ? 0 : int(std::bit_width((bytes - 1) / kSmallest)); }
size_t class_bytes(int c) { return kSmallest << c; }

}  // namespace

void trim_blocks() noexcept {
  for (Free*& first : kept.blocks)
    while (first) ::operator delete(std::exchange(first, first->next));
  kept.bytes = 0;
}

void* take_block(size_t bytes) {
  const int c = class_of(bytes);
  if (c >= kClasses) return ::operator new(bytes);
  if (Free* block = kept.blocks[c]) {
    kept.blocks[c] = block->next;
    kept.bytes -= class_bytes(c);
    return block;
  }
  return ::operator new(class_bytes(c));
}

void give_block(void* block, size_t bytes) noexcept {
  const int c = class_of(bytes);
  if (c >= kClasses || kept.closed || kept.bytes + class_bytes(c) > kMostKept) return ::operator delete(block);
  if (!kept.opened) [[unlikely]]
    open();
  kept.blocks[c] = new (block) Free{kept.blocks[c]};
  kept.bytes += class_bytes(c);
}

}  // namespace tapeflow
