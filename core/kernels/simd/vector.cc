// Chooses the tables of vector kernels for this machine. The kernels are in vector_isa.cc, complex_kernel.cc,
// fmod_atan2_kernel.cc and zero_safe_kernel.cc, compiled once per set.
#include "kernels/simd/vector.h"

#include "base/instruction_set.h"
#include "kernels/copy.h"
#include "kernels/simd/complex.h"
#include "kernels/simd/fmod_atan2.h"
#include "kernels/simd/zero_safe.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const VectorKernels<float> float_kernels;
                         extern const VectorKernels<double> double_kernels;
                         extern const VectorKernels<std::complex<float>> complex_kernels;
                         extern const ConversionKernels conversions; extern const CopyRuns copy_kernel;
                         extern const QuotientKernels<float> float_quotients;
                         extern const QuotientKernels<double> double_quotients;
                         extern const ZeroSafeKernels<float> float_zero_safe;
                         extern const ZeroSafeKernels<double> double_zero_safe;)

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

template <> const VectorKernels<std::complex<float>>& vector_kernels<std::complex<float>>() {
  return TAPEFLOW_OF_THIS_MACHINE(complex_kernels);
}

template <> const QuotientKernels<float>& quotient_kernels<float>() {
  return TAPEFLOW_OF_THIS_MACHINE(float_quotients);
}
template <> const QuotientKernels<double>& quotient_kernels<double>() {
  return TAPEFLOW_OF_THIS_MACHINE(double_quotients);
}

template <> const ZeroSafeKernels<float>& zero_safe_kernels<float>() {
  return TAPEFLOW_OF_THIS_MACHINE(float_zero_safe);
}
template <> const ZeroSafeKernels<double>& zero_safe_kernels<double>() {
  return TAPEFLOW_OF_THIS_MACHINE(double_zero_safe);
}

const ConversionKernels& conversion_kernels() { return *tables().conversions; }

void copy_runs(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t bytes, int64_t rows) {
  tables().copy_runs(from, from_step, to, to_step, bytes, rows);
}

const char* vector_isa() { return tables().isa; }

}  // namespace tapeflow
