// Elements repeated: broadcasting, its transpose, and tiles.
#include <algorithm>

#include "base/blocks.h"
#include "ops/arrays/strided_copy.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

constexpr struct : Keys {
  Key<Ints> shape = next("shape");
} broadcast_to_params;
const Op& broadcast_to_op = define(Op{
    .name = "BroadcastTo",
    .planning = {.is_broadcast = true},
    .arguments = {tensor("input", any_dtype), ints(broadcast_to_params.shape)},
    .infer =
        [](Call& call) {
          const Shape& x = call.in[0].shape();
          Shape shape = call.params.shape(broadcast_to_params.shape), both;
          // -1 keeps a dimension.
          for (int i = 0; i < shape.rank(); ++i)
            if (shape[i] == -1 && i >= shape.rank() - x.rank()) shape[i] = x[i - shape.rank() + x.rank()];
          if (!broadcast(x, shape, &both) || !(both == shape))
            fail(ErrorKind::invalid_argument, call.name(), ": Incompatible shapes: ", x, " vs. ", shape);
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          const Shape &x = call.in[0].shape(), shape = known_shape(call.params.value(broadcast_to_params.shape));
          Shape both = shape;
          if (!shape.known_rank() || !x.known_rank()) return call.returns(call.in[0].dtype(), shape);
          for (int i = 0; i < shape.rank(); ++i)
            if (call.params[broadcast_to_params.shape][size_t(i)] == -1 && i >= shape.rank() - x.rank())
              both[i] = x[i - shape.rank() + x.rank()];
          Shape result;
          if (x.rank() > shape.rank() || !broadcast(x, both, &result))
            fail(ErrorKind::invalid_argument, call.name(), ": Incompatible shapes: ", x, " vs. ", shape);
          for (int i = 0; i < both.rank(); ++i)
            if (both[i] < 0 && result[i] > 1) both[i] = result[i];
          call.returns(call.in[0].dtype(), both);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (y.size() == 0) return;
          // Copies the part that is contiguous in x once, then doubles what is written along every repeated dimension.
          int skip = y.rank() - x.rank();
          int64_t stride[kMaxRank];
          int64_t x_stride[kMaxRank];
          strides_of(x.shape(), x_stride);
          for (int i = 0; i < y.rank(); ++i) stride[i] = i >= skip && x.dim(i - skip) != 1 ? x_stride[i - skip] : 0;
          if (x.size() == 1) {
            by_size(x.dtype(), [&]<class T>(T*) {
              const T& value = *static_cast<const T*>(x.raw());
              T* to = y.mutable_data<T>();
              parallel_for(y.size(), kCheapGrain,
                           [&](int64_t begin, int64_t end) { fill_elements(to + begin, end - begin, value); });
            });
            return;
          }
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            T* to = y.mutable_data<T>();
            // Leading repeats of one whole block.
            int first = 0;
            while (first < y.rank() && stride[first] == 0) ++first;
            Shape inner = y.shape().slice(first, y.rank());
            int64_t block = inner.elements();
            int64_t made = 0;
            if (block != x.size()) {
              gather_strided(from, to, inner, stride + first);
              from = to;
              made = block;
            }
            // Many copies of a short block are copies of a longer one.
            constexpr int64_t kShort = 256, kLong = 2048;
            const bool repeats = block < kShort && y.size() - made > kLong;
            BlockVector<T> repeated(size_t(repeats ? kLong / block * block : 0));
            if (repeats) {
              for (int64_t at = 0; at < int64_t(repeated.size()); at += block)
                std::copy_n(from, block, repeated.data() + at);
              from = repeated.data();
              block = int64_t(repeated.size());
            }
            parallel_for(y.size() - made, kCopyGrain, [&](int64_t begin, int64_t end) {
              for (int64_t at = made + begin, n; at < made + end; at += n) {
                n = std::min(made + end - at, block - at % block);
                std::copy_n(from + at % block, n, to + at);
              }
            });
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, unbroadcast(c.dy(), c.shape(0))); },
    .jvp = [](RuleContext& c) { c.set(0, broadcast_to(c.x_dot(0), c.y().shape())); },
    .copies_elements = true,
    .batch =
        [](BatchCall& c) {
          const Ints& shape = c.params[broadcast_to_params.shape];
          return c.run_same({c.with_rank(0, int(shape.size()))}, {Param(prepended(c.rows, shape))});
        },
    .names = {"broadcast_to"},
    .doc = R"(Repeated to a larger shape by the rules of broadcasting.

Args:
  shape: The shape of the result; `input` must broadcast to it.
  input: The tensor to repeat.

Returns: A tensor of shape `shape`.

Gradient: `dy` summed over the repeated dimensions.

>>> tf.broadcast_to([1, 2], [2, 2])
<tf.Tensor: shape=(2, 2), dtype=int32, numpy=
array([[1, 2],
       [1, 2]], dtype=int32)>)",
    .family = "movement",
});

constexpr struct : Keys {
  Key<Ints> multiples = next("multiples");
} tile_params;
const Op& tile_op = define(Op{
    .name = "Tile",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("input", any_dtype), ints(tile_params.multiples)},
    .infer =
        [](Call& call) {
          Shape shape = call.in[0].shape();
          const Ints& m = call.params[tile_params.multiples];
          if (int(m.size()) != shape.rank())
            fail(ErrorKind::invalid_argument, call.name(), ": Expected multiples argument to be a vector of length ",
                 shape.rank(), " but got length ", m.size());
          for (int i = 0; i < shape.rank(); ++i) {
            if (m[size_t(i)] < 0)
              fail(ErrorKind::invalid_argument, call.name(), ": Expected multiples[", i, "] >= 0, but got ",
                   m[size_t(i)]);
            shape[i] = checked_product(call.name(), shape[i], m[size_t(i)]);
          }
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Param& m = call.params.value(tile_params.multiples);
          int64_t rank = x.rank() >= 0 ? x.rank() : count_known(m) ? int64_t(m.ints.size()) : -1;
          if (rank < 0) return call.returns(x.dtype(), Shape::unknown());
          if (x.rank() >= 0 && count_known(m) && int(m.ints.size()) != x.rank())
            fail(ErrorKind::invalid_argument, call.name(), ": Expected multiples argument to be a vector of length ",
                 x.rank(), " but got length ", m.ints.size());
          Shape shape = unknown_dims(rank);
          for (int i = 0; i < rank && count_known(m) && x.rank() >= 0; ++i)
            shape[i] = known_product(x.dim(i), std::max<int64_t>(m.ints[size_t(i)], -1));
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (y.size() == 0) return;
          // The result, seen as (m0, d0, m1, d1, ...), is x broadcast from (1, d0, 1, d1, ...).
          PauseRecording paused;
          Shape narrow, wide;
          bool simple = 2 * x.rank() <= kMaxRank;
          for (int i = 0; i < x.rank() && simple; ++i) {
            int64_t m = call.params[tile_params.multiples][size_t(i)];
            narrow.append(1), narrow.append(x.dim(i));
            wide.append(m), wide.append(x.dim(i));
          }
          if (simple) {
            call.out[0] = broadcast_to(x.view(narrow), wide).view(y.shape());
            return;
          }
          Tensor t = x;
          for (int i = 0; i < x.rank(); ++i) {
            SmallVector<Tensor, 8> parts;
            for (int64_t m = 0; m < call.params[tile_params.multiples][size_t(i)]; ++m) parts.push_back(t);
            t = concat(parts, i);
          }
          call.out[0] = t;
        },
    .vjp =
        [](RuleContext& c) {
          const Shape x = c.shape(0);
          if (2 * x.rank() > kMaxRank)
            fail(ErrorKind::unimplemented, "tile: its gradient takes at most ", kMaxRank / 2, " dimensions");
          Shape wide;
          Ints repeated;
          for (int i = 0; i < x.rank(); ++i) {
            repeated.push_back(wide.rank());
            wide.append(c.params[tile_params.multiples][size_t(i)]), wide.append(x[i]);
          }
          c.set(0, reduce_sum(reshape(c.dy(), wide), repeated, false));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .batch = [](BatchCall& c) { return c.run_same({c.in[0]}, {Param(prepended(1, c.params[tile_params.multiples]))}); },
    .names = {"tile"},
    .doc = R"(`input` repeated `multiples` times along each dimension.

Args:
  input: The tensor to repeat.
  multiples: How often to repeat it along each dimension; one number per dimension.

Returns: A tensor whose dimension `i` is `multiples[i]` times as long.

Gradient: `dy` summed over the copies.

>>> tf.tile([1, 2], [2])
<tf.Tensor: shape=(4,), dtype=int32, numpy=array([1, 2, 1, 2], dtype=int32)>)",
});

}  // namespace

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : run(broadcast_to_op, {x}, {Param(shape)});
}
Tensor broadcast_to(const Tensor& x, const Tensor& shape) {
  return run(broadcast_to_op, {x}, {Param(shape, int(Argument::Kind::ints))});
}

Tensor unbroadcast(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (shape.rank() == 0) return sum_of_all(x);
  int skip = x.rank() - shape.rank();
  Ints repeated;
  for (int i = 0; i < x.rank(); ++i)
    if (i < skip || (shape[i - skip] == 1 && x.dim(i) != 1)) repeated.push_back(i);
  Tensor sum = repeated.empty() ? x : reduce_sum(x, std::move(repeated), false);
  return reshape(sum, shape);
}

}  // namespace tapeflow
