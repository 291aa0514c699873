// Chooses the zero-safe products and quotients for this machine. They are in zero_safe_kernel.cc, compiled once per
// instruction set.
#include "kernels/simd/zero_safe.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const ZeroSafeKernels<float> float_zero_safe;
                         extern const ZeroSafeKernels<double> double_zero_safe;)

template <> const ZeroSafeKernels<float>& zero_safe_kernels<float>() {
  return TAPEFLOW_OF_THIS_MACHINE(float_zero_safe);
}
template <> const ZeroSafeKernels<double>& zero_safe_kernels<double>() {
  return TAPEFLOW_OF_THIS_MACHINE(double_zero_safe);
}

}  // namespace tapeflow
