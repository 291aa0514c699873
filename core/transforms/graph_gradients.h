// Gradients between values of a graph and of those around it, as new nodes of that graph: tf.gradients.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

// What the gradient is asked by: one value, or a variable, which stands for all readings of it.
struct Source {
  Tensor value;
  const VariableBody* variable;
};

// Runs in place of a node's own rule if it returns true: sets one tensor per input, or none, and the rows of sparse
// ones. `level` counts the graphs outwards, from 0.
using RuleOverride = FunctionRef<bool(int level, size_t node, std::span<const Tensor> dy, std::span<Cotangent> dx)>;

// Sum over the targets of cotangent * d target / d source, for each source; empty where there is no path. Empty
// cotangents stand for ones, where the target's shape is known. Nothing flows through the values `stops`. The graph
// must be the stage.
std::vector<Cotangent> graph_gradients(Graph&, std::span<const Tensor> targets, std::span<const Tensor> cotangents,
                                       std::span<const Source> sources, std::span<const Tensor> stops, RuleOverride);

}  // namespace tapeflow
