// Places of extrema for one instruction set: compiled once per set, with TAPEFLOW_ISA as the namespace.
#include "kernels/simd/arg_extremum.h"

#include "kernels/simd/vector_memory.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

template <class T> using Place = typename ArgExtremumKernels<T>::Place;
template <class T> using Places = Vector<Place<T>>;

template <bool largest, class V> TAPEFLOW_INLINE auto better(V candidate, V best) {
  return (largest ? candidate > best : candidate < best) | ((best != best) & (candidate == candidate));
}

// Lane r goes along row r.
template <bool largest, class T, int length, int... K>
TAPEFLOW_INLINE Places<T> along_rows(const Vector<T>* rows, std::integer_sequence<int, K...>) {
  Vector<T> best = column_of<length, 0>(rows);
  Places<T> places{};
  const auto meet = [&](Vector<T> candidate, Place<T> k) {
    const auto wins = better<largest>(candidate, best);
    best = wins ? candidate : best;
    places = wins ? Places<T>{} + k : places;
  };
  (meet(column_of<length, K + 1>(rows), Place<T>(K + 1)), ...);
  return places;
}

template <bool largest, class T, int length> void tiny_rows_of(const T* x, int64_t* y, int64_t rows) {
  constexpr int width = lanes<Vector<T>>;
  Vector<T> some[length];
  for (; rows > 0; rows -= width, y += width) {
    const int64_t count = rows < width ? rows : width;
    if (count < width) {
      T last[length * width] = {};
      for (int64_t i = 0; i < count * length; ++i) last[i] = x[i];
      for (int k = 0; k < length; ++k) some[k] = load(last + k * width);
    } else {
      for (int k = 0; k < length; ++k, x += width) some[k] = load(x);
    }
    const Places<T> places = along_rows<largest, T, length>(some, std::make_integer_sequence<int, length - 1>());
    Place<T> found[width];
    std::memcpy(found, &places, sizeof places);
    for (int64_t i = 0; i < count; ++i) y[i] = found[i];
  }
}

// What the best element of a run is, in all lanes; a NaN is never better than infinity of the other sign.
template <bool largest, class T> constexpr T worst = largest ? -Constants<T>::infinity : Constants<T>::infinity;
template <bool largest, class V> TAPEFLOW_INLINE V better_of(V candidate, V best) {
  return (largest ? candidate > best : candidate < best) ? candidate : best;
}
template <bool largest, int half, class V> TAPEFLOW_INLINE V best_lane(V x) {
  if constexpr (half == 0)
    return x;
  else
    return best_lane<largest, half / 2>(better_of<largest>(x, shuffle<[](int lane) { return lane ^ half; }>(x, x)));
}
template <bool largest, class T> TAPEFLOW_INLINE Vector<T> best_of(const T* x, int64_t n) {
  using V = Vector<T>;
  constexpr int64_t width = lanes<V>;
  V best = splat<V>(worst<largest, T>);
  int64_t i = 0;
  if (n >= 4 * width) {
    V running[4] = {best, best, best, best};
    for (; i <= n - 4 * width; i += 4 * width)
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) running[k] = better_of<largest>(load(x + i + k * width), running[k]);
    best = better_of<largest>(better_of<largest>(running[0], running[1]), better_of<largest>(running[2], running[3]));
  }
  for (; i <= n - width; i += width) best = better_of<largest>(load(x + i), best);
  if (i < n) best = better_of<largest>(load_first(x + i, n - i, worst<largest, T>), best);
  return best_lane<largest, lanes<V> / 2>(best);
}
// The first element that is equal to all lanes of `value`, or n.
template <class T> TAPEFLOW_INLINE int64_t find(const T* x, int64_t n, Vector<T> value) {
  constexpr int64_t width = lanes<Vector<T>>;
  int64_t i = 0;
  for (; i <= n - 4 * width; i += 4 * width) {
    uint32_t found = 0;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) found |= equal_lanes(load(x + i + k * width), value);
    if (found) break;
  }
  for (; i <= n - width; i += width)
    if (const uint32_t found = equal_lanes(load(x + i), value)) return i + __builtin_ctz(found);
  if (i < n)
    if (const uint32_t found = equal_lanes(load_first(x + i, n - i, Constants<T>::nan), value))
      return i + __builtin_ctz(found);
  return n;
}
// The best of each part that fits the first-level cache, then the place in the best part.
template <bool largest, class T> int64_t place_in_long_row(const T* x, int64_t n) {
  constexpr int64_t kPart = 4096;
  int64_t best_part = 0;
  Vector<T> best = splat<Vector<T>>(worst<largest, T>);
  for (int64_t begin = 0; begin < n; begin += kPart) {
    const Vector<T> found = best_of<largest>(x + begin, n - begin < kPart ? n - begin : kPart);
    if (largest ? found[0] > best[0] : found[0] < best[0]) best = found, best_part = begin;
  }
  const int64_t place = best_part + find(x + best_part, n - best_part, best);
  return place < n ? place : 0;
}
template <bool largest, class T> void rows(const T* x, int64_t* y, int64_t count, int64_t length) {
  switch (length) {
    case 1: return std::memset(y, 0, size_t(count) * sizeof *y), void();
    case 2: return tiny_rows_of<largest, T, 2>(x, y, count);
    case 3: return tiny_rows_of<largest, T, 3>(x, y, count);
    case 4: return tiny_rows_of<largest, T, 4>(x, y, count);
    case 5: return tiny_rows_of<largest, T, 5>(x, y, count);
    case 6: return tiny_rows_of<largest, T, 6>(x, y, count);
    case 7: return tiny_rows_of<largest, T, 7>(x, y, count);
    case 8: return tiny_rows_of<largest, T, 8>(x, y, count);
  }
  if (length > 4096) {
    for (int64_t r = 0; r < count; ++r) y[r] = place_in_long_row<largest>(x + r * length, length);
    return;
  }
  for (int64_t r = 0; r < count; ++r, x += length) {
    const int64_t place = find(x, length, best_of<largest>(x, length));
    y[r] = place < length ? place : 0;  // all are NaN
  }
}

template <bool largest, class T> void fold(const T* x, T* best, Place<T>* places, Place<T> k, int64_t n) {
  constexpr int64_t width = lanes<Vector<T>>;
  int64_t i = 0;
  for (; i <= n - width; i += width) {
    const Vector<T> candidate = load(x + i), old = load(best + i);
    const auto wins = better<largest>(candidate, old);
    store(best + i, wins ? candidate : old);
    Places<T> place;
    std::memcpy(&place, places + i, sizeof place);
    place = wins ? Places<T>{} + k : place;
    std::memcpy(places + i, &place, sizeof place);
  }
  for (; i < n; ++i)
    if ((largest ? x[i] > best[i] : x[i] < best[i]) || (best[i] != best[i] && x[i] == x[i]))
      best[i] = x[i], places[i] = k;
}

template <bool largest, class T> constexpr ArgExtremumKernels<T> make_kernels() {
  return {rows<largest, T>, fold<largest, T>};
}

}  // namespace

extern const ArgExtremumKernels<float> float_places_of_largest, float_places_of_smallest;
extern const ArgExtremumKernels<double> double_places_of_largest, double_places_of_smallest;
constinit const ArgExtremumKernels<float> float_places_of_largest = make_kernels<true, float>();
constinit const ArgExtremumKernels<float> float_places_of_smallest = make_kernels<false, float>();
constinit const ArgExtremumKernels<double> double_places_of_largest = make_kernels<true, double>();
constinit const ArgExtremumKernels<double> double_places_of_smallest = make_kernels<false, double>();

}  // namespace tapeflow::TAPEFLOW_ISA
