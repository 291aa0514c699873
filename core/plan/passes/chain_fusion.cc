// Chains that become one node. Gradients that come from many slices of one value are added up slice by slice, instead
// of as tensors that are mostly zeros; those that come from rows are put behind one another once.
#include <algorithm>
#include <cstring>
#include <ranges>
#include <string_view>

#include "kernels/simd/vector.h"
#include "plan/planner.h"

namespace tapeflow {
namespace {

// The terms of a sum in their order. A term is a tensor, or what an operation with `add_to` makes of its inputs.
struct SpreadTerms {
  struct Term {
    const Op* spread;  // null: a tensor
    Params params;
    size_t inputs;
  };
  std::vector<Term> terms;
};

template <class T> void add_terms(Call& call, const SpreadTerms& sum) {
  const Tensor& y = call.out[0];
  std::memset(y.mutable_raw(), 0, y.bytes());
  size_t at = 0;
  for (const SpreadTerms::Term& term : sum.terms) {
    const auto in = call.in.subspan(at, term.inputs);
    if (term.spread)
      term.spread->add_to(Call(*term.spread, in, term.params), y);
    else if (at == 0)
      std::memcpy(y.mutable_raw(), in[0].raw(), y.bytes());
    else
      vector_kernels<T>().accumulate(in[0].data<T>(), y.mutable_data<T>(), y.size());
    at += term.inputs;
  }
}

const Op& spread_sum_op = define_inner(Op{
    .name = "SpreadSum",
    .arguments = {},
    .kernel =
        [](Call& call) {
          const auto& sum = *static_cast<const SpreadTerms*>(call.params[0].object.get());
          call.out[0].dtype() == DType::float32 ? add_terms<float>(call, sum) : add_terms<double>(call, sum);
        },
});

}  // namespace

// A sum of two tensors of one shape.
bool Planner::adds_alike(const Node& n) {
  if (n.op->planning.arithmetic != Arithmetic::add || !wide_floating.has(spec(n.first_output).dtype)) return false;
  const Shape shape = spec(n.first_output).shape;
  return spec(n.inputs[0]).shape == shape && spec(n.inputs[1]).shape == shape;
}

// The node that makes a value for one reader alone.
Node* Planner::maker_for_one(ValueId v, std::span<const int> uses) {
  return meant(v) == v && uses[v] == 1 && info_[v].node != kNone ? &graph().nodes[size_t(info_[v].node)] : nullptr;
}

void Planner::join_chains() {
  std::vector<int> uses(info_.size(), 0);
  for (int i : nodes_)
    for (ValueId v : graph().nodes[size_t(i)].inputs) ++uses[meant(v)];
  for (ValueId v : graph().outputs) ++uses[meant(v)];
  for (auto& [variable, v] : stores_) ++uses[meant(v)];
  std::vector<bool> joined(graph().nodes.size(), false);
  bool changed = false;
  for (auto i = nodes_.rbegin(); i != nodes_.rend(); ++i) {
    if (joined[size_t(*i)]) continue;
    Node& last = graph().nodes[size_t(*i)];
    if (adds_alike(last))
      changed |= join_spreads(last, uses, joined);
    else if (std::string_view(last.op->name) == "ConcatV2")
      changed |= join_pieces(last, uses, joined);
  }
  if (changed) drop_unused();
}

// ((a + b) + c) + ... where most terms are spread out.
bool Planner::join_spreads(Node& last, std::span<const int> uses, std::vector<bool>& joined) {
  std::vector<ValueId> terms;  // last first
  for (Node* n = &last; n;) {
    terms.push_back(n->inputs[1]);
    Node* before = maker_for_one(n->inputs[0], uses);
    if (before && !adds_alike(*before)) before = nullptr;
    if (before)
      joined[size_t(before - graph().nodes.data())] = true;
    else
      terms.push_back(n->inputs[0]);
    n = before;
  }
  auto spread_of = [&](ValueId v) {
    const Node* maker = maker_for_one(v, uses);
    return maker && maker->op->add_to ? maker : nullptr;
  };
  const auto spread = std::ranges::count_if(terms, [&](ValueId v) { return spread_of(v) != nullptr; });
  if (spread < 2 || size_t(2 * spread) < terms.size()) return false;
  auto sum = std::make_shared<SpreadTerms>();
  last.inputs.clear();
  for (ValueId v : terms | std::views::reverse) {
    const Node* maker = spread_of(v);
    sum->terms.push_back(maker ? SpreadTerms::Term{maker->op, maker->params, maker->inputs.size()}
                               : SpreadTerms::Term{nullptr, Params(), 1});
    for (ValueId in : maker ? std::span<const ValueId>(maker->inputs) : std::span<const ValueId>(&v, 1))
      last.inputs.push_back(in);
  }
  last.op = &spread_sum_op;
  last.params = {Param(std::static_pointer_cast<void>(sum))};
  return true;
}

// A concatenation of concatenations along one axis.
bool Planner::join_pieces(Node& last, std::span<const int> uses, std::vector<bool>& joined) {
  std::vector<ValueId> waiting(last.inputs.begin(), last.inputs.end()), pieces;  // `pieces`: last first
  while (!waiting.empty()) {
    const ValueId v = waiting.back();
    waiting.pop_back();
    const Node* inner = maker_for_one(v, uses);
    if (!inner || inner->op != last.op || inner->params.integer(0) != last.params.integer(0)) {
      pieces.push_back(v);
      continue;
    }
    joined[size_t(inner - graph().nodes.data())] = true;
    waiting.insert(waiting.end(), inner->inputs.begin(), inner->inputs.end());
  }
  if (pieces.size() == last.inputs.size()) return false;
  last.inputs.clear();
  for (ValueId v : pieces | std::views::reverse) last.inputs.push_back(v);
  return true;
}

}  // namespace tapeflow
