// Chooses the combined loops for this machine. They are in combination_kernel.cc, compiled once per instruction set.
#include "kernels/combination.h"

#include "base/instruction_set.h"

namespace tapeflow {

#define TAPEFLOW_DECLARE(isa) \
  namespace isa {             \
  Combination combination(bool doubles, Arithmetic outer, Arithmetic left, Arithmetic right); \
  }
TAPEFLOW_DECLARE(baseline)
#if defined(__x86_64__)
TAPEFLOW_DECLARE(avx2)
TAPEFLOW_DECLARE(avx512)
#endif
#undef TAPEFLOW_DECLARE

Combination find_combination(bool doubles, Arithmetic outer, Arithmetic left, Arithmetic right) {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return avx512::combination(doubles, outer, left, right);
  if (instruction_set() == InstructionSet::avx2) return avx2::combination(doubles, outer, left, right);
#endif
  return baseline::combination(doubles, outer, left, right);
}

}  // namespace tapeflow
