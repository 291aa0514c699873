// Chooses the places of extrema for this machine. They are in arg_extremum_kernel.cc, compiled once per instruction
// set.
#include "kernels/simd/arg_extremum.h"

#include "base/instruction_set.h"

namespace tapeflow {

TAPEFLOW_DECLARE_PER_SET(extern const ArgExtremumKernels<float> float_places_of_largest;
                         extern const ArgExtremumKernels<float> float_places_of_smallest;
                         extern const ArgExtremumKernels<double> double_places_of_largest;
                         extern const ArgExtremumKernels<double> double_places_of_smallest;)

template <> const ArgExtremumKernels<float>& arg_extremum_kernels<true, float>() {
  return TAPEFLOW_OF_THIS_MACHINE(float_places_of_largest);
}
template <> const ArgExtremumKernels<float>& arg_extremum_kernels<false, float>() {
  return TAPEFLOW_OF_THIS_MACHINE(float_places_of_smallest);
}
template <> const ArgExtremumKernels<double>& arg_extremum_kernels<true, double>() {
  return TAPEFLOW_OF_THIS_MACHINE(double_places_of_largest);
}
template <> const ArgExtremumKernels<double>& arg_extremum_kernels<false, double>() {
  return TAPEFLOW_OF_THIS_MACHINE(double_places_of_smallest);
}

}  // namespace tapeflow
