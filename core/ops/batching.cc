// What batching rules share.
#include "op/batching.h"

#include <algorithm>

#include "ops/ops.h"

namespace tapeflow {

Tensor BatchCall::with_rows(size_t i) const { return batched[i] ? in[i] : for_all_rows(in[i], rows); }

SmallVector<Tensor, 4> BatchCall::all_with_rows() const {
  SmallVector<Tensor, 4> result;
  for (size_t i = 0; i < in.size(); ++i) result.push_back(with_rows(i));
  return result;
}

Tensor BatchCall::with_rank(size_t i, int rank) const {
  if (!batched[i] || row_rank(i) == rank) return in[i];
  Shape wide{rows};
  for (int k = row_rank(i); k < rank; ++k) wide.append(1);
  for (int64_t d : row_shape(i)) wide.append(d);
  return reshape(in[i], wide);
}

int64_t BatchCall::batch_axis(int64_t axis, int rank) const { return normalize_axis(op.public_name(), axis, rank) + 1; }

Shape with_batch_dimension(int64_t rows, const Shape& shape) {
  Shape result = shape;
  result.insert(0, rows);
  return result;
}

Tensor move_dimension(const Tensor& x, int from, int to) {
  if (from == to) return x;
  Ints order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != from) order.push_back(i);
  Ints permutation;
  for (int i = 0, next = 0; i < x.rank(); ++i) permutation.push_back(i == to ? from : order[size_t(next++)]);
  return transpose(x, permutation);
}

Tensor for_all_rows(const Tensor& t, int64_t rows) {
  if (t.size() < 0) {  // the only row of a stack, taken many times
    Ints first;
    first.resize(size_t(rows));
    std::fill(first.begin(), first.end(), 0);
    return gather(stack(std::span(&t, 1), 0), int_tensor(first), 0, 0);
  }
  Shape one = with_batch_dimension(1, t.shape()), all = with_batch_dimension(rows, t.shape());
  return broadcast_to(reshape(t, one), all);
}

Ints prepended(int64_t first, const Ints& rest) {
  Ints result{first};
  for (int64_t n : rest) result.push_back(n);
  return result;
}

Tensor row_numbers(DType dtype, const Shape& shape) {
  Ints numbers;
  for (int64_t r = 0; r < shape[0]; ++r) numbers.push_back(r);
  Shape column{shape[0]};
  for (int i = 1; i < shape.rank(); ++i) column.append(1);
  return broadcast_to(reshape(int_tensor(numbers, dtype), column), shape);
}

Tensor positions_with_row(const Tensor& indices) {
  Shape shape = indices.shape();
  shape[shape.rank() - 1] = 1;
  Tensor parts[] = {row_numbers(indices.dtype(), shape), indices};
  return concat(parts, shape.rank() - 1);
}

bool batch_broadcasting(BatchCall& c) {
  int most = 0;
  for (size_t i = 0; i < c.in.size(); ++i) most = std::max(most, c.row_rank(i));
  SmallVector<Tensor, 4> in;
  for (size_t i = 0; i < c.in.size(); ++i) in.push_back(c.with_rank(i, most));
  return c.run_same(in, c.params);
}

bool batch_leading(BatchCall& c) { return c.run_same(c.all_with_rows(), c.params); }

bool batch_leading_matrices(BatchCall& c) { return c.row_rank(0) == c.row_rank(1) && batch_leading(c); }

bool batch_leading_but_last(BatchCall& c) {
  size_t last = c.in.size() - 1;
  if (c.batched[last]) return false;
  SmallVector<Tensor, 4> in = c.all_with_rows();
  in[last] = c.in[last];
  return c.run_same(in, c.params);
}

}  // namespace tapeflow
