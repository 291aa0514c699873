// Mathematical functions on whole vectors of float and double: straight-line code, one source for all instruction sets.
// It owns no loop. All is internal to the including file, which defines TAPEFLOW_ISA; compile it with
// -ffp-contract=off, for the sums with error terms rely on each operation being rounded as written.
//
// The polynomials are minimax fits made for this file with a Remez exchange (mpmath, 50 digits); each names its
// interval and its largest error. Unless said otherwise that error is relative to the function.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define TAPEFLOW_INLINE [[gnu::always_inline]] inline

namespace tapeflow::TAPEFLOW_ISA {
namespace {

#if defined(__AVX512F__)
constexpr size_t vector_bytes = 64;
#elif defined(__AVX2__)
constexpr size_t vector_bytes = 32;
#else
constexpr size_t vector_bytes = 16;
#endif

#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
constexpr bool fused = true;  // fma() rounds once; otherwise it is a product and a sum
#else
constexpr bool fused = false;
#endif

template <class T> struct VectorOf {
  typedef T type __attribute__((vector_size(vector_bytes)));
};
template <class T> using Vector = typename VectorOf<T>::type;
using F = Vector<float>;
using D = Vector<double>;

template <class V> struct VectorTraits;
template <> struct VectorTraits<F> {
  using Element = float;
  using Bits = Vector<uint32_t>;
};
template <> struct VectorTraits<D> {
  using Element = double;
  using Bits = Vector<uint64_t>;
};
template <class V> using Element = typename VectorTraits<V>::Element;
template <class V> using Bits = typename VectorTraits<V>::Bits;
template <class V> constexpr int lanes = static_cast<int>(sizeof(V) / sizeof(Element<V>));

#if defined(__AVX512F__)
// For the maskz forms of intrinsics: the plain ones of GCC 12 draw a false warning (its bug 105593).
template <class V> constexpr auto all_lanes = static_cast<__mmask16>((1u << lanes<V>)-1);
#endif

template <class T> struct Constants;

template <> struct Constants<float> {
  using Word = uint32_t;
  static constexpr int mantissa_bits = 23, exponent_bias = 127, least_exponent = -126;
  static constexpr float infinity = __builtin_inff(), nan = __builtin_nanf(""), smallest_normal = 0x1p-126f;
  static constexpr float integer = 0x1p23f;  // from here on every float is a whole number

  static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;  // high times an exponent is exact
  static constexpr float exp_least = -104, exp_most = 89;                     // beyond: 0 and infinity
  static constexpr float expm1_least = -20, tanh_most = 10, silu_most = 110, gelu_tanh_most = 11, gelu_erf_most = 14.6f,
                         erfc_most = 10.3f;
  // (e^r - 1 - r) / r² on |r| <= ln(2)/2, error of e^r - 1 2^-26.1
  static constexpr float exp[] = {0.49999997f, 0.166665435f, 0.0416672006f, 0.00836657919f, 0.00138825167f};
  // (log(1+f) - f + f²/2) / f³ on [-1/4, 1/2], error of log 2^-27.6
  static constexpr float log[] = {0.333334476f, -0.250000954f, 0.199908644f, -0.166473195f,
                                  0.144783601f, -0.131611407f, 0.104631715f, -0.0450771563f};
  // sin(r) / r³ - 1/r² by r² on |r| <= pi/4, 2^-28.0; (cos(r) - 1 + r²/2) / r⁴ likewise, 2^-33.0
  static constexpr float sin[] = {-0.166666552f, 0.00833217334f, -0.000195166707f};
  static constexpr float cos[] = {0.0416666456f, -0.00138873106f, 2.44324547e-05f};
  static constexpr float half_pi[] = {0x1.921fb6p+0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f};
  static constexpr float half_pi_short[] = {0x1.92p+0f, 0x1.fb4p-12f, 0x1.444p-24f, 0x1.68c234p-39f};
  static constexpr float trigonometric_most = fused ? 1e5f : 1.2e4f;
  // (atan(r) / r - 1) / r² by r² on |r| <= sqrt(2) - 1, 2^-30.4
  static constexpr float atan[] = {-0.333333152f, 0.199984715f, -0.142435333f, 0.105938137f, -0.0607822128f};
  static constexpr float hyperbolic_most = 87, square_most = 1e4f;  // beyond: e^x may overflow; x² + 1 is x²
  // erf(x)/x - 1 by x² on |x| <= 1, 2^-29.6
  static constexpr float erf[] = {0.12837917f,    -0.37612626f,     0.112835854f,   -0.0268538129f,
                                  0.00518832775f, -0.000801019545f, 7.85386801e-05f};
  // e^(z²) erfc(z) (1 + 2z) by q = (z-k)/(z+k) on 0 <= z <= 10.3, 2^-28.8; k is such that the first coefficient,
  // to which all others are small, is almost a float: rounded to floats the error is still 2^-26.6
  static constexpr float erfcx_middle = 2.84375f;
  static constexpr float erfcx[] = {1.25659776f,    -0.132695347f,    -0.0619510598f,  0.13937372f,
                                    -0.116982497f,  0.0587982833f,    -0.0153869968f,  -0.00110481447f,
                                    0.00213387678f, -0.000177246911f, -0.000216487344f};
  // e^(a²/2) Phi(-a) (a + 3/4) by q = (a-k)/(a+k) on 0 <= a <= 14.6, 2^-28.5; k chosen likewise
  static constexpr float normal_middle = 4.28125f;
  static constexpr float normal[] = {0.446595103f,    -0.0550468042f,   -0.0107245659f,  0.0419819728f,
                                     -0.0406655557f,  0.0241250955f,    -0.00883141439f, 0.00118488388f,
                                     0.000657256518f, -0.000305695808f, -9.13689873e-05f};
  // sqrt(8/pi) and 0.044715 sqrt(8/pi), each with the part that the first does not hold
  static constexpr float gelu_1 = 0x1.988454p+0f, gelu_1_low = -0x1.857936p-25f;
  static constexpr float gelu_3 = 0x1.2444f2p-4f, gelu_3_low = 0x1.49b16ap-29f;
};

template <> struct Constants<double> {
  using Word = uint64_t;
  static constexpr int mantissa_bits = 52, exponent_bias = 1023, least_exponent = -1022;
  static constexpr double infinity = __builtin_inf(), nan = __builtin_nan(""), smallest_normal = 0x1p-1022;
  static constexpr double integer = 0x1p52;

  static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
  static constexpr double exp_least = -746, exp_most = 710;
  static constexpr double expm1_least = -40, tanh_most = 20, silu_most = 760, gelu_tanh_most = 22, gelu_erf_most = 39,
                          erfc_most = 27.6;
  // as above; error of e^r - 1 2^-55.5
  static constexpr double exp[] = {0.50000000000000056,    0.16666666666666585,    0.041666666666576167,
                                   0.0083333333333914655,  0.0013888888931798166,  0.00019841269715457997,
                                   2.4801504964032159e-05, 2.7557410156878017e-06, 2.7626169299393923e-07,
                                   2.505312658599978e-08};
  // (2 atanh(s)/s - 2) / s² by s² on s <= 1/5, error of log 2^-55.8
  static constexpr double log[] = {0.66666666666672714, 0.39999999996161573, 0.2857142939530764, 0.22222138500295585,
                                   0.18186356113153568, 0.15250187840282875, 0.15368195899136769};
  // as above; 2^-57.9 and 2^-63.9
  static constexpr double sin[] = {-0.16666666666666632,   0.0083333333333223177,  -0.00019841269829727341,
                                   2.7557313662831235e-06, -2.505075339051669e-08, 1.5896512513266107e-10};
  static constexpr double cos[] = {0.041666666666666595,    -0.00138888888888729,   2.4801587288750636e-05,
                                   -2.7557314149346894e-07, 2.0875696673060829e-09, -1.1358315799879961e-11};
  static constexpr double half_pi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
  static constexpr double half_pi_short[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69,
                                             0x1.b839a252049c1p-104};
  static constexpr double trigonometric_most = 1e6;
  // as above; 2^-59.4
  static constexpr double atan[] = {-0.33333333333333196,  0.19999999999953245,   -0.14285714280166435,
                                    0.11111110782150709,   -0.090908977251696729, 0.0769205971652639,
                                    -0.066630991984599215, 0.058478592639199784,  -0.050391904926231846,
                                    0.038062143922087658,  -0.017905046084381145};
  static constexpr double hyperbolic_most = 708, square_most = 1e8;
  // as above; 2^-56.9
  static constexpr double erf[] = {0.12837916709551258,     -0.37612638903183521,    0.11283791670944185,
                                   -0.026866170643111524,   0.0052239776061188854,   -0.0008548325929331682,
                                   0.00012055293577351906,  -1.4924712309643737e-05, 1.6447131654160477e-06,
                                   -1.6206314314998661e-07, 1.3710982496104633e-08,  -7.7794718756366718e-10};
  // as above on 0 <= z <= 27.6, 2^-57.0
  static constexpr double erfcx_middle = 3.5;
  static constexpr double erfcx[] = {
      1.2423492448711544,      -0.14000918013761929,    -0.010555596332215554,  0.097519095153240976,
      -0.1150895981603563,     0.08798315382548659,     -0.048823325823965855,  0.019099330932523619,
      -0.0042150199571389753,  -0.00030226779208478627, 0.00056438478521325121, -0.00012151286005414937,
      -4.278396165890807e-05,  2.4262337381217743e-05,  2.3335925311699412e-06, -3.8172194664675331e-06,
      -5.4664013943403909e-08, 6.0366319156007844e-07,  4.8965235229600244e-09, -9.5448219931267127e-08,
      -8.3698976137057411e-09, 1.1120384257696683e-08,  2.698588441887423e-09};
  // as above on 0 <= a <= 39, 2^-57.8
  static constexpr double normal_middle = 5.5;
  static constexpr double normal[] = {
      0.43964183765704928,    -0.055180965070607366,   0.0084415280829534603,   0.022729696814701779,
      -0.034707304980234589,  0.031749976712135218,    -0.021748163382538269,   0.011562869803061079,
      -0.0046243666821419735, 0.0012081084283423456,   -6.7967942109340974e-05, -9.9558156405223352e-05,
      4.0110876170609061e-05, 1.6148669590862797e-07,  -4.9793857568976175e-06, 1.0359839702897894e-06,
      4.8839098342714301e-07, -2.1678706874839747e-07, -4.7995914084511416e-08, 3.4974012934819525e-08,
      6.6949617382586153e-09, -4.00174396468127e-09,   -1.1463291235126691e-09};
  static constexpr double gelu_1 = 0x1.9884533d43651p+0, gelu_1_low = -0x1.cbc0d30ebfd15p-54;
  static constexpr double gelu_3 = 0x1.2444f2a4d8b4bp-4, gelu_3_low = -0x1.6c843a29d1c70p-61;
};

template <class V> using C = Constants<Element<V>>;

// ---- Parts: signs, bits, rounding -------------------------------------------------------------------------------

template <class V> TAPEFLOW_INLINE V splat(Element<V> x) { return x - V{}; }

template <class V> TAPEFLOW_INLINE Bits<V> bits(V x) { return (Bits<V>)x; }

template <class V> constexpr typename C<V>::Word sign_bit = typename C<V>::Word(1) << (sizeof(Element<V>) * 8 - 1);

template <class V> TAPEFLOW_INLINE V abs(V x) { return (V)(bits(x) & ~sign_bit<V>); }

template <class V> TAPEFLOW_INLINE V copysign(V magnitude, V sign) {
#if defined(__AVX512F__)
  auto mask = (__m512i)(Bits<V>{} + sign_bit<V>);
  return (V)_mm512_ternarylogic_epi64(mask, (__m512i)sign, (__m512i)magnitude, 0xca);  // mask ? sign : magnitude
#else
  return (V)((bits(magnitude) & ~sign_bit<V>) | (bits(sign) & sign_bit<V>));
#endif
}

// The lesser of both; a NaN in `x` stays.
template <class V> TAPEFLOW_INLINE V at_most(V x, Element<V> limit) {
  V bound = splat<V>(limit);
#if defined(__AVX512F__)
  if constexpr (sizeof(Element<V>) == 4) return (V)_mm512_maskz_min_ps(all_lanes<V>, (__m512)bound, (__m512)x);
  if constexpr (sizeof(Element<V>) == 8) return (V)_mm512_maskz_min_pd(all_lanes<V>, (__m512d)bound, (__m512d)x);
#elif defined(__AVX2__)
  if constexpr (sizeof(Element<V>) == 4) return (V)_mm256_min_ps((__m256)bound, (__m256)x);
  if constexpr (sizeof(Element<V>) == 8) return (V)_mm256_min_pd((__m256d)bound, (__m256d)x);
#elif defined(__x86_64__)
  if constexpr (sizeof(Element<V>) == 4) return (V)_mm_min_ps((__m128)bound, (__m128)x);
  if constexpr (sizeof(Element<V>) == 8) return (V)_mm_min_pd((__m128d)bound, (__m128d)x);
#else
  return bound < x ? bound : x;
#endif
}

TAPEFLOW_INLINE F fma(F a, F b, F c) {
#if defined(__AVX512F__)
  return (F)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  return (F)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}

TAPEFLOW_INLINE D fma(D a, D b, D c) {
#if defined(__AVX512F__)
  return (D)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
  return (D)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
  return (D)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  return a * b + c;
#endif
}

template <class V> TAPEFLOW_INLINE V fma(V a, Element<V> b, V c) { return fma(a, splat<V>(b), c); }

template <class V> TAPEFLOW_INLINE V fma(V a, Element<V> b, Element<V> c) { return fma(a, splat<V>(b), splat<V>(c)); }

template <class V> TAPEFLOW_INLINE V fma(V a, V b, Element<V> c) { return fma(a, b, splat<V>(c)); }

// c[0] + c[1] x + c[2] x² + ...
template <class V, size_t n> TAPEFLOW_INLINE V polynomial(V x, const Element<V> (&c)[n]) {
  V y = splat<V>(c[n - 1]);
#pragma GCC unroll 32
  for (int i = int(n) - 2; i >= 0; --i) y = fma(y, x, c[i]);
  return y;
}

TAPEFLOW_INLINE F sqrt(F x) {
#if defined(__AVX512F__)
  return (F)_mm512_maskz_sqrt_ps(all_lanes<F>, (__m512)x);
#elif defined(__AVX2__)
  return (F)_mm256_sqrt_ps((__m256)x);
#elif defined(__x86_64__)
  return (F)_mm_sqrt_ps((__m128)x);
#elif defined(__aarch64__)
  return (F)vsqrtq_f32((float32x4_t)x);
#else
  for (int i = 0; i < lanes<F>; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

TAPEFLOW_INLINE D sqrt(D x) {
#if defined(__AVX512F__)
  return (D)_mm512_maskz_sqrt_pd(all_lanes<D>, (__m512d)x);
#elif defined(__AVX2__)
  return (D)_mm256_sqrt_pd((__m256d)x);
#elif defined(__x86_64__)
  return (D)_mm_sqrt_pd((__m128d)x);
#elif defined(__aarch64__)
  return (D)vsqrtq_f64((float64x2_t)x);
#else
  for (int i = 0; i < lanes<D>; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
#endif
}

template <class V> TAPEFLOW_INLINE bool any(V condition) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask((__m512i)condition, (__m512i)condition) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_epi8((__m256i)condition) != 0;
#elif defined(__x86_64__)
  return _mm_movemask_epi8((__m128i)condition) != 0;
#else
  auto words = (Vector<uint64_t>)condition;
  return (words[0] | words[1]) != 0;
#endif
}

// Adding 1.5 * 2^mantissa_bits leaves the nearest integer in the low bits of the sum; |x| must be well below that.
template <class V> constexpr Element<V> rounder = C<V>::integer * Element<V>(1.5);

template <class V> TAPEFLOW_INLINE V rint(V x) {
  V a = abs(x);
  V whole = copysign((a + C<V>::integer) - C<V>::integer, x);
  return a < C<V>::integer ? whole : x;
}

template <class V> TAPEFLOW_INLINE V floor(V x) {
  V y = rint(x);
  return y > x ? y - Element<V>(1) : y;
}

template <class V> TAPEFLOW_INLINE V ceil(V x) {
  V y = rint(x);
  return copysign(y < x ? y + Element<V>(1) : y, x);
}

// n plus this, shifted, is 2^n: the low bits hold n + bias.
template <class V> constexpr Element<V> biased_rounder = rounder<V> + Element<V>(C<V>::exponent_bias);

// 2^n for whole n with a normal result.
template <class V> TAPEFLOW_INLINE V power_of_two(V n) {
  return (V)(bits(n + biased_rounder<V>) << C<V>::mantissa_bits);
}

// y 2^n for whole n, right also where it overflows or is denormal; 0 where x < least, whatever y and n are there.
template <class V> TAPEFLOW_INLINE V scale(V y, V n, V x, Element<V> least) {
#if defined(__AVX512F__)  // masked, because scalef takes 200 cycles for a result that vanishes
  if constexpr (sizeof(Element<V>) == 4) {
    auto mask = _mm512_cmp_ps_mask((__m512)x, (__m512)splat<V>(least), _CMP_NLT_UQ);
    return (V)_mm512_maskz_scalef_ps(mask, (__m512)y, (__m512)n);
  } else {
    auto mask = _mm512_cmp_pd_mask((__m512d)x, (__m512d)splat<V>(least), _CMP_NLT_UQ);
    return (V)_mm512_maskz_scalef_pd(mask, (__m512d)y, (__m512d)n);
  }
#else
  V half = (n * Element<V>(0.5) + rounder<V>)-rounder<V>;
  y = y * power_of_two(half) * power_of_two(n - half);
  return x < least ? V{} : y;
#endif
}

// y 2^n for |y| about 1 and n below the greatest exponent; 0 where it would be denormal.
template <class V> TAPEFLOW_INLINE V scale_down(V y, V n) {
  constexpr auto least = Element<V>(C<V>::least_exponent);
#if defined(__AVX512F__)
  return scale(y, n, n, least);
#else
  return n < least ? V{} : y * power_of_two(n);
#endif
}

// a b - p, exactly, where p is a b rounded.
template <class V> TAPEFLOW_INLINE V product_error(V a, V b, V p) {
  if constexpr (fused) return fma(a, b, -p);
  constexpr auto keep = ~typename C<V>::Word(0) << (C<V>::mantissa_bits / 2 + 1);
  V a_high = (V)(bits(a) & keep), b_high = (V)(bits(b) & keep);
  V a_low = a - a_high, b_low = b - b_high;
  return ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

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
template <class V> TAPEFLOW_INLINE V gate_slope(V x, V a, V v_slope, const Exponential<V>& exponential) {
  V e = exponential.small();
  V r = Element<V>(1) / (e + Element<V>(1));
  return r * fma(copysign(a, x) * e, r * v_slope, x < Element<V>(0) ? e : splat<V>(1));
}

template <class V> TAPEFLOW_INLINE V silu(V x) {
  V a = at_most(abs(x), C<V>::silu_most);
  return gate(x, a, C<V>::silu_most, exponential(-a));
}

template <class V> TAPEFLOW_INLINE V silu_slope(V x) {
  V a = at_most(abs(x), C<V>::silu_most);
  return gate_slope(x, a, splat<V>(1), exponential(-a));
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

template <class V> TAPEFLOW_INLINE V gelu_tanh_slope(V x) {
  V a = at_most(abs(x), C<V>::gelu_tanh_most);
  return gate_slope(x, a, fma(a * a, 3 * C<V>::gelu_3, C<V>::gelu_1), gelu_exponential(a));
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

TAPEFLOW_INLINE F pow(F x, F y) {
  typedef float Half __attribute__((vector_size(vector_bytes / 2)));
  Half x_half[2], y_half[2], result_half[2];
  __builtin_memcpy(x_half, &x, sizeof x);
  __builtin_memcpy(y_half, &y, sizeof y);
  for (int i = 0; i < 2; ++i) {
    D power = power_in_double(__builtin_convertvector(x_half[i], D), __builtin_convertvector(y_half[i], D));
    result_half[i] = __builtin_convertvector(power, Half);
  }
  F result;
  __builtin_memcpy(&result, result_half, sizeof result);
  return result;
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
  return polynomial((z - k) / (z + k), C<V>::erfcx) / fma(z, Element<V>(2), Element<V>(1));
}

// e^(a²/2) Phi(-a) for a >= 0
template <class V> TAPEFLOW_INLINE V normal_tail(V a) {
  constexpr auto k = C<V>::normal_middle;
  return polynomial((a - k) / (a + k), C<V>::normal) / (a + Element<V>(0.75));
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

template <class V> TAPEFLOW_INLINE V erf(V x) {
  V far = Element<V>(1) - erfc_of_large(at_most(abs(x), Element<V>(6)));
  return abs(x) > Element<V>(1) ? copysign(far, x) : erf_of_small(x);
}

// x Phi(x)
template <class V> TAPEFLOW_INLINE V gelu_erf(V x) {
  V a = at_most(abs(x), C<V>::gelu_erf_most);
  auto e = gaussian(a, Element<V>(0.5));
  auto left = x < Element<V>(0);
  V tail = e.times_mantissa(normal_tail(a));
  V y = left ? a * tail : x * (Element<V>(1) - scale_down(tail, e.exponent));
  V far = scale(y, left ? e.exponent : V{}, x, -C<V>::gelu_erf_most);
  V half = Element<V>(0.5) * a, near = fma(half, erf_of_small(x * Element<V>(0.70710678118654752440)), half);
  return copysign(a < Element<V>(0.75) ? near : far, x);
}

// Phi(x) + x phi(x)
template <class V> TAPEFLOW_INLINE V gelu_erf_slope(V x) {
  V a = at_most(abs(x), C<V>::gelu_erf_most);
  V e = gaussian(a, Element<V>(0.5)).small();
  V tail = e * normal_tail(a);
  V x_phi = copysign(a, x) * (e * Element<V>(0.39894228040143267794));
  return x_phi + (x < Element<V>(0) ? tail : Element<V>(1) - tail);
}

}  // namespace
}  // namespace tapeflow::TAPEFLOW_ISA
