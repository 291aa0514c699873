// Circular and hyperbolic functions and their inverses.
#include <cmath>

#include "ops/family.h"

namespace tapeflow {
namespace {

const Op& sin_op = unary<floating | complexes>(
    "Sin", [](auto x) { return std::sin(x); }, [](auto& v) { return v.sin; },
    [](X x, Dy dy) { return multiply(dy, cos(x)); },
    {{"math.sin", "sin"}, "Sine of `x`.\n\n>>> tf.sin([0., 1.])\n[0., 0.84147096]"});
const Op& cos_op = unary<floating | complexes>(
    "Cos", [](auto x) { return std::cos(x); }, [](auto& v) { return v.cos; },
    [](X x, Dy dy) { return negative(multiply(dy, sin(x))); },
    {{"math.cos", "cos"}, "Cosine of `x`.\n\n>>> tf.cos([0., 1.])\n[1., 0.5403023]"});
const Op& tan_op = unary<floating | complexes>(
    "Tan", [](auto x) { return std::tan(x); }, [](auto& v) { return v.tan; },
    [](X x, Dy dy) { return multiply(dy, square(reciprocal(cos(x)))); },
    {{"math.tan", "tan"}, "Tangent of `x`.\n\n>>> tf.tan([0., 1.])\n[0., 1.5574077]"});
const Op& asin_op = unary<floating | complexes>(
    "Asin", [](auto x) { return std::asin(x); }, [](auto& v) { return v.asin; },
    [](X x, Dy dy) { return multiply(dy, reciprocal(sqrt(shifted(negative(square(x)), 1)))); },
    {{"math.asin", "asin"}, "Inverse sine of `x`.\n\n>>> tf.asin([0., 1.])\n[0., 1.5707964]"});
const Op& acos_op = unary<floating | complexes>(
    "Acos", [](auto x) { return std::acos(x); }, [](auto& v) { return v.acos; },
    [](X x, Dy dy) { return negative(multiply(dy, reciprocal(sqrt(shifted(negative(square(x)), 1))))); },
    {{"math.acos", "acos"}, "Inverse cosine of `x`.\n\n>>> tf.acos([1., 0.])\n[0., 1.5707964]"});
const Op& atan_op = unary<floating | complexes>(
    "Atan", [](auto x) { return std::atan(x); }, [](auto& v) { return v.atan; },
    [](X x, Dy dy) { return multiply(dy, reciprocal(shifted(square(x), 1))); },
    {{"math.atan", "atan"}, "Inverse tangent of `x`.\n\n>>> tf.atan([0., 1.])\n[0., 0.7853982]"});
const Op& sinh_op = unary<floating | complexes>(
    "Sinh", [](auto x) { return std::sinh(x); }, [](auto& v) { return v.sinh; },
    [](X x, Dy dy) { return multiply(dy, cosh(x)); },
    {{"math.sinh", "sinh"}, "Hyperbolic sine of `x`.\n\n>>> tf.sinh([0., 1.])\n[0., 1.1752012]"});
const Op& cosh_op = unary<floating | complexes>(
    "Cosh", [](auto x) { return std::cosh(x); }, [](auto& v) { return v.cosh; },
    [](X x, Dy dy) { return multiply(dy, sinh(x)); },
    {{"math.cosh", "cosh"}, "Hyperbolic cosine of `x`.\n\n>>> tf.cosh([0., 1.])\n[1., 1.5430806]"});
const Op& asinh_op = unary<floating | complexes>(
    "Asinh", [](auto x) { return std::asinh(x); }, [](auto& v) { return v.asinh; },
    [](Y y, Dy dy) { return divide(dy, cosh(y)); },
    {{"math.asinh", "asinh"}, "Inverse hyperbolic sine of `x`.\n\n>>> tf.asinh([0., 1.])\n[0., 0.8813736]"});
const Op& acosh_op = unary<floating | complexes>(
    "Acosh", [](auto x) { return std::acosh(x); }, [](auto& v) { return v.acosh; },
    [](Y y, Dy dy) { return divide(dy, sinh(y)); },
    {{"math.acosh", "acosh"}, "Inverse hyperbolic cosine of `x`.\n\n>>> tf.acosh([1., 2.])\n[0., 1.316958]"});
const Op& atanh_op = unary<floating | complexes>(
    "Atanh", [](auto x) { return std::atanh(x); }, [](auto& v) { return v.atanh; },
    [](X x, Dy dy) { return multiply(dy, reciprocal(shifted(negative(square(x)), 1))); },
    {{"math.atanh", "atanh"}, "Inverse hyperbolic tangent of `x`.\n\n>>> tf.atanh([0., 0.5])\n[0., 0.54930615]"});

}  // namespace

Tensor sin(const Tensor& x) { return run(sin_op, {x}); }
Tensor cos(const Tensor& x) { return run(cos_op, {x}); }
Tensor sinh(const Tensor& x) { return run(sinh_op, {x}); }
Tensor cosh(const Tensor& x) { return run(cosh_op, {x}); }

}  // namespace tapeflow
