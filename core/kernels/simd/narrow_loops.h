// Elementwise loops over half and bfloat16 by the vector kernels of float: a block of elements becomes float, the
// kernel runs, and the results are rounded. Each element is rounded once, as if it were computed alone.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/dtype.h"
#include "kernels/simd/vector.h"

namespace tapeflow {

// How the 16 bits of a type become floats, and back.
struct NarrowType {
  void (*widen)(const uint16_t* x, float* y, int64_t n);
  void (*round)(const float* x, uint16_t* y, int64_t n);
};
template <class T> NarrowType narrow_type() {
  static_assert(is_small_float<T>);
  const ConversionKernels& k = conversion_kernels();
  if constexpr (std::is_same_v<T, half>)
    return {k.half_to_float, k.float_to_half};
  else
    return {k.bfloat16_to_float, k.float_to_bfloat16};
}

enum class Operands { vv, vs, sv };  // which of the two are arrays (v), and which a single number (s)

void loop_narrow(UnaryKernel<float>, NarrowType, const void* x, void* y, int64_t n);
// Y = float: results of the narrow type. Y = bool: booleans.
template <class Y>
void loop_narrow(const BinaryKernel<float, Y>&, NarrowType, Operands, const void* a, const void* b, void* y, int64_t n);

}  // namespace tapeflow
