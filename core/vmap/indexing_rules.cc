// Batching of operations that pick or change elements at positions. Where an operation knows no batch of positions, the
// number of the row becomes part of each position.
#include <algorithm>

#include "vmap/rules.h"

namespace tapeflow {
namespace {

bool gathering(BatchCall& c) {
  int axis = row_axis(c, c.params.integer(0), c.row_rank(0));
  int64_t batch_dims = c.params.integer(1);
  if (batch_dims < 0) batch_dims += c.row_rank(1);
  if (batch_dims == 0 && !c.batched[1]) {
    c.run_same({c.in[0], c.in[1]}, {Param(axis + 1), Param(0)});
  } else if (batch_dims == 0 && !c.batched[0]) {
    c.out.push_back(move_dimension(gather(c.in[0], c.in[1], axis, 0), axis, 0));
  } else {
    c.run_same({c.with_rows(0), c.with_rows(1)}, {Param(axis + 1), Param(batch_dims + 1)});
  }
  return true;
}

bool spreading_gathered(BatchCall& c) {
  Ints shape = Param(with_rows_in_front(c.rows, c.params.shape(0))).ints;
  int axis = row_axis(c, c.params.integer(1), int(c.params.ints(0).size()));
  int64_t batch_dims = c.params.integer(2);
  if (batch_dims < 0) batch_dims += c.row_rank(1);
  bool alike = batch_dims == 0 && !c.batched[1];
  c.run_same({c.with_rows(0), alike ? c.in[1] : c.with_rows(1)},
             {Param(shape), Param(axis + 1), Param(alike ? 0 : batch_dims + 1)});
  return true;
}

bool gathering_positions(BatchCall& c) {
  if (!c.batched[0] && c.params.integer(0) == 0)
    c.run_same({c.in[0], c.in[1]}, c.params);
  else
    c.run_same({c.with_rows(0), c.with_rows(1)}, {Param(c.params.integer(0) + 1)});
  return true;
}

// 0, 1, ... for the rows, in the given shape, which has the rows in front.
Tensor row_numbers(DType dtype, Shape shape) {
  Ints numbers;
  for (int64_t r = 0; r < shape[0]; ++r) numbers.push_back(r);
  Shape column{shape[0]};
  for (int i = 1; i < shape.rank(); ++i) column.append(1);
  return broadcast_to(reshape(int_tensor(numbers, dtype), column), shape);
}

// Positions, of which the last dimension of `indices` holds one each, with the number of the row in front.
Tensor positions_with_row(const Tensor& indices) {
  Shape shape = indices.shape();
  shape[shape.rank() - 1] = 1;
  Tensor parts[] = {row_numbers(indices.dtype(), shape), indices};
  return concat(parts, shape.rank() - 1);
}

bool scattering(BatchCall& c) {
  Ints shape = Param(with_rows_in_front(c.rows, c.params.shape(0))).ints;
  c.run_same({positions_with_row(c.with_rows(0)), c.with_rows(1)}, {Param(shape)});
  return true;
}

bool scattering_into(BatchCall& c) {
  c.run_same({c.with_rows(0), positions_with_row(c.with_rows(1)), c.with_rows(2)}, c.params);
  return true;
}

// Numbers of segments that are the same for all rows: the rows go behind the dimensions that are folded.
bool folding_alike(BatchCall& c) {
  if (c.batched[1]) return false;
  int folded = c.row_rank(1);
  c.run_same({move_dimension(c.in[0], 0, folded), c.in[1]}, c.params);
  c.out[0] = move_dimension(c.out[0], 1, 0);
  return true;
}

// Every row gets segments of its own; negative numbers, which are left out, stay negative.
bool folding(BatchCall& c) {
  if (folding_alike(c)) return true;
  const Tensor& ids = c.in[1];
  int64_t segments = c.params.integer(0);
  Tensor first = multiply(row_numbers(ids.dtype(), ids.shape()), Tensor::number(ids.dtype(), double(segments)));
  Tensor own = select(less(ids, Tensor::number(ids.dtype(), 0)), ids, add(ids, first));
  c.run_same({c.with_rows(0), own}, {Param(segments * c.rows)});
  Shape shape{c.rows, segments};
  for (int i = 1; i < c.out[0].rank(); ++i) shape.append(c.out[0].dim(i));
  c.out[0] = reshape(c.out[0], shape);
  return true;
}

constexpr NamedRule rules[] = {
    {"GatherV2", gathering},
    {"GatherSpread", spreading_gathered},
    {"GatherNd", gathering_positions},
    {"ScatterNd", scattering},
    {"TensorScatterUpdate", scattering_into},
    {"TensorScatterAdd", scattering_into},
    {"TensorScatterSub", scattering_into},
    {"TensorScatterMax", scattering_into},
    {"TensorScatterMin", scattering_into},
    {"UnsortedSegmentSum", folding},
    {"UnsortedSegmentProd", folding},
    {"UnsortedSegmentMax", folding},
    {"UnsortedSegmentMin", folding},
    {"SegmentSum", folding_alike},
    {"SegmentProd", folding_alike},
    {"SegmentMax", folding_alike},
    {"SegmentMin", folding_alike},
};

}  // namespace

std::span<const NamedRule> indexing_rules() { return rules; }

}  // namespace tapeflow
