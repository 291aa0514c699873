// Max and average pooling over channels-last data, and their derivatives. Knows no Tensor; padding rules are the
// caller's.
#pragma once

#include <cstdint>

#include "kernels/epilogue.h"

namespace tapeflow {

// Sizes of one pooling. Input (batch, in..., channels), output (batch, out..., channels), dense. `rank` is 1 to 3;
// entries of unused dimensions are 1 (pad_before 0). Output cell o covers input cells o * stride + k * dilation -
// pad_before, 0 <= k < window; cells outside the input are ignored. Every window must hold at least one cell of the
// input.
struct PoolGeometry {
  int rank;
  int64_t batch, channels;
  int64_t in[3], window[3], out[3], stride[3], dilation[3], pad_before[3];
};

// Comparisons follow TensorFlow's CPU kernels. Values alone (`argmax` null): the maximum starts at the lowest finite
// number and grows by `>`, so NaN is ignored and a window of NaN or -inf gives the lowest finite number. With `argmax`:
// the first cell of the window is taken whatever it holds, later ones by `>`, so a NaN stays if it is first. `argmax`
// holds the element's position inside its own image, ((i * in[1] + j) * in[2] + k) * channels + channel. T: float,
// double, and the integers of 8 to 64 bits.
template <class T> void max_pool_forward(const PoolGeometry& geometry, const T* x, T* y, int64_t* argmax);

// dx: each dy goes to the cell that `argmax` above would name: the first maximum in scan order. T: float, double. True
// if it called `epilogue`, which may be null.
template <class T>
bool max_pool_backward(const PoolGeometry& geometry, const T* x, const T* dy, T* dx, const Epilogue* epilogue);

// The transpose of max_pool_backward: y[window] = v[first maximum of x in the window], v shaped like x. It serves the
// gradient of the gradient and forward mode. T: float, double.
template <class T> void max_pool_gather(const PoolGeometry& geometry, const T* x, const T* v, T* y);

// The same two for known positions (as max_pool_forward gives them).
template <class T> void max_pool_backward_at(const PoolGeometry& geometry, const int64_t* argmax, const T* dy, T* dx);
template <class T> void max_pool_gather_at(const PoolGeometry& geometry, const int64_t* argmax, const T* v, T* y);

// Mean over the cells of a window that lie inside the input. T: float, double.
template <class T> void avg_pool_forward(const PoolGeometry& geometry, const T* x, T* y);
template <class T> bool avg_pool_backward(const PoolGeometry& geometry, const T* dy, T* dx, const Epilogue* epilogue);

// Some neighbouring windows whose cells lie alike: cell i of window w is at w * in_step + offset[i], for each channel;
// its result is at w * out_step.
struct PoolRun {
  const int64_t* offset;
  int64_t cells, windows, in_step, out_step, channels;
};

// The loops of one instruction set. pool_kernel.cc defines them in a namespace per set; pool.cc chooses. In the
// backward ones, windows that are `alone` share no cell, so that cells are written and not added to. Only max_forward
// is there for integers.
template <class T> struct PoolKernels {
  void (*max_forward)(const PoolRun&, const T* x, T* y);
  void (*max_backward)(const PoolRun&, const T* x, const T* dy, T* dx);
  void (*max_backward_alone)(const PoolRun&, const T* x, const T* dy, T* dx);
  void (*average_forward)(const PoolRun&, const T* x, T* y);
  void (*average_backward)(const PoolRun&, const T* dy, T* dx);
  void (*average_backward_alone)(const PoolRun&, const T* dy, T* dx);
};

namespace baseline {
template <class T> PoolKernels<T> pool_kernels();
}
namespace avx2 {
template <class T> PoolKernels<T> pool_kernels();
}
namespace avx512 {
template <class T> PoolKernels<T> pool_kernels();
}

}  // namespace tapeflow
