// Zero-safe products and quotients for one instruction set: compiled once per set, with TAPEFLOW_ISA as the namespace.
#include "kernels/simd/vector_binary.h"
#include "kernels/simd/zero_safe.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

template <class V> TAPEFLOW_INLINE V equal_number(V a, V b) {
  using Word = typename C<V>::Word;
  const auto p = bits(a), q = bits(b);
  constexpr Word infinity = Word(2 * C<V>::exponent_bias + 1) << C<V>::mantissa_bits;
  const auto equal = ((p == q) & ((p & ~sign_bit<V>) <= infinity)) | (((p | q) & ~sign_bit<V>) == Word(0));
  return equal ? splat<V>(1) : V{};
}

template <class T> constexpr ZeroSafeKernels<T> make_kernels() {
  using V = Vector<T>;
  return {
      .divide_no_nan = binary<T, [](V a, V b) { return b != T(0) ? a / b : V{}; }>,
      .multiply_no_nan = binary<T, [](V a, V b) { return b != T(0) ? a * b : V{}; }>,
      .xdivy = binary<T, [](V a, V b) { return a != T(0) ? a / b : a; }>,
      .xlogy = binary<T, [](V a, V b) { return a != T(0) ? a * log(b) : a; }>,
      .xlog1py = binary<T, [](V a, V b) { return a != T(0) ? a * log1p(b) : a; }>,
      .equal_number = binary<T, [](V a, V b) { return equal_number(a, b); }>,
  };
}

}  // namespace

extern const ZeroSafeKernels<float> float_zero_safe;
extern const ZeroSafeKernels<double> double_zero_safe;
constinit const ZeroSafeKernels<float> float_zero_safe = make_kernels<float>();
constinit const ZeroSafeKernels<double> double_zero_safe = make_kernels<double>();

}  // namespace tapeflow::TAPEFLOW_ISA
