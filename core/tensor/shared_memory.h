// Memory while several threads work: free lists and counts of bytes then change under a lock.
#pragma once
#include <atomic>
#include <mutex>

namespace tapeflow {

// How many regions of plans and kernels without the interpreter lock run. It becomes one, and zero again, only while
// one thread alone works: the one that holds the interpreter lock.
extern constinit std::atomic<int> memory_sharers;
extern std::mutex memory_mutex;

// While it lives, threads that help the caller may make and let go of tensors. The counts of holders of one tensor, and
// of one buffer, still belong to one thread.
class ShareMemory {
 public:
  ShareMemory() { memory_sharers.fetch_add(1); }
  ~ShareMemory() { memory_sharers.fetch_sub(1); }
  ShareMemory(const ShareMemory&) = delete;
};

class LockMemory {
 public:
  LockMemory() : locked_(memory_sharers.load(std::memory_order_relaxed) != 0) {
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
