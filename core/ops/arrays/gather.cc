// Slices of a tensor picked by position: gather, gather_nd, and the transpose of gather.
#include <array>
#include <cstring>

#include "base/parallel.h"
#include "ops/arrays/elements.h"
#include "ops/arrays/rows.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

extern const Op& gather_grad_op;

struct GatherPlan {
  int axis, batch_dims;
  int64_t batches, outer, limit, inner, count;  // x is [batches, outer, limit, inner], indices [batches, count]
  Shape result;
};
GatherPlan plan_gather(const char* who, const Shape& x, const Shape& indices, int64_t axis, int64_t batch_dims) {
  GatherPlan g;
  if (x.rank() == 0) fail(ErrorKind::invalid_argument, who, ": params must be at least 1 dimensional; got shape []");
  g.axis = normalize_axis(who, axis, x.rank());
  if (batch_dims < -indices.rank() || batch_dims > indices.rank())
    fail(ErrorKind::invalid_argument, who, ": batch_dims must be in [", -indices.rank(), ", ", indices.rank(),
         "]; got ", batch_dims);
  g.batch_dims = int(batch_dims < 0 ? batch_dims + indices.rank() : batch_dims);
  if (g.batch_dims > g.axis)
    fail(ErrorKind::invalid_argument, who, ": batch_dims (", g.batch_dims, ") must be less than or equal to axis (",
         g.axis, ").");
  for (int i = 0; i < g.batch_dims; ++i)
    if (x[i] != indices[i])
      fail(ErrorKind::invalid_argument, who, ": params.shape[", i, "]: ", x[i], " should be equal to indices.shape[", i,
           "]: ", indices[i]);
  g.batches = x.elements(0, g.batch_dims);
  g.outer = x.elements(g.batch_dims, g.axis);
  g.limit = x[g.axis];
  g.inner = x.elements(g.axis + 1, x.rank());
  g.count = indices.elements(g.batch_dims, indices.rank());
  g.result = x.slice(0, g.axis);
  for (int i = g.batch_dims; i < indices.rank(); ++i) g.result.append(indices[i]);
  for (int i = g.axis + 1; i < x.rank(); ++i) g.result.append(x[i]);
  return g;
}

constexpr struct : Keys {
  Key<int64_t> axis = next("axis"), batch_dims = next("batch_dims");
} gather_params;
const Op& gather_op = define(Op{
    .name = "GatherV2",
    .arguments = {tensor("params", any_dtype), index_tensor("indices"), integer(gather_params.axis, 0),
                  integer(gather_params.batch_dims, 0)},
    .infer =
        [](Call& call) {
          call.returns(call.in[0].dtype(),
                       plan_gather("gather", call.in[0].shape(), call.in[1].shape(), call.params[gather_params.axis],
                                   call.params[gather_params.batch_dims])
                           .result);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor &x = call.in[0], &indices = call.in[1];
          int64_t axis = known_integer(call.params.value(gather_params.axis)),
                  batch_dims = known_integer(call.params.value(gather_params.batch_dims));
          int rank =
              x.rank() < 0 || indices.rank() < 0 || batch_dims == kUnknownInt
                  ? -1
                  : int(x.rank() - 1 + indices.rank() - (batch_dims < 0 ? batch_dims + indices.rank() : batch_dims));
          if (rank < 0) return call.returns(x.dtype(), Shape::unknown());
          if (axis == kUnknownInt) return call.returns(x.dtype(), unknown_dims(rank));
          try_out(call, [](Call& c) {
            c.returns(c.in[0].dtype(), plan_gather("gather", c.in[0].shape(), c.in[1].shape(),
                                                   c.params[gather_params.axis], c.params[gather_params.batch_dims])
                                           .result);
          });
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          GatherPlan g = plan_gather("gather", x.shape(), call.in[1].shape(), call.params[gather_params.axis],
                                     call.params[gather_params.batch_dims]);
          const Positions index = checked_indices("gather", call.in[1], g.limit);
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            T* to = y.mutable_data<T>();
            if (g.batches * g.outer == 1)
              return parallel_for(g.count, std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, g.inner)),
                                  [&](int64_t begin, int64_t end) {
                                    index.with_numbers(begin, [&](const auto* place) {
                                      copy_picked(from, place, end - begin, g.inner, to + begin * g.inner);
                                    });
                                  });
            parallel_for(
                g.batches * g.outer, std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, g.count * g.inner)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t bo = begin; bo < end; ++bo)
                    index.with_numbers(bo / g.outer * g.count, [&](const auto* place) {
                      copy_picked(from + bo * g.limit * g.inner, place, g.count, g.inner, to + bo * g.count * g.inner);
                    });
                });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(0)) return;
          const Shape x = c.shape(0);
          int axis = normalize_axis("gather", c.params[gather_params.axis], x.rank());
          const Tensor& indices = c.x(1);
          int64_t batch_dims = c.params[gather_params.batch_dims];
          // As in TensorFlow, only axis 0 given as such leaves rows: -1 of a vector does not.
          if (c.params[gather_params.axis] == 0 && (batch_dims == 0 || batch_dims == -indices.rank())) {
            Shape rows{indices.size()};
            for (int i = 1; i < x.rank(); ++i) rows.append(x[i]);
            return c.set_rows(0, reshape(c.dy(), rows), reshape(indices, {indices.size()}));
          }
          c.set_scatter_add(0, gather_grad_op, std::array{c.dy(), indices},
                            {Param(x), Param(int64_t(axis)), Param(batch_dims)});
        },
    .jvp =
        [](RuleContext& c) {
          if (c.x_dot(0))
            c.set(0, gather(c.x_dot(0), c.x(1), c.params[gather_params.axis], c.params[gather_params.batch_dims]));
        },
    .keep = keep_input(1),
    .adds_in_place = true,
    .copies_elements = true,
    .rule_needs_no_shapes =
        [](const RuleContext& c) {  // the rows that it took of a tensor of known shape stay rows, however many they are
          return c.params[gather_params.axis] == 0 && c.params[gather_params.batch_dims] == 0 && c.kept_inputs[0] &&
                 c.kept_inputs[0].size() >= 0;
        },
    .batch =
        [](BatchCall& c) {
          const int64_t axis = c.batch_axis(c.params[gather_params.axis], c.row_rank(0));
          int64_t batch_dims = c.params[gather_params.batch_dims];
          if (batch_dims < 0) batch_dims += c.row_rank(1);
          if (batch_dims == 0 && !c.batched[1]) return c.run_same({c.in[0], c.in[1]}, {Param(axis), Param(0)});
          if (batch_dims > 0 || c.batched[0])
            return c.run_same({c.with_rows(0), c.with_rows(1)}, {Param(axis), Param(batch_dims + 1)});
          c.out.push_back(move_dimension(gather(c.in[0], c.in[1], axis - 1, 0), int(axis) - 1, 0));
          return true;
        },
});

constexpr struct : Keys {
  Key<Ints> shape = next("shape");
  Key<int64_t> axis = next("axis"), batch_dims = next("batch_dims");
} gather_grad_params;
// Adds the rows of dy to those of x that they were gathered from.
template <class T> void add_gathered(const Call& call, const Shape& shape, Compute<T>* x) {
  const T* from = call.in[0].data<T>();
  GatherPlan g = plan_gather("gather", shape, call.in[1].shape(), call.params[gather_grad_params.axis],
                             call.params[gather_grad_params.batch_dims]);
  const Positions index = checked_indices("gather", call.in[1], g.limit);
  parallel_for(g.batches * g.outer, std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, g.count * g.inner)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t bo = begin; bo < end; ++bo)
                   index.with_numbers(bo / g.outer * g.count, [&](const auto* place) {
                     add_rows(from + bo * g.count * g.inner, place, g.count, g.inner, x + bo * g.limit * g.inner);
                   });
               });
}

// The transpose of gather.
const Op& gather_grad_op = define(Op{
    .name = "GatherGrad",
    .arguments = {tensor("dy", numbers), index_tensor("indices"), ints(gather_grad_params.shape),
                  integer(gather_grad_params.axis), integer(gather_grad_params.batch_dims)},
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.params.shape(gather_grad_params.shape)); },
    .infer_staged =
        [](Call& call) { call.returns(call.in[0].dtype(), known_shape(call.params.value(gather_grad_params.shape))); },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.out[0];
          std::memset(x.mutable_raw(), 0, x.bytes());
          visit<numbers.bits>(x.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            Sums<T> sums(x);
            add_gathered<T>(call, x.shape(), sums.data());
          });
        },
    .scatter_add =
        [](const Call& call, const Tensor& total) {
          visit<wide_floating.bits>(total.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            add_gathered<T>(call, total.shape(), total.mutable_data<T>());
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0))
            c.set(0,
                  gather(c.dy(), c.x(1), c.params[gather_grad_params.axis], c.params[gather_grad_params.batch_dims]));
        },
    .keep = keep_input(1),
    .batch =
        [](BatchCall& c) {
          const Ints& shape = c.params[gather_grad_params.shape];
          const int64_t axis = c.batch_axis(c.params[gather_grad_params.axis], int(shape.size()));
          int64_t batch_dims = c.params[gather_grad_params.batch_dims];
          if (batch_dims < 0) batch_dims += c.row_rank(1);
          const bool alike = batch_dims == 0 && !c.batched[1];
          return c.run_same({c.with_rows(0), alike ? c.in[1] : c.with_rows(1)},
                            {Param(prepended(c.rows, shape)), Param(axis), Param(alike ? 0 : batch_dims + 1)});
        },
});

constexpr struct : Keys {
  Key<int64_t> batch_dims = next("batch_dims");
  Key<std::string> bad_indices_policy = next("bad_indices_policy");
} gather_nd_params;
const Op& gather_nd_op = define(Op{
    .name = "GatherNd",
    .arguments = {tensor("params", any_dtype), index_tensor("indices"), integer(gather_nd_params.batch_dims, 0),
                  text(gather_nd_params.bad_indices_policy, "")},
    .infer =
        [](Call& call) {
          call.returns(call.in[0].dtype(), plan_nd("gather_nd", call.in[0].shape(), call.in[1].shape(),
                                                   call.params[gather_nd_params.batch_dims])
                                               .result);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor &x = call.in[0], &indices = call.in[1];
          int64_t batch_dims = known_integer(call.params.value(gather_nd_params.batch_dims)),
                  depth = indices.rank() > 0 ? indices.shape().back() : -1;
          if (x.rank() < 0 || depth < 0 || batch_dims == kUnknownInt) return call.returns(x.dtype(), Shape::unknown());
          if (depth + batch_dims > x.rank())
            fail(ErrorKind::invalid_argument,
                 "gather_nd: index innermost dimension length must be <= params rank; saw: ", depth, " vs. ",
                 x.rank() - batch_dims);
          Shape shape = indices.shape().slice(0, indices.rank() - 1);
          for (int i = int(depth + batch_dims); i < x.rank(); ++i) shape.append(x.dim(i));
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          int64_t batch_dims = call.params[gather_nd_params.batch_dims];
          NdPlan n = plan_nd("gather_nd", x.shape(), call.in[1].shape(), batch_dims);
          const bool ignore = ignores_outside("gather_nd", call.params[gather_nd_params.bad_indices_policy]);
          const Positions rows = nd_rows("gather_nd", x.shape(), call.in[1], n, batch_dims, ignore, "param ");
          by_size(x.dtype(), [&]<class T>(T*) {
            rows.with_numbers(0, [&](const auto* place) {
              const T* from = static_cast<const T*>(x.raw());
              if (ignore)
                copy_inside(from, place, rows.size(), n.inner, y.mutable_data<T>());
              else
                copy_picked(from, place, rows.size(), n.inner, y.mutable_data<T>());
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(0)) return;
          int64_t batch_dims = c.params[gather_nd_params.batch_dims];
          const Tensor& indices = c.x(1);
          const std::string& policy = c.params[gather_nd_params.bad_indices_policy];
          if (batch_dims == 0 && indices.rank() == 2 && indices.dim(1) == 1 && policy != "IGNORE")
            return c.set_rows(0, c.dy(), reshape(indices, {indices.size()}));
          if (batch_dims == 0) return c.set(0, scatter_nd(indices, c.dy(), c.shape(0), policy));
          // Positions with the batch numbers in front.
          const Shape& s = indices.shape();
          int64_t n = s.elements(0, s.rank() - 1), per_batch = s.elements(int(batch_dims), s.rank() - 1);
          BlockVector<int64_t> numbers;
          for (int64_t i = 0; i < n; ++i) {
            int64_t unit = n / per_batch;
            for (int d = 0; d < batch_dims; ++d) {
              unit /= s[d];
              numbers.push_back(i / per_batch / unit % s[d]);
            }
          }
          Shape wide = s;
          wide[s.rank() - 1] = batch_dims;
          Tensor parts[] = {int_tensor(numbers, indices.dtype()).view(wide), indices};
          c.set(0, scatter_nd(concat(parts, s.rank() - 1), c.dy(), c.shape(0), policy));
        },
    .jvp =
        [](RuleContext& c) {
          if (c.x_dot(0)) c.set(0, run(c.op, {c.x_dot(0), c.x(1)}, c.params));
        },
    .keep = keep_input(1),
    .batch =
        [](BatchCall& c) {
          const int64_t batch_dims = c.params[gather_nd_params.batch_dims];
          if (!c.batched[0] && batch_dims == 0) return c.run_same({c.in[0], c.in[1]}, c.params);
          return c.run_same({c.with_rows(0), c.with_rows(1)},
                            {Param(batch_dims + 1), Param(c.params[gather_nd_params.bad_indices_policy])});
        },
    .names = {"gather_nd"},
    .doc = R"(The slices of `params` at the positions in the last dimension of `indices`.

Args:
  params: The tensor to read from.
  indices: Integers; the last dimension holds positions in `params`.
  batch_dims: How many leading dimensions `params` and `indices` share.
  bad_indices_policy: "IGNORE" gives zeros for positions outside of `params`; otherwise they are an error.

Returns: A tensor of shape `indices.shape[:-1] + params.shape[indices.shape[-1]:]`.

Gradient: `dy` is added up at `indices`, 0 elsewhere.

>>> tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])
<tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 3], dtype=int32)>)",
});

}  // namespace

Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis, int64_t batch_dims) {
  return run(gather_op, {x, indices}, {Param(axis), Param(batch_dims)});
}
Tensor gather_nd(const Tensor& x, const Tensor& indices, int64_t batch_dims) {
  return gather_nd(x, indices, batch_dims, "");
}
Tensor gather_nd(const Tensor& x, const Tensor& indices, int64_t batch_dims, const std::string& policy) {
  return run(gather_nd_op, {x, indices}, {Param(batch_dims), Param(policy)});
}
Tensor gather_grad(const Tensor& dy, const Tensor& indices, const Shape& x, int64_t axis, int64_t batch_dims) {
  return run(gather_grad_op, {dy, indices}, {Param(x), Param(axis), Param(batch_dims)});
}

}  // namespace tapeflow
