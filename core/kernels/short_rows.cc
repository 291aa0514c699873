// Chooses the reductions of short rows for this machine. They are in short_rows_kernel.cc, compiled once per instruction set.
#include "kernels/short_rows.h"

#include "base/instruction_set.h"

namespace tapeflow {

#define TAPEFLOW_DECLARE_TABLES(isa)                     \
  namespace isa {                                        \
  extern const ShortRowKernels<float> float_short_rows;  \
  extern const ShortRowKernels<double> double_short_rows; \
  }
TAPEFLOW_DECLARE_TABLES(baseline)
#if defined(__x86_64__)
TAPEFLOW_DECLARE_TABLES(avx2)
TAPEFLOW_DECLARE_TABLES(avx512)
#endif
#undef TAPEFLOW_DECLARE_TABLES

template <>
const ShortRowKernels<float>& short_row_kernels<float>() {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return avx512::float_short_rows;
  if (instruction_set() == InstructionSet::avx2) return avx2::float_short_rows;
#endif
  return baseline::float_short_rows;
}

template <>
const ShortRowKernels<double>& short_row_kernels<double>() {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return avx512::double_short_rows;
  if (instruction_set() == InstructionSet::avx2) return avx2::double_short_rows;
#endif
  return baseline::double_short_rows;
}

}  // namespace tapeflow
