// Mean and variance in one operation, and their use: (x - mean) / sqrt(variance + epsilon) * scale + offset. Both have
// entries of their own because composed they cost several times the passes over memory.
#include <algorithm>

#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/simd/short_rows.h"
#include "ops/family.h"
#include "ops/one_dtype.h"

namespace tapeflow {
namespace {

constexpr int64_t kChunk = 1 << 14;  // elements that one partial result covers

// Statistics belong to rows (the last dimensions are put together) or to columns (the first ones are).
enum class Layout { rows, columns, other };
struct Table {
  int64_t rows, columns;
  Layout layout;
};

// x as a table whose statistics have the given shape, aligned with the last dimensions of x.
Table table_of(const Shape& x, const Shape& statistics) {
  int skip = x.rank() - statistics.rank();
  auto together = [&](int i) { return x[i] != 1 && (i < skip || statistics[i - skip] == 1); };
  auto apart = [&](int i) { return x[i] != 1 && !together(i); };
  int first_together = x.rank(), last_together = -1, first_apart = x.rank(), last_apart = -1;
  for (int i = 0; i < x.rank(); ++i) {
    if (together(i)) first_together = std::min(first_together, i), last_together = i;
    if (apart(i)) first_apart = std::min(first_apart, i), last_apart = i;
  }
  if (last_together < 0 || x.elements() == 0) return {0, 0, Layout::other};
  if (last_apart < first_together)
    return {x.elements(0, first_together), x.elements(first_together, x.rank()), Layout::rows};
  if (last_together < first_apart)
    return {x.elements(0, first_apart), x.elements(first_apart, x.rank()), Layout::columns};
  return {0, 0, Layout::other};
}

// Calls body(first row, last row, its partial sums) for fixed chunks of rows, in parallel; then adds up the partial
// sums of `count` numbers each into `total`.
template <class T, class Body> void over_chunks(const Table& t, int64_t count, T* total, Body body) {
  int64_t height = std::max<int64_t>(1, kChunk / t.columns), chunks = (t.rows + height - 1) / height;
  Scratch<T> parts(chunks * count);
  std::ranges::fill(parts, T(0));
  parallel_for(chunks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      body(c * height, std::min(t.rows, (c + 1) * height), parts.data() + c * count);
  });
  std::fill(total, total + count, T(0));
  for (int64_t c = 0; c < chunks; ++c) vector_kernels<T>().accumulate(parts.data() + c * count, total, count);
}

// Short rows are taken several at a time, as one long row, with their vectors of columns repeated.
constexpr int64_t kLongRow = 512;
int64_t joined_rows(const Table& t) { return std::max<int64_t>(1, std::min(kLongRow / t.columns, t.rows / 16)); }
template <class T> Scratch<T> repeated(const T* x, const Table& t) {
  const int64_t columns = t.columns, times = joined_rows(t);
  Scratch<T> result(columns * times);
  for (int64_t k = 0; k < times; ++k) std::copy(x, x + columns, result.data() + k * columns);
  return result;
}
template <class T> void fold_repeats(T* x, const Table& t) {
  for (int64_t k = 1; k < joined_rows(t); ++k) vector_kernels<T>().accumulate(x + k * t.columns, x, t.columns);
}
// Calls body(first element, elements) for the rows [begin, end).
template <class Body> void for_long_rows(int64_t begin, int64_t end, const Table& t, Body body) {
  const int64_t columns = t.columns, joined = joined_rows(t);
  int64_t r = begin;
  for (; r + joined <= end; r += joined) body(r * columns, joined * columns);
  for (; r < end; ++r) body(r * columns, columns);
}

template <class T> bool compute_moments(const T* x, const Table& t, T* mean, T* variance) {
  const VectorKernels<T>& v = vector_kernels<T>();
  if (t.layout == Layout::rows) {
    parallel_for(t.rows, std::max<int64_t>(1, kChunk / t.columns), [&](int64_t begin, int64_t end) {
      if (t.columns <= kLongestShortRow)
        return short_row_kernels<T>().moments(x + begin * t.columns, mean + begin, variance + begin, end - begin,
                                              t.columns);
      for (int64_t r = begin; r < end; ++r) {
        const T* row = x + r * t.columns;
        mean[r] = v.sum(row, t.columns) / T(t.columns);
        variance[r] = v.squared_distance(row, mean[r], t.columns) / T(t.columns);
      }
    });
    return true;
  }
  if (t.layout == Layout::other) return false;
  const int64_t width = joined_rows(t) * t.columns;
  Scratch<T> total(width);
  over_chunks(t, width, total.data(), [&](int64_t begin, int64_t end, T* sums) {
    for_long_rows(begin, end, t, [&](int64_t at, int64_t n) { v.accumulate(x + at, sums, n); });
  });
  fold_repeats(total.data(), t);
  v.divide.vs(total.data(), T(t.rows), mean, t.columns);
  auto center = repeated(mean, t);
  over_chunks(t, width, total.data(), [&](int64_t begin, int64_t end, T* sums) {
    for_long_rows(begin, end, t,
                  [&](int64_t at, int64_t n) { v.accumulate_squared_distance(x + at, center.data(), sums, n); });
  });
  fold_repeats(total.data(), t);
  v.divide.vs(total.data(), T(t.rows), variance, t.columns);
  return true;
}

Shape with_ones(const char* who, const Shape& x, const Ints& axes) {
  Shape kept = x;
  for (int64_t a : axes) kept[normalize_axis(who, a, x.rank())] = 1;
  return kept;
}

bool nobody_listens() { return thread_state().recorders.empty() && !thread_state().stage; }

// dx = (x - mean) factor + offset with statistics of a table, written to dx or added to it.
template <class T> void shift_and_scale(const T* x, const Table& t, const T* mean, const T* factor, const T* offset,
                                        bool adds, T* dx, const Epilogue* epilogue = nullptr) {
  const VectorKernels<T>& v = vector_kernels<T>();
  const bool by_row = t.layout == Layout::rows;
  const int64_t columns = t.columns;
  auto per_column = [&](const T* numbers) { return by_row ? Scratch<T>(0) : repeated(numbers, t); };
  Scratch<T> center = per_column(mean), gain = per_column(factor), shift = per_column(offset);
  parallel_for(t.rows, std::max<int64_t>(1, kChunk / columns), [&](int64_t begin, int64_t end) {
    if (by_row && columns <= kLongestShortRow)
      return short_row_kernels<T>().shift_and_scale(x + begin * columns, mean + begin, factor + begin, offset + begin,
                                                    dx + begin * columns, end - begin, columns, adds);
    Scratch<T> room(columns * joined_rows(t));
    if (!by_row)
      return for_long_rows(begin, end, t, [&](int64_t at, int64_t n) {
        v.normalize_columns(x + at, center.data(), gain.data(), shift.data(), adds ? room.data() : dx + at, n);
        if (adds) v.accumulate(room.data(), dx + at, n);
        if (epilogue) (*epilogue)(at, n, 1, 0);
      });
    for (int64_t r = begin; r < end; ++r) {
      T* row = adds ? room.data() : dx + r * columns;
      v.subtract.vs(x + r * columns, mean[r], row, columns);
      v.multiply.vs(row, factor[r], row, columns);
      v.add.vs(row, offset[r], row, columns);
      if (adds) v.accumulate(row, dx + r * columns, columns);
    }
  });
}

// The derivative of moments in one pass; false if it must be composed.
bool moments_backwards(RuleContext& c, double count) {
  const Tensor &x = c.x(0), &mean = c.y(0);
  Table t = table_of(x.shape(), mean.shape());
  if (!nobody_listens() || t.layout == Layout::other) return false;
  PauseRecording paused;
  Tensor factor = scaled(c.dy(1), 2 / count), offset = scaled(c.dy(0), 1 / count);
  const Tensor* total = c.total(0);
  Tensor dx = total ? *total : Tensor::allocate(x.dtype(), x.shape());
  auto run = [&]<class T>(T*) {
    shift_and_scale(x.data<T>(), t, mean.data<T>(), factor.data<T>(), offset.data<T>(), total != nullptr,
                    dx.mutable_data<T>());
  };
  x.dtype() == DType::float32 ? run(static_cast<float*>(nullptr)) : run(static_cast<double*>(nullptr));
  if (!total) c.set(0, dx);
  return true;
}

constexpr struct : Keys {
  Key<Ints> axes = next("axes");
  Key<bool> mean_moves = next("mean_moves");
} moments_params;
// Mean and variance over `axes`, which stay as dimensions of 1. dx = dmean / n + 2 (x - mean) dvariance / n.
// TensorFlow's nn.moments takes the mean in this derivative as a constant, which shows at second order; `mean_moves`
// selects which.
const Op& moments_op = define(Op{
    .name = "Moments",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("x", wide_floating), ints(moments_params.axes), flag(moments_params.mean_moves, true)},
    .infer =
        [](Call& call) {
          Shape kept = with_ones("moments", call.in[0].shape(), call.params[moments_params.axes]);
          call.returns(call.in[0].dtype(), kept);
          call.returns(call.in[0].dtype(), kept);
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          Table table = table_of(x.shape(), call.out[0].shape());
          auto direct = [&]<class T>(T*) {
            return compute_moments(x.data<T>(), table, call.out[0].mutable_data<T>(), call.out[1].mutable_data<T>());
          };
          if (x.dtype() == DType::float32 ? direct(static_cast<float*>(nullptr))
                                          : direct(static_cast<double*>(nullptr)))
            return;
          PauseRecording paused;
          Tensor count = Tensor::number(x.dtype(), call.out[0].size() ? double(x.size() / call.out[0].size()) : 1);
          Ints axes = call.params[moments_params.axes];
          call.out[0] = divide(reduce_sum(x, axes, true), count);
          call.out[1] = divide(reduce_sum(square(subtract(x, call.out[0])), axes, true), count);
        },
    .vjp =
        [](RuleContext& c) {
          const Tensor& x = c.x(0);
          double count = c.y(0).size() ? double(x.size()) / double(c.y(0).size()) : 1;
          if (c.has_dy(1) && moments_backwards(c, count)) return;
          Tensor dx;
          if (c.has_dy(1)) {
            Tensor mean = c.params[moments_params.mean_moves] ? c.y(0) : stop_gradient(c.y(0));
            dx = multiply(subtract(x, mean), scaled(c.dy(1), 2 / count));
          }
          if (c.has_dy(0))
            dx = dx ? add(dx, scaled(c.dy(0), 1 / count)) : broadcast_to(scaled(c.dy(0), 1 / count), x.shape());
          c.set(0, dx);
        },
    .keep = keep_input(0) | keep_output(0),
    .adds_in_place = true,
    .returns_list = true,
});

// The inputs of Normalize, in their order; its gradients have the same. NormalizeGrad has dy in the place of offset.
enum { kX, kMean, kVariance, kScale, kOffset, kDy = kOffset };

// scale and offset are single numbers, or one number per column.
bool plain_columns(const Shape& t, int64_t columns) {
  return t.elements() == 1 || (t.elements() == columns && t.back() == columns);
}
Table normalize_table(const Shape& x, const Shape& mean, const Shape& variance, const Shape& scale,
                      const Shape& offset) {
  Table t = mean.rank() <= x.rank() && mean == variance ? table_of(x, mean) : Table{0, 0, Layout::other};
  if (x.rank() == 0 || scale.rank() > x.rank() || offset.rank() > x.rank()) t.layout = Layout::other;
  if (t.layout != Layout::other && (!plain_columns(scale, t.columns) || !plain_columns(offset, t.columns)))
    t.layout = Layout::other;
  return t;
}

// A tensor's numbers, one for each column.
template <class T> Scratch<T> broadcast_columns(const Tensor& t, int64_t columns) {
  Scratch<T> result(columns);
  if (t.size() == 1)
    std::ranges::fill(result, *t.data<T>());
  else
    std::copy(t.data<T>(), t.data<T>() + columns, result.data());
  return result;
}
template <class T> Scratch<T> factors_of(const Tensor& variance, double epsilon) {
  Scratch<T> result(variance.size());
  vector_kernels<T>().add.vs(variance.data<T>(), T(epsilon), result.data(), variance.size());
  vector_kernels<T>().rsqrt(result.data(), result.data(), variance.size());
  return result;
}

template <class T> void normalize(std::span<const Tensor> in, double epsilon, const Table& t, const Tensor& out,
                                  const Epilogue* epilogue) {
  const VectorKernels<T>& v = vector_kernels<T>();
  const T *x = in[kX].data<T>(), *mean = in[kMean].data<T>();
  T* y = out.mutable_data<T>();
  auto factor = factors_of<T>(in[kVariance], epsilon), scale = broadcast_columns<T>(in[kScale], t.columns),
       offset = broadcast_columns<T>(in[kOffset], t.columns);
  if (t.layout == Layout::columns) {
    v.multiply.vv(factor.data(), scale.data(), factor.data(), t.columns);
    return shift_and_scale(x, t, mean, factor.data(), offset.data(), false, y, epilogue);
  }
  parallel_for(t.rows, std::max<int64_t>(1, kChunk / t.columns), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      v.normalize_row(x + r * t.columns, mean[r], factor[size_t(r)], scale.data(), offset.data(), y + r * t.columns,
                      t.columns);
      if (epilogue) (*epilogue)(r* t.columns, t.columns, 1, 0);
    }
  });
}

// All derivatives in one pass, into `d`; those of scale and offset are per column.
template <class T>
void normalize_backwards(std::span<const Tensor> in, double epsilon, const Table& t, std::span<const Tensor> d) {
  const VectorKernels<T>& v = vector_kernels<T>();
  const T *x = in[kX].data<T>(), *dy = in[kDy].data<T>(), *mean = in[kMean].data<T>();
  auto factor = factors_of<T>(in[kVariance], epsilon), scale = broadcast_columns<T>(in[kScale], t.columns);
  T *dx = d[kX].mutable_data<T>(), *d_mean = d[kMean].mutable_data<T>(), *d_variance = d[kVariance].mutable_data<T>();
  T *d_scale = d[kScale].mutable_data<T>(), *d_offset = d[kOffset].mutable_data<T>();
  if (t.layout == Layout::columns) {
    const int64_t width = joined_rows(t) * t.columns;
    v.multiply.vv(factor.data(), scale.data(), scale.data(), t.columns);
    auto center = repeated(mean, t), gain = repeated(scale.data(), t);
    Scratch<T> both(2 * width);
    over_chunks(t, 2 * width, both.data(), [&](int64_t begin, int64_t end, T* sums) {
      for_long_rows(begin, end, t, [&](int64_t at, int64_t n) {
        v.normalize_columns_grad(x + at, dy + at, center.data(), gain.data(), dx + at, sums, sums + width, n);
      });
    });
    fold_repeats(both.data(), t);
    fold_repeats(both.data() + width, t);
    for (int64_t j = 0; j < t.columns; ++j) {
      T f = factor[size_t(j)], product = both[size_t(j)];
      d_offset[j] = both[size_t(width + j)];
      d_mean[j] = -scale[size_t(j)] * d_offset[j];
      d_variance[j] = T(-0.5) * f * f * scale[size_t(j)] * product;
      d_scale[j] = product * f;
    }
    return;
  }
  Scratch<T> both(2 * t.columns);
  over_chunks(t, 2 * t.columns, both.data(), [&](int64_t begin, int64_t end, T* sums) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * t.columns;
      T row[2], f = factor[size_t(r)];
      v.normalize_row_grad(x + at, dy + at, mean[r], f, scale.data(), dx + at, sums, sums + t.columns, row, t.columns);
      d_mean[r] = -f * row[0];
      d_variance[r] = T(-0.5) * f * f * f * row[1];
    }
  });
  std::copy(both.data(), both.data() + t.columns, d_scale);
  std::copy(both.data() + t.columns, both.data() + 2 * t.columns, d_offset);
}

constexpr struct : Keys {
  Key<double> epsilon = next("epsilon");
} normalize_params;

// The same with operations, for shapes that are no tables.
void normalize_vjp_composed(RuleContext& c) {
  Tensor dy = c.dy(), distance = subtract(c.x(kX), c.x(kMean));
  Tensor factor = reciprocal(sqrt(shifted(c.x(kVariance), c.params[normalize_params.epsilon])));
  if (c.wants(kOffset)) c.set(kOffset, unbroadcast(dy, c.shape(kOffset)));
  if (c.wants(kScale)) c.set(kScale, unbroadcast(multiply(multiply(dy, distance), factor), c.shape(kScale)));
  Tensor scaled_dy = multiply(dy, c.x(kScale));
  if (c.wants(kX) || c.wants(kMean)) {
    Tensor dx = multiply(scaled_dy, factor);
    if (c.wants(kX)) c.set(kX, unbroadcast(dx, c.shape(kX)));
    if (c.wants(kMean)) c.set(kMean, negative(unbroadcast(dx, c.shape(kMean))));
  }
  if (c.wants(kVariance)) {
    Tensor cubed = multiply(factor, square(factor));
    c.set(kVariance, scaled(unbroadcast(multiply(multiply(scaled_dy, distance), cubed), c.shape(kVariance)), -0.5));
  }
}

// A sum over what broadcasting from `shape` repeated, for each row.
Tensor unbroadcast_rows(const BatchCall& c, const Tensor& t, const Shape& shape) {
  Shape wide{c.rows};
  for (int i = shape.rank(); i < t.rank() - 1; ++i) wide.append(1);
  for (int64_t d : shape) wide.append(d);
  return reshape(unbroadcast(t, wide), with_batch_dimension(c.rows, shape));
}

// Only dy, the last operand, may depend on the row.
bool batch_normalize_grad(BatchCall& c) {
  if (std::count(c.batched.begin(), c.batched.end() - 1, true)) return false;
  const Tensor &x = c.in[kX], &mean = c.in[kMean], &variance = c.in[kVariance], &scale = c.in[kScale], &dy = c.in[kDy];
  Tensor factor = reciprocal(sqrt(shifted(variance, c.params[normalize_params.epsilon]))), distance = subtract(x, mean);
  Tensor dx = multiply(dy, multiply(factor, scale)), product = multiply(dy, multiply(distance, factor));
  int last = x.rank() - 1;
  while (last > 0 && x.dim(last) == 1) --last;
  const int in_mean = last - (x.rank() - mean.rank());
  const bool by_row = in_mean < 0 || mean.dim(in_mean) == 1;
  const int64_t columns = by_row ? x.size() / mean.size() : mean.size();
  c.out.push_back(dx);
  c.out.push_back(negative(unbroadcast_rows(c, dx, mean.shape())));
  c.out.push_back(
      unbroadcast_rows(c, multiply(product, scaled(multiply(square(factor), scale), -0.5)), variance.shape()));
  for (const Tensor& t : {product, dy})
    c.out.push_back(reduce_sum(reshape(t, {c.rows, x.size() / columns, columns}), {1}, false));
  return true;
}

// One number per column, in the dimensions of x that the columns stand for: the last ones, with as many elements.
Tensor spread_columns(const Tensor& t, const Shape& x) {
  int first = x.rank();
  for (int64_t n = 1; first > 0 && n != t.dim(0);) n *= x[--first];
  return reshape(t, x.slice(first, x.rank()));
}

// With f = 1 / sqrt(variance + epsilon) and z = x - mean, the gradients times cotangents a, b, c, d, e for them add up
// to sum(dy w), w = s f (a - b) - c s z f^3 / 2 + d z f + e.
void normalize_grad_vjp(RuleContext& c) {
  const Tensor &scale = c.x(kScale), &dy = c.x(kDy);
  Tensor dy_scale = spread_columns(c.dy(kScale), c.shape(kX)), dy_offset = spread_columns(c.dy(kOffset), c.shape(kX));
  Tensor distance = subtract(c.x(kX), c.x(kMean)),
         factor = reciprocal(sqrt(shifted(c.x(kVariance), c.params[normalize_params.epsilon])));
  Tensor cubed = multiply(factor, square(factor));
  Tensor moved = subtract(c.dy(kX), c.dy(kMean)), variance_term = scaled(multiply(c.dy(kVariance), cubed), -0.5);
  Tensor per_scale =
      add(multiply(moved, factor), multiply(variance_term, distance));  // what scale is multiplied by in w
  if (c.wants(kDy)) {
    Tensor rest = add(multiply(dy_scale, multiply(distance, factor)), dy_offset);
    c.set(kDy, unbroadcast(add(multiply(scale, per_scale), rest), c.shape(kDy)));
  }
  if (c.wants(kX) || c.wants(kMean)) {
    Tensor dx = multiply(dy, add(multiply(scale, variance_term), multiply(dy_scale, factor)));
    if (c.wants(kX)) c.set(kX, dx);
    if (c.wants(kMean)) c.set(kMean, negative(unbroadcast(dx, c.shape(kMean))));
  }
  if (c.wants(kScale)) c.set(kScale, unbroadcast(multiply(dy, per_scale), c.shape(kScale)));
  if (c.wants(kVariance)) {
    Tensor by_factor =
        add(multiply(scale, add(moved, scaled(multiply(multiply(c.dy(kVariance), square(factor)), distance), -1.5))),
            multiply(dy_scale, distance));
    c.set(kVariance, multiply(unbroadcast(multiply(dy, by_factor), c.shape(kVariance)), scaled(cubed, -0.5)));
  }
}

Table normalize_grad_table(std::span<const Tensor> in) {
  return normalize_table(in[kX].shape(), in[kMean].shape(), in[kVariance].shape(), in[kScale].shape(),
                         in[kScale].shape());
}

// The gradients of Normalize's inputs, for tables; those of scale and offset are per column.
const Op& normalize_grad_op = define(Op{
    .name = "NormalizeGrad",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("x", wide_floating), tensor("mean", wide_floating), tensor("variance", wide_floating),
                  tensor("scale", wide_floating), tensor("dy", wide_floating), real(normalize_params.epsilon, 0)},
    .infer =
        [](Call& call) {
          for (size_t i = 1; i < call.in.size(); ++i) family::check_dtype(call, i);
          const Table t = normalize_grad_table(call.in);
          if (t.layout == Layout::other || call.in[kX].shape() != call.in[kDy].shape())
            fail(ErrorKind::invalid_argument, "NormalizeGrad: the statistics must be those of rows or of columns; got ",
                 call.in[kMean].shape(), " for ", call.in[kX].shape());
          for (int i : {kX, kMean, kVariance}) call.returns(call.in[0].dtype(), call.in[size_t(i)].shape());
          for (int i = 0; i < 2; ++i) call.returns(call.in[0].dtype(), {t.columns});
        },
    .kernel =
        [](Call& call) {
          (call.in[0].dtype() == DType::float32 ? normalize_backwards<float>
                                                : normalize_backwards<double>)(call.in,
                                                                               call.params[normalize_params.epsilon],
                                                                               normalize_grad_table(call.in), call.out);
        },
    .vjp = normalize_grad_vjp,
    .keep = keep_all_inputs,
    .batch = batch_normalize_grad,
    .returns_list = true,
});

const Op& normalize_op = define(Op{
    .name = "Normalize",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("x", wide_floating), tensor("mean", wide_floating), tensor("variance", wide_floating),
                  tensor("scale", wide_floating), tensor("offset", wide_floating), real(normalize_params.epsilon, 0)},
    .infer =
        [](Call& call) {
          Shape shape = call.in[0].shape();
          for (const Tensor& t : call.in) {
            Shape both;
            if (t.dtype() != call.in[0].dtype())
              fail(ErrorKind::invalid_argument, "batch_normalization: all tensors must have one dtype; got ",
                   name_of(call.in[0].dtype()), " and ", name_of(t.dtype()));
            if (!broadcast(shape, t.shape(), &both))
              fail(ErrorKind::invalid_argument, "batch_normalization: Incompatible shapes: ", shape, " vs. ",
                   t.shape());
            shape = both;
          }
          call.returns(call.in[0].dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          double epsilon = call.params[normalize_params.epsilon];
          Table t = normalize_table(call.in[kX].shape(), call.in[kMean].shape(), call.in[kVariance].shape(),
                                    call.in[kScale].shape(), call.in[kOffset].shape());
          if (t.layout != Layout::other)
            return (call.in[0].dtype() == DType::float32
                        ? normalize<float>
                        : normalize<double>)(call.in, epsilon, t, call.out[0], std::exchange(call.epilogue, nullptr));
          PauseRecording paused;
          Tensor factor = reciprocal(sqrt(shifted(call.in[kVariance], epsilon)));
          Tensor y =
              add(multiply(subtract(call.in[kX], call.in[kMean]), multiply(factor, call.in[kScale])), call.in[kOffset]);
          call.out[0] = broadcast_to(y, call.out[0].shape());
        },
    .runs_epilogue = true,
    .vjp =
        [](RuleContext& c) {
          Table t = normalize_table(c.shape(kX), c.shape(kMean), c.shape(kVariance), c.shape(kScale), c.shape(kOffset));
          if (t.layout == Layout::other) return normalize_vjp_composed(c);
          const Tensor in[] = {c.x(kX), c.x(kMean), c.x(kVariance), c.x(kScale), c.dy()};
          auto d = run_all(normalize_grad_op, in, c.params);
          for (int i : {kScale, kOffset})
            if (c.wants(i))
              d[size_t(i)] =
                  reshape(c.shape(i).elements() == 1 ? reduce_sum(d[size_t(i)], {0}, false) : d[size_t(i)], c.shape(i));
          for (int i = 0; i < 5; ++i)
            if (c.wants(i)) c.set(i, d[size_t(i)]);
        },
    .keep = keep_all_inputs,
});

}  // namespace
}  // namespace tapeflow
