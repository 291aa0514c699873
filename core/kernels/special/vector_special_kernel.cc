// Special functions for one instruction set: compiled once per set, with TAPEFLOW_ISA as the namespace. All of them
// compute in double. Results that become floats need 30 correct bits, so their series are shorter.
//
// The polynomials are Chebyshev interpolants made for this file (mpmath, 40 digits); each names its interval and its
// largest relative error.
#include "kernels/simd/vector_memory.h"
#include "kernels/special/functions.h"
#include "kernels/special/vector_special.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

// ---- Series -------------------------------------------------------------------------------------------------------

struct InverseError {  // z / erf(z) as a function of w = -log(1 - erf(z)^2)
  static constexpr double middle = 3.125, centre_most = 6.25;
  // By w - middle on 0 <= w <= centre_most, 2^-32.1.
  static constexpr double centre[] = {1.6536545627504364,      0.24015818239056719,    -0.0060336715440842421,
                                      -0.00074070218241936811, 0.00018673528439758794, -1.3883102114674188e-05,
                                      -1.3660982699916231e-06, 4.2383731574351034e-07, -2.8903761243865016e-08,
                                      -4.2190021016865198e-09, 1.0313216865427852e-09, -3.780363278701018e-11,
                                      -1.2396714980402452e-11, 1.3642498644590784e-12};
  // Over sqrt(w), by 1 / sqrt(w), for 2.5 <= sqrt(w) <= 27.4, 2^-29.1.
  static constexpr double tail[] = {
      1.0000505921174236,  -0.011007914074828208, -1.6806661192737069, 11.963179159616065,  -73.394775910271818,
      67.112929210005404,  6027.2922980002168,    -89982.652053536498, 763552.61483993114,  -4442455.3916367972,
      18610824.085477602,  -56790714.160129271,   125199009.93714871,  -194176936.09267727, 200857302.12004861,
      -124325279.36725317, 34815278.870906793};
};

// log Gamma(x) / ((x - 1) (x - 2)) and digamma(x) / (x - its root) by x - 2 on [1, 3]; the rest of Stirling's series
// times x and of digamma's times x^2, by x^-2, for x >= 3.
template <class T> struct Gamma;
template <> struct Gamma<float> {
  static constexpr double log_gamma[] = {
      0.42278433509846713,    -0.10031730365388107,    0.032965001562915798,   -0.012384118740166294,
      0.004998606220335257,   -0.0021089123141546304,  0.00091574867459672167, -0.00040208398465581486,
      0.00018082918739853102, -9.1563930091154638e-05, 4.2196170008844602e-05, -7.4193847261125939e-06,
      3.3533533341591794e-06, -9.6351322803609136e-06, 4.5572423198608922e-06};  // 2^-31.1
  static constexpr double log_gamma_far[] = {0.083333333302401946, -0.0027777637763430792, 0.00079261127965677867,
                                             -0.00056718140415355669, 0.0005045318717343812};  // 2^-31.3
  static constexpr double digamma[] = {0.78530753860410529,     -0.26073895248215001,   0.10899991591727731,
                                       -0.049551138008389388,   0.023447362139350707,   -0.011336979850831708,
                                       0.0055515278745373953,   -0.0027485061475388561, 0.0013626084403997227,
                                       -0.000646558404349135,   0.00032205658348511247, -0.0002192230962289079,
                                       0.00010947766125439698,  8.4082071540872831e-06, -4.2166089122665093e-06,
                                       -3.3946299277535666e-05, 1.6970551385722774e-05};  // 2^-32.2
  static constexpr double digamma_far[] = {0.083333333311524788,  -0.0083333191152452947,
                                           0.0039667138572361763, -0.0041035411368966525,
                                           0.0063303366281138463, -0.0079405075489430987};  // 2^-31.8
};
template <> struct Gamma<double> {
  // 2^-58.5, 2^-54.2, 2^-56.9 and 2^-55.0
  static constexpr double log_gamma[] = {
      0.42278433509846713,    -0.1003173016743539,     0.032965000621155816,    -0.012384192193374183,
      0.0049986411646987059,  -0.0021081308338353785,  0.0009153769221939477,   -0.00040570739983335528,
      0.00018255264018626728, -8.3095100947973982e-05, 3.8168877217049974e-05,  -1.7661849545809686e-05,
      8.2222725282493795e-06, -3.8465374565754054e-06, 1.8077244952477939e-06,  -8.5541953067520078e-07,
      4.0491176292722286e-07, -1.8624721164419038e-07, 8.8588004623147608e-08,  -5.1889381335192836e-08,
      2.4876913129422816e-08, -9.172949166290702e-10,  3.8215413984109649e-10,  -8.8771160037043708e-09,
      4.3052206107853486e-09, 2.444386936885692e-09,   -1.1901740908188623e-09, -8.1528528706249738e-10,
      3.9592899392841773e-10};
  static constexpr double log_gamma_far[] = {0.083333333333333329,    -0.0027777777777673531, 0.00079365078910204881,
                                             -0.00059523730632270156, 0.00084167886259876098, -0.0019135564194573535,
                                             0.0062663550722074513,   -0.025917635484284589,  0.11229667461420963,
                                             -0.41302940091672014,    1.0364376287210755,     -1.2591741378706647};
  static constexpr double digamma[] = {
      0.78530753860410529,    -0.2607389546830014,     0.10899991701762626,     -0.049551032917672912,
      0.023447309597724546,   -0.011338432553333682,   0.0055522541713508141,   -0.0027395728831692795,
      0.0013581421903714414,  -0.00067531336979956497, 0.00033643237613001386,  -0.00016781518722379935,
      8.3779665405306442e-05, -4.1846229319378813e-05, 2.0891708911121205e-05,  -1.0441066319835141e-05,
      5.2687194289721802e-06, -2.6338311326151924e-06, 1.2119815782595426e-06,  -6.0593227950452563e-07,
      4.6173797029851077e-07, -2.3086248081342955e-07, -5.6422994902202784e-08, 2.821220170829738e-08,
      1.1540536834062045e-07, -5.7702592677173903e-08, -3.5705337308985145e-08, 1.7852672191376552e-08,
      1.0201545142033868e-08, -5.1007702149894689e-09};
  static constexpr double digamma_far[] = {0.083333333333333329,   -0.0083333333333250326, 0.0039682539633187309,
                                           -0.0041666654950229037, 0.0075756100694986265,  -0.021081441106059102,
                                           0.082750926175612041,   -0.42213739276734025,   2.4853225179572207,
                                           -14.509465068315617,    72.40846099395732,      -269.95947774751528,
                                           643.1483984648313,      -720.49540607854033};
};
constexpr double digamma_root = 0.46163214496836236, digamma_root_rest = -1.5522348162858677e-17;  // the root less 1
constexpr double stirling_constant = 0.41893853320467274178;  // log(2 pi) / 2 - 1 / 2

// (log(1 + f) - f + f^2 / 2) / f^3 on [-1/4, 1/2], 2^-31.7
constexpr double short_log[] = {0.33333333338719845,   -0.24999999756562469, 0.19999996545598606,
                                -0.16666707585329552,  0.14286108881005147,  -0.12498483872362744,
                                0.11094704059473878,   -0.10003830487047184, 0.093568747751698905,
                                -0.088169582167139562, 0.066786145296619789, -0.025875101964261477};

// The logarithm of a positive number with 32 correct bits.
TAPEFLOW_INLINE D rough_log(D x) {
#if defined(__AVX512F__)
  auto [m, e] = split(x);
#else
  const auto denormal = x < C<D>::smallest_normal;
  auto [m, e] = split(denormal ? x * C<D>::integer : x);
  e = denormal ? e - double(C<D>::mantissa_bits) : e;
#endif
  const D f = m - 1.0;
  return fma(e, ln2<D>, f + f * f * fma(f, short_polynomial(f, short_log), -0.5));
}
template <class T> TAPEFLOW_INLINE D positive_log(D x) { return sizeof(T) == 4 ? rough_log(x) : log(x); }

// ---- Inverses of the error function -------------------------------------------------------------------------------

// The z with erf(z) = x, to 29 bits, where `product` is (1 - x) (1 + x).
TAPEFLOW_INLINE D inverse_error(D x, D product) {
  using S = InverseError;
  const D w = -rough_log(product);
  D ratio = short_polynomial(w - S::middle, S::centre);
  const auto far = w > S::centre_most;
  if (any(far)) {
    const D root = sqrt(w);
    ratio = far ? root * polynomial(1.0 / root, S::tail) : ratio;
  }
  return x * ratio;
}

// One step of Halley's method from z to the root of erf(z) = x, which is that of erfc(z) = y; all are positive. With
// erfc(z) = e^(-z²) tail(z) the step of Newton's is sqrt(pi)/2 (y e^(z²) - tail(z)).
TAPEFLOW_INLINE D refine(D z, D x, D y) {
  const D square = z * z;
  const auto e = exponential(square, product_error(z, z, square));
  // In two halves, the first of which makes a denormal y normal.
  const D half = (e.exponent * 0.5 + rounder<D>)-rounder<D>;
  auto times_power = [&](D a) { return e.times_mantissa(a * power_of_two(half)) * power_of_two(e.exponent - half); };
  const D far = times_power(y) - erfc_tail(z);
  const D step = 0.88622692545275801365 * (x < 0.65 ? times_power(erf_of_small(z) - x) : far);
  return z - step / fma(z, step, 1.0);
}

// The z with erf(z) = x and erfc(|z|) = y.
template <class T> TAPEFLOW_INLINE D inverse_error_pair(D x, D y) {
  const D product = y * (2.0 - y);
  D z = inverse_error(x, product);
  if constexpr (sizeof(T) == 8) z = copysign(refine(abs(z), abs(x), y), x);
  const D edge = product == 0.0 ? copysign(splat<D>(C<D>::infinity), x) : splat<D>(C<D>::nan);
  return product > 0.0 ? z : edge;
}

template <class T> TAPEFLOW_INLINE D erfinv(D x) { return inverse_error_pair<T>(x, 1.0 - abs(x)); }

template <class T> TAPEFLOW_INLINE D ndtri(D p) {
  const D y = 2.0 * p;
  return 1.4142135623730950488 * inverse_error_pair<T>(y - 1.0, p < 0.5 ? y : 2.0 - y);
}

// ---- The gamma function -------------------------------------------------------------------------------------------

// Calls `exact` for the arguments that are not positive and finite.
template <double (*exact)(double)> [[gnu::noinline, gnu::cold]] D elsewhere(D x, D y) {
  for (int i = 0; i < lanes<D>; ++i)
    if (!(x[i] > 0 && x[i] < C<D>::infinity)) y[i] = exact(x[i]);
  return y;
}
template <double (*exact)(double)> TAPEFLOW_INLINE D with_elsewhere(D x, D y) {
  const auto other = ~((x > 0.0) & (x < C<D>::infinity));
  return __builtin_expect(any(other), 0) ? elsewhere<exact>(x, y) : y;
}

// Up to 3 with the factors of both roots, for x < 1 at x + 1; beyond, Stirling's series.
template <class T> TAPEFLOW_INLINE D log_gamma(D x) {
  const D log_x = positive_log<T>(x), r = 1.0 / x;
  const auto below = x < 1.0;
  const D b = below ? x : x - 1.0, t = b - 1.0;
  const D roots = b * t, ratio = short_polynomial(t, Gamma<T>::log_gamma);
  const D near = fma(roots, ratio, product_error(b, t, roots) * ratio) - (below ? log_x : D{});
  const D rest = fma(r, short_polynomial(r * r, Gamma<T>::log_gamma_far), stirling_constant);
  return with_elsewhere<special::log_gamma>(x, x > 3.0 ? fma(x - 0.5, log_x - 1.0, rest) : near);
}

template <class T> TAPEFLOW_INLINE D digamma(D x) {
  const D log_x = positive_log<T>(x), r = 1.0 / x, s = r * r;
  const auto below = x < 1.0;
  const D b = below ? x : x - 1.0, t = b - 1.0;
  const D from_root = (b - digamma_root) - digamma_root_rest;
  const D near = from_root * short_polynomial(t, Gamma<T>::digamma) - (below ? r : D{});
  const D far = log_x - fma(s, short_polynomial(s, Gamma<T>::digamma_far), 0.5 * r);
  return with_elsewhere<special::digamma>(x, x > 3.0 ? far : near);
}

// ---- Loops --------------------------------------------------------------------------------------------------------

template <auto f> TAPEFLOW_INLINE D apply(D x) { return f(x); }
template <auto f> TAPEFLOW_INLINE F apply(F x) {
  typedef float Half __attribute__((vector_size(vector_bytes / 2)));
  Half half[2];
  __builtin_memcpy(half, &x, sizeof x);
  for (Half& h : half) h = __builtin_convertvector(f(__builtin_convertvector(h, D)), Half);
  __builtin_memcpy(&x, half, sizeof x);
  return x;
}

// The lanes behind the last element get a number that all functions take.
template <class T, auto f> [[gnu::flatten]] void loop(const T* x, T* y, int64_t n) {
  constexpr int64_t width = lanes<Vector<T>>;
  for (; n > 0; n -= width, x += width, y += width) {
    const Vector<T> a = n < width ? load_first(x, n, T(0.5)) : load(x);
    const Vector<T> result = apply<f>(a);
    if (n < width)
      store_first(y, result, n);
    else
      store(y, result);
  }
}

template <class T> constexpr SpecialKernels<T> make_kernels() {
  return {
      .erfinv = loop<T, [](D x) { return erfinv<T>(x); }>,
      .ndtri = loop<T, [](D x) { return ndtri<T>(x); }>,
      .log_gamma = loop<T, [](D x) { return log_gamma<T>(x); }>,
      .digamma = loop<T, [](D x) { return digamma<T>(x); }>,
  };
}

}  // namespace

extern const SpecialKernels<float> float_special;
extern const SpecialKernels<double> double_special;
constinit const SpecialKernels<float> float_special = make_kernels<float>();
constinit const SpecialKernels<double> double_special = make_kernels<double>();

}  // namespace tapeflow::TAPEFLOW_ISA
