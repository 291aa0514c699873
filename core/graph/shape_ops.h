// What is known of a shape only when the graph runs: the shape as a tensor, and index expressions with symbolic parts.
#pragma once
#include "graph/graph.h"
#include "ops/slicing.h"

namespace tapeflow {

// The dimensions as an integer tensor.
Tensor shape_of(const Tensor& x, DType);

// One number everywhere, in the shape that a symbolic tensor will have.
Tensor filled_when_run(const Tensor& x, double value);

// A number of an index expression that a tensor gives.
struct OpenPart {
  Tensor value;
  size_t part;
  enum class Which : uint8_t { begin, end, step } which;
};
// x[key], where the open parts are filled in when the graph runs.
Tensor get_item(const Tensor& x, const SliceKey& key, std::span<const OpenPart> open);

}  // namespace tapeflow
