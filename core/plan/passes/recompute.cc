// Recompute: fused nodes sink to the fusion that reads them.
//
// Input:     `steps` with fusions.
// Output:    a fused node that only later fusions read is computed by the first of these, from operands that are in
//            memory anyway, instead of being written by one fusion and read back by the next.
// Invariant: a node is still computed once, before it is read. A fusion never becomes empty. Operands of fused
//            reductions are still read by their fusion.
#include <algorithm>
#include <limits>
#include <map>
#include <ranges>
#include <utility>

#include "plan/fusion.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

// Fewest elements whose round trip to memory is worth avoiding.
constexpr int64_t kWorthSinking = 1 << 16;

class Sinking {
 public:
  explicit Sinking(PlanIR& ir) : ir_(ir), uses_(ir.count_uses()), readers_(ir.graph->nodes.size()) {
    for (int i : ir.nodes)
      for (ValueId v : ir.node(i).inputs)
        if (const int producer = ir.root_info(v).node; ir.computed(ir.root(v)) && producer != kNone)
          if (auto& list = readers_[size_t(producer)]; list.empty() || list.back() != i) list.push_back(i);
  }

  void run() {
    for (size_t s = 0; s < ir_.steps.size(); ++s)
      if (const Step& step = ir_.steps[s]; !step.fused.empty() && ir_.elements_of(step) >= kWorthSinking) sink(int(s));
  }

 private:
  int step_of(int i) const { return ir_.values[ir_.node(i).first_output].step; }
  void set_step(int i, int step) { ir_.values[ir_.node(i).first_output].step = step; }

  // The first fusion that reads a node, if all its readers are fused nodes of other steps than `at`.
  int target_of(int i, int at, int64_t size) {
    const Node& n = ir_.node(i);
    int target = std::numeric_limits<int>::max();
    int64_t uses = 0;
    for (int r : readers_[size_t(i)]) {
      const Node& reader = ir_.node(r);
      if (step_of(r) == at || !ir_.values[reader.first_output].fused || ir_.elements_of(reader) != size ||
          !reads_in_full(ir_, reader, n.first_output, size))
        return kNone;
      uses += std::ranges::count_if(reader.inputs, [&](ValueId v) { return ir_.root(v) == n.first_output; });
      target = std::min(target, step_of(r));
    }
    return uses > 0 && uses == uses_[n.first_output] ? target : kNone;
  }

  // Whether the operands of a node stay in memory for its readers.
  bool operands_are_kept(int i, int at) {
    return std::ranges::all_of(ir_.node(i).inputs, [&](ValueId v) {
      const int producer = ir_.root_info(v).node;
      if (producer == kNone || !ir_.values[ir_.node(producer).first_output].fused || step_of(producer) != at)
        return true;
      return std::ranges::any_of(readers_[size_t(producer)], [&](int r) { return r != i && step_of(r) != at; });
    });
  }

  // Whether each reduction of an operand still finds a fused node that reads the same.
  bool reductions_are_served(const Step& step, int without, int at, int64_t size) {
    return std::ranges::all_of(step.reductions, [&](int reduction) {
      const ValueId x = ir_.node(reduction).inputs[0];
      if (ir_.root_info(x).fused && ir_.root_info(x).step == at) return true;
      return std::ranges::any_of(step.fused, [&](int i) {
        return i != without && step_of(i) == at && reads_in_full(ir_, ir_.node(i), x, size);
      });
    });
  }

  void sink(int at) {
    Step& step = ir_.steps[size_t(at)];
    const int64_t size = ir_.elements_of(step);
    std::vector<int> sunk;
    std::map<int, int64_t> row_lengths;  // of the fusions they sink to
    for (int i : step.fused | std::views::reverse) {
      const int target = target_of(i, at, size);
      if (target == kNone || !operands_are_kept(i, at) || !reductions_are_served(step, i, at, size)) continue;
      int64_t& rows = row_lengths.try_emplace(target, ir_.steps[size_t(target)].row_length).first->second;
      Placement placement;
      if (!fits_fusion(ir_, i, size, &rows, placement)) continue;
      set_step(i, target);
      sunk.push_back(i);
    }
    if (sunk.size() == step.fused.size())
      for (int i : std::exchange(sunk, {})) set_step(i, at);
    if (sunk.empty()) return;
    for (auto [target, rows] : row_lengths) ir_.steps[size_t(target)].row_length = rows;
    std::erase_if(step.fused, [&](int i) { return step_of(i) != at; });
    for (int i : sunk) {
      std::vector<int>& fused = ir_.steps[size_t(step_of(i))].fused;
      fused.insert(std::ranges::lower_bound(fused, i), i);
    }
    step.row_length = 0;
    Placement placement;
    for (int i : step.fused) fits_fusion(ir_, i, size, &step.row_length, placement);
  }

  PlanIR& ir_;
  std::vector<int> uses_;
  std::vector<std::vector<int>> readers_;  // by node
};

}  // namespace

void recompute(PlanIR& ir) { Sinking(ir).run(); }

}  // namespace tapeflow::plan
