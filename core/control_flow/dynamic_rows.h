// Rows x[i] whose place a graph computes, as in a loop over the rows of x.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

// The place i, if a graph has this key for items x[i]; otherwise an empty handle.
Tensor place_in_key(const Graph&, const Tensor& key);

// (x, i) -> x[i], without a copy.
const Op& row_op();

// The place as the number of a row, counted from the front, of shape [1].
Tensor row_number(const Tensor& place, int64_t rows);

}  // namespace tapeflow
