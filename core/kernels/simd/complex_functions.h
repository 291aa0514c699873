// Functions of complex64 beside those that VectorKernels has. They compute in double; extreme numbers take the library.
#pragma once
#include "kernels/simd/complex.h"
#include "kernels/simd/vector.h"

namespace tapeflow {

struct ComplexFunctions {
  UnaryKernel<std::complex<float>> sqrt, log, sin, cos, tanh;
};
const ComplexFunctions& complex_functions();

// Picks a function from the vector kernels of real numbers, or its like of complex ones.
template <auto of_real, auto of_complex> struct RealOrComplex {
  template <class T> auto operator()(const VectorKernels<T>& kernels) const {
    if constexpr (std::is_same_v<T, std::complex<float>>)
      return complex_functions().*of_complex;
    else
      return of_real(kernels);
  }
};

}  // namespace tapeflow
