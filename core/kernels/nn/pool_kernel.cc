// The inner loops of pooling for one instruction set: compiled once per set, with TAPEFLOW_ISA as the namespace. Only
// types of this file and PoolRun are used here, so that no shared inline function is compiled for the wrong machine.
#include "kernels/nn/pool.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T, int bytes> struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
};

template <class Pack, class T> [[gnu::always_inline]] inline Pack load(const T* p) {
  Pack pack;
  __builtin_memcpy(&pack, p, sizeof pack);
  return pack;
}

template <class Pack, class T> [[gnu::always_inline]] inline void store(T* p, Pack pack) {
  __builtin_memcpy(p, &pack, sizeof pack);
}

// Calls body(channel, pack) from `begin` on, where the type of `pack` (a zero) says how many channels it is about:
// vectors of so many bytes as long as they fit, then shorter ones, then single numbers.
template <class T, int bytes, class Body>
[[gnu::always_inline]] inline void for_each_pack(int64_t begin, int64_t end, Body&& body) {
  if constexpr (bytes < 16) {
    for (; begin < end; ++begin) body(begin, T{});
  } else {
    constexpr int64_t lanes = bytes / static_cast<int64_t>(sizeof(T));
    for (; begin + lanes <= end; begin += lanes) body(begin, typename VectorOf<T, bytes>::type{});
    for_each_pack<T, bytes / 2>(begin, end, body);
  }
}

// Calls body(position in the input, position in the output, pack) for all windows and channels of a run.
template <class T, class Body> [[gnu::always_inline]] inline void for_each_place(const PoolRun& run, Body&& body) {
  for (int64_t w = 0; w < run.windows; ++w)
    for_each_pack<T, vector_bytes>(
        0, run.channels, [&](int64_t c, auto pack) { body(w * run.in_step + c, w * run.out_step + c, pack); });
}

template <class T> constexpr T lowest() {
  if constexpr (T(-1) > T(0))
    return 0;
  else if constexpr (T(0.5) != T(0))
    return sizeof(T) == 4 ? T(-__FLT_MAX__) : T(-__DBL_MAX__);
  else
    return T(T(1) << (8 * sizeof(T) - 1));
}

template <class T> void max_forward(const PoolRun& run, const T* x, T* y) {
  for_each_place<T>(run, [&](int64_t in, int64_t out, auto pack) {
    using Pack = decltype(pack);
    Pack best = static_cast<Pack>(pack + lowest<T>());
    for (int64_t i = 0; i < run.cells; ++i) {
      const Pack value = load<Pack>(x + in + run.offset[i]);
      best = best < value ? value : best;
    }
    store(y + out, best);
  });
}

// The first maximal cell of a window gets dy: the first cell, then any greater one.
template <class T, bool alone> void max_backward(const PoolRun& run, const T* x, const T* dy, T* dx) {
  for_each_place<T>(run, [&](int64_t in, int64_t out, auto zero) {
    using Pack = decltype(zero);
    using Count = decltype(zero < zero ? zero < zero : zero < zero);
    Pack best = load<Pack>(x + in + run.offset[0]);
    decltype(Count{} + 1) cell{}, number{};
    for (int64_t i = 1; i < run.cells; ++i) {
      const Pack value = load<Pack>(x + in + run.offset[i]);
      number += 1;
      const auto greater = best < value;
      best = greater ? value : best;
      cell = greater ? number : cell;
    }
    const Pack given = load<Pack>(dy + out);
    number -= number;
    for (int64_t i = 0; i < run.cells; ++i, number += 1) {
      T* to = dx + in + run.offset[i];
      const Pack part = cell == number ? given : zero;
      store<Pack>(to, alone ? part : load<Pack>(to) + part);
    }
  });
}

template <class T> void average_forward(const PoolRun& run, const T* x, T* y) {
  const T count = static_cast<T>(run.cells);
  for_each_place<T>(run, [&](int64_t in, int64_t out, auto sum) {
    for (int64_t i = 0; i < run.cells; ++i) sum += load<decltype(sum)>(x + in + run.offset[i]);
    store<decltype(sum)>(y + out, sum / count);
  });
}

template <class T, bool alone> void average_backward(const PoolRun& run, const T* dy, T* dx) {
  const T count = static_cast<T>(run.cells);
  for_each_place<T>(run, [&](int64_t in, int64_t out, auto pack) {
    using Pack = decltype(pack);
    const Pack part = load<Pack>(dy + out) / count;
    for (int64_t i = 0; i < run.cells; ++i) {
      T* to = dx + in + run.offset[i];
      store<Pack>(to, alone ? part : load<Pack>(to) + part);
    }
  });
}

}  // namespace

template <class T> PoolKernels<T> pool_kernels() {
  PoolKernels<T> kernels{};
  kernels.max_forward = max_forward<T>;
  if constexpr (T(0.5) != T(0)) {
    kernels.max_backward = max_backward<T, false>;
    kernels.max_backward_alone = max_backward<T, true>;
    kernels.average_forward = average_forward<T>;
    kernels.average_backward = average_backward<T, false>;
    kernels.average_backward_alone = average_backward<T, true>;
  }
  return kernels;
}
template PoolKernels<float> pool_kernels();
template PoolKernels<double> pool_kernels();
template PoolKernels<int8_t> pool_kernels();
template PoolKernels<int16_t> pool_kernels();
template PoolKernels<int32_t> pool_kernels();
template PoolKernels<int64_t> pool_kernels();
template PoolKernels<uint8_t> pool_kernels();
template PoolKernels<uint16_t> pool_kernels();
template PoolKernels<uint32_t> pool_kernels();
template PoolKernels<uint64_t> pool_kernels();

}  // namespace tapeflow::TAPEFLOW_ISA
