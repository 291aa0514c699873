// The sum of one run of elements that several processes hold, in the order of their ranks. Knows pointers only.
#pragma once
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace tapeflow {

// y = parts[0] + parts[1] + ..., n elements. bool: logical or. float16 and bfloat16 are added in float32 and rounded
// once; `y_dtype` is the dtype of the parts, or float32 for parts of bfloat16. `y` may be one of the parts.
void sum_of_parts(std::span<const void* const> parts, DType part_dtype, void* y, DType y_dtype, int64_t n);

// Copies n elements; float32 to bfloat16 and back are converted. With `past_caches` they are written to memory at once:
// where cores are far from each other, a line that another core has read is slow to write. `fence_stores` comes after.
void convert_elements(const void* x, DType x_dtype, void* y, DType y_dtype, int64_t n, bool past_caches = false);
void fence_stores();

}  // namespace tapeflow
