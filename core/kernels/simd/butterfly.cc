// Chooses the passes for this machine. They are in butterfly_kernel.cc, compiled once per instruction set.
#include "kernels/simd/butterfly.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const Butterfly<float> float_butterfly;
                         extern const Butterfly<double> double_butterfly;)

template <> Butterfly<float> butterfly_of_this_machine<float>() { return TAPEFLOW_OF_THIS_MACHINE(float_butterfly); }
template <> Butterfly<double> butterfly_of_this_machine<double>() { return TAPEFLOW_OF_THIS_MACHINE(double_butterfly); }

}  // namespace tapeflow
