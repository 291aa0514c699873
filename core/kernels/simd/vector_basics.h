// Vectors of float and double, their constants, and the operations that mathematical functions are made of: signs,
// bits, rounding, scaling. One source for all instruction sets. All is internal to the including file, which defines
// TAPEFLOW_ISA; compile it with -ffp-contract=off, for the sums with error terms rely on each operation being rounded
// as written.
//
// The polynomials are minimax fits made for this file with a Remez exchange (mpmath, 50 digits); each names its
// interval and its largest error. Unless said otherwise that error is relative to the function.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

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

// Lane i of the result is lane index(i) of the lanes of `a` followed by those of `b`.
template <auto index, class V, int... I> TAPEFLOW_INLINE V shuffle(V a, V b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, index(I)...);
}
template <auto index, class V> TAPEFLOW_INLINE V shuffle(V a, V b) {
  return shuffle<index>(a, b, std::make_integer_sequence<int, lanes<V>>());
}

#if defined(__AVX512F__)
// For the maskz forms of intrinsics: the plain ones of GCC 12 draw a false warning (its bug 105593).
template <class V> constexpr auto all_lanes = static_cast<__mmask16>((1u << lanes<V>)-1);
#endif

template <class T> struct Constants;

template <> struct Constants<float> {
  using Word = uint32_t;
  static constexpr int mantissa_bits = 23, exponent_bias = 127, least_exponent = -126;
  static constexpr float infinity = __builtin_inff(), nan = __builtin_nanf(""), smallest_normal = 0x1p-126f;
  static constexpr float integer = 0x1p23f;  // from here on every float is an integer

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
  // log erfc(x) on 1 <= x <= 4; its error times erfc(x) is 2^-29.8
  static constexpr float log_erfc[] = {-0.000353716547f, -1.12704003f,    -0.638225675f,  -0.103037387f,
                                       0.0218053255f,    -0.00293960911f, 0.000185574187f};
  // e^(z²) erfc(z) (1 + 2z) by q = (z-k)/(z+k) on 0 <= z <= 10.3, 2^-28.8; k is such that the first coefficient,
  // to which all others are small, is almost a float: rounded to floats the error is still 2^-26.6
  static constexpr float erfcx_middle = 2.84375f;
  static constexpr float erfcx[] = {1.25659776f,    -0.132695347f,    -0.0619510598f,  0.13937372f,
                                    -0.116982497f,  0.0587982833f,    -0.0153869968f,  -0.00110481447f,
                                    0.00213387678f, -0.000177246911f, -0.000216487344f};
  // e^(a²/2) Phi(-a) (a + k) by q = (a-k)/(a+k) = 1 - 2k/(a+k) on 0 <= a <= 14.6, 2^-26.9
  static constexpr float normal_middle = 1.5f;
  static constexpr float normal[] = {0.617341995f,    -0.195099458f,   -0.0574957021f,  0.0178960934f,
                                     0.0176428985f,   0.00399130769f,  -0.00244365097f, -0.00272029126f,
                                     -0.00102704507f, 0.000264213508f, 0.000457506569f, 0.00014414324f};
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
  // for powers of floats: log2((1+s) / (1-s)) / s by s² on s <= 1/5, 2^-42.4; (2^r - 1) / r on |r| <= 1/2, error of
  // 2^r 2^-28.9
  static constexpr double log2[] = {2.8853900817774285,  0.9617966948202743,  0.57707775678392081,
                                    0.41222607903241654, 0.31928804865658561, 0.29079804106545515};
  static constexpr double exp2[] = {0.69314720285530551,   0.24022647913606343,   0.055503324705739598,
                                    0.0096184373586839182, 0.0013398874642041037, 0.00015353362122401404};
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

// The same, with four chains of sums side by side behind the first coefficient, which is the largest.
template <class V, size_t n> TAPEFLOW_INLINE V short_polynomial(V x, const Element<V> (&c)[n]) {
  V square = x * x, fourth = square * square, part[(n + 2) / 4];
#pragma GCC unroll 16
  for (size_t i = 0; i < (n + 2) / 4; ++i) {
    const size_t k = 4 * i + 1;
    auto pair = [&](size_t at) { return at + 1 < n ? fma(x, splat<V>(c[at + 1]), splat<V>(c[at])) : splat<V>(c[at]); };
    part[i] = k + 2 < n ? fma(square, pair(k + 2), pair(k)) : pair(k);
  }
  V rest = part[(n + 2) / 4 - 1];
#pragma GCC unroll 16
  for (int i = int(n + 2) / 4 - 2; i >= 0; --i) rest = fma(rest, fourth, part[i]);
  return fma(x, rest, splat<V>(c[0]));
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

// Bit i tells whether lane i of `a` equals that of `b`.
template <class V> TAPEFLOW_INLINE uint32_t equal_lanes(V a, V b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Element<V>) == 4)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
  else
    return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_EQ_OQ);
#elif defined(__AVX2__)
  if constexpr (sizeof(Element<V>) == 4)
    return uint32_t(_mm256_movemask_ps((__m256)(a == b)));
  else
    return uint32_t(_mm256_movemask_pd((__m256d)(a == b)));
#elif defined(__x86_64__)
  if constexpr (sizeof(Element<V>) == 4)
    return uint32_t(_mm_movemask_ps((__m128)(a == b)));
  else
    return uint32_t(_mm_movemask_pd((__m128d)(a == b)));
#else
  uint32_t equal = 0;
  for (int i = 0; i < lanes<V>; ++i) equal |= uint32_t(a[i] == b[i]) << i;
  return equal;
#endif
}

// Adding 1.5 * 2^mantissa_bits leaves the nearest integer in the low bits of the sum; |x| must be well below that.
template <class V> constexpr Element<V> rounder = C<V>::integer * Element<V>(1.5);

#if defined(__AVX2__)
// Rounds by the instruction; `mode` is one of _MM_FROUND_TO_*.
#if defined(__AVX512F__)  // with a mask of all lanes: GCC 12 warns of the form without one
template <int mode> TAPEFLOW_INLINE F round(F x) {
  return (F)_mm512_maskz_roundscale_ps(__mmask16(-1), (__m512)x, mode | _MM_FROUND_NO_EXC);
}
template <int mode> TAPEFLOW_INLINE D round(D x) {
  return (D)_mm512_maskz_roundscale_pd(__mmask8(-1), (__m512d)x, mode | _MM_FROUND_NO_EXC);
}
#else
template <int mode> TAPEFLOW_INLINE F round(F x) { return (F)_mm256_round_ps((__m256)x, mode | _MM_FROUND_NO_EXC); }
template <int mode> TAPEFLOW_INLINE D round(D x) { return (D)_mm256_round_pd((__m256d)x, mode | _MM_FROUND_NO_EXC); }
#endif
template <class V> TAPEFLOW_INLINE V rint(V x) { return round<_MM_FROUND_TO_NEAREST_INT>(x); }
template <class V> TAPEFLOW_INLINE V floor(V x) { return round<_MM_FROUND_TO_NEG_INF>(x); }
template <class V> TAPEFLOW_INLINE V ceil(V x) { return round<_MM_FROUND_TO_POS_INF>(x); }
#else
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
#endif

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
  // In two steps: one that stays among normal numbers, and 2^±shift, which rounds, vanishes or overflows.
  constexpr int shift = sizeof(Element<V>) == 4 ? 40 : 140;  // no n is below -166 and -1162
  constexpr auto small = Element<V>(sizeof(Element<V>) == 4 ? 0x1p-40 : 0x1p-140);
  auto down = n < Element<V>(0);
  V biased =
      n + (down ? splat<V>(biased_rounder<V> + Element<V>(shift)) : splat<V>(biased_rounder<V> - Element<V>(shift)));
  y = y * (V)(bits(biased) << C<V>::mantissa_bits) * (down ? splat<V>(small) : splat<V>(1 / small));
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

}  // namespace
}  // namespace tapeflow::TAPEFLOW_ISA
