// C++ functions for the operations that rules and other operations call. Each goes through dispatch.
#pragma once
#include "base/scratch.h"
#include "op/op.h"

namespace tapeflow {

// arithmetic
Tensor add(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, const Tensor& b);
Tensor divide_no_nan(const Tensor& a, const Tensor& b);
Tensor floor_div(const Tensor& a, const Tensor& b);
Tensor floor_mod(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor power(const Tensor& a, const Tensor& b);
Tensor xdivy(const Tensor& a, const Tensor& b);
Tensor xlogy(const Tensor& a, const Tensor& b);
Tensor xlog1py(const Tensor& a, const Tensor& b);
Tensor truncate_div(const Tensor& a, const Tensor& b);
Tensor negative(const Tensor& x);
Tensor absolute(const Tensor& x);
Tensor complex_absolute(const Tensor& x);
Tensor square(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor sqrt_grad(const Tensor& y, const Tensor& dy);
Tensor reciprocal(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor conj(const Tensor& x);
Tensor real_part(const Tensor& x);
Tensor imaginary_part(const Tensor& x);
Tensor complex_number(const Tensor& re, const Tensor& im);
Tensor accumulate(std::span<const Tensor> same_shaped);
// A number of x's dtype times, plus, ... x: the number adapts.
Tensor scaled(const Tensor& x, double factor);
Tensor shifted(const Tensor& x, double offset);

// exponential, trigonometric
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor erfc(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);

// comparison and choice
Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& x);
Tensor bitwise_and(const Tensor& a, const Tensor& b);
Tensor bitwise_or(const Tensor& a, const Tensor& b);
Tensor bitwise_xor(const Tensor& a, const Tensor& b);
Tensor invert(const Tensor& x);
Tensor select(const Tensor& condition, const Tensor& x, const Tensor& y);

// casting
Tensor cast(const Tensor& x, DType);

// constants, made without dispatch, unless they have a shape that is unknown
Tensor zeros(DType, const Shape&);
Tensor filled(DType, const Shape&, double value);
Tensor filled_like(const Tensor& x, double value);  // of x's dtype and shape, which may be unknown
inline Tensor zeros_like(const Tensor& x) { return x.size() >= 0 ? zeros(x.dtype(), x.shape()) : filled_like(x, 0); }
inline Tensor ones_like(const Tensor& x) { return filled_like(x, 1); }
Tensor int_tensor(std::span<const int64_t>, DType = DType::int32);
Ints read_ints(const Tensor&);                // the elements of a short integer tensor
Scratch<int64_t> integers_in(const Tensor&);  // of any, while a kernel works on them

// reduction
Tensor reduce_sum(const Tensor& x, Ints axes, bool keepdims);
Tensor sum_of_all(const Tensor& x);
Tensor reduce_prod(const Tensor& x, Ints axes, bool keepdims);
Tensor reduce_max(const Tensor& x, Ints axes, bool keepdims);
Tensor cumsum(const Tensor& x, int64_t axis, bool exclusive, bool reverse);
Tensor cumprod(const Tensor& x, int64_t axis, bool exclusive, bool reverse);

// movement
Tensor reshape(const Tensor& x, const Shape&);
Tensor transpose(const Tensor& x, Ints permutation);
Tensor shape_tensor(const Tensor& x, DType);  // as an operation, for shapes that are unknown while tracing
Tensor broadcast_to(const Tensor& x, const Shape&);
Tensor broadcast_to(const Tensor& x, const Tensor& shape);
Tensor unbroadcast(const Tensor& x, const Shape&);  // sums what broadcasting from `shape` repeated
inline constexpr struct : Keys {
  Key<int64_t> axis = next("axis");
} concat_params;
Tensor concat(std::span<const Tensor> parts, int64_t axis);
const Op& concat_op();
Tensor stack(std::span<const Tensor> parts, int64_t axis);
const Op& stack_op();
Tensors split(const Tensor& x, const Ints& sizes, int64_t axis);
Tensors unstack(const Tensor& x, int64_t axis);
Tensor pad(const Tensor& x, const Ints& paddings);  // zeros; before and after for each dimension
Tensor slice(const Tensor& x, const Ints& begin, const Ints& size);
Tensor identity(const Tensor& x);
Tensor stop_gradient(const Tensor& x);
Tensor reverse(const Tensor& x, Ints axes);

// indexing
Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis, int64_t batch_dims);
Tensor gather_nd(const Tensor& x, const Tensor& indices, int64_t batch_dims);
Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape);
Tensor gather_grad(const Tensor& dy, const Tensor& indices, const Shape& x, int64_t axis,
                   int64_t batch_dims);  // transposed gather
Tensor tensor_scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates);
Tensor unsorted_segment_sum(const Tensor& x, const Tensor& segment_ids, int64_t segments);

// random numbers: the operation that gives a generator's key and counter, and its state further on
const Op& advance_op();

// contraction
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b, bool adjoint_a = false,
              bool adjoint_b = false);

// diagonals, factorizations
Tensor band_part(const Tensor& x, int64_t lower, int64_t upper);
Tensor matrix_diag(const Tensor& diagonal);
Tensor matrix_diag_part(const Tensor& x, const Ints& k, const char* align);
Tensor matrix_set_diag(const Tensor& x, const Tensor& diagonal, const Ints& k, const char* align);
Tensor triangular_solve(const Tensor& a, const Tensor& b, bool lower, bool adjoint);

}  // namespace tapeflow
