// The tables. Costs were measured in float32 on one core of a server processor: most kernels go over their elements
// once and share them evenly among threads; those in the table do not. Kernels are taken to fail unless they are known
// not to.
#include "plan/cost.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace tapeflow {
namespace {

struct Work {
  double amount;
  int64_t pieces;  // that the kernel can give to different threads
};
const Tensor& value(const Graph& g, ValueId v) { return g.values[v].tensor; }
const Shape& shape_in(const Graph& g, const Node& n, size_t k = 0) { return value(g, n.inputs[k]).shape(); }
constexpr int64_t kAnyNumber = 1 << 20;

// Matrices of the first input: their sizes to the third power; each one is one piece.
Work matrices(const Graph& g, const Node& n) {
  const Shape& x = shape_in(g, n);
  const int64_t batch = x.elements(0, x.rank() - 2), rows = x.back(2), columns = x.back(1);
  return {double(x.elements()) * double(std::min(rows, columns)), batch};
}

// Multiplications, with the memory that is touched; small products are one piece.
Work products(const Graph& g, const Node& n) {
  const Shape &x = shape_in(g, n), &w = shape_in(g, n, 1), &y = value(g, n.first_output).shape();
  const int64_t inner = x.rank() >= 2 && y.rank() >= 2 ? x.back(1) * x.back(2) / std::max<int64_t>(1, y.back(2)) : 1;
  const double amount = double(y.elements()) * double(inner) + 4 * double(x.elements() + w.elements() + y.elements());
  return {amount, amount < (1 << 21) ? 1 : kAnyNumber};
}

// Multiplications of a convolution or of one of its gradients, from the sizes of image, filter and result; about 3
// by 3.
Work convolutions(const Graph& g, const Node& n) {
  double product = double(value(g, n.first_output).size());
  for (ValueId v : n.inputs) product *= double(std::max<int64_t>(1, value(g, v).size()));
  return {3 * std::sqrt(product), kAnyNumber};
}

// Rows of the last dimension, each of which is sorted.
Work sorted_rows(const Graph& g, const Node& n) {
  const Shape& x = shape_in(g, n);
  const int64_t length = std::max<int64_t>(1, x.back());
  return {double(x.elements()) * std::log2(double(length) + 1), x.elements() / length};
}

// Scans along the axis that is the first parameter.
Work scans(const Graph& g, const Node& n) {
  const Shape& x = shape_in(g, n);
  const int64_t axis = n.params.integer(0);
  return {double(x.elements()), x.elements(0, int(axis < 0 ? axis + x.rank() : axis))};
}

Work elements(const Graph& g, const Node& n) {
  double amount = 0;
  for (ValueId v : n.inputs) amount += double(value(g, v).size());
  for (uint32_t k = 0; k < n.outputs; ++k) amount += double(value(g, n.first_output + k).size());
  return {amount, amount < (1 << 16) ? 1 : kAnyNumber};
}
Work elements_in_one_piece(const Graph& g, const Node& n) { return {elements(g, n).amount, 1}; }

struct Row {
  std::string_view op;
  Work (*work)(const Graph&, const Node&);
  double nanoseconds;  // for one unit of the work
};
constexpr Row rows[] = {
    {"MatMul", products, 0.012},
    {"Cholesky", matrices, 0.03},
    {"MatrixInverse", matrices, 0.1},
    {"MatrixDeterminant", matrices, 0.045},
    {"LogMatrixDeterminant", matrices, 0.045},
    {"MatrixSolve", matrices, 0.1},
    {"MatrixTriangularSolve", matrices, 0.035},
    {"Lu", matrices, 0.06},
    {"Qr", matrices, 0.17},
    {"Svd", matrices, 0.7},
    {"MatrixPseudoInverse", matrices, 0.7},
    {"SelfAdjointEigV2", matrices, 0.5},
    {"Eig", matrices, 3.5},
    {"MatrixSquareRoot", matrices, 8},
    {"MatrixLogarithm", matrices, 13},
    {"MatrixExponential", matrices, 0.28},
    {"TopKV2", sorted_rows, 0.7},
    {"Cumsum", scans, 0.5},
    {"Cumprod", scans, 1.4},
    {"CumulativeLogsumexp", scans, 39},
    {"LinearRecurrence", scans, 1.4},
    {"UnsortedSegmentSum", elements_in_one_piece, 2.5},
    {"SegmentSum", elements_in_one_piece, 2.5},
    {"ScatterNd", elements_in_one_piece, 2},
    {"Conv", convolutions, 0.02},
    {"ConvBackpropInput", convolutions, 0.02},
    {"ConvBackpropFilter", convolutions, 0.02},
};
constexpr Row any_other{"", elements, 0.15};

// How much longer the arithmetic of a type takes than that of float32.
double factor(DType dtype) {
  switch (dtype) {
    case DType::float64: return 2;
    case DType::complex64: return 4;
    case DType::complex128: return 8;
    default: return 1;
  }
}

constexpr double kCallCost = 0.3;  // microseconds, of any step
Cost shared(double nanoseconds, int64_t pieces, int threads) {
  const double microseconds = nanoseconds * 1e-3;
  return {kCallCost + microseconds, kCallCost + microseconds / double(std::clamp<int64_t>(pieces, 1, threads))};
}

constexpr std::string_view never_failing[] = {
    "AddN",
    "Cast",
    "Cholesky",
    "ConcatV2",
    "Cumprod",
    "Cumsum",
    "GetItem",
    "LogSoftmax",
    "MatrixBandPart",
    "MatrixDiagPartV3",
    "MatrixDiagV3",
    "MatrixSetDiagV3",
    "Moments",
    "Normalize",
    "NormalizeGrad",
    "Pack",
    "PadV2",
    "ReverseV2",
    "SelectV2",
    "Softmax",
    "SoftmaxCrossEntropyWithLogits",
    "SoftmaxGrad",
    "SplitV",
    "StridedSlice",
    "StridedSliceGrad",
    "Tile",
    "TopKV2",
    "Transpose",
    "Unpack",
};

}  // namespace

Cost cost_of(const Graph& g, const Node& n, int threads) {
  const auto* row = std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return r.op == n.op->name; });
  const Row& found = row == std::end(rows) ? any_other : *row;
  const Work work = found.work(g, n);
  const DType dtype = n.inputs.empty() ? DType::float32 : value(g, n.inputs[0]).dtype();
  return shared(work.amount * found.nanoseconds * factor(dtype), work.pieces, threads);
}

// Of the families only the division of integers fails.
bool may_fail(const Graph& g, const Node& n) {
  if (n.op->stateful && !n.op->effect && find_op(n.op->name) == n.op) return false;  // random numbers
  if (std::ranges::find(never_failing, n.op->name) != std::end(never_failing)) return false;
  const bool simple = n.op->family || n.op->finishes || n.op->float_unary || n.op->float_binary;
  return !simple || !(floating | complexes | booleans).has(value(g, n.first_output).dtype());
}

Cost cost_of_group(int64_t elements, size_t operations, int threads) {
  const int64_t amount = elements * int64_t(operations);
  return shared(double(amount) * 0.2, amount <= (1 << 16) ? 1 : kAnyNumber, threads);
}

}  // namespace tapeflow
