// Chooses the functions of complex numbers for this machine. They are in complex_kernel.cc, compiled once per
// instruction set.
#include "kernels/simd/complex_functions.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const ComplexFunctions functions_of_complex;)

const ComplexFunctions& complex_functions() { return TAPEFLOW_OF_THIS_MACHINE(functions_of_complex); }

}  // namespace tapeflow
