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

template <bool largest, class T> void tiny_rows(const T* x, int64_t* y, int64_t rows, int64_t length) {
  switch (length) {
    case 1: return std::memset(y, 0, size_t(rows) * sizeof *y), void();
    case 2: return tiny_rows_of<largest, T, 2>(x, y, rows);
    case 3: return tiny_rows_of<largest, T, 3>(x, y, rows);
    case 4: return tiny_rows_of<largest, T, 4>(x, y, rows);
    case 5: return tiny_rows_of<largest, T, 5>(x, y, rows);
    case 6: return tiny_rows_of<largest, T, 6>(x, y, rows);
    case 7: return tiny_rows_of<largest, T, 7>(x, y, rows);
    case 8: return tiny_rows_of<largest, T, 8>(x, y, rows);
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
  return {tiny_rows<largest, T>, fold<largest, T>};
}

}  // namespace

extern const ArgExtremumKernels<float> float_places_of_largest, float_places_of_smallest;
extern const ArgExtremumKernels<double> double_places_of_largest, double_places_of_smallest;
constinit const ArgExtremumKernels<float> float_places_of_largest = make_kernels<true, float>();
constinit const ArgExtremumKernels<float> float_places_of_smallest = make_kernels<false, float>();
constinit const ArgExtremumKernels<double> double_places_of_largest = make_kernels<true, double>();
constinit const ArgExtremumKernels<double> double_places_of_smallest = make_kernels<false, double>();

}  // namespace tapeflow::TAPEFLOW_ISA
