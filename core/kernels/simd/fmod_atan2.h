// Functions of the quotient of two arrays: remainders and angles. Conventions are those of kernels/simd/vector.h.
#pragma once
#include "kernels/simd/vector.h"

namespace tapeflow {

template <class T> struct QuotientKernels {
  BinaryKernel<T> floor_mod;     // the sign of the second operand
  BinaryKernel<T> truncate_mod;  // the sign of the first operand
  BinaryKernel<T> atan2;
};

template <class T> const QuotientKernels<T>& quotient_kernels();  // T = float, double
template <> const QuotientKernels<float>& quotient_kernels<float>();
template <> const QuotientKernels<double>& quotient_kernels<double>();

}  // namespace tapeflow
