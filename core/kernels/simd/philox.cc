// Chooses the loops for this machine. They are in philox_kernel.cc, compiled once per instruction set.
#include "kernels/simd/philox.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const PhiloxKernels philox_kernels;)

const PhiloxKernels& philox_kernels() { return TAPEFLOW_OF_THIS_MACHINE(philox_kernels); }

}  // namespace tapeflow
