// Slices put at positions: scatter_nd, copies of a tensor with some positions changed, rows of a variable.
#include <cstring>

#include "op/cost.h"
#include "ops/arrays/elements.h"
#include "ops/arrays/rows.h"
#include "ops/arrays/slicing.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

// Texts put at rows of y, which is empty; those of one row are joined.
void join_texts(const Tensor& updates, const Positions& rows, int64_t inner, const Tensor& y) {
  const auto* from = updates.data<std::string>();
  auto* to = y.mutable_data<std::string>();
  for (int64_t i = 0; i < rows.size(); ++i)
    for (int64_t k = 0; k < inner && rows[i] >= 0; ++k) to[rows[i] * inner + k] += from[i * inner + k];
}

constexpr struct : Keys {
  Key<Ints> shape = next("shape");
  Key<std::string> bad_indices_policy = next("bad_indices_policy");
} scatter_nd_params;
const Op& scatter_nd_op = define(Op{
    .name = "ScatterNd",
    .planning = {.cost = {cost::elements_in_one_piece, 2}},
    .arguments = {index_tensor("indices"), tensor("updates", numbers | booleans | DType::string),
                  ints(scatter_nd_params.shape), text(scatter_nd_params.bad_indices_policy, "")},
    .infer =
        [](Call& call) {
          Shape shape = call.params.shape(scatter_nd_params.shape);
          NdPlan n = plan_nd("scatter_nd", shape, call.in[0].shape(), 0);
          if (!(n.result == call.in[1].shape()))
            fail_updates("scatter_nd", shape, call.in[0].shape(), call.in[1].shape());
          call.returns(call.in[1].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) { call.returns(call.in[1].dtype(), known_shape(call.params.value(scatter_nd_params.shape))); },
    .kernel =
        [](Call& call) {
          const Tensor &updates = call.in[1], &y = call.out[0];
          Shape shape = call.params.shape(scatter_nd_params.shape);
          NdPlan n = plan_nd("scatter_nd", shape, call.in[0].shape(), 0);
          const bool ignore = ignores_outside("scatter_nd", call.params[scatter_nd_params.bad_indices_policy]);
          const Positions rows = nd_rows("scatter_nd", shape, call.in[0], n, 0, ignore);
          if (updates.dtype() == DType::string) return join_texts(updates, rows, n.inner, y);
          std::memset(y.mutable_raw(), 0, y.bytes());
          visit<(numbers | booleans).bits>(updates.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            Sums<T> sums(y);
            rows.with_numbers(0, [&](const auto* place) {
              const T* from = updates.data<T>();
              if (!ignore) return add_rows(from, place, rows.size(), n.inner, sums.data());
              for (int64_t i = 0; i < rows.size(); ++i)
                if (place[i] >= 0) add_rows(from + i * n.inner, place + i, 1, n.inner, sums.data());
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (c.wants(1)) c.set(1, gather_nd(c.dy(), c.x(0), 0, c.params[scatter_nd_params.bad_indices_policy]));
        },
    .keep = keep_input(0),
    .batch =
        [](BatchCall& c) {
          return c.run_same({positions_with_row(c.with_rows(0)), c.with_rows(1)},
                            {Param(prepended(c.rows, c.params[scatter_nd_params.shape])),
                             Param(c.params[scatter_nd_params.bad_indices_policy])});
        },
    .names = {"scatter_nd"},
    .doc = R"(Zeros of the given `shape` with `updates` added at the positions `indices`.

Args:
  indices: Integers; the last dimension holds positions in the result.
  updates: The slices to add; where positions repeat, they are added up.
  shape: The shape of the result.
  bad_indices_policy: "IGNORE" drops updates at positions outside of the result; otherwise they are an error.

Returns: A tensor of shape `shape`.

Gradient: `updates` gets `dy` at `indices`.

>>> tf.scatter_nd([[1], [3]], [5, 6], [4])
<tf.Tensor: shape=(4,), dtype=int32, numpy=array([0, 5, 0, 6], dtype=int32)>)",
});

// ---- copies of a tensor with some positions changed

constexpr struct : Keys {
  Key<std::string> bad_indices_policy = next("bad_indices_policy");
} tensor_scatter_params;

struct Replaced {
  template <class C> static C combine(C, C update) { return update; }
};
struct Added {
  template <class C> static C combine(C old, C update) { return C(old + update); }
};
struct Subtracted {
  template <class C> static C combine(C old, C update) { return C(old - update); }
};
struct Larger {
  template <class C> static C combine(C old, C update) { return update > old ? update : old; }
};
struct Smaller {
  template <class C> static C combine(C old, C update) { return update < old ? update : old; }
};

void infer_tensor_scatter(Call& call) {
  const Tensor &x = call.in[0], &indices = call.in[1], &updates = call.in[2];
  NdPlan n = plan_nd(call.name(), x.shape(), indices.shape(), 0);
  if (!(n.result == updates.shape())) fail_updates(call.name(), x.shape(), indices.shape(), updates.shape());
  if (x.dtype() != updates.dtype())
    fail(ErrorKind::invalid_argument, call.name(), ": updates must have the dtype of the tensor, ", name_of(x.dtype()),
         "; got ", name_of(updates.dtype()));
  call.returns(x.dtype(), x.shape());
}

template <DTypes Set, class Combine> void tensor_scatter_kernel(Call& call) {
  const Tensor &x = call.in[0], &updates = call.in[2], &y = call.out[0];
  NdPlan n = plan_nd(call.name(), x.shape(), call.in[1].shape(), 0);
  bool ignore = false;
  if constexpr (!std::is_same_v<Combine, Replaced>)
    ignore = ignores_outside(call.name(), call.params[tensor_scatter_params.bad_indices_policy]);
  const Positions rows = nd_rows(call.name(), x.shape(), call.in[1], n, 0, ignore);
  auto apply = [&]<class T>(T*, auto combine) {
    const T *from = static_cast<const T*>(updates.raw()), *old = static_cast<const T*>(x.raw());
    T* to = y.mutable_data<T>();
    if (to != old) std::copy(old, old + x.size(), to);  // a plan may put y in the place of x
    for (int64_t i = 0; i < rows.size(); ++i, from += n.inner) {
      if (rows[i] < 0) continue;
      T* row = to + rows[i] * n.inner;
      for (int64_t k = 0; k < n.inner; ++k) combine(row + k, from + k);
    }
  };
  if constexpr (std::is_same_v<Combine, Replaced>)
    by_size(x.dtype(), [&]<class T>(T* p) { apply(p, [](T* to, const T* from) { *to = *from; }); });
  else
    visit<Set.bits>(x.dtype(), [&](auto* p) {
      using T = Pointee<decltype(p)>;
      apply(p, [](T* to, const T* from) { store(to, Combine::combine(load(to), load(from))); });
    });
}

template <DTypes Set, class Combine>
Op tensor_scatter(const char* name, VjpFunction vjp, Keep keep, const char* path, const char* doc) {
  Op op{.name = name, .arguments = {tensor("tensor", Set), index_tensor("indices"), tensor("updates", Set)}};
  if constexpr (!std::is_same_v<Combine, Replaced>)
    op.arguments.push_back(text(tensor_scatter_params.bad_indices_policy, ""));
  op.infer = infer_tensor_scatter;
  op.infer_staged = same_as_input;
  op.kernel = tensor_scatter_kernel<Set, Combine>;
  op.updates_in_place = true;
  op.vjp = vjp;
  op.keep = keep;
  op.batch = [](BatchCall& c) {
    return c.run_same({c.with_rows(0), positions_with_row(c.with_rows(1)), c.with_rows(2)}, c.params);
  };
  op.names = {path};
  op.doc = doc;
  return op;
}

const Op& tensor_scatter_update_op = define(tensor_scatter<any_dtype, Replaced>(
    "TensorScatterUpdate",
    [](RuleContext& c) {
      const Tensor& indices = c.x(1);
      Tensor d_updates = gather_nd(c.dy(), indices, 0);
      if (c.wants(0)) c.set(0, tensor_scatter_update(c.dy(), indices, zeros_like(d_updates)));
      if (c.wants(2)) c.set(2, d_updates);
    },
    keep_input(1), "tensor_scatter_nd_update",
    R"(`tensor` with the slices at the positions `indices` replaced by `updates`; the last one counts.

Args:
  tensor: The tensor to start from.
  indices: Integers; the last dimension holds positions in `tensor`.
  updates: The slices to replace, of shape `indices.shape[:-1] + tensor.shape[indices.shape[-1]:]`.

Returns: A tensor of the shape and dtype of `tensor`.

Gradient: `tensor` gets `dy` with 0 at `indices`; `updates` gets `dy` at `indices`.

>>> tf.tensor_scatter_nd_update([1, 2, 3], [[1]], [9])
<tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 9, 3], dtype=int32)>)"));

const Op& tensor_scatter_add_op = define(tensor_scatter<numbers, Added>(
    "TensorScatterAdd",
    [](RuleContext& c) {
      if (c.wants(0)) c.set(0, identity(c.dy()));
      if (c.wants(2)) c.set(2, gather_nd(c.dy(), c.x(1), 0, c.params[tensor_scatter_params.bad_indices_policy]));
    },
    keep_input(1), "tensor_scatter_nd_add",
    R"(`tensor` with `updates` added at the positions `indices`.

Args:
  tensor: The tensor to start from.
  indices: Integers; the last dimension holds positions in `tensor`.
  updates: The slices to add, of shape `indices.shape[:-1] + tensor.shape[indices.shape[-1]:]`.
  bad_indices_policy: "IGNORE" drops updates at positions outside of `tensor`; otherwise they are an error.

Returns: A tensor of the shape and dtype of `tensor`.

Gradient: `tensor` gets `dy`; `updates` gets `dy` at `indices`.

>>> tf.tensor_scatter_nd_add([1, 2, 3], [[1]], [9])
<tf.Tensor: shape=(3,), dtype=int32, numpy=array([ 1, 11,  3], dtype=int32)>)"));

const Op& tensor_scatter_sub_op = define(tensor_scatter<numbers, Subtracted>(
    "TensorScatterSub",
    [](RuleContext& c) {
      if (c.wants(0)) c.set(0, identity(c.dy()));
      if (c.wants(2))
        c.set(2, negative(gather_nd(c.dy(), c.x(1), 0, c.params[tensor_scatter_params.bad_indices_policy])));
    },
    keep_input(1), "tensor_scatter_nd_sub",
    R"(`tensor` with `updates` subtracted at the positions `indices`.

Args:
  tensor: The tensor to start from.
  indices: Integers; the last dimension holds positions in `tensor`.
  updates: The slices to subtract, of shape `indices.shape[:-1] + tensor.shape[indices.shape[-1]:]`.
  bad_indices_policy: "IGNORE" drops updates at positions outside of `tensor`; otherwise they are an error.

Returns: A tensor of the shape and dtype of `tensor`.

Gradient: `tensor` gets `dy`; `updates` gets `-dy` at `indices`.

>>> tf.tensor_scatter_nd_sub([1, 2, 3], [[1]], [9])
<tf.Tensor: shape=(3,), dtype=int32, numpy=array([ 1, -7,  3], dtype=int32)>)"));

// The gradient goes to whatever equals the result, in equal parts.
void tensor_scatter_extremum_vjp(RuleContext& c) {
  const Tensor &x = c.x(0), &indices = c.x(1), &updates = c.x(2), &y = c.y();
  const std::string& policy = c.params[tensor_scatter_params.bad_indices_policy];
  Tensor old_wins = cast(equal(x, y), x.dtype()),
         update_wins = cast(equal(updates, gather_nd(y, indices, 0, policy)), x.dtype());
  Tensor winners = add(old_wins, scatter_nd(indices, update_wins, x.shape(), policy));
  Tensor share = divide(c.dy(), winners);
  if (c.wants(0)) c.set(0, multiply(share, old_wins));
  if (c.wants(2)) c.set(2, multiply(gather_nd(share, indices, 0, policy), update_wins));
}
constexpr Keep keep_scatter_extremum = keep_input(0) | keep_input(1) | keep_input(2) | keep_output(0);

const Op& tensor_scatter_max_op = define(tensor_scatter<real_numbers, Larger>(
    "TensorScatterMax", tensor_scatter_extremum_vjp, keep_scatter_extremum, "tensor_scatter_nd_max",
    R"(`tensor` with the larger of the old element and the update at the positions `indices`.

Args:
  tensor: The tensor to start from.
  indices: Integers; the last dimension holds positions in `tensor`.
  updates: The slices to compare, of shape `indices.shape[:-1] + tensor.shape[indices.shape[-1]:]`.
  bad_indices_policy: "IGNORE" drops updates at positions outside of `tensor`; otherwise they are an error.

Returns: A tensor of the shape and dtype of `tensor`.

Gradient: `dy` goes to the element that was the larger; ties share it.

>>> tf.tensor_scatter_nd_max([1, 2, 3], [[1]], [9])
<tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 9, 3], dtype=int32)>)"));

const Op& tensor_scatter_min_op = define(tensor_scatter<real_numbers, Smaller>(
    "TensorScatterMin", tensor_scatter_extremum_vjp, keep_scatter_extremum, "tensor_scatter_nd_min",
    R"(`tensor` with the smaller of the old element and the update at the positions `indices`.

Args:
  tensor: The tensor to start from.
  indices: Integers; the last dimension holds positions in `tensor`.
  updates: The slices to compare, of shape `indices.shape[:-1] + tensor.shape[indices.shape[-1]:]`.
  bad_indices_policy: "IGNORE" drops updates at positions outside of `tensor`; otherwise they are an error.

Returns: A tensor of the shape and dtype of `tensor`.

Gradient: `dy` goes to the element that was the smaller; ties share it.

>>> tf.tensor_scatter_nd_min([1, 2, 3], [[1]], [-9])
<tf.Tensor: shape=(3,), dtype=int32, numpy=array([ 1, -9,  3], dtype=int32)>)"));

}  // namespace

Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape) {
  return scatter_nd(indices, updates, shape, "");
}
Tensor tensor_scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return run(tensor_scatter_update_op, {x, indices, updates});
}
Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape, const std::string& policy) {
  return run(scatter_nd_op, {indices, updates}, {Param(shape), Param(policy)});
}

void update_rows(VariableBody& v, const Tensor& indices, const Tensor& values, RowUpdate how, const char* who) {
  PauseRecording paused;
  if (!v.value) fail(ErrorKind::failed_precondition, who, ": the variable was updated before it was initialised");
  Shape shape = v.value.shape();
  if (shape.rank() == 0)
    fail(ErrorKind::invalid_argument, who, ": the variable must have at least one dimension; got shape []");
  if (!integers.has(indices.dtype()))
    fail(ErrorKind::type, who, ": indices must be integers; got ", name_of(indices.dtype()));
  const Positions rows = checked_indices(who, indices.view({indices.size()}), shape[0]);
  int64_t count = indices.size(), inner = shape.elements(1, shape.rank());
  Shape wanted = indices.shape();
  for (int i = 1; i < shape.rank(); ++i) wanted.append(shape[i]);
  if (values.rank() != 0 && !(values.shape() == wanted))
    fail(ErrorKind::invalid_argument, who,
         ": Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape ",
         values.shape(), ", indices.shape ", indices.shape(), ", params.shape ", shape);
  Tensor updates = broadcast_to(values, wanted), target = writable_value(v);
  if (how == RowUpdate::replace) {
    by_size(target.dtype(), [&]<class T>(T*) {
      const T* from = static_cast<const T*>(updates.raw());
      for (int64_t i = 0; i < count; ++i)
        std::copy(from + i * inner, from + (i + 1) * inner, target.mutable_data<T>() + rows[i] * inner);
    });
    return;
  }
  bool known = visit<numbers.bits>(target.dtype(), [&](auto* p) {
    using T = Pointee<decltype(p)>;
    const T* from = updates.data<T>();
    for (int64_t i = 0; i < count; ++i, from += inner) {
      T* to = target.mutable_data<T>() + rows[i] * inner;
      if (how == RowUpdate::add)
        for (int64_t k = 0; k < inner; ++k) store(to + k, Compute<T>(load(to + k) + load(from + k)));
      else
        for (int64_t k = 0; k < inner; ++k) store(to + k, Compute<T>(load(to + k) - load(from + k)));
    }
  });
  if (!known) fail(ErrorKind::type, who, ": a variable of dtype ", name_of(target.dtype()), " cannot be added to");
}

}  // namespace tapeflow
