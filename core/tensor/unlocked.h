// Letting the program's other threads run while a kernel works: the interpreter lock is released.
#pragma once
#include "tensor/shared_memory.h"

namespace tapeflow {

// Set by the layer that knows the interpreter. `release` gives null if this thread does not hold the lock.
struct InterpreterLock {
  void* (*release)() = nullptr;
  void (*acquire)(void* released) = nullptr;
};
extern InterpreterLock interpreter_lock;

// Microseconds of work from which on it is worth it: releasing the lock takes under a microsecond, but getting it back
// may take as long as another thread computes in Python, up to its switch interval. Read and set under the lock.
constexpr double kWorthUnlocking = 300;
extern constinit double worth_unlocking_from;

// Threads that work without the lock, and whether no more may begin to: when the interpreter ends, a thread that asks
// for its lock is ended, wherever it is.
extern constinit std::atomic<int> unlocked_threads;
extern constinit std::atomic<bool> no_more_unlocking;

// While it lives, this thread does not hold the interpreter lock. It may then touch only memory that is its own, and
// counts of holders that no other thread can see: run_unlocked() and plans give kernels bodies of their own.
class Unlocked {
 public:
  explicit Unlocked(bool worthwhile = true) {
    if (!worthwhile || !interpreter_lock.release || no_more_unlocking.load(std::memory_order_relaxed)) return;
    memory_sharers.fetch_add(1);  // while the lock is still held: nobody else is in the middle of a change
    unlocked_threads.fetch_add(1);
    released_ = interpreter_lock.release();
    if (!released_) leave();
  }
  ~Unlocked() {
    if (!released_) return;
    interpreter_lock.acquire(released_);
    leave();
  }
  Unlocked(const Unlocked&) = delete;

 private:
  void leave() {
    unlocked_threads.fetch_sub(1);
    memory_sharers.fetch_sub(1);
  }
  void* released_ = nullptr;
};

}  // namespace tapeflow
