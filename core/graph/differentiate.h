// Calling a graph as one operation, and the graphs that its derivatives are.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

// Runs a graph: into the stage, if there is one; as a recorded operation whose gradient is a graph of its own, if a
// tape follows an input or a variable; straight ahead otherwise. Gives the graph's outputs.
std::vector<Tensor> call_graph(const std::shared_ptr<Graph>&, std::span<const Tensor> inputs);

}  // namespace tapeflow
