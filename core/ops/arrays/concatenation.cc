// Joining tensors and splitting them along one axis.
#include <algorithm>

#include "ops/arrays/slicing.h"
#include "ops/arrays/strided_copy.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

[[noreturn]] void fail_list_dtypes(const Call& call) {
  if (thread_state().stage) {
    std::string dtypes;
    for (const Tensor& t : call.in) dtypes += (dtypes.empty() ? "" : ", ") + std::string(name_of(t.dtype()));
    fail(ErrorKind::type, call.name(), ": Tensors in list passed to '", call.op.arguments[0].name, "' of '",
         call.op.name, "' Op have types [", dtypes, "] that don't all match.");
  }
  size_t other = 1;
  while (call.in[other].dtype() == call.in[0].dtype()) ++other;
  fail(ErrorKind::invalid_argument, call.name(), ": cannot compute ", call.op.name, " as input #", other,
       "(zero-based) was expected to be a ", legacy_name_of(call.in[0].dtype()), " tensor but is a ",
       legacy_name_of(call.in[other].dtype()), " tensor; all values must have one dtype");
}

void infer_concat(Call& call) {
  if (call.in.empty()) fail(ErrorKind::value, call.name(), ": values must hold at least one tensor");
  const Shape& first = call.in[0].shape();
  if (first.rank() == 0)
    fail(ErrorKind::invalid_argument, call.name(),
         ": the rank of values must be greater than 0: scalars cannot be joined; use tf.stack (got shape [])");
  int axis = normalize_axis(call.name(), call.params[concat_params.axis], first.rank());
  Shape shape = first;
  for (size_t i = 1; i < call.in.size(); ++i) {
    const Shape& other = call.in[i].shape();
    if (call.in[i].dtype() != call.in[0].dtype()) fail_list_dtypes(call);
    if (other.rank() != first.rank())
      fail(ErrorKind::invalid_argument, call.name(),
           ": ConcatOp : Ranks of all input tensors should match: shape[0] = ", first, " vs. shape[", i, "] = ", other);
    for (int d = 0; d < first.rank(); ++d)
      if (d != axis && other[d] != first[d])
        fail(ErrorKind::invalid_argument, call.name(), ": ConcatOp : Dimension ", d,
             " in both shapes must be equal: shape[0] = ", first, " vs. shape[", i, "] = ", other);
    shape[axis] = checked_sum(call.name(), shape[axis], other[axis]);
  }
  call.returns(call.in[0].dtype(), shape);
}

// Dimensions that agree as far as they are known, and what is known of them together.
void merge_dims(const Call& call, Shape& into, const Shape& other, int but) {
  if (!other.known_rank()) return;
  if (!into.known_rank()) {
    into = other;
    return;
  }
  if (into.rank() != other.rank())
    fail(ErrorKind::invalid_argument, call.name(),
         ": Shapes of all inputs must match: Shapes must be equal rank, but are ", into.rank(), " and ", other.rank());
  for (int d = 0; d < into.rank(); ++d) {
    if (d == but) continue;
    if (into[d] < 0) into[d] = other[d];
    if (other[d] >= 0 && into[d] != other[d])
      fail(ErrorKind::invalid_argument, call.name(), ": Shapes of all inputs must match: Dimension ", d,
           " in both shapes must be equal, but are ", into[d], " and ", other[d], ". Shapes are ", into, " and ", other,
           ".");
  }
}

void infer_concat_staged(Call& call) {
  if (call.in.empty()) fail(ErrorKind::value, call.name(), ": values must hold at least one tensor");
  int rank = -1;
  for (const Tensor& t : call.in) rank = std::max(rank, t.rank());
  int64_t given = known_integer(call.params.value(concat_params.axis));
  if (rank < 0) return call.returns(call.in[0].dtype(), Shape::unknown());
  if (given == kUnknownInt) return call.returns(call.in[0].dtype(), unknown_dims(rank));
  if (rank == 0)
    fail(ErrorKind::invalid_argument, call.name(),
         ": the rank of values must be greater than 0: scalars cannot be joined; use tf.stack (got shape [])");
  int axis = normalize_axis(call.name(), given, rank);
  Shape shape = unknown_dims(rank);
  int64_t length = 0;
  for (const Tensor& t : call.in) {
    if (t.dtype() != call.in[0].dtype()) fail_list_dtypes(call);
    merge_dims(call, shape, t.shape(), axis);
    length = known_sum(length, t.rank() < 0 ? -1 : t.dim(axis));
  }
  shape[axis] = length;
  call.returns(call.in[0].dtype(), shape);
}

bool movement_of_concat(const Call& call, AxisMovement& m) {
  const int axis = m.in_axis = m.out_axis =
      normalize_axis(call.name(), call.params[concat_params.axis], call.in[0].rank());
  m.results.resize(1);
  for (size_t k = 0; k < call.in.size(); ++k) {
    if (call.in[k].dim(axis) > AxisMovement::kMostParts - std::ssize(m.results[0])) return false;
    for (int64_t i = 0; i < call.in[k].dim(axis); ++i) m.results[0].push_back({int(k), i});
  }
  return true;
}

const Op& concat_entry = define(Op{
    .name = "ConcatV2",
    .planning = {.cannot_fail = true, .movement = movement_of_concat},
    .arguments = {tensors("values", any_dtype).or_array(), integer(concat_params.axis)},
    .infer = infer_concat,
    .infer_staged = infer_concat_staged,
    .kernel =
        [](Call& call) {
          const Tensor& y = call.out[0];
          int axis = normalize_axis(call.name(), call.params[concat_params.axis], y.rank());
          int64_t outer = y.shape().elements(0, axis), row = y.shape().elements(axis, y.rank()), at = 0;
          size_t size = size_of(y.dtype());
          for (const Tensor& x : call.in) {
            int64_t length = x.shape().elements(axis, x.rank());
            copy_rows(y.dtype(), x.raw(), length, offset(y.mutable_raw(), at, size), row, length, outer);
            at += length;
          }
        },
    .vjp =
        [](RuleContext& c) {
          int axis = normalize_axis("concat", c.params[concat_params.axis], c.shape(0).rank());
          Ints sizes;
          for (int i = 0; i < c.inputs(); ++i) sizes.push_back(c.shape(i)[axis]);
          auto parts = split(c.dy(), sizes, axis);
          for (int i = 0; i < c.inputs(); ++i) c.set(i, parts[size_t(i)]);
        },
    .copies_elements = true,
    .batch = batch_along<concat_params.axis.index>,
    .elements = Elements::moved,
    .names = {"concat"},
    .doc = R"(Tensors joined along `axis`.

Args:
  values: A list of tensors whose shapes are equal except along `axis`.
  axis: The dimension along which to join; negative axes count from the end.

Returns: One tensor, as long along `axis` as all inputs together.

Gradient: Each input gets its own part of `dy`.

>>> tf.concat([[1, 2], [3]], 0)
<tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>)",
    .node_name = "concat",
});

constexpr struct : Keys {
  Key<Ints> size_splits = next("size_splits");
  Key<int64_t> axis = next("axis");
} split_params;

void infer_split(Call& call) {
  const Tensor& x = call.in[0];
  const Param& sizes = call.params.value(split_params.size_splits);
  int64_t axis = known_integer(call.params.value(split_params.axis));
  if (!count_known(sizes))
    fail(ErrorKind::value, call.name(),
         ": Cannot infer argument `num` from the sizes: their number must be known while tracing");
  bool placed = x.rank() >= 0 && axis != kUnknownInt;
  if (placed) axis = normalize_axis(call.name(), axis, x.rank());
  int64_t total = 0, rest = -1;
  int open = 0;
  for (size_t i = 0; i < sizes.ints.size(); ++i) {
    const int64_t n = sizes.ints[i];
    if (n < 0 && n > kUnknownCount)
      fail(ErrorKind::invalid_argument, "split: Split size at index ", i, " must be >= 0. Got: ", n);
    if (n < 0)
      ++open;
    else
      total += n;
  }
  int64_t length = placed ? x.dim(int(axis)) : -1;
  if (length >= 0 && (total > length || (open == 0 && total != length)))
    fail(ErrorKind::invalid_argument, "split: can't split axis ", axis, " of size ", length,
         ": Determined shape must either match input shape along split_dim exactly if fully specified, or be less than "
         "it; got a sum of ",
         total);
  if (open == 1 && length >= 0) rest = length - total;
  for (int64_t n : sizes.ints) {
    Shape shape = placed ? x.shape() : x.rank() < 0 ? Shape::unknown() : unknown_dims(x.rank());
    if (placed) shape[int(axis)] = n < 0 ? rest : n;
    call.returns(x.dtype(), shape);
  }
}

bool movement_of_split(const Call& call, AxisMovement& m) {
  const int axis = m.in_axis = m.out_axis =
      normalize_axis(call.name(), call.params[split_params.axis], call.in[0].rank());
  if (call.in[0].dim(axis) > AxisMovement::kMostParts) return false;
  int64_t next = 0;
  for (int64_t n : call.params[split_params.size_splits]) {
    auto& parts = m.results.emplace_back();
    for (int64_t i = 0; i < n; ++i) parts.push_back({0, next++});
  }
  return next == call.in[0].dim(axis);
}

const Op& split_op = define(Op{
    .name = "SplitV",
    .planning = {.cannot_fail = true, .view = ViewKind::sometimes, .movement = movement_of_split},
    .arguments = {tensor("value", any_dtype), ints(split_params.size_splits), integer(split_params.axis, 0)},
    .infer_staged = infer_split,
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          int axis = normalize_axis(call.name(), call.params[split_params.axis], x.rank());
          int64_t outer = x.shape().elements(0, axis), row = x.shape().elements(axis, x.rank()), at = 0;
          int64_t inner = x.shape().elements(axis + 1, x.rank()), total = 0, index = 0;
          size_t size = size_of(x.dtype());
          for (int64_t n : call.params[split_params.size_splits]) {
            if (n < 0)
              fail(ErrorKind::invalid_argument, "split: Split size at index ", index, " must be >= 0. Got: ", n);
            total += n, ++index;
          }
          if (total != x.dim(axis))
            fail(ErrorKind::invalid_argument, "split: can't split axis ", axis, " of size ", x.dim(axis),
                 ": Determined shape must either match input shape along split_dim exactly if fully specified, or be "
                 "less than it; got a sum of ",
                 total);
          for (int64_t n : call.params[split_params.size_splits]) {
            Shape shape = x.shape();
            shape[axis] = n;
            int64_t length = n * inner;
            if (outer == 1) {  // rows of x: the buffer is shared
              call.out.push_back(x.view(shape, at));
            } else {
              call.out.push_back(Tensor::allocate(x.dtype(), shape));
              const Tensor& y = call.out.back();
              copy_rows(x.dtype(), offset(x.raw(), at, size), row, y.mutable_raw(), length, length, outer);
            }
            at += length;
          }
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          SmallVector<Tensor, 8> parts;
          for (int i = 0; i < c.outputs(); ++i) parts.push_back(c.dy(i));
          c.set(0, concat(parts, c.params[split_params.axis]));
        },
    .batch = batch_along<split_params.axis.index>,
    .returns_list = true,
});

constexpr struct : Keys {
  Key<int64_t> axis = next("axis");
} pack_params;
bool movement_of_pack(const Call& call, AxisMovement& m) {
  if (std::ssize(call.in) > AxisMovement::kMostParts) return false;
  m.out_axis = normalize_axis(call.name(), call.params[pack_params.axis], call.in[0].rank() + 1);
  m.results.resize(1);
  for (size_t k = 0; k < call.in.size(); ++k) m.results[0].push_back({int(k), 0});
  return true;
}

const Op& pack_op = define(Op{
    .name = "Pack",
    .planning = {.cannot_fail = true, .movement = movement_of_pack},
    .arguments = {tensors("values", any_dtype).or_numbers(), integer(pack_params.axis, 0)},
    .infer =
        [](Call& call) {
          if (call.in.empty()) fail(ErrorKind::value, call.name(), ": values must hold at least one tensor");
          const Shape& first = call.in[0].shape();
          for (size_t i = 1; i < call.in.size(); ++i) {
            if (call.in[i].dtype() != call.in[0].dtype()) fail_list_dtypes(call);
            if (!(call.in[i].shape() == first))
              fail(ErrorKind::invalid_argument, call.name(),
                   ": Shapes of all inputs must match: values[0].shape = ", first, " != values[", i,
                   "].shape = ", call.in[i].shape());
          }
          int64_t axis = call.params[pack_params.axis];
          if (axis < -first.rank() - 1 || axis > first.rank())
            fail(ErrorKind::value, call.name(), ": Argument `axis` = ", axis, " not in range [", -first.rank() - 1,
                 ", ", first.rank() + 1, ")");
          Shape shape = first;
          shape.insert(int(axis < 0 ? axis + first.rank() + 1 : axis), int64_t(call.in.size()));
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          if (call.in.empty()) fail(ErrorKind::value, call.name(), ": values must hold at least one tensor");
          Shape shape = Shape::unknown();
          for (const Tensor& t : call.in) {
            if (t.dtype() != call.in[0].dtype()) fail_list_dtypes(call);
            merge_dims(call, shape, t.shape(), -1);
          }
          int64_t axis = known_integer(call.params.value(pack_params.axis));
          if (!shape.known_rank()) return call.returns(call.in[0].dtype(), shape);
          if (axis == kUnknownInt) return call.returns(call.in[0].dtype(), unknown_dims(shape.rank() + 1));
          if (axis < -shape.rank() - 1 || axis > shape.rank())
            fail(ErrorKind::value, call.name(), ": Argument `axis` = ", axis, " not in range [", -shape.rank() - 1,
                 ", ", shape.rank() + 1, ")");
          shape.insert(int(axis < 0 ? axis + shape.rank() + 1 : axis), int64_t(call.in.size()));
          call.returns(call.in[0].dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &y = call.out[0], &first = call.in[0];
          int64_t axis = call.params[pack_params.axis];
          if (axis < 0) axis += first.rank() + 1;
          int64_t outer = first.shape().elements(0, int(axis)),
                  length = first.shape().elements(int(axis), first.rank());
          size_t size = size_of(y.dtype());
          int64_t n = int64_t(call.in.size());
          for (int64_t i = 0; i < n; ++i)
            copy_rows(y.dtype(), call.in[size_t(i)].raw(), length, offset(y.mutable_raw(), i * length, size),
                      n * length, length, outer);
        },
    .vjp =
        [](RuleContext& c) {
          auto parts = unstack(c.dy(), c.params[pack_params.axis]);
          for (int i = 0; i < c.inputs(); ++i) c.set(i, parts[size_t(i)]);
        },
    .copies_elements = true,
    .batch =
        [](BatchCall& c) {
          return c.run_same(c.all_with_rows(), {Param(c.batch_axis(c.params[pack_params.axis], c.row_rank(0) + 1))});
        },
    .elements = Elements::moved,
    .names = {"stack"},
    .doc = R"(Equally shaped tensors put side by side along a new dimension `axis`.

Args:
  values: A list of tensors of equal shape and dtype.
  axis: Where the new dimension stands; negative axes count from the end.

Returns: A tensor of one more dimension, as long as the list along `axis`.

Gradient: Each input gets its own slice of `dy`.

>>> tf.stack([[1, 2], [3, 4]])
<tf.Tensor: shape=(2, 2), dtype=int32, numpy=
array([[1, 2],
       [3, 4]], dtype=int32)>)",
    .node_name = "stack",
});

constexpr struct : Keys {
  Key<int64_t> num = next("num"), axis = next("axis");
} unpack_params;
bool movement_of_unpack(const Call& call, AxisMovement& m) {
  m.in_axis = normalize_axis(call.name(), call.params[unpack_params.axis], call.in[0].rank());
  const int64_t n = call.in[0].dim(m.in_axis);
  if (n > AxisMovement::kMostParts) return false;
  for (int64_t i = 0; i < n; ++i) m.results.push_back({{0, i}});
  return true;
}

const Op& unpack_op = define(Op{
    .name = "Unpack",
    .planning = {.cannot_fail = true, .view = ViewKind::sometimes, .movement = movement_of_unpack},
    .arguments = {tensor("value", any_dtype), integer(unpack_params.num, -1), integer(unpack_params.axis, 0)},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          int64_t num = known_integer(call.params.value(unpack_params.num)),
                  axis = known_integer(call.params.value(unpack_params.axis));
          Shape shape = x.shape();
          if (axis == kUnknownInt) {
            shape = x.rank() > 0 ? unknown_dims(x.rank() - 1) : Shape::unknown();
          } else if (x.rank() >= 0) {
            if (x.rank() == 0)
              fail(ErrorKind::value, "unstack: Argument `axis` = ", axis,
                   " not in range [0, 0): a scalar has no dimension to take apart");
            int place = normalize_axis(call.name(), axis, x.rank());
            if (x.dim(place) >= 0) num = x.dim(place);
            shape.remove(place);
          }
          if (num < 0)
            fail(ErrorKind::value, call.name(), ": Cannot infer argument `num` from shape ", PythonShape{x.shape()});
          for (int64_t i = 0; i < num; ++i) call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          if (x.rank() == 0)
            fail(ErrorKind::value, "unstack: Argument `axis` = ", call.params[unpack_params.axis],
                 " not in range [0, 0): a scalar has no dimension to take apart");
          int axis = normalize_axis(call.name(), call.params[unpack_params.axis], x.rank());
          int64_t outer = x.shape().elements(0, axis), n = x.dim(axis), length = x.shape().elements(axis + 1, x.rank());
          if (call.params[unpack_params.num] >= 0 && call.params[unpack_params.num] != n)
            fail(ErrorKind::invalid_argument, "unstack: num must be ", n, "; got ", call.params[unpack_params.num],
                 " for shape ", x.shape());
          Shape shape = x.shape();
          shape.remove(axis);
          size_t size = size_of(x.dtype());
          for (int64_t i = 0; i < n; ++i) {
            if (outer == 1) {
              call.out.push_back(x.view(shape, i * length));
              continue;
            }
            call.out.push_back(Tensor::allocate(x.dtype(), shape));
            copy_rows(x.dtype(), offset(x.raw(), i * length, size), n * length, call.out.back().mutable_raw(), length,
                      length, outer);
          }
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          SmallVector<Tensor, 8> parts;
          for (int i = 0; i < c.outputs(); ++i) parts.push_back(c.dy(i));
          c.set(0, stack(parts, c.params[unpack_params.axis]));
        },
    .copies_elements = true,
    .batch = batch_along<unpack_params.axis.index>,
    .node_name = "unstack",
    .returns_list = true,
});

// The parts of x along an axis, copied to where a plan wants them.
void copy_parts(Call& call, int64_t given_axis) {
  const Tensor& x = call.in[0];
  const int axis = normalize_axis(call.name(), given_axis, x.rank());
  const int64_t outer = x.shape().elements(0, axis), row = x.shape().elements(axis, x.rank());
  int64_t at = 0;
  for (const Tensor& y : call.out) {
    const int64_t length = outer == 0 ? 0 : y.size() / outer;
    copy_rows(x.dtype(), offset(x.raw(), at, size_of(x.dtype())), row, y.mutable_raw(), length, length, outer);
    at += length;
  }
}
const Op& split_copy_op = define_inner(Op{
    .name = "SplitCopy",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("value", any_dtype), ints(split_params.size_splits), integer(split_params.axis, 0)},
    .kernel = [](Call& call) { copy_parts(call, call.params[split_params.axis]); },
    .gradient = Gradient::none,
    .copies_elements = true,
});
const Op& unpack_copy_op = define_inner(Op{
    .name = "UnpackCopy",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("value", any_dtype), integer(unpack_params.num, -1), integer(unpack_params.axis, 0)},
    .kernel = [](Call& call) { copy_parts(call, call.params[unpack_params.axis]); },
    .gradient = Gradient::none,
    .copies_elements = true,
});

}  // namespace

const Op* copying_split(const Op& op) {
  return &op == &split_op ? &split_copy_op : &op == &unpack_op ? &unpack_copy_op : nullptr;
}
Tensor concat(std::span<const Tensor> parts, int64_t axis) { return run(concat_entry, parts, {Param(axis)}); }
const Op& concat_op() { return concat_entry; }
const Op& stack_op() { return pack_op; }
Tensor stack(std::span<const Tensor> parts, int64_t axis) { return run(pack_op, parts, {Param(axis)}); }
Tensors split(const Tensor& x, const Ints& sizes, int64_t axis) {
  return run_all(split_op, std::span(&x, 1), {Param(sizes), Param(axis)});
}
Tensors unstack(const Tensor& x, int64_t axis) {
  return run_all(unpack_op, std::span(&x, 1), {Param(int64_t(-1)), Param(axis)});
}

}  // namespace tapeflow
