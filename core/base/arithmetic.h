// Elementwise functions that loops over several operations know.
#pragma once
#include <cstdint>

namespace tapeflow {

// Those up to the square root have loops of two or three in kernels/simd/fused_loops.h; `first` gives its first operand
// as it is. All but `first` can be compiled: base/compiled_loop.h.
enum class Arithmetic : uint8_t {
  none,
  first,
  add,
  subtract,
  multiply,  // of one operand: its square
  divide,
  square_root,
  negative,
  absolute,
  sign,
  maximum,
  minimum,
  squared_difference,
  reciprocal,
  reciprocal_square_root,
  relu,
  relu_grad,     // (dy, x)
  tanh_grad,     // (y, dy)
  sigmoid_grad,  // (y, dy)
};
constexpr bool commutes(Arithmetic f) { return f == Arithmetic::add || f == Arithmetic::multiply; }

}  // namespace tapeflow
