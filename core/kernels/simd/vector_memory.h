// Loading and storing vectors: whole ones, and the first `count` lanes of one (0 < count < lanes). All is internal to
// the including file, which defines TAPEFLOW_ISA.
#pragma once

#include <cstring>

#include "kernels/simd/vector_math.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

template <class T> TAPEFLOW_INLINE Vector<T> load(const T* p) {
  Vector<T> x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

template <class V> TAPEFLOW_INLINE void store(Element<V>* p, V x) { std::memcpy(p, &x, sizeof x); }

#if defined(__AVX512F__)
template <class T> TAPEFLOW_INLINE auto first_lanes(int64_t count) {
  if constexpr (sizeof(T) == 4)
    return __mmask16((1u << count) - 1);
  else
    return __mmask8((1u << count) - 1);
}
#elif defined(__AVX2__)
template <class T> TAPEFLOW_INLINE __m256i first_lanes(int64_t count) {
  static constexpr int32_t edge[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  __m256i mask;
  std::memcpy(&mask, edge + 8 - count * int64_t(sizeof(T) / 4), sizeof mask);
  return mask;
}
#endif

template <class T> TAPEFLOW_INLINE Vector<T> load_first(const T* p, int64_t count, T fill = 0) {
  using V = Vector<T>;
  V rest = splat<V>(fill);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (V)_mm512_mask_loadu_ps((__m512)rest, first_lanes<T>(count), p);
  else
    return (V)_mm512_mask_loadu_pd((__m512d)rest, first_lanes<T>(count), p);
#elif defined(__AVX2__)
  __m256i mask = first_lanes<T>(count);
  if constexpr (sizeof(T) == 4)
    return (V)_mm256_blendv_ps((__m256)rest, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
  else
    return (V)_mm256_blendv_pd((__m256d)rest, _mm256_maskload_pd(p, mask), _mm256_castsi256_pd(mask));
#else
  for (int i = 0; i < lanes<V> - 1; ++i)
    if (i < count) rest[i] = p[i];
  return rest;
#endif
}

template <class V> TAPEFLOW_INLINE void store_first(Element<V>* p, V x, int64_t count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Element<V>) == 4)
    _mm512_mask_storeu_ps(p, first_lanes<float>(count), (__m512)x);
  else
    _mm512_mask_storeu_pd(p, first_lanes<double>(count), (__m512d)x);
#elif defined(__AVX2__)
  if constexpr (sizeof(Element<V>) == 4)
    _mm256_maskstore_ps(p, first_lanes<float>(count), (__m256)x);
  else
    _mm256_maskstore_pd(p, first_lanes<double>(count), (__m256d)x);
#else
  for (int i = 0; i < lanes<V> - 1; ++i)
    if (i < count) p[i] = x[i];
#endif
}

// Lane r is element k of row r of as many rows of `length` elements as a vector has lanes; `rows` holds them as they
// lie in memory.
template <int length, int k, int from = 1, class V> TAPEFLOW_INLINE V column_of(const V* rows, V found) {
  if constexpr (from == length) {
    return found;
  } else {
    constexpr auto place = [](int lane) {
      constexpr int width = lanes<V>;
      const int element = lane * length + k, vector = element / width;
      if (from == 1 && vector == 0) return element % width;
      return vector == from ? width + element % width : lane;
    };
    return column_of<length, k, from + 1>(rows, shuffle<place>(found, rows[from]));
  }
}
template <int length, int k, class V> TAPEFLOW_INLINE V column_of(const V* rows) {
  return column_of<length, k>(rows, rows[0]);
}

}  // namespace
}  // namespace tapeflow::TAPEFLOW_ISA
