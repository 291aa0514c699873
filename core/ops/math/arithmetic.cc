// Arithmetic, element by element: sums, products, quotients, remainders, powers and signs.
#include <algorithm>
#include <cmath>

#include "kernels/simd/fmod_atan2.h"
#include "kernels/simd/zero_safe.h"
#include "op/row_structure.h"
#include "ops/family.h"

namespace tapeflow {
namespace {

// Integer operands are at most promoted to int, so results are brought back to the operands' type.
template <class T> constexpr bool integral = std::is_integral_v<T>;

template <class T> T checked_divisor(T b) {
  if constexpr (integral<T>)
    if (b == 0) fail(ErrorKind::invalid_argument, "Integer division by zero");
  return b;
}
template <class T> T truncated_quotient(T a, T b) {
  if constexpr (integral<T>) {
    checked_divisor(b);
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return T(0 - std::make_unsigned_t<T>(a));
    return T(a / b);
  } else {
    return std::trunc(a / b);
  }
}
template <class T> T truncated_remainder(T a, T b) {
  if constexpr (integral<T>) {
    checked_divisor(b);
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return 0;
    return T(a % b);
  } else {
    return std::fmod(a, b);
  }
}
template <class T> T floored_quotient(T a, T b) {
  if constexpr (integral<T>) {
    const T q = truncated_quotient(a, b);
    if constexpr (std::is_signed_v<T>) {
      using U = std::make_unsigned_t<T>;
      const bool divides = U(U(q) * U(b)) == U(a);  // the remainder without a second division
      return T(q - T(!divides & ((a < 0) != (b < 0))));
    }
    return q;
  } else {
    return std::floor(a / b);
  }
}
template <class T> T floored_remainder(T a, T b) {
  T r = truncated_remainder(a, b);
  if constexpr (!integral<T>) {
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
  } else {
    if constexpr (std::is_signed_v<T>)
      if (r != 0 && (r < 0) != (b < 0)) return T(r + b);
    return r;
  }
}
template <class T> T power_of(T a, T b) {
  if constexpr (integral<T>) {
    if constexpr (std::is_signed_v<T>)
      if (b < 0) fail(ErrorKind::invalid_argument, "pow: Integers to negative integer powers are not allowed");
    T result = 1;
    for (; b; b = T(b >> 1), a = T(a * a))
      if (b & 1) result = T(result * a);
    return result;
  } else if constexpr (is_complex<T>) {
    if (a == T(0)) return b == T(0) ? T(1) : T(0);
    return std::pow(a, b);
  } else {
    if (b == T(2)) return a * a;
    if (b == T(1)) return a;
    if (b == T(3)) return a * a * a;
    if (b == T(0.5)) return a == -std::numeric_limits<T>::infinity() ? -a : std::sqrt(a) + T(0);
    return std::pow(a, b);
  }
}
template <class T> bool nonzero(T x) { return x != T(0); }

Tensor zero_of(const Tensor& x) { return Tensor::number(x.dtype(), 0); }
Tensor one_of(const Tensor& x) { return Tensor::number(x.dtype(), 1); }
// 1 where x is not zero, else 0: the factor whose product with a logarithm is safe.
Tensor indicator(const Tensor& x) { return cast(not_equal(x, zero_of(x)), x.dtype()); }

constexpr auto plus = [](auto a, auto b) { return decltype(a)(a + b); };
constexpr auto minus = [](auto a, auto b) { return decltype(a)(a - b); };
// Complex numbers by the textbook's formula, as NumPy does it: the compiler can turn it into vectors.
constexpr auto times = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (is_complex<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else
    return T(a * b);
};

const Op& add_op = binary<numbers | strings>(
    plus, ComplexToo{[](auto& v) -> auto& { return v.add; }}, [](Dy dy) -> Tensor { return dy; },
    [](Dy dy) -> Tensor { return dy; },
    Op{.name = "AddV2",
       .planning = {.arithmetic = Arithmetic::add},
       .elements = Elements::computed,
       .names = {"math.add", "add"},
       .doc = R"(Sum of `x` and `y`, element by element; strings are joined.

Gradient: `dy` for both, summed over dimensions that broadcast.

>>> tf.add([1, 2], 10)
<tf.Tensor: shape=(2,), dtype=int32, numpy=array([11, 12], dtype=int32)>)",
       .node_name = "Add",
       .symbol = "addition",
       .mixed_dtypes = true});

const Op& subtract_op = binary<numbers>(
    minus, ComplexToo{[](auto& v) -> auto& { return v.subtract; }}, [](Dy dy) -> Tensor { return dy; },
    [](Dy dy) { return negative(dy); },
    Op{.name = "Sub",
       .planning = {.arithmetic = Arithmetic::subtract},
       .elements = Elements::computed,
       .names = {"math.subtract", "subtract"},
       .doc = R"(Difference of `x` and `y`.

Gradient: `dy` for `x` and `-dy` for `y`, summed over dimensions that broadcast.

>>> tf.subtract([5., 7.], 2.)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 5.], dtype=float32)>)",
       .symbol = "subtraction"});

const Op& multiply_op = binary<numbers>(
    times, ComplexToo{[](auto& v) -> auto& { return v.multiply; }}, [](B b, Dy dy) { return multiply(dy, b); },
    [](A a, Dy dy) { return multiply(dy, a); },
    Op{.name = "Mul",
       .planning = {.arithmetic = Arithmetic::multiply, .unit_operands = kLeftOperand | kRightOperand},
       .elements = Elements::computed,
       .names = {"math.multiply", "multiply"},
       .doc = R"(Product of `x` and `y`.

Gradient: `dy * conj(y)` for `x` and `dy * conj(x)` for `y`, summed over dimensions that broadcast.

>>> tf.multiply([1., 2.], [3., 4.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 8.], dtype=float32)>)",
       .non_finite = {"The product overflows, or an infinity meets a zero: clip the factors."},
       .symbol = "multiplication"});

// Complex floats by the textbook's formula in double, where nothing overflows or vanishes. What is no number by it may
// be infinite or zero by the rules of C, which the library knows. The vector kernel does the same.
constexpr auto over = [](auto a, auto b) {
  if constexpr (std::is_same_v<decltype(a), std::complex<float>>) {
    const double p = a.real(), q = a.imag(), r = b.real(), s = b.imag(), scale = 1 / (r * r + s * s);
    const double re = (p * r + q * s) * scale, im = (q * r - p * s) * scale;
    return re == re && im == im ? decltype(a)(float(re), float(im)) : a / b;
  } else {
    return a / b;
  }
};
const Op& divide_op = binary<floating | complexes>(
    over, ComplexToo{[](auto& v) -> auto& { return v.divide; }}, [](B b, Dy dy) { return divide(dy, b); },
    [](A a, B b, Dy dy) { return multiply(dy, divide(divide(negative(a), b), b)); },
    Op{.name = "RealDiv",
       .planning = {.arithmetic = Arithmetic::divide, .unit_operands = kRightOperand},
       .names = {"realdiv"},
       .doc = R"(Quotient of floats `x / y`.

Gradient: `dy / y` for `x` and `-dy * x / y**2` for `y`.

>>> tf.realdiv([1., 4.], 2.)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5, 2. ], dtype=float32)>)",
       .node_name = "truediv",
       .non_finite =
           {"Add an epsilon to the divisor, or use tf.math.divide_no_nan.",
            "Keep the divisor away from zero. With tf.where, choose it first: a / tf.where(ok, b, 1.): the branch "
            "that is not taken has a gradient, too, and 0 * inf is NaN."},
       .symbol = "division"});

const Op& divide_no_nan_op = binary<floating | complexes>(
    "DivNoNan", [](auto a, auto b) { return nonzero(b) ? over(a, b) : decltype(a)(0); },
    []<class T>(const VectorKernels<T>&) { return zero_safe_kernels<T>().divide_no_nan; },
    [](B b, Dy dy) { return divide_no_nan(dy, b); },
    [](A a, B b, Dy dy) { return multiply(dy, divide_no_nan(divide_no_nan(negative(a), b), b)); }, {{}, ""});

Tensor multiply_no_nan(const Tensor& a, const Tensor& b);
const Op& multiply_no_nan_op = binary<floating | complexes>(
    "MulNoNan", [](auto a, auto b) { return nonzero(b) ? a * b : decltype(a)(0); },
    []<class T>(const VectorKernels<T>&) { return zero_safe_kernels<T>().multiply_no_nan; },
    [](B b, Dy dy) { return multiply_no_nan(dy, b); }, [](A a, Dy dy) { return multiply_no_nan(a, dy); },
    {{"math.multiply_no_nan"},
     R"(Product `x * y`, and 0 where `y` is 0, even if `x` is not finite.

Gradient: `dy * y` for `x` and `dy * x` for `y`, 0 where the other factor is 0.

>>> tf.math.multiply_no_nan([float('inf'), 2.], [0., 3.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 6.], dtype=float32)>)"});
Tensor multiply_no_nan(const Tensor& a, const Tensor& b) { return run(multiply_no_nan_op, {a, b}); }

const Op& floor_div_op =
    binary<real_numbers>([](auto a, auto b) { return floored_quotient(a, b); }, NoFast{}, NoGradient{}, NoGradient{},
                         Op{.name = "FloorDiv",
                            .elements = Elements::computed,
                            .names = {"math.floordiv", "floordiv"},
                            .doc = R"(Quotient `x / y`, rounded down.

Gradient: None: the function is piecewise constant.

>>> tf.math.floordiv([7, -7], 2)
<tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 3, -4], dtype=int32)>)",
                            .advice = "Divide with / instead of //, or use tf.grad_pass_through."});

const Op& floor_mod_op = binary<real_numbers>(
    "FloorMod", [](auto a, auto b) { return floored_remainder(a, b); },
    []<class T>(const VectorKernels<T>&) { return quotient_kernels<T>().floor_mod; },
    [](Dy dy) -> Tensor { return dy; }, [](A a, B b, Dy dy) { return multiply(dy, negative(floor_div(a, b))); },
    {{"math.floormod", "floormod", "math.mod"},
     R"(Remainder of the division rounded down; it has the sign of `y`.

Gradient: `dy` for `x` and `-dy * floordiv(x, y)` for `y`.

>>> tf.math.floormod([7, -7], 3)
<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>)"});

const Op& truncate_div_op =
    binary<real_numbers>("TruncateDiv", [](auto a, auto b) { return truncated_quotient(a, b); }, NoFast{}, NoGradient{},
                         NoGradient{}, {{"truncatediv"}, R"(Quotient `x / y`, rounded towards zero.

Gradient: None: the function is piecewise constant.

>>> tf.truncatediv([7, -7], 2)
<tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 3, -3], dtype=int32)>)"});

const Op& truncate_mod_op = binary<real_numbers>(
    "TruncateMod", [](auto a, auto b) { return truncated_remainder(a, b); },
    []<class T>(const VectorKernels<T>&) { return quotient_kernels<T>().truncate_mod; },
    [](Dy dy) -> Tensor { return dy; }, [](A a, B b, Dy dy) { return multiply(dy, negative(truncate_div(a, b))); },
    {{"truncatemod"},
     R"(Remainder of the division rounded towards zero; it has the sign of `x`.

Gradient: `dy` for `x` and `-dy * truncatediv(x, y)` for `y`.

>>> tf.truncatemod([7, -7], 3)
<tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 1, -1], dtype=int32)>)"});

// d/da a^b = b a^(b-1); d/db a^b = a^b log a, taken as 0 where the logarithm does not exist.
// `dy` comes first, so that a zero cotangent stays zero where the other factors overflow.
const Op& power_op = binary<numbers, kCostlyGrain>(
    "Pow", [](auto a, auto b) { return power_of(a, b); }, [](auto& v) -> auto& { return v.pow; },
    [](A a, B b, Dy dy) { return multiply(multiply(dy, b), power(a, subtract(b, one_of(b)))); },
    [](A a, Y y, Dy dy) {
      Tensor zero = zero_of(a);
      Tensor defined = complexes.has(a.dtype()) ? not_equal(a, zero) : greater(a, zero);
      Tensor safe = select(defined, a, one_of(a));
      return multiply(multiply(dy, y), select(defined, log(safe), zeros_like(a)));
    },
    {{"math.pow", "pow"},
     R"(`x` to the power `y`.

Gradient: `dy * y * x**(y - 1)` for `x` and `dy * x**y * log(x)` for `y` (0 where `x` is not positive).

>>> tf.pow([2., 3.], 2.)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 9.], dtype=float32)>)",
     {},
     {.unit_operands = kRightOperand, .product = &multiply_op},
     {"A negative base has no real power with a fraction, and zero none with a negative number: clip the base.",
      "The derivative of x**p at zero is infinite for p < 1: add an epsilon to the base."}});

const Op& maximum_op = binary<real_numbers>(
    [](auto a, auto b) {
      if constexpr (!integral<decltype(a)>)
        if (a != a) return a;
      return a > b ? a : b;
    },
    [](auto& v) -> auto& { return v.maximum; },
    [](A a, B b, Dy dy) { return select(greater_equal(a, b), dy, zero_of(dy)); },
    [](A a, B b, Dy dy) { return select(greater_equal(a, b), zero_of(dy), dy); },
    Op{.name = "Maximum",
       .planning = {.arithmetic = Arithmetic::maximum},
       .copies_elements = true,
       .names = {"math.maximum", "maximum"},
       .doc = R"(The larger of `x` and `y`, element by element.

Gradient: `dy` for the larger one; at a tie it goes to `x`.

>>> tf.maximum([1., 5.], 3.)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 5.], dtype=float32)>)"});

const Op& minimum_op = binary<real_numbers>(
    [](auto a, auto b) {
      if constexpr (!integral<decltype(a)>)
        if (a != a) return a;
      return a < b ? a : b;
    },
    [](auto& v) -> auto& { return v.minimum; },
    [](A a, B b, Dy dy) { return select(less_equal(a, b), dy, zero_of(dy)); },
    [](A a, B b, Dy dy) { return select(less_equal(a, b), zero_of(dy), dy); },
    Op{.name = "Minimum",
       .planning = {.arithmetic = Arithmetic::minimum},
       .copies_elements = true,
       .names = {"math.minimum", "minimum"},
       .doc = R"(The smaller of `x` and `y`, element by element.

Gradient: `dy` for the smaller one; at a tie it goes to `x`.

>>> tf.minimum([1., 5.], 3.)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 3.], dtype=float32)>)"});

// (a - b) times its conjugate. Of complex numbers it is a real number, so only the real part of dy acts on it.
constexpr auto squared_distance = [](auto a, auto b) {
  auto d = decltype(a)(a - b);
  if constexpr (is_complex<decltype(a)>)
    return decltype(a)(std::norm(d));
  else
    return decltype(a)(d * d);
};
constexpr auto fast_squared_difference = [](auto& v) -> auto& { return v.squared_difference; };
Tensor real_as_complex(const Tensor& z) {
  Tensor part = real_part(z);
  return complex_number(part, zeros_like(part));
}
const Op& squared_difference_op = define(Op{
    .name = "SquaredDifference",
    .planning = {.arithmetic = Arithmetic::squared_difference},
    .arguments = {tensor("x", numbers), tensor("y", numbers)},
    .infer = family::infer_binary<numbers, decltype(squared_distance)>,
    .kernel =
        family::binary_kernel<numbers, decltype(squared_distance), decltype(fast_squared_difference), kCheapGrain>,
    .vjp =
        [](RuleContext& c) {
          Tensor dy = complexes.has(c.dtype(0)) ? real_as_complex(c.dy()) : c.dy();
          Tensor dx = multiply(scaled(dy, 2), subtract(c.x(0), c.x(1)));
          if (c.wants(0)) c.set(0, unbroadcast(dx, c.shape(0)));
          if (c.wants(1)) c.set(1, negative(unbroadcast(dx, c.shape(1))));
        },
    .jvp =
        [](RuleContext& c) {
          Tensor d = subtract(c.x(0), c.x(1));
          Tensor d_dot = !c.x_dot(1)   ? c.x_dot(0)
                         : !c.x_dot(0) ? negative(c.x_dot(1))
                                       : subtract(c.x_dot(0), c.x_dot(1));
          Tensor y_dot = scaled(multiply(conj(d), d_dot), 2);
          c.set(0, complexes.has(c.dtype(0)) ? real_as_complex(y_dot) : y_dot);
        },
    .keep = keep_input(0) | keep_input(1),
    .float_binary = &family::FastBinary<decltype(fast_squared_difference), float>::loops,
    .element_loops = family::binary_loops<numbers, decltype(squared_distance), decltype(fast_squared_difference),
                                          family::Joining::arithmetic>,
    .elementwise = true,
    .batch = batch_broadcasting,
    .names = {"math.squared_difference"},
    .doc = R"(`(x - y)` times its conjugate.

Gradient: `2 * dy * (x - y)` for `x` and its negative for `y`.

>>> tf.math.squared_difference([3., 5.], 1.)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 4., 16.], dtype=float32)>)",
    .family = "binary",
});

const Op& atan2_op = binary<floating, kCostlyGrain>(
    "Atan2", [](auto a, auto b) { return std::atan2(a, b); },
    []<class T>(const VectorKernels<T>&) { return quotient_kernels<T>().atan2; },
    [](A a, B b, Dy dy) { return multiply(b, divide(dy, add(square(a), square(b)))); },
    [](A a, B b, Dy dy) { return multiply(negative(a), divide(dy, add(square(a), square(b)))); },
    {{"math.atan2", "atan2"},
     R"(Angle of the point `(x, y)`, in radians.

Gradient: `dy * x / (x**2 + y**2)` for `y` and `-dy * y / (x**2 + y**2)` for `x`, with `dy` the gradient of the result.

>>> tf.atan2([1.], [1.])
<tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.7853982], dtype=float32)>)",
     {"y", "x"}});

const Op& xlogy_op = binary<floating | complexes, kCostlyGrain>(
    "Xlogy", [](auto a, auto b) { return nonzero(a) ? a * std::log(b) : a; },
    []<class T>(const VectorKernels<T>&) { return zero_safe_kernels<T>().xlogy; },
    [](A a, B b, Dy dy) { return multiply(dy, xlogy(indicator(a), b)); },
    [](A a, B b, Dy dy) { return multiply(dy, xdivy(a, b)); }, {{"math.xlogy"}, R"(`x * log(y)`, and 0 where `x` is 0.

Gradient: `dy * log(y)` for `x` and `dy * x / y` for `y`, 0 where `x` is 0.

>>> tf.math.xlogy([0., 2.], [0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>)"});

const Op& xdivy_op = binary<floating | complexes>(
    "Xdivy", [](auto a, auto b) { return nonzero(a) ? a / b : a; },
    []<class T>(const VectorKernels<T>&) { return zero_safe_kernels<T>().xdivy; },
    [](A a, B b, Dy dy) { return multiply(dy, xdivy(indicator(a), b)); },
    [](A a, B b, Dy dy) { return multiply(dy, xdivy(negative(a), square(b))); },
    {{"math.xdivy"}, R"(`x / y`, and 0 where `x` is 0.

Gradient: `dy / y` for `x` and `-dy * x / y**2` for `y`, 0 where `x` is 0.

>>> tf.math.xdivy([0., 2.], [0., 4.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0. , 0.5], dtype=float32)>)"});

const Op& xlog1py_op = binary<floating | complexes, kCostlyGrain>(
    "Xlog1py",
    [](auto a, auto b) {
      if constexpr (is_complex<decltype(a)>)
        return nonzero(a) ? a * std::log(decltype(a)(1) + b) : a;
      else
        return nonzero(a) ? a * std::log1p(b) : a;
    },
    []<class T>(const VectorKernels<T>&) { return zero_safe_kernels<T>().xlog1py; },
    [](A a, B b, Dy dy) { return multiply(dy, xlog1py(indicator(a), b)); },
    [](A a, B b, Dy dy) { return multiply(dy, xdivy(a, shifted(b, 1))); },
    {{"math.xlog1py"}, R"(`x * log1p(y)`, and 0 where `x` is 0.

Gradient: `dy * log1p(y)` for `x` and `dy * x / (1 + y)` for `y`, 0 where `x` is 0.

>>> tf.math.xlog1py([0., 2.], [-1., 0.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>)"});

const Op& next_after_op = binary<DTypes(DType::float32) | DType::float64>(
    "NextAfter", [](auto a, auto b) { return std::nextafter(a, b); }, NoFast{}, [](Dy dy) -> Tensor { return dy; },
    [](Dy dy) { return zeros_like(dy); },
    {{"math.nextafter"},
     R"(The next float after `x1` in the direction of `x2`.

Gradient: `dy` for `x1` and 0 for `x2`.

>>> tf.math.nextafter(1.0, 2.0)
<tf.Tensor: shape=(), dtype=float32, numpy=1.0000001192092896>)",
     {"x1", "x2"}});

const Op& negative_op = unary<numbers>(
    "Neg", [](auto x) { return decltype(x)(-x); }, [](auto& v) { return v.negative; },
    [](Dy dy) { return negative(dy); },
    {{"math.negative", "negative"},
     R"(`-x`.

Gradient: `dx = -dy`.

>>> tf.negative([1., -2.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([-1.,  2.], dtype=float32)>)",
     {},
     {.arithmetic = Arithmetic::negative}});

const Op& abs_op = unary<real_numbers>(
    "Abs",
    [](auto x) {
      if constexpr (std::is_unsigned_v<decltype(x)>)
        return x;
      else if constexpr (integral<decltype(x)>)
        return decltype(x)(x < 0 ? -x : x);
      else
        return std::abs(x);
    },
    [](auto& v) { return v.abs; }, [](X x, Dy dy) { return multiply(dy, sign(x)); },
    {{}, "", {}, {.arithmetic = Arithmetic::absolute}});

// |z|: dy * z/|z|, which is 0 at 0.
Tensor complex_abs_vjp(const Tensor& z, const Tensor& y, const Tensor& dy) {
  auto widen = [](const Tensor& t) { return complex_number(t, zeros_like(t)); };
  return multiply(widen(divide_no_nan(dy, y)), z);
}
constexpr auto magnitude = [](auto z) { return std::abs(z); };
constexpr ComplexToo fast_magnitude{[](auto& v) { return v.abs; }};
const Op& complex_abs_op = define(Op{
    .name = "ComplexAbs",
    .arguments = {tensor("x", complexes)},
    .infer = family::infer_unary<complexes, decltype(magnitude)>,
    .kernel = family::unary_kernel<complexes, decltype(magnitude), decltype(fast_magnitude)>,
    .vjp = [](RuleContext& c) { c.set(0, complex_abs_vjp(c.x(0), c.y(), c.dy())); },
    .keep = keep_input(0) | keep_output(0),
    .element_loops = family::unary_loops<complexes, decltype(magnitude), decltype(fast_magnitude)>,
    .elementwise = true,
    .batch = batch_leading,
});

constexpr auto sign_of = [](auto x) {
  using T = decltype(x);
  if constexpr (is_complex<T>) {
    auto size = std::abs(x);
    return size == 0 ? T(0) : x / size;
  } else if constexpr (std::is_unsigned_v<T>) {
    return T(x != 0);
  } else if constexpr (integral<T>) {
    return T((x > 0) - (x < 0));
  } else {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x != x ? x : T(0);
  }
};
constexpr auto fast_sign = [](auto& v) { return v.sign; };
// z/|z| keeps the part of a change that stands at a right angle to z: (dz - s Re(conj(s) dz)) / |z| with s = z/|z|. The
// map is its own adjoint, so it serves both modes.
Tensor turn(const Tensor& z, const Tensor& change) {
  if (!complexes.has(z.dtype())) return zeros_like(change);
  Tensor s = sign(z), along = multiply(s, real_as_complex(multiply(conj(s), change)));
  Tensor size = run(complex_abs_op, {z});
  return divide_no_nan(subtract(change, along), complex_number(size, zeros_like(size)));
}
const Op& sign_op = define(Op{
    .name = "Sign",
    .planning = {.arithmetic = Arithmetic::sign},
    .arguments = {tensor("x", numbers)},
    .infer = family::infer_unary<numbers, decltype(sign_of)>,
    .kernel = family::unary_kernel<numbers, decltype(sign_of), decltype(fast_sign)>,
    .vjp = [](RuleContext& c) { c.set(0, turn(c.x(0), c.dy())); },
    .jvp = [](RuleContext& c) { c.set(0, turn(c.x(0), c.x_dot(0))); },
    .keep = keep_input(0),
    .float_unary = family::fast_unary_loop<decltype(fast_sign), float>(),
    .element_loops = family::unary_loops<numbers, decltype(sign_of), decltype(fast_sign)>,
    .elementwise = true,
    .batch = batch_leading,
    .names = {"math.sign", "sign"},
    .doc = R"(-1, 0 or 1 by the sign of `x`; complex `x` gives `x / |x|`.

Gradient: 0.

>>> tf.sign([-2., 0., 5.])
<tf.Tensor: shape=(3,), dtype=float32, numpy=array([-1.,  0.,  1.], dtype=float32)>)",
    .family = "unary",
});

// Sum of a list of equally shaped tensors, in one pass per pair.
const Op& add_n_op = define(Op{
    .name = "AddN",
    .planning = {.cannot_fail = true},
    .arguments = {tensors("inputs", numbers)},
    .infer =
        [](Call& call) {
          if (call.in.empty())
            fail(ErrorKind::value, call.name(), ": inputs must be an iterable of at least one Tensor");
          for (const Tensor& t : call.in) {
            if (t.dtype() != call.in[0].dtype())
              fail(ErrorKind::invalid_argument, call.name(), ": inputs must all have the same dtype; got ",
                   name_of(call.in[0].dtype()), " and ", name_of(t.dtype()));
            if (!(t.shape() == call.in[0].shape()))
              fail(
                  ErrorKind::invalid_argument, call.name(),
                  ": inputs must all have the same size and shape; Inputs to operation AddN of type AddN must have the "
                  "same size and shape. Input 0: ",
                  call.in[0].shape(), " != input: ", t.shape());
          }
          call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .kernel =
        [](Call& call) {
          Tensor total = call.in[0];
          PauseRecording paused;
          for (size_t i = 1; i < call.in.size(); ++i) total = add(total, call.in[i]);
          call.out.push_back(total.body() == call.in[0].body() ? total.view(total.shape()) : total);
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          for (int i = 0; i < c.inputs(); ++i) c.set(i, c.dy());
        },
    .batch = batch_leading,
    .row_rule =
        [](const Call&, std::span<const bool> by_row, std::span<bool>) {
          const bool all = std::ranges::find(by_row, false) == by_row.end();
          return all ? RowStructure::separate : RowStructure::mixed;
        },
});

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return run(add_op, {a, b}); }
Tensor subtract(const Tensor& a, const Tensor& b) { return run(subtract_op, {a, b}); }
Tensor multiply(const Tensor& a, const Tensor& b) { return run(multiply_op, {a, b}); }
Tensor divide(const Tensor& a, const Tensor& b) { return run(divide_op, {a, b}); }
Tensor divide_no_nan(const Tensor& a, const Tensor& b) { return run(divide_no_nan_op, {a, b}); }
Tensor floor_div(const Tensor& a, const Tensor& b) { return run(floor_div_op, {a, b}); }
Tensor floor_mod(const Tensor& a, const Tensor& b) { return run(floor_mod_op, {a, b}); }
Tensor absolute(const Tensor& x) { return run(abs_op, {x}); }
Tensor complex_absolute(const Tensor& x) { return run(complex_abs_op, {x}); }
Tensor truncate_div(const Tensor& a, const Tensor& b) { return run(truncate_div_op, {a, b}); }
Tensor maximum(const Tensor& a, const Tensor& b) { return run(maximum_op, {a, b}); }
Tensor power(const Tensor& a, const Tensor& b) { return run(power_op, {a, b}); }
Tensor xdivy(const Tensor& a, const Tensor& b) { return run(xdivy_op, {a, b}); }
Tensor xlogy(const Tensor& a, const Tensor& b) { return run(xlogy_op, {a, b}); }
Tensor xlog1py(const Tensor& a, const Tensor& b) { return run(xlog1py_op, {a, b}); }
Tensor negative(const Tensor& x) { return run(negative_op, {x}); }
Tensor sign(const Tensor& x) { return run(sign_op, {x}); }
Tensor accumulate(std::span<const Tensor> parts) { return parts.size() == 1 ? parts[0] : run(add_n_op, parts); }
Tensor scaled(const Tensor& x, double factor) { return multiply(x, Tensor::number(x.dtype(), factor)); }
Tensor shifted(const Tensor& x, double offset) { return add(x, Tensor::number(x.dtype(), offset)); }

}  // namespace tapeflow
