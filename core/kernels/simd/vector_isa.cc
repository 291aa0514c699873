// The vector kernels for one instruction set: loops over arrays around the functions of vector_math.h.
// Compiled once per set with -DTAPEFLOW_ISA=<name>. Nothing here has external linkage but the tables, so that
// no function compiled for a newer machine can be linked into code that runs on an older one.
#include "kernels/copy.h"
#include "kernels/simd/vector.h"
#include "kernels/simd/vector_math.h"
#include "kernels/simd/vector_memory.h"

#include <cstring>

namespace tapeflow::TAPEFLOW_ISA {
namespace {

// ---- Elementwise --------------------------------------------------------------------------------------------------

// An operand of a kernel: an array, or one number for all elements.
template <class T> struct Array {
  const T* p;
  TAPEFLOW_INLINE Vector<T> at(int64_t i) const { return load(p + i); }
  TAPEFLOW_INLINE Vector<T> at(int64_t i, int64_t count) const { return load_first(p + i, count); }
};

template <class T> struct Number {
  T value;
  TAPEFLOW_INLINE Vector<T> at(int64_t) const { return splat<Vector<T>>(value); }
  TAPEFLOW_INLINE Vector<T> at(int64_t, int64_t) const { return splat<Vector<T>>(value); }
};

template <class T, class Function, class... Operands>
TAPEFLOW_INLINE void map(T* y, int64_t n, Function f, Operands... x) {
  constexpr int64_t width = lanes<Vector<T>>;
  int64_t i = 0;
  for (; i <= n - width; i += width) store(y + i, f(x.at(i)...));
  if (i < n) store_first(y + i, f(x.at(i, n - i)...), n - i);
}

template <class T, auto f> [[gnu::flatten]] void unary(const T* x, T* y, int64_t n) { map(y, n, f, Array<T>{x}); }

template <class T, auto f> struct Binary {
  [[gnu::flatten]] static void vv(const T* a, const T* b, T* y, int64_t n) { map(y, n, f, Array<T>{a}, Array<T>{b}); }
  [[gnu::flatten]] static void vs(const T* a, T b, T* y, int64_t n) { map(y, n, f, Array<T>{a}, Number<T>{b}); }
  [[gnu::flatten]] static void sv(T a, const T* b, T* y, int64_t n) { map(y, n, f, Number<T>{a}, Array<T>{b}); }
};

template <class T, auto f> constexpr BinaryKernel<T> binary = {Binary<T, f>::vv, Binary<T, f>::vs, Binary<T, f>::sv};

// Comparisons and choices between arrays of different types: plain loops, which the compiler turns into masks.
template <class T, auto f> struct Comparison {
  static void vv(const T* a, const T* b, bool* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  }
  static void vs(const T* a, T b, bool* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b);
  }
  static void sv(T a, const T* b, bool* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(a, b[i]);
  }
};

template <class T, auto f>
constexpr BinaryKernel<T, bool> comparison = {Comparison<T, f>::vv, Comparison<T, f>::vs, Comparison<T, f>::sv};

template <class T> struct Choice {
  static void vv(const bool* condition, const T* a, const T* b, T* y, int64_t n) {
    choose(y, n, condition, Array<T>{a}, Array<T>{b});
  }
  static void vs(const bool* condition, const T* a, T b, T* y, int64_t n) {
    choose(y, n, condition, Array<T>{a}, Number<T>{b});
  }
  static void sv(const bool* condition, T a, const T* b, T* y, int64_t n) {
    choose(y, n, condition, Number<T>{a}, Array<T>{b});
  }
  static void ss(const bool* condition, T a, T b, T* y, int64_t n) {
    choose(y, n, condition, Number<T>{a}, Number<T>{b});
  }

 private:
  template <class A, class B> TAPEFLOW_INLINE static void choose(T* y, int64_t n, const bool* condition, A a, B b) {
    using V = Vector<T>;
    constexpr int64_t width = lanes<V>;
    int64_t i = 0;
    for (; i <= n - width; i += width) store(y + i, blend(condition + i, a.at(i), b.at(i)));
    if (i == n) return;
    bool rest[width] = {};
    std::memcpy(rest, condition + i, size_t(n - i));
    store_first(y + i, blend(rest, a.at(i, n - i), b.at(i, n - i)), n - i);
  }
  // The lanes of `a` for which the condition holds, and of `b` for the others.
  TAPEFLOW_INLINE static Vector<T> blend(const bool* condition, Vector<T> a, Vector<T> b) {
    using V = Vector<T>;
#if defined(__AVX512F__)
    __m128i bytes = _mm_setzero_si128();
    std::memcpy(&bytes, condition, lanes<V>);
    const __mmask16 chosen = _mm_test_epi8_mask(bytes, bytes);
    if constexpr (sizeof(T) == 4)
      return (V)_mm512_mask_blend_ps(chosen, (__m512)b, (__m512)a);
    else
      return (V)_mm512_mask_blend_pd(__mmask8(chosen), (__m512d)b, (__m512d)a);
#elif defined(__AVX2__)
    __m128i bytes = _mm_setzero_si128();
    std::memcpy(&bytes, condition, lanes<V>);
    if constexpr (sizeof(T) == 4)
      return (V)_mm256_blendv_ps(
          (__m256)b, (__m256)a,
          _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_setzero_si256(), _mm256_cvtepu8_epi32(bytes))));
    else
      return (V)_mm256_blendv_pd(
          (__m256d)b, (__m256d)a,
          _mm256_castsi256_pd(_mm256_sub_epi64(_mm256_setzero_si256(), _mm256_cvtepu8_epi64(bytes))));
#else
    for (int k = 0; k < lanes<V>; ++k) b[k] = condition[k] ? a[k] : b[k];
    return b;
#endif
  }
};

// y[i] = f(y[i], x[i])
template <class T, auto f> [[gnu::flatten]] void fold(const T* x, T* y, int64_t n) {
  map(y, n, f, Array<T>{y}, Array<T>{x});
}

template <class T> [[gnu::flatten]] void axpy(T alpha, const T* x, T* y, int64_t n) {
  auto f = [](auto a, auto b, auto c) { return fma(a, b, c); };
  map(y, n, f, Number<T>{alpha}, Array<T>{x}, Array<T>{y});
}

template <class T> [[gnu::flatten]] void power_by_number(const T* x, T exponent, T* y, int64_t n) {
  using V = Vector<T>;
  if (exponent == T(1)) return map(y, n, [](V a) { return a; }, Array<T>{x});
  if (exponent == T(2)) return map(y, n, [](V a) { return a * a; }, Array<T>{x});
  if (exponent == T(3)) return map(y, n, [](V a) { return a * a * a; }, Array<T>{x});
  if (exponent == T(0.5)) return map(y, n, [](V a) { return root(a); }, Array<T>{x});
  map(y, n, [](V a, V b) { return pow(a, b); }, Array<T>{x}, Number<T>{exponent});
}

template <class T> constexpr BinaryKernel<T> power_kernel = {
    Binary<T, [](Vector<T> a, Vector<T> b) { return power(a, b); }>::vv, power_by_number<T>,
    Binary<T, [](Vector<T> a, Vector<T> b) { return power(a, b); }>::sv};

constexpr auto maximum = [](auto a, auto b) { return ((a > b) | (a != a)) ? a : b; };
constexpr auto minimum = [](auto a, auto b) { return ((a < b) | (a != a)) ? a : b; };

// ---- Reductions ---------------------------------------------------------------------------------------------------

template <int half, class V, class Combine> TAPEFLOW_INLINE Element<V> fold_lanes(V x, Combine combine) {
  if constexpr (half == 0)
    return x[0];
  else
    return fold_lanes<half / 2>(combine(x, shuffle<[](int lane) { return lane ^ half; }>(x, x)), combine);
}
template <class V, class Combine> TAPEFLOW_INLINE Element<V> reduce_lanes(V x, Combine combine) {
  return fold_lanes<lanes<V> / 2>(x, combine);
}

constexpr auto plus = [](auto a, auto b) { return a + b; };

// Eight running results hide the latency of `step`; the last lanes are filled so that they change nothing.
template <class V, class Step, class Combine, class... Operands>
TAPEFLOW_INLINE V reduce_block(int64_t begin, int64_t end, V start, Step step, Combine combine, Operands... x) {
  constexpr int64_t width = lanes<V>;
  int64_t i = begin;
  V total = start;
  if (end - begin >= 8 * width) {
    V r[8] = {start, start, start, start, start, start, start, start};
    for (; i <= end - 8 * width; i += 8 * width)
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) r[k] = step(r[k], x.at(i + k * width)...);
    for (int half = 4; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) r[k] = combine(r[k], r[k + half]);
    total = r[0];
  }
  for (; i <= end - width; i += width) total = step(total, x.at(i)...);
  if (i < end) total = step(total, x.at(i, end - i)...);
  return total;
}

// Blocks of at most 16 steps per running sum, added pairwise.
template <class V, class Step, class... Operands>
[[gnu::flatten]] V sum_between(int64_t begin, int64_t end, Step step, Operands... x) {
  constexpr int64_t block = 8 * 16 * lanes<V>;
  if (end - begin <= block) return reduce_block(begin, end, V{}, step, plus, x...);
  int64_t middle = begin + ((end - begin) / block + 1) / 2 * block;
  return sum_between<V>(begin, middle, step, x...) + sum_between<V>(middle, end, step, x...);
}

template <class T> T sum(const T* x, int64_t n) {
  return reduce_lanes(sum_between<Vector<T>>(0, n, plus, Array<T>{x}), plus);
}

template <class T> T sum_of_squares(const T* x, int64_t n) {
  auto step = [](auto r, auto a) { return fma(a, a, r); };
  return reduce_lanes(sum_between<Vector<T>>(0, n, step, Array<T>{x}), plus);
}

template <class T> T dot(const T* a, const T* b, int64_t n) {
  auto step = [](auto r, auto x, auto y) { return fma(x, y, r); };
  return reduce_lanes(sum_between<Vector<T>>(0, n, step, Array<T>{a}, Array<T>{b}), plus);
}

template <class T> struct FilledArray {
  const T* p;
  T fill;
  TAPEFLOW_INLINE Vector<T> at(int64_t i) const { return load(p + i); }
  TAPEFLOW_INLINE Vector<T> at(int64_t i, int64_t count) const { return load_first(p + i, count, fill); }
};

template <class T> [[gnu::flatten]] T max(const T* x, int64_t n) {
  constexpr T least = -Constants<T>::infinity;
  return reduce_lanes(reduce_block(0, n, splat<Vector<T>>(least), maximum, maximum, FilledArray<T>{x, least}), maximum);
}

template <class T> [[gnu::flatten]] T min(const T* x, int64_t n) {
  constexpr T most = Constants<T>::infinity;
  return reduce_lanes(reduce_block(0, n, splat<Vector<T>>(most), minimum, minimum, FilledArray<T>{x, most}), minimum);
}

// ---- Rows of logits -----------------------------------------------------------------------------------------------

template <class T> TAPEFLOW_INLINE T log_of(T x) { return log(splat<Vector<T>>(x))[0]; }

// Calls visit(i, e^(x[i] - shift) as a vector, count) along the row, lanes beyond the end being 0; returns the sum.
template <class T, class Visit> TAPEFLOW_INLINE T sum_of_exp(const T* x, T shift, int64_t n, Visit visit) {
  using V = Vector<T>;
  constexpr int64_t width = lanes<V>, block = 64 * width;
  V total{};
  for (int64_t begin = 0; begin < n; begin += block) {
    int64_t end = n - begin < block ? n : begin + block, i = begin;
    V part{};
    for (; i <= end - width; i += width) {
      V e = exp(load(x + i) - shift);
      visit(i, e, width);
      part += e;
    }
    if (i < end) {
      V e = exp(load_first(x + i, end - i, -Constants<T>::infinity) - shift);
      visit(i, e, end - i);
      part += e;
    }
    total += part;
  }
  return reduce_lanes(total, plus);
}

template <class V> TAPEFLOW_INLINE void store_count(Element<V>* p, V x, int64_t count) {
  if (count == lanes<V>)
    store(p, x);
  else
    store_first(p, x, count);
}

template <class T> [[gnu::flatten]] void softmax_row(const T* x, T* y, int64_t n) {
  T total = sum_of_exp(x, max(x, n), n, [y](int64_t i, auto e, int64_t count) { store_count(y + i, e, count); });
  map(y, n, [](auto e, auto r) { return e * r; }, Array<T>{y}, Number<T>{1 / total});
}

template <class T> [[gnu::flatten]] void log_softmax_row(const T* x, T* y, int64_t n) {
  T shift = max(x, n);
  T total = sum_of_exp(x, shift, n, [](int64_t, auto, int64_t) {});
  auto f = [](auto a, auto s, auto l) { return (a - s) - l; };
  map(y, n, f, Array<T>{x}, Number<T>{shift}, Number<T>{log_of(total)});
}

template <class T> [[gnu::flatten]] T sparse_cross_entropy_row(const T* logits, int64_t label, T* dx, int64_t n) {
  T shift = max(logits, n), chosen = logits[label] - shift;
  T total = sum_of_exp(logits, shift, n, [dx](int64_t i, auto e, int64_t count) { store_count(dx + i, e, count); });
  map(dx, n, [](auto e, auto r) { return e * r; }, Array<T>{dx}, Number<T>{1 / total});
  dx[label] -= 1;
  return log_of(total) - chosen;
}

template <class T> [[gnu::flatten]] T cross_entropy_row(const T* logits, const T* labels, T* dx, int64_t n) {
  T shift = max(logits, n);
  auto step = [](auto r, auto label, auto x, auto s) { return fma(label, x - s, r); };
  T chosen =
      reduce_lanes(sum_between<Vector<T>>(0, n, step, Array<T>{labels}, Array<T>{logits}, Number<T>{shift}), plus);
  T total = sum_of_exp(logits, shift, n, [dx](int64_t i, auto e, int64_t count) { store_count(dx + i, e, count); });
  auto f = [](auto e, auto r, auto label) { return e * r - label; };
  map(dx, n, f, Array<T>{dx}, Number<T>{1 / total}, Array<T>{labels});
  return sum(labels, n) * log_of(total) - chosen;
}

// ---- Statistics and normalization ----------------------------------------------------------------------------------

template <class T> T squared_distance(const T* x, T center, int64_t n) {
  using V = Vector<T>;
  constexpr int64_t width = lanes<V>;
  int64_t whole = n / width * width;
  auto step = [](auto r, auto a, auto c) { return fma(a - c, a - c, r); };
  T total = reduce_lanes(sum_between<V>(0, whole, step, Array<T>{x}, Number<T>{center}), plus);
  for (int64_t i = whole; i < n; ++i) total += (x[i] - center) * (x[i] - center);
  return total;
}

template <class T> [[gnu::flatten]] void accumulate_squares(const T* x, T* y, int64_t n) {
  map(y, n, [](auto a, auto r) { return fma(a, a, r); }, Array<T>{x}, Array<T>{y});
}

template <class T> [[gnu::flatten]] void accumulate_squared_distance(const T* x, const T* center, T* y, int64_t n) {
  map(y, n, [](auto a, auto c, auto r) { return fma(a - c, a - c, r); }, Array<T>{x}, Array<T>{center}, Array<T>{y});
}

template <class T>
[[gnu::flatten]] void normalize_row(const T* x, T center, T factor, const T* scale, const T* offset, T* y, int64_t n) {
  auto f = [](auto a, auto c, auto k, auto s, auto b) { return fma((a - c) * k, s, b); };
  map(y, n, f, Array<T>{x}, Number<T>{center}, Number<T>{factor}, Array<T>{scale}, Array<T>{offset});
}

template <class T> [[gnu::flatten]] void normalize_row_grad(const T* x, const T* dy, T center, T factor, const T* scale,
                                                            T* dx, T* d_scale, T* d_offset, T* sums, int64_t n) {
  using V = Vector<T>;
  constexpr int64_t width = lanes<V>;
  V total{}, product{};
  int64_t i = 0;
  for (; i < n; i += width) {
    int64_t count = n - i < width ? n - i : width;
    bool whole = count == width;
    V distance = (whole ? load(x + i) : load_first(x + i, count, center)) - center;
    V d = whole ? load(dy + i) : load_first(dy + i, count), s = whole ? load(scale + i) : load_first(scale + i, count);
    V scaled = d * s;
    total += scaled;
    product = fma(scaled, distance, product);
    V old_scale = whole ? load(d_scale + i) : load_first(d_scale + i, count);
    V old_offset = whole ? load(d_offset + i) : load_first(d_offset + i, count);
    store_count(dx + i, scaled * factor, count);
    store_count(d_scale + i, fma(d * factor, distance, old_scale), count);
    store_count(d_offset + i, old_offset + d, count);
  }
  sums[0] = reduce_lanes(total, plus);
  sums[1] = reduce_lanes(product, plus);
}

template <class T> [[gnu::flatten]] void normalize_columns(const T* x, const T* center, const T* factor,
                                                           const T* offset, T* y, int64_t n) {
  auto f = [](auto a, auto c, auto k, auto b) { return fma(a - c, k, b); };
  map(y, n, f, Array<T>{x}, Array<T>{center}, Array<T>{factor}, Array<T>{offset});
}

template <class T> [[gnu::flatten]] void normalize_columns_grad(const T* x, const T* dy, const T* center,
                                                                const T* factor, T* dx, T* d_factor, T* d_offset,
                                                                int64_t n) {
  auto f = [](auto a, auto d, auto c, auto r) { return fma(d, a - c, r); };
  map(d_factor, n, f, Array<T>{x}, Array<T>{dy}, Array<T>{center}, Array<T>{d_factor});
  map(d_offset, n, plus, Array<T>{d_offset}, Array<T>{dy});
  map(dx, n, [](auto d, auto k) { return d * k; }, Array<T>{dy}, Array<T>{factor});
}

// ---- The tables ---------------------------------------------------------------------------------------------------

template <class V> constexpr Element<V> selu_scale = Element<V>(1.0507009873554804934193349852946);
template <class V> constexpr Element<V> selu_scale_alpha = Element<V>(1.7580993408473768599402175208123);

template <class T> constexpr VectorKernels<T> make_kernels() {
  using V = Vector<T>;
  return {
      .negative = unary<T, [](V x) { return -x; }>,
      .abs = unary<T, [](V x) { return abs(x); }>,
      .square = unary<T, [](V x) { return x * x; }>,
      .sqrt = unary<T, [](V x) { return sqrt(x); }>,
      .rsqrt = unary<T, [](V x) { return T(1) / sqrt(x); }>,
      .reciprocal = unary<T, [](V x) { return T(1) / x; }>,
      .floor = unary<T, [](V x) { return floor(x); }>,
      .ceil = unary<T, [](V x) { return ceil(x); }>,
      .rint = unary<T, [](V x) { return rint(x); }>,
      .sign = unary<T, [](V x) { return T(0) < x    ? splat<V>(1)
                                        : x < T(0)  ? splat<V>(-1)
                                        : x == T(0) ? V{}
                                                    : x; }>,
      .exp = unary<T, [](V x) { return exp(x); }>,
      .expm1 = unary<T, [](V x) { return expm1(x); }>,
      .log = unary<T, [](V x) { return log(x); }>,
      .log1p = unary<T, [](V x) { return log1p(x); }>,
      .sin = unary<T, [](V x) { return sin(x); }>,
      .cos = unary<T, [](V x) { return cos(x); }>,
      .tanh = unary<T, [](V x) { return tanh(x); }>,
      .sigmoid = unary<T, [](V x) { return sigmoid(x); }>,
      .erf = unary<T, [](V x) { return erf(x); }>,
      .erfc = unary<T, [](V x) { return erfc(x); }>,
      .tan = unary<T, [](V x) { return tan(x); }>,
      .asin = unary<T, [](V x) { return asin(x); }>,
      .acos = unary<T, [](V x) { return acos(x); }>,
      .atan = unary<T, [](V x) { return atan(x); }>,
      .sinh = unary<T, [](V x) { return sinh(x); }>,
      .cosh = unary<T, [](V x) { return cosh(x); }>,
      .asinh = unary<T, [](V x) { return asinh(x); }>,
      .acosh = unary<T, [](V x) { return acosh(x); }>,
      .atanh = unary<T, [](V x) { return atanh(x); }>,
      .relu = unary<T, [](V x) { return x < T(0) ? V{} : x; }>,
      .relu6 = unary<T, [](V x) { return x < T(0)   ? V{}
                                         : T(6) < x ? splat<V>(6)
                                                    : x; }>,
      .softplus = unary<T, [](V x) { return softplus(x); }>,
      .softsign = unary<T, [](V x) { return x / (abs(x) + T(1)); }>,
      .elu = unary<T, [](V x) { return T(0) < x ? x : expm1(x); }>,
      .selu = unary<T, [](V x) { return T(0) < x ? x * selu_scale<V> : expm1(x) * selu_scale_alpha<V>; }>,
      .silu = unary<T, [](V x) { return silu(x); }>,
      .gelu_tanh = unary<T, [](V x) { return gelu_tanh(x); }>,
      .gelu_erf = unary<T, [](V x) { return gelu_erf(x); }>,

      .add = binary<T, [](V a, V b) { return a + b; }>,
      .subtract = binary<T, [](V a, V b) { return a - b; }>,
      .multiply = binary<T, [](V a, V b) { return a * b; }>,
      .divide = binary<T, [](V a, V b) { return a / b; }>,
      .squared_difference = binary<T, [](V a, V b) { return (a - b) * (a - b); }>,
      .maximum = binary<T, maximum>,
      .minimum = binary<T, minimum>,
      .pow = power_kernel<T>,
      .sigmoid_cross_entropy = binary<T, [](V x, V z) { return sigmoid_cross_entropy(x, z); }>,
      .less = comparison<T, [](T a, T b) { return a < b; }>,
      .less_equal = comparison<T, [](T a, T b) { return a <= b; }>,
      .greater = comparison<T, [](T a, T b) { return (a > b); }>,
      .greater_equal = comparison<T, [](T a, T b) { return (a >= b); }>,
      .equal = comparison<T, [](T a, T b) { return a == b; }>,
      .not_equal = comparison<T, [](T a, T b) { return a != b; }>,
      .choose = {Choice<T>::vv, Choice<T>::vs, Choice<T>::sv, Choice<T>::ss},

      .tanh_grad = binary<T, [](V y, V dy) { return dy * (T(1) - y * y); }>,
      .sigmoid_grad = binary<T, [](V y, V dy) { return dy * y * (T(1) - y); }>,
      .sqrt_grad = binary<T, [](V y, V dy) { return dy == T(0) ? V{} : dy * T(0.5) / y; }>,
      .rsqrt_grad = binary<T, [](V y, V dy) { return dy == T(0) ? V{} : dy * T(-0.5) * y * (y * y); }>,
      .reciprocal_grad = binary<T, [](V y, V dy) { return dy == T(0) ? V{} : -dy * y * y; }>,
      .square_grad = binary<T, [](V x, V dy) { return dy * (T(2) * x); }>,
      .relu_grad = binary<T, [](V dy, V x) { return T(0) < x ? dy : V{}; }>,
      .relu6_grad = binary<T, [](V dy, V x) { return (T(0) < x) & (x < T(6)) ? dy : V{}; }>,
      .elu_grad = binary<T, [](V dy, V y) { return y < T(0) ? dy * (y + T(1)) : dy; }>,
      .selu_grad = binary<T, [](V dy, V y) { return y < T(0) ? dy * (y + selu_scale_alpha<V>) : dy * selu_scale<V>; }>,
      .softplus_grad = binary<T, [](V dy, V x) { return dy * sigmoid(x); }>,
      .softsign_grad = binary<T, [](V dy, V x) { return dy / ((abs(x) + T(1)) * (abs(x) + T(1))); }>,
      .silu_grad = binary<T, [](V dy, V x) { return dy * silu_derivative(x); }>,
      .gelu_tanh_grad = binary<T, [](V dy, V x) { return dy * gelu_tanh_derivative(x); }>,
      .gelu_erf_grad = binary<T, [](V dy, V x) { return dy * gelu_erf_derivative(x); }>,

      .axpy = axpy<T>,
      .sum = sum<T>,
      .sum_of_squares = sum_of_squares<T>,
      .dot = dot<T>,
      .max = max<T>,
      .min = min<T>,
      .accumulate = fold<T, plus>,
      .accumulate_max = fold<T, maximum>,
      .accumulate_min = fold<T, minimum>,
      .accumulate_squares = accumulate_squares<T>,
      .squared_distance = squared_distance<T>,
      .accumulate_squared_distance = accumulate_squared_distance<T>,
      .normalize_row = normalize_row<T>,
      .normalize_row_grad = normalize_row_grad<T>,
      .normalize_columns = normalize_columns<T>,
      .normalize_columns_grad = normalize_columns_grad<T>,
      .softmax_row = softmax_row<T>,
      .log_softmax_row = log_softmax_row<T>,
      .sparse_cross_entropy_row = sparse_cross_entropy_row<T>,
      .cross_entropy_row = cross_entropy_row<T>,
  };
}

// ---- Conversions: exact or rounded once, element by element, so the compiler may vectorise them as it likes -------

template <class From, class To> void cast(const From* __restrict x, To* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
}

void bool_to_float(const uint8_t* __restrict x, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] != 0 ? 1.0f : 0.0f;
}

void bfloat16_to_float(const uint16_t* __restrict x, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = __builtin_bit_cast(float, uint32_t(x[i]) << 16);
}

void float_to_bfloat16(const float* __restrict x, uint16_t* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t word = __builtin_bit_cast(uint32_t, x[i]);
    uint32_t rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16;
    y[i] = uint16_t((word & 0x7fffffff) > 0x7f800000 ? (word >> 16) | 0x40 : rounded);
  }
}

float float_from_half(uint16_t x) {
  uint32_t magnitude = x & 0x7fff;
  uint32_t normal = (magnitude << 13) + (112u << 23);  // the same digits with the exponent of a float
  uint32_t denormal = __builtin_bit_cast(uint32_t, float(int32_t(magnitude)) * 0x1p-24f);
  uint32_t special = (magnitude << 13) | 0x7f800000 | (magnitude > 0x7c00 ? 0x400000 : 0);  // infinity, or a quiet NaN
  uint32_t word = magnitude < 0x400 ? denormal : magnitude < 0x7c00 ? normal : special;
  return __builtin_bit_cast(float, word | uint32_t(x & 0x8000) << 16);
}

uint16_t half_from_float(float x) {
  uint32_t word = __builtin_bit_cast(uint32_t, x), magnitude = word & 0x7fffffff;
  uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Adding 1/2 lines the last bit of a denormal half up with the last bit of a float, and rounds there.
  float aligned = __builtin_bit_cast(float, magnitude) + 0.5f;
  uint32_t denormal = __builtin_bit_cast(uint32_t, aligned) - 0x3f000000;
  uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  uint32_t y = magnitude < 0x38800000 ? denormal : normal;
  y = magnitude >= 0x477ff000 ? 0x7c00 : y;
  y = magnitude > 0x7f800000 ? nan : y;
  return uint16_t(y | (word >> 16 & 0x8000));
}

void half_to_float(const uint16_t* __restrict x, float* __restrict y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i < n; i += 16) {
    auto mask = n - i < 16 ? first_lanes<float>(n - i) : all_lanes<F>;
    _mm512_mask_storeu_ps(y + i, mask, _mm512_maskz_cvtph_ps(mask, _mm256_maskz_loadu_epi16(mask, x + i)));
  }
#elif defined(__F16C__)
  for (; i <= n - 8; i += 8) _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(x + i))));
#endif
  for (; i < n; ++i) y[i] = float_from_half(x[i]);
}

void float_to_half(const float* __restrict x, uint16_t* __restrict y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i < n; i += 16) {
    auto mask = n - i < 16 ? first_lanes<float>(n - i) : all_lanes<F>;
    __m512 a = _mm512_maskz_loadu_ps(mask, x + i);
    _mm256_mask_storeu_epi16(y + i, mask, _mm512_maskz_cvtps_ph(mask, a, _MM_FROUND_TO_NEAREST_INT));
  }
#elif defined(__F16C__)
  for (; i <= n - 8; i += 8)
    _mm_storeu_si128((__m128i*)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) y[i] = half_from_float(x[i]);
}

// ---- Copies ---------------------------------------------------------------------------------------------------------

// Runs of at least `width` bytes; the last piece of a run may overlap the one before it.
template <int64_t width>
void copy_pieces(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t bytes, int64_t rows) {
  typedef char Piece __attribute__((vector_size(width)));
  const auto copy = [&](int64_t at) {
    Piece piece;
    std::memcpy(&piece, from + at, width);
    std::memcpy(to + at, &piece, width);
  };
  for (; rows > 0; --rows, from += from_step, to += to_step) {
    int64_t at = 0;
    for (; at <= bytes - 4 * width; at += 4 * width)
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) copy(at + i * width);
    for (; at < bytes - width; at += width) copy(at);
    if (at < bytes) copy(bytes - width);
  }
}

void copy_runs(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t bytes, int64_t rows) {
  constexpr int64_t most = 4096;  // from here on memcpy knows better
  const char* source = static_cast<const char*>(from);
  char* target = static_cast<char*>(to);
  if (bytes > most || bytes < 8)
    for (; rows > 0; --rows, source += from_step, target += to_step) std::memcpy(target, source, size_t(bytes));
  else if (bytes >= int64_t(vector_bytes))
    copy_pieces<vector_bytes>(source, from_step, target, to_step, bytes, rows);
  else if (bytes >= 16)
    copy_pieces<16>(source, from_step, target, to_step, bytes, rows);
  else
    copy_pieces<8>(source, from_step, target, to_step, bytes, rows);
}

}  // namespace

extern const CopyRuns copy_kernel;
constinit const CopyRuns copy_kernel = copy_runs;

extern const VectorKernels<float> float_kernels;
extern const VectorKernels<double> double_kernels;
extern const ConversionKernels conversions;

constinit const VectorKernels<float> float_kernels = make_kernels<float>();
constinit const VectorKernels<double> double_kernels = make_kernels<double>();
constinit const ConversionKernels conversions = {
    .float_to_double = cast<float, double>,
    .double_to_float = cast<double, float>,
    .float_to_bfloat16 = float_to_bfloat16,
    .bfloat16_to_float = bfloat16_to_float,
    .float_to_half = float_to_half,
    .half_to_float = half_to_float,
    .int32_to_float = cast<int32_t, float>,
    .float_to_int32 = cast<float, int32_t>,
    .bool_to_float = bool_to_float,
};

}  // namespace tapeflow::TAPEFLOW_ISA
