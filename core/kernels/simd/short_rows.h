// Many short rows, several at a time: reductions, with one result for each, softmax and what normalization needs.
// Products of long rows, too.
#pragma once
#include <cstdint>

namespace tapeflow {

constexpr int64_t kLongestShortRow = 64;

// y[r] is made of the `length` neighbours that begin at x[r * length]; 0 < length <= kLongestShortRow. A NaN stays a
// NaN.
template <class T> struct ShortRowKernels {
  using Kernel = void (*)(const T* x, T* y, int64_t rows, int64_t length);
  Kernel sum, max, min, product, sum_of_squares;
  Kernel softmax, log_softmax;  // y has the rows' elements; it may be x
  // The mean of each row and the mean squared distance from it.
  void (*moments)(const T* x, T* mean, T* variance, int64_t rows, int64_t length);
  // y = (x - center) factor + offset with numbers of each row; added to y if `adds`.
  void (*shift_and_scale)(const T* x, const T* center, const T* factor, const T* offset, T* y, int64_t rows,
                          int64_t length, bool adds);
  T (*product_of_row)(const T* x, int64_t n);  // of any length; that of no elements is 1
};

template <class T> const ShortRowKernels<T>& short_row_kernels();  // T = float, double
template <> const ShortRowKernels<float>& short_row_kernels<float>();
template <> const ShortRowKernels<double>& short_row_kernels<double>();

}  // namespace tapeflow
