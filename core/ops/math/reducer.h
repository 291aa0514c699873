// Reduction of arrays over groups of dimensions, in parallel, with results that do not depend on the thread count.
#pragma once
#include <algorithm>
#include <complex>
#include <limits>

#include "base/parallel.h"
#include "base/scratch.h"
#include "base/shape.h"
#include "base/small_vector.h"
#include "kernels/elementwise.h"
#include "kernels/simd/short_rows.h"
#include "kernels/simd/vector.h"

namespace tapeflow {

// Neighbouring dimensions that are all reduced, or all kept, count as one.
struct Group {
  int64_t length;
  bool reduced;
};
inline SmallVector<Group, 4> groups_of(const Shape& shape, const Ints& axes) {
  bool reduced[kMaxRank] = {};
  for (int64_t a : axes) reduced[a] = true;
  SmallVector<Group, 4> groups;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    if (!groups.empty() && groups.back().reduced == reduced[i])
      groups.back().length *= shape[i];
    else
      groups.push_back({shape[i], reduced[i]});
  }
  return groups;
}

// What a reduction does with a run of n elements (row) and with a row that is folded into a row of results (fold), with
// short rows, if it has a loop for them, and with results of parts (row_of_parts, fold_of_parts). C is the type it
// computes in.
template <class C> struct Steps {
  C start;
  C (*row)(const C* x, int64_t n);
  void (*fold)(const C* x, C* y, int64_t n);
  void (*short_rows)(const C* x, C* y, int64_t rows, int64_t length) = nullptr;
  C (*row_of_parts)(const C* x, int64_t n) = row;
  void (*fold_of_parts)(const C* x, C* y, int64_t n) = fold;
};

constexpr int64_t kChunk = 1 << 15;  // elements of a full reduction that one partial result covers
constexpr int64_t kFoldBlock = 64;   // rows folded into one partial row, so that rounding grows slowly
constexpr int64_t kMostParts = 32;   // partial results of runs of rows, or of outer axes when axes between them stay
constexpr int64_t kWide = 2048;      // columns from which on threads take columns of their own, not rows
constexpr int64_t kNarrow = 512;     // columns from which on a row is long enough by itself

template <class C> class Reducer {
 public:
  Reducer(const Steps<C>& steps, const SmallVector<Group, 4>& groups) : steps_(steps), groups_(groups) {}

  void run(const C* x, C* y) const { run(x, y, 0); }

 private:
  int64_t input_size(size_t from) const {
    int64_t n = 1;
    for (size_t g = from; g < groups_.size(); ++g) n *= groups_[g].length;
    return n;
  }
  int64_t output_size(size_t from) const {
    int64_t n = 1;
    for (size_t g = from; g < groups_.size(); ++g)
      if (!groups_[g].reduced) n *= groups_[g].length;
    return n;
  }

  void run(const C* x, C* y, size_t level) const {
    if (level == groups_.size()) {
      *y = *x;
      return;
    }
    Group g = groups_[level];
    int64_t step_in = input_size(level + 1), step_out = output_size(level + 1);
    if (!g.reduced) {
      int64_t work = std::max<int64_t>(1, step_in);
      const bool short_rows = steps_.short_rows && level + 2 == groups_.size() && step_in <= kLongestShortRow;
      auto body = [&](int64_t begin, int64_t end) {
        if (short_rows) return steps_.short_rows(x + begin * step_in, y + begin, end - begin, step_in);
        for (int64_t i = begin; i < end; ++i) run(x + i * step_in, y + i * step_out, level + 1);
      };
      if (level + 1 == groups_.size()) {
        std::copy(x, x + g.length, y);
        return;
      }
      return parallel_for(g.length, std::max<int64_t>(1, kChunk / work), body);
    }
    if (level + 1 == groups_.size()) {
      *y = reduce_row(x, g.length);
      return;
    }
    std::fill(y, y + step_out, steps_.start);
    if (level + 2 == groups_.size()) return fold_columns(x, y, g.length, step_in);
    const int64_t height = std::max({int64_t(1), 2 * kChunk / step_in, g.length / kMostParts}),
                  chunks = (g.length + height - 1) / height;
    Scratch<C> parts(chunks * step_out);
    std::fill(parts.begin(), parts.end(), steps_.start);
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      Scratch<C> part(step_out);
      for (int64_t i = begin * height; i < std::min(g.length, end * height); ++i) {
        run(x + i * step_in, part.data(), level + 1);
        steps_.fold_of_parts(part.data(), parts.data() + i / height * step_out, step_out);
      }
    });
    for (int64_t c = 0; c < chunks; ++c) steps_.fold_of_parts(parts.data() + c * step_out, y, step_out);
  }

  // Partial results over fixed chunks: the same for any number of threads.
  C reduce_row(const C* x, int64_t n) const {
    if (n <= 2 * kChunk) return steps_.row(x, n);
    int64_t chunks = (n + kChunk - 1) / kChunk;
    Scratch<C> parts(chunks);
    parallel_for(chunks, 2, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        parts[size_t(c)] = steps_.row(x + c * kChunk, std::min(kChunk, n - c * kChunk));
    });
    return steps_.row_of_parts(parts.data(), chunks);
  }

  void fold_columns(const C* x, C* y, int64_t rows, int64_t columns) const {
    if (columns < kNarrow && rows * columns >= 4 * kNarrow) return fold_narrow_columns(x, y, rows, columns);
    if (columns <= kWide && rows >= 2 * kFoldBlock && rows * columns >= 8 * kChunk)
      return fold_many_rows(x, y, rows, columns);
    int64_t grain = std::max<int64_t>(64, kChunk / std::max<int64_t>(1, rows));
    parallel_for(columns, grain, [&](int64_t begin, int64_t end) {
      if (rows <= kFoldBlock) {
        for (int64_t r = 0; r < rows; ++r) steps_.fold(x + r * columns + begin, y + begin, end - begin);
        return;
      }
      Scratch<C> part(end - begin);
      for (int64_t first = 0; first < rows; first += kFoldBlock) {
        std::ranges::fill(part, steps_.start);
        for (int64_t r = first; r < std::min(rows, first + kFoldBlock); ++r)
          steps_.fold(x + r * columns + begin, part.data(), end - begin);
        steps_.fold_of_parts(part.data(), y + begin, end - begin);
      }
    });
  }

  // Partial results over fixed runs of rows, which are read as they lie.
  void fold_many_rows(const C* x, C* y, int64_t rows, int64_t columns) const {
    const int64_t height = std::max(kFoldBlock, rows / kMostParts), chunks = (rows + height - 1) / height;
    Scratch<C> parts(chunks * columns);
    std::fill(parts.begin(), parts.end(), steps_.start);
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      Scratch<C> block(columns);
      for (int64_t c = begin; c < end; ++c)
        for (int64_t first = c * height, last; first < std::min(rows, (c + 1) * height); first = last) {
          last = std::min({rows, (c + 1) * height, first + kFoldBlock});
          C* into = height == kFoldBlock ? parts.data() + c * columns : block.data();
          if (into == block.data()) std::fill(block.begin(), block.end(), steps_.start);
          for (int64_t r = first; r < last; ++r) steps_.fold(x + r * columns, into, columns);
          if (into == block.data()) steps_.fold_of_parts(into, parts.data() + c * columns, columns);
        }
    });
    for (int64_t c = 0; c < chunks; ++c) steps_.fold_of_parts(parts.data() + c * columns, y, columns);
  }

  // Several short rows count as one long row. Partial results are over fixed chunks, as above.
  void fold_narrow_columns(const C* x, C* y, int64_t rows, int64_t columns) const {
    int64_t joined = kNarrow / columns, width = joined * columns;
    int64_t chunk = std::max<int64_t>(1, kChunk / width) * joined, chunks = (rows + chunk - 1) / chunk;
    Scratch<C> parts(chunks * columns);
    std::ranges::fill(parts, steps_.start);
    parallel_for(chunks, 2, [&](int64_t begin, int64_t end) {
      Scratch<C> wide(width);
      for (int64_t c = begin; c < end; ++c) {
        const C* from = x + c * chunk * columns;
        int64_t count = std::min(chunk, rows - c * chunk), whole = count / joined;
        C* part = parts.data() + c * columns;
        std::ranges::fill(wide, steps_.start);
        for (int64_t r = 0; r < whole; ++r) steps_.fold(from + r * width, wide.data(), width);
        for (int64_t r = whole * joined; r < count; ++r) steps_.fold(from + r * columns, part, columns);
        for (int64_t k = 0; k < joined; ++k) steps_.fold_of_parts(wide.data() + k * columns, part, columns);
      }
    });
    for (int64_t c = 0; c < chunks; ++c) steps_.fold_of_parts(parts.data() + c * columns, y, columns);
  }

  const Steps<C>& steps_;
  const SmallVector<Group, 4>& groups_;
};

// Four runs at a time, so that the processor need not wait for each result; of integers the compiler makes vectors.
template <class C, class F> [[gnu::always_inline]] inline C fold_run(const C* x, int64_t n) {
  const int64_t quarter = n / 4;
  if (quarter == 0) {
    C total = x[0];
    for (int64_t i = 1; i < n; ++i) total = F{}(total, x[i]);
    return total;
  }
  const C *second = x + quarter, *third = second + quarter, *fourth = third + quarter;
  C totals[4] = {x[0], second[0], third[0], fourth[0]};
  for (int64_t i = 1; i < quarter; ++i) {
    totals[0] = F{}(totals[0], x[i]);
    totals[1] = F{}(totals[1], second[i]);
    totals[2] = F{}(totals[2], third[i]);
    totals[3] = F{}(totals[3], fourth[i]);
  }
  for (int64_t i = 4 * quarter; i < n; ++i) totals[0] = F{}(totals[0], x[i]);
  return F{}(F{}(totals[0], totals[1]), F{}(totals[2], totals[3]));
}

// Steps for any element type from a start value and a two-operand function.
template <class C, class F> Steps<C> generic_steps(C start, F) {
  return {start,
          [](const C* x, int64_t n) {
            if constexpr (!std::is_integral_v<C>) return fold_run<C, F>(x, n);
            C total;
            run_element_loop<C>([x, n, &total]() TAPEFLOW_LOOP { total = fold_run<C, F>(x, n); });
            return total;
          },
          [](const C* x, C* y, int64_t n) {
            const auto fold = [x, y, n]() TAPEFLOW_LOOP {
              for (int64_t i = 0; i < n; ++i) y[i] = F{}(y[i], x[i]);
            };
            if constexpr (std::is_integral_v<C>)
              run_element_loop<C>(fold);
            else
              fold();
          }};
}

// The sum of n complex numbers, whose real and imaginary parts lie in turns.
template <class R> std::complex<R> complex_sum(const std::complex<R>* x, int64_t n) {
  constexpr int64_t lanes = 16;
  const R* parts = reinterpret_cast<const R*>(x);
  R totals[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= 2 * n; i += lanes)
    for (int64_t k = 0; k < lanes; ++k) totals[k] += parts[i + k];
  for (; i < 2 * n; ++i) totals[i % 2] += parts[i];
  for (int64_t half = lanes / 2; half >= 2; half /= 2)
    for (int64_t k = 0; k < half; ++k) totals[k] += totals[k + half];
  return {totals[0], totals[1]};
}
template <class R> Steps<std::complex<R>> complex_sum_steps() {
  using C = std::complex<R>;
  return {C(0), complex_sum<R>, [](const C* x, C* y, int64_t n) {
            vector_kernels<R>().accumulate(reinterpret_cast<const R*>(x), reinterpret_cast<R*>(y), 2 * n);
          }};
}

template <class C> Steps<C> sum_steps() {
  if constexpr (std::is_same_v<C, float> || std::is_same_v<C, double>)
    return {C(0), vector_kernels<C>().sum, vector_kernels<C>().accumulate, short_row_kernels<C>().sum};
  else if constexpr (std::is_same_v<C, std::complex<float>> || std::is_same_v<C, std::complex<double>>)
    return complex_sum_steps<typename C::value_type>();
  else
    return generic_steps(C(0), [](C a, C b) { return C(a + b); });
}
template <class C> Steps<C> prod_steps() {
  if constexpr (std::is_same_v<C, float> || std::is_same_v<C, double>)
    return {C(1), short_row_kernels<C>().product_of_row,
            [](const C* x, C* y, int64_t n) { vector_kernels<C>().multiply.vv(y, x, y, n); },
            short_row_kernels<C>().product};
  else
    return generic_steps(C(1), [](C a, C b) { return C(a * b); });
}
template <class C> C lowest_of() {
  return std::is_floating_point_v<C> ? C(-std::numeric_limits<double>::infinity()) : std::numeric_limits<C>::lowest();
}
template <class C> C highest_of() {
  return std::is_floating_point_v<C> ? C(std::numeric_limits<double>::infinity()) : std::numeric_limits<C>::max();
}
template <class C> Steps<C> max_steps() {
  if constexpr (std::is_floating_point_v<C>)
    return {lowest_of<C>(), vector_kernels<C>().max, vector_kernels<C>().accumulate_max, short_row_kernels<C>().max};
  else
    return generic_steps(lowest_of<C>(), [](C a, C b) { return a > b ? a : b; });
}
template <class C> Steps<C> min_steps() {
  if constexpr (std::is_floating_point_v<C>)
    return {highest_of<C>(), vector_kernels<C>().min, vector_kernels<C>().accumulate_min, short_row_kernels<C>().min};
  else
    return generic_steps(highest_of<C>(), [](C a, C b) { return a < b ? a : b; });
}

}  // namespace tapeflow
