// Chooses the reductions of short rows for this machine. They are in short_rows_kernel.cc, compiled once per
// instruction set.
#include "kernels/simd/short_rows.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const ShortRowKernels<float> float_short_rows;
                         extern const ShortRowKernels<double> double_short_rows;)

template <> const ShortRowKernels<float>& short_row_kernels<float>() {
  return TAPEFLOW_OF_THIS_MACHINE(float_short_rows);
}
template <> const ShortRowKernels<double>& short_row_kernels<double>() {
  return TAPEFLOW_OF_THIS_MACHINE(double_short_rows);
}

}  // namespace tapeflow
