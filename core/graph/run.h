// Running a graph on values, without recorders and without Python between its nodes.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

std::vector<Tensor> run_graph(const Graph&, std::span<const Tensor> inputs);

}  // namespace tapeflow
