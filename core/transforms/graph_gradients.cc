// The walk back over the nodes of a graph. Nodes are in program order, so no sorting is needed; the rules' own
// operations become nodes behind those that are walked over.
#include "transforms/graph_gradients.h"

#include "autodiff/deferred.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

class Walk {
 public:
  Walk(Graph& graph, RuleOverride override_rule)
      : graph_(graph),
        override_(override_rule),
        count_(graph.nodes.size()),
        flow_(graph.values.size()),
        useful_(graph.values.size(), 0),
        stopped_(graph.values.size(), 0) {}

  void stop_at(ValueId v) { stopped_[v] = 1; }
  void add_source(ValueId v) { useful_[v] = kUseful | kSource; }
  void find_useful() {
    for (size_t i = 0; i < count_; ++i)
      for (ValueId v : graph_.nodes[i].inputs) {
        if (!useful_[v]) continue;
        const Node& node = graph_.nodes[i];
        for (uint32_t k = 0; k < node.outputs; ++k) useful_[node.first_output + k] |= kUseful;
        break;
      }
  }
  void start(ValueId target, const Tensor& dy) {
    if (!useful_[target] || !differentiable.has(value(target).dtype())) return;
    accumulate(flow_[target], {dy ? dy : ones_like(value(target)), Tensor()}, value(target).shape());
  }
  void go_back() {
    for (size_t i = count_; i-- > 0;)
      if (graph_.nodes[i].op) visit(i);
  }
  const Cotangent& at(ValueId v) const { return flow_[v]; }

 private:
  static constexpr uint8_t kUseful = 1, kSource = 2;

  Tensor value(ValueId v) const { return graph_.values[v].tensor; }

  void visit(size_t i) {
    // Copies: the rule adds nodes and values, which may move these.
    const Op& op = *graph_.nodes[i].op;
    SmallVector<ValueId, 4> inputs = graph_.nodes[i].inputs;
    ValueId first = graph_.nodes[i].first_output;
    uint32_t outputs = graph_.nodes[i].outputs;
    SmallVector<bool, 8> wanted;
    bool reached = false, any_wanted = false;
    for (uint32_t k = 0; k < outputs; ++k) reached |= flow_[first + k] && !stopped_[first + k];
    for (ValueId v : inputs) {
      wanted.push_back(useful_[v] && differentiable.has(value(v).dtype()));
      any_wanted |= wanted.back();
    }
    if (reached && any_wanted) run_rule(i, op, graph_.nodes[i].params, inputs, first, outputs, wanted);
    for (uint32_t k = 0; k < outputs; ++k)
      if (!(useful_[first + k] & kSource)) flow_[first + k] = Cotangent();
  }

  void run_rule(size_t i, const Op& op, Params params, std::span<const ValueId> inputs, ValueId first, uint32_t outputs,
                std::span<const bool> wanted) {
    SmallVector<Tensor, 4> x, dy;
    Tensors y;
    for (ValueId v : inputs) x.push_back(value(v));
    for (uint32_t k = 0; k < outputs; ++k) {
      y.push_back(value(first + k));
      const Cotangent& c = flow_[first + k];
      dy.push_back(stopped_[first + k] || !c ? Tensor() : densified(c, y.back().shape()));
    }
    SmallVector<Cotangent, 4> dx;
    dx.resize(inputs.size());
    if (!override_(i, dy, std::span(dx.begin(), dx.size()))) {
      if (op.gradient == Gradient::none) return;
      if (op.gradient == Gradient::missing)
        fail(ErrorKind::lookup, "No gradient defined for operation '", graph_.nodes[i].name, "' (op type: ", op.name,
             "). gradient registry has no entry for: ", op.name);
      RuleContext context{op, params, x, y, {}, nullptr, dy, wanted, {}, {}};
      context.result.resize(inputs.size());
      if (waits(context))
        defer_rule(context);
      else
        op.vjp(context);
      for (size_t k = 0; k < inputs.size(); ++k)
        dx[k] = {context.result[k], k < context.sparse_indices.size() ? context.sparse_indices[k] : Tensor()};
    }
    for (size_t k = 0; k < inputs.size(); ++k)
      if (wanted[k] && dx[k]) accumulate(flow_[inputs[k]], std::move(dx[k]), x[k].shape());
  }

  Graph& graph_;
  RuleOverride override_;
  size_t count_;
  std::vector<Cotangent> flow_;
  std::vector<uint8_t> useful_, stopped_;
};

std::vector<ValueId> readings(const Graph& graph, const VariableBody& v) {
  std::vector<ValueId> result;
  for (const Node& node : graph.nodes)
    if (node.op == &read_variable_op() && &variable_in(node.params[0]) == &v) result.push_back(node.first_output);
  const ValueId* captured = graph.find_read(v);
  if (captured && graph.values[*captured].node < 0) result.push_back(*captured);
  return result;
}

}  // namespace

std::vector<Cotangent> graph_gradients(Graph& graph, std::span<const ValueId> targets,
                                       std::span<const Tensor> cotangents, std::span<const Source> sources,
                                       std::span<const ValueId> stops, RuleOverride override_rule) {
  Walk walk(graph, override_rule);
  std::vector<std::vector<ValueId>> values;
  for (const Source& s : sources) {
    values.push_back(s.variable ? readings(graph, *s.variable) : std::vector<ValueId>{s.value});
    for (ValueId v : values.back()) walk.add_source(v);
  }
  for (ValueId v : stops) walk.stop_at(v);
  walk.find_useful();
  for (size_t i = 0; i < targets.size(); ++i) walk.start(targets[i], cotangents[i]);
  walk.go_back();
  std::vector<Cotangent> result;
  for (size_t i = 0; i < sources.size(); ++i) {
    Cotangent total;
    for (ValueId v : values[i])
      if (walk.at(v)) accumulate(total, walk.at(v), graph.values[v].tensor.shape());
    result.push_back(total);
  }
  return result;
}

}  // namespace tapeflow
