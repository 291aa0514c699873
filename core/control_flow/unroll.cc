// Unrolling: the iterations of a short loop become nodes of the graph of a plan, so that the plan sees through them.
#include <algorithm>

#include "control_flow/list_ops.h"
#include "control_flow/loop.h"
#include "op/cost.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

// Nothing of the graph is worth keeping from being repeated: no loops or calls, no effects, and little work.
bool is_cheap(const Graph& graph) {
  constexpr double kMostNanoseconds = 4000;
  double nanoseconds = 0;
  for (const Node& n : graph.nodes) {
    if (!n.op || n.op->effect || n.op->stateful || n.op->is_program || n.op->calls_python) return false;
    SmallVector<Tensor, 4> in;
    for (ValueId v : n.inputs) in.push_back(graph.values[v].tensor);
    Call call(*n.op, in, n.params);
    for (uint32_t k = 0; k < n.outputs; ++k) {
      const Tensor& y = graph.values[n.first_output + k].tensor;
      if (y.size() < 0) return false;
      call.returns(y.dtype(), y.shape());
    }
    const CostModel& model = n.op->planning.cost;
    if (model.work) nanoseconds += model.work(call).amount * model.nanoseconds;
    for (const Spec& y : call.specs) nanoseconds += double(y.shape.elements()) * model.nanoseconds;
  }
  return nanoseconds <= kMostNanoseconds;
}

bool reads_state(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& n) { return !n.op || n.op->stateful || n.op->effect; });
}

}  // namespace

// The loop variables that the condition and the positions of list writes come from, and only they, are computed.
std::optional<int64_t> Loop::known_iterations(std::span<const Tensor> in, int64_t most) const {
  const Graph& iteration = *iteration_.graph;
  std::vector<ValueId> fixed;  // values that must be known in every iteration
  if (condition_in_iteration_) fixed.push_back(iteration.outputs.back());
  std::vector<uint8_t> needed(in.size(), 0);
  for (int i : holds_.inputs) needed[size_t(i)] = 1;
  for (size_t k = 0; k < variables_; ++k)
    for (size_t w = 0; w < writes_[k].size(); ++w) fixed.push_back(iteration.outputs[first_output_[k] + 2 * w]);
  Trimmed step;
  std::vector<size_t> carried;
  for (bool more = true; more;) {
    more = false;
    carried.clear();
    std::vector<ValueId> wanted = fixed;
    for (size_t k = 0; k < variables_; ++k) {
      if (!needed[k]) continue;
      if (!writes_[k].empty()) return std::nullopt;
      carried.push_back(k);
      wanted.push_back(iteration.outputs[first_output_[k]]);
    }
    step = trimmed(iteration, wanted);
    for (int j : step.inputs) {
      uint8_t& known = needed[size_t(iteration_.inputs[size_t(j)])];
      more |= !known;
      known = 1;
    }
  }
  for (size_t i = 0; i < in.size(); ++i)
    if (needed[i] && in[i].symbolic()) return std::nullopt;
  if (reads_state(*step.graph) || reads_state(*holds_.graph)) return std::nullopt;
  EnterStage nowhere(nullptr);
  Tensors state(in);
  for (int64_t count = 0; count <= most; ++count) {
    Tensors given;
    if (count == limit_) return count;
    for (int i : holds_.inputs) given.push_back(state[size_t(i)]);
    const Tensor goes_on = interpret(*holds_.graph, given)[0];
    if (goes_on.dtype() != DType::boolean || goes_on.size() != 1) return std::nullopt;
    if (!*goes_on.data<bool>()) return count;
    given.clear();
    for (int j : step.inputs) given.push_back(state[size_t(iteration_.inputs[size_t(j)])]);
    Tensors out = interpret(*step.graph, given);
    for (size_t c = 0; c < carried.size(); ++c) state[carried[c]] = out[fixed.size() + c];
  }
  return std::nullopt;
}

std::optional<int64_t> Loop::worth_unrolling(std::span<const Tensor> in) const {
  constexpr int64_t kMostIterations = 256, kMostNodes = 4000;
  if (lists_grow_ || in.size() != body_->inputs.size()) return std::nullopt;  // or it reads variables itself
  for (const Tensor& t : in)
    if (t.size() < 0 || t.dtype() == DType::string || t.dtype() == DType::variant) return std::nullopt;
  Tensors given;
  for (int i : iteration_.inputs) {
    if (size_t(i) < variables_ && !writes_[size_t(i)].empty()) return std::nullopt;  // it reads what it writes
    given.push_back(in[size_t(i)]);
  }
  const std::shared_ptr<Graph> iteration = specialised(iteration_.graph, given);
  for (size_t j = 0; j < iteration_.inputs.size(); ++j) {
    const size_t k = size_t(iteration_.inputs[j]);
    if (k >= variables_) continue;
    const Tensor& next = iteration->values[iteration->outputs[first_output_[k]]].tensor;
    if (!(next.shape() == in[k].shape())) return std::nullopt;
  }
  if (iteration->nodes.empty() || !is_cheap(*iteration)) return std::nullopt;
  return known_iterations(in, std::min(kMostIterations, kMostNodes / int64_t(iteration->nodes.size())));
}

Tensors Loop::unroll(std::span<const Tensor> in, int64_t iterations, SavedTensors* saved) const {
  Tensors state(in), given;
  SmallVector<std::optional<RowBuffer>, 4> lists;
  lists.resize(variables_);
  for (size_t k = 0; k < variables_; ++k)
    if (!writes_[k].empty()) lists[k].emplace(in[k], true);
  SmallVector<size_t, 4> unreached;
  for (int64_t i = 0; i < iterations; ++i) {
    given.clear();
    for (int j : iteration_.inputs) given.push_back(state[size_t(j)]);
    if (saved && !saved->parts) {
      saved->parts = joint_parts_for(saved->sources, given);
      unreached = unreached_variables(*saved->parts);
    }
    Tensors out = interpret(saved ? *saved->parts->forward : *iteration_.graph, given);
    for (size_t k = 0; k < variables_; ++k)
      for (size_t w = 0; w < writes_[k].size(); ++w) {
        const int64_t position = read_ints(out[first_output_[k] + 2 * w])[0];
        lists[k]->write(position, out[first_output_[k] + 2 * w + 1], writes_[k][w]);
        if (saved) saved->positions.push_back(position);
      }
    if (saved) {
      const JointParts& parts = *saved->parts;
      for (size_t r = 0; r < parts.residual_inputs.size(); ++r) saved->residuals.push_back(out[parts.outputs + r]);
      for (size_t k : unreached) saved->unreached.push_back(out[first_output_[k]].shape());
    }
    for (size_t k = 0; k < variables_; ++k)
      if (writes_[k].empty()) state[k] = out[first_output_[k]];
  }
  if (saved) {
    saved->iterations = iterations;
    saved->unrolled = true;
  }
  for (size_t k = 0; k < variables_; ++k)
    if (lists[k]) state[k] = lists[k]->list();
  state.resize(variables_);
  return state;
}

}  // namespace tapeflow
