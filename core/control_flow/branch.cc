// A branch, forward and back.
#include "control_flow/branch.h"

#include "graph/run.h"
#include "ops/ops.h"

namespace tapeflow {

Tensors run_branch(const std::shared_ptr<Graph>& graph, std::span<const Tensor> in, BranchHistory& history) {
  in = in.subspan(0, graph->inputs.size());
  std::shared_ptr<Graph> special = specialised(graph, in);
  SmallVector<int, 16> inputs;
  for (size_t i = 0; i < in.size(); ++i) inputs.push_back(int(i));
  history.halves = halves_of(*special, {}, followed_sources(*special, inputs, history.sources.inputs, history.sources));
  Tensors out = run_graph(*history.halves->forward, in);
  Foreign foreign(in);
  for (size_t r = 0; r < history.halves->residual_inputs.size(); ++r)
    history.residuals.push_back(
        history.halves->residual_inputs[r] >= 0 ? Tensor() : foreign.kept(out[history.halves->outputs + r]));
  out.resize(history.halves->outputs);
  return out;
}

Tensors walk_back(const BranchHistory& history, std::span<const Tensor> in, std::span<const Tensor> dy,
                  std::span<const Tensor> y) {
  const Halves& halves = *history.halves;
  size_t inputs = halves.forward->inputs.size();
  Tensors arguments, result;
  result.resize(inputs + history.sources.variables.size());
  for (size_t r = 0; r < halves.residual_inputs.size(); ++r)
    arguments.push_back(halves.residual_inputs[r] >= 0 ? in[size_t(halves.residual_inputs[r])] : history.residuals[r]);
  for (int output : halves.flowing)
    arguments.push_back(dy[size_t(output)] ? dy[size_t(output)] : zeros_like(y[size_t(output)]));
  Tensors dx = run_graph(*halves.backward, arguments);
  for (size_t q = 0, next = 0; q < halves.reached.size(); ++q, ++next) {
    size_t source = size_t(halves.reached[q]);
    Shape shape = source < inputs ? in[source].shape() : halves.variables[source - inputs]->value.shape();
    if (source >= inputs)
      source = inputs + size_t(std::ranges::find(history.sources.variables, halves.variables[source - inputs]) -
                               history.sources.variables.begin());
    Tensor values = dx[next], indices = halves.by_rows[q] ? dx[++next] : Tensor();
    result[source] = densified({values, indices}, shape);
  }
  return result;
}

}  // namespace tapeflow
