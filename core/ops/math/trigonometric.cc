// Circular and hyperbolic functions and their inverses.
#include <cmath>

#include "kernels/simd/complex_functions.h"
#include "ops/family.h"

namespace tapeflow {
namespace {

constexpr NonFiniteAdvice inside_one = {"Keep the argument inside (-1, 1): tf.clip_by_value(x, -1 + 1e-6, 1 - 1e-6)."};

const Op& sin_op = unary<floating | complexes>(
    "Sin", [](auto x) { return std::sin(x); },
    ComplexToo{RealOrComplex<[](auto& v) { return v.sin; }, &ComplexFunctions::sin>{}},
    [](X x, Dy dy) { return multiply(dy, cos(x)); }, {{"math.sin", "sin"}, R"(Sine of `x`.

Gradient: `dx = dy * cos(x)`.

>>> tf.sin([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.      , 0.841471], dtype=float32)>)"});
const Op& cos_op = unary<floating | complexes>(
    "Cos", [](auto x) { return std::cos(x); },
    ComplexToo{RealOrComplex<[](auto& v) { return v.cos; }, &ComplexFunctions::cos>{}},
    [](X x, Dy dy) { return negative(multiply(dy, sin(x))); }, {{"math.cos", "cos"}, R"(Cosine of `x`.

Gradient: `dx = -dy * sin(x)`.

>>> tf.cos([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.       , 0.5403023], dtype=float32)>)"});
const Op& tan_op = unary<floating | complexes>(
    "Tan", [](auto x) { return std::tan(x); }, [](auto& v) { return v.tan; },
    [](X x, Dy dy) { return multiply(dy, square(reciprocal(cos(x)))); }, {{"math.tan", "tan"}, R"(Tangent of `x`.

Gradient: `dx = dy / cos(x)**2`.

>>> tf.tan([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.5574079], dtype=float32)>)"});
const Op& asin_op = unary<floating | complexes>(
    "Asin", [](auto x) { return std::asin(x); }, [](auto& v) { return v.asin; },
    [](X x, Dy dy) { return multiply(dy, reciprocal(sqrt(shifted(negative(square(x)), 1)))); },
    {{"math.asin", "asin"},
     R"(Inverse sine of `x`.

Gradient: `dx = dy / sqrt(1 - x**2)`.

>>> tf.asin([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.5707964], dtype=float32)>)",
     {},
     {},
     inside_one});
const Op& acos_op = unary<floating | complexes>(
    "Acos", [](auto x) { return std::acos(x); }, [](auto& v) { return v.acos; },
    [](X x, Dy dy) { return negative(multiply(dy, reciprocal(sqrt(shifted(negative(square(x)), 1))))); },
    {{"math.acos", "acos"},
     R"(Inverse cosine of `x`.

Gradient: `dx = -dy / sqrt(1 - x**2)`.

>>> tf.acos([1., 0.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.5707964], dtype=float32)>)",
     {},
     {},
     inside_one});
const Op& atan_op = unary<floating | complexes>(
    "Atan", [](auto x) { return std::atan(x); }, [](auto& v) { return v.atan; },
    [](X x, Dy dy) { return multiply(dy, reciprocal(shifted(square(x), 1))); },
    {{"math.atan", "atan"}, R"(Inverse tangent of `x`.

Gradient: `dx = dy / (1 + x**2)`.

>>> tf.atan([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.7853982], dtype=float32)>)"});
const Op& sinh_op = unary<floating | complexes>(
    "Sinh", [](auto x) { return std::sinh(x); }, [](auto& v) { return v.sinh; },
    [](X x, Dy dy) { return multiply(dy, cosh(x)); }, {{"math.sinh", "sinh"}, R"(Hyperbolic sine of `x`.

Gradient: `dx = dy * cosh(x)`.

>>> tf.sinh([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.1752012], dtype=float32)>)"});
const Op& cosh_op = unary<floating | complexes>(
    "Cosh", [](auto x) { return std::cosh(x); }, [](auto& v) { return v.cosh; },
    [](X x, Dy dy) { return multiply(dy, sinh(x)); }, {{"math.cosh", "cosh"}, R"(Hyperbolic cosine of `x`.

Gradient: `dx = dy * sinh(x)`.

>>> tf.cosh([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.       , 1.5430806], dtype=float32)>)"});
const Op& asinh_op = unary<floating | complexes>(
    "Asinh", [](auto x) { return std::asinh(x); }, [](auto& v) { return v.asinh; },
    [](Y y, Dy dy) { return divide(dy, cosh(y)); }, {{"math.asinh", "asinh"}, R"(Inverse hyperbolic sine of `x`.

Gradient: `dx = dy / cosh(y)`.

>>> tf.asinh([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.8813736], dtype=float32)>)"});
const Op& acosh_op = unary<floating | complexes>(
    "Acosh", [](auto x) { return std::acosh(x); }, [](auto& v) { return v.acosh; },
    [](Y y, Dy dy) { return divide(dy, sinh(y)); },
    {{"math.acosh", "acosh"},
     R"(Inverse hyperbolic cosine of `x`.

Gradient: `dx = dy / sinh(y)`.

>>> tf.acosh([1., 2.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.      , 1.316958], dtype=float32)>)",
     {},
     {},
     {"Keep the argument at 1 or above."}});
const Op& atanh_op = unary<floating | complexes>(
    "Atanh", [](auto x) { return std::atanh(x); }, [](auto& v) { return v.atanh; },
    [](X x, Dy dy) { return multiply(dy, reciprocal(shifted(negative(square(x)), 1))); },
    {{"math.atanh", "atanh"},
     R"(Inverse hyperbolic tangent of `x`.

Gradient: `dx = dy / (1 - x**2)`.

>>> tf.atanh([0., 0.5])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.        , 0.54930615], dtype=float32)>)",
     {},
     {},
     inside_one});

}  // namespace

Tensor sin(const Tensor& x) { return run(sin_op, {x}); }
Tensor cos(const Tensor& x) { return run(cos_op, {x}); }
Tensor sinh(const Tensor& x) { return run(sinh_op, {x}); }
Tensor cosh(const Tensor& x) { return run(cosh_op, {x}); }

}  // namespace tapeflow
