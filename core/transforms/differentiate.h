// Calling a graph as one operation, and the graphs that its derivatives are.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

// The joint graph, cut into forward and backward parts: the forward part also gives, after the graph's outputs, what
// the backward part needs (residuals). What a gradient may be asked for, the sources, are the graph's inputs, then
// `constants`, then `variables`.
struct JointParts {
  Tensors constants;                     // of the graph, that were tracked: inputs of the forward part after the others
  std::vector<VariableBody*> variables;  // that the graph reads
  std::vector<uint8_t> tracked;          // per source
  std::shared_ptr<Graph> forward, backward;
  size_t outputs = 0;                // of the original graph
  std::vector<int> residual_inputs;  // per residual: the input that it is, or -1
  SmallVector<int, 8> flowing;       // outputs that have a cotangent, which are the last inputs of the backward part
  // Sources that have a gradient: the outputs of the backward part, in which rows are followed by their numbers.
  SmallVector<int, 8> reached;
  SmallVector<bool, 8> by_rows;
  std::vector<std::pair<std::vector<uint8_t>, std::shared_ptr<Graph>>>
      partial_backwards;  // of the backward part: some outputs alone
};

// The parts of a graph, kept with it. `tracked` is per input and then per variable read.
std::shared_ptr<JointParts> joint_parts_of(Graph&, std::span<const Tensor> constants, std::span<const uint8_t> tracked);
// Variables with a gradient that a graph reads itself.
std::vector<VariableBody*> variables_read(const Graph&);
const std::vector<VariableBody*>& known_variables_read(Graph&);  // kept with the graph, which does not change any more
// The values that depend on any of `sources`.
SmallVector<uint8_t, 64> dependents(const Graph&, std::span<const ValueId> sources);
// The same graph for inputs of these shapes, kept with it; the graph itself if it knows them.
std::shared_ptr<Graph> specialised(const std::shared_ptr<Graph>&, std::span<const Tensor> inputs);

// What a recorded call ran, as it was traced; null if the operation is no call or the graph does not exist any more.
// The inputs of the call are those of the graph, then `constants` of them, then the variables that it reads.
struct CalledGraph {
  std::shared_ptr<Graph> graph;
  size_t constants = 0;
};
CalledGraph graph_called(const Op&, const Params&);

// Runs a graph: into the stage, if there is one; as a recorded operation whose gradients are graphs of their own, if a
// tape tracks an input or a variable; straight ahead otherwise. Gives the graph's outputs.
Tensors call_graph(const std::shared_ptr<Graph>&, std::span<const Tensor> inputs);

}  // namespace tapeflow
