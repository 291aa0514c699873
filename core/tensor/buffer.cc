// The caching allocator. Blocks come in size classes (four to each power of two) and wait in a stack per class. Beyond
// the limit of the cache, the blocks of the least recently used classes go back to the system first: a program whose
// sizes change over time does not lose its cache to sizes that never come again.
// Blocks of a page or more start at staggered offsets: equal-sized buffers whose addresses agree in the low twelve
// bits fight for the same cache sets, which halves the speed of loops over several of them.
#include "tensor/buffer.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "base/blocks.h"
#include "tensor/unlocked.h"

namespace tapeflow {

constinit std::atomic<int> memory_sharers{0};
constinit std::mutex memory_mutex;
InterpreterLock interpreter_lock;
constinit double worth_unlocking_from = kWorthUnlocking;
constinit std::atomic<int> unlocked_threads{0};
constinit std::atomic<bool> no_more_unlocking{false};

namespace {

constexpr size_t kLine = 64, kPage = 4096, kHugePage = size_t(2) << 20;
// Smaller blocks gain little from huge pages, and the first touch of one may take milliseconds.
constexpr size_t kHugeBlock = 16 * kHugePage;
constexpr size_t kHeader = (sizeof(Buffer) + kLine - 1) / kLine * kLine;
constexpr int kClasses = 256;
constexpr int64_t kDefaultCacheLimit = int64_t(1) << 30;

// Never destroyed: tensors may outlive static destructors.
struct Pool {
  Buffer* free_blocks[kClasses] = {};
  uint64_t last_use[kClasses] = {};  // by class: the value of `clock` at its last allocation of a page or more
  uint64_t clock = 0;
  int64_t current = 0, peak = 0, cached = 0, limit = kDefaultCacheLimit;
  uint32_t stagger = 0;
};
constinit Pool pool;

// Class c holds sizes up to class_bytes(c): 64, 80, 96, 112, 128, 160, ...
uint32_t class_of(size_t bytes) {
  if (bytes <= kLine) return 0;
  uint32_t power = uint32_t(std::bit_width(bytes - 1)) - 1;  // 2^power < bytes <= 2^(power+1)
  size_t step = size_t(1) << (power - 2);
  uint32_t quarter = uint32_t((bytes - (size_t(1) << power) + step - 1) / step);
  return (power - 6) * 4 + quarter;
}
size_t class_bytes(uint32_t c) {
  uint32_t power = c / 4 + 6, quarter = c % 4;
  return (size_t(1) << power) + quarter * (size_t(1) << (power - 2));
}

size_t raw_bytes(size_t usable) { return kHeader + usable + (usable >= kPage ? kPage : 0); }

void free_cached_blocks();

void* raw_allocate(size_t usable) {
  size_t bytes = raw_bytes(usable);
  size_t alignment = bytes >= kHugeBlock ? kHugePage : kLine;
  void* block = nullptr;
  if (posix_memalign(&block, alignment, bytes) != 0) {
    free_cached_blocks();
    if (posix_memalign(&block, alignment, bytes) != 0) throw std::bad_alloc();
  }
#if defined(MADV_HUGEPAGE)
  if (alignment == kHugePage) madvise(block, bytes, MADV_HUGEPAGE);
#endif
  return block;
}

Buffer* new_block(uint32_t size_class) {
  size_t usable = class_bytes(size_class);
  void* raw = raw_allocate(usable);
  size_t offset = usable >= kPage ? kLine * ((pool.stagger++ * 13) % (kPage / kLine)) : 0;
  auto* b = reinterpret_cast<Buffer*>(static_cast<char*>(raw) + offset);
  b->owner = raw;
  b->data = reinterpret_cast<char*>(b) + kHeader;
  b->bytes = usable;
  b->size_class = size_class;
  b->release = nullptr;
  return b;
}

void* raw_of(Buffer* b) {
  // The staggered start is kept in `owner`, unused by our own blocks.
  return b->owner;
}

// The class with free blocks that was not used for the longest time; kClasses if there is none but `except`.
uint32_t least_recently_used(uint32_t except) {
  uint32_t oldest = kClasses;
  for (uint32_t c = class_of(kPage); c < kClasses; ++c)
    if (c != except && pool.free_blocks[c] && (oldest == kClasses || pool.last_use[c] < pool.last_use[oldest]))
      oldest = c;
  return oldest;
}

// Frees cached blocks until `bytes` more of the class `keep` fit under the limit, if that is possible.
bool make_room(size_t bytes, uint32_t keep) {
  if (int64_t(bytes) > pool.limit) return false;
  while (pool.cached + int64_t(bytes) > pool.limit) {
    uint32_t c = least_recently_used(keep);
    if (c == kClasses || pool.last_use[c] > pool.last_use[keep]) return false;
    Buffer* block = std::exchange(pool.free_blocks[c], pool.free_blocks[c]->next_free);
    pool.cached -= int64_t(block->bytes);
    std::free(raw_of(block));
  }
  return true;
}

}  // namespace

Buffer* allocate_buffer(size_t bytes) {
  LockMemory lock;
  uint32_t c = class_of(bytes);
  Buffer* b = pool.free_blocks[c];
  if (b) {
    pool.free_blocks[c] = b->next_free;
    pool.cached -= int64_t(b->bytes);
  } else {
    b = new_block(c);
  }
  if (b->bytes >= kPage) pool.last_use[c] = ++pool.clock;
  b->references = 1;
  b->strings = false;
  b->writable = true;
  pool.current += int64_t(b->bytes);
  pool.peak = std::max(pool.peak, pool.current);
  return b;
}

Buffer* wrap_foreign_memory(void* data, size_t bytes, void* owner, void (*release)(void*)) {
  return new (take_block(sizeof(Buffer))) Buffer{{1}, bytes, data, owner, release, 0, false, false};
}

void Buffer::destroy() {
  if (release) {
    release(owner);
    return give_block(this, sizeof(Buffer));
  }
  if (strings) {
    auto* text = static_cast<std::string*>(data);
    for (size_t i = 0; i < bytes / sizeof(std::string); ++i) text[i].~basic_string();
    bytes = class_bytes(size_class);
  }
  LockMemory lock;
  pool.current -= int64_t(bytes);
  if (pool.cached + int64_t(bytes) > pool.limit && !make_room(bytes, size_class)) {
    std::free(raw_of(this));
    return;
  }
  pool.cached += int64_t(bytes);
  next_free = std::exchange(pool.free_blocks[size_class], this);
}

// In the child of a fork only the thread that forked is left: nobody shares its memory.
[[maybe_unused]] static const int memory_fork_handlers =
    pthread_atfork([] { memory_mutex.lock(); }, [] { memory_mutex.unlock(); },
                   [] {
                     memory_mutex.unlock();
                     memory_sharers.store(0);
                     unlocked_threads.store(0);
                   });

MemoryInfo memory_info() {
  LockMemory lock;
  return {pool.current, pool.peak, pool.cached};
}
void reset_memory_peak() {
  LockMemory lock;
  pool.peak = pool.current;
}

namespace {
void free_cached_blocks() {
  for (Buffer*& blocks : pool.free_blocks)
    while (blocks) std::free(raw_of(std::exchange(blocks, blocks->next_free)));
  pool.cached = 0;
}
}  // namespace

void trim_memory() {
  {
    LockMemory lock;
    free_cached_blocks();
  }
  trim_blocks();
}

void set_cache_limit(int64_t bytes) {
  bool full;
  {
    LockMemory lock;
    pool.limit = bytes;
    full = pool.cached > bytes;
  }
  if (full) trim_memory();
}

}  // namespace tapeflow
