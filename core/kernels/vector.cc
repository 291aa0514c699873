// Chooses the table of vector kernels for this machine. The kernels are in vector_isa.cc, compiled once per set.
#include "kernels/vector.h"

#include "base/instruction_set.h"

namespace tapeflow {

#define TAPEFLOW_DECLARE_TABLES(isa)                \
  namespace isa {                                   \
  extern const VectorKernels<float> float_kernels;  \
  extern const VectorKernels<double> double_kernels; \
  extern const ConversionKernels conversions;       \
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
};

Tables choose() {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512)
    return {"avx512", &avx512::float_kernels, &avx512::double_kernels, &avx512::conversions};
  if (instruction_set() == InstructionSet::avx2)
    return {"avx2", &avx2::float_kernels, &avx2::double_kernels, &avx2::conversions};
#endif
  return {"baseline", &baseline::float_kernels, &baseline::double_kernels, &baseline::conversions};
}

const Tables& tables() {
  static const Tables chosen = choose();
  return chosen;
}

}  // namespace

template <>
const VectorKernels<float>& vector_kernels<float>() {
  return *tables().float_kernels;
}

template <>
const VectorKernels<double>& vector_kernels<double>() {
  return *tables().double_kernels;
}

const ConversionKernels& conversion_kernels() { return *tables().conversions; }

const char* vector_isa() { return tables().isa; }

}  // namespace tapeflow
