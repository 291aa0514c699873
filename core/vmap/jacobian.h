// Jacobians: the backward pass of a tape, traced once into a graph and run for many cotangents at a time.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

struct JacobianRequest {
  ValueIndex target;
  Tensor like;  // the target's value: its dtype and shape
  std::span<const ValueIndex> sources;
  std::span<const Shape> source_shapes;
  bool by_example;  // the first dimension of target and sources is a batch; the gradient of each example alone
  int64_t chunk;    // rows that are computed at a time; 0: as many as keep the largest tensor within kChunkBytes
};
constexpr int64_t kChunkBytes = 4 << 20;

// For each source the derivatives of all elements of the target, in the shape of the target tracked by that of the
// source (by example: of which the first dimension is left out); empty where there is no path.
Tensors find_jacobian(Tape&, const JacobianRequest&);

// The backward pass for one cotangent that a node of a Jacobian runs, and whether it is by example; null for other
// operations. Its inputs are the cotangent and those of the node behind the first.
const Graph* jacobian_graph_of(const Op&, const Params&, bool& by_example);

}  // namespace tapeflow
