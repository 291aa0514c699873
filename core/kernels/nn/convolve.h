// Convolution over channels-last data, its two transposes, and the depthwise kind. Knows no Tensor; padding rules are
// the caller's.
#pragma once

#include <cstdint>

#include "kernels/epilogue.h"

namespace tapeflow {

// Sizes of one convolution. Input (batch, in..., in_channels), output (batch, out..., out_channels), filter
// (filter..., in_channels / groups, out_channels); all dense. `rank` is 1 to 3; entries of unused dimensions are 1
// (pad_before 0). Output cell o reads input cell o * stride + k * dilation - pad_before for filter cell k; cells
// outside the input are zeros, multiplied like others (zero times an infinite weight is NaN, as with explicit padding).
struct ConvGeometry {
  int rank;
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[3], filter[3], out[3], stride[3], dilation[3], pad_before[3];
};

// Each writes the whole of its result. T is float or double. The value of a result does not depend on the thread count.
// Those that take `epilogue` (which may be null) say whether they called it.
template <class T>
bool conv_forward(const ConvGeometry& geometry, const T* x, const T* filter, T* y, const Epilogue* epilogue);
template <class T>
bool conv_backward_input(const ConvGeometry& geometry, const T* dy, const T* filter, T* dx, const Epilogue* epilogue);
template <class T> void conv_backward_filter(const ConvGeometry& geometry, const T* x, const T* dy, T* dfilter);

// Depthwise: filter (filter..., in_channels, multiplier) with out_channels = in_channels * multiplier; output channel
// c * multiplier + m reads input channel c alone. `groups` is not read.
template <class T>
bool depthwise_forward(const ConvGeometry& geometry, const T* x, const T* filter, T* y, const Epilogue* epilogue);
template <class T> void depthwise_backward_input(const ConvGeometry& geometry, const T* dy, const T* filter, T* dx);
template <class T> void depthwise_backward_filter(const ConvGeometry& geometry, const T* x, const T* dy, T* dfilter);

// What one tile of a convolution computes, for r < rows and columns n of one or two vectors:
//   c[r][c_offset + n] (+)= sum over i < outer, j < inner of a[r][offset[i] + j * a_step] * b[(i * inner + j) * b_step
//   + n]
// In a lanewise tile, a[r][... + n] stands in the place of a[r][...]. b must be readable over whole vectors; of c only
// `columns` numbers are touched.
template <class T> struct ConvTile {
  const T* const* a;
  const int64_t* offset;
  int64_t outer, inner, a_step;
  const T* b;
  int64_t b_step;
  T* const* c;
  int64_t c_offset, columns;
  bool accumulate;
};

// One vector of channels along a row of points, lanewise, where points and taps are neighbouring cells:
//   c[p * c_pixel + n] = sum over i < outer, j < width of a[offset[i] + (p + j) * a_pixel + n] * b[(i * width + j) *
//   b_step
//   + n]
template <class T> struct ConvRow {
  const T* a;
  int64_t a_pixel;
  const int64_t* offset;
  int64_t outer, width;
  const T* b;
  int64_t b_step;
  T* c;
  int64_t c_pixel, points, columns;
};

// The tiles of one instruction set, by rows - 1. convolve_kernel.cc defines them in a namespace per set; convolve.cc
// chooses.
template <class T> struct ConvKernels {
  static constexpr int most_rows = 10;
  using Run = void (*)(const ConvTile<T>&);
  int lanes;  // numbers in a vector
  int rows;   // largest number of rows that is fast
  Run one_vector[most_rows], two_vectors[most_rows], lanewise[most_rows];
  void (*row)(const ConvRow<T>&);
};

namespace baseline {
template <class T> const ConvKernels<T>& conv_kernels();
}
namespace avx2 {
template <class T> const ConvKernels<T>& conv_kernels();
}
namespace avx512 {
template <class T> const ConvKernels<T>& conv_kernels();
}

}  // namespace tapeflow
