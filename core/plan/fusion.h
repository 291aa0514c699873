// What fits into one fusion: the conditions that the passes about fusions share.
#pragma once
#include "plan/ir.h"
#include "tensor/elementwise_program.h"

namespace tapeflow::plan {

// Whether a node fits into a fusion of `size` elements whose rows have some length, or none yet (0), and how its
// operands lie. Sets the length if the node needs rows.
bool fits_fusion(PlanIR&, int node, int64_t size, int64_t* row_length, Placement&);

// Whether a node reads all `size` elements of the root of `v`, in their order.
bool reads_in_full(const PlanIR&, const Node&, ValueId v, int64_t size);

// What a reduction goes over: the columns of tables of `length` neighbouring elements each; 0 if there are no such
// tables.
struct ReductionTable {
  int64_t length, columns;
};
ReductionTable reduction_table(const PlanIR&, const Node&);

// Fewest elements of a reduction that is worth fusing with nodes that read the same; fewer of a table may rather follow
// a long chain on another thread.
constexpr int64_t kWorthFusingReduction = 1 << 14;

}  // namespace tapeflow::plan
