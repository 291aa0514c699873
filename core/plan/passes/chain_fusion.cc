// Chain fusion: chains of nodes that become one node.
//
// Input:     `nodes` in program order.
// Output:    the last node of each chain does the work of the whole chain; the others are gone.
// Invariant: a node is only taken into a chain if nobody else reads it. The order of additions stays.
//
// A rule is a function that looks at the last node of a possible chain and rewrites it. A new rule is such a
// function and its line in `rules`.
#include <algorithm>
#include <cstring>
#include <ranges>
#include <string_view>

#include "kernels/simd/vector.h"
#include "ops/ops.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

// The IR while chains are fused: from the last node to the first.
struct Chains {
  PlanIR& ir;
  std::vector<int> uses;
  std::vector<bool> taken = {};  // by node: part of a chain whose last node comes later

  // The node that computes a value for one reader alone.
  Node* sole_producer(ValueId v) {
    const int i = ir.values[v].node;
    return ir.root(v) == v && uses[v] == 1 && i != kNone ? &ir.node(i) : nullptr;
  }
  void take(const Node& n) { taken[size_t(&n - ir.graph->nodes.data())] = true; }
};

// ---- ((a + b) + c) + ... where most terms are mostly zeros, as gradients of slices or of looked-up rows are: they are
// added to one tensor, slice by slice

// A term is a tensor, or the inputs of an operation with `scatter_add`.
struct ScatterTerms {
  struct Term {
    const Op* scatter;  // null: a tensor
    Params params;
    size_t inputs;
  };
  std::vector<Term> terms;
};

template <class T> void add_terms(Call& call, const ScatterTerms& sum) {
  const Tensor& y = call.out[0];
  std::memset(y.mutable_raw(), 0, y.bytes());
  size_t at = 0;
  for (const ScatterTerms::Term& term : sum.terms) {
    const auto in = call.in.subspan(at, term.inputs);
    if (term.scatter)
      term.scatter->scatter_add(Call(*term.scatter, in, term.params), y);
    else if (at == 0)
      std::memcpy(y.mutable_raw(), in[0].raw(), y.bytes());
    else
      vector_kernels<T>().accumulate(in[0].data<T>(), y.mutable_data<T>(), y.size());
    at += term.inputs;
  }
}

constexpr struct : Keys {
  Key<Boxed<const ScatterTerms>> terms = next("terms");
} sum_params;
const Op& scatter_sum_op = define_inner(Op{
    .name = "ScatterSum",
    .arguments = {},
    .kernel =
        [](Call& call) {
          const auto& sum = call.params[sum_params.terms];
          call.out[0].dtype() == DType::float32 ? add_terms<float>(call, sum) : add_terms<double>(call, sum);
        },
});

// A sum of two tensors of one shape.
bool adds_equal_shapes(const PlanIR& ir, const Node& n) {
  if (n.op->planning.arithmetic != Arithmetic::add || !wide_floating.has(ir.dtype(n.first_output))) return false;
  const Shape& shape = ir.shape(n.first_output);
  return ir.shape(n.inputs[0]) == shape && ir.shape(n.inputs[1]) == shape;
}

bool fuse_scatter_sums(Chains& chains, Node& last) {
  PlanIR& ir = chains.ir;
  if (!adds_equal_shapes(ir, last)) return false;
  std::vector<ValueId> terms;  // last first
  for (Node* n = &last; n;) {
    terms.push_back(n->inputs[1]);
    Node* before = chains.sole_producer(n->inputs[0]);
    if (before && !adds_equal_shapes(ir, *before)) before = nullptr;
    if (before)
      chains.take(*before);
    else
      terms.push_back(n->inputs[0]);
    n = before;
  }
  auto scatter_of = [&](ValueId v) {
    const Node* producer = chains.sole_producer(v);
    return producer && producer->op->scatter_add ? producer : nullptr;
  };
  const auto scatters = std::ranges::count_if(terms, [&](ValueId v) { return scatter_of(v) != nullptr; });
  if (scatters < 2 || size_t(2 * scatters) < terms.size()) return false;
  auto sum = std::make_shared<ScatterTerms>();
  last.inputs.clear();
  for (ValueId v : terms | std::views::reverse) {
    const Node* scatter = scatter_of(v);
    sum->terms.push_back(scatter ? ScatterTerms::Term{scatter->op, scatter->params, scatter->inputs.size()}
                                 : ScatterTerms::Term{nullptr, Params(), 1});
    for (ValueId in : scatter ? std::span<const ValueId>(scatter->inputs) : std::span<const ValueId>(&v, 1))
      last.inputs.push_back(in);
  }
  last.op = &scatter_sum_op;
  last.params = {Param(std::static_pointer_cast<void>(sum))};
  return true;
}

// ---- a concatenation of concatenations along one axis

bool fuse_concatenations(Chains& chains, Node& last) {
  if (last.op != &concat_op()) return false;
  std::vector<ValueId> pending(last.inputs.begin(), last.inputs.end()), pieces;  // `pieces`: last first
  while (!pending.empty()) {
    const ValueId v = pending.back();
    pending.pop_back();
    const Node* inner = chains.sole_producer(v);
    if (!inner || inner->op != last.op || inner->params[concat_params.axis] != last.params[concat_params.axis]) {
      pieces.push_back(v);
      continue;
    }
    chains.take(*inner);
    pending.insert(pending.end(), inner->inputs.begin(), inner->inputs.end());
  }
  if (pieces.size() == last.inputs.size()) return false;
  last.inputs.clear();
  for (ValueId v : pieces | std::views::reverse) last.inputs.push_back(v);
  return true;
}

constexpr bool (*rules[])(Chains&, Node& last) = {fuse_scatter_sums, fuse_concatenations};

}  // namespace

void chain_fusion(PlanIR& ir) {
  Chains chains{ir, ir.count_uses()};
  chains.taken.assign(ir.graph->nodes.size(), false);
  bool changed = false;
  for (int i : ir.nodes | std::views::reverse)
    if (!chains.taken[size_t(i)])
      changed |= std::ranges::any_of(rules, [&](auto rule) { return rule(chains, ir.node(i)); });
  if (changed) ir.remove_dead_nodes();
}

}  // namespace tapeflow::plan
