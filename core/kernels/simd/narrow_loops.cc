// The blocks fit into the first-level cache with their operands and results.
#include "kernels/simd/narrow_loops.h"

#include <algorithm>

namespace tapeflow {
namespace {

constexpr int64_t kBlock = 512;

}  // namespace

void loop_narrow(UnaryKernel<float> kernel, NarrowType type, const void* x, void* y, int64_t n) {
  const auto* from = static_cast<const uint16_t*>(x);
  auto* to = static_cast<uint16_t*>(y);
  float in[kBlock], out[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t size = std::min(kBlock, n - i);
    type.widen(from + i, in, size);
    kernel(in, out, size);
    type.round(out, to + i, size);
  }
}

template <class Y> void loop_narrow(const BinaryKernel<float, Y>& kernel, NarrowType type, Operands operands,
                                    const void* a, const void* b, void* y, int64_t n) {
  const auto *from_a = static_cast<const uint16_t*>(a), *from_b = static_cast<const uint16_t*>(b);
  float left[kBlock], right[kBlock];
  float out[kBlock];
  if (operands == Operands::sv) type.widen(from_a, left, 1);
  if (operands == Operands::vs) type.widen(from_b, right, 1);
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t size = std::min(kBlock, n - i);
    if (operands != Operands::sv) type.widen(from_a + i, left, size);
    if (operands != Operands::vs) type.widen(from_b + i, right, size);
    Y* results;
    if constexpr (std::is_same_v<Y, float>)
      results = out;
    else
      results = static_cast<Y*>(y) + i;
    switch (operands) {
      case Operands::vv: kernel.vv(left, right, results, size); break;
      case Operands::vs: kernel.vs(left, right[0], results, size); break;
      case Operands::sv: kernel.sv(left[0], right, results, size); break;
    }
    if constexpr (std::is_same_v<Y, float>) type.round(out, static_cast<uint16_t*>(y) + i, size);
  }
}

template void loop_narrow(const BinaryKernel<float>&, NarrowType, Operands, const void*, const void*, void*, int64_t);
template void loop_narrow(const BinaryKernel<float, bool>&, NarrowType, Operands, const void*, const void*, void*,
                          int64_t);

}  // namespace tapeflow
