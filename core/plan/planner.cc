// Which values a plan has: the graph with known shapes, without what is equal to something else or only shows it.
#include "plan/planner.h"

#include <algorithm>
#include <cstring>

#include "control_flow/control_ops.h"

namespace tapeflow {
namespace {

bool same_param(const Param& a, const Param& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Param::Kind::none: return true;
    case Param::Kind::flag: return a.flag == b.flag;
    case Param::Kind::integer: return a.integer == b.integer;
    case Param::Kind::real: return std::memcmp(&a.real, &b.real, sizeof a.real) == 0;
    case Param::Kind::dtype: return a.dtype == b.dtype;
    case Param::Kind::ints: return std::equal(a.ints.begin(), a.ints.end(), b.ints.begin(), b.ints.end());
    case Param::Kind::text: return a.text == b.text;
    default: return a.object == b.object;
  }
}

}  // namespace

Prepared prepare(const Graph& graph, std::span<const Tensor> inputs) { return Planner(graph).make(inputs); }

Prepared Planner::make(std::span<const Tensor> inputs) {
  if (!specialise(inputs)) return {};
  const std::vector<Node>& nodes = graph().nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!stands_in_the_way(nodes[i]) && !has_no_shape(nodes[i])) continue;
    size_t end = i + 1;
    while (end < nodes.size() && stands_in_the_way(nodes[end])) ++end;
    return {nullptr, Split::make(graph(), i, end)};
  }
  read_parameters();
  choose_flushing();
  find_values();
  join_chains();
  schedule();
  find_sections();
  find_lifetimes();
  place_values();
  make_steps();
  return {std::move(plan_), nullptr};
}

// What could not be traced leaves nodes without an operation behind, and is not tried again.
bool Planner::specialise(std::span<const Tensor> inputs) {
  auto complete = [&] {
    trace(inputs);
    return std::ranges::none_of(graph().nodes, [](const Node& n) { return !n.op; });
  };
  return complete() || complete();
}

void Planner::trace(std::span<const Tensor> inputs) {
  plan_->graph_ = std::make_shared<Graph>();
  Graph& g = graph();
  g.plain_updates = true;
  g.cuts = from_.cuts;
  EnterStage stage(&g);
  PauseRecording unheard;
  std::vector<Tensor> in;
  for (const Tensor& t : inputs) in.push_back(g.add_input({t.dtype(), t.shape()}));
  for (const Tensor& t : interpret(from_, in)) g.outputs.push_back(g.id_of(t));
}

bool Planner::has_state(const Graph& g) {
  for (const Node& n : g.nodes) {
    if (!n.op) continue;
    if (n.op == &read_variable_op() || n.op == &assign_op()) return true;
    if (n.op->effect && !has_only_pure_graphs(n)) return true;
  }
  return false;
}
bool Planner::has_only_pure_graphs(const Node& n) {
  if (!is_control_op(*n.op)) return false;
  for (const auto& inner : graphs_of(n))
    if (has_state(*inner)) return false;
  return true;
}

// Whether no plan can have the node, whatever shapes are known: it calls Python, has effects of its own, or text.
bool Planner::stands_in_the_way(const Node& n) {
  if (n.op->planning.graph_break) return true;
  if (n.op->effect && n.op != &assign_op() && !has_only_pure_graphs(n)) return true;
  if (n.op->stateful && n.params.has_tensor()) return true;
  bool text = false;
  for_each_operand(n, [&](ValueId v) { text |= spec(v).dtype == DType::string; });
  for (uint32_t k = 0; k < n.outputs; ++k) text |= spec(n.first_output + k).dtype == DType::string;
  return text;
}
bool Planner::has_no_shape(const Node& n) {
  for (uint32_t k = 0; k < n.outputs; ++k)
    if (graph().values[n.first_output + k].tensor.size() < 0) return true;
  return false;
}

void Planner::choose_flushing() {
  for (const Value& v : graph().values)
    if (v.tensor.dtype() == DType::float64 || v.tensor.dtype() == DType::complex128) plan_->flushes_ = false;
}

// Whether all elements of a constant are the same.
bool Planner::uniform(ValueId v) {
  if (info_[v].kind != Info::Kind::constant) return false;
  const Tensor& t = graph().values[v].tensor;
  if (t.dtype() == DType::variant || t.dtype() == DType::string || t.size() == 0) return false;
  int& known = info_[v].uniform;
  const size_t width = size_of(t.dtype());
  const char* p = static_cast<const char*>(t.raw());
  if (known == kNone) known = t.size() == 1 || std::memcmp(p, p + width, size_t(t.size() - 1) * width) == 0;
  return known == 1;
}

// The operand that a node is equal to, if it is.
int Planner::simplified(const Node& n) {
  for (size_t one = 0; one < 2; ++one) {
    if (!(n.op->planning.unit_operands >> one & 1)) continue;
    const ValueId factor = n.inputs[one], other = n.inputs[1 - one];
    if (spec(factor).dtype != DType::float32 || !uniform(factor)) continue;
    if (*graph().values[factor].tensor.data<float>() == 1.0f && spec(other).shape == spec(n.first_output).shape)
      return int(other);
  }
  return kNone;
}

void Planner::find_values() {
  Graph& g = graph();
  info_.resize(g.values.size());
  for (ValueId v = 0; v < g.values.size(); ++v) {
    info_[v].same = v;
    int node = g.values[v].node;
    info_[v].kind = node == Value::kConstant ? Info::Kind::constant
                    : node == Value::kInput  ? Info::Kind::input
                                             : Info::Kind::computed;
    info_[v].node = node >= 0 ? node : kNone;
  }
  std::map<VariableBody*, ValueId> now;
  std::map<VariableBody*, ValueId> first;
  std::multimap<size_t, size_t> equal_nodes;
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    Node& n = g.nodes[i];
    for (ValueId& v : n.inputs)
      if (info_[v].offset == 0 && spec(v).shape == spec(meant(v)).shape) v = meant(v);
    read_before_broadcast(n);
    if (n.op == &read_variable_op()) {
      VariableBody* variable = &variable_in(n.params[0]);
      auto it = now.find(variable);
      if (it != now.end()) {
        lie(n.first_output, it->second, 0);
      } else {
        info_[n.first_output].kind = Info::Kind::variable;
        now[variable] = first[variable] = n.first_output;
      }
      continue;
    }
    if (n.op == &assign_op()) {
      now[&variable_in(n.params[0])] = n.inputs[0];
      assigned_.insert(&variable_in(n.params[0]));
      continue;
    }
    if (show(n)) continue;
    if (int same = simplified(n); same != kNone) {
      lie(n.first_output, ValueId(same), 0);
      continue;
    }
    if (!n.op->stateful && !n.op->effect && n.outputs > 0 && merge(n, i, equal_nodes)) continue;
    nodes_.push_back(int(i));
  }
  for (auto& [variable, v] : first)
    plan_->variables_.push_back({variable, nullptr, spec(v)}), variable_values_.push_back(v);
  for (VariableBody* variable : assigned_) stores_.push_back({variable, now[variable]});
  drop_unused();
}

// An operation that broadcasts by itself reads what was broadcast for it before that.
void Planner::read_before_broadcast(Node& n) {
  if (n.op->float_binary == nullptr) return;
  for (size_t k = 0; k < 2; ++k) {
    const int from = info_[n.inputs[k]].node;
    if (from == kNone || !graph().nodes[size_t(from)].op->planning.is_broadcast) continue;
    if (spec(n.inputs[1 - k]).shape == spec(n.first_output).shape) n.inputs[k] = graph().nodes[size_t(from)].inputs[0];
  }
}

// Leaves out the nodes whose results nobody reads.
void Planner::drop_unused() {
  std::vector<bool> used(info_.size(), false);
  for (ValueId v : graph().outputs) used[meant(v)] = true;
  for (auto& [variable, v] : stores_) used[meant(v)] = true;
  std::vector<int> kept;
  for (auto i = nodes_.rbegin(); i != nodes_.rend(); ++i) {
    const Node& n = graph().nodes[size_t(*i)];
    bool needed = n.op->effect || n.op->stateful;
    for (uint32_t k = 0; k < n.outputs; ++k) needed |= used[n.first_output + k];
    if (!needed) continue;
    for (ValueId v : n.inputs) used[meant(v)] = true;
    kept.push_back(*i);
  }
  nodes_.assign(kept.rbegin(), kept.rend());
}

void Planner::lie(ValueId v, ValueId in, size_t offset) {
  info_[v].same = meant(in);
  info_[v].offset = info_[in].offset + offset;
}

bool Planner::show(const Node& n) {
  if (n.op->planning.view == ViewKind::always) {
    for (uint32_t k = 0; k < n.outputs; ++k) lie(n.first_output + k, n.inputs[k], 0);
    return true;
  }
  if (n.op->planning.view == ViewKind::none || n.inputs.size() != 1) return false;
  Spec s = spec(n.inputs[0]);
  Tensor sample = Tensor::allocate(s.dtype, s.shape);
  if (!sample.body()->buffer) return false;
  Call call(*n.op, std::span(&sample, 1), n.params);
  if (n.op->infer) n.op->infer(call);
  n.op->kernel(call);
  for (const Tensor& t : call.out)
    if (t.body()->buffer != sample.body()->buffer) return false;
  for (uint32_t k = 0; k < n.outputs; ++k)
    lie(n.first_output + k, n.inputs[0],
        size_t(static_cast<const char*>(call.out[k].raw()) - static_cast<const char*>(sample.raw())));
  return true;
}

bool Planner::merge(const Node& n, size_t i, std::multimap<size_t, size_t>& equal_nodes) {
  size_t hash = reinterpret_cast<size_t>(n.op);
  for (ValueId v : n.inputs) hash = hash * 1000003 + v;
  auto [from, to] = equal_nodes.equal_range(hash);
  for (; from != to; ++from) {
    const Node& other = graph().nodes[from->second];
    bool same = other.op == n.op && other.params.size() == n.params.size() &&
                std::equal(n.inputs.begin(), n.inputs.end(), other.inputs.begin(), other.inputs.end());
    for (int p = 0; same && p < int(n.params.size()); ++p) same = same_param(n.params[p], other.params[p]);
    if (!same) continue;
    for (uint32_t k = 0; k < n.outputs; ++k) lie(n.first_output + k, other.first_output + k, 0);
    return true;
  }
  equal_nodes.emplace(hash, i);
  return false;
}

}  // namespace tapeflow
