// Chooses the functions of quotients for this machine. They are in fmod_atan2_kernel.cc, compiled once per instruction
// set.
#include "kernels/simd/fmod_atan2.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const QuotientKernels<float> float_quotients;
                         extern const QuotientKernels<double> double_quotients;)

template <> const QuotientKernels<float>& quotient_kernels<float>() {
  return TAPEFLOW_OF_THIS_MACHINE(float_quotients);
}
template <> const QuotientKernels<double>& quotient_kernels<double>() {
  return TAPEFLOW_OF_THIS_MACHINE(double_quotients);
}

}  // namespace tapeflow
