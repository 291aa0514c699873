// Loops over elements: one operand or two, with broadcasting, in parallel when large. Knows pointers and shapes only.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/instruction_set.h"
#include "base/shape.h"

namespace tapeflow {

using UnaryLoop = void (*)(const void* x, void* y, int64_t n);

// The loop of a binary operation over n elements: both operands vary, or one of them is a single value.
struct BinaryLoops {
  void (*vv)(const void* a, const void* b, void* y, int64_t n);
  void (*vs)(const void* a, const void* b, void* y, int64_t n);
  void (*sv)(const void* a, const void* b, void* y, int64_t n);
};

// The loop of a choice by a condition over n elements: y = condition ? a : b, where `a` and `b` vary or are single
// values.
using ChoiceLoop = void (*)(const void* condition, const void* a, const void* b, void* y, int64_t n);
struct ChoiceLoops {
  ChoiceLoop vv, vs, sv, ss;
};

// What runs an elementwise operation on contiguous elements, for operands of one dtype and results of one; nothing, or
// one of the three.
struct ElementLoops {
  UnaryLoop unary = nullptr;
  const BinaryLoops* binary = nullptr;
  const ChoiceLoops* choice = nullptr;

  explicit operator bool() const { return unary || binary || choice; }
};

struct ElementSizes {
  size_t a, b, y;
};

// Fewest elements that are worth a thread of their own.
constexpr int64_t kCheapGrain = 1 << 16, kCostlyGrain = 1 << 13;

void loop_unary(UnaryLoop, const void* x, size_t x_size, void* y, size_t y_size, int64_t n, int64_t grain);
void loop_binary(const BinaryLoops&, const void* a, const Shape& a_shape, const void* b, const Shape& b_shape, void* y,
                 const Shape& y_shape, ElementSizes, int64_t grain);

// Elements as they are computed with: half types as float.
template <class T> inline Compute<T> load(const T* p) {
  if constexpr (is_small_float<T>)
    return float(*p);
  else
    return *p;
}
template <class T, class C> inline void store(T* p, C value) {
  if constexpr (std::is_same_v<T, C>)
    *p = value;
  else
    *p = T(value);
}

// Integers and booleans have no vector kernels; the compiler makes the vectors.
template <class T, class R> constexpr bool vectorized_by_compiler =
    std::is_integral_v<T> || (std::is_arithmetic_v<T> && std::is_same_v<R, bool>);
template <class T, class Loop> inline void run_element_loop(Loop loop) {
  run_vectorized<sizeof(T) == 8 && std::is_integral_v<T> ? Widest::avx512 : Widest::avx2>(loop);
}

// An element as an operand: booleans as the bytes that they are, of which the compiler can make vectors.
template <class T> [[gnu::always_inline]] inline auto operand(const T* p) {
  if constexpr (std::is_same_v<T, bool>)
    return *reinterpret_cast<const uint8_t*>(p);
  else
    return load(p);
}

// The loops of an element function `F`, for operands of type T and results of type R.
template <class T, class R, class F> [[gnu::always_inline]] inline void map_elements(const T* from, R* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) store(to + i, F{}(operand(from + i)));
}
template <class T, class R, class F> void unary_loop(const void* x, void* y, int64_t n) {
  const T* from = static_cast<const T*>(x);
  R* to = static_cast<R*>(y);
  if constexpr (vectorized_by_compiler<T, R>)
    run_element_loop<T>([from, to, n]() TAPEFLOW_LOOP { map_elements<T, R, F>(from, to, n); });
  else
    map_elements<T, R, F>(from, to, n);
}
template <class T, class R, class F> struct ElementBinary {
  static void vv(const void* a, const void* b, void* y, int64_t n) {
    const T *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
    run<both_vary>(p, q, static_cast<R*>(y), n);
  }
  static void vs(const void* a, const void* b, void* y, int64_t n) {
    run<only_a_varies>(static_cast<const T*>(a), operand(static_cast<const T*>(b)), static_cast<R*>(y), n);
  }
  static void sv(const void* a, const void* b, void* y, int64_t n) {
    run<only_b_varies>(operand(static_cast<const T*>(a)), static_cast<const T*>(b), static_cast<R*>(y), n);
  }
  static constexpr BinaryLoops loops{vv, vs, sv};

 private:
  enum Varying { both_vary, only_a_varies, only_b_varies };
  template <Varying varying, class P, class Q> [[gnu::always_inline]] static void map(P p, Q q, R* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (varying == both_vary)
        store(to + i, F{}(operand(p + i), operand(q + i)));
      else if constexpr (varying == only_a_varies)
        store(to + i, F{}(operand(p + i), q));
      else
        store(to + i, F{}(p, operand(q + i)));
    }
  }
  template <Varying varying, class P, class Q> static void run(P p, Q q, R* to, int64_t n) {
    if constexpr (vectorized_by_compiler<T, R>)
      run_element_loop<T>([p, q, to, n]() TAPEFLOW_LOOP { map<varying>(p, q, to, n); });
    else
      map<varying>(p, q, to, n);
  }
};

}  // namespace tapeflow
