// Products and quotients of two arrays that are zero where an operand is zero, whatever the other one is; and a
// comparison that knows subnormal numbers from zeros. Conventions are those of kernels/simd/vector.h.
#pragma once
#include "kernels/simd/vector.h"

namespace tapeflow {

template <class T> struct ZeroSafeKernels {
  BinaryKernel<T> divide_no_nan;    // a / b, 0 where b is 0
  BinaryKernel<T> multiply_no_nan;  // a b, 0 where b is 0
  BinaryKernel<T> xdivy;            // a / b, a where a is 0
  BinaryKernel<T> xlogy;            // a log(b), a where a is 0
  BinaryKernel<T> xlog1py;          // a log(1 + b), a where a is 0
  BinaryKernel<T> equal_number;  // 1 where a and b are equal, else 0: by their bits, if subnormals count as zeros, too
};

template <class T> const ZeroSafeKernels<T>& zero_safe_kernels();  // T = float, double
template <> const ZeroSafeKernels<float>& zero_safe_kernels<float>();
template <> const ZeroSafeKernels<double>& zero_safe_kernels<double>();

}  // namespace tapeflow
