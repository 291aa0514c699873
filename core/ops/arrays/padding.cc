// A border of one value around a tensor.
#include <algorithm>

#include "ops/arrays/strided_copy.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

void check_constant(const Tensor& t) {
  if (t.rank() > 0) fail(ErrorKind::invalid_argument, "pad: constant_values must be a scalar. Found: ", t.shape());
}

constexpr struct : Keys {
  Key<Ints> paddings = next("paddings");
} pad_params;
// Paddings are flat: before and after the first dimension, before and after the second, ...
const Op& pad_op = define(Op{
    .name = "PadV2",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("input", any_dtype), ints(pad_params.paddings), tensor("constant_values", any_dtype)},
    .infer =
        [](Call& call) {
          Shape shape = call.in[0].shape();
          const Ints& p = call.params[pad_params.paddings];
          check_constant(call.in[1]);
          if (int(p.size()) != 2 * shape.rank())
            fail(ErrorKind::invalid_argument, "pad: The first dimension of paddings must be the rank of inputs, ",
                 shape.rank(), "; got ", p.size() / 2);
          for (int i = 0; i < shape.rank(); ++i) {
            int64_t before = p[size_t(2 * i)], after = p[size_t(2 * i) + 1];
            if (before < 0 || after < 0)
              fail(ErrorKind::invalid_argument, "pad: Paddings must be non-negative: ", before, " ", after);
            shape[i] += before + after;
          }
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Param& p = call.params.value(pad_params.paddings);
          check_constant(call.in[1]);
          int64_t rank = x.rank() >= 0 ? x.rank() : count_known(p) ? int64_t(p.ints.size() / 2) : -1;
          if (rank < 0) return call.returns(x.dtype(), Shape::unknown());
          if (count_known(p) && int64_t(p.ints.size()) != 2 * rank)
            fail(ErrorKind::invalid_argument, "pad: The first dimension of paddings must be the rank of inputs, ", rank,
                 "; got ", p.ints.size() / 2);
          Shape shape = unknown_dims(rank);
          for (int i = 0; i < rank && count_known(p) && x.rank() >= 0; ++i)
            shape[i] = known_sum(x.dim(i), known_sum(std::max<int64_t>(p.ints[size_t(2 * i)], -1),
                                                     std::max<int64_t>(p.ints[size_t(2 * i) + 1], -1)));
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            T* to = y.mutable_data<T>();
            std::fill(to, to + y.size(), *static_cast<const T*>(call.in[1].raw()));
            if (x.size() == 0) return;
            int64_t y_stride[kMaxRank];
            strides_of(y.shape(), y_stride);
            int rank = x.rank();
            int64_t row = rank ? x.dim(rank - 1) : 1, rows = x.size() / row;
            for (int64_t r = 0; r < rows; ++r) {
              int64_t rest = r, at = rank ? call.params[pad_params.paddings][size_t(2 * (rank - 1))] : 0;
              for (int d = rank - 2; d >= 0; --d) {
                at += (rest % x.dim(d) + call.params[pad_params.paddings][size_t(2 * d)]) * y_stride[d];
                rest /= x.dim(d);
              }
              std::copy(from + r * row, from + (r + 1) * row, to + at);
            }
          });
        },
    .vjp =
        [](RuleContext& c) {
          const Shape x = c.shape(0);
          Ints begin, size;
          for (int i = 0; i < x.rank(); ++i)
            begin.push_back(c.params[pad_params.paddings][size_t(2 * i)]), size.push_back(x[i]);
          if (c.wants(0)) c.set(0, slice(c.dy(), begin, size));
        },
    .batch =
        [](BatchCall& c) {
          if (c.batched[1]) return false;
          return c.run_same({c.in[0], c.in[1]}, {Param(prepended(0, prepended(0, c.params[pad_params.paddings])))});
        },
});

}  // namespace

Tensor pad(const Tensor& x, const Ints& paddings) {
  return run(pad_op, {x, Tensor::number(x.dtype(), 0)}, {Param(paddings)});
}

}  // namespace tapeflow
