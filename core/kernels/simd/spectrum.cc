// Chooses the kernels of spectra for this machine. They are in spectrum_kernel.cc, compiled once per instruction set.
#include "kernels/simd/spectrum.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const SpectrumKernels<float> float_spectrum;
                         extern const SpectrumKernels<double> double_spectrum;)

template <> const SpectrumKernels<float>& spectrum_kernels<float>() { return TAPEFLOW_OF_THIS_MACHINE(float_spectrum); }
template <> const SpectrumKernels<double>& spectrum_kernels<double>() {
  return TAPEFLOW_OF_THIS_MACHINE(double_spectrum);
}

}  // namespace tapeflow
