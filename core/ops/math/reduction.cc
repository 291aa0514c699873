// Reductions over axes.
#include <algorithm>
#include <cstring>
#include <functional>

#include "kernels/simd/zero_safe.h"
#include "ops/family.h"
#include "ops/math/reducer.h"

namespace tapeflow {
namespace {

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
  Ints axes = normalized_axes(call.name(), call.params.value(reduction_params.axis), x.rank());
  call.returns(x.dtype(), reduced_shape(x.shape(), axes, call.params[reduction_params.keepdims]));
}

// Widens the small float types, reduces, and rounds once; `finish` sees the results before rounding.
template <class T, class Finish> void reduce(const Call& call, Steps<Compute<T>> steps, Finish finish) {
  using C = Compute<T>;
  const Tensor &x = call.in[0], &y = call.out[0];
  SmallVector<Group, 4> groups =
      groups_of(x.shape(), normalized_axes(call.name(), call.params.value(reduction_params.axis), x.rank()));
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
  return reshape(
      t, reduced_shape(x, normalized_axes(c.op.public_name(), c.params.value(reduction_params.axis), x.rank()), true));
}

bool batch_reduction(BatchCall& c) {
  Ints axes;
  const int rank = c.row_rank(0);
  if (c.params.has(reduction_params.axis))
    for (int64_t axis : c.params[reduction_params.axis]) axes.push_back(c.batch_axis(axis, rank));
  else
    for (int i = 0; i < rank; ++i) axes.push_back(i + 1);
  return c.run_same({c.in[0]}, c.params.with(reduction_params.axis, Param(axes)));
}

// Defines a reduction: the family adds arguments, shape rule and kernel to what the entry says. MakeSteps{}(C()) gives
// the steps for elements that are computed in C.
template <DTypes Set, class MakeSteps> const Op& reduction(MakeSteps, Op op) {
  op.arguments = {tensor("input_tensor", Set), axes(reduction_params.axis), flag(reduction_params.keepdims)};
  op.infer = infer_reduction;
  op.batch = batch_reduction;
  op.family = "reduction";
  if (op.planning.reduction != ReductionKind::none) op.planning.rounded_once = small_floating;
  if (!op.kernel)
    op.kernel = [](Call& call) {
      visit<Set.bits>(call.in[0].dtype(), [&](auto* p) {
        using T = Pointee<decltype(p)>;
        reduce<T>(call, MakeSteps{}(Compute<T>()), std::identity());
      });
    };
  return define(std::move(op));
}

// A reduction that is linear reduces the tangent of its input.
void linear_jvp(RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); }

const auto sum_of = [](auto c) { return sum_steps<decltype(c)>(); };

const Op& sum_op = reduction<numbers>(
    sum_of, Op{
                .name = "Sum",
                .planning = {.reduction = ReductionKind::sum},
                .vjp = [](RuleContext& c) { c.set(0, broadcast_to(with_kept_dims(c, c.dy()), c.shape(0))); },
                .jvp = linear_jvp,
                .names = {"math.reduce_sum", "reduce_sum"},
                .doc = R"(Sum over the axes `axis` (all if None).

Gradient: `dy` repeated to the shape of `input_tensor`.

>>> tf.reduce_sum([[1., 2.], [3., 4.]], axis=0)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 6.], dtype=float32)>)",
            });

void mean_kernel(Call& call) {
  int64_t n = reduced_count(call.in[0].shape(), call.params.value(reduction_params.axis), call.name());
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
}

const Op& mean_op = reduction<numbers>(
    sum_of, Op{
                .name = "Mean",
                .planning = {.reduction = ReductionKind::mean},
                .kernel = mean_kernel,
                .vjp =
                    [](RuleContext& c) {
                      int64_t n = reduced_count(c.shape(0), c.params.value(reduction_params.axis), c.op.public_name());
                      c.set(0, broadcast_to(with_kept_dims(c, divide(c.dy(), Tensor::number(c.dtype(0), double(n)))),
                                            c.shape(0)));
                    },
                .jvp = linear_jvp,
                .names = {"math.reduce_mean", "reduce_mean"},
                .doc = R"(Mean over the axes `axis` (all if None).

Gradient: `dy / n` repeated to the shape of `input_tensor`, with `n` the number of elements of one mean.

>>> tf.reduce_mean([[1., 2.], [3., 4.]], axis=0)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 3.], dtype=float32)>)",
                .non_finite = {"The mean of no elements is NaN: check that the selection is not empty."},
            });

// d prod / dx_i is the product of the others: products from the left and from the right, so that zeros do no harm.
Tensor prod_vjp(const RuleContext& c) {
  const Tensor& x = c.x(0);
  Ints axes = normalized_axes("reduce_prod", c.params.value(reduction_params.axis), x.rank());
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

const Op& prod_op = reduction<numbers>([](auto c) { return prod_steps<decltype(c)>(); },
                                       Op{
                                           .name = "Prod",
                                           .vjp = [](RuleContext& c) { c.set(0, prod_vjp(c)); },
                                           .keep = keep_input(0),
                                           .elements = Elements::computed,
                                           .names = {"math.reduce_prod", "reduce_prod"},
                                           .doc =
                                               R"(Product over the axes `axis` (all if None).

Gradient: `dy` times the product of all other elements, correct where elements are 0.

>>> tf.reduce_prod([[1., 2.], [3., 4.]], axis=0)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 8.], dtype=float32)>)",
                                       });

// 1 where two elements are equal, 0 elsewhere, in their own dtype. They are compared by their bits: work that takes
// small numbers for zeros does not take them for equal.
const Op& equal_as_number_op = []() -> const Op& {
  constexpr auto equal = [](auto a, auto b) { return decltype(a)(a == b); };
  constexpr auto fast = []<class T>(const VectorKernels<T>&) { return zero_safe_kernels<T>().equal_number; };
  Op op{.name = "EqualAsNumber", .arguments = {tensor("x", floating), tensor("y", floating)}};
  op.infer = op.infer_staged = family::infer_binary<floating, decltype(equal)>;
  op.kernel = family::binary_kernel<floating, decltype(equal), decltype(fast), kCheapGrain>;
  op.float_binary = &family::FastBinary<decltype(fast), float>::loops;
  op.element_loops = family::binary_loops<wide_floating, decltype(equal), decltype(fast)>;
  op.gradient = Gradient::none;
  op.elementwise = true;
  op.family = "binary";
  return define(std::move(op));
}();

// The gradient is shared equally by the elements that attain the extremum.
void extremum_vjp(RuleContext& c) {
  Tensor y = with_kept_dims(c, c.y());
  Tensor attained = run(equal_as_number_op, {y, c.x(0)});
  Tensor count = reduce_sum(
      attained, normalized_axes(c.op.public_name(), c.params.value(reduction_params.axis), c.x(0).rank()), true);
  c.set(0, multiply(attained, divide(with_kept_dims(c, c.dy()), count)));
}

const Op& max_op = reduction<real_numbers>([](auto c) { return max_steps<decltype(c)>(); },
                                           Op{
                                               .name = "Max",
                                               .planning = {.reduction = ReductionKind::max},
                                               .vjp = extremum_vjp,
                                               .keep = keep_input(0) | keep_output(0),
                                               .names = {"math.reduce_max", "reduce_max"},
                                               .doc = R"(Largest element over the axes `axis` (all if None).

Gradient: `dy` for the largest element; equal ones share it.

>>> tf.reduce_max([[1., 2.], [3., 4.]], axis=0)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 4.], dtype=float32)>)",
                                           });
const Op& min_op = reduction<real_numbers>([](auto c) { return min_steps<decltype(c)>(); },
                                           Op{
                                               .name = "Min",
                                               .planning = {.reduction = ReductionKind::min},
                                               .vjp = extremum_vjp,
                                               .keep = keep_input(0) | keep_output(0),
                                               .names = {"math.reduce_min", "reduce_min"},
                                               .doc = R"(Smallest element over the axes `axis` (all if None).

Gradient: `dy` for the smallest element; equal ones share it.

>>> tf.reduce_min([[1., 2.], [3., 4.]], axis=0)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>)",
                                           });
// Whether all are true, or any. A run ends where the answer is known.
template <bool all> Steps<bool> bool_steps() {
  return {all, [](const bool* x, int64_t n) { return (std::memchr(x, all ? 0 : 1, size_t(n)) == nullptr) == all; },
          [](const bool* x, bool* y, int64_t n) {
            for (int64_t i = 0; i < n; ++i) y[i] = all ? bool(y[i] & x[i]) : bool(y[i] | x[i]);
          }};
}
const Op& any_op = reduction<booleans>([](bool) { return bool_steps<false>(); },
                                       Op{
                                           .name = "Any",
                                           .gradient = Gradient::none,
                                           .names = {"math.reduce_any", "reduce_any"},
                                           .doc = R"(Whether any element is true over the axes `axis` (all if None).

>>> tf.reduce_any([[True, False], [False, False]], axis=0)
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>)",
                                       });
const Op& all_op = reduction<booleans>([](bool) { return bool_steps<true>(); },
                                       Op{
                                           .name = "All",
                                           .gradient = Gradient::none,
                                           .names = {"math.reduce_all", "reduce_all"},
                                           .doc = R"(Whether all elements are true over the axes `axis` (all if None).

>>> tf.reduce_all([[True, False], [True, True]], axis=0)
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>)",
                                       });

// Sums of squares of floats, in one pass.
template <class T> void sum_of_squares(const Tensor& x, const Ints& axes, const Tensor& y) {
  const VectorKernels<T>& v = vector_kernels<T>();
  Steps<T> steps{T(0),  v.sum_of_squares, v.accumulate_squares, short_row_kernels<T>().sum_of_squares,
                 v.sum, v.accumulate};
  Reducer<T>(steps, groups_of(x.shape(), axes)).run(x.data<T>(), y.mutable_data<T>());
}
bool sums_squares_directly(const Tensor& x, const Params& params) {
  return (x.dtype() == DType::float32 || x.dtype() == DType::float64) && x.size() > 0 &&
         reduced_count(x.shape(), params.value(reduction_params.axis), "reduce_sum") > 1;
}

const Op& sum_of_squares_op = reduction<numbers>(
    sum_of, Op{
                .name = "SumOfSquares",
                .kernel =
                    [](Call& call) {
                      const Tensor &x = call.in[0], &y = call.out[0];
                      Ints axes = normalized_axes(call.name(), call.params.value(reduction_params.axis), x.rank());
                      if (sums_squares_directly(x, call.params))
                        return x.dtype() == DType::float32 ? sum_of_squares<float>(x, axes, y)
                                                           : sum_of_squares<double>(x, axes, y);
                      PauseRecording paused;
                      call.out[0] = reduce_sum(square(x), axes, call.params[reduction_params.keepdims]);
                    },
                .vjp = [](RuleContext& c) { c.set(0, multiply(scaled(conj(c.x(0)), 2), with_kept_dims(c, c.dy()))); },
                .keep = keep_input(0),

            });

// The square root of the sum of squared absolute values; small floats are widened, so that squares do not overflow.
const Op& euclidean_norm_op = reduction<numbers>(
    sum_of,
    Op{
        .name = "EuclideanNorm",
        .kernel =
            [](Call& call) {
              PauseRecording paused;
              const Tensor& x = call.in[0];
              Ints axes = normalized_axes(call.name(), call.params.value(reduction_params.axis), x.rank());
              if (sums_squares_directly(x, call.params)) {
                Tensor y =
                    Tensor::allocate(x.dtype(), reduced_shape(x.shape(), axes, call.params[reduction_params.keepdims]));
                x.dtype() == DType::float32 ? sum_of_squares<float>(x, axes, y) : sum_of_squares<double>(x, axes, y);
                call.out.push_back(sqrt(y));
                return;
              }
              DType wide = small_floating.has(x.dtype()) ? DType::float32
                           : integers.has(x.dtype())     ? DType::float64
                                                         : x.dtype();
              Tensor squares = complexes.has(wide) ? multiply(x, conj(x)) : square(cast(x, wide));
              call.out.push_back(
                  cast(sqrt(reduce_sum(squares, axes, call.params[reduction_params.keepdims])), x.dtype()));
            },
        .makes_outputs = true,
        .vjp =
            [](RuleContext& c) {
              Tensor dy = c.dy();
              if (complexes.has(c.dtype(0))) dy = complex_number(real_part(dy), zeros_like(real_part(dy)));
              // Not dy / y: as for a square root, no cotangent gives no gradient, also at 0.
              c.set(0, multiply(c.x(0), with_kept_dims(c, scaled(sqrt_grad(c.y(), dy), 2))));
            },
        .keep = keep_input(0) | keep_output(0),
        .names = {"math.reduce_euclidean_norm"},
        .doc = R"(Square root of the sum of squares over the axes `axis` (all if None).

Gradient: `dy * x / y`; where the norm is 0, NaN, or 0 if `dy` is 0.

>>> tf.math.reduce_euclidean_norm([3., 4.])
<tf.Tensor: shape=(), dtype=float32, numpy=5.0>)",
        .non_finite = {nullptr,
                       "The derivative of a norm at zero is not defined: tf.sqrt(tf.reduce_sum(x * x) + 1e-12)."},

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

}  // namespace tapeflow
