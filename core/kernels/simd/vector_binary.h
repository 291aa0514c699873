// The loops of a function of two vectors, over arrays and single numbers. All is internal to the including file, which
// defines TAPEFLOW_ISA.
#pragma once

#include "kernels/simd/vector.h"
#include "kernels/simd/vector_memory.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

template <class T, auto f> struct Binary {
  static void vv(const T* a, const T* b, T* y, int64_t n) { loop(a, 1, b, 1, y, n); }
  static void vs(const T* a, T b, T* y, int64_t n) { loop(a, 1, &b, 0, y, n); }
  static void sv(T a, const T* b, T* y, int64_t n) { loop(&a, 0, b, 1, y, n); }

 private:
  [[gnu::noinline]] static void loop(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
    using V = Vector<T>;
    constexpr int64_t width = lanes<V>;
    for (int64_t i = 0; i < n; i += width) {
      const int64_t count = n - i;
      const V p = a_step == 0 ? splat<V>(*a) : count < width ? load_first(a + i, count, T(1)) : load(a + i);
      const V q = b_step == 0 ? splat<V>(*b) : count < width ? load_first(b + i, count, T(1)) : load(b + i);
      if (count < width)
        store_first(y + i, f(p, q), count);
      else
        store(y + i, f(p, q));
    }
  }
};

template <class T, auto f> constexpr BinaryKernel<T> binary = {Binary<T, f>::vv, Binary<T, f>::vs, Binary<T, f>::sv};

}  // namespace
}  // namespace tapeflow::TAPEFLOW_ISA
