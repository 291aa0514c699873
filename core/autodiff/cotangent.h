// Cotangents: what flows backwards. Dense, or a few rows of a larger tensor (from gather), which add up lazily.
#pragma once
#include "op/op.h"

namespace tapeflow {

struct Cotangent {
  Tensor values;
  Tensor indices;  // if set, `values` are the rows with these numbers of a tensor that is zero elsewhere
  explicit operator bool() const { return bool(values); }
};

// total += more. Writes into `total` when nobody else holds it and nobody records.
void accumulate(Cotangent& total, Cotangent more, const Shape& shape);

void add_dense(Tensor& total, const Tensor& more);

// The dense form, for a tensor of the given shape.
Tensor densified(const Cotangent&, const Shape& shape);

}  // namespace tapeflow
