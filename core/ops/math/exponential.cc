// Exponentials, logarithms and the error function.
#include <cmath>
#include <numbers>

#include "kernels/simd/complex_functions.h"
#include "ops/family.h"

namespace tapeflow {
namespace {

template <class T> T complex_expm1(T z) { return std::exp(z) - T(1); }

const Op& exp_op = unary<floating | complexes>(
    "Exp", [](auto x) { return std::exp(x); }, ComplexToo{[](auto& v) { return v.exp; }},
    [](Y y, Dy dy) { return multiply(dy, y); },
    {{"math.exp", "exp"},
     R"(e to the power `x`.

Gradient: `dx = dy * y`.

>>> tf.exp([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.       , 2.7182817], dtype=float32)>)",
     {},
     {},
     {"Clip the argument, tf.exp(tf.minimum(x, 80.)), or subtract the maximum first (tf.nn.softmax, "
      "tf.reduce_logsumexp do)."}});
const Op& expm1_op = unary<floating | complexes>(
    "Expm1",
    [](auto x) {
      if constexpr (is_complex<decltype(x)>)
        return complex_expm1(x);
      else
        return std::expm1(x);
    },
    [](auto& v) { return v.expm1; }, [](X x, Dy dy) { return multiply(dy, exp(x)); },
    {{"math.expm1"},
     R"(`exp(x) - 1`, exact for small `x`.

Gradient: `dx = dy * exp(x)`.

>>> tf.math.expm1([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.7182817], dtype=float32)>)",
     {},
     {},
     {"Clip the argument: tf.math.expm1(tf.minimum(x, 80.))."}});
const Op& log_op = unary<floating | complexes>(
    "Log", [](auto x) { return std::log(x); },
    ComplexToo{RealOrComplex<[](auto& v) { return v.log; }, &ComplexFunctions::log>{}},
    [](X x, Dy dy) { return multiply(dy, reciprocal(x)); },
    {{"math.log"},
     R"(Natural logarithm of `x`.

Gradient: `dx = dy / x`.

>>> tf.math.log([1., 2.7182817])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 1.], dtype=float32)>)",
     {},
     {},
     {"Keep the argument away from zero: tf.math.log(tf.maximum(x, 1e-7)); from logits use "
      "tf.nn.softmax_cross_entropy_with_logits or tf.nn.log_softmax.",
      "The derivative of log at zero is infinite. With tf.where, choose the argument first: "
      "tf.math.log(tf.where(ok, x, 1.))."}});
const Op& log1p_op = unary<floating | complexes>(
    "Log1p",
    [](auto x) {
      if constexpr (is_complex<decltype(x)>)
        return std::log(decltype(x)(1) + x);
      else
        return std::log1p(x);
    },
    [](auto& v) { return v.log1p; }, [](X x, Dy dy) { return multiply(dy, reciprocal(shifted(x, 1))); },
    {{"math.log1p"},
     R"(`log(1 + x)`, exact for small `x`.

Gradient: `dx = dy / (1 + x)`.

>>> tf.math.log1p([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.6931472], dtype=float32)>)",
     {},
     {},
     {"Keep the argument above -1: tf.math.log1p(tf.maximum(x, -1 + 1e-7))."}});
const Op& erf_op = unary<floating>(
    "Erf", [](auto x) { return std::erf(x); }, [](auto& v) { return v.erf; },
    [](X x, Dy dy) { return multiply(dy, scaled(exp(negative(square(x))), 2 * std::numbers::inv_sqrtpi)); },
    {{"math.erf"}, R"(Error function of `x`.

Gradient: `dx = dy * 2 / sqrt(pi) * exp(-x**2)`.

>>> tf.math.erf([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.8427008], dtype=float32)>)"});
const Op& erfc_op = unary<floating>(
    "Erfc", [](auto x) { return std::erfc(x); }, [](auto& v) { return v.erfc; },
    [](X x, Dy dy) { return multiply(dy, scaled(exp(negative(square(x))), -2 * std::numbers::inv_sqrtpi)); },
    {{"math.erfc"}, R"(`1 - erf(x)`, exact for large `x`.

Gradient: `dx = -dy * 2 / sqrt(pi) * exp(-x**2)`.

>>> tf.math.erfc([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.       , 0.1572992], dtype=float32)>)"});

}  // namespace

Tensor exp(const Tensor& x) { return run(exp_op, {x}); }
Tensor log(const Tensor& x) { return run(log_op, {x}); }
Tensor log1p(const Tensor& x) { return run(log1p_op, {x}); }
Tensor erfc(const Tensor& x) { return run(erfc_op, {x}); }
Tensor erf(const Tensor& x) { return run(erf_op, {x}); }

}  // namespace tapeflow
