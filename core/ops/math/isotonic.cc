// Isotonic regression: the nearest sequence that never rises.
#include "base/blocks.h"
#include "base/parallel.h"
#include "ops/family.h"

namespace tapeflow {
namespace {

// The mean of each run of equal segment numbers along the last dimension, at every place of the run.
Tensor mean_over_segments(const Tensor& x, const Tensor& segments) {
  int64_t length = x.shape().back(), rows = length ? x.size() / length : 0;
  Ints first;
  for (int64_t r = 0; r < rows; ++r) first.push_back(r * length);
  Tensor ids = reshape(
      add(reshape(cast(segments, DType::int64), {rows, length}), reshape(int_tensor(first, DType::int64), {rows, 1})),
      {rows * length});
  Tensor flat = reshape(x, {rows * length});
  Tensor sum = unsorted_segment_sum(flat, ids, rows * length),
         count = unsorted_segment_sum(ones_like(flat), ids, rows * length);
  return reshape(gather(divide_no_nan(sum, count), ids, 0, 0), x.shape());
}

// Neighbouring blocks are pooled while a later one has the larger mean. The derivative is a projection onto the blocks.
const Op& isotonic_op = define(Op{
    .name = "IsotonicRegression",
    .arguments = {tensor("input", floating)},
    .infer =
        [](Call& call) {
          if (call.in[0].rank() < 1)
            fail(ErrorKind::invalid_argument,
                 "nn.isotonic_regression: inputs must have at least 1 dimension; got shape []");
          call.returns(call.in[0].dtype(), call.in[0].shape());
          call.returns(DType::int32, call.in[0].shape());
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          int64_t length = x.shape().back(), rows = length ? x.size() / length : 0;
          visit<floating.bits>(x.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            parallel_for(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, length)),
                         [&](int64_t begin, int64_t end) {
                           struct Block {
                             double sum;
                             int64_t count;
                             double mean() const { return sum / double(count); }
                           };
                           BlockVector<Block> blocks;
                           for (int64_t r = begin; r < end; ++r) {
                             blocks.clear();
                             for (int64_t i = 0; i < length; ++i) {
                               Block block{double(load(x.data<T>() + r * length + i)), 1};
                               while (!blocks.empty() && blocks.back().mean() <= block.mean()) {
                                 block.sum += blocks.back().sum;
                                 block.count += blocks.back().count;
                                 blocks.pop_back();
                               }
                               blocks.push_back(block);
                             }
                             T* y = call.out[0].mutable_data<T>() + r * length;
                             int32_t* segment = call.out[1].mutable_data<int32_t>() + r * length;
                             for (size_t b = 0; b < blocks.size(); ++b)
                               for (int64_t k = 0; k < blocks[b].count; ++k) {
                                 store(y++, Compute<T>(blocks[b].mean()));
                                 *segment++ = int32_t(b);
                               }
                           }
                         });
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, mean_over_segments(c.dy(0), c.y(1))); },
    .jvp = [](RuleContext& c) { c.set(0, mean_over_segments(c.x_dot(0), c.y(1))); },
    .keep = keep_output(1),
    .returns_list = true,
});

}  // namespace
}  // namespace tapeflow
