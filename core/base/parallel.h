// Owns the thread pool: splitting a range of independent work over the cores.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace tapeflow {

// A callable passed by reference: valid while the callable lives, never allocates.
template <class Signature> class FunctionRef;

template <class Result, class... Args> class FunctionRef<Result(Args...)> {
 public:
  template <class Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
             std::is_invocable_r_v<Result, Callable&, Args...>)
  FunctionRef(Callable&& callable)
      : target_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        invoke_([](void* target, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(target))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return invoke_(target_, std::forward<Args>(args)...); }

 private:
  void* target_;
  Result (*invoke_)(void*, Args...);
};

// Runs body(begin, end) over disjoint ranges that cover [0, n). `grain` is the least number of items worth a range of
// their own: when n <= grain, one thread is configured, the pool is busy or the caller is itself inside a body, then
// body(0, n) runs on the caller and no thread is woken. The caller works too and takes every range nobody has started.
// The first exception of a body is rethrown on the caller; ranges not yet started are then skipped.
void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

// Work for a worker while the caller goes on. Pieces of work are done one after the other, in the order they were
// given.
struct BackgroundWork {
  void (*run)(const void* arguments);
  alignas(16) unsigned char arguments[112];
};
struct BackgroundTicket {
  void* pool = nullptr;  // null: no worker can take it
  uint64_t number = 0;
};
BackgroundTicket start_background(const BackgroundWork& work);
bool background_is_done(BackgroundTicket number);
// Returns when this piece and those before it are done. The caller does what nobody has started.
void finish_background(BackgroundTicket number);

// Threads that parallel_for may use, the caller included. The default is the number of cores this process may use.
int thread_count();
void set_thread_count(int count);  // 0 restores the default

}  // namespace tapeflow
