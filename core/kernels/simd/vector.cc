// Chooses the table of vector kernels for this machine. The kernels are in vector_isa.cc, compiled once per set.
#include "kernels/simd/vector.h"

#include "base/instruction_set.h"
#include "kernels/copy.h"

namespace tapeflow {

#define TAPEFLOW_DECLARE_TABLES(isa)                 \
  namespace isa {                                    \
  extern const VectorKernels<float> float_kernels;   \
  extern const VectorKernels<double> double_kernels; \
  extern const ConversionKernels conversions;        \
  extern const CopyRuns copy_kernel;                 \
  }
TAPEFLOW_DECLARE_TABLES(baseline)
#if defined(__x86_64__)
TAPEFLOW_DECLARE_TABLES(avx2)
TAPEFLOW_DECLARE_TABLES(avx512)
#endif
#undef TAPEFLOW_DECLARE_TABLES

namespace {

struct Tables {
  const char* isa;
  const VectorKernels<float>* float_kernels;
  const VectorKernels<double>* double_kernels;
  const ConversionKernels* conversions;
  CopyRuns copy_runs;
};

Tables choose() {
  static const char* names[] = {"baseline", "avx2", "avx512"};
  return {names[int(instruction_set())], &TAPEFLOW_OF_THIS_MACHINE(float_kernels),
          &TAPEFLOW_OF_THIS_MACHINE(double_kernels), &TAPEFLOW_OF_THIS_MACHINE(conversions),
          TAPEFLOW_OF_THIS_MACHINE(copy_kernel)};
}

const Tables& tables() {
  static const Tables chosen = choose();
  return chosen;
}

}  // namespace

template <> const VectorKernels<float>& vector_kernels<float>() { return *tables().float_kernels; }

template <> const VectorKernels<double>& vector_kernels<double>() { return *tables().double_kernels; }

const ConversionKernels& conversion_kernels() { return *tables().conversions; }

void copy_runs(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t bytes, int64_t rows) {
  tables().copy_runs(from, from_step, to, to_step, bytes, rows);
}

const char* vector_isa() { return tables().isa; }

}  // namespace tapeflow
