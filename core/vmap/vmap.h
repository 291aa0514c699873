// vmap: a graph that was traced for one row, run for a batch of rows. A batched tensor has a leading batch dimension,
// as one more dimension. Every operation has a rule that says which operations do its work for all rows; what has none
// runs once per row, inside the core. What does not depend on batched inputs is computed once for all rows.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

// Values of a run under vmap, and which of them have the leading batch dimension.
struct BatchedValues {
  Tensors tensors;
  std::vector<bool> batched;
};

// Runs a graph through dispatch: concretely, or into another graph, if that is the stage. Recorders see every node.
// `cut_inputs`, by node, if given: the node runs for each row on the rows of these inputs alone (vmap/by_example.h).
BatchedValues run_batched(const Graph&, const BatchedValues& inputs, int64_t rows,
                          std::span<const SmallVector<bool, 4>> cut_inputs = {});

// The outputs of such a run, all with the leading batch dimension.
Tensors rows_of(const BatchedValues&, int64_t rows);

// The same as one operation, which counts the rows when it runs. Inputs that are `sliced` have a leading batch
// dimension, or 1, if they are the same for all. The graph may not draw random numbers or have effects.
Tensors call_batched(std::shared_ptr<Graph>, std::span<const Tensor> in, std::span<const bool> sliced);

// The graph of one row of such an operation, and which inputs are sliced; null for other operations.
const Graph* batched_graph_of(const Op&, const Params&, SmallVector<bool, 8>& sliced);

// Whether running the graph for another row does or gives something else though the inputs are the same.
bool differs_by_row(const Graph&);

// Why a node cannot be batched: it runs once per row, or gives a variable another value by
// every row.
struct Obstacle {
  int node;
  enum class Kind : uint8_t { row_by_row, assignment } kind;
};
std::vector<Obstacle> find_obstacles(const Graph&, std::span<const bool> batched_inputs);

}  // namespace tapeflow
