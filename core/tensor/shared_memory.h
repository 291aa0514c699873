// Memory while several threads work on one call: free lists and counts of bytes then change under a lock.
#pragma once
#include <atomic>
#include <mutex>

namespace tapeflow {

extern constinit std::atomic<bool>
    memory_is_shared;  // changed by the thread that holds the interpreter lock, while it alone works
extern std::mutex memory_mutex;

// While it lives, threads that help the caller may make and let go of tensors. The counts of holders of one tensor, and
// of one buffer, still belong to one thread.
class ShareMemory {
 public:
  ShareMemory() : before_(memory_is_shared.exchange(true)) {}
  ~ShareMemory() { memory_is_shared.store(before_); }
  ShareMemory(const ShareMemory&) = delete;

 private:
  bool before_;
};

class LockMemory {
 public:
  LockMemory() : locked_(memory_is_shared.load(std::memory_order_relaxed)) {
    if (locked_) [[unlikely]]
      memory_mutex.lock();
  }
  ~LockMemory() {
    if (locked_) [[unlikely]]
      memory_mutex.unlock();
  }
  LockMemory(const LockMemory&) = delete;

 private:
  const bool locked_;
};

}  // namespace tapeflow
