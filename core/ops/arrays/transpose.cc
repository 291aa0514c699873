// Dimensions in another order, and elements in reverse order along dimensions.
#include <algorithm>

#include "op/row_structure.h"
#include "ops/arrays/strided_copy.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

Ints resolved_permutation(const char* who, const Param& p, int rank) {
  Ints result;
  if (p.is_none()) {
    for (int i = rank - 1; i >= 0; --i) result.push_back(i);
    return result;
  }
  if (int(p.ints.size()) != rank)
    fail(ErrorKind::invalid_argument, who, ": transpose expects a vector of size ", rank,
         ". But input(1) is a vector of size ", p.ints.size());
  bool used[kMaxRank] = {};
  for (int64_t axis : p.ints) {
    if (axis < -rank || axis >= rank)
      fail(ErrorKind::invalid_argument, who, ": ", axis, " is out of range [0 .. ", rank, ")");
    int i = normalize_axis(who, axis, rank);
    used[i] = true;
    result.push_back(i);
  }
  for (int i = 0; i < rank; ++i)
    if (!used[i]) {
      std::string given;
      for (int64_t axis : p.ints) given += (given.empty() ? "" : ",") + std::to_string(axis);
      fail(ErrorKind::invalid_argument, who, ": ", i, " is missing from {", given, "}.");
    }
  return result;
}

Ints inverse_permutation(const Ints& p) {
  Ints result;
  result.resize(p.size());
  for (size_t i = 0; i < p.size(); ++i) result[size_t(p[i])] = int64_t(i);
  return result;
}

constexpr struct : Keys {
  Key<Ints> perm = next("perm");
  Key<bool> conjugate = next("conjugate");
} transpose_params;
const Op& transpose_op = define(Op{
    .name = "Transpose",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("a", any_dtype), optional_ints(transpose_params.perm), flag(transpose_params.conjugate)},
    .infer =
        [](Call& call) {
          const Shape& x = call.in[0].shape();
          Shape shape;
          for (int64_t i : resolved_permutation(call.name(), call.params.value(transpose_params.perm), x.rank()))
            shape.append(x[int(i)]);
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Param& order = call.params.value(transpose_params.perm);
          int rank = x.rank() < 0 && !order.is_none() && count_known(order) ? int(order.ints.size()) : x.rank();
          if (rank < 0) return call.returns(x.dtype(), Shape::unknown());
          if (x.rank() < 0 || !all_known(order)) return call.returns(x.dtype(), unknown_dims(rank));
          Shape shape;
          for (int64_t i : resolved_permutation(call.name(), order, rank)) shape.append(x.dim(int(i)));
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (x.size() == 0) return;
          // Dimensions that stay neighbours move as one.
          Ints permutation = resolved_permutation(call.name(), call.params.value(transpose_params.perm), x.rank());
          int64_t x_stride[kMaxRank], stride[kMaxRank];
          strides_of(x.shape(), x_stride);
          Shape merged;
          for (size_t i = 0; i < permutation.size(); ++i) {
            int from = int(permutation[i]);
            if (i > 0 && from == permutation[i - 1] + 1) {
              merged[merged.rank() - 1] *= x.dim(from);
              stride[merged.rank() - 1] = x_stride[from];
            } else if (x.dim(from) != 1 || (i + 1 < permutation.size() && permutation[i + 1] == from + 1)) {
              merged.append(x.dim(from));
              stride[merged.rank() - 1] = x_stride[from];
            }
          }
          by_size(x.dtype(), [&]<class T>(T*) {
            gather_strided(static_cast<const T*>(x.raw()), y.mutable_data<T>(), merged, stride);
          });
          if (call.params[transpose_params.conjugate] && complexes.has(x.dtype())) {
            PauseRecording paused;
            call.out[0] = conj(y);
          }
        },
    .vjp =
        [](RuleContext& c) {
          Ints permutation =
              resolved_permutation("transpose", c.params.value(transpose_params.perm), c.shape(0).rank());
          Tensor dx = transpose(c.dy(), inverse_permutation(permutation));
          c.set(0, c.params[transpose_params.conjugate] && complexes.has(dx.dtype()) ? conj(dx) : dx);
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .copies_elements = true,
    .batch =
        [](BatchCall& c) {
          const int rank = c.row_rank(0);
          Ints order{0};
          for (int i = 0; i < rank; ++i)
            order.push_back(c.params.has(transpose_params.perm)
                                ? c.batch_axis(c.params[transpose_params.perm][size_t(i)], rank)
                                : rank - i);
          return c.run_same({c.in[0]}, c.params.with(transpose_params.perm, Param(order)));
        },
    .row_rule =
        [](const Call& call, std::span<const bool>, std::span<bool>) {
          const Param& perm = call.params.value(transpose_params.perm);
          const Ints order = resolved_permutation(call.name(), perm, call.in[0].rank());
          return order[0] == 0 ? RowStructure::separate : RowStructure::mixed;
        },
    .names = {"transpose"},
    .doc = R"(Dimensions in another order; reversed if `perm` is None.

Args:
  a: The tensor.
  perm: The dimensions of `a` in their new order; reversed if None.
  conjugate: Whether to conjugate complex elements as well.

Returns: A tensor whose dimension `i` is dimension `perm[i]` of `a`.

Gradient: `dx` is `dy` under the inverse permutation.

>>> tf.transpose([[1, 2], [3, 4]])
<tf.Tensor: shape=(2, 2), dtype=int32, numpy=
array([[1, 3],
       [2, 4]], dtype=int32)>)",
    .node_name = "transpose",
    .family = "movement",
});

constexpr struct : Keys {
  Key<Ints> axis = next("axis");
} reverse_params;
const Op& reverse_op = define(Op{
    .name = "ReverseV2",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("tensor", any_dtype), ints(reverse_params.axis)},
    .infer =
        [](Call& call) {
          uint64_t seen = 0;
          for (int64_t a : call.params[reverse_params.axis]) {
            const uint64_t bit = uint64_t(1) << normalize_axis(call.name(), a, call.in[0].rank());
            if (seen & bit) fail(ErrorKind::invalid_argument, call.name(), ": axis ", a, " specified more than once");
            seen |= bit;
          }
          call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .infer_staged = same_as_input,
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (x.size() == 0) return;
          int64_t stride[kMaxRank], start = 0;
          strides_of(x.shape(), stride);
          for (int64_t a : call.params[reverse_params.axis]) {
            int i = normalize_axis(call.name(), a, x.rank());
            start += stride[i] * (x.dim(i) - 1);
            stride[i] = -stride[i];
          }
          by_size(x.dtype(), [&]<class T>(T*) {
            gather_strided(static_cast<const T*>(x.raw()) + start, y.mutable_data<T>(), x.shape(), stride);
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, reverse(c.dy(), c.params[reverse_params.axis])); },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .batch =
        [](BatchCall& c) {
          Ints axes;
          for (int64_t axis : c.params[reverse_params.axis]) axes.push_back(c.batch_axis(axis, c.row_rank(0)));
          return c.run_same({c.in[0]}, {Param(axes)});
        },
    .names = {"reverse"},
    .doc = R"(Elements in reverse order along the dimensions `axis`.

Args:
  tensor: The tensor.
  axis: The dimensions to reverse, a list; negative axes count from the end.

Returns: A tensor of the shape and dtype of `tensor`.

Gradient: `dx` is `dy`, reversed along the same dimensions.

>>> tf.reverse([1, 2, 3], [0])
<tf.Tensor: shape=(3,), dtype=int32, numpy=array([3, 2, 1], dtype=int32)>)",
});

constexpr struct : Keys {
  Key<int64_t> shift = next("shift"), axis = next("axis");
} roll_params;

// How far the elements along an axis of `length` move on, as a number from 0 to length - 1.
int64_t places_of_roll(const Call& call, int64_t length) {
  const int64_t places = length ? call.params[roll_params.shift] % length : 0;
  return places < 0 ? places + length : places;
}

bool movement_of_roll(const Call& call, AxisMovement& m) {
  m.in_axis = m.out_axis = normalize_axis(call.name(), call.params[roll_params.axis], call.in[0].rank());
  const int64_t length = call.in[0].dim(m.in_axis), places = places_of_roll(call, length);
  if (length > AxisMovement::kMostParts) return false;
  auto& parts = m.results.emplace_back();
  for (int64_t i = 0; i < length; ++i) parts.push_back({0, (i + length - places) % length});
  return true;
}

// One axis of `tf.roll`.
const Op& roll_op = define(Op{
    .name = "RollAxis",
    .planning = {.cannot_fail = true, .movement = movement_of_roll},
    .arguments = {tensor("input", any_dtype), integer(roll_params.shift), integer(roll_params.axis)},
    .infer =
        [](Call& call) {
          normalize_axis(call.name(), call.params[roll_params.axis], call.in[0].rank());
          call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .infer_staged = same_as_input,
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (x.size() == 0) return;
          const int axis = normalize_axis(call.name(), call.params[roll_params.axis], x.rank());
          const int64_t outer = x.shape().elements(0, axis), row = x.shape().elements(axis, x.rank());
          const int64_t head = row / x.dim(axis) * places_of_roll(call, x.dim(axis)), tail = row - head;
          const size_t size = size_of(x.dtype());
          copy_rows(x.dtype(), x.raw(), row, offset(y.mutable_raw(), head, size), row, tail, outer);
          copy_rows(x.dtype(), offset(x.raw(), tail, size), row, y.mutable_raw(), row, head, outer);
        },
    .vjp =
        [](RuleContext& c) {
          c.set(0, run(c.op, {c.dy()}, {Param(-c.params[roll_params.shift]), c.params.value(roll_params.axis)}));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .batch = batch_along<roll_params.axis.index>,
    .row_rule =
        [](const Call& call, std::span<const bool>, std::span<bool>) {
          const int axis = normalize_axis(call.name(), call.params[roll_params.axis], call.in[0].rank());
          return axis != 0 ? RowStructure::separate : RowStructure::mixed;
        },
});

}  // namespace

Tensor transpose(const Tensor& x, Ints permutation) {
  return run(transpose_op, {x}, {Param(std::move(permutation)), Param(false)});
}
Tensor reverse(const Tensor& x, Ints axes) { return run(reverse_op, {x}, {Param(std::move(axes))}); }

}  // namespace tapeflow
