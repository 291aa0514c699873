// The table of vector kernels over contiguous float and double arrays, one table per instruction set.
// It owns no loop over strides, no threads and no Tensor: callers split work and hand over pointers and sizes.
//
// In every elementwise kernel `y` may be the same array as an input (not a shifted one), and an element's result
// depends on its operands alone: never on index, length or alignment. NaN goes in, NaN comes out.
#pragma once

#include <cstdint>

namespace tapeflow {

template <class T> using UnaryKernel = void (*)(const T* x, T* y, int64_t n);

// One function of two operands, for arrays on both sides (vv) and for a single number on the right (vs) or left (sv).
template <class T, class Y = T> struct BinaryKernel {
  using Result = Y;
  void (*vv)(const T* a, const T* b, Y* y, int64_t n);
  void (*vs)(const T* a, T b, Y* y, int64_t n);
  void (*sv)(T a, const T* b, Y* y, int64_t n);
};

// y = condition ? a : b on elements of some size, with a single one in the place of one array or both.
template <class T> struct ChoiceKernel {
  void (*vv)(const bool* condition, const T* a, const T* b, T* y, int64_t n);
  void (*vs)(const bool* condition, const T* a, T b, T* y, int64_t n);
  void (*sv)(const bool* condition, T a, const T* b, T* y, int64_t n);
  void (*ss)(const bool* condition, T a, T b, T* y, int64_t n);
};

template <class T> struct VectorKernels {
  UnaryKernel<T> negative, abs, square, sqrt, rsqrt, reciprocal, floor, ceil, rint /* half to even */, sign;
  UnaryKernel<T> exp, expm1, log, log1p, sin, cos, tanh, sigmoid, erf, erfc;
  UnaryKernel<T> tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh;
  UnaryKernel<T> relu, relu6, softplus, softsign, elu, selu, silu, gelu_tanh, gelu_erf;

  BinaryKernel<T> add, subtract, multiply, divide, squared_difference;
  BinaryKernel<T> maximum, minimum;  // NaN propagates from either side
  BinaryKernel<T> pow, sigmoid_cross_entropy /* (logit, label) */;
  BinaryKernel<T, bool> less, less_equal, greater, greater_equal, equal, not_equal;
  ChoiceKernel<T> choose;

  // Derivatives, the operands in TensorFlow's order.
  BinaryKernel<T> tanh_grad;        // (y, dy): dy (1 - y²)
  BinaryKernel<T> sigmoid_grad;     // (y, dy): dy y (1 - y)
  BinaryKernel<T> sqrt_grad;        // (y, dy): dy / (2 y); these three are 0 where dy is 0, whatever y is
  BinaryKernel<T> rsqrt_grad;       // (y, dy): -dy y³ / 2
  BinaryKernel<T> reciprocal_grad;  // (y, dy): -dy y²
  BinaryKernel<T> square_grad;      // (x, dy): 2 x dy
  BinaryKernel<T> relu_grad;        // (dy, x or y): x > 0 ? dy : 0
  BinaryKernel<T> relu6_grad;       // (dy, x or y): 0 < x < 6 ? dy : 0
  BinaryKernel<T> elu_grad;         // (dy, y): y < 0 ? dy (y + 1) : dy
  BinaryKernel<T> selu_grad;        // (dy, y): y < 0 ? dy (y + scale alpha) : dy scale
  BinaryKernel<T> softplus_grad;    // (dy, x): dy sigmoid(x)
  BinaryKernel<T> softsign_grad;    // (dy, x): dy / (1 + |x|)²
  BinaryKernel<T> silu_grad;        // (dy, x)
  BinaryKernel<T> gelu_tanh_grad;   // (dy, x)
  BinaryKernel<T> gelu_erf_grad;    // (dy, x)

  void (*axpy)(T alpha, const T* x, T* y, int64_t n);  // y += alpha x

  // Reductions of one array. Sums are pairwise over blocks: rounding grows with log n, as in NumPy.
  // max and min of an empty array are -inf and +inf; a NaN anywhere gives NaN.
  T (*sum)(const T* x, int64_t n);
  T (*sum_of_squares)(const T* x, int64_t n);
  T (*dot)(const T* a, const T* b, int64_t n);
  T (*max)(const T* x, int64_t n);
  T (*min)(const T* x, int64_t n);

  // Reductions over leading axes: one row of input is folded into the row of results.
  UnaryKernel<T> accumulate;      // y[j] += x[j]
  UnaryKernel<T> accumulate_max;  // y[j] = maximum(y[j], x[j])
  UnaryKernel<T> accumulate_min;  // y[j] = minimum(y[j], x[j])

  UnaryKernel<T> accumulate_squares;  // y[j] += x[j]²

  // Statistics. Of one array: the sum of (x - center)². Of columns: y[j] += (x[j] - center[j])².
  T (*squared_distance)(const T* x, T center, int64_t n);
  void (*accumulate_squared_distance)(const T* x, const T* center, T* y, int64_t n);

  // y = (x - center) factor scale + offset, for one row with its own center and factor. Backwards: dx = dy scale
  // factor, d_scale += dy (x - center) factor, d_offset += dy; the sums of dy scale and of dy scale (x - center) go to
  // `sums`.
  void (*normalize_row)(const T* x, T center, T factor, const T* scale, const T* offset, T* y, int64_t n);
  void (*normalize_row_grad)(const T* x, const T* dy, T center, T factor, const T* scale, T* dx, T* d_scale,
                             T* d_offset, T* sums, int64_t n);
  // The same where center and factor belong to columns, the scale being in the factor. Backwards: d_offset += dy and
  // d_factor += dy (x - center).
  void (*normalize_columns)(const T* x, const T* center, const T* factor, const T* offset, T* y, int64_t n);
  void (*normalize_columns_grad)(const T* x, const T* dy, const T* center, const T* factor, T* dx, T* d_factor,
                                 T* d_offset, int64_t n);

  // One row of n logits; `y` may be `x`.
  UnaryKernel<T> softmax_row, log_softmax_row;
  // The losses return the loss of the row and write its derivative by the logits into `dx`, which may be `logits`.
  T (*sparse_cross_entropy_row)(const T* logits, int64_t label, T* dx, int64_t n);  // 0 <= label < n
  T (*cross_entropy_row)(const T* logits, const T* labels, T* dx, int64_t n);       // dx = softmax(logits) - labels
};

// Conversions between element types; half and bfloat16 are passed as their 16 bits. Input and output must not overlap.
// Rounding is to nearest, ties to even; NaN stays NaN. `float_to_int32` truncates; out of range it is unspecified.
struct ConversionKernels {
  void (*float_to_double)(const float* x, double* y, int64_t n);
  void (*double_to_float)(const double* x, float* y, int64_t n);
  void (*float_to_bfloat16)(const float* x, uint16_t* y, int64_t n);
  void (*bfloat16_to_float)(const uint16_t* x, float* y, int64_t n);
  void (*float_to_half)(const float* x, uint16_t* y, int64_t n);
  void (*half_to_float)(const uint16_t* x, float* y, int64_t n);
  void (*int32_to_float)(const int32_t* x, float* y, int64_t n);
  void (*float_to_int32)(const float* x, int32_t* y, int64_t n);
  void (*bool_to_float)(const uint8_t* x, float* y, int64_t n);  // 0 gives 0, all else gives 1
};

// The tables for the best instruction set of this machine, chosen at the first call; safe in static initialisers.
// The environment variable TAPEFLOW_ISA (baseline, avx2 or avx512) asks for a lesser one.
template <class T> const VectorKernels<T>& vector_kernels();  // T = float, double
template <> const VectorKernels<float>& vector_kernels<float>();
template <> const VectorKernels<double>& vector_kernels<double>();
const ConversionKernels& conversion_kernels();
const char* vector_isa();  // the name of the chosen instruction set

}  // namespace tapeflow
