// A tensor seen as lines of elements along one axis.
#pragma once
#include <algorithm>

#include "base/shape.h"

namespace tapeflow {

// Lines of `count` elements, `inner` apart, along one axis.
struct Lines {
  int64_t outer, count, inner;

  // Fewest blocks of `inner` lines that are worth a thread.
  int64_t grain() const { return std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, count * inner)); }
};
inline Lines lines_of(const Shape& shape, int axis) {
  return {shape.elements(0, axis), shape[axis], shape.elements(axis + 1, shape.rank())};
}

}  // namespace tapeflow
