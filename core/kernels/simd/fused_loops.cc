// Chooses the combined loops for this machine. They are in combination_kernel.cc, compiled once per instruction set.
#include "kernels/simd/fused_loops.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(Combination combination(bool doubles, Arithmetic outer, Arithmetic left, Arithmetic right);)

Combination find_combination(bool doubles, Arithmetic outer, Arithmetic left, Arithmetic right) {
  return TAPEFLOW_OF_THIS_MACHINE(combination)(doubles, outer, left, right);
}

}  // namespace tapeflow
