// Square, reciprocal, square root and its reciprocal, with the gradients that are entries of their own.
#include <cmath>

#include "kernels/simd/complex_functions.h"
#include "ops/family.h"

namespace tapeflow {
namespace {

// Complex numbers by the textbook's formula, as products are.
constexpr auto squared = [](auto x) {
  using T = decltype(x);
  if constexpr (is_complex<T>)
    return T(x.real() * x.real() - x.imag() * x.imag(), 2 * x.real() * x.imag());
  else
    return T(x * x);
};
const Op& square_op = unary<numbers>(
    "Square", squared, [](auto& v) { return v.square; }, [](X x, Dy dy) { return multiply(dy, scaled(x, 2)); },
    {{"math.square", "square"},
     R"(`x * x`.

Gradient: `dx = 2 * dy * x`.

>>> tf.square([1., -3.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 9.], dtype=float32)>)",
     {},
     {.arithmetic = Arithmetic::multiply},
     {"The value overflows: scale it down, clip it, or compute in float32 or float64."}});

Tensor reciprocal_grad(const Tensor& y, const Tensor& dy);
const Op& reciprocal_op = unary<floating | complexes>(
    "Reciprocal", [](auto x) { return decltype(x)(1) / x; }, [](auto& v) { return v.reciprocal; },
    [](Y y, Dy dy) { return reciprocal_grad(y, dy); },
    {{"math.reciprocal"},
     R"(`1 / x`.

Gradient: `dx = -dy * y**2`.

>>> tf.math.reciprocal([2., 4.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5 , 0.25], dtype=float32)>)",
     {},
     {.arithmetic = Arithmetic::reciprocal},
     {"Add an epsilon: 1 / (x + 1e-7)."}});
// Where no gradient comes, none goes on, also where the derivative is infinite: what tf.where does not take has no say.
template <class T> T zero_for_zero(T dy, T dx) { return dy == T(0) ? T(0) : dx; }

const Op& reciprocal_grad_op = binary<floating | complexes>(
    "ReciprocalGrad", [](auto y, auto dy) { return zero_for_zero(dy, -dy * y * y); },
    [](auto& v) -> auto& { return v.reciprocal_grad; },
    [](A y, B dy, Dy d) { return multiply(d, scaled(multiply(y, dy), -2)); },
    [](A y, Dy d) { return reciprocal_grad(y, d); }, {{}, "", {"y", "dy"}});
Tensor reciprocal_grad(const Tensor& y, const Tensor& dy) { return run(reciprocal_grad_op, {y, dy}); }

const Op& sqrt_op = unary<floating | complexes>(
    "Sqrt", [](auto x) { return std::sqrt(x); },
    ComplexToo{RealOrComplex<[](auto& v) { return v.sqrt; }, &ComplexFunctions::sqrt>{}},
    [](Y y, Dy dy) { return sqrt_grad(y, dy); },
    {{"math.sqrt", "sqrt"},
     R"(Square root of `x`.

Gradient: `dx = dy / (2 * y)`.

>>> tf.sqrt([4., 9.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 3.], dtype=float32)>)",
     {},
     {.arithmetic = Arithmetic::square_root},
     {"Keep the argument positive: tf.sqrt(tf.maximum(x, 1e-12)).",
      "The derivative of sqrt at zero is infinite: tf.sqrt(x + 1e-12), or tf.where on its argument."}});
const Op& sqrt_grad_op = binary<floating | complexes>(
    "SqrtGrad", [](auto y, auto dy) { return zero_for_zero(dy, dy * decltype(y)(0.5) / y); },
    [](auto& v) -> auto& { return v.sqrt_grad; },
    [](A y, B dy, Dy d) { return multiply(negative(divide(d, y)), sqrt_grad(y, dy)); },
    [](A y, Dy d) { return sqrt_grad(y, d); }, {{}, "", {"y", "dy"}});

Tensor rsqrt_grad(const Tensor& y, const Tensor& dy);
const Op& rsqrt_op = unary<floating | complexes>(
    "Rsqrt", [](auto x) { return decltype(x)(1) / std::sqrt(x); }, [](auto& v) { return v.rsqrt; },
    [](Y y, Dy dy) { return rsqrt_grad(y, dy); },
    {{"math.rsqrt"},
     R"(`1 / sqrt(x)`.

Gradient: `dx = -dy * y**3 / 2`.

>>> tf.math.rsqrt([4., 16.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5 , 0.25], dtype=float32)>)",
     {},
     {.arithmetic = Arithmetic::reciprocal_square_root},
     {"Add an epsilon: tf.math.rsqrt(x + 1e-12)."}});
const Op& rsqrt_grad_op = binary<floating | complexes>(
    "RsqrtGrad", [](auto y, auto dy) { return zero_for_zero(dy, decltype(y)(-0.5) * dy * y * y * y); },
    [](auto& v) -> auto& { return v.rsqrt_grad; },
    [](A y, B dy, Dy d) { return multiply(d, multiply(scaled(dy, -1.5), square(y))); },
    [](A y, Dy d) { return rsqrt_grad(y, d); }, {{}, "", {"y", "dy"}});
Tensor rsqrt_grad(const Tensor& y, const Tensor& dy) { return run(rsqrt_grad_op, {y, dy}); }

}  // namespace

Tensor square(const Tensor& x) { return run(square_op, {x}); }
Tensor sqrt(const Tensor& x) { return run(sqrt_op, {x}); }
Tensor sqrt_grad(const Tensor& y, const Tensor& dy) { return run(sqrt_grad_op, {y, dy}); }
Tensor reciprocal(const Tensor& x) { return run(reciprocal_op, {x}); }

}  // namespace tapeflow
