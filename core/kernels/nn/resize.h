// Resampling along one axis: each output row is a weighted sum of neighbouring input rows. Knows no Tensor.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "base/scratch.h"

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

// to = a x, and to += a x; nothing overlaps. They are part of vectorized loops.
template <class T>
[[gnu::always_inline]] inline void set_scaled(T a, const T* __restrict x, T* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = a * x[i];
}
template <class T>
[[gnu::always_inline]] inline void add_scaled(T a, const T* __restrict x, T* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += a * x[i];
}
template <class T> [[gnu::always_inline]] inline void set_scaled(T a, const T* __restrict x, T b, const T* __restrict y,
                                                                 T* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = a * x[i] + b * y[i];
}

template <class T> void resample(const ResampleGeometry& g, const T* x, const T* weights, const int64_t* starts, T* y) {
  if (g.inner == 1) return resample_narrow<1>(g, x, weights, starts, y);
  if (g.inner == 3) return resample_narrow<3>(g, x, weights, starts, y);
  if (g.inner == 4) return resample_narrow<4>(g, x, weights, starts, y);
  for_columns(g, [&](int64_t outer, int64_t first, int64_t last) {
    run_vectorized([&]() TAPEFLOW_LOOP {
      for (int64_t o = 0; o < g.out; ++o) {
        const T *w = weights + o * g.span, *from = x + (outer * g.in + starts[o]) * g.inner + first;
        T* to = y + (outer * g.out + o) * g.inner + first;
        if (g.span == 2) {
          set_scaled(w[0], from, w[1], from + g.inner, to, last - first);
          continue;
        }
        set_scaled(w[0], from, to, last - first);
        for (int64_t k = 1; k < g.span; ++k) add_scaled(w[k], from + k * g.inner, to, last - first);
      }
    });
  });
}

// The transpose of the map, by input rows: row r is the sum of weight * dy[row] over the terms from first(r) to
// last(r).
template <class T> struct TransposedResampling {
  struct Term {
    int64_t row;
    T weight;
  };
  TransposedResampling(const ResampleGeometry& g, const T* weights, const int64_t* starts)
      : starts_(g.in + 1), terms_(g.out * g.span) {
    int64_t* begin = starts_.data();
    auto each_term = [&](auto visit) {
      for (int64_t o = 0; o < g.out; ++o)
        for (int64_t k = 0; k < g.span; ++k)
          if (const T w = weights[o * g.span + k]; w != T(0)) visit(starts[o] + k, Term{o, w});
    };
    std::fill_n(begin, g.in + 1, 0);
    each_term([&](int64_t r, Term) { ++begin[r + 1]; });
    for (int64_t r = 0; r < g.in; ++r) begin[r + 1] += begin[r];
    Scratch<int64_t> next(g.in);
    std::copy_n(begin, g.in, next.data());
    each_term([&](int64_t r, Term term) { terms_.data()[next.data()[r]++] = term; });
  }
  const Term* first(int64_t row) const { return terms_.data() + starts_.data()[row]; }
  const Term* last(int64_t row) const { return first(row + 1); }

 private:
  Scratch<int64_t> starts_;
  Scratch<Term> terms_;
};

// Few columns, known when compiled: the sums stay in registers.
template <int Inner, class T>
void gather_narrow(const ResampleGeometry& g, const T* dy, const TransposedResampling<T>& map, T* dx) {
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, g.out * g.span));
  parallel_for(g.outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t outer = begin; outer < end; ++outer) {
      const T* from = dy + outer * g.out * Inner;
      T* to = dx + outer * g.in * Inner;
      for (int64_t r = 0; r < g.in; ++r, to += Inner) {
        T sum[Inner] = {};
        for (const auto *term = map.first(r), *last = map.last(r); term < last; ++term)
          for (int i = 0; i < Inner; ++i) sum[i] += term->weight * from[term->row * Inner + i];
        for (int i = 0; i < Inner; ++i) to[i] = sum[i];
      }
    }
  });
}

// The transpose of the map above: dx from dy.
template <class T>
void resample_transposed(const ResampleGeometry& g, const T* dy, const T* weights, const int64_t* starts, T* dx) {
  const TransposedResampling<T> map(g, weights, starts);
  if (g.inner == 1) return gather_narrow<1>(g, dy, map, dx);
  if (g.inner == 3) return gather_narrow<3>(g, dy, map, dx);
  if (g.inner == 4) return gather_narrow<4>(g, dy, map, dx);
  for_columns(g, [&](int64_t outer, int64_t first, int64_t last) {
    const T* from = dy + outer * g.out * g.inner + first;
    run_vectorized([&]() TAPEFLOW_LOOP {
      for (int64_t r = 0; r < g.in; ++r) {
        T* to = dx + (outer * g.in + r) * g.inner + first;
        const auto *term = map.first(r), *end = map.last(r);
        if (term == end) std::fill_n(to, last - first, T(0));
        if (end - term >= 2) {
          set_scaled(term[0].weight, from + term[0].row * g.inner, term[1].weight, from + term[1].row * g.inner, to,
                     last - first);
          term += 2;
        } else if (term < end) {
          set_scaled(term->weight, from + term->row * g.inner, to, last - first);
          ++term;
        }
        for (; term < end; ++term) add_scaled(term->weight, from + term->row * g.inner, to, last - first);
      }
    });
  });
}

}  // namespace tapeflow
