// Gradients between values of one graph, as new nodes of the same graph: tf.gradients.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

// What the gradient is asked by: one value of the graph, or a variable, which stands for all readings of it.
struct Source {
  ValueId value;
  const VariableBody* variable;
};

// Runs in place of a node's own rule if it returns true: sets one tensor per input, or none, and the rows of sparse
// ones.
using RuleOverride = FunctionRef<bool(size_t node, std::span<const Tensor> dy, std::span<Cotangent> dx)>;

// Sum over the targets of cotangent * d target / d source, for each source; empty where there is no path. Empty
// cotangents stand for ones, where the target's shape is known. Nothing flows through the values `stops`. The graph
// must be the stage.
std::vector<Cotangent> graph_gradients(Graph&, std::span<const ValueId> targets, std::span<const Tensor> cotangents,
                                       std::span<const Source> sources, std::span<const ValueId> stops, RuleOverride);

}  // namespace tapeflow
