// Elementwise fusion: elementwise nodes of one size, with broadcast operands, comparisons and casts, and reductions
// of what they compute or read, become one step that goes over blocks of elements in the first-level cache.
//
// Input:     `nodes` in program order.
// Output:    `loops` and `steps`: every node is in one step, alone with its kernel or in a fusion; steps are in an
//            order in which they can run.
// Invariant: what a fused node reads of its own fusion it reads element by element. Nodes of a fusion that is not
//            small are connected by values of its size. The fused reductions of a step have one dtype and one table
//            length.
//
// Whether an operation can be fused is said by its entry: element_loops, or planning.reduction.
#include <algorithm>
#include <numeric>
#include <set>

#include "plan/fusion.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

// Elements of a fusion that is faster with any other nodes of its size. Larger ones stay apart if nothing connects
// them: each can be an epilogue of its own, and run in a lane of its own.
constexpr int64_t kSmallFusion = 1024;
constexpr size_t kMostFusedNodes = 96;

// Nodes whose operands are computed by steps so far, and that need not wait for others.
class ReadyNodes {
 public:
  explicit ReadyNodes(const PlanIR& ir)
      : waiting_(ir.graph->nodes.size(), 0),
        readers_(ir.graph->nodes.size()),
        in_fusion_(ir.graph->nodes.size(), false) {
    for (int i : ir.nodes) {
      std::set<int> producers;
      for (ValueId v : ir.node(i).inputs)
        if (ir.computed(ir.root(v))) producers.insert(ir.root_info(v).node);
      if (const int before = ir.runs_after(i); before != kNone) producers.insert(before);
      waiting_[size_t(i)] = int(producers.size());
      for (int p : producers) readers_[size_t(p)].push_back(i);
      if (producers.empty()) ready_.insert(i);
    }
  }

  const std::set<int>& list() const { return ready_; }
  const std::vector<int>& readers(int i) const { return readers_[size_t(i)]; }
  void complete(int i) {
    ready_.erase(i);
    for (int r : readers_[size_t(i)])
      if (--waiting_[size_t(r)] == 0) ready_.insert(r);
  }
  // Whether a node is in the fusion that is being built.
  bool in_fusion(int i) const { return in_fusion_[size_t(i)]; }
  void set_in_fusion(int i, bool yes) { in_fusion_[size_t(i)] = yes; }

 private:
  std::vector<int> waiting_;               // by node: for how many others
  std::vector<std::vector<int>> readers_;  // by node
  std::set<int> ready_;                    // in program order
  std::vector<bool> in_fusion_;
};

void find_loops(PlanIR& ir) {
  ir.loops.assign(ir.graph->nodes.size(), {});
  for (int i : ir.nodes) {
    const Node& n = ir.node(i);
    if (!n.op->element_loops || n.outputs != 1 || ir.elements_of(n) == 0) continue;
    ir.loops[size_t(i)] = n.op->element_loops(ir.dtype(n.inputs[n.inputs.size() - 1]), ir.dtype(n.first_output));
  }
}

// By value: the first value of its connected component. Elementwise nodes connect values of one size.
std::vector<ValueId> connected_components(const PlanIR& ir) {
  std::vector<ValueId> component(ir.values.size());
  std::iota(component.begin(), component.end(), ValueId(0));
  auto first_of = [&](ValueId v) {
    while (component[v] != v) v = component[v] = component[component[v]];
    return v;
  };
  for (int i : ir.nodes) {
    const Node& n = ir.node(i);
    if (!ir.loops[size_t(i)]) continue;
    for (ValueId v : n.inputs)
      if (ir.elements(ir.root(v)) == ir.elements_of(n)) {
        const ValueId a = first_of(ir.root(v)), b = first_of(n.first_output);
        component[std::max(a, b)] = std::min(a, b);
      }
  }
  for (ValueId v = 0; v < component.size(); ++v) component[v] = first_of(v);
  return component;
}

// Adds to a fusion what is ready and fits, and what is ready then.
void grow(PlanIR& ir, Step& step, const std::vector<ValueId>& component, ReadyNodes& ready) {
  const Node& first = ir.node(step.fused[0]);
  const int64_t size = ir.elements_of(first);
  Placement placement;
  // What the fusion computes is read element by element; an operand that is broadcast must be there before.
  auto reads_elementwise = [&](const Node& n) {
    return std::ranges::all_of(n.inputs, [&](ValueId v) {
      const int producer = ir.root_info(v).node;
      return producer == kNone || !ready.in_fusion(producer) || ir.elements(v) == size;
    });
  };
  auto fits = [&](int candidate) {
    const Node& n = ir.node(candidate);
    if (size >= kSmallFusion && (!n.outputs || component[n.first_output] != component[first.first_output]))
      return false;
    return reads_elementwise(n) && fits_fusion(ir, candidate, size, &step.row_length, placement);
  };
  ready.set_in_fusion(step.fused[0], true);
  while (step.fused.size() < kMostFusedNodes) {
    const auto found = std::ranges::find_if(ready.list(), fits);
    if (found == ready.list().end()) break;
    const int i = *found;
    step.fused.push_back(i);
    ready.set_in_fusion(i, true);
    ready.complete(i);
  }
  for (int i : step.fused) {
    ir.values[ir.node(i).first_output].fused = true;
    ready.set_in_fusion(i, false);
  }
  std::ranges::sort(step.fused);
}

// Whether a small elementwise node computes, alone or with others like it, what a large one of the component reads: the
// fusion of that component goes on further if the small ones ran before it.
bool leads_into(const PlanIR& ir, int small, int64_t size, ValueId in_component, const std::vector<ValueId>& component,
                const ReadyNodes& ready) {
  constexpr int64_t kMuchSmaller = 16;
  constexpr size_t kFarthest = 8;
  std::vector<int> chain{small};
  for (size_t k = 0; k < chain.size() && k < kFarthest; ++k) {
    if (!ir.loops[size_t(chain[k])] || ir.elements_of(ir.node(chain[k])) * kMuchSmaller > size) continue;
    for (int reader : ready.readers(chain[k])) {
      const Node& n = ir.node(reader);
      if (ir.loops[size_t(reader)] && ir.elements_of(n) == size && component[n.first_output] == in_component)
        return true;
      chain.push_back(reader);
    }
  }
  return false;
}

// The node to begin the next fusion with, where `first` is the first one that is ready.
int begin_of_fusion(const PlanIR& ir, int first, const std::vector<ValueId>& component, const ReadyNodes& ready) {
  const int64_t size = ir.elements_of(ir.node(first));
  if (!ir.loops[size_t(first)] || size < kSmallFusion) return first;
  const ValueId in_component = component[ir.node(first).first_output];
  for (int i : ready.list())
    if (i != first && leads_into(ir, i, size, in_component, component, ready)) return i;
  return first;
}

// ---- reductions

// Whether a node is a reduction that a step can do beside those it has.
bool can_fuse_reduction(const PlanIR& ir, const Node& n, const Step& step) {
  if (n.op->planning.reduction == ReductionKind::none) return false;
  const auto [dtype, shape] = ir.spec(n.inputs[0]);
  if (!wide_floating.has(dtype) || !ir.covers_root(n.inputs[0])) return false;
  if (!step.reductions.empty() && ir.dtype(ir.node(step.reductions[0]).first_output) != dtype) return false;
  const int64_t length = reduction_table(ir, n).length;
  return length != 0 && (length == shape.elements() || step.table_length == 0 || step.table_length == length);
}
void add_reduction(const PlanIR& ir, int i, Step& step) {
  const Node& n = ir.node(i);
  if (const int64_t length = reduction_table(ir, n).length; length != ir.elements(n.inputs[0]))
    step.table_length = length;
  step.reductions.push_back(i);
}

// Adds a reduction to the fusion that computes its operand.
bool fuse_with_producer(PlanIR& ir, int i) {
  const Node& n = ir.node(i);
  if (n.inputs.size() != 1) return false;
  const ValueInfo& x = ir.root_info(n.inputs[0]);
  if (!x.fused || !can_fuse_reduction(ir, n, ir.steps[size_t(x.step)])) return false;
  add_reduction(ir, i, ir.steps[size_t(x.step)]);
  ir.values[n.first_output].step = x.step;
  return true;
}

// Adds to a fusion the reductions that are ready of operands that it reads.
void fuse_reductions_of_operands(PlanIR& ir, Step& step, ReadyNodes& ready) {
  const int64_t size = ir.elements_of(step);
  if (size < kWorthFusingReduction) return;
  std::vector<int> added;
  for (int candidate : ready.list()) {
    const Node& n = ir.node(candidate);
    if (n.inputs.size() != 1 || ir.root_info(n.inputs[0]).fused || ir.elements(n.inputs[0]) != size ||
        !can_fuse_reduction(ir, n, step))
      continue;
    auto reads_operand = [&](int i) { return reads_in_full(ir, ir.node(i), n.inputs[0], size); };
    if (std::ranges::none_of(step.fused, reads_operand)) continue;
    add_reduction(ir, candidate, step);
    added.push_back(candidate);
  }
  for (int i : added) ready.complete(i);
}

// The elementwise node that is ready and reads the operand of a large reduction: both can be done in one pass.
int reader_of_operand(PlanIR& ir, int reduction, const ReadyNodes& ready) {
  const Node& n = ir.node(reduction);
  const int64_t size = n.inputs.size() == 1 ? ir.elements(n.inputs[0]) : 0;
  if (size < kWorthFusingReduction || !can_fuse_reduction(ir, n, {})) return kNone;
  Placement placement;
  for (int i : ready.list())
    if (int64_t rows = 0;
        fits_fusion(ir, i, size, &rows, placement) && reads_in_full(ir, ir.node(i), n.inputs[0], size))
      return i;
  return kNone;
}

}  // namespace

void elementwise_fusion(PlanIR& ir) {
  find_loops(ir);
  const std::vector<ValueId> component = connected_components(ir);
  ReadyNodes ready(ir);
  Placement placement;
  while (!ready.list().empty()) {
    int next = *ready.list().begin();
    if (const int reader = reader_of_operand(ir, next, ready); reader != kNone) next = reader;
    next = begin_of_fusion(ir, next, component, ready);
    ready.complete(next);
    Step step;
    if (fits_fusion(ir, next, ir.elements_of(ir.node(next)), &step.row_length, placement)) {
      step.fused.push_back(next);
      grow(ir, step, component, ready);
      fuse_reductions_of_operands(ir, step, ready);
    } else {
      if (fuse_with_producer(ir, next)) continue;
      step.kernel = next;
    }
    ir.add_step(std::move(step));
  }
}

}  // namespace tapeflow::plan
