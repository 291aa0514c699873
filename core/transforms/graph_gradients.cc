// The backward pass over the nodes of a graph and of those around it. Nodes are in program order, so no sorting is
// needed; the rules' own operations become nodes of the innermost graph, behind those that are passed.
#include "transforms/graph_gradients.h"

#include "autodiff/deferred.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

// The backward pass over the nodes of one graph: the one that gets the new nodes, or one around it.
class BackwardPass {
 public:
  BackwardPass(Graph& graph, int level, RuleOverride override_rule)
      : graph_(graph),
        level_(level),
        override_(override_rule),
        count_(graph.nodes.size()),
        flow_(graph.values.size()),
        useful_(graph.values.size(), 0),
        stopped_(graph.values.size(), 0) {}

  Graph& graph() const { return graph_; }
  bool knows(ValueId v) const { return v < flow_.size(); }
  bool useful(ValueId v) const { return useful_[v]; }
  void set_useful(ValueId v) { useful_[v] |= kUseful; }
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
    receive(target, {dy ? dy : ones_like(value(target)), Tensor()});
  }
  void receive(ValueId v, Cotangent c) { accumulate(flow_[v], std::move(c), value(v).shape()); }
  void go_back() {
    for (size_t i = count_; i-- > 0;)
      if (graph_.nodes[i].op) visit(i);
  }
  const Cotangent& at(ValueId v) const { return flow_[v]; }
  bool stopped(ValueId v) const { return stopped_[v]; }

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
    if (!override_(level_, i, dy, std::span(dx.begin(), dx.size()))) {
      if (op.gradient == Gradient::none) return;
      if (op.gradient == Gradient::missing)
        fail(ErrorKind::lookup, "No gradient defined for operation '", graph_.nodes[i].name, "' (op type: ", op.name,
             "). gradient registry has no entry for: ", op.name);
      RuleContext context{op, params, x, y, {}, nullptr, dy, wanted, {}, {}};
      context.result.resize(inputs.size());
      if (must_defer(context))
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
  int level_;
  RuleOverride override_;
  size_t count_;
  std::vector<Cotangent> flow_;
  std::vector<uint8_t> useful_, stopped_;
};

// What reads a variable: nodes, and captures of a graph that has no other one around it.
std::vector<ValueId> readings(const Graph& graph, const VariableBody& v, bool outermost) {
  std::vector<ValueId> result;
  for (const Node& node : graph.nodes)
    if (node.op == &read_variable_op() && &variable_in(node.params) == &v) result.push_back(node.first_output);
  const ValueId* captured = graph.find_read(v);
  if (outermost && captured && graph.values[*captured].node < 0) result.push_back(*captured);
  return result;
}

// Backward passes over a graph and those around it. What the graph takes from around it is an input of its own, a
// capture: usefulness goes inwards through captures, cotangents go outwards.
class Levels {
 public:
  using Places = std::vector<std::pair<BackwardPass*, ValueId>>;
  Levels(Graph& graph, RuleOverride override_rule) {
    for (Graph* g = &graph; g; g = g->outer()) passes_.emplace_back(*g, int(passes_.size()), override_rule);
  }

  // The value that a tensor is: in the graph that made it, or in every graph if it is a constant.
  Places find(const Tensor& t) {
    Places result;
    for (BackwardPass& pass : passes_)
      if (!t.symbolic() || pass.graph().owns(t)) result.emplace_back(&pass, pass.graph().id_of(t));
    if (result.empty()) result.emplace_back(&passes_[0], passes_[0].graph().id_of(t));
    return result;
  }
  Places readings_of(const VariableBody& v) {
    Places result;
    for (BackwardPass& pass : passes_)
      for (ValueId id : readings(pass.graph(), v, &pass == &passes_.back())) result.emplace_back(&pass, id);
    return result;
  }
  void find_useful() {
    for (size_t i = passes_.size(); i-- > 0;) {
      for_each_capture(passes_[i], [&](ValueId own, BackwardPass& outer, ValueId captured) {
        if (outer.useful(captured)) passes_[i].set_useful(own);
      });
      passes_[i].find_useful();
    }
  }
  void go_back() {
    for (BackwardPass& pass : passes_) {
      pass.go_back();
      for_each_capture(pass, [&](ValueId own, BackwardPass& outer, ValueId captured) {
        if (pass.at(own) && !pass.stopped(own) && outer.useful(captured)) outer.receive(captured, pass.at(own));
      });
    }
  }

 private:
  template <class Use> void for_each_capture(BackwardPass& pass, Use use) {
    const Graph& graph = pass.graph();
    size_t first = graph.inputs.size() - graph.captures.size();
    for (size_t k = 0; k < graph.captures.size(); ++k) {
      const Tensor captured = graph.captures[k];
      ValueId own = graph.inputs[first + k];
      if (!pass.knows(own)) continue;  // captured by a rule
      for (BackwardPass& outer : passes_)
        if (outer.graph().owns(captured)) use(own, outer, captured.body()->symbol().value);
    }
  }
  std::vector<BackwardPass> passes_;
};

}  // namespace

std::vector<Cotangent> graph_gradients(Graph& graph, std::span<const Tensor> targets,
                                       std::span<const Tensor> cotangents, std::span<const Source> sources,
                                       std::span<const Tensor> stops, RuleOverride override_rule) {
  // The passes count the values, so all that are asked for come first.
  auto introduce = [&](const Tensor& t) {
    graph.id_of(t);
    for (Graph* g = graph.outer(); g && !t.symbolic(); g = g->outer()) g->id_of(t);
  };
  for (const Tensor& t : targets) introduce(t);
  for (const Tensor& t : stops) introduce(t);
  for (const Source& s : sources)
    if (!s.variable) introduce(s.value);
  Levels levels(graph, override_rule);
  std::vector<Levels::Places> values;
  for (const Source& s : sources) {
    values.push_back(s.variable ? levels.readings_of(*s.variable) : levels.find(s.value));
    for (auto [pass, v] : values.back()) pass->add_source(v);
  }
  for (const Tensor& t : stops)
    for (auto [pass, v] : levels.find(t)) pass->stop_at(v);
  levels.find_useful();
  for (size_t i = 0; i < targets.size(); ++i) {
    auto [pass, v] = levels.find(targets[i]).front();
    pass->start(v, cotangents[i]);
  }
  levels.go_back();
  std::vector<Cotangent> result;
  for (const auto& found : values) {
    Cotangent total;
    for (auto [pass, v] : found)
      if (pass->at(v)) accumulate(total, pass->at(v), pass->graph().values[v].tensor.shape());
    result.push_back(total);
  }
  return result;
}

}  // namespace tapeflow
