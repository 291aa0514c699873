// Rules of batching: which operations do the work of one operation for all rows at once.
#pragma once
#include "ops/ops.h"

namespace tapeflow {

// One operation on its way through batching. Shapes are known, parameters are numbers, and there is at least one row.
struct BatchCall {
  const Op& op;
  const Params& params;
  std::span<const Tensor> in;  // batched ones have the rows in front
  std::span<const bool> batched;
  int64_t rows;
  Tensors out = {};
  bool same_for_all = false;  // the outputs do not depend on the row, and have no rows in front

  const Shape row_shape(size_t i) const { return batched[i] ? in[i].shape().slice(1, in[i].rank()) : in[i].shape(); }
  int row_rank(size_t i) const { return in[i].rank() - int(batched[i]); }
  // Input i with the rows in front, whether or not it depends on them.
  Tensor with_rows(size_t i) const;
  SmallVector<Tensor, 4> all_with_rows() const;
  // Input i as it is, if it is the same for all rows; otherwise with ones behind the rows, so that a row has this rank.
  Tensor with_rank(size_t i, int rank) const;
  // The operation itself, on other inputs and with other parameters.
  void run_same(std::span<const Tensor> inputs, const Params& changed) { out = run_all(op, inputs, changed); }
  void run_same(std::initializer_list<Tensor> inputs, const Params& changed) {
    run_same(std::span(inputs.begin(), inputs.size()), changed);
  }
  // The parameters with one of them replaced.
  Params with_param(int i, Param value) const;
};

// Sets the outputs; false if it does not serve this call, which runs row by row then.
using BatchRule = bool (*)(BatchCall&);
BatchRule find_batch_rule(const Op&);  // null if there is none

// The shape with the rows in front.
Shape with_rows_in_front(int64_t rows, const Shape&);
// The dimension at `from` brought to `to`; the others keep their order.
Tensor move_dimension(const Tensor&, int from, int to);
int row_axis(const BatchCall&, int64_t axis, int rank);  // an axis of a row of that rank, counted from 0

// By family; each gives the rules by the operations' names.
struct NamedRule {
  const char* name;
  BatchRule rule;
};
std::span<const NamedRule> elementwise_rules();
std::span<const NamedRule> movement_rules();
std::span<const NamedRule> indexing_rules();
std::span<const NamedRule> contraction_rules();

}  // namespace tapeflow
