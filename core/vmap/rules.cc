// Finding rules of batching, and those of operations that work element by element, or along dimensions of their own and
// alike for all that stand before them.
#include "vmap/rules.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "vmap/vmap.h"

namespace tapeflow {

Tensor BatchCall::with_rows(size_t i) const { return batched[i] ? in[i] : for_all_rows(in[i], rows); }

SmallVector<Tensor, 4> BatchCall::all_with_rows() const {
  SmallVector<Tensor, 4> result;
  for (size_t i = 0; i < in.size(); ++i) result.push_back(with_rows(i));
  return result;
}

Tensor BatchCall::with_rank(size_t i, int rank) const {
  if (!batched[i] || row_rank(i) == rank) return in[i];
  Shape wide{rows};
  for (int k = row_rank(i); k < rank; ++k) wide.append(1);
  for (int64_t d : row_shape(i)) wide.append(d);
  return reshape(in[i], wide);
}

Params BatchCall::with_param(int i, Param value) const {
  Params changed = Params::sized(params.size());
  for (int k = 0; k < int(params.size()); ++k) changed.mutable_at(k) = k == i ? value : params[k];
  return changed;
}

Shape with_rows_in_front(int64_t rows, const Shape& shape) {
  Shape result = shape;
  result.insert(0, rows);
  return result;
}

Tensor move_dimension(const Tensor& x, int from, int to) {
  if (from == to) return x;
  Ints order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != from) order.push_back(i);
  Ints permutation;
  for (int i = 0, next = 0; i < x.rank(); ++i) permutation.push_back(i == to ? from : order[size_t(next++)]);
  return transpose(x, permutation);
}

int row_axis(const BatchCall& c, int64_t axis, int rank) { return normalize_axis(c.op.public_name(), axis, rank); }

namespace {

// Operands of fewer dimensions get ones behind the rows, so that they meet the others' last dimensions.
bool broadcasting(BatchCall& c) {
  int most = 0;
  for (size_t i = 0; i < c.in.size(); ++i) most = std::max(most, c.row_rank(i));
  SmallVector<Tensor, 4> in;
  for (size_t i = 0; i < c.in.size(); ++i) in.push_back(c.with_rank(i, most));
  c.run_same(in, c.params);
  return true;
}

// What stands in front of an operation's own dimensions is a batch already; all operands have it.
bool leading(BatchCall& c) {
  c.run_same(c.all_with_rows(), c.params);
  return true;
}

// The same, for operations on matrices whose batches broadcast.
bool leading_matrices(BatchCall& c) { return c.row_rank(0) == c.row_rank(1) && leading(c); }

// The last operand is one number for everything.
bool leading_but_last(BatchCall& c) {
  size_t last = c.in.size() - 1;
  if (c.batched[last]) return false;
  SmallVector<Tensor, 4> in = c.all_with_rows();
  in[last] = c.in[last];
  c.run_same(in, c.params);
  return true;
}

bool reducing(BatchCall& c) {
  Ints axes;
  int rank = c.row_rank(0);
  if (c.params[0].is_none())
    for (int i = 0; i < rank; ++i) axes.push_back(i + 1);
  else
    for (int64_t axis : c.params.ints(0)) axes.push_back(row_axis(c, axis, rank) + 1);
  c.run_same({c.in[0]}, c.with_param(0, Param(axes)));
  return true;
}

bool finding_extremum(BatchCall& c) {
  int64_t axis = c.params[0].is_none() ? 0 : c.params.ints(0)[0];
  c.run_same({c.in[0]}, c.with_param(0, Param(Ints{row_axis(c, axis, c.row_rank(0)) + 1})));
  return true;
}

// Along the axis that the first parameter names.
bool along_axis(BatchCall& c) {
  c.run_same(c.all_with_rows(), c.with_param(0, Param(int64_t(row_axis(c, c.params.integer(0), c.row_rank(0)) + 1))));
  return true;
}

// The same; only the first operand may depend on the row.
bool along_axis_of_first(BatchCall& c) {
  if (std::count(c.batched.begin() + 1, c.batched.end(), true)) return false;
  SmallVector<Tensor, 4> in;
  for (const Tensor& t : c.in) in.push_back(t);
  c.run_same(in, c.with_param(0, Param(int64_t(row_axis(c, c.params.integer(0), c.row_rank(0)) + 1))));
  return true;
}

// A sum over what broadcasting from `shape` repeated, for each row.
Tensor unbroadcast_rows(const BatchCall& c, const Tensor& t, const Shape& shape) {
  Shape wide{c.rows};
  for (int i = shape.rank(); i < t.rank() - 1; ++i) wide.append(1);
  for (int64_t d : shape) wide.append(d);
  return reshape(unbroadcast(t, wide), with_rows_in_front(c.rows, shape));
}

// The gradients of (x - mean) / sqrt(variance + epsilon) * scale + offset; only dy, the last operand, may depend on the
// row.
bool normalizing_backwards(BatchCall& c) {
  if (std::count(c.batched.begin(), c.batched.end() - 1, true)) return false;
  const Tensor &x = c.in[0], &mean = c.in[1], &variance = c.in[2], &scale = c.in[3], &dy = c.in[4];
  Tensor factor = reciprocal(sqrt(shifted(variance, c.params.real(0)))), distance = subtract(x, mean);
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

constexpr NamedRule rules[] = {
    {"SelectV2", broadcasting},
    {"Cast", leading},
    {"Complex", broadcasting},
    {"CheckNumerics", leading},
    {"Bitcast", leading},
    {"AddN", leading},
    {"StraightThrough", leading},
    {"Identity", leading},
    {"StopGradient", leading},
    {"ComplexAbs", leading},
    {"Real", leading},
    {"Imag", leading},
    {"LeakyRelu", leading},
    {"LeakyReluGrad", leading},
    {"Softmax", leading},
    {"SoftmaxGrad", leading},
    {"NormalizeGrad", normalizing_backwards},
    {"LogSoftmax", leading},
    {"SparseSoftmaxCrossEntropyWithLogits", leading},
    {"SoftmaxCrossEntropyWithLogits", leading},
    {"Cholesky", leading},
    {"MatrixInverse", leading},
    {"MatrixDeterminant", leading},
    {"LogMatrixDeterminant", leading},
    {"MatrixSolve", leading_matrices},
    {"MatrixTriangularSolve", leading_matrices},
    {"Lu", leading},
    {"Qr", leading},
    {"Svd", leading},
    {"SelfAdjointEigV2", leading},
    {"Eig", leading},
    {"MatrixSquareRoot", leading},
    {"MatrixLogarithm", leading},
    {"MatrixExponential", leading},
    {"TridiagonalSolve", leading},
    {"Fourier", leading},
    {"RealFourier", leading},
    {"FourierToReal", leading},
    {"TopKV2", leading},
    {"MatrixBandPart", leading},
    {"MatrixDiagPartV3", leading_but_last},
    {"MatrixDiagV3", leading_but_last},
    {"MatrixSetDiagV3", leading},
    {"ArgMax", finding_extremum},
    {"ArgMin", finding_extremum},
    {"Cumsum", along_axis},
    {"Cumprod", along_axis},
    {"CumulativeLogsumexp", along_axis},
    {"LinearRecurrence", along_axis},
    {"Resample", along_axis_of_first},
    {"ResampleTransposed", along_axis_of_first},
};

BatchRule family_rule(const Op& op) {
  if (!op.family) return nullptr;
  if (std::strcmp(op.family, "unary") == 0) return leading;
  if (std::strcmp(op.family, "binary") == 0) return broadcasting;
  if (std::strcmp(op.family, "reduction") == 0) return reducing;
  return nullptr;
}

}  // namespace

std::span<const NamedRule> elementwise_rules() { return rules; }

BatchRule find_batch_rule(const Op& op) {
  static const auto* rule_by_op = [] {
    auto* table = new std::unordered_map<const Op*, BatchRule>;
    for (const Op* entry : registry())
      if (BatchRule rule = family_rule(*entry)) table->emplace(entry, rule);
    for (std::span<const NamedRule> family :
         {elementwise_rules(), movement_rules(), indexing_rules(), contraction_rules()})
      for (const NamedRule& named : family) {
        const Op* entry = find_op(named.name);
        if (!entry) fail(ErrorKind::runtime, "a rule of batching is for an operation that is not there: ", named.name);
        (*table)[entry] = named.rule;
      }
    return table;
  }();
  auto it = rule_by_op->find(&op);
  return it == rule_by_op->end() ? nullptr : it->second;
}

}  // namespace tapeflow
