// A branch, forward and back.
#include "control_flow/branch.h"

#include "graph/run.h"
#include "ops/ops.h"

namespace tapeflow {

Tensors run_branch(const std::shared_ptr<Graph>& graph, std::span<const Tensor> in, BranchSavedTensors& saved) {
  in = in.subspan(0, graph->inputs.size());
  std::shared_ptr<Graph> special = specialised(graph, in);
  SmallVector<int, 16> inputs;
  for (size_t i = 0; i < in.size(); ++i) inputs.push_back(int(i));
  saved.parts = joint_parts_of(*special, {}, tracked_sources(*special, inputs, saved.sources.inputs, saved.sources));
  Tensors out = run_graph(*saved.parts->forward, in);
  BorrowedBuffers borrowed(in);
  for (size_t r = 0; r < saved.parts->residual_inputs.size(); ++r)
    saved.residuals.push_back(saved.parts->residual_inputs[r] >= 0 ? Tensor()
                                                                   : borrowed.kept(out[saved.parts->outputs + r]));
  out.resize(saved.parts->outputs);
  return out;
}

Tensors backpropagate(const BranchSavedTensors& saved, std::span<const Tensor> in, std::span<const Tensor> dy,
                      std::span<const Tensor> y) {
  const JointParts& parts = *saved.parts;
  size_t inputs = parts.forward->inputs.size();
  Tensors arguments, result;
  result.resize(inputs + saved.sources.variables.size());
  for (size_t r = 0; r < parts.residual_inputs.size(); ++r)
    arguments.push_back(parts.residual_inputs[r] >= 0 ? in[size_t(parts.residual_inputs[r])] : saved.residuals[r]);
  for (int output : parts.flowing)
    arguments.push_back(dy[size_t(output)] ? dy[size_t(output)] : zeros_like(y[size_t(output)]));
  Tensors dx = run_graph(*parts.backward, arguments);
  for (size_t q = 0, next = 0; q < parts.reached.size(); ++q, ++next) {
    size_t source = size_t(parts.reached[q]);
    Shape shape = source < inputs ? in[source].shape() : parts.variables[source - inputs]->value.shape();
    if (source >= inputs)
      source = inputs + size_t(std::ranges::find(saved.sources.variables, parts.variables[source - inputs]) -
                               saved.sources.variables.begin());
    Tensor values = dx[next], indices = parts.by_rows[q] ? dx[++next] : Tensor();
    result[source] = densified({values, indices}, shape);
  }
  return result;
}

}  // namespace tapeflow
