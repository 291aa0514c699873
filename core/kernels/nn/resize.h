// Resampling along one axis: each output row is a weighted sum of neighbouring input rows. Knows no Tensor.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/parallel.h"

namespace tapeflow {

// x (outer, in, inner), y (outer, out, inner); output row o is the sum over k < span of weights[o, k] * x[starts[o] +
// k]. Every starts[o] .. starts[o] + span - 1 lies inside the input.
struct ResampleGeometry {
  int64_t outer, in, out, inner, span;
};

// Calls body(outer index, first column, last column) over all columns, in blocks that stay in the cache.
template <class Body> void for_columns(const ResampleGeometry& g, Body body) {
  constexpr int64_t kBlock = 512;
  int64_t blocks = (g.inner + kBlock - 1) / kBlock,
          cells = std::max<int64_t>(1, g.out * g.span * std::min(kBlock, g.inner));
  parallel_for(g.outer * blocks, std::max<int64_t>(1, (1 << 15) / cells), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t first = i % blocks * kBlock;
      body(i / blocks, first, std::min(g.inner, first + kBlock));
    }
  });
}

// Few columns, known when compiled: the sum stays in registers.
template <int Inner, class T>
void resample_narrow(const ResampleGeometry& g, const T* x, const T* weights, const int64_t* starts, T* y) {
  parallel_for(g.outer, std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, g.out * g.span)),
               [&](int64_t begin, int64_t end) {
                 const int64_t out = g.out, span = g.span;
                 for (int64_t outer = begin; outer < end; ++outer) {
                   const T* row = x + outer * g.in * Inner;
                   T* to = y + outer * out * Inner;
                   for (int64_t o = 0; o < out; ++o, to += Inner) {
                     const T *from = row + starts[o] * Inner, *w = weights + o * span;
                     T sum[Inner] = {};
                     for (int64_t k = 0; k < span; ++k, from += Inner)
                       for (int i = 0; i < Inner; ++i) sum[i] += w[k] * from[i];
                     for (int i = 0; i < Inner; ++i) to[i] = sum[i];
                   }
                 }
               });
}

template <class T> void resample(const ResampleGeometry& g, const T* x, const T* weights, const int64_t* starts, T* y) {
  if (g.inner == 1) return resample_narrow<1>(g, x, weights, starts, y);
  if (g.inner == 3) return resample_narrow<3>(g, x, weights, starts, y);
  if (g.inner == 4) return resample_narrow<4>(g, x, weights, starts, y);
  for_columns(g, [&](int64_t outer, int64_t first, int64_t last) {
    for (int64_t o = 0; o < g.out; ++o) {
      const T *w = weights + o * g.span, *from = x + (outer * g.in + starts[o]) * g.inner;
      T* to = y + (outer * g.out + o) * g.inner;
      if (g.span == 2) {
        for (int64_t i = first; i < last; ++i) to[i] = w[0] * from[i] + w[1] * from[g.inner + i];
        continue;
      }
      for (int64_t i = first; i < last; ++i) to[i] = w[0] * from[i];
      for (int64_t k = 1; k < g.span; ++k)
        for (int64_t i = first; i < last; ++i) to[i] += w[k] * from[k * g.inner + i];
    }
  });
}

// The transpose of the map above: dx from dy.
template <class T>
void resample_transposed(const ResampleGeometry& g, const T* dy, const T* weights, const int64_t* starts, T* dx) {
  for_columns(g, [&](int64_t outer, int64_t first, int64_t last) {
    T* rows = dx + outer * g.in * g.inner;
    for (int64_t r = 0; r < g.in; ++r) std::fill(rows + r * g.inner + first, rows + r * g.inner + last, T(0));
    for (int64_t o = 0; o < g.out; ++o) {
      const T *w = weights + o * g.span, *from = dy + (outer * g.out + o) * g.inner;
      T* to = rows + starts[o] * g.inner;
      for (int64_t k = 0; k < g.span; ++k)
        for (int64_t i = first; i < last; ++i) to[k * g.inner + i] += w[k] * from[i];
    }
  });
}

}  // namespace tapeflow
