#include "graph/scatter_sums.h"

#include "tensor/variable.h"

namespace tapeflow {
namespace {

bool adds_equal_shapes(const Graph& graph, const Node& n) {
  const auto spec = [&](ValueId v) -> const Tensor& { return graph.values[v].tensor; };
  if (n.op->planning.arithmetic != Arithmetic::add || n.inputs[0] == n.inputs[1]) return false;
  const Tensor& sum = spec(n.first_output);
  return sum.size() >= 0 && wide_floating.has(sum.dtype()) && spec(n.inputs[0]).shape() == sum.shape() &&
         spec(n.inputs[1]).shape() == sum.shape();
}

}  // namespace

ScatterSums::ScatterSums(const Graph& graph, const Needs& needs, std::span<const ValueId> wanted) : graph_(graph) {
  std::vector<int> uses;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (!needs.nodes[i] || !n.op->scatter_add || n.outputs != 1) continue;
    const int reader = needs.last_use[n.first_output];
    if (reader < 0 || size_t(reader) >= graph.nodes.size()) continue;
    const Node& addition = graph.nodes[size_t(reader)];
    if (!adds_equal_shapes(graph, addition) || addition.inputs[1] != n.first_output) continue;
    if (uses.empty()) {
      uses.resize(graph.values.size());
      for (ValueId v : wanted) ++uses[v];
      for (size_t k = 0; k < graph.nodes.size(); ++k)
        if (needs.nodes[k]) for_each_operand(graph.nodes[k], [&](ValueId v) { ++uses[v]; });
    }
    if (uses[n.first_output] != 1) continue;
    deferred_.resize(graph.nodes.size());
    deferred_[i] = 1;
  }
}

void ScatterSums::keep(ValueId term, std::span<const Tensor> in, const Params& params) {
  Kept& kept = kept_.emplace_back(Kept{term, graph_.nodes[size_t(graph_.values[term].node)].op, {}, params});
  for (const Tensor& t : in) kept.in.push_back(t);
}

Tensor ScatterSums::sum(Tensor first, const Node& addition) {
  Tensor total = first.unique() ? std::move(first) : copy_of(first);
  const auto term = kept_.begin() + (find(addition.inputs[1]) - kept_.cbegin());
  term->op->scatter_add(Call(*term->op, term->in, term->params), total);
  *term = std::move(kept_.back());
  kept_.pop_back();
  return total;
}

}  // namespace tapeflow
