#pragma once
// The check of entries whose kernels read several tensors as elements of one type.

#include "op/op.h"

namespace tapeflow::family {

// Throws TensorFlow's error unless this input has the dtype of the first one.
void check_dtype(const Call& call, size_t input);

}  // namespace tapeflow::family
