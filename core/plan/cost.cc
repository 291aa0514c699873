// Costs in microseconds from the cost models of the entries, which were measured in float32 on one core of a server
// processor.
#include "plan/cost.h"

#include <algorithm>

#include "op/cost.h"

namespace tapeflow {
namespace {

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

}  // namespace

Cost cost_of(const Graph& g, const Node& n, int threads) {
  SmallVector<Tensor, 4> in;
  for (ValueId v : n.inputs) in.push_back(g.values[v].tensor);
  Call call(*n.op, in, n.params);
  for (uint32_t k = 0; k < n.outputs; ++k) {
    const Tensor& y = g.values[n.first_output + k].tensor;
    call.returns(y.dtype(), y.shape());
  }
  const CostModel& model = n.op->planning.cost;
  const Work work = model.work ? model.work(call) : cost::elements(call);
  const DType dtype = in.empty() ? DType::float32 : in[0].dtype();
  return shared(work.amount * model.nanoseconds * factor(dtype), work.pieces, threads);
}

bool needs_interpreter_lock(const Graph& g, const Node& n) {
  const Op& op = *n.op;
  if (op.effect || op.calls_python || op.is_program || op.custom_gradient) return true;
  if ((op.stateful && !op.random) || find_op(op.name) != &op) return true;
  return std::ranges::any_of(n.inputs, [&](ValueId v) { return g.values[v].tensor.dtype() == DType::variant; });
}

// Of the families only the division of integers fails.
bool may_fail(const Graph& g, const Node& n) {
  if (n.op->stateful && !n.op->effect && find_op(n.op->name) == n.op) return false;  // random numbers
  if (n.op->planning.cannot_fail) return false;
  const bool simple = n.op->family || n.op->runs_epilogue || n.op->float_unary || n.op->float_binary;
  return !simple || !(floating | complexes | booleans).has(g.values[n.first_output].tensor.dtype());
}

Cost cost_of_fusion(int64_t elements, size_t operations, int threads) {
  constexpr int64_t kAnyNumber = 1 << 20;
  const int64_t amount = elements * int64_t(operations);
  return shared(double(amount) * 0.2, amount <= (1 << 16) ? 1 : kAnyNumber, threads);
}

}  // namespace tapeflow
