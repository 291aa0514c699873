// The planner: runs the passes, again if the plan needs too much memory, and prints the IR between them.
#include <algorithm>
#include <string_view>

#include "control_flow/control_ops.h"
#include "graph/run.h"
#include "plan/passes.h"
#include "tensor/out_of_memory.h"

namespace tapeflow {
namespace {

struct Pass {
  std::string_view name;
  void (*run)(plan::PlanIR&);
};
constexpr Pass passes[] = {
    {"specialise", plan::specialise},
    {"scalar-replacement", plan::scalar_replacement},
    {"cse-and-views", plan::cse_and_views},
    {"rematerialise", plan::rematerialise},
    {"chain-fusion", plan::chain_fusion},
    {"elementwise-fusion", plan::elementwise_fusion},
    {"recompute", plan::recompute},
    {"epilogue-fusion", plan::epilogue_fusion},
    {"loop-fusion", plan::loop_fusion},
    {"schedule", plan::schedule},
    {"memory", plan::memory},
    {"emit", plan::emit},
};

// The IR after all passes, or those up to `last`.
std::unique_ptr<plan::PlanIR> run_passes(const Graph& graph, std::span<const Tensor> inputs, int rematerialisation,
                                         std::string_view last = {}) {
  auto ir = std::make_unique<plan::PlanIR>(graph, inputs);
  ir->rematerialisation = rematerialisation;
  for (const Pass& pass : passes) {
    pass.run(*ir);
    if (!ir->traced || ir->graph_break || pass.name == last) break;
  }
  return ir;
}

// The plan that computes least a second time of those within the budget.
std::unique_ptr<plan::PlanIR> plan_within(size_t budget, const Graph& graph, std::span<const Tensor> inputs) {
  auto ir = run_passes(graph, inputs, 0);
  if (!ir->traced || ir->graph_break || ir->code.bytes <= budget) return ir;
  size_t least = ir->code.bytes;
  for (int level = 1; level <= plan::most_rematerialisation; ++level) {
    ir = run_passes(graph, inputs, level);
    if (ir->code.bytes <= budget) return ir;
    least = std::min(least, ir->code.bytes);
  }
  throw OutOfMemory("tf.function: memory_budget is " + std::to_string(budget) + " bytes, but this call needs " +
                    std::to_string(least) +
                    " bytes for intermediate results, though values are computed a second time where that helps");
}

}  // namespace

Prepared prepare(const Graph& graph, std::span<const Tensor> inputs) {
  const size_t budget = memory_budget_of(graph);
  const auto ir = plan_within(budget, graph, inputs);
  if (!ir->traced) return {};
  if (!ir->graph_break) return {std::make_unique<Plan>(std::move(ir->code)), nullptr};
  auto split = Split::make(*ir->graph, ir->graph_break->begin, ir->graph_break->end, may_assign);
  if (split) split->each_graph([&](const Graph& part) { set_memory_budget(part, budget); });
  return {nullptr, std::move(split)};
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : passes) names.emplace_back(pass.name);
  return names;
}

std::string ir_after(const Graph& graph, std::span<const Tensor> inputs, std::string_view last_pass) {
  const size_t budget = memory_budget_of(graph);
  const int level = budget == kUnlimited ? 0 : plan_within(budget, graph, inputs)->rematerialisation;
  return plan::to_text(*run_passes(graph, inputs, level, last_pass));
}

}  // namespace tapeflow
