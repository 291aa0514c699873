// Schedule: the order of the steps, and parallel regions of steps that run at the same time.
//
// Input:     `steps` in an order in which they can run.
// Output:    `steps` in the order in which they do run; `regions`, whose lanes are neighbouring steps.
// Invariant: a step comes after all steps whose results it reads, and after those that read a variable which it
//            writes; steps that have an effect, keep state or run graphs keep their order. A step that may fail
//            stays in front of the later steps of the program, unless both are in one region.
#include <algorithm>
#include <map>

#include "base/parallel.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

// Whether a kernel may run beside others: it has no effect, keeps no state and calls neither graphs nor Python.
bool may_run_beside(const Graph& g, const Node& n) {
  if (n.op->stateful || n.op->effect || find_op(n.op->name) != n.op) return false;
  return std::ranges::none_of(n.inputs, [&](ValueId v) { return g.values[v].tensor.dtype() == DType::variant; });
}

RegionStep described(const PlanIR& ir, const Step& step) {
  RegionStep result;
  if (!step.is_fusion()) {
    const Node& n = ir.node(step.kernel);
    result.cost = cost_of(*ir.graph, n, thread_count());
    result.alone = !may_run_beside(*ir.graph, n);
    result.may_fail = may_fail(*ir.graph, n);
    result.fixed_results = !n.op->makes_outputs;
  }
  if (!step.fused.empty())
    result.cost += cost_of_fusion(ir.elements_of(step), step.fused.size() + step.reductions.size(), thread_count());
  return result;
}

// Which steps wait for which: for what they read, for those that read a variable before they write it, and one that
// runs alone for the one before.
void find_dependencies(const PlanIR& ir, std::vector<RegionStep>& steps) {
  std::map<ValueId, std::vector<ValueId>> viewed;  // the variables that a value may be a view of
  std::map<ValueId, std::vector<int>> readers;     // of a variable
  for (const auto& [variable, v] : ir.variables) viewed[v].push_back(v);
  int last_alone = kNone;
  for (int s = 0; s < int(steps.size()); ++s) {
    RegionStep& step = steps[size_t(s)];
    if (step.alone && last_alone != kNone) step.before.push_back(last_alone);
    if (step.alone) last_alone = s;
    ir.steps[size_t(s)].each_node([&](int i) {
      const Node& n = ir.node(i);
      std::vector<ValueId> seen;
      for (ValueId v : n.inputs) {
        const ValueInfo& read = ir.root_info(v);
        if (read.kind == ValueInfo::Kind::computed && read.step != s) step.before.push_back(read.step);
        if (auto it = viewed.find(ir.root(v)); it != viewed.end())
          for (ValueId variable : it->second)
            if (std::ranges::find(seen, variable) == seen.end()) seen.push_back(variable);
      }
      for (ValueId variable : seen) readers[variable].push_back(s);
      for (uint32_t k = 0; n.op->makes_outputs && !seen.empty() && k < n.outputs; ++k)
        viewed[n.first_output + k] = seen;
    });
  }
  for (const auto& [variable, v] : ir.stores) {
    const int writer = ir.root_info(v).step;
    const auto read = std::ranges::find(ir.variables, variable, &PlanIR::VariableValue::variable);
    if (writer == kNone || read == ir.variables.end()) continue;
    for (int reader : readers[read->value])
      if (reader != writer) steps[size_t(std::max(reader, writer))].before.push_back(std::min(reader, writer));
  }
}

void number_lanes(PlanIR& ir, const ParallelRegion& region) {
  bool fails = false;
  size_t s = region.first;
  for (size_t end : region.ends) {
    for (; s < end; ++s) {
      ir.steps[s].lane = int(ir.lane_may_fail.size());
      if (!ir.steps[s].is_fusion()) fails |= may_fail(*ir.graph, ir.node(ir.steps[s].kernel));
    }
    ir.lane_may_fail.push_back(false);
  }
  std::fill(ir.lane_may_fail.end() - std::ptrdiff_t(region.ends.size()), ir.lane_may_fail.end(), fails);
}

}  // namespace

void schedule(PlanIR& ir) {
  if (ir.rematerialisation > 0) return;  // lanes share no memory
  std::vector<RegionStep> steps;
  for (const Step& step : ir.steps) steps.push_back(described(ir, step));
  const int threads = lane_limit();
  if (threads < 2 || !worth_scheduling(steps)) return;
  find_dependencies(ir, steps);
  RegionSchedule found = find_parallel_regions(steps, threads);
  if (found.regions.empty()) return;
  std::vector<Step> ordered;
  std::vector<int> place(steps.size());
  for (int s : found.order) {
    place[size_t(s)] = int(ordered.size());
    ordered.push_back(std::move(ir.steps[size_t(s)]));
    ordered.back().program_order = s;
  }
  ir.steps = std::move(ordered);
  ir.number_steps();
  for (const ParallelRegion& region : found.regions) {
    number_lanes(ir, region);
    for (size_t s = region.ends[0]; region.pipelined && s < region.ends[1]; ++s)
      for (int b : steps[size_t(ir.steps[s].program_order)].before)
        if (const int at = place[size_t(b)]; at >= int(region.first) && at < int(region.ends[0]))
          ir.steps[s].after = std::max(ir.steps[s].after, at);
  }
  ir.regions = std::move(found.regions);
}

}  // namespace tapeflow::plan
