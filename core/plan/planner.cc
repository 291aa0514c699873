// The planner: runs the passes, and prints the IR between them.
#include <algorithm>
#include <string_view>

#include "control_flow/control_ops.h"
#include "plan/passes.h"

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
    {"chain-fusion", plan::chain_fusion},
    {"elementwise-fusion", plan::elementwise_fusion},
    {"recompute", plan::recompute},
    {"epilogue-fusion", plan::epilogue_fusion},
    {"loop-fusion", plan::loop_fusion},
    {"schedule", plan::schedule},
    {"memory", plan::memory},
    {"emit", plan::emit},
};

}  // namespace

Prepared prepare(const Graph& graph, std::span<const Tensor> inputs) {
  plan::PlanIR ir(graph, inputs);
  for (const Pass& pass : passes) {
    pass.run(ir);
    if (!ir.traced) return {};
    if (ir.graph_break)
      return {nullptr, Split::make(*ir.graph, ir.graph_break->begin, ir.graph_break->end, may_assign)};
  }
  return {std::make_unique<Plan>(std::move(ir.code)), nullptr};
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : passes) names.emplace_back(pass.name);
  return names;
}

std::string ir_after(const Graph& graph, std::span<const Tensor> inputs, std::string_view last_pass) {
  plan::PlanIR ir(graph, inputs);
  for (const Pass& pass : passes) {
    pass.run(ir);
    if (!ir.traced || ir.graph_break || pass.name == last_pass) break;
  }
  return plan::to_text(ir);
}

}  // namespace tapeflow
