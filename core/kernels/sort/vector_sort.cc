// Chooses the kernels for this machine. They are in vector_sort_kernel.cc, compiled once per instruction set.
#include "kernels/sort/vector_sort.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const SortKernels sort_kernels;)

const SortKernels& sort_kernels() { return TAPEFLOW_OF_THIS_MACHINE(sort_kernels); }

}  // namespace tapeflow
