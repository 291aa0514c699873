// Vector kernels over contiguous complex64 arrays. Conventions are those of kernels/simd/vector.h; members have the
// names that they have there.
#pragma once
#include <complex>

#include "kernels/simd/vector.h"

namespace tapeflow {

template <> struct VectorKernels<std::complex<float>> {
  using Complex = std::complex<float>;
  BinaryKernel<Complex> add, subtract;
  BinaryKernel<Complex> multiply;  // by the textbook's formula, each operation rounded by itself
  BinaryKernel<Complex> divide;    // in double; infinities and zeros by the rules of C
  UnaryKernel<Complex> negative, exp;
  void (*abs)(const Complex* x, float* y, int64_t n);
};

template <> const VectorKernels<std::complex<float>>& vector_kernels<std::complex<float>>();

}  // namespace tapeflow
