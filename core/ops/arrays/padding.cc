// A border of one value around a tensor.
#include <algorithm>

#include "ops/arrays/strided_copy.h"
#include "ops/family.h"
#include "ops/one_dtype.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

void check_constant(const Call& call) {
  const Tensor& t = call.in[1];
  family::check_dtype(call, 1);
  if (t.rank() > 0) fail(ErrorKind::invalid_argument, "pad: constant_values must be a scalar. Found: ", t.shape());
}

constexpr struct : Keys {
  Key<Ints> paddings = next("paddings");
} pad_params;
// Writes each element once: the border before, the inside, the border behind, dimension by dimension. What lies behind
// the last dimension with a border is copied in one run.
template <class T> class PaddedCopy {
 public:
  PaddedCopy(const Shape& x, const Shape& y, const Ints& paddings, const T& value)
      : x_(x), paddings_(paddings), value_(value) {
    strides_of(x, x_stride_);
    strides_of(y, y_stride_);
    for (int d = 0; d < x.rank(); ++d)
      if (before(d) || after(d)) last_ = d;
  }

  void run(const T* from, T* to) const {
    if (x_.rank() == 0) {
      *to = *from;
      return;
    }
    write(0, from, to);
  }

 private:
  int64_t before(int d) const { return paddings_[size_t(2 * d)]; }
  int64_t after(int d) const { return paddings_[size_t(2 * d) + 1]; }

  // Many short rows: the border is written everywhere, then the rows over it, a part that fits the cache at a time.
  void write_short_rows(int d, const T* from, T* to, int64_t rows) const {
    const int64_t length = x_stride_[d], width = y_stride_[d], front = before(d + 1) * y_stride_[d + 1],
                  part = std::max<int64_t>(1, 1024 / width);
    for (int64_t i = 0; i < rows; i += part, from += part * length, to += part * width) {
      const int64_t count = std::min(part, rows - i);
      fill_elements(to, count * width, value_);
      copy_lines(from, length, to + front, width, length, count);
    }
  }

  void write(int d, const T* from, T* to) const {
    fill_elements(to, before(d) * y_stride_[d], value_);
    to += before(d) * y_stride_[d];
    if (d == last_) {
      std::copy_n(from, x_[d] * x_stride_[d], to);
    } else {
      constexpr int64_t kShort = 32;
      const auto rows = [&](int64_t begin, int64_t end) {
        if (d + 1 == last_ && y_stride_[d] <= kShort)
          return write_short_rows(d, from + begin * x_stride_[d], to + begin * y_stride_[d], end - begin);
        for (int64_t i = begin; i < end; ++i) write(d + 1, from + i * x_stride_[d], to + i * y_stride_[d]);
      };
      parallel_for(x_[d], std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, y_stride_[d])), rows);
    }
    fill_elements(to + x_[d] * y_stride_[d], after(d) * y_stride_[d], value_);
  }

  const Shape& x_;
  const Ints& paddings_;
  const T& value_;
  int64_t x_stride_[kMaxRank], y_stride_[kMaxRank];
  int last_ = 0;  // behind it x and y agree
};

// Paddings are flat: before and after the first dimension, before and after the second, ...
const Op& pad_op = define(Op{
    .name = "PadV2",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("input", any_dtype), ints(pad_params.paddings), tensor("constant_values", any_dtype)},
    .infer =
        [](Call& call) {
          Shape shape = call.in[0].shape();
          const Ints& p = call.params[pad_params.paddings];
          check_constant(call);
          if (int(p.size()) != 2 * shape.rank())
            fail(ErrorKind::invalid_argument, "pad: The first dimension of paddings must be the rank of inputs, ",
                 shape.rank(), "; got ", p.size() / 2);
          for (int i = 0; i < shape.rank(); ++i) {
            int64_t before = p[size_t(2 * i)], after = p[size_t(2 * i) + 1];
            if (before < 0 || after < 0)
              fail(ErrorKind::invalid_argument, "pad: Paddings must be non-negative: ", before, " ", after);
            shape[i] = checked_sum("pad", shape[i], checked_sum("pad", before, after));
          }
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Param& p = call.params.value(pad_params.paddings);
          check_constant(call);
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
            PaddedCopy<T>(x.shape(), y.shape(), call.params[pad_params.paddings],
                          *static_cast<const T*>(call.in[1].raw()))
                .run(static_cast<const T*>(x.raw()), y.mutable_data<T>());
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
    .called = "pad",
});

}  // namespace

Tensor pad(const Tensor& x, const Ints& paddings) {
  return run(pad_op, {x, Tensor::number(x.dtype(), 0)}, {Param(paddings)});
}

}  // namespace tapeflow
