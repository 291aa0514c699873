// Places of extrema: in rows, and of running extrema of columns. The first of equal elements wins; a NaN
// never does, but for one that stands first while all others are NaN, too.
#pragma once
#include <cstdint>
#include <type_traits>

namespace tapeflow {

template <class T> struct ArgExtremumKernels {
  using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  // y[r] is the place in the row of `length` neighbours that begins at x[r * length]; 0 < length.
  void (*rows)(const T* x, int64_t* y, int64_t rows, int64_t length);
  // Row number k of x: where an element is better than the best one of its column, it takes its place.
  void (*fold)(const T* x, T* best, Place* places, Place k, int64_t n);
};

template <bool largest, class T> const ArgExtremumKernels<T>& arg_extremum_kernels();  // T = float, double
template <> const ArgExtremumKernels<float>& arg_extremum_kernels<true, float>();
template <> const ArgExtremumKernels<float>& arg_extremum_kernels<false, float>();
template <> const ArgExtremumKernels<double>& arg_extremum_kernels<true, double>();
template <> const ArgExtremumKernels<double>& arg_extremum_kernels<false, double>();

}  // namespace tapeflow
