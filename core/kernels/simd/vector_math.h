// Mathematical functions on whole vectors of float and double: straight-line code, one source for all instruction sets.
// It owns no loop.
#pragma once

#include "kernels/simd/vector_basics.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

// ---- Exponentials -----------------------------------------------------------------------------------------------

// e^x = (1 + fraction) 2^exponent with |fraction| < 0.42, for |x| below 1000.
template <class V> struct Exponential {
  V fraction, exponent, biased;
  TAPEFLOW_INLINE V power() const { return (V)(bits(biased) << C<V>::mantissa_bits); }  // 2^exponent, if that is normal
  TAPEFLOW_INLINE V mantissa() const { return fraction + Element<V>(1); }
  TAPEFLOW_INLINE V times_mantissa(V a) const { return fma(a, fraction, a); }
  TAPEFLOW_INLINE V small() const { return scale_down(mantissa(), exponent); }  // e^x for x <= 0, denormals being 0
};

template <class V> TAPEFLOW_INLINE V expm1_reduced(V r) { return fma(r * r, polynomial(r, C<V>::exp), r); }

template <class V> constexpr Element<V> log2_e = Element<V>(1.4426950408889634074);

template <class V> TAPEFLOW_INLINE Exponential<V> exponential(V x) {
  V biased = fma(x, log2_e<V>, biased_rounder<V>), n = biased - biased_rounder<V>;
  return {expm1_reduced(fma(n, -C<V>::ln2_low, fma(n, -C<V>::ln2_high, x))), n, biased};
}

// e^(x + low), where `low` is an error term of x.
template <class V> TAPEFLOW_INLINE Exponential<V> exponential(V x, V low) {
  V biased = fma(x, log2_e<V>, biased_rounder<V>), n = biased - biased_rounder<V>;
  return {expm1_reduced(fma(n, -C<V>::ln2_high, x) + fma(n, -C<V>::ln2_low, low)), n, biased};
}

template <class V> TAPEFLOW_INLINE V exp(V x) {
  auto e = exponential(at_most(x, C<V>::exp_most));
  return scale(e.mantissa(), e.exponent, x, C<V>::exp_least);
}

template <class V> TAPEFLOW_INLINE V expm1(V x) {
  auto e = exponential(-at_most(-at_most(x, C<V>::exp_most), -C<V>::expm1_least));
  // Half of 2^n, because 2^n itself may overflow where the result does not.
  V half = (V)(bits(e.power()) - (typename C<V>::Word(1) << C<V>::mantissa_bits));
  V y = Element<V>(2) * fma(half, e.fraction, half - Element<V>(0.5));
  return copysign(e.exponent == Element<V>(0) ? e.fraction : y, x);
}

// tanh |x| = -z / (z + 2) for z = e^(-2|x|) - 1
template <class V> TAPEFLOW_INLINE V tanh(V x) {
  auto e = exponential(Element<V>(-2) * at_most(abs(x), C<V>::tanh_most));
  V power = e.power();
  V z = fma(power, e.fraction, power - Element<V>(1));
  return copysign(z / fma(power, e.fraction, power + Element<V>(1)), x);
}

// e^-|x|; for large positive x, where all users add it to something of size 1, it may stop at e^-40.
template <class V> TAPEFLOW_INLINE V decay(V x) {
  auto e = exponential(-abs(at_most(x, Element<V>(40))));
  return scale(e.mantissa(), e.exponent, x, C<V>::exp_least);
}

// With e = e^-|x| the logistic function is 1/(1+e) on the right side and e/(1+e) on the left.
template <class V> TAPEFLOW_INLINE V sigmoid(V x) {
  V e = decay(x);
  return (x < Element<V>(0) ? e : splat<V>(1)) / (e + Element<V>(1));
}

// x sigmoid(v) where `e` is e^-|v| and v has the sign of x. It is 0 for x < -most, and `a` is |x| bounded by that.
// The power of two comes last, that a denormal result is rounded once.
template <class V> TAPEFLOW_INLINE V gate(V x, V a, Element<V> most, const Exponential<V>& e) {
  auto left = x < Element<V>(0);
  V y = (left ? e.times_mantissa(a) : x) / (e.small() + Element<V>(1));
  return copysign(scale(y, left ? e.exponent : V{}, x, -most), x);
}

// d/dx of x sigmoid(v): s + x s (1 - s) v', by e = e^-|v|: s (1 - s) = e / (1+e)²
template <class V> TAPEFLOW_INLINE V gate_derivative(V x, V a, V v_derivative, const Exponential<V>& exponential) {
  V e = exponential.small();
  V r = Element<V>(1) / (e + Element<V>(1));
  return r * fma(copysign(a, x) * e, r * v_derivative, x < Element<V>(0) ? e : splat<V>(1));
}

template <class V> TAPEFLOW_INLINE V silu(V x) {
  V a = at_most(abs(x), C<V>::silu_most);
  return gate(x, a, C<V>::silu_most, exponential(-a));
}

template <class V> TAPEFLOW_INLINE V silu_derivative(V x) {
  V a = at_most(abs(x), C<V>::silu_most);
  return gate_derivative(x, a, splat<V>(1), exponential(-a));
}

// e^-v for v = sqrt(8/pi) (a + 0.044715 a³): gelu(x) = x sigmoid(v). v goes up to 800, so its rounding error,
// which becomes the relative error of e^-v, is carried along.
template <class V> TAPEFLOW_INLINE Exponential<V> gelu_exponential(V a) {
  V square = a * a;
  V cubic = square * C<V>::gelu_3;
  V sum = cubic + C<V>::gelu_1;
  V part = sum - cubic;
  V low = (cubic - (sum - part)) + (C<V>::gelu_1 - part);
  low += product_error(square, splat<V>(C<V>::gelu_3), cubic) + C<V>::gelu_1_low;
  low = fma(product_error(a, a, square), C<V>::gelu_3, fma(square, C<V>::gelu_3_low, low));
  V v = a * sum;
  return exponential(-v, -fma(a, low, product_error(a, sum, v)));
}

template <class V> TAPEFLOW_INLINE V gelu_tanh(V x) {
  V a = at_most(abs(x), C<V>::gelu_tanh_most);
  return gate(x, a, C<V>::gelu_tanh_most, gelu_exponential(a));
}

template <class V> TAPEFLOW_INLINE V gelu_tanh_derivative(V x) {
  V a = at_most(abs(x), C<V>::gelu_tanh_most);
  return gate_derivative(x, a, fma(a * a, 3 * C<V>::gelu_3, C<V>::gelu_1), gelu_exponential(a));
}

// ---- Logarithms -------------------------------------------------------------------------------------------------

// log(1 + f) + exponent ln(2), for f in [-1/4, 1/2]
template <class V> TAPEFLOW_INLINE V log_reduced(V f, V exponent) {
  if constexpr (sizeof(Element<V>) == 4) {
    V y = f * f * fma(f, polynomial(f, C<V>::log), Element<V>(-0.5));
    return fma(exponent, C<V>::ln2_high, f + fma(exponent, C<V>::ln2_low, y));
  } else {  // log(1+f) = f - f²/2 + s (f²/2 + R), s = f/(2+f)
    V s = f / (f + Element<V>(2)), z = s * s, h = Element<V>(0.5) * f * f;
    V y = fma(exponent, C<V>::ln2_low, s * fma(z, polynomial(z, C<V>::log), h));
    return fma(exponent, C<V>::ln2_high, f - (h - y));
  }
}

// x = mantissa 2^exponent with mantissa in [3/4, 3/2), for normal positive x.
template <class V> struct Split {
  V mantissa, exponent;
};

template <class V> TAPEFLOW_INLINE Split<V> split(V x) {
#if defined(__AVX512F__)
  V m, e;
  if constexpr (sizeof(Element<V>) == 4) {
    m = (V)_mm512_maskz_getmant_ps(all_lanes<F>, (__m512)x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero);
    e = (V)_mm512_maskz_getexp_ps(all_lanes<F>, (__m512)x);
  } else {
    m = (V)_mm512_maskz_getmant_pd(all_lanes<D>, (__m512d)x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero);
    e = (V)_mm512_maskz_getexp_pd(all_lanes<D>, (__m512d)x);
  }
  return {m, m < Element<V>(1) ? e + Element<V>(1) : e};
#else
  using Word = typename C<V>::Word;
  constexpr Word one = Word(C<V>::exponent_bias) << C<V>::mantissa_bits;
  constexpr Word quarter = Word(1) << (C<V>::mantissa_bits - 1);  // what to add to the bits of 3/4 to make those of 1
  Bits<V> biased = (bits(x) + quarter) >> C<V>::mantissa_bits;
  V mantissa = (V)(bits(x) - (biased << C<V>::mantissa_bits) + one);
  Bits<V> as_number = biased | __builtin_bit_cast(Word, C<V>::integer);
  return {mantissa, (V)as_number - (C<V>::integer + Element<V>(C<V>::exponent_bias))};
#endif
}

// Puts the logarithms of 0, negative numbers, infinity and NaN in place.
template <class V> TAPEFLOW_INLINE V log_special(V x, V y) {
#if !defined(__AVX512F__)  // there getexp(0) = -inf and getexp(inf) = inf have already done this
  y = x < C<V>::infinity ? y : x;
  y = x == Element<V>(0) ? splat<V>(-C<V>::infinity) : y;
#endif
  return x < Element<V>(0) ? splat<V>(C<V>::nan) : y;
}

template <class V> TAPEFLOW_INLINE V log(V x) {
#if defined(__AVX512F__)
  auto [m, e] = split(x);
#else
  constexpr auto lift = C<V>::integer;
  auto denormal = x < C<V>::smallest_normal;
  auto [m, e] = split(denormal ? x * lift : x);
  e = denormal ? e - Element<V>(C<V>::mantissa_bits) : e;
#endif
  return log_special(x, log_reduced(m - Element<V>(1), e));
}

// 1 + x = (1 + f) 2^e with f = (2^-e - 1) + 2^-e x, so that no digit of x is lost.
template <class V> TAPEFLOW_INLINE V log1p(V x) {
  V sum = x + Element<V>(1);
  auto [m, e] = split(sum);
  V power = power_of_two(-e);
  V f = fma(x, power, power - Element<V>(1));
  f = e > Element<V>(60) ? m - Element<V>(1) : f;
  return copysign(log_special(sum, log_reduced(f, e)), x);
}

// max(x, 0) + log(1 + e^-|x|)
template <class V> TAPEFLOW_INLINE V softplus(V x) {
  V e = decay(x);
  auto upper = e >= Element<V>(0.5);
  V f = upper ? e * Element<V>(0.5) - Element<V>(0.5) : e;
  return (x < Element<V>(0) ? V{} : x) + log_reduced(f, upper ? splat<V>(1) : V{});
}

// max(x, 0) - x z + log(1 + e^-|x|): the cross entropy of the label z and sigmoid(x)
template <class V> TAPEFLOW_INLINE V sigmoid_cross_entropy(V x, V z) {
  V e = exponential(-at_most(abs(x), -C<V>::exp_least)).small();
  auto upper = e >= Element<V>(0.5);
  V f = upper ? e * Element<V>(0.5) - Element<V>(0.5) : e;
  return ((x < Element<V>(0) ? V{} : x) - x * z) + log_reduced(f, upper ? splat<V>(1) : V{});
}

// x^y where both are known to double precision; negative x have powers with whole exponents.
TAPEFLOW_INLINE D power_in_double(D x, D y) {
  D size = abs(x);
  D power = exp(y * log(size));
  power = (x == 1.0) | (y == 0.0) | ((size == 1.0) & (y == y)) ? splat<D>(1) : power;
  D half = y * 0.5;
  auto whole = floor(y) == y, odd = whole & (floor(half) != half);
  auto negative = (decltype(odd))((bits(x) & sign_bit<D>) != 0);
  power = negative & odd ? -power : power;
  return (x < 0.0) & (x > -C<D>::infinity) & ~whole ? splat<D>(C<D>::nan) : power;
}

// x^y to 2^-28 by the parts of a normal x > 0 and a finite y: enough for floats, whose powers here neither overflow nor
// vanish. f is the mantissa - 1, and r is 1 / (f + 2) as a float, which one step of Newton's makes exact enough.
TAPEFLOW_INLINE D power_of_floats(D f, D r, D exponent, D y) {
  const D quotient = f * r, s = fma(fma(-quotient, f + 2.0, f), r, quotient);
  const D v = at_most(y * fma(s, polynomial(s * s, C<D>::log2), exponent), 1020);
  const D limited = v < -1020.0 ? splat<D>(-1020) : v;
  const D biased = limited + biased_rounder<D>, rest = limited - (biased - biased_rounder<D>);
  return fma(rest, polynomial(rest, C<D>::exp2), splat<D>(1)) * (D)(bits(biased) << C<D>::mantissa_bits);
}

// A function of doubles for vectors of floats.
template <class Function, class... Floats> TAPEFLOW_INLINE F by_halves(Function&& function, Floats... x) {
  typedef float Half __attribute__((vector_size(vector_bytes / 2)));
  Half result[2];
  const auto half_of = [](const F& x, int i) __attribute__((always_inline)) {
    Half half;
    __builtin_memcpy(&half, reinterpret_cast<const char*>(&x) + size_t(i) * sizeof half, sizeof half);
    return __builtin_convertvector(half, D);
  };
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) result[i] = __builtin_convertvector(function(half_of(x, i)...), Half);
  F whole;
  __builtin_memcpy(&whole, result, sizeof whole);
  return whole;
}

[[gnu::noinline]] inline F pow_unusual(F x, F y) {
  return by_halves([](D a, D b) __attribute__((always_inline)) { return power_in_double(a, b); }, x, y);
}

TAPEFLOW_INLINE F pow(F x, F y) {
  const F size = abs(x);
  if (any(~((size >= C<F>::smallest_normal) & (size < C<F>::infinity) & (abs(y) < C<F>::infinity))))
    return pow_unusual(x, y);
  const auto [mantissa, exponent] = split(size);
  const F f = mantissa - 1.0f;
  const F result =
      by_halves([](D a, D b, D c, D d) __attribute__((always_inline)) { return power_of_floats(a, b, c, d); }, f,
                1.0f / (f + 2.0f), exponent, y);
  const auto negative = x < 0.0f;
  if (!any(negative)) return result;
  const F half = y * 0.5f;
  const F signed_power = floor(half) != half ? -result : result;
  return negative ? (floor(y) == y ? signed_power : splat<F>(C<F>::nan)) : result;
}

TAPEFLOW_INLINE D pow(D x, D y) {
  for (int i = 0; i < lanes<D>; ++i) x[i] = __builtin_pow(x[i], y[i]);
  return x;
}

// pow with the exponents that mean a product or a root done by that.
template <class V> TAPEFLOW_INLINE V root(V x) { return x == -C<V>::infinity ? -x : sqrt(x) + Element<V>(0); }
template <class V> TAPEFLOW_INLINE V power(V x, V y) {
  V result = pow(x, y);
  result = y == Element<V>(1) ? x : y == Element<V>(2) ? x * x : result;
  return y == Element<V>(3) ? x * x * x : y == Element<V>(0.5) ? root(x) : result;
}

// ---- Hyperbolic functions and their inverses --------------------------------------------------------------------

// e^a / 2 for a whose e^a may overflow
template <class V> TAPEFLOW_INLINE V half_exp(V a) {
  V root = exp(a * Element<V>(0.5));
  return root * Element<V>(0.5) * root;
}

template <class V> TAPEFLOW_INLINE V sinh(V x) {
  V a = abs(x), e = expm1(a);
  V near = Element<V>(0.5) * (e + e / (e + Element<V>(1)));
  return copysign(a > C<V>::hyperbolic_most ? half_exp(a) : near, x);
}

template <class V> TAPEFLOW_INLINE V cosh(V x) {
  V a = abs(x), e = exp(a);
  return a > C<V>::hyperbolic_most ? half_exp(a) : fma(e, Element<V>(0.5), Element<V>(0.5) / e);
}

template <class V> constexpr Element<V> ln2 = Element<V>(0.69314718055994530942);

template <class V> TAPEFLOW_INLINE V asinh(V x) {
  V a = abs(x), near = at_most(a, C<V>::square_most), square = near * near;
  V y = log1p(near + square / (sqrt(square + Element<V>(1)) + Element<V>(1)));
  return copysign(a > C<V>::square_most ? log(a) + ln2<V> : y, x);
}

template <class V> TAPEFLOW_INLINE V acosh(V x) {
  V t = at_most(x, C<V>::square_most) - Element<V>(1);
  V y = log1p(t + sqrt(t * (t + Element<V>(2))));
  y = x > C<V>::square_most ? log(x) + ln2<V> : y;
  return x < Element<V>(1) ? splat<V>(C<V>::nan) : y;
}

template <class V> TAPEFLOW_INLINE V atanh(V x) {
  V a = abs(x);
  return copysign(Element<V>(0.5) * log1p((a + a) / (Element<V>(1) - a)), x);
}

// ---- Sine and cosine --------------------------------------------------------------------------------------------

template <bool cosine, class V> [[gnu::noinline, gnu::cold]] V trigonometric_far(V x, V y) {
  for (int i = 0; i < lanes<V>; ++i)
    if (!(__builtin_fabs(double(x[i])) <= double(C<V>::trigonometric_most)))
      y[i] = cosine ? std::cos(x[i]) : std::sin(x[i]);
  return y;
}

// x = n pi/2 + r; the quadrant n mod 4 says which of ±sin(r), ±cos(r) to take. Far arguments are left to libm.
template <bool cosine, class V> TAPEFLOW_INLINE V trigonometric(V x) {
  using Word = typename C<V>::Word;
  V a = abs(x);
  V rounded = fma(a, Element<V>(0.63661977236758134308), rounder<V>);
  V n = rounded - rounder<V>;
  Bits<V> quadrant = bits(rounded) + Word(cosine);
  V r = a;
  if constexpr (fused)
    for (auto part : C<V>::half_pi) r = fma(n, -part, r);
  else
    for (auto part : C<V>::half_pi_short) r = r - n * part;
  V z = r * r;
  V s = fma(r * z, polynomial(z, C<V>::sin), r);
  V c = fma(z * z, polynomial(z, C<V>::cos), fma(z, Element<V>(-0.5), Element<V>(1)));
  V y = (quadrant & Word(1)) != Word(0) ? c : s;
  y = (V)(bits(y) ^ ((quadrant << (sizeof(Word) * 8 - 2)) & sign_bit<V>));
  if (!cosine) y = (V)(bits(y) ^ (bits(x) & sign_bit<V>));
  if (__builtin_expect(any(a > C<V>::trigonometric_most), 0)) y = trigonometric_far<cosine>(x, y);
  return y;
}

template <class V> TAPEFLOW_INLINE V sin(V x) { return trigonometric<false>(x); }

template <class V> TAPEFLOW_INLINE V cos(V x) { return trigonometric<true>(x); }

template <class V> TAPEFLOW_INLINE V tan(V x) { return sin(x) / cos(x); }

// atan(a) is atan(r) for small a, pi/4 + atan((a-1)/(a+1)) around 1, and pi/2 - atan(1/a) beyond.
template <class V> TAPEFLOW_INLINE V atan(V x) {
  V a = abs(x);
  auto middle = a > Element<V>(0.41421356237309504880), far = a > Element<V>(2.4142135623730950488);
  V r = (far ? splat<V>(-1) : middle ? a - Element<V>(1) : a) / (far ? a : middle ? a + Element<V>(1) : splat<V>(1));
  V z = r * r, quarters = far ? splat<V>(1) : middle ? splat<V>(0.5) : V{};
  V y = fma(r * z, polynomial(z, C<V>::atan), r);
  return copysign(fma(quarters, C<V>::half_pi[0], fma(quarters, C<V>::half_pi[1], y)), x);
}

template <class V> TAPEFLOW_INLINE V asin(V x) { return atan(x / sqrt((Element<V>(1) - x) * (Element<V>(1) + x))); }

template <class V> TAPEFLOW_INLINE V acos(V x) {
  return Element<V>(2) * atan(sqrt((Element<V>(1) - x) / (Element<V>(1) + x)));
}

// ---- The error function and what is built on it -----------------------------------------------------------------

// In both tails the polynomial is nearly constant, so that the errors of its variable hardly matter.

// e^(z²) erfc(z) for z >= 0
template <class V> TAPEFLOW_INLINE V erfc_tail(V z) {
  constexpr auto k = C<V>::erfcx_middle;
  return short_polynomial((z - k) / (z + k), C<V>::erfcx) / fma(z, Element<V>(2), Element<V>(1));
}

// e^(a²/2) Phi(-a) for a >= 0
template <class V> TAPEFLOW_INLINE V normal_tail(V a) {
  constexpr auto k = C<V>::normal_middle;
  if constexpr (sizeof(Element<V>) == 4) {
    const V t = Element<V>(1) / (a + k);
    return t * short_polynomial(fma(t, splat<V>(-2 * k), splat<V>(1)), C<V>::normal);
  } else {
    return short_polynomial((a - k) / (a + k), C<V>::normal) / (a + Element<V>(0.75));
  }
}

// e^(-factor a²), the rounding error of a² carried along
template <class V> TAPEFLOW_INLINE Exponential<V> gaussian(V a, Element<V> factor) {
  V square = a * a;
  return exponential(-factor * square, -factor * product_error(a, a, square));
}

template <class V> TAPEFLOW_INLINE V erf_of_small(V x) {  // |x| <= 1
  return fma(x, polynomial(x * x, C<V>::erf), x);
}

template <class V> TAPEFLOW_INLINE V erfc_of_large(V x) {
  V a = at_most(abs(x), C<V>::erfc_most);
  auto e = gaussian(a, 1);
  V y = e.times_mantissa(erfc_tail(a));
  return x < Element<V>(0) ? Element<V>(2) - scale_down(y, e.exponent) : scale(y, e.exponent, -x, -C<V>::erfc_most);
}

template <class V> TAPEFLOW_INLINE V erfc(V x) {
  return abs(x) < Element<V>(0.55) ? Element<V>(1) - erf_of_small(x) : erfc_of_large(x);
}

// 1 - erfc(a) for a >= 1
template <class V> TAPEFLOW_INLINE V erf_of_large(V a) {
  if constexpr (sizeof(Element<V>) == 4) {
    auto e = exponential(polynomial(at_most(a, Element<V>(4)), C<V>::log_erfc));
    V power = e.power();
    return fma(-power, e.fraction, Element<V>(1) - power);
  } else {
    return Element<V>(1) - erfc_of_large(at_most(a, Element<V>(6)));
  }
}

template <class V> TAPEFLOW_INLINE V erf(V x) {
  V a = abs(x);
  return a > Element<V>(1) ? copysign(erf_of_large(a), x) : erf_of_small(x);
}

// x Phi(x) = max(x, 0) - |x| Phi(-|x|)
template <class V> TAPEFLOW_INLINE V gelu_erf(V x) {
  V a = at_most(abs(x), C<V>::gelu_erf_most);
  auto e = gaussian(a, Element<V>(0.5));
  V below = scale(e.times_mantissa(a * normal_tail(a)), e.exponent, x, -C<V>::gelu_erf_most);
  return (Element<V>(-0.0) > x ? splat<V>(Element<V>(-0.0)) : x) - below;
}

// Phi(x) + x phi(x)
template <class V> TAPEFLOW_INLINE V gelu_erf_derivative(V x) {
  V a = at_most(abs(x), C<V>::gelu_erf_most);
  V e = gaussian(a, Element<V>(0.5)).small();
  V tail = e * normal_tail(a);
  V x_phi = copysign(a, x) * (e * Element<V>(0.39894228040143267794));
  return x_phi + (x < Element<V>(0) ? tail : Element<V>(1) - tail);
}

}  // namespace
}  // namespace tapeflow::TAPEFLOW_ISA
