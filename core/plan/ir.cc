// Questions that several passes ask of the IR.
#include "plan/ir.h"

#include <algorithm>
#include <cstring>

#include "plan/borrowed_memory.h"

namespace tapeflow::plan {

void PlanIR::alias(ValueId v, ValueId of, size_t offset) {
  values[v].root = root(of);
  values[v].offset = values[of].offset + offset;
}

bool PlanIR::uniform(ValueId v) {
  if (values[v].kind != ValueInfo::Kind::constant) return false;
  const Tensor& t = graph->values[v].tensor;
  if (t.dtype() == DType::variant || t.dtype() == DType::string || t.size() == 0) return false;
  int& known = values[v].uniform;
  const size_t width = size_of(t.dtype());
  const char* p = static_cast<const char*>(t.raw());
  if (known == kNone) known = t.size() == 1 || std::memcmp(p, p + width, size_t(t.size() - 1) * width) == 0;
  return known == 1;
}

std::vector<int> PlanIR::count_uses() const {
  std::vector<int> uses(values.size(), 0);
  for (int i : nodes)
    for (ValueId v : node(i).inputs) ++uses[root(v)];
  for (ValueId v : graph->outputs) ++uses[root(v)];
  for (const VariableValue& store : stores) ++uses[root(store.value)];
  return uses;
}

int PlanIR::runs_after(int i) const {
  const auto found = not_before.find(i);
  if (found == not_before.end()) return kNone;
  const auto next = std::ranges::upper_bound(nodes, found->second);  // the node itself may be gone
  return next == nodes.begin() ? kNone : *std::prev(next);
}

void PlanIR::remove_dead_nodes() {
  std::vector<bool> used(values.size(), false);
  for (ValueId v : graph->outputs) used[root(v)] = true;
  for (const VariableValue& store : stores) used[root(store.value)] = true;
  std::vector<int> live;
  for (auto i = nodes.rbegin(); i != nodes.rend(); ++i) {
    const Node& n = node(*i);
    bool needed = n.op->effect || n.op->stateful;
    for (uint32_t k = 0; k < n.outputs; ++k) needed |= used[n.first_output + k];
    if (!needed) continue;
    for (ValueId v : n.inputs) used[root(v)] = true;
    live.push_back(*i);
  }
  nodes.assign(live.rbegin(), live.rend());
}

void PlanIR::add_step(Step step) {
  number(step, int(steps.size()));
  steps.push_back(std::move(step));
}
void PlanIR::number(const Step& step, int at) {
  step.each_node([&](int i) {
    for (uint32_t k = 0; k < node(i).outputs; ++k) values[node(i).first_output + k].step = at;
  });
}
void PlanIR::number_steps() {
  for (size_t s = 0; s < steps.size(); ++s) number(steps[s], int(s));
}

// A constant is its own body; other bodies get their memory later.
TensorBody* PlanIR::body_of(ValueId v) {
  ValueInfo& info = values[v];
  if (!info.body) {
    const Tensor& t = graph->values[v].tensor;
    if (info.kind == ValueInfo::Kind::constant && root(v) == v) {
      info.body = lasting_view(t);
    } else {
      info.body = bare_body(t.dtype(), t.shape());
    }
    code.bodies.push_back(info.body);
  }
  return info.body.body();
}

}  // namespace tapeflow::plan
