// The operation Batched: another operation, for all rows. Inputs are those of the other operation and then its
// parameters that were symbolic; parameters are the plan, and then the operation's own. It is used where a rule of
// batching cannot be applied while tracing, and where there is none: then the operation runs once per row.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

struct RowPlan {
  const Op* op;
  size_t inputs;
  int64_t rows;
  SmallVector<bool, 8> batched;  // per input, and then per parameter that is an input
  SmallVector<int, 2> places;    // of the parameters that are inputs
  SmallVector<size_t, 2> used;   // the outputs that somebody uses; the others are not given
  SmallVector<Spec, 2> specs;    // of a row of each of them
  bool by_branch = false;        // branches whose rows may run in any order
};

// The outputs that are used, for all rows.
Tensors run_by_row(std::shared_ptr<RowPlan>, std::span<const Tensor> in, const Params& own);

}  // namespace tapeflow
