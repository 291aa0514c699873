// Zero-safe products and quotients for one instruction set: compiled once per set, with TAPEFLOW_ISA as the namespace.
#include "kernels/simd/vector_binary.h"
#include "kernels/simd/zero_safe.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

template <class T> constexpr ZeroSafeKernels<T> make_kernels() {
  using V = Vector<T>;
  return {
      .divide_no_nan = binary<T, [](V a, V b) { return b != T(0) ? a / b : V{}; }>,
      .multiply_no_nan = binary<T, [](V a, V b) { return b != T(0) ? a * b : V{}; }>,
      .xdivy = binary<T, [](V a, V b) { return a != T(0) ? a / b : a; }>,
      .xlogy = binary<T, [](V a, V b) { return a != T(0) ? a * log(b) : a; }>,
      .xlog1py = binary<T, [](V a, V b) { return a != T(0) ? a * log1p(b) : a; }>,
  };
}

}  // namespace

extern const ZeroSafeKernels<float> float_zero_safe;
extern const ZeroSafeKernels<double> double_zero_safe;
constinit const ZeroSafeKernels<float> float_zero_safe = make_kernels<float>();
constinit const ZeroSafeKernels<double> double_zero_safe = make_kernels<double>();

}  // namespace tapeflow::TAPEFLOW_ISA
