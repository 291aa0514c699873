// Special functions: gamma and its relatives, inverse error functions, Bessel functions and named integrals.
#include "kernels/special/functions.h"

#include <algorithm>
#include <numbers>

#include "base/parallel.h"
#include "kernels/special/vector_special.h"
#include "ops/family.h"

namespace tapeflow {
namespace {

// Element functions that compute in double, whatever the dtype.
template <double (*F)(double)> struct Element1 {
  template <class T> T operator()(T x) const { return T(F(double(x))); }
};
template <double (*F)(double, double)> struct Element2 {
  template <class T> T operator()(T a, T b) const { return T(F(double(a), double(b))); }
};

// In place of an element function where vector kernels serve all dtypes: the result has the dtype of the operand.
struct ByVectors {
  template <class T> T operator()(T x) const { return x; }
};

// The same for functions that take a tolerance, as the last argument.
template <class T> constexpr double tolerance_of = sizeof(T) == 4 ? special::kFloatTolerance : special::kFullTolerance;
template <double (*F)(double, double, double)> struct Tolerant2 {
  template <class T> T operator()(T a, T b) const { return T(F(double(a), double(b), tolerance_of<T>)); }
};

Tensor zero_of(const Tensor& x) { return Tensor::number(x.dtype(), 0); }
Tensor one_of(const Tensor& x) { return Tensor::number(x.dtype(), 1); }

// ---- gamma

Tensor digamma(const Tensor& x);
Tensor log_gamma(const Tensor& x);
Tensor polygamma(const Tensor& n, const Tensor& x);
Tensor zeta(const Tensor& s, const Tensor& q);
Tensor igamma_grad_a(const Tensor& a, const Tensor& x);
Tensor igamma_bend(const Tensor& a, const Tensor& x);

const Op& log_gamma_op = unary<floating>(
    "Lgamma", Element1<special::log_gamma>{},
    []<class T>(const VectorKernels<T>&) { return special_kernels<T>().log_gamma; },
    [](X x, Dy dy) { return multiply(dy, digamma(x)); },
    {{"math.lgamma"},
     R"(Logarithm of the absolute value of the gamma function.

Gradient: `dx = dy * digamma(x)`.

>>> tf.math.lgamma([1., 3.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.6931472], dtype=float32)>)"});
const Op& digamma_op = unary<floating>(
    "Digamma", Element1<special::digamma>{},
    []<class T>(const VectorKernels<T>&) { return special_kernels<T>().digamma; },
    [](X x, Dy dy) { return multiply(dy, polygamma(one_of(x), x)); }, {{"math.digamma"}, R"(Derivative of `lgamma`.

Gradient: `dx = dy * polygamma(1, x)`.

>>> tf.math.digamma([1., 2.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.5772157 ,  0.42278433], dtype=float32)>)"});
const Op& polygamma_op =
    binary<floating, kCostlyGrain>("Polygamma", Element2<special::polygamma>{}, NoFast{}, NoGradient{},
                                   [](A n, B x, Dy dy) { return multiply(dy, polygamma(shifted(n, 1), x)); },
                                   {{"math.polygamma"},
                                    R"(The `a`-th derivative of `digamma` at `x`, for integers `a`.

Gradient: `dy * polygamma(a + 1, x)` for `x`; none for `a`.

>>> tf.math.polygamma([0., 1.], [1., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.5772157,  1.644934 ], dtype=float32)>)",
                                    {"a", "x"}});
const Op& zeta_op = binary<floating, kCostlyGrain>(
    "Zeta", Element2<special::zeta>{}, NoFast{}, NoGradient{},
    [](A s, B q, Dy dy) { return multiply(dy, multiply(negative(s), zeta(shifted(s, 1), q))); },
    {{"math.zeta"},
     R"(Hurwitz zeta function: the sum of `(q + k) ** -x` over k = 0, 1, ...

Gradient: `-dy * x * zeta(x + 1, q)` for `q`; none for `x`.

>>> tf.math.zeta([2.], [1.])
<tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.644934], dtype=float32)>)",
     {"x", "q"}});

// The gamma density x^(a-1) exp(-x) / Gamma(a): the derivative of igamma by x.
Tensor gamma_density(const Tensor& a, const Tensor& x) {
  return exp(subtract(subtract(xlogy(shifted(a, -1), x), x), log_gamma(a)));
}
const Op& igamma_op = binary<floating, kCostlyGrain>(
    "Igamma", Tolerant2<special::igamma>{}, NoFast{}, [](A a, B x, Dy dy) { return multiply(dy, igamma_grad_a(a, x)); },
    [](A a, B x, Dy dy) { return multiply(dy, gamma_density(a, x)); },
    {{"math.igamma"},
     R"(Lower regularized incomplete gamma function P(a, x).

Gradient: For both arguments; `dy * exp(-x) * x**(a - 1) / gamma(a)` for `x`.

>>> tf.math.igamma([1.], [1.])
<tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.63212055], dtype=float32)>)",
     {"a", "x"}});
const Op& igammac_op = binary<floating, kCostlyGrain>(
    "Igammac", Tolerant2<special::igammac>{}, NoFast{},
    [](A a, B x, Dy dy) { return negative(multiply(dy, igamma_grad_a(a, x))); },
    [](A a, B x, Dy dy) { return negative(multiply(dy, gamma_density(a, x))); },
    {{"math.igammac"},
     R"(Upper regularized incomplete gamma function 1 - P(a, x).

Gradient: For both arguments; `-dy * exp(-x) * x**(a - 1) / gamma(a)` for `x`.

>>> tf.math.igammac([1.], [1.])
<tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.36787945], dtype=float32)>)",
     {"a", "x"}});
// dP/da, and with l = log x - digamma(a): d^2P/da dx = density l, d^3P/da^2 dx = density (l^2 - digamma'(a)).
const Op& igamma_grad_a_op = binary<floating, kCostlyGrain>(
    "IgammaGradA", Tolerant2<special::igamma_grad_a>{}, NoFast{},
    [](A a, B x, Dy dy) { return multiply(dy, igamma_bend(a, x)); },
    [](A a, B x, Dy dy) {
      Tensor density = gamma_density(a, x);
      return multiply(dy, subtract(xlogy(density, x), multiply(density, digamma(a))));
    },
    {{}, "", {"a", "x"}});
const Op& igamma_bend_op = binary<floating, kCostlyGrain>(
    "IgammaGradAA", Tolerant2<special::igamma_bend>{}, NoFast{},
    [](Dy) -> Tensor {
      fail(ErrorKind::lookup, "igamma: the third derivative by `a` does not exist here; only two do");
    },
    [](A a, B x, Dy dy) {
      Tensor l = subtract(log(x), digamma(a));
      return multiply(dy, multiply(gamma_density(a, x), subtract(square(l), polygamma(one_of(a), a))));
    },
    {{}, "", {"a", "x"}});

Tensor log_gamma(const Tensor& x) { return run(log_gamma_op, {x}); }
Tensor digamma(const Tensor& x) { return run(digamma_op, {x}); }
Tensor polygamma(const Tensor& n, const Tensor& x) { return run(polygamma_op, {n, x}); }
Tensor zeta(const Tensor& s, const Tensor& q) { return run(zeta_op, {s, q}); }
Tensor igamma_grad_a(const Tensor& a, const Tensor& x) { return run(igamma_grad_a_op, {a, x}); }
Tensor igamma_bend(const Tensor& a, const Tensor& x) { return run(igamma_bend_op, {a, x}); }

// The operands have one shape; a scalar serves for all elements.
void infer_betainc(Call& call) {
  constexpr const char* letters[] = {"a", "b", "x"};
  int first = -1;
  for (int i = 0; i < 3; ++i) {
    const Tensor& t = call.in[size_t(i)];
    if (t.dtype() != call.in[0].dtype()) family::fail_dtypes(call);
    if (t.rank() == 0) continue;
    if (first < 0)
      first = i;
    else if (!(t.shape() == call.in[size_t(first)].shape()))
      fail(ErrorKind::invalid_argument, call.name(), ": Shapes of ", letters[first], " and ", letters[i],
           " are inconsistent and must be equal: ", call.in[size_t(first)].shape(), " vs. ", t.shape());
  }
  call.returns(call.in[0].dtype(), call.in[size_t(std::max(first, 0))].shape());
}

const Op& betainc_op = define(Op{
    .name = "Betainc",
    .arguments = {tensor("a", floating), tensor("b", floating), tensor("x", floating)},
    .infer = infer_betainc,
    .kernel =
        [](Call& call) {
          visit<floating.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            const T* from[3];
            int64_t step[3];
            for (size_t i = 0; i < 3; ++i) from[i] = call.in[i].data<T>(), step[i] = call.in[i].rank() == 0 ? 0 : 1;
            T* to = call.out[0].mutable_data<T>();
            parallel_for(call.out[0].size(), 1024, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                auto at = [&](int k) { return double(load(from[k] + i * step[k])); };
                store(to + i, Compute<T>(special::betainc(at(0), at(1), at(2), tolerance_of<Compute<T>>)));
              }
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(2)) return;
          const Tensor &a = c.x(0), &b = c.x(1), &x = c.x(2);
          Tensor log_beta = subtract(add(log_gamma(a), log_gamma(b)), log_gamma(add(a, b)));
          Tensor power = add(xlog1py(shifted(b, -1), negative(x)), xlogy(shifted(a, -1), x));
          c.set(2, unbroadcast(multiply(c.dy(), exp(subtract(power, log_beta))), c.shape(2)));
        },
    .keep = keep_all_inputs,
    .elementwise = true,
    .names = {"math.betainc"},
    .doc = R"(Regularized incomplete beta function I_x(a, b); `a`, `b` and `x` have one shape, or are scalars.

Gradient: For `x`: `dy * x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)`; none for `a` and `b`.

>>> tf.math.betainc(1., 1., [0.25, 0.5])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.25, 0.5 ], dtype=float32)>)",
});

// ---- inverses of the error function

const Op& erfinv_op = unary<floating>(
    "Erfinv", ByVectors{}, []<class T>(const VectorKernels<T>&) { return special_kernels<T>().erfinv; },
    [](Y y, Dy dy) { return multiply(dy, scaled(exp(square(y)), 0.5 / std::numbers::inv_sqrtpi)); },
    {{"math.erfinv"}, R"(Inverse of `erf`.

Gradient: `dx = dy * sqrt(pi) / 2 * exp(y**2)`.

>>> tf.math.erfinv([0., 0.5])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.        , 0.47693628], dtype=float32)>)"});
const Op& ndtri_op = unary<floating>(
    "Ndtri", ByVectors{}, []<class T>(const VectorKernels<T>&) { return special_kernels<T>().ndtri; },
    [](Y y, Dy dy) {
      return multiply(dy, scaled(exp(scaled(square(y), 0.5)), std::numbers::sqrt2 / std::numbers::inv_sqrtpi));
    },
    {{"math.ndtri"},
     R"(Quantile of the standard normal distribution.

Gradient: `dx = dy * sqrt(2 * pi) * exp(y**2 / 2)`.

>>> tf.math.ndtri([0.5, 0.975])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.9599644], dtype=float32)>)"});

// ---- Bessel functions

Tensor bessel_i0(const Tensor& x);
Tensor bessel_i1(const Tensor& x);
Tensor bessel_i0e(const Tensor& x);
Tensor bessel_i1e(const Tensor& x);
Tensor bessel_j0(const Tensor& x);
Tensor bessel_j1(const Tensor& x);
Tensor bessel_k0(const Tensor& x);
Tensor bessel_k1(const Tensor& x);
Tensor bessel_k0e(const Tensor& x);
Tensor bessel_k1e(const Tensor& x);
Tensor bessel_y0(const Tensor& x);
Tensor bessel_y1(const Tensor& x);

// zeroth(x) - first(x) / x, whose limit at 0 is 1/2 + second x^2.
Tensor first_order_derivative(const Tensor& x, const Tensor& zeroth, const Tensor& first, double second) {
  Tensor at_zero = equal(x, zero_of(x)), safe = select(at_zero, one_of(x), x);
  return select(at_zero, shifted(scaled(square(x), second), 0.5), subtract(zeroth, divide(first, safe)));
}

const Op& i0_op = unary<floating>("BesselI0", Element1<special::bessel_i0>{}, NoFast{},
                                  [](X x, Dy dy) { return multiply(dy, bessel_i1(x)); },
                                  {{"math.bessel_i0", "math.special.bessel_i0"},
                                   R"(Modified Bessel function of order 0.

Gradient: `dx = dy * bessel_i1(x)`.

>>> tf.math.bessel_i0([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.       , 1.2660658], dtype=float32)>)"});
const Op& i1_op =
    unary<floating>("BesselI1", Element1<special::bessel_i1>{}, NoFast{},
                    [](X x, Y y, Dy dy) { return multiply(dy, first_order_derivative(x, bessel_i0(x), y, 3.0 / 16)); },
                    {{"math.bessel_i1", "math.special.bessel_i1"},
                     R"(Modified Bessel function of order 1.

Gradient: `dx = dy * (bessel_i0(x) - y / x)`.

>>> tf.math.bessel_i1([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.5651591], dtype=float32)>)"});
const Op& i0e_op =
    unary<floating>("BesselI0e", Element1<special::bessel_i0e>{}, NoFast{},
                    [](X x, Y y, Dy dy) { return multiply(dy, subtract(bessel_i1e(x), multiply(sign(x), y))); },
                    {{"math.bessel_i0e", "math.special.bessel_i0e"},
                     R"(`bessel_i0(x) * exp(-|x|)`.

Gradient: `dx = dy * (bessel_i1e(x) - sign(x) * y)`.

>>> tf.math.bessel_i0e([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.       , 0.4657596], dtype=float32)>)"});
const Op& i1e_op = unary<floating>(
    "BesselI1e", Element1<special::bessel_i1e>{}, NoFast{},
    [](X x, Y y, Dy dy) {
      return multiply(dy, first_order_derivative(x, subtract(bessel_i0e(x), multiply(sign(x), y)), y, 0));
    },
    {{"math.bessel_i1e", "math.special.bessel_i1e"},
     R"(`bessel_i1(x) * exp(-|x|)`.

Gradient: `dx = dy * (bessel_i0e(x) - y * (sign(x) + 1 / x))`.

>>> tf.math.bessel_i1e([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.        , 0.20791042], dtype=float32)>)"});
const Op& j0_op = unary<floating>("BesselJ0", Element1<special::bessel_j0>{}, NoFast{},
                                  [](X x, Dy dy) { return negative(multiply(dy, bessel_j1(x))); },
                                  {{"math.special.bessel_j0"},
                                   R"(Bessel function of the first kind of order 0.

Gradient: `dx = -dy * bessel_j1(x)`.

>>> tf.math.special.bessel_j0([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.       , 0.7651977], dtype=float32)>)"});
const Op& j1_op =
    unary<floating>("BesselJ1", Element1<special::bessel_j1>{}, NoFast{},
                    [](X x, Y y, Dy dy) { return multiply(dy, first_order_derivative(x, bessel_j0(x), y, -3.0 / 16)); },
                    {{"math.special.bessel_j1"},
                     R"(Bessel function of the first kind of order 1.

Gradient: `dx = dy * (bessel_j0(x) - y / x)`.

>>> tf.math.special.bessel_j1([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.        , 0.44005057], dtype=float32)>)"});
const Op& k0_op = unary<floating>("BesselK0", Element1<special::bessel_k0>{}, NoFast{},
                                  [](X x, Dy dy) { return negative(multiply(dy, bessel_k1(x))); },
                                  {{"math.special.bessel_k0"},
                                   R"(Modified Bessel function of the second kind of order 0.

Gradient: `dx = -dy * bessel_k1(x)`.

>>> tf.math.special.bessel_k0([1.])
<tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.42102444], dtype=float32)>)"});
const Op& k1_op =
    unary<floating>("BesselK1", Element1<special::bessel_k1>{}, NoFast{},
                    [](X x, Y y, Dy dy) { return negative(multiply(dy, add(bessel_k0(x), divide(y, x)))); },
                    {{"math.special.bessel_k1"},
                     R"(Modified Bessel function of the second kind of order 1.

Gradient: `dx = -dy * (bessel_k0(x) + y / x)`.

>>> tf.math.special.bessel_k1([1.])
<tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.60190725], dtype=float32)>)"});
const Op& k0e_op = unary<floating>("BesselK0e", Element1<special::bessel_k0e>{}, NoFast{},
                                   [](X x, Y y, Dy dy) { return multiply(dy, subtract(y, bessel_k1e(x))); },
                                   {{"math.special.bessel_k0e"}, R"(`bessel_k0(x) * exp(x)`.

Gradient: `dx = dy * (y - bessel_k1e(x))`.

>>> tf.math.special.bessel_k0e([1.])
<tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.1444631], dtype=float32)>)"});
const Op& k1e_op =
    unary<floating>("BesselK1e", Element1<special::bessel_k1e>{}, NoFast{},
                    [](X x, Y y, Dy dy) { return multiply(dy, subtract(subtract(y, divide(y, x)), bessel_k0e(x))); },
                    {{"math.special.bessel_k1e"}, R"(`bessel_k1(x) * exp(x)`.

Gradient: `dx = dy * (y * (1 - 1 / x) - bessel_k0e(x))`.

>>> tf.math.special.bessel_k1e([1.])
<tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.6361535], dtype=float32)>)"});
const Op& y0_op = unary<floating>("BesselY0", Element1<special::bessel_y0>{}, NoFast{},
                                  [](X x, Dy dy) { return negative(multiply(dy, bessel_y1(x))); },
                                  {{"math.special.bessel_y0"},
                                   R"(Bessel function of the second kind of order 0.

Gradient: `dx = -dy * bessel_y1(x)`.

>>> tf.math.special.bessel_y0([1.])
<tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.08825696], dtype=float32)>)"});
const Op& y1_op = unary<floating>("BesselY1", Element1<special::bessel_y1>{}, NoFast{},
                                  [](X x, Y y, Dy dy) { return multiply(dy, subtract(bessel_y0(x), divide(y, x))); },
                                  {{"math.special.bessel_y1"},
                                   R"(Bessel function of the second kind of order 1.

Gradient: `dx = dy * (bessel_y0(x) - y / x)`.

>>> tf.math.special.bessel_y1([1.])
<tf.Tensor: shape=(1,), dtype=float32, numpy=array([-0.7812128], dtype=float32)>)"});

Tensor bessel_i0(const Tensor& x) { return run(i0_op, {x}); }
Tensor bessel_i1(const Tensor& x) { return run(i1_op, {x}); }
Tensor bessel_i0e(const Tensor& x) { return run(i0e_op, {x}); }
Tensor bessel_i1e(const Tensor& x) { return run(i1e_op, {x}); }
Tensor bessel_j0(const Tensor& x) { return run(j0_op, {x}); }
Tensor bessel_j1(const Tensor& x) { return run(j1_op, {x}); }
Tensor bessel_k0(const Tensor& x) { return run(k0_op, {x}); }
Tensor bessel_k1(const Tensor& x) { return run(k1_op, {x}); }
Tensor bessel_k0e(const Tensor& x) { return run(k0e_op, {x}); }
Tensor bessel_k1e(const Tensor& x) { return run(k1e_op, {x}); }
Tensor bessel_y0(const Tensor& x) { return run(y0_op, {x}); }
Tensor bessel_y1(const Tensor& x) { return run(y1_op, {x}); }

// ---- integrals

const Op& dawson_op =
    unary<floating>("Dawsn", Element1<special::dawson>{}, NoFast{},
                    [](X x, Y y, Dy dy) { return multiply(dy, shifted(scaled(multiply(x, y), -2), 1)); },
                    {{"math.special.dawsn"},
                     R"(Dawson's integral: `exp(-x**2)` times the integral of `exp(t**2)` from 0 to `x`.

Gradient: `dx = dy * (1 - 2 * x * y)`.

>>> tf.math.special.dawsn([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.5380795], dtype=float32)>)"});
const Op& expint_op = unary<floating>("Expint", Element1<special::expint>{}, NoFast{},
                                      [](X x, Dy dy) { return multiply(dy, divide(exp(x), x)); },
                                      {{"math.special.expint"},
                                       R"(Exponential integral Ei: the integral of `exp(t) / t` up to `x`.

Gradient: `dx = dy * exp(x) / x`.

>>> tf.math.special.expint([1., 2.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.8951178, 4.954234 ], dtype=float32)>)"});
Tensor quarter_turns(const Tensor& x) { return scaled(square(x), 0.5 * std::numbers::pi); }
const Op& fresnel_cos_op = unary<floating>("FresnelCos", Element1<special::fresnel_cos>{}, NoFast{},
                                           [](X x, Dy dy) { return multiply(dy, cos(quarter_turns(x))); },
                                           {{"math.special.fresnel_cos"},
                                            R"(Fresnel's cosine integral.

Gradient: `dx = dy * cos(pi / 2 * x**2)`.

>>> tf.math.special.fresnel_cos([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.7798934], dtype=float32)>)"});
const Op& fresnel_sin_op = unary<floating>("FresnelSin", Element1<special::fresnel_sin>{}, NoFast{},
                                           [](X x, Dy dy) { return multiply(dy, sin(quarter_turns(x))); },
                                           {{"math.special.fresnel_sin"},
                                            R"(Fresnel's sine integral.

Gradient: `dx = dy * sin(pi / 2 * x**2)`.

>>> tf.math.special.fresnel_sin([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.        , 0.43825915], dtype=float32)>)"});
// log(x) / (1 - x), which near 1 is -1 + (x - 1) / 2.
const Op& spence_op = unary<floating>("Spence", Element1<special::spence>{}, NoFast{},
                                      [](X x, Dy dy) {
                                        Tensor at_one = equal(x, one_of(x)),
                                               safe = select(at_one, Tensor::number(x.dtype(), 2), x);
                                        Tensor derivative = divide(log(safe), subtract(one_of(x), safe));
                                        return multiply(dy, select(at_one, shifted(scaled(x, 0.5), -1.5), derivative));
                                      },
                                      {{"math.special.spence"},
                                       R"(Spence's function, the dilogarithm of `1 - x`.

Gradient: `dx = dy * log(x) / (1 - x)`.

>>> tf.math.special.spence([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 1.644934, -0.      ], dtype=float32)>)"});

}  // namespace
}  // namespace tapeflow
