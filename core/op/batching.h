// What a batching rule sees and sets: one operation of a graph that was traced for one row and runs for all rows.
#pragma once
#include "op/op.h"

namespace tapeflow {

// Shapes are known, parameters are numbers, and there is at least one row. A batched tensor has a leading batch
// dimension. A rule sets the outputs; it returns false if it does not serve this call, which then runs row by row.
struct BatchCall {
  const Op& op;
  const Params& params;
  std::span<const Tensor> in;
  std::span<const bool> batched;
  int64_t rows;
  Tensors out = {};
  bool same_for_all = false;  // the outputs do not depend on the row, and have no batch dimension

  Shape row_shape(size_t i) const { return batched[i] ? in[i].shape().slice(1, in[i].rank()) : in[i].shape(); }
  int row_rank(size_t i) const { return in[i].rank() - int(batched[i]); }
  // Input i with the batch dimension, whether or not it depends on the row.
  Tensor with_rows(size_t i) const;
  SmallVector<Tensor, 4> all_with_rows() const;
  // Input i as it is, if it is the same for all rows; otherwise with ones behind the rows, so that a row has this rank.
  Tensor with_rank(size_t i, int rank) const;
  // An axis of a row of that rank, as an axis of the batch.
  int64_t batch_axis(int64_t axis, int rank) const;
  // The operation itself, on other inputs and with other parameters.
  bool run_same(std::span<const Tensor> inputs, const Params& changed) {
    out = run_all(op, inputs, changed);
    return true;
  }
  bool run_same(std::initializer_list<Tensor> inputs, const Params& changed) {
    return run_same(std::span(inputs.begin(), inputs.size()), changed);
  }
};

// ---- rules that many entries share

// Operands of fewer dimensions get ones behind the rows, so that they meet the others' last dimensions.
bool batch_broadcasting(BatchCall&);
// What stands before an operation's own dimensions is a batch already.
bool batch_leading(BatchCall&);
bool batch_leading_matrices(BatchCall&);  // whose batches broadcast
bool batch_leading_but_last(BatchCall&);  // the last operand is one number for everything

// Along one axis, a parameter.
template <int Axis> bool batch_along(BatchCall& c) {
  const int64_t axis = c.batch_axis(c.params.at(Axis).integer, c.row_rank(0));
  return c.run_same(c.all_with_rows(), c.params.with(Axis, Param(axis)));
}
// The same; only the first operand may depend on the row.
template <int Axis> bool batch_along_of_first(BatchCall& c) {
  for (size_t i = 1; i < c.in.size(); ++i)
    if (c.batched[i]) return false;
  const int64_t axis = c.batch_axis(c.params.at(Axis).integer, c.row_rank(0));
  return c.run_same(c.in, c.params.with(Axis, Param(axis)));
}

// ---- what rules use

// 0, 1, ... for the rows, in the given shape, which has a leading batch dimension.
Tensor row_numbers(DType, const Shape&);
// Positions, of which the last dimension of `indices` holds one each, with the number of the row before each.
Tensor positions_with_row(const Tensor& indices);
Ints prepended(int64_t first, const Ints& rest);
// The shape with a leading batch dimension.
Shape with_batch_dimension(int64_t rows, const Shape&);
// The same tensor for every row.
Tensor for_all_rows(const Tensor&, int64_t rows);
// The dimension at `from` brought to `to`; the others keep their order.
Tensor move_dimension(const Tensor&, int from, int to);

}  // namespace tapeflow
