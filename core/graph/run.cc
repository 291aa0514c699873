// Running graphs: a plan is made for each set of input shapes and kept with the graph.
#include "graph/run.h"

#include <algorithm>

#include "autodiff/numerics.h"
#include "graph/plan.h"

namespace tapeflow {
namespace {

constexpr size_t kMostPlans = 8;
struct Plans {
  std::vector<std::unique_ptr<Plan>> list;
  bool none = false;  // this graph cannot be planned
};

Plan* plan_for(const Graph& graph, std::span<const Tensor> inputs) {
  if (!graph.plans) graph.plans = std::make_shared<Plans>();
  auto& plans = *static_cast<Plans*>(graph.plans.get());
  if (plans.none) return nullptr;
  for (auto& p : plans.list)
    if (p->fits(inputs)) return p.get();
  std::unique_ptr<Plan> plan;
  try {
    plan = Plan::make(graph, inputs);
  } catch (const Error&) {
    return nullptr;  // it cannot run with these inputs; running it says why
  }
  if (!plan) {
    plans.none = true;
    return nullptr;
  }
  if (plans.list.size() == kMostPlans) plans.list.erase(plans.list.begin());
  plans.list.push_back(std::move(plan));
  return plans.list.back().get();
}

}  // namespace

std::vector<NodesAtOnce> sections_of(const Graph& graph) {
  Tensors inputs;
  for (ValueId v : graph.inputs) inputs.push_back(graph.values[v].tensor);
  auto* plans = static_cast<Plans*>(graph.plans.get());
  const Plan* plan = nullptr;
  if (plans && !plans->list.empty())
    plan = plans->list.back().get();
  else if (std::ranges::all_of(inputs, [](const Tensor& t) { return t.size() >= 0; }))
    plan = plan_for(graph, inputs);
  return plan ? plan->sections() : std::vector<NodesAtOnce>();
}

void run_graph(const Graph& graph, std::span<const Tensor> inputs, Tensors& outputs) {
  EnterStage nowhere(nullptr);
  PauseRecording unheard;
  outputs.clear();
  if (NumericsCheck::current()) {  // it must hear of every node
    NumericsCheck::listen_again();
    outputs = interpret(graph, inputs);
    return;
  }
  if (Plan* plan = plan_for(graph, inputs)) {
    bool& in_kernel = thread_state().in_kernel;
    struct Inside {
      bool &flag, before;
      ~Inside() { flag = before; }
    } inside{in_kernel, in_kernel};
    in_kernel = true;
    if (plan->run(inputs, outputs)) return;
  }
  outputs = interpret(graph, inputs);
}

Tensors run_graph(const Graph& graph, std::span<const Tensor> inputs) {
  Tensors outputs;
  run_graph(graph, inputs, outputs);
  return outputs;
}

}  // namespace tapeflow
