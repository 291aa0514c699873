// Specialise: the graph for inputs of certain shapes.
//
// Input:     a graph, and inputs whose shapes are known.
// Output:    the graph traced once more with these shapes, so that deferred rules, compositions and shapes are
//            resolved; parameters that are still computed, such as the index in x[i], are inputs of their nodes. Or
//            the first graph break: nodes that call Python, have effects besides assignments, hold text, or whose
//            results have shapes that depend on values.
// Invariant: without a graph break, every value has a known shape and every parameter is a constant.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "control_flow/control_ops.h"
#include "control_flow/dynamic_rows.h"
#include "graph/run.h"
#include "ops/arrays/slicing.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

// Constants whose folding would cost memory traffic: large ones that a fusion can read once, though the program reads
// several values which cheap arithmetic makes of them, as `0.1 * g` and `0.01 * g * g`. Folded, each of those values
// would be an array of its own, and every run would read them all.
class SharedConstants {
 public:
  explicit SharedConstants(const Graph& g) : graph_(g), origin_(g.values.size(), kVaries) {
    for (ValueId v = 0; v < origin_.size(); ++v)
      if (g.values[v].node == Value::kConstant) origin_[v] = is_large(v) ? int(v) : kConstant;
    for (const Node& n : g.nodes)
      if (n.op) visit(n);
    for (ValueId v : g.outputs) reject(v);
  }
  std::vector<ValueId> list() const {
    std::vector<ValueId> found;
    for (const auto& [constant, values] : values_read_)
      if (values.size() > 1 && !rejected_.contains(constant)) found.push_back(ValueId(constant));
    return found;
  }

 private:
  static constexpr int kVaries = -2, kConstant = -1;
  static constexpr int64_t kLarge = 1 << 16;  // elements

  const Tensor& tensor(ValueId v) const { return graph_.values[v].tensor; }
  bool is_large(ValueId v) const { return tensor(v).size() >= kLarge && wide_floating.has(tensor(v).dtype()); }
  void reject(ValueId v) {
    if (origin_[v] >= 0) rejected_.insert(origin_[v]);
  }

  void visit(const Node& n) {
    bool constant = !n.op->stateful && !n.op->effect;
    for_each_operand(n, [&](ValueId v) { constant &= origin_[v] != kVaries; });
    if (constant) return visit_constant(n);
    for_each_operand(n, [&](ValueId v) {
      if (origin_[v] < 0) return;
      const bool reads_elements =
          n.op->element_loops && n.outputs == 1 && tensor(n.first_output).shape() == tensor(v).shape();
      if (reads_elements)
        values_read_[origin_[v]].insert(v);
      else
        reject(v);
    });
  }

  // The result is of the same large constant if cheap arithmetic makes it of that one and of single numbers.
  void visit_constant(const Node& n) {
    int origin = kConstant;
    bool cheap = n.op->planning.arithmetic != Arithmetic::none && n.outputs == 1;
    for_each_operand(n, [&](ValueId v) {
      if (origin_[v] >= 0 && (origin == kConstant || origin == origin_[v]))
        origin = origin_[v];
      else
        cheap &= tensor(v).size() == 1;
    });
    cheap = cheap && origin >= 0 && tensor(n.first_output).shape() == tensor(ValueId(origin)).shape();
    if (!cheap) for_each_operand(n, [&](ValueId v) { reject(v); });
    for (uint32_t k = 0; k < n.outputs; ++k) origin_[n.first_output + k] = cheap ? origin : kConstant;
  }

  const Graph& graph_;
  std::vector<int> origin_;                       // by value: the large constant it is computed from, or the above
  std::map<int, std::set<ValueId>> values_read_;  // by large constant: what is made of it and read by other nodes
  std::set<int> rejected_;
};

void trace(PlanIR& ir, bool unrolls) {
  ir.graph = std::make_shared<Graph>();
  Graph& g = *ir.graph;
  g.lowers = true;
  g.unrolls = unrolls;
  g.cuts = ir.source.cuts;
  EnterStage stage(&g);
  PauseRecording paused;
  std::vector<Tensor> in;
  std::vector<ValueId> given = ir.source.inputs;
  for (const Tensor& t : ir.inputs) in.push_back(g.add_input({t.dtype(), t.shape()}));
  // A constant that is not folded is symbolic during the trace.
  const std::vector<ValueId> unfolded = SharedConstants(ir.source).list();
  for (ValueId v : unfolded) {
    const Tensor& t = ir.source.values[v].tensor;
    given.push_back(v);
    in.push_back(g.add_input({t.dtype(), t.shape()}));
    g.inputs.pop_back();
  }
  const Subgraph all{given, in, ir.source.outputs, true};
  for (const Tensor& t : interpret(ir.source, all, [](ValueId, const Tensor&) {})) g.outputs.push_back(g.id_of(t));
  for (size_t k = 0; k < unfolded.size(); ++k) {
    const Tensor symbolic = in[ir.inputs.size() + k];
    Value& value = g.values[symbolic.body()->symbol().value];
    symbolic.body()->symbol().graph = nullptr;
    value = {ir.source.values[unfolded[k]].tensor, Value::kConstant};
  }
}

// A loop was unrolled whose saved tensors are read by more than rules that were expanded, too.
bool needs_saved_tensors(const Graph& g) {
  return std::ranges::any_of(g.values, [](const Value& v) {
    return v.node == Value::kConstant && v.tensor.dtype() == DType::variant && v.tensor.body()->buffer;
  });
}

// A composition that could not be traced leaves nodes without an operation behind, and is not tried again.
bool trace_completely(PlanIR& ir) {
  trace(ir, true);
  if (needs_saved_tensors(*ir.graph)) trace(ir, false);
  return std::ranges::none_of(ir.graph->nodes, [](const Node& n) { return !n.op; });
}

bool is_pure(const Graph&);
bool has_only_pure_graphs(const Node& n) {
  return is_control_op(*n.op) && std::ranges::all_of(graphs_of(n), [](const auto& inner) { return is_pure(*inner); });
}
bool is_pure(const Graph& g) {
  return std::ranges::all_of(g.nodes, [](const Node& n) {
    if (!n.op) return true;
    if (n.op == &read_variable_op() || n.op == &assign_op()) return false;
    return !n.op->effect || has_only_pure_graphs(n);
  });
}

// Whether no plan can have the node, whatever shapes are known.
bool unplannable(const PlanIR& ir, const Node& n) {
  if (n.op->planning.graph_break) return true;
  if (n.op->effect && n.op != &assign_op() && !has_only_pure_graphs(n)) return true;
  if (n.op->stateful && n.params.has_tensor()) return true;
  bool text = false;
  for_each_operand(n, [&](ValueId v) { text |= ir.dtype(v) == DType::string; });
  for (uint32_t k = 0; k < n.outputs; ++k) text |= ir.dtype(n.first_output + k) == DType::string;
  return text;
}
bool has_unknown_shape(const PlanIR& ir, const Node& n) {
  for (uint32_t k = 0; k < n.outputs; ++k)
    if (ir.graph->values[n.first_output + k].tensor.size() < 0) return true;
  return false;
}

std::optional<PlanIR::GraphBreak> find_graph_break(const PlanIR& ir) {
  const std::vector<Node>& nodes = ir.graph->nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!unplannable(ir, nodes[i]) && !has_unknown_shape(ir, nodes[i])) continue;
    size_t end = i + 1;
    while (end < nodes.size() && unplannable(ir, nodes[end])) ++end;
    return PlanIR::GraphBreak{i, end};
  }
  return std::nullopt;
}

// ---- computed parameters

// The operation behind a node whose last inputs are parameters.
struct DynamicCall {
  const Op* op;
  Params params;  // tensors where the inputs give them
  size_t count;   // of those
};

constexpr struct : Keys {
  Key<Boxed<const DynamicCall>> call = next("call");
} dynamic_params;
const Op& dynamic_call_op = define_inner(Op{
    .name = "DynamicCall",
    .arguments = {},
    .kernel =
        [](Call& call) {
          const auto& dynamic = call.params[dynamic_params.call];
          const size_t inputs = call.in.size() - dynamic.count;
          size_t next = inputs;
          Params params = resolved_params(dynamic.params, [&](int) { return call.in[next++]; });
          call.out = run_all(*dynamic.op, call.in.subspan(0, inputs), params);
        },
    .makes_outputs = true,
});

void make_params_inputs(PlanIR& ir) {
  for (Node& n : ir.graph->nodes) {
    if (!n.op || !n.params.has_tensor() || n.op->stateful || n.op->effect) continue;
    if (n.op == &get_item_op()) {
      if (const Tensor place = place_in_key(*ir.graph, n.params.value(get_item_params.key).tensor())) {
        n.op = &row_op();
        n.params = Params();
        n.inputs.push_back(place.body()->symbol().value);
        continue;
      }
    }
    auto dynamic = std::make_shared<DynamicCall>(DynamicCall{n.op, n.params, 0});
    for (int p = 0; p < int(n.params.size()); ++p) {
      if (n.params.at(p).kind != Param::Kind::tensor) continue;
      ++dynamic->count;
      n.inputs.push_back(n.params.at(p).tensor().body()->symbol().value);
    }
    n.op = &dynamic_call_op;
    n.params = {Param(std::static_pointer_cast<void>(dynamic))};
  }
}

}  // namespace

void specialise(PlanIR& ir) {
  ir.traced = trace_completely(ir) || trace_completely(ir);
  if (!ir.traced) return;
  ir.graph_break = find_graph_break(ir);
  if (ir.graph_break) return;
  make_params_inputs(ir);
  ir.code.flush_subnormals = std::ranges::none_of(ir.graph->values, [](const Value& v) {
    return v.tensor.dtype() == DType::float64 || v.tensor.dtype() == DType::complex128;
  });
}

}  // namespace tapeflow::plan
