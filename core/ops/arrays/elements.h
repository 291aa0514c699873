// Elements as plain bits, for operations that move them without looking at their values.
#pragma once
#include <cstring>

#include "tensor/tensor.h"

namespace tapeflow {

// Calls body with a type of the element's size (std::string for strings).
template <class Body> void by_size(DType d, Body body) {
  if (d == DType::string) return body(static_cast<std::string*>(nullptr));
  switch (size_of(d)) {
    case 1: return body(static_cast<uint8_t*>(nullptr));
    case 2: return body(static_cast<uint16_t*>(nullptr));
    case 4: return body(static_cast<uint32_t*>(nullptr));
    case 8: return body(static_cast<uint64_t*>(nullptr));
    default: return body(static_cast<std::complex<double>*>(nullptr));
  }
}

// Fewest elements whose copying is worth a thread.
constexpr int64_t kCopyGrain = 1 << 15;

}  // namespace tapeflow
