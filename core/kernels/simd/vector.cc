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
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512)
    return {"avx512", &avx512::float_kernels, &avx512::double_kernels, &avx512::conversions, avx512::copy_kernel};
  if (instruction_set() == InstructionSet::avx2)
    return {"avx2", &avx2::float_kernels, &avx2::double_kernels, &avx2::conversions, avx2::copy_kernel};
#endif
  return {"baseline", &baseline::float_kernels, &baseline::double_kernels, &baseline::conversions,
          baseline::copy_kernel};
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
