// Loops over short rows for one instruction set: compiled once per set, with TAPEFLOW_ISA as the namespace.
#include "kernels/simd/short_rows.h"

#include "kernels/simd/vector_memory.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

struct AsItIs {
  template <class V> TAPEFLOW_INLINE static V prepare(V x) { return x; }
};
template <class T> struct Plus : AsItIs {
  static constexpr T start = 0;
  template <class V> TAPEFLOW_INLINE static V combine(V a, V b) { return a + b; }
};
template <class T> struct Larger : AsItIs {
  static constexpr T start = -Constants<T>::infinity;
  template <class V> TAPEFLOW_INLINE static V combine(V a, V b) { return ((a > b) | (a != a)) ? a : b; }
};
template <class T> struct Smaller : AsItIs {
  static constexpr T start = Constants<T>::infinity;
  template <class V> TAPEFLOW_INLINE static V combine(V a, V b) { return ((a < b) | (a != a)) ? a : b; }
};
template <class T> struct Times : AsItIs {
  static constexpr T start = 1;
  template <class V> TAPEFLOW_INLINE static V combine(V a, V b) { return a * b; }
};
template <class T> struct PlusSquare : Plus<T> {
  template <class V> TAPEFLOW_INLINE static V prepare(V x) { return x * x; }
};

// A row folded into one vector.
template <class T, class F> TAPEFLOW_INLINE Vector<T> folded(const T* x, int64_t length) {
  constexpr int64_t width = lanes<Vector<T>>;
  if (length < width) return F::prepare(load_first(x, length, F::start));
  Vector<T> total = F::prepare(load(x));
  int64_t i = width;
  for (; i <= length - width; i += width) total = F::combine(total, F::prepare(load(x + i)));
  return i < length ? F::combine(total, F::prepare(load_first(x + i, length - i, F::start))) : total;
}

// As many rows as a vector has lanes. Two vectors become one, whose halves are the folded halves of each: so in the end
// lane r holds row r.
template <class T, class F, int half> TAPEFLOW_INLINE void fold_lanes(Vector<T>* rows) {
  constexpr int width = lanes<Vector<T>>;
  constexpr auto low = [](int lane) {
    const int segment = lane / half;
    return (segment % 2) * width + segment / 2 * 2 * half + lane % half;
  };
  constexpr auto high = [](int lane) { return decltype(low){}(lane) + half; };
  for (int k = 0; k < half; ++k)
    rows[k] = F::combine(shuffle<low>(rows[k], rows[k + half]), shuffle<high>(rows[k], rows[k + half]));
  if constexpr (half > 1) fold_lanes<T, F, half / 2>(rows);
}

// Rows of a few elements: lane r goes along row r.
template <class T, class F, int length, int... K>
TAPEFLOW_INLINE Vector<T> along_rows(const Vector<T>* rows, std::integer_sequence<int, K...>) {
  Vector<T> total = F::prepare(column_of<length, 0>(rows));
  ((total = F::combine(total, F::prepare(column_of<length, K + 1>(rows)))), ...);
  return total;
}
template <class T, class F, int length> void reduce_tiny(const T* x, T* y, int64_t rows) {
  constexpr int width = lanes<Vector<T>>;
  Vector<T> some[length];
  for (; rows > 0; rows -= width, y += width) {
    if (rows < width) {
      T last[length * width] = {};
      for (int64_t i = 0; i < rows * length; ++i) last[i] = x[i];
      for (int k = 0; k < length; ++k) some[k] = load(last + k * width);
    } else {
      for (int k = 0; k < length; ++k, x += width) some[k] = load(x);
    }
    const Vector<T> total = along_rows<T, F, length>(some, std::make_integer_sequence<int, length - 1>());
    if (rows < width)
      store_first(y, total, rows);
    else
      store(y, total);
  }
}

template <class T, class F> void reduce(const T* x, T* y, int64_t rows, int64_t length) {
  switch (length) {
    case 1: return reduce_tiny<T, F, 1>(x, y, rows);
    case 2: return reduce_tiny<T, F, 2>(x, y, rows);
    case 3: return reduce_tiny<T, F, 3>(x, y, rows);
    case 4: return reduce_tiny<T, F, 4>(x, y, rows);
    case 5: return reduce_tiny<T, F, 5>(x, y, rows);
  }
  using V = Vector<T>;
  constexpr int width = lanes<V>;
  V folded_rows[width];
  for (; rows >= width; rows -= width, y += width) {
#pragma GCC unroll 16
    for (int r = 0; r < width; ++r, x += length) folded_rows[r] = folded<T, F>(x, length);
    fold_lanes<T, F, width / 2>(folded_rows);
    store(y, folded_rows[0]);
  }
  if (rows == 0) return;
  for (int r = 0; r < width; ++r) folded_rows[r] = r < rows ? folded<T, F>(x + r * length, length) : V{};
  fold_lanes<T, F, width / 2>(folded_rows);
  store_first(y, folded_rows[0], rows);
}

// Writes each of `rows` elements `length` times, and at most a vector more.
template <class T> TAPEFLOW_INLINE void repeat_each(const T* x, T* y, int64_t rows, int64_t length) {
  constexpr int64_t width = lanes<Vector<T>>;
  for (int64_t r = 0; r < rows; ++r, y += length)
    for (int64_t i = 0; i < length; i += width) store(y + i, splat<Vector<T>>(x[r]));
}

// Calls visit(first element, elements) for each vector along n elements; the last one may be short.
template <class T, class Visit> TAPEFLOW_INLINE void by_vectors(int64_t n, Visit visit) {
  constexpr int64_t width = lanes<Vector<T>>;
  int64_t i = 0;
  for (; i <= n - width; i += width) visit(i, width);
  if (i < n) visit(i, n - i);
}
template <class T> TAPEFLOW_INLINE Vector<T> load_up_to(const T* x, int64_t count) {
  return count == lanes<Vector<T>> ? load(x) : load_first(x, count);
}
template <class T> TAPEFLOW_INLINE void store_up_to(T* y, Vector<T> x, int64_t count) {
  count == lanes<Vector<T>> ? store(y, x) : store_first(y, x, count);
}

// A block of rows at a time: what belongs to a row is repeated for its elements, so that vectors are full.
template <class T, bool logarithm> [[gnu::flatten]] void softmax(const T* x, T* y, int64_t rows, int64_t length) {
  using V = Vector<T>;
  constexpr int64_t width = lanes<V>, most = 1024;
  T of_rows[most], wide[most + width], powers[most + width];
  const int64_t at_once = most / length;
  for (; rows > 0; rows -= at_once, x += at_once * length, y += at_once * length) {
    const int64_t count = rows < at_once ? rows : at_once, n = count * length;
    reduce<T, Larger<T>>(x, of_rows, count, length);
    repeat_each(of_rows, wide, count, length);
    by_vectors<T>(n, [&](int64_t i, int64_t some) {
      const V distance = load_up_to(x + i, some) - load(wide + i);
      if (logarithm) store(wide + i, distance);
      store(powers + i, exp(distance));
    });
    reduce<T, Plus<T>>(powers, of_rows, count, length);
    by_vectors<T>(count, [&](int64_t r, int64_t some) {
      const V sum = load_up_to(of_rows + r, some);
      store_up_to(of_rows + r, logarithm ? log(sum) : T(1) / sum, some);
    });
    repeat_each(of_rows, logarithm ? powers : wide, count, length);
    by_vectors<T>(n, [&](int64_t i, int64_t some) {
      const V a = load(wide + i), b = load(powers + i);
      store_up_to(y + i, logarithm ? a - b : b * a, some);
    });
  }
}

template <class T> [[gnu::flatten]] void moments(const T* x, T* mean, T* variance, int64_t rows, int64_t length) {
  constexpr int64_t width = lanes<Vector<T>>, most = 1024;
  T wide[most + width];
  const int64_t at_once = most / length;
  for (int64_t first = 0; first < rows; first += at_once, x += at_once * length) {
    const int64_t count = rows - first < at_once ? rows - first : at_once;
    const auto divide = [count, length](T* numbers) {
      by_vectors<T>(count, [=](int64_t i, int64_t some) {
        store_up_to(numbers + i, load_up_to(numbers + i, some) / T(length), some);
      });
    };
    reduce<T, Plus<T>>(x, mean + first, count, length);
    divide(mean + first);
    repeat_each(mean + first, wide, count, length);
    by_vectors<T>(count * length,
                  [&](int64_t i, int64_t some) { store(wide + i, load_up_to(x + i, some) - load(wide + i)); });
    reduce<T, PlusSquare<T>>(wide, variance + first, count, length);
    divide(variance + first);
  }
}

template <class T> [[gnu::flatten]] void shift_and_scale(const T* x, const T* center, const T* factor, const T* offset,
                                                         T* y, int64_t rows, int64_t length, bool adds) {
  constexpr int64_t width = lanes<Vector<T>>, most = 512;
  T centers[most + width], factors[most + width], offsets[most + width];
  const int64_t at_once = most / length;
  for (int64_t first = 0; first < rows; first += at_once, x += at_once * length, y += at_once * length) {
    const int64_t count = rows - first < at_once ? rows - first : at_once;
    repeat_each(center + first, centers, count, length);
    repeat_each(factor + first, factors, count, length);
    repeat_each(offset + first, offsets, count, length);
    by_vectors<T>(count * length, [&](int64_t i, int64_t some) {
      const Vector<T> result = (load_up_to(x + i, some) - load(centers + i)) * load(factors + i) + load(offsets + i);
      store_up_to(y + i, adds ? load_up_to(y + i, some) + result : result, some);
    });
  }
}

// Eight running products hide the latency of a multiplication.
template <class T> T product_of_row(const T* x, int64_t n) {
  using V = Vector<T>;
  constexpr int64_t width = lanes<V>;
  V running[8];
  for (V& r : running) r = splat<V>(1);
  int64_t i = 0;
  for (; i <= n - 8 * width; i += 8 * width)
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) running[k] *= load(x + i + k * width);
  for (; i <= n - width; i += width) running[0] *= load(x + i);
  if (i < n) running[1] *= load_first(x + i, n - i, T(1));
  for (int half = 4; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) running[k] *= running[k + half];
  T product = 1;
  for (int k = 0; k < width; ++k) product *= running[0][k];
  return product;
}

template <class T> constexpr ShortRowKernels<T> make_kernels() {
  return {.sum = reduce<T, Plus<T>>,
          .max = reduce<T, Larger<T>>,
          .min = reduce<T, Smaller<T>>,
          .product = reduce<T, Times<T>>,
          .sum_of_squares = reduce<T, PlusSquare<T>>,
          .softmax = softmax<T, false>,
          .log_softmax = softmax<T, true>,
          .moments = moments<T>,
          .shift_and_scale = shift_and_scale<T>,
          .product_of_row = product_of_row<T>};
}

}  // namespace

extern const ShortRowKernels<float> float_short_rows;
extern const ShortRowKernels<double> double_short_rows;
constinit const ShortRowKernels<float> float_short_rows = make_kernels<float>();
constinit const ShortRowKernels<double> double_short_rows = make_kernels<double>();

}  // namespace tapeflow::TAPEFLOW_ISA
