// Loop fusion: an arithmetic node of a fusion runs in one loop with the nodes that compute its operands.
//
// Where loops can be compiled (base/compiled_loop.h) the programs of fusions do more than this pass, which has nothing
// to do then.
//
// Input:     `steps` with fusions.
// Output:    `fused_loops` by outer node, and `inlined`, the nodes that they compute; inlined nodes stand right
//            before the outer node.
// Invariant: nobody but the outer node reads an inlined node. Each operation is rounded by itself, so results keep
//            their bits.
#include <algorithm>

#include "base/compiled_loop.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

// Fewest elements for which setting up a fused loop pays.
constexpr int64_t kWorthFusing = 2048;

Arithmetic arithmetic_of(const Node& n) {
  const Arithmetic f = n.op->planning.arithmetic;
  return int(f) < kArithmetics ? f : Arithmetic::none;
}

void fuse_loops(PlanIR& ir, Step& step, const std::vector<int>& uses) {
  const int64_t size = ir.elements_of(step);
  if (size < kWorthFusing) return;
  const std::set<int> fused(step.fused.begin(), step.fused.end());
  std::set<int> inlined;
  // The fused node that computes an operand for nobody else.
  auto producer = [&](const Node& n, ValueId v) {
    const int i = ir.root_info(v).node;
    if (i == kNone || !fused.contains(i) || inlined.contains(i) || uses[ir.root(v)] != 1 || ir.values[v].offset != 0)
      return kNone;
    const bool fits = arithmetic_of(ir.node(i)) != Arithmetic::none && ir.dtype(v) == ir.dtype(n.first_output) &&
                      ir.elements(v) == size;
    return fits ? i : kNone;
  };
  for (auto outer = step.fused.rbegin(); outer != step.fused.rend(); ++outer) {
    const Node& n = ir.node(*outer);
    const Arithmetic operation = arithmetic_of(n);
    const DType dtype = ir.dtype(n.first_output);
    if (inlined.contains(*outer) || n.inputs.size() != 2 || operation == Arithmetic::none || !wide_floating.has(dtype))
      continue;
    auto fuse = [&](int left, int right) {
      auto inner = [&](int i) { return i == kNone ? Arithmetic::first : arithmetic_of(ir.node(i)); };
      FusedLoop loop{{}, left, right, commutes(operation) && inner(left) < inner(right)};
      if (loop.swapped) std::swap(left, right);
      loop.kernel = find_combination(dtype == DType::float64, operation, inner(left), inner(right));
      if (!loop.kernel.loop) return false;
      ir.fused_loops[*outer] = loop;
      for (int i : {left, right})
        if (i != kNone) inlined.insert(i);
      return true;
    };
    const int left = producer(n, n.inputs[0]), right = producer(n, n.inputs[1]);
    fuse(left, right) || fuse(left, kNone) || fuse(kNone, right);
  }
  if (inlined.empty()) return;
  std::vector<int> ordered;
  for (int i : step.fused) {
    if (inlined.contains(i)) continue;
    if (auto it = ir.fused_loops.find(i); it != ir.fused_loops.end())
      for (int inner : {it->second.left, it->second.right})
        if (inner != kNone) ordered.push_back(inner);
    ordered.push_back(i);
  }
  step.fused = std::move(ordered);
  ir.inlined.insert(inlined.begin(), inlined.end());
}

}  // namespace

void loop_fusion(PlanIR& ir) {
  if (can_compile_loops()) return;
  const std::vector<int> uses = ir.count_uses();
  for (Step& step : ir.steps)
    if (!step.fused.empty()) fuse_loops(ir, step, uses);
}

}  // namespace tapeflow::plan
