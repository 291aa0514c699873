// The complex kernels for one instruction set: compiled once per set, with TAPEFLOW_ISA as the namespace. A vector of
// floats holds numbers as they lie in memory, real and imaginary parts in turns.
#include "kernels/simd/complex_functions.h"

#include "kernels/simd/vector_memory.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

using Complex = std::complex<float>;
// The compiler's own type, for arithmetic on single numbers: functions of std::complex that are compiled here must not
// be linked into code for other machines.
typedef _Complex float Number;
typedef float Half __attribute__((vector_size(vector_bytes / 2)));
constexpr int64_t kNumbers = lanes<F> / 2;  // in one vector

TAPEFLOW_INLINE Number number(float re, float im) {
  Number x;
  __real__ x = re, __imag__ x = im;
  return x;
}

constexpr auto real_lane = [](int lane) { return lane & ~1; };
constexpr auto imaginary_lane = [](int lane) { return lane | 1; };
constexpr auto other_lane = [](int lane) { return lane ^ 1; };

template <class V, auto lane> TAPEFLOW_INLINE V pick(V x) { return shuffle<lane>(x, x); }

// The signs of the lanes with real parts are turned.
TAPEFLOW_INLINE F turn_real(F x) {
  Vector<uint64_t> signs = Vector<uint64_t>{} + uint64_t(0x80000000);  // the lower half comes first in memory
  return (F)((Vector<uint64_t>)x ^ signs);
}

TAPEFLOW_INLINE F multiply(F a, F b) {
  return a * pick<F, real_lane>(b) + turn_real(pick<F, other_lane>(a) * pick<F, imaginary_lane>(b));
}

// ---- Parts --------------------------------------------------------------------------------------------------------

template <int first, int... I> TAPEFLOW_INLINE D part(F x, std::integer_sequence<int, I...>) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, (2 * I + first)...), D);
}
// The real (0) or imaginary (1) parts as doubles.
template <int first> TAPEFLOW_INLINE D part(F x) { return part<first>(x, std::make_integer_sequence<int, kNumbers>()); }

template <int... I> TAPEFLOW_INLINE F joined(Half re, Half im, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(re, im, (I % 2 * int(kNumbers) + I / 2)...);
}
TAPEFLOW_INLINE F joined(D re, D im) {
  return joined(__builtin_convertvector(re, Half), __builtin_convertvector(im, Half),
                std::make_integer_sequence<int, lanes<F>>());
}

// ---- Functions ----------------------------------------------------------------------------------------------------

[[gnu::noinline, gnu::cold]] F divide_by_rules(F a, F b, F y) {
  for (int i = 0; i < lanes<F>; i += 2)
    if (y[i] != y[i] || y[i + 1] != y[i + 1]) {
      const Number quotient = number(a[i], a[i + 1]) / number(b[i], b[i + 1]);
      y[i] = __real__ quotient, y[i + 1] = __imag__ quotient;
    }
  return y;
}

// By the textbook's formula in double, where nothing overflows or vanishes.
TAPEFLOW_INLINE F divide(F a, F b) {
  const D p = part<0>(a), q = part<1>(a), r = part<0>(b), s = part<1>(b), scale = 1.0 / (r * r + s * s);
  const F y = joined((p * r + q * s) * scale, (q * r - p * s) * scale);
  return __builtin_expect(any(y != y), 0) ? divide_by_rules(a, b, y) : y;
}

[[gnu::noinline, gnu::cold]] void exp_by_rules(const D& re, const D& im, D& y_re, D& y_im) {
  for (int i = 0; i < lanes<D>; ++i)
    if (!(__builtin_fabs(re[i]) < 700 && __builtin_fabs(im[i]) < 1e5)) {
      const Number y = __builtin_cexpf(number(float(re[i]), float(im[i])));
      y_re[i] = double(__real__ y), y_im[i] = double(__imag__ y);
    }
}

TAPEFLOW_INLINE F exp_of(F x) {
  const D re = part<0>(x), im = part<1>(x), size = exp(re);
  D y_re = size * cos(im), y_im = size * sin(im);
  if (__builtin_expect(any(~((abs(re) < 700.0) & (abs(im) < 1e5))), 0)) exp_by_rules(re, im, y_re, y_im);
  return joined(y_re, y_im);
}

// Infinite where a part is, even beside a NaN.
TAPEFLOW_INLINE Half magnitude(F x) {
  const D re = abs(part<0>(x)), im = abs(part<1>(x)), y = sqrt(re * re + im * im);
  const auto infinite = (re == C<D>::infinity) | (im == C<D>::infinity);
  return __builtin_convertvector(infinite ? splat<D>(C<D>::infinity) : y, Half);
}

// Numbers that are not `usual` are left to the library.
template <class Usual> [[gnu::noinline, gnu::cold]] F by_library(F x, F y, const Usual& usual, Number (*f)(Number)) {
  for (int i = 0; i < kNumbers; ++i)
    if (!usual[i]) {
      const Number value = f(number(x[2 * i], x[2 * i + 1]));
      y[2 * i] = __real__ value, y[2 * i + 1] = __imag__ value;
    }
  return y;
}
template <class Usual> TAPEFLOW_INLINE F checked(F x, F y, const Usual& usual, Number (*f)(Number)) {
  return __builtin_expect(any(~usual), 0) ? by_library(x, y, usual, f) : y;
}

constexpr double kFarAngle = 1e5, kLargeExponent = 300;

TAPEFLOW_INLINE F sin_of(F x) {
  const D re = part<0>(x), im = part<1>(x);
  const auto usual = (abs(re) < kFarAngle) & (abs(im) < kLargeExponent);
  return checked(x, joined(sin(re) * cosh(im), cos(re) * sinh(im)), usual, [](Number z) { return __builtin_csinf(z); });
}
TAPEFLOW_INLINE F cos_of(F x) {
  const D re = part<0>(x), im = part<1>(x);
  const auto usual = (abs(re) < kFarAngle) & (abs(im) < kLargeExponent);
  return checked(x, joined(cos(re) * cosh(im), -(sin(re) * sinh(im))), usual,
                 [](Number z) { return __builtin_ccosf(z); });
}
// With t = tan(im), s = sinh(re) and b = 1 + t²: (b s sqrt(1 + s²) + i t) / (1 + b s²), where nothing cancels.
TAPEFLOW_INLINE F tanh_of(F x) {
  const D re = part<0>(x), im = part<1>(x), t = tan(im), s = sinh(re), b = fma(t, t, splat<D>(1)), square = s * s;
  const D scale = 1.0 / fma(b, square, splat<D>(1));
  const auto usual = (abs(re) < kLargeExponent) & (abs(im) < kFarAngle);
  return checked(x, joined(b * s * sqrt(square + 1.0) * scale, t * scale), usual,
                 [](Number z) { return __builtin_ctanhf(z); });
}
// The larger part of the root has no cancellation; the other one follows from it.
TAPEFLOW_INLINE F sqrt_of(F x) {
  const D re = part<0>(x), im = part<1>(x), size = abs(re);
  const D large = sqrt((sqrt(re * re + im * im) + size) * 0.5);
  const D small = large == 0.0 ? D{} : abs(im) / (large + large);
  const auto right = re >= 0.0, usual = (size < C<D>::infinity) & (abs(im) < C<D>::infinity);
  return checked(x, joined(right ? large : small, copysign(right ? small : large, im)), usual,
                 [](Number z) { return __builtin_csqrtf(z); });
}
// Near the unit circle the logarithm of |z|² is that of 1 + (large - 1) (large + 1) + small², exact in double.
TAPEFLOW_INLINE F log_of(F x) {
  const D re = part<0>(x), im = part<1>(x), a = abs(re), b = abs(im);
  const auto steep = b > a;
  const D large = steep ? b : a, small = steep ? a : b, square = fma(large, large, small * small);
  const D near = log1p(fma(large - 1.0, large + 1.0, small * small));
  const D angle = atan(small / large), upper = steep ? C<D>::half_pi[0] - angle : angle;
  const auto left = (decltype(b > a))((bits(re) & sign_bit<D>) != 0);
  const D whole = left ? 2 * C<D>::half_pi[0] - upper : upper;
  const auto usual = (large > 0.0) & (large < C<D>::infinity) & (small == small);
  return checked(x, joined(0.5 * ((square > 0.5) & (square < 3.0) ? near : log(square)), copysign(whole, im)), usual,
                 [](Number z) { return __builtin_clogf(z); });
}

// ---- Loops --------------------------------------------------------------------------------------------------------

TAPEFLOW_INLINE const float* floats(const Complex* p) { return reinterpret_cast<const float*>(p); }
TAPEFLOW_INLINE float* floats(Complex* p) { return reinterpret_cast<float*>(p); }

TAPEFLOW_INLINE F repeated(const Complex& x) {
  constexpr auto in_turns = [](int lane) { return lane % 2 ? lanes<F> + lane : lane; };
  return shuffle<in_turns>(splat<F>(floats(&x)[0]), splat<F>(floats(&x)[1]));
}

// Lanes behind the last number are 1, which all functions take.
TAPEFLOW_INLINE F at(const float* p, int64_t count) { return count < lanes<F> ? load_first(p, count, 1.0f) : load(p); }
TAPEFLOW_INLINE void put(float* p, F y, int64_t count) {
  if (count < lanes<F>)
    store_first(p, y, count);
  else
    store(p, y);
}

template <auto f> [[gnu::flatten]] void unary(const Complex* x, Complex* y, int64_t n) {
  for (int64_t i = 0; i < 2 * n; i += lanes<F>) put(floats(y) + i, f(at(floats(x) + i, 2 * n - i)), 2 * n - i);
}

template <auto f> struct Binary {
  [[gnu::flatten]] static void vv(const Complex* a, const Complex* b, Complex* y, int64_t n) {
    for (int64_t i = 0; i < 2 * n; i += lanes<F>)
      put(floats(y) + i, f(at(floats(a) + i, 2 * n - i), at(floats(b) + i, 2 * n - i)), 2 * n - i);
  }
  [[gnu::flatten]] static void vs(const Complex* a, Complex b, Complex* y, int64_t n) {
    const F right = repeated(b);
    for (int64_t i = 0; i < 2 * n; i += lanes<F>) put(floats(y) + i, f(at(floats(a) + i, 2 * n - i), right), 2 * n - i);
  }
  [[gnu::flatten]] static void sv(Complex a, const Complex* b, Complex* y, int64_t n) {
    const F left = repeated(a);
    for (int64_t i = 0; i < 2 * n; i += lanes<F>) put(floats(y) + i, f(left, at(floats(b) + i, 2 * n - i)), 2 * n - i);
  }
};
template <auto f> constexpr BinaryKernel<Complex> binary = {Binary<f>::vv, Binary<f>::vs, Binary<f>::sv};

[[gnu::flatten]] void magnitudes(const Complex* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kNumbers) {
    const Half size = magnitude(at(floats(x + i), 2 * (n - i)));
    std::memcpy(y + i, &size, sizeof(float) * size_t(n - i < kNumbers ? n - i : kNumbers));
  }
}

}  // namespace

extern const VectorKernels<Complex> complex_kernels;
constinit const VectorKernels<Complex> complex_kernels = {
    .add = binary<[](F a, F b) { return a + b; }>,
    .subtract = binary<[](F a, F b) { return a - b; }>,
    .multiply = binary<[](F a, F b) { return multiply(a, b); }>,
    .divide = binary<[](F a, F b) { return divide(a, b); }>,
    .negative = unary<[](F x) { return -x; }>,
    .exp = unary<[](F x) { return exp_of(x); }>,
    .abs = magnitudes,
};

extern const ComplexFunctions functions_of_complex;
constinit const ComplexFunctions functions_of_complex = {
    .sqrt = unary<[](F x) { return sqrt_of(x); }>,
    .log = unary<[](F x) { return log_of(x); }>,
    .sin = unary<[](F x) { return sin_of(x); }>,
    .cos = unary<[](F x) { return cos_of(x); }>,
    .tanh = unary<[](F x) { return tanh_of(x); }>,
};

}  // namespace tapeflow::TAPEFLOW_ISA
