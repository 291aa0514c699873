// Rows sorted by number: dynamic partition, stitching, and the positions of true elements.
#include <algorithm>

#include "base/blocks.h"
#include "ops/arrays/elements.h"
#include "ops/arrays/positions.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

Scratch<int64_t> checked_partitions(const Tensor& partitions, int64_t count) {
  Scratch<int64_t> result = integers_in(partitions);
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i] < 0 || result[i] >= count)
      fail(ErrorKind::invalid_argument, "dynamic_partition: partitions", place_text(partitions.shape(), int64_t(i)),
           " = ", result[i], " is not in [0, ", count, ")");
  return result;
}

constexpr struct : Keys {
  Key<int64_t> num_partitions = next("num_partitions");
} dynamic_partition_params;
// The rows of data with partition number 0, 1, ..., in their order; one result for each number.
const Op& dynamic_partition_op = define(Op{
    .name = "DynamicPartition",
    .arguments = {tensor("data", any_dtype), index_tensor("partitions"),
                  integer(dynamic_partition_params.num_partitions)},
    .infer_staged =
        [](Call& call) {
          const Tensor &x = call.in[0], &partitions = call.in[1];
          int64_t count = known_integer(call.params.value(dynamic_partition_params.num_partitions));
          if (count < 1)
            fail(ErrorKind::invalid_argument,
                 "dynamic_partition: num_partitions must be at least 1, and known while tracing");
          Shape shape = Shape::unknown();
          if (x.rank() >= 0 && partitions.rank() >= 0) {
            bool starts = partitions.rank() <= x.rank();
            for (int i = 0; starts && i < partitions.rank(); ++i)
              starts = x.dim(i) < 0 || partitions.dim(i) < 0 || x.dim(i) == partitions.dim(i);
            if (!starts)
              fail(ErrorKind::invalid_argument,
                   "dynamic_partition: data.shape must start with partitions.shape, got data.shape = ", x.shape(),
                   ", partitions.shape = ", partitions.shape());
            shape = Shape{-1};
            for (int i = partitions.rank(); i < x.rank(); ++i) shape.append(x.dim(i));
          }
          for (int64_t p = 0; p < count; ++p) call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &partitions = call.in[1];
          int64_t count = call.params[dynamic_partition_params.num_partitions];
          if (count < 1)
            fail(ErrorKind::invalid_argument, "dynamic_partition: num_partitions must be at least 1; got ", count);
          if (partitions.rank() > x.rank() || !(x.shape().slice(0, partitions.rank()) == partitions.shape()))
            fail(ErrorKind::invalid_argument,
                 "dynamic_partition: data.shape must start with partitions.shape, got data.shape = ", x.shape(),
                 ", partitions.shape = ", partitions.shape());
          Scratch<int64_t> number = checked_partitions(partitions, count);
          BlockVector<int64_t> sizes(size_t(count), 0);
          for (int64_t p : number) ++sizes[size_t(p)];
          Shape row = x.shape().slice(partitions.rank(), x.rank());
          int64_t inner = row.elements();
          for (int64_t p = 0; p < count; ++p) {
            Shape shape{sizes[size_t(p)]};
            for (int64_t d : row) shape.append(d);
            call.out.push_back(Tensor::allocate(x.dtype(), shape));
          }
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            BlockVector<T*> to;
            for (const Tensor& y : call.out) to.push_back(y.mutable_data<T>());
            for (size_t i = 0; i < number.size(); ++i) {
              T*& at = to[size_t(number[i])];
              at = std::copy(from + int64_t(i) * inner, from + int64_t(i + 1) * inner, at);
            }
          });
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(0)) return;
          const Tensor& partitions = c.x(1);
          Scratch<int64_t> number = checked_partitions(partitions, c.params[dynamic_partition_params.num_partitions]);
          BlockVector<int64_t> next;
          SmallVector<Tensor, 8> parts;
          int64_t rows = 0;
          for (int p = 0; p < c.outputs(); ++p) {
            parts.push_back(c.dy(int(p)));
            next.push_back(rows);
            rows += c.output_spec(p).shape[0];
          }
          BlockVector<int64_t> position;
          for (int64_t p : number) position.push_back(next[size_t(p)]++);
          Tensor joined = concat(parts, 0);
          Shape wide = joined.shape();
          wide.insert(0, 1);  // so that its gradient is dense
          Tensor rows_of_x = gather(reshape(joined, wide), int_tensor(position, DType::int64), 1, 0);
          c.set(0, reshape(rows_of_x, c.shape(0)));
        },
    .keep = keep_input(1),
    .rule_needs_values = true,
    .names = {"dynamic_partition"},
    .doc = R"(The slices of `data` sorted into `num_partitions` tensors by the numbers in `partitions`.

Args:
  data: The tensor to divide.
  partitions: Integers in `[0, num_partitions)`, one for each slice of `data`.
  num_partitions: The number of results.

Returns: A list of `num_partitions` tensors.

Gradient: Each slice of `data` gets the gradient of the place it went to.

>>> tf.dynamic_partition([1, 2, 3], [0, 1, 0], 2)
[<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 3], dtype=int32)>, <tf.Tensor: shape=(1,), dtype=int32,
 numpy=array([2], dtype=int32)>])",
    .returns_list = true,
});

// Rows put at the given places of a tensor that is just long enough; of several for one place the last counts.
const Op& stitch_op = define(Op{
    .name = "StitchRows",
    .arguments = {index_tensor("indices"), tensor("rows", any_dtype)},
    .infer_staged =
        [](Call& call) {
          Shape shape = call.in[1].shape();
          if (shape.rank() == 0)
            fail(ErrorKind::invalid_argument, "dynamic_stitch: there must be one index per row; got a scalar");
          if (shape.known_rank()) shape[0] = -1;
          call.returns(call.in[1].dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &indices = call.in[0], &rows = call.in[1];
          if (rows.rank() < 1 || rows.dim(0) != indices.size())
            fail(ErrorKind::invalid_argument, "dynamic_stitch: there must be one index per row; got ", indices.shape(),
                 " and ", rows.shape());
          int64_t length = 0;
          Scratch<int64_t> place = integers_in(indices);
          for (int64_t i : place) {
            if (i < 0) fail(ErrorKind::invalid_argument, "dynamic_stitch: indices[...] = ", i, " is out of range");
            length = std::max(length, i + 1);
          }
          Shape shape = rows.shape();
          shape[0] = length;
          Tensor y = zeros(rows.dtype(), shape);
          int64_t inner = rows.shape().elements(1, rows.rank());
          by_size(rows.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(rows.raw());
            for (size_t i = 0; i < place.size(); ++i)
              std::copy(from + int64_t(i) * inner, from + int64_t(i + 1) * inner,
                        y.mutable_data<T>() + place[i] * inner);
          });
          call.out.push_back(y);
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(1)) return;
          // A row that a later one replaced is not in y: its derivative is zero.
          const Tensor &indices = c.x(0), number = cumsum(ones_like(indices), 0, true, false);
          const Tensor last = run(stitch_op, {indices, number});
          Shape column = unknown_dims(1);
          for (int i = 1; i < c.dy().rank(); ++i) column.append(1);
          const Tensor remains = reshape(equal(gather(last, indices, 0, 0), number), column);
          const Tensor dx = gather(c.dy(), indices, 0, 0);
          c.set(1, select(remains, dx, zeros_like(dx)));
        },
    .keep = keep_input(0),
});

// Positions of the true (nonzero) elements, in order: one row of coordinates each.
const Op& where_op = define(Op{
    .name = "Where",
    .arguments = {tensor("condition", fixed_size)},
    .infer_staged = [](Call& call) { call.returns(DType::int64, {-1, call.in[0].rank()}); },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const int rank = x.rank();
          visit<fixed_size.bits>(x.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            const T* from = x.data<T>();
            int64_t count = 0;
            for (int64_t i = 0; i < x.size(); ++i) count += load(from + i) != Compute<T>(0);
            Tensor y = Tensor::allocate(DType::int64, {count, rank});
            int64_t* to = y.mutable_data<int64_t>();
            call.out.push_back(y);
            if (rank == 0 || count == 0) return;
            // One row of elements after the other; the leading coordinates are worked out once per row. A place is
            // written for every element and kept for the true ones, without a jump.
            const int64_t columns = x.shape().back();
            Scratch<int64_t> found(columns);
            int64_t lead[kMaxRank] = {};
            for (int64_t r = 0; r < x.size() / columns; ++r, from += columns) {
              int64_t here = 0;
              for (int64_t i = 0; i < columns; ++i) {
                found[size_t(here)] = i;
                here += load(from + i) != Compute<T>(0);
              }
              for (int64_t i = 0; i < here; ++i, to += rank) {
                for (int d = 0; d + 1 < rank; ++d) to[d] = lead[d];
                to[rank - 1] = found[size_t(i)];
              }
              for (int d = rank - 2; d >= 0 && ++lead[d] == x.dim(d); --d) lead[d] = 0;
            }
          });
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
});

}  // namespace

}  // namespace tapeflow
