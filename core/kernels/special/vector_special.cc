// Chooses the special functions for this machine. They are in vector_special_kernel.cc, compiled once per instruction
// set.
#include "kernels/special/vector_special.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const SpecialKernels<float> float_special;
                         extern const SpecialKernels<double> double_special;)

template <> const SpecialKernels<float>& special_kernels<float>() { return TAPEFLOW_OF_THIS_MACHINE(float_special); }
template <> const SpecialKernels<double>& special_kernels<double>() { return TAPEFLOW_OF_THIS_MACHINE(double_special); }

}  // namespace tapeflow
