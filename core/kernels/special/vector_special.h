// Special functions of whole arrays. Conventions are those of kernels/simd/vector.h.
#pragma once
#include "kernels/simd/vector.h"

namespace tapeflow {

template <class T> struct SpecialKernels {
  UnaryKernel<T> erfinv, ndtri, log_gamma, digamma;
};

template <class T> const SpecialKernels<T>& special_kernels();  // T = float, double
template <> const SpecialKernels<float>& special_kernels<float>();
template <> const SpecialKernels<double>& special_kernels<double>();

}  // namespace tapeflow
