// Chooses the functions of quotients for this machine. They are in quotients_kernel.cc, compiled once per instruction set.
#include "kernels/quotients.h"

#include "base/instruction_set.h"

namespace tapeflow {

#define TAPEFLOW_DECLARE_TABLES(isa)                     \
  namespace isa {                                        \
  extern const QuotientKernels<float> float_quotients;    \
  extern const QuotientKernels<double> double_quotients;  \
  }
TAPEFLOW_DECLARE_TABLES(baseline)
#if defined(__x86_64__)
TAPEFLOW_DECLARE_TABLES(avx2)
TAPEFLOW_DECLARE_TABLES(avx512)
#endif
#undef TAPEFLOW_DECLARE_TABLES

template <>
const QuotientKernels<float>& quotient_kernels<float>() {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return avx512::float_quotients;
  if (instruction_set() == InstructionSet::avx2) return avx2::float_quotients;
#endif
  return baseline::float_quotients;
}

template <>
const QuotientKernels<double>& quotient_kernels<double>() {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return avx512::double_quotients;
  if (instruction_set() == InstructionSet::avx2) return avx2::double_quotients;
#endif
  return baseline::double_quotients;
}

}  // namespace tapeflow
