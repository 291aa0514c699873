// Subnormal numbers: a processor that meets one takes a hundred times as long. Where float32 work is heavy (matrix
// products, convolutions, large elementwise passes, graphs) they count as zero, as in TensorFlow.
#pragma once
#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tapeflow {

// The control word of this thread's floating point unit.
inline uint64_t floating_mode() {
#if defined(__x86_64__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}
inline void set_floating_mode([[maybe_unused]] uint64_t mode) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<unsigned>(mode));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

// While it lives, subnormal operands and results count as zero on this thread and in the ranges of its parallel_for.
class FlushSubnormals {
 public:
  explicit FlushSubnormals(bool flush = true) : before_(floating_mode()) {
#if defined(__aarch64__)
    constexpr uint64_t bits = uint64_t(1) << 24;  // FZ
#else
    constexpr uint64_t bits = 0x8040;  // FTZ and DAZ
#endif
    if (flush) set_floating_mode(before_ | bits);
  }
  ~FlushSubnormals() { set_floating_mode(before_); }
  FlushSubnormals(const FlushSubnormals&) = delete;

 private:
  uint64_t before_;
};

}  // namespace tapeflow
