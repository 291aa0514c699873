// Running a graph on values, without recorders and without Python between its nodes.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

std::vector<Tensor> run_graph(const Graph&, std::span<const Tensor> inputs);

// What a walk over the nodes has to know: which of them run, and which one uses a value last.
struct Needs {
  std::vector<uint8_t> nodes;
  std::vector<int> last_use;
};
// `at` has the values that are given; `nodes` run in any case, and so do all that have an effect, if `effects`.
Needs find_needs(const Graph&, std::span<const ValueId> wanted, bool effects, std::span<const int> nodes, std::span<const Tensor> at);

// A parameter that was a tensor while tracing: its elements, if they are there now; otherwise the tensor that it is now.
Param resolved_param(const Param&, Tensor now);

}  // namespace tapeflow
