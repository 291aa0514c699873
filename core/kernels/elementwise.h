// Loops over elements: one operand or two, with broadcasting, in parallel when large. Knows pointers and shapes only.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
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

// The loops of an element function `F`, for operands of type T and results of type R.
template <class T, class R, class F> void unary_loop(const void* x, void* y, int64_t n) {
  const T* from = static_cast<const T*>(x);
  R* to = static_cast<R*>(y);
  for (int64_t i = 0; i < n; ++i) store(to + i, F{}(load(from + i)));
}
template <class T, class R, class F> struct ElementBinary {
  static void vv(const void* a, const void* b, void* y, int64_t n) {
    const T *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
    R* to = static_cast<R*>(y);
    for (int64_t i = 0; i < n; ++i) store(to + i, F{}(load(p + i), load(q + i)));
  }
  static void vs(const void* a, const void* b, void* y, int64_t n) {
    const T* p = static_cast<const T*>(a);
    const Compute<T> q = load(static_cast<const T*>(b));
    R* to = static_cast<R*>(y);
    for (int64_t i = 0; i < n; ++i) store(to + i, F{}(load(p + i), q));
  }
  static void sv(const void* a, const void* b, void* y, int64_t n) {
    const Compute<T> p = load(static_cast<const T*>(a));
    const T* q = static_cast<const T*>(b);
    R* to = static_cast<R*>(y);
    for (int64_t i = 0; i < n; ++i) store(to + i, F{}(p, load(q + i)));
  }
  static constexpr BinaryLoops loops{vv, vs, sv};
};

}  // namespace tapeflow
