// Where kernels add up elements of a small float type: in the memory of the result, or in a wider array beside it.
#pragma once
#include "base/blocks.h"
#include "ops/family.h"

namespace tapeflow {

// The elements of y in the type that computes for T; `wide` holds them if that is another type.
template <class T> Compute<T>* wide_elements(const Tensor& y, BlockVector<Compute<T>>& wide) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    return y.mutable_data<T>();
  } else {
    wide.resize(size_t(y.size()));
    return wide.data();
  }
}

}  // namespace tapeflow
