// Batching of products and windows: the rows become rows of one large matrix, images of one large batch, or channels.
#include <algorithm>

#include "vmap/rules.h"

namespace tapeflow {
namespace {

// ---- matrix products

constexpr int kOutputType = 6;  // the parameter after four flags about the operands and two about sparseness
struct Product {
  bool transpose_a, transpose_b;
};

// Whether the flags say no more than which operand is transposed; if so, which.
bool plain(const BatchCall& c, Product* p) {
  const Params& f = c.params;
  bool adjoint = f.flag(2) || f.flag(3), conjugates = adjoint && complexes.has(c.in[0].dtype());
  *p = {f.flag(0) || f.flag(2), f.flag(1) || f.flag(3)};
  DType given = c.in[0].dtype();
  bool widens = int(f.size()) > kOutputType && !f[kOutputType].is_none() && f.dtype(kOutputType) != given;
  return !conjugates && !widens && given == c.in[1].dtype();
}

// One matrix times a vector per row, or a matrix per row times one matrix: one product for all rows.
bool as_one_product(BatchCall& c) {
  Product p;
  if (!plain(c, &p) || c.batched[0] == c.batched[1]) return false;
  const Tensor &a = c.in[0], &b = c.in[1];
  if (c.batched[0] && b.rank() == 2) {
    int64_t k = p.transpose_a ? a.shape().back(2) : a.shape().back(),
            m = p.transpose_a ? a.shape().back() : a.shape().back(2);
    if ((p.transpose_a && m != 1) || k == 0) return false;
    Tensor product = matmul(reshape(a, {a.size() / k, k}), b, false, p.transpose_b);
    Shape shape = a.shape();
    shape[shape.rank() - 2] = m;
    shape[shape.rank() - 1] = product.dim(1);
    c.out.push_back(reshape(product, shape));
    return true;
  }
  if (c.batched[1] && a.rank() == 2 && b.rank() == 3) {
    int64_t k = p.transpose_b ? b.dim(2) : b.dim(1), n = p.transpose_b ? b.dim(1) : b.dim(2);
    if (n != 1) return false;
    Tensor product = matmul(reshape(b, {c.rows, k}), a, false, !p.transpose_a);
    c.out.push_back(reshape(product, {c.rows, product.dim(1), 1}));
    return true;
  }
  return false;
}

bool multiplying(BatchCall& c) {
  if (as_one_product(c)) return true;
  int most = std::max(c.row_rank(0), c.row_rank(1));
  c.run_same({c.with_rank(0, most), c.with_rank(1, most)}, c.params);
  return true;
}

// A sparse matrix times one matrix per row, side by side.
bool multiplying_sparse(BatchCall& c) {
  if (c.batched[0] || c.batched[1]) return false;
  const Tensor& b = c.in[2];
  int64_t columns = b.dim(2);
  Tensor wide = reshape(transpose(b, {1, 0, 2}), {b.dim(1), c.rows * columns});
  c.run_same({c.in[0], c.in[1], wide}, c.params);
  c.out[0] = transpose(reshape(c.out[0], {c.out[0].dim(0), c.rows, columns}), {1, 0, 2});
  return true;
}

// ---- windows: the first dimension of an image tensor is a batch, in which the rows can stand

Tensor folded(const Tensor& x) {
  Shape shape = x.shape().slice(1, x.rank());
  shape[0] *= x.dim(0);
  return reshape(x, shape);
}
Tensor unfolded(const Tensor& x, int64_t rows) {
  Shape shape = x.shape();
  shape[0] /= rows;
  return reshape(x, with_rows_in_front(rows, shape));
}

void fold_and_run(BatchCall& c, std::initializer_list<Tensor> in, const Params& params) {
  c.run_same(in, params);
  for (Tensor& y : c.out) y = unfolded(y, c.rows);
}

Param enlarged_batch(const BatchCall& c, int sizes) {
  Ints larger = c.params.ints(sizes);
  larger[0] *= c.rows;
  return Param(larger);
}

// The rows as channels: [rows, ..., groups * n] to [..., groups * rows * n], and back.
Tensor rows_as_channels(const Tensor& x, int64_t groups) {
  int64_t rows = x.dim(0), channels = x.shape().back();
  Shape apart = x.shape();
  apart[apart.rank() - 1] = groups;
  apart.append(channels / groups);
  Shape joined = x.shape().slice(1, x.rank());
  joined[joined.rank() - 1] *= rows;
  return reshape(move_dimension(reshape(x, apart), 0, apart.rank() - 2), joined);
}
Tensor channels_as_rows(const Tensor& x, int64_t rows, int64_t groups) {
  int64_t each = x.shape().back() / rows / groups;
  Shape apart = x.shape().slice(0, x.rank() - 1);
  for (int64_t n : {groups, rows, each}) apart.append(n);
  Tensor in_front = move_dimension(reshape(x, apart), apart.rank() - 2, 0);
  Shape joined = in_front.shape().slice(0, in_front.rank() - 2);
  joined.append(groups * each);
  return reshape(in_front, joined);
}

// How many groups the channels of the output fall into, seen from the filter; 0 if the filter itself has groups.
template <bool Depthwise> int64_t channel_groups(int64_t image_channels, int64_t filter_channels) {
  return Depthwise ? image_channels : filter_channels == image_channels ? 1 : 0;
}

template <bool Depthwise> bool convolving(BatchCall& c) {
  if (!c.batched[1]) return fold_and_run(c, {folded(c.in[0]), c.in[1]}, c.params), true;
  if (c.batched[0]) return false;
  int64_t groups = channel_groups<Depthwise>(c.in[0].shape().back(), c.in[1].shape().back(2));
  if (groups == 0) return false;
  c.run_same({c.in[0], rows_as_channels(c.in[1], 1)}, c.params);
  c.out[0] = channels_as_rows(c.out[0], c.rows, groups);
  return true;
}

bool convolving_back(BatchCall& c) {
  if (c.batched[0]) return false;
  fold_and_run(c, {c.in[0], folded(c.in[1])}, c.with_param(4, enlarged_batch(c, 4)));
  return true;
}

template <bool Depthwise> bool convolving_to_filter(BatchCall& c) {
  if (c.batched[0]) return false;
  Ints sizes = c.params.ints(4);
  int64_t groups = channel_groups<Depthwise>(c.in[0].shape().back(), sizes[sizes.size() - 2]);
  if (groups == 0) return false;
  sizes[sizes.size() - 1] *= c.rows;
  c.run_same({c.in[0], rows_as_channels(c.in[1], groups)}, c.with_param(4, Param(sizes)));
  c.out[0] = channels_as_rows(c.out[0], c.rows, 1);
  return true;
}

bool pooling(BatchCall& c) {
  if (c.in.size() == 1)
    fold_and_run(c, {folded(c.in[0])}, c.params);
  else
    fold_and_run(c, {folded(c.with_rows(0)), folded(c.with_rows(1))}, c.params);
  return true;
}

bool averaging_back(BatchCall& c) {
  fold_and_run(c, {folded(c.in[0])}, c.with_param(5, enlarged_batch(c, 5)));
  return true;
}

// Positions that count the images before theirs are not the same in a larger batch.
bool pooling_with_places(BatchCall& c) { return !c.params.flag(5) && pooling(c); }
bool spreading_to_places(BatchCall& c) {
  if (c.params.flag(5)) return false;
  fold_and_run(c, {folded(c.with_rows(0)), folded(c.with_rows(1))}, c.with_param(6, enlarged_batch(c, 6)));
  return true;
}

constexpr NamedRule rules[] = {
    {"MatMul", multiplying},
    {"SparseTensorDenseMatMul", multiplying_sparse},
    {"Conv", convolving<false>},
    {"ConvBackpropInput", convolving_back},
    {"ConvBackpropFilter", convolving_to_filter<false>},
    {"DepthwiseConv", convolving<true>},
    {"DepthwiseConvBackpropInput", convolving_back},
    {"DepthwiseConvBackpropFilter", convolving_to_filter<true>},
    {"MaxPool", pooling},
    {"MaxPoolGrad", pooling},
    {"MaxPoolGradGrad", pooling},
    {"AvgPool", pooling},
    {"AvgPoolGrad", averaging_back},
    {"MaxPoolWithArgmax", pooling_with_places},
    {"MaxPoolGradWithArgmax", spreading_to_places},
    {"MaxPoolGradGradWithArgmax", pooling_with_places},
};

}  // namespace

std::span<const NamedRule> contraction_rules() { return rules; }

}  // namespace tapeflow
