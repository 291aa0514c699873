// Owns the worker threads and the protocol by which they and the caller share the ranges of one job.
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/subnormals.h"
#include "base/thread_locals.h"
#include "base/worker_state.h"

namespace tapeflow {
namespace {

using Body = FunctionRef<void(int64_t, int64_t)>;
using Clock = std::chrono::steady_clock;

constexpr auto spin_time = std::chrono::microseconds(200);  // waking a sleeping thread costs up to 30
constexpr int64_t chunks_per_thread = 8;                    // so that a thread which starts late still finds work
constexpr int64_t max_chunks = 0xffff;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Spins until `ready` holds or the time is over.
template <class Ready> bool spin_until(Ready ready) {
  const Clock::time_point start = Clock::now();
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause_cpu();
    }
  } while (Clock::now() - start < spin_time);
  return false;
}

// The unclaimed chunks [front, back) of job number `job`, packed into one word so that a claim is one exchange. The
// caller claims from the front and workers from the back: in a row of similar jobs each core meets its own data again.
struct Ticket {
  uint64_t word;

  static Ticket make(uint64_t job, int64_t chunks) { return {job << 32 | static_cast<uint64_t>(chunks)}; }
  uint64_t job() const { return word >> 32; }
  int64_t front() const { return static_cast<int64_t>(word >> 16 & 0xffff); }
  int64_t back() const { return static_cast<int64_t>(word & 0xffff); }
  bool empty() const { return front() == back(); }
};

class Pool {
 public:
  Pool(int threads, Pool* previous) : threads_(threads), previous_(previous) {}

  bool awake() const {
    return started_.load(std::memory_order_relaxed) && sleepers_.load(std::memory_order_relaxed) == 0;
  }

  bool serves(int threads) const { return threads == threads_ && !retired_.load(); }

  // Runs the body in `chunks` ranges of `chunk` items; false when another thread is using the pool.
  bool run(int64_t n, int64_t chunk, int64_t chunks, Body body) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    start_workers();
    n_ = n;
    chunk_ = chunk;
    body_ = &body;
    mode_ = floating_mode();
    unfinished_.store(chunks, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
    ticket_.store(Ticket::make(Ticket{ticket_.load(std::memory_order_relaxed)}.job() + 1, chunks).word);
    wake_sleepers();
    work(true);
    while (!spin_until([&] { return unfinished_.load(std::memory_order_acquire) == 0; })) sched_yield();
    std::exception_ptr error = std::exchange(error_, nullptr);
    busy_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
    return true;
  }

  // The number of the piece, or 0 if too many wait.
  uint64_t start_background(const BackgroundWork& work) {
    start_workers();
    const uint64_t given = given_.load(std::memory_order_relaxed);
    if (given - done_.load(std::memory_order_acquire) >= most_background) return 0;
    background_[given % most_background] = work;
    given_.store(given + 1);
    wake_sleepers();
    return given + 1;
  }

  bool background_is_done(uint64_t number) const { return done_.load(std::memory_order_acquire) >= number; }

  void finish_background(uint64_t number) {
    while (!background_is_done(number))
      if (!run_background()) pause_cpu();
  }

  void finish_all_background() { finish_background(given_.load()); }

  // Lets the workers end. A job that is running is finished by its caller.
  void retire() {
    if (!retired_.exchange(true)) wake_sleepers();
  }

  // For the child of a fork: the workers are gone, and the mutex may be held by one of them for ever.
  void forget_workers() { retired_.store(true); }

 private:
  void wake_sleepers() {
    if (sleepers_.load() == 0) return;
    { std::lock_guard lock(sleep_mutex_); }  // a worker between its last look and its sleep holds it
    wake_.notify_all();
  }

  void start_workers() {
    if (started_.exchange(true)) return;
    // Signals stay with the program's own threads, so that Python's blocking calls see them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (int i = 1; i < threads_; ++i) std::thread([this, i] { serve(i == 1); }).detach();
    } catch (const std::system_error&) {
      // No thread to be had: the caller and the workers there are do everything.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void serve(bool also_background) {
    thread_locals.in_parallel_region = true;
    uint64_t seen = 0;
    auto called = [&] {
      return Ticket{ticket_.load()}.job() != seen || retired_.load() ||
             (also_background && claimed_.load() != given_.load());
    };
    while (!retired_.load()) {
      if (!spin_until(called)) {
        std::unique_lock lock(sleep_mutex_);
        sleepers_.fetch_add(1);
        wake_.wait(lock, called);
        sleepers_.fetch_sub(1);
      }
      while (also_background && run_background()) continue;
      seen = Ticket{ticket_.load(std::memory_order_relaxed)}.job();
      work(false);
    }
  }

  // Claims and does the next piece; false if there is none.
  bool run_background() {
    uint64_t next = claimed_.load(std::memory_order_acquire);
    if (next == given_.load(std::memory_order_acquire)) return false;
    if (!claimed_.compare_exchange_strong(next, next + 1)) return true;
    while (done_.load(std::memory_order_acquire) != next) pause_cpu();  // somebody does the one before
    const BackgroundWork& work = background_[next % most_background];
    work.run(work.arguments);
    done_.store(next + 1, std::memory_order_release);
    return true;
  }

  // A chunk once claimed keeps its job alive, so the job's plain members are read only after a claim.
  void work(bool from_front) {
    uint64_t word = ticket_.load(std::memory_order_acquire);
    while (!Ticket{word}.empty()) {
      const uint64_t rest = from_front ? word + (1 << 16) : word - 1;
      if (!ticket_.compare_exchange_weak(word, rest, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      if (!from_front) set_floating_mode(mode_);
      run_chunk(from_front ? Ticket{word}.front() : Ticket{rest}.back());
      word = ticket_.load(std::memory_order_acquire);
    }
  }

  void run_chunk(int64_t index) {
    if (!failed_.load(std::memory_order_relaxed)) {
      try {
        (*body_)(index* chunk_, std::min(n_, (index + 1) * chunk_));
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
      }
    }
    unfinished_.fetch_sub(1, std::memory_order_acq_rel);
  }

  static constexpr uint64_t most_background = 16;
  BackgroundWork background_[most_background];
  alignas(64) std::atomic<uint64_t> given_{0};  // pieces of background work, in their order: by one caller at a time
  alignas(64) std::atomic<uint64_t> claimed_{0};
  alignas(64) std::atomic<uint64_t> done_{0};
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int64_t> unfinished_{0};
  alignas(64) int64_t n_ = 0;
  int64_t chunk_ = 0;
  const Body* body_ = nullptr;
  uint64_t mode_ = 0;  // of the caller's floating point unit
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> busy_{false};
  std::atomic<bool> retired_{false};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> started_{false};
  const int threads_;
  Pool* const previous_;  // keeps what is never freed in reach of leak checkers
  std::mutex sleep_mutex_;
  std::condition_variable wake_;
};

std::atomic<int> configured_threads{0};  // 0 is the default

// Pools are never destroyed: their detached workers may outlive any moment that we could choose. A change of the number
// of threads, and a fork, make a new one.
std::atomic<Pool*> current_pool{nullptr};

Pool& pool(int threads) {
  Pool* current = current_pool.load(std::memory_order_acquire);
  if (current && current->serves(threads)) return *current;
  static const int registered = pthread_atfork(
      [] {
        if (Pool* used = current_pool.load()) used->finish_all_background();
      },
      nullptr,
      [] {
        if (Pool* inherited = current_pool.load()) inherited->forget_workers();
      });
  static_cast<void>(registered);
  Pool* made = new Pool(threads, current);
  if (!current_pool.compare_exchange_strong(current, made, std::memory_order_acq_rel)) {
    delete made;  // another thread was faster; its pool serves as well as it can
    return *current;
  }
  if (current) current->retire();
  return *made;
}

#if defined(__linux__)
// The CPU time this container may use, in cores, or `cores` where there is no limit.
int cgroup_limit(int cores) {
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r");
  if (!file) return cores;
  long long quota = 0, period = 0;
  const bool limited = std::fscanf(file, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0;
  std::fclose(file);
  return limited ? static_cast<int>(std::min<long long>(cores, (quota + period - 1) / period)) : cores;
}
#endif

int usable_cores() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  cores = cgroup_limit(cores);
#endif
  return std::max(cores, 1);
}

struct RegionGuard {
  RegionGuard() { thread_locals.in_parallel_region = true; }
  ~RegionGuard() { thread_locals.in_parallel_region = false; }
};

// Even chunks; large ones start at multiples of 64 items, so that no two threads write one cache line.
int64_t chunk_size(int64_t n, int64_t grain, int threads) {
  const int64_t chunks = std::min({n / std::max<int64_t>(grain, 1), threads * chunks_per_thread, max_chunks});
  const int64_t chunk = (n + chunks - 1) / chunks;
  return chunk < 1024 ? chunk : (chunk + 63) / 64 * 64;
}

}  // namespace

void parallel_for(int64_t n, int64_t grain, Body body) {
  if (n <= 0) return;
  const int threads = n <= grain || thread_locals.in_parallel_region ? 1 : thread_count();
  if (threads > 1) {
    const int64_t chunk = chunk_size(n, grain, threads);
    RegionGuard guard;
    if (chunk < n && pool(threads).run(n, chunk, (n + chunk - 1) / chunk, body)) return;
  }
  body(0, n);
}

BackgroundTicket start_background(const BackgroundWork& work) {
  const int threads = thread_locals.in_parallel_region ? 1 : thread_count();
  if (threads == 1) return {};
  Pool& used = pool(threads);
  const uint64_t number = used.start_background(work);
  return number ? BackgroundTicket{&used, number} : BackgroundTicket{};
}

bool background_is_done(BackgroundTicket number) {
  return static_cast<Pool*>(number.pool)->background_is_done(number.number);
}

void finish_background(BackgroundTicket number) { static_cast<Pool*>(number.pool)->finish_background(number.number); }

bool workers_awake() {
  const Pool* used = current_pool.load(std::memory_order_acquire);
  return !thread_locals.in_parallel_region && used && used->awake();
}

int thread_count() {
  static const int cores = usable_cores();
  const int configured = configured_threads.load(std::memory_order_relaxed);
  return configured > 0 ? configured : cores;
}

void set_thread_count(int count) { configured_threads.store(std::max(count, 0), std::memory_order_relaxed); }

}  // namespace tapeflow
