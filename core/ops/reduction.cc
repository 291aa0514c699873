// Reductions over axes, cumulative sums and products, positions of extrema.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/blocks.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/simd/short_rows.h"
#include "ops/family.h"

namespace tapeflow {
namespace {

// ---- axes

Ints normalized_axes(const char* who, const Param& p, int rank) {
  Ints axes;
  if (p.is_none()) {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  bool used[kMaxRank] = {};
  for (int64_t axis : p.ints) {
    if (axis < -rank || axis >= rank)
      fail(ErrorKind::invalid_argument, who, ": Invalid reduction dimension (", axis, " for input with ", rank,
           " dimension(s)");
    int i = int(axis < 0 ? axis + rank : axis);
    if (used[i])
      fail(ErrorKind::invalid_argument, who, ": Invalid reduction arguments: Axes contains duplicate dimension: ", i);
    used[i] = true;
    axes.push_back(i);
  }
  return axes;
}

Shape reduced_shape(const Shape& shape, const Ints& axes, bool keepdims) {
  bool reduced[kMaxRank] = {};
  for (int64_t a : axes) reduced[a] = true;
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduced[i])
      result.append(shape[i]);
    else if (keepdims)
      result.append(1);
  }
  return result;
}

void infer_reduction(Call& call) {
  const Tensor& x = call.in[0];
  Ints axes = normalized_axes(call.name(), call.params[0], x.rank());
  call.returns(x.dtype(), reduced_shape(x.shape(), axes, call.params.flag(1)));
}

// ---- the walk

// Neighbouring dimensions that are all reduced, or all kept, count as one.
struct Group {
  int64_t length;
  bool reduced;
};
SmallVector<Group, 4> groups_of(const Shape& shape, const Ints& axes) {
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
// short rows, if it has a way for them, and with results of parts (row_of_parts, fold_of_parts). C is the type it
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

// Steps for any element type from a start value and a two-operand function.
template <class C, class F> Steps<C> generic_steps(C start, F) {
  return {start,
          [](const C* x, int64_t n) {
            constexpr int64_t lanes = 16;  // independent chains, so that the processor need not wait for each result
            C total = x[0];
            int64_t i = 1;
            if (n >= 2 * lanes) {
              C lane[lanes];
              std::copy(x, x + lanes, lane);
              for (i = lanes; i + lanes <= n; i += lanes)
                for (int64_t k = 0; k < lanes; ++k) lane[k] = F{}(lane[k], x[i + k]);
              total = lane[0];
              for (int64_t k = 1; k < lanes; ++k) total = F{}(total, lane[k]);
            }
            for (; i < n; ++i) total = F{}(total, x[i]);
            return total;
          },
          [](const C* x, C* y, int64_t n) {
            for (int64_t i = 0; i < n; ++i) y[i] = F{}(y[i], x[i]);
          }};
}

template <class C> Steps<C> sum_steps() {
  if constexpr (std::is_same_v<C, float> || std::is_same_v<C, double>)
    return {C(0), vector_kernels<C>().sum, vector_kernels<C>().accumulate, short_row_kernels<C>().sum};
  else
    return generic_steps(C(0), [](C a, C b) { return C(a + b); });
}
template <class C> Steps<C> prod_steps() {
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

// Widens the small float types, reduces, and rounds once; `finish` sees the results before rounding.
template <class T, class Finish> void reduce(const Call& call, Steps<Compute<T>> steps, Finish finish) {
  using C = Compute<T>;
  const Tensor &x = call.in[0], &y = call.out[0];
  SmallVector<Group, 4> groups = groups_of(x.shape(), normalized_axes(call.name(), call.params[0], x.rank()));
  if (x.size() == 0) {
    std::fill(y.mutable_data<T>(), y.mutable_data<T>() + y.size(), T(finish(steps.start)));
    return;
  }
  if constexpr (std::is_same_v<T, C>) {
    Reducer<C>(steps, groups).run(x.data<T>(), y.mutable_data<T>());
    if constexpr (!std::is_same_v<Finish, std::identity>)
      for (int64_t i = 0; i < y.size(); ++i) y.mutable_data<T>()[i] = finish(y.data<T>()[i]);
  } else {
    Scratch<float> wide(x.size()), result(y.size());
    auto widen = std::is_same_v<T, half> ? conversion_kernels().half_to_float : conversion_kernels().bfloat16_to_float;
    parallel_for(x.size(), kChunk, [&](int64_t begin, int64_t end) {
      widen(static_cast<const uint16_t*>(x.raw()) + begin, wide.data() + begin, end - begin);
    });
    Reducer<C>(steps, groups).run(wide.data(), result.data());
    for (int64_t i = 0; i < y.size(); ++i) store(y.mutable_data<T>() + i, finish(result[size_t(i)]));
  }
}

int64_t reduced_count(const Shape& x, const Param& axes, const char* who) {
  int64_t n = 1;
  for (int64_t a : normalized_axes(who, axes, x.rank())) n *= x[int(a)];
  return n;
}

// dy brought back to x's rank, with ones for the reduced dimensions.
Tensor with_kept_dims(const RuleContext& c, const Tensor& t) {
  if (t.rank() == 0) return t;  // goes with any shape as it is
  const Shape x = c.shape(0);
  return reshape(t, reduced_shape(x, normalized_axes(c.op.public_name(), c.params[0], x.rank()), true));
}

std::vector<Argument> reduction_arguments(DTypes allowed) {
  return {tensor("input_tensor", allowed), axes("axis"), flag("keepdims")};
}

const Op& sum_op = define(Op{
    .name = "Sum",
    .arguments = reduction_arguments(numbers),
    .infer = infer_reduction,
    .kernel =
        [](Call& call) {
          visit<numbers.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            reduce<T>(call, sum_steps<Compute<T>>(), std::identity());
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, broadcast_to(with_kept_dims(c, c.dy()), c.shape(0))); },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .names = {"math.reduce_sum", "reduce_sum"},
    .doc = "Sum over the axes `axis` (all if None).\n\n>>> tf.reduce_sum([[1., 2.], [3., 4.]], axis=0)\n[4., 6.]",
    .family = "reduction",
});

const Op& mean_op = define(Op{
    .name = "Mean",
    .arguments = reduction_arguments(numbers),
    .infer = infer_reduction,
    .kernel =
        [](Call& call) {
          int64_t n = reduced_count(call.in[0].shape(), call.params[0], call.name());
          if (integers.has(call.in[0].dtype()) && size_of(call.in[0].dtype()) < 8) {  // the sum needs more room
            PauseRecording paused;
            call.out[0] = cast(run(call.op, {cast(call.in[0], DType::int64)}, call.params), call.in[0].dtype());
            return;
          }
          visit<numbers.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            using C = Compute<T>;
            reduce<T>(call, sum_steps<C>(), [n](C total) {
              if constexpr (std::is_integral_v<C>)
                return n == 0 ? C(0) : C(total / C(n));
              else if constexpr (is_complex<C>)
                return total / typename C::value_type(n);
              else
                return total / C(n);
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          int64_t n = reduced_count(c.shape(0), c.params[0], c.op.public_name());
          c.set(0, broadcast_to(with_kept_dims(c, divide(c.dy(), Tensor::number(c.dtype(0), double(n)))), c.shape(0)));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .names = {"math.reduce_mean", "reduce_mean"},
    .doc = "Mean over the axes `axis` (all if None).\n\n>>> tf.reduce_mean([[1., 2.], [3., 4.]], axis=0)\n[2., 3.]",
    .family = "reduction",
});

// d prod / dx_i is the product of the others: products from the left and from the right, so that zeros do no harm.
Tensor prod_vjp(const RuleContext& c) {
  const Tensor& x = c.x(0);
  Ints axes = normalized_axes("reduce_prod", c.params[0], x.rank());
  Tensor dy = with_kept_dims(c, c.dy());
  if (axes.size() == 1)
    return multiply(dy, conj(multiply(cumprod(x, axes[0], true, false), cumprod(x, axes[0], true, true))));
  bool reduced[kMaxRank] = {};
  for (int64_t a : axes) reduced[a] = true;
  Ints permutation, inverse;
  int64_t count = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (!reduced[i]) permutation.push_back(i);
  for (int i = 0; i < x.rank(); ++i)
    if (reduced[i]) permutation.push_back(i), count *= x.dim(i);
  inverse.resize(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[size_t(permutation[i])] = int64_t(i);
  Tensor moved = transpose(x, permutation);
  Tensor rows = reshape(moved, {count ? x.size() / count : 0, count});
  Tensor others = multiply(cumprod(rows, 1, true, false), cumprod(rows, 1, true, true));
  return multiply(dy, conj(transpose(reshape(others, moved.shape()), inverse)));
}

const Op& prod_op = define(Op{
    .name = "Prod",
    .arguments = reduction_arguments(numbers),
    .infer = infer_reduction,
    .kernel =
        [](Call& call) {
          visit<numbers.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            reduce<T>(call, prod_steps<Compute<T>>(), std::identity());
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, prod_vjp(c)); },
    .keep = keep_input(0),
    .names = {"math.reduce_prod", "reduce_prod"},
    .doc = "Product over the axes `axis` (all if None).\n\n>>> tf.reduce_prod([[1., 2.], [3., 4.]], axis=0)\n[3., 8.]",
    .family = "reduction",
});

// 1 where two elements are equal, 0 elsewhere, in their own dtype. float32 is compared by its bits: work that takes
// small numbers for zeros does not take them for equal.
struct EqualAsNumber {
  template <class C> C operator()(C a, C b) const {
    if constexpr (std::is_same_v<C, float>) {
      const auto p = std::bit_cast<int32_t>(a), q = std::bit_cast<int32_t>(b);
      const bool same = (p == q) & ((p & 0x7fffffff) <= 0x7f800000), zeros = ((p | q) & 0x7fffffff) == 0;
      return std::bit_cast<float>((same | zeros) ? 0x3f800000 : 0);
    } else {
      return C(a == b);
    }
  }
};
const Op& equal_as_number_op = []() -> const Op& {
  Op op{.name = "EqualAsNumber", .arguments = {tensor("x", floating), tensor("y", floating)}};
  op.infer = op.infer_staged = family::infer_binary<floating, EqualAsNumber>;
  op.kernel = family::binary_kernel<floating, EqualAsNumber, NoFast, kCheapGrain>;
  op.float_binary = &ElementBinary<float, float, EqualAsNumber>::loops;
  op.element_loops = [](DType operand, DType) {
    const ElementLoops floats{.binary = &ElementBinary<float, float, EqualAsNumber>::loops};
    const ElementLoops doubles{.binary = &ElementBinary<double, double, EqualAsNumber>::loops};
    return operand == DType::float32 ? floats : operand == DType::float64 ? doubles : ElementLoops{};
  };
  op.gradient = Gradient::none;
  op.family = "binary";
  return define(std::move(op));
}();

// The gradient is shared equally by the elements that attain the extremum.
void extremum_vjp(RuleContext& c) {
  Tensor y = with_kept_dims(c, c.y());
  Tensor attained = run(equal_as_number_op, {y, c.x(0)});
  Tensor count = reduce_sum(attained, normalized_axes(c.op.public_name(), c.params[0], c.x(0).rank()), true);
  c.set(0, multiply(attained, divide(with_kept_dims(c, c.dy()), count)));
}

const Op& max_op = define(Op{
    .name = "Max",
    .arguments = reduction_arguments(real_numbers),
    .infer = infer_reduction,
    .kernel =
        [](Call& call) {
          visit<real_numbers.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            reduce<T>(call, max_steps<Compute<T>>(), std::identity());
          });
        },
    .vjp = extremum_vjp,
    .keep = keep_input(0) | keep_output(0),
    .names = {"math.reduce_max", "reduce_max"},
    .doc = "Largest element over the axes `axis` (all if None).\n\n>>> tf.reduce_max([[1., 2.], [3., 4.]], "
           "axis=0)\n[3., 4.]",
    .family = "reduction",
});
const Op& min_op = define(Op{
    .name = "Min",
    .arguments = reduction_arguments(real_numbers),
    .infer = infer_reduction,
    .kernel =
        [](Call& call) {
          visit<real_numbers.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            reduce<T>(call, min_steps<Compute<T>>(), std::identity());
          });
        },
    .vjp = extremum_vjp,
    .keep = keep_input(0) | keep_output(0),
    .names = {"math.reduce_min", "reduce_min"},
    .doc = "Smallest element over the axes `axis` (all if None).\n\n>>> tf.reduce_min([[1., 2.], [3., 4.]], "
           "axis=0)\n[1., 2.]",
    .family = "reduction",
});
const Op& any_op = define(Op{
    .name = "Any",
    .arguments = reduction_arguments(booleans),
    .infer = infer_reduction,
    .kernel =
        [](Call& call) {
          reduce<bool>(call, generic_steps(false, [](bool a, bool b) { return a || b; }), std::identity());
        },
    .gradient = Gradient::none,
    .names = {"math.reduce_any", "reduce_any"},
    .doc = "Whether any element is true over the axes `axis` (all if None).\n\n>>> tf.reduce_any([[True, False], "
           "[False, False]], axis=0)\n[True, False]",
    .family = "reduction",
});
const Op& all_op = define(Op{
    .name = "All",
    .arguments = reduction_arguments(booleans),
    .infer = infer_reduction,
    .kernel =
        [](Call& call) {
          reduce<bool>(call, generic_steps(true, [](bool a, bool b) { return a && b; }), std::identity());
        },
    .gradient = Gradient::none,
    .names = {"math.reduce_all", "reduce_all"},
    .doc = "Whether all elements are true over the axes `axis` (all if None).\n\n>>> tf.reduce_all([[True, False], "
           "[True, True]], axis=0)\n[True, False]",
    .family = "reduction",
});

// Sums of squares of floats, in one pass.
template <class T> void sum_of_squares(const Tensor& x, const Ints& axes, const Tensor& y) {
  const VectorKernels<T>& v = vector_kernels<T>();
  Steps<T> steps{T(0), v.sum_of_squares, v.accumulate_squares, nullptr, v.sum, v.accumulate};
  Reducer<T>(steps, groups_of(x.shape(), axes)).run(x.data<T>(), y.mutable_data<T>());
}
bool sums_squares_directly(const Tensor& x, const Params& params) {
  return (x.dtype() == DType::float32 || x.dtype() == DType::float64) && x.size() > 0 &&
         reduced_count(x.shape(), params[0], "reduce_sum") > 1;
}

const Op& sum_of_squares_op = define(Op{
    .name = "SumOfSquares",
    .arguments = reduction_arguments(numbers),
    .infer = infer_reduction,
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          Ints axes = normalized_axes(call.name(), call.params[0], x.rank());
          if (sums_squares_directly(x, call.params))
            return x.dtype() == DType::float32 ? sum_of_squares<float>(x, axes, y) : sum_of_squares<double>(x, axes, y);
          PauseRecording paused;
          call.out[0] = reduce_sum(square(x), axes, call.params.flag(1));
        },
    .vjp = [](RuleContext& c) { c.set(0, multiply(scaled(conj(c.x(0)), 2), with_kept_dims(c, c.dy()))); },
    .keep = keep_input(0),
    .family = "reduction",
});

// The square root of the sum of squared absolute values; small floats are widened, so that squares do not overflow.
const Op& euclidean_norm_op = define(Op{
    .name = "EuclideanNorm",
    .arguments = reduction_arguments(numbers),
    .infer = infer_reduction,
    .kernel =
        [](Call& call) {
          PauseRecording paused;
          const Tensor& x = call.in[0];
          Ints axes = normalized_axes(call.name(), call.params[0], x.rank());
          if (sums_squares_directly(x, call.params)) {
            Tensor y = Tensor::allocate(x.dtype(), reduced_shape(x.shape(), axes, call.params.flag(1)));
            x.dtype() == DType::float32 ? sum_of_squares<float>(x, axes, y) : sum_of_squares<double>(x, axes, y);
            call.out.push_back(sqrt(y));
            return;
          }
          DType wide = small_floating.has(x.dtype()) ? DType::float32
                       : integers.has(x.dtype())     ? DType::float64
                                                     : x.dtype();
          Tensor squares = complexes.has(wide) ? multiply(x, conj(x)) : square(cast(x, wide));
          call.out.push_back(cast(sqrt(reduce_sum(squares, axes, call.params.flag(1))), x.dtype()));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          Tensor dy = c.dy();
          if (complexes.has(c.dtype(0))) dy = complex_number(real_part(dy), zeros_like(real_part(dy)));
          c.set(0, multiply(c.x(0), with_kept_dims(c, divide(dy, c.y()))));
        },
    .keep = keep_input(0) | keep_output(0),
    .names = {"math.reduce_euclidean_norm"},
    .doc = "Square root of the sum of squares over the axes `axis` (all if None).\n\n>>> "
           "tf.math.reduce_euclidean_norm([3., 4.])\n5.0",
    .family = "reduction",
});

// ---- cumulative

// Lines of `count` elements, `inner` apart, along one axis.
struct Lines {
  int64_t outer, count, inner;
};
Lines lines_of(const Shape& shape, int axis) {
  return {shape.elements(0, axis), shape[axis], shape.elements(axis + 1, shape.rank())};
}

// Running sums of one line of floats, in double. Within a block they do not wait for what came before.
template <int step> void add_along_line(const float* x, float* y, int64_t n, bool exclusive) {
  constexpr int64_t block = 8;
  double before = 0;
  int64_t k = 0;
  for (; k + block <= n; k += block) {
    double sum[block];
    sum[0] = x[k * step];
    for (int64_t i = 1; i < block; ++i) sum[i] = sum[i - 1] + double(x[(k + i) * step]);
    if (exclusive) {
      y[k * step] = float(before);
      for (int64_t i = 1; i < block; ++i) y[(k + i) * step] = float(before + sum[i - 1]);
    } else {
      for (int64_t i = 0; i < block; ++i) y[(k + i) * step] = float(before + sum[i]);
    }
    before += sum[block - 1];
  }
  for (; k < n; ++k) {
    double after = before + double(x[k * step]);
    y[k * step] = float(exclusive ? before : after);
    before = after;
  }
}

// Several lines at a time: each step of a line waits for the one before, those of other lines do not.
template <int lines, class T, class F>
void accumulate_lines(const T* x, T* y, int64_t count, bool exclusive, bool reverse, Compute<T> start, F f) {
  Compute<T> total[lines];
  std::fill(total, total + lines, start);
  for (int64_t k = 0; k < count; ++k) {
    int64_t at = reverse ? count - 1 - k : k;
    for (int line = 0; line < lines; ++line) {
      Compute<T> before = total[line];
      total[line] = f(before, load(x + line * count + at));
      store(y + line * count + at, exclusive ? before : total[line]);
    }
  }
}

struct Plus {
  template <class C> C operator()(C a, C b) const { return C(a + b); }
};

template <class T, class F>
void accumulate_along(const Tensor& x, const Tensor& y, int axis, bool exclusive, bool reverse, Compute<T> start, F f) {
  Lines l = lines_of(x.shape(), axis);
  const T* from = x.data<T>();
  T* to = y.mutable_data<T>();
  parallel_for(
      l.outer, std::max<int64_t>(1, kChunk / std::max<int64_t>(1, l.count * l.inner)), [&](int64_t begin, int64_t end) {
        if (l.inner == 1) {
          int64_t o = begin;
          if constexpr (std::is_same_v<T, float> && std::is_same_v<F, Plus>) {
            for (; o < end; ++o) {
              if (reverse)
                add_along_line<-1>(from + (o + 1) * l.count - 1, to + (o + 1) * l.count - 1, l.count, exclusive);
              else
                add_along_line<1>(from + o * l.count, to + o * l.count, l.count, exclusive);
            }
          }
          for (; o + 8 <= end; o += 8)
            accumulate_lines<8>(from + o * l.count, to + o * l.count, l.count, exclusive, reverse, start, f);
          for (; o < end; ++o)
            accumulate_lines<1>(from + o * l.count, to + o * l.count, l.count, exclusive, reverse, start, f);
          return;
        }
        Scratch<Compute<T>> totals(l.inner);
        Compute<T>* total = totals.data();
        for (int64_t o = begin; o < end; ++o) {
          std::fill(total, total + l.inner, start);
          for (int64_t k = 0; k < l.count; ++k) {
            int64_t row = (o * l.count + (reverse ? l.count - 1 - k : k)) * l.inner;
            const T* in = from + row;
            T* out = to + row;
            if (exclusive)
              for (int64_t i = 0; i < l.inner; ++i) store(out + i, total[i]), total[i] = f(total[i], load(in + i));
            else
              for (int64_t i = 0; i < l.inner; ++i) total[i] = f(total[i], load(in + i)), store(out + i, total[i]);
          }
        }
      });
}

std::vector<Argument> cumulative_arguments() {
  return {tensor("x", numbers), integer("axis", 0), flag("exclusive"), flag("reverse")};
}
void infer_cumulative(Call& call) {
  normalize_axis(call.name(), call.params.integer(0), call.in[0].rank());
  call.returns(call.in[0].dtype(), call.in[0].shape());
}

const Op& cumsum_op = define(Op{
    .name = "Cumsum",
    .arguments = cumulative_arguments(),
    .infer = infer_cumulative,
    .kernel =
        [](Call& call) {
          visit<numbers.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            using C = Compute<T>;
            accumulate_along<T>(call.in[0], call.out[0],
                                normalize_axis(call.name(), call.params.integer(0), call.in[0].rank()),
                                call.params.flag(1), call.params.flag(2), C(0), Plus());
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, cumsum(c.dy(), c.params.integer(0), c.params.flag(1), !c.params.flag(2))); },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .names = {"math.cumsum", "cumsum"},
    .doc = "Running sum along `axis`.\n\n>>> tf.cumsum([1., 2., 3.])\n[1., 3., 6.]",
});

// Every element moved by one along an axis, up or down; the free place takes zero, or its neighbour's old value.
enum class Edge { zero, repeat };
Tensor moved_by_one(const Tensor& x, int axis, bool up, Edge edge) {
  int64_t count = x.dim(axis);
  if (count == 0) return x;
  Ints begin, size, first;
  for (int i = 0; i < x.rank(); ++i) begin.push_back(0), size.push_back(x.dim(i)), first.push_back(0);
  size[size_t(axis)] = count - 1;
  begin[size_t(axis)] = up ? 0 : 1;
  Tensor rest = slice(x, begin, size);
  size[size_t(axis)] = 1;
  first[size_t(axis)] = up ? 0 : count - 1;
  Tensor free = edge == Edge::repeat ? slice(x, first, size) : zeros(x.dtype(), Shape(size.data(), x.rank()));
  Tensor parts[2] = {up ? free : rest, up ? rest : free};
  return concat(parts, axis);
}

// y[k] = b[k] + a[k] y[k-1] along an axis, from the other end if `reverse`; the first a is not used.
Tensor recurrence(const Tensor& a, const Tensor& b, int64_t axis, bool reverse);
const Op& recurrence_op = define(Op{
    .name = "LinearRecurrence",
    .arguments = {tensor("a", differentiable), tensor("b", differentiable), integer("axis", 0), flag("reverse")},
    .infer =
        [](Call& call) {
          const Tensor &a = call.in[0], &b = call.in[1];
          if (a.dtype() != b.dtype()) family::fail_dtypes(call);
          if (!(a.shape() == b.shape()))
            fail(ErrorKind::invalid_argument, call.name(), ": `a` and `b` must have one shape; got ", a.shape(),
                 " and ", b.shape());
          normalize_axis(call.name(), call.params.integer(0), b.rank());
          call.returns(b.dtype(), b.shape());
        },
    .kernel =
        [](Call& call) {
          const Tensor &a = call.in[0], &b = call.in[1], &y = call.out[0];
          Lines l = lines_of(b.shape(), normalize_axis(call.name(), call.params.integer(0), b.rank()));
          bool reverse = call.params.flag(1);
          visit<differentiable.bits>(b.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            parallel_for(l.outer, std::max<int64_t>(1, kChunk / std::max<int64_t>(1, l.count * l.inner)),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t o = begin; o < end; ++o) {
                             auto totals = BlockVector<Compute<T>>(size_t(l.inner));
                             for (int64_t k = 0; k < l.count; ++k) {
                               int64_t row = (o * l.count + (reverse ? l.count - 1 - k : k)) * l.inner;
                               for (int64_t i = 0; i < l.inner; ++i) {
                                 Compute<T> total = load(b.data<T>() + row + i);
                                 if (k > 0) total = total + load(a.data<T>() + row + i) * totals[size_t(i)];
                                 totals[size_t(i)] = total;
                                 store(y.mutable_data<T>() + row + i, total);
                               }
                             }
                           }
                         });
          });
        },
    .vjp =
        [](RuleContext& c) {
          int64_t axis = c.params.integer(0);
          bool reverse = c.params.flag(1);
          int place = normalize_axis("LinearRecurrence", axis, c.x(0).rank());
          Tensor flow = recurrence(moved_by_one(conj(c.x(0)), place, reverse, Edge::zero), c.dy(), axis, !reverse);
          if (c.wants(0)) c.set(0, multiply(flow, moved_by_one(conj(c.y()), place, !reverse, Edge::zero)));
          if (c.wants(1)) c.set(1, flow);
        },
    .keep = keep_input(0) | keep_output(0),
});
Tensor recurrence(const Tensor& a, const Tensor& b, int64_t axis, bool reverse) {
  return run(recurrence_op, {a, b}, {Param(axis), Param(reverse)});
}

// dx[i] is the product of what stands before i, times the sum of dy[j] prod(x[i+1..j]) over j >= i: no division, so
// that zeros do no harm. The sum is a recurrence from the far end.
Tensor cumprod_vjp(const RuleContext& c) {
  int64_t axis = c.params.integer(0);
  bool exclusive = c.params.flag(1), reverse = c.params.flag(2);
  Tensor x = conj(c.x(0));
  int place = normalize_axis("cumprod", axis, x.rank());
  Tensor sums = exclusive ? moved_by_one(recurrence(x, c.dy(), axis, !reverse), place, reverse, Edge::zero)
                          : recurrence(moved_by_one(x, place, reverse, Edge::zero), c.dy(), axis, !reverse);
  return multiply(cumprod(x, axis, true, reverse), sums);
}

const Op& cumprod_op = define(Op{
    .name = "Cumprod",
    .arguments = cumulative_arguments(),
    .infer = infer_cumulative,
    .kernel =
        [](Call& call) {
          visit<numbers.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            using C = Compute<T>;
            accumulate_along<T>(call.in[0], call.out[0],
                                normalize_axis(call.name(), call.params.integer(0), call.in[0].rank()),
                                call.params.flag(1), call.params.flag(2), C(1), [](C a, C b) { return C(a * b); });
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, cumprod_vjp(c)); },
    .keep = keep_input(0),
    .names = {"math.cumprod"},
    .doc = "Running product along `axis`.\n\n>>> tf.math.cumprod([1., 2., 3.])\n[1., 2., 6.]",
});

// log(exp(a) + exp(b)); -inf is the empty sum.
template <class C> C log_add(C a, C b) {
  if (a != a || b != b) return a + b;
  C high = a > b ? a : b, low = a > b ? b : a;
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

// With y[j] = log sum exp(x[..j]): dx[i] = exp(x[i] - y[i]) r[i], r[i] = dy[i] + exp(y[i] - y[i+1]) r[i+1]. All
// exponents are at most 0. Where y is -inf the weights are 0.
Tensor cumulative_logsumexp(const Tensor& x, int64_t axis, bool exclusive, bool reverse);
Tensor cumulative_logsumexp_vjp(const RuleContext& c) {
  int64_t axis = c.params.integer(0);
  bool exclusive = c.params.flag(1), reverse = c.params.flag(2);
  const Tensor& x = c.x(0);
  int place = normalize_axis("cumulative_logsumexp", axis, x.rank());
  Tensor y = exclusive ? cumulative_logsumexp(x, axis, false, reverse) : c.y();
  Tensor dy = exclusive ? moved_by_one(c.dy(), place, reverse, Edge::zero) : c.dy();
  Tensor lowest = Tensor::number(x.dtype(), -std::numeric_limits<double>::infinity());
  Tensor safe = select(equal(y, lowest), Tensor::number(x.dtype(), 0), y);
  Tensor fade = exp(subtract(y, moved_by_one(safe, place, reverse, Edge::repeat)));
  return multiply(exp(subtract(x, safe)), recurrence(fade, dy, axis, !reverse));
}

const Op& cumulative_logsumexp_op = define(Op{
    .name = "CumulativeLogsumexp",
    .arguments = {tensor("x", floating), integer("axis", 0), flag("exclusive"), flag("reverse")},
    .infer = infer_cumulative,
    .kernel =
        [](Call& call) {
          visit<floating.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            using C = Compute<T>;
            accumulate_along<T>(
                call.in[0], call.out[0], normalize_axis(call.name(), call.params.integer(0), call.in[0].rank()),
                call.params.flag(1), call.params.flag(2), -std::numeric_limits<C>::infinity(), log_add<C>);
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, cumulative_logsumexp_vjp(c)); },
    .keep = keep_input(0) | keep_output(0),
    .names = {"math.cumulative_logsumexp"},
    .doc = "Running `log(sum(exp(x)))` along `axis`.\n\n>>> tf.math.cumulative_logsumexp([0., 0.])\n[0., 0.6931472]",
});
Tensor cumulative_logsumexp(const Tensor& x, int64_t axis, bool exclusive, bool reverse) {
  return run(cumulative_logsumexp_op, {x}, {Param(axis), Param(exclusive), Param(reverse)});
}

// ---- positions of extrema

constexpr DTypes kPlaceTypes = DTypes(DType::int16) | DType::uint16 | DType::int32 | DType::int64;

// One axis; None is the first.
int arg_axis(const Call& call) {
  const Param& p = call.params[0];
  if (!p.is_none() && p.ints.size() != 1)
    fail(ErrorKind::invalid_argument, call.name(), ": axis must be one integer; got ", p.ints.size());
  int64_t axis = p.is_none() ? 0 : p.ints[0], rank = call.in[0].rank();
  if (axis < -rank || axis >= rank)
    fail(ErrorKind::invalid_argument, call.name(), ": Expected dimension in the range [", -rank, ", ", rank,
         "), but got ", axis);
  return int(axis < 0 ? axis + rank : axis);
}

// The first of equal elements wins; NaN never does.
template <bool Largest, class C> bool better(C candidate, C best) {
  return (Largest ? candidate > best : candidate < best) || (best != best && candidate == candidate);
}
// The same for one run of floats: its extremum, then the place of it. NaN gives -1.
template <bool Largest, class T> int64_t find_extremum(const T* x, int64_t n) {
  T best = Largest ? vector_kernels<T>().max(x, n) : vector_kernels<T>().min(x, n);
  return best == best ? std::find(x, x + n, best) - x : -1;
}
template <bool Largest, class T> void find_extrema(const T* from, Lines l, int64_t* to) {
  parallel_for(
      l.outer, std::max<int64_t>(1, kChunk / std::max<int64_t>(1, l.count * l.inner)), [&](int64_t begin, int64_t end) {
        Scratch<Compute<T>> best(l.inner);
        for (int64_t o = begin; o < end; ++o) {
          int64_t* place = to + o * l.inner;
          if constexpr (std::is_floating_point_v<T>)
            if (l.inner == 1 && l.count > 0 && (*place = find_extremum<Largest>(from + o * l.count, l.count)) >= 0)
              continue;
          for (int64_t k = 0; k < l.count; ++k) {
            const T* row = from + (o * l.count + k) * l.inner;
            for (int64_t i = 0; i < l.inner; ++i) {
              Compute<T> value = load(row + i);
              if (k == 0 || better<Largest>(value, best[size_t(i)])) best[size_t(i)] = value, place[i] = k;
            }
          }
        }
      });
}
template <bool Largest> void arg_extremum(Call& call) {
  const Tensor &x = call.in[0], &y = call.out[0];
  int axis = arg_axis(call);
  Lines l = lines_of(x.shape(), axis);
  if (l.count == 0 && y.size() > 0)
    fail(ErrorKind::invalid_argument, call.name(), ": Reduction axis ", axis, " is empty in shape ", x.shape());
  bool direct = y.dtype() == DType::int64;
  Tensor places = direct ? y : Tensor::allocate(DType::int64, y.shape());
  visit<(real_numbers | booleans).bits>(x.dtype(), [&](auto* p) {
    find_extrema<Largest>(x.data<Pointee<decltype(p)>>(), l, places.mutable_data<int64_t>());
  });
  if (!direct)
    visit<kPlaceTypes.bits>(y.dtype(), [&](auto* p) {
      using T = Pointee<decltype(p)>;
      for (int64_t i = 0; i < y.size(); ++i) y.mutable_data<T>()[i] = T(places.data<int64_t>()[i]);
    });
}
void infer_arg_extremum(Call& call) {
  Shape shape = call.in[0].shape();
  shape.remove(arg_axis(call));
  DType result = call.params[1].is_none() ? DType::int64 : call.params.dtype(1);
  if (!kPlaceTypes.has(result))
    fail(ErrorKind::invalid_argument, call.name(), ": output_type must be int16, uint16, int32 or int64; got ",
         name_of(result));
  call.returns(result, shape);
}
std::vector<Argument> arg_arguments() {
  return {tensor("input", real_numbers | booleans), axes("axis"), dtype_argument("output_type")};
}

const Op& arg_max_op = define(Op{
    .name = "ArgMax",
    .arguments = arg_arguments(),
    .infer = infer_arg_extremum,
    .kernel = arg_extremum<true>,
    .gradient = Gradient::none,
    .names = {"math.argmax", "argmax"},
    .doc = "Position of the largest element along `axis`; the first one of equals.\n\n>>> tf.argmax([1., 3., 2.])\n1",
});
const Op& arg_min_op = define(Op{
    .name = "ArgMin",
    .arguments = arg_arguments(),
    .infer = infer_arg_extremum,
    .kernel = arg_extremum<false>,
    .gradient = Gradient::none,
    .names = {"math.argmin", "argmin"},
    .doc = "Position of the smallest element along `axis`; the first one of equals.\n\n>>> tf.argmin([2., 1., 3.])\n1",
});

}  // namespace

Tensor reduce_sum(const Tensor& x, Ints axes, bool keepdims) {
  return run(sum_op, {x}, {Param(std::move(axes)), Param(keepdims)});
}
Tensor sum_of_all(const Tensor& x) {
  static const Params all_axes(Param(), Param(false));
  return run(sum_op, {x}, all_axes);
}
Tensor reduce_prod(const Tensor& x, Ints axes, bool keepdims) {
  return run(prod_op, {x}, {Param(std::move(axes)), Param(keepdims)});
}
Tensor reduce_max(const Tensor& x, Ints axes, bool keepdims) {
  return run(max_op, {x}, {Param(std::move(axes)), Param(keepdims)});
}
Tensor cumsum(const Tensor& x, int64_t axis, bool exclusive, bool reverse) {
  return run(cumsum_op, {x}, {Param(axis), Param(exclusive), Param(reverse)});
}
Tensor cumprod(const Tensor& x, int64_t axis, bool exclusive, bool reverse) {
  return run(cumprod_op, {x}, {Param(axis), Param(exclusive), Param(reverse)});
}

}  // namespace tapeflow
