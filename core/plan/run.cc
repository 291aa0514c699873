// Running graphs: a plan is made for each set of input shapes and kept with the graph.
#include "graph/run.h"

#include <algorithm>
#include <utility>

#include "autodiff/numerics.h"
#include "base/forget_error.h"
#include "plan/plan.h"

namespace tapeflow {
namespace {

// A plan does not pay for shapes that never come again: after the first few, shapes must have been seen before.
constexpr size_t kFirstPlans = 4, kMostSeen = 128, kMostRunning = 4;
constexpr int kPatience = 64, kOften = 4;  // after so many plans, shapes must come so often
// Plans that are kept whatever memory they hold; and those that are kept as long as all of them hold little, so that
// each finds its memory in the caches.
constexpr size_t kFewPlans = 8, kMostPlans = 16, kLittleMemory = size_t(4) << 20;
constexpr int64_t kIdle = 256;  // runs of the graph without a plan after which another one takes its place
struct Plans {
  std::vector<Prepared> list;
  int64_t runs = 0;
  bool none = false;  // this graph cannot be planned
  int made = 0;
  size_t memory_budget = kUnlimited;
  std::vector<size_t> seen;  // hashes of shapes without a plan, the latest last
};

bool fits(const Prepared& p, std::span<const Tensor> inputs) {
  return p.plan ? p.plan->fits(inputs) : p.split->fits(inputs);
}
bool running(const Prepared& p) { return p.plan ? p.plan->running() : p.split->running(); }

bool has_room(const Plans& plans) {
  if (plans.list.size() < kFewPlans) return true;
  size_t bytes = 0;
  for (const Prepared& p : plans.list) bytes += p.plan ? p.plan->bytes() : 0;
  return plans.list.size() < kMostPlans && bytes <= kLittleMemory;
}

// Whether another plan may be made. If plans in use gave way to each other, planning would cost more than it saves,
// but only plans keep to a memory budget.
bool make_room(Plans& plans) {
  if (has_room(plans)) return true;
  const auto idle = std::ranges::min_element(plans.list, {}, &Prepared::last_run);
  const bool in_use = plans.runs - idle->last_run < kIdle && plans.memory_budget == kUnlimited;
  if (in_use || running(*idle)) return false;
  plans.list.erase(idle);
  return true;
}

bool worth_preparing(Plans& plans, std::span<const Tensor> inputs) {
  if (plans.made < int(kFirstPlans) || plans.memory_budget != kUnlimited) return true;
  size_t hash = 0;
  for (const Tensor& t : inputs)
    for (int64_t d : t.shape()) hash = hash * 1000003 + size_t(d);
  const auto times = std::ranges::count(plans.seen, hash);
  if (times >= (plans.made < kPatience ? 1 : kOften)) return true;
  if (plans.seen.size() == kMostSeen) plans.seen.erase(plans.seen.begin());
  plans.seen.push_back(hash);
  return false;
}

// While it lives, the results of operations that kernels call are not lazy.
class InKernel {
 public:
  InKernel() : flag_(thread_state().in_kernel), before_(std::exchange(flag_, true)) {}
  ~InKernel() { flag_ = before_; }
  InKernel(const InKernel&) = delete;

 private:
  bool &flag_, before_;
};

Plans& plans_of(const Graph& graph) {
  if (!graph.plans) graph.plans = std::make_shared<Plans>();
  return *static_cast<Plans*>(graph.plans.get());
}

const Prepared* prepared_for(const Graph& graph, std::span<const Tensor> inputs) {
  Plans& plans = plans_of(graph);
  if (plans.none) return nullptr;
  ++plans.runs;
  for (Prepared& p : plans.list)  // one that another thread runs serves no second one
    if (fits(p, inputs) && !running(p)) {
      p.last_run = plans.runs;
      return &p;
    }
  if (std::ranges::count_if(plans.list, running) >= int(kMostRunning)) return nullptr;
  if (!worth_preparing(plans, inputs) || !make_room(plans)) return nullptr;
  Prepared made;
  try {
    made = prepare(graph, inputs);
  } catch (const Error&) {
    forget_error();
    return nullptr;  // it cannot run with these inputs; running it says why
  }
  if (!made.plan && !made.split) {
    plans.none = true;
    return nullptr;
  }
  ++plans.made;
  made.last_run = plans.runs;
  plans.list.push_back(std::move(made));
  return &plans.list.back();
}

}  // namespace

void set_memory_budget(const Graph& graph, size_t bytes) { plans_of(graph).memory_budget = bytes; }
size_t memory_budget_of(const Graph& graph) { return plans_of(graph).memory_budget; }

std::vector<RegionNodes> parallel_regions_of(const Graph& graph) {
  Tensors inputs;
  for (ValueId v : graph.inputs) inputs.push_back(graph.values[v].tensor);
  auto* plans = static_cast<Plans*>(graph.plans.get());
  const Prepared* prepared = nullptr;
  if (plans && !plans->list.empty())
    prepared = &plans->list.back();
  else if (std::ranges::all_of(inputs, [](const Tensor& t) { return t.size() >= 0; }))
    prepared = prepared_for(graph, inputs);
  return prepared && prepared->plan ? prepared->plan->parallel_regions() : std::vector<RegionNodes>();
}

void run_graph(const Graph& graph, std::span<const Tensor> inputs, Tensors& outputs) {
  EnterStage nowhere(nullptr);
  PauseRecording paused;
  outputs.clear();
  if (NumericsCheck::current()) {  // it must see every node
    NumericsCheck::attach_again();
    outputs = interpret(graph, inputs);
    return;
  }
  if (const Prepared* prepared = prepared_for(graph, inputs)) {
    if (Split* split = prepared->split.get()) return split->run(inputs, outputs);
    Plan* plan = prepared->plan.get();
    InKernel inside;
    if (plan->run(inputs, outputs)) return;
  }
  outputs = interpret(graph, inputs);
}

bool iterate_graph(const Graph& graph, std::span<const Tensor> inputs, std::span<const int> feedback, int64_t limit,
                   FunctionRef<void(std::span<const Tensor>)> after, Tensors& outputs) {
  if (NumericsCheck::current()) return false;
  EnterStage nowhere(nullptr);
  PauseRecording paused;
  const Prepared* prepared = prepared_for(graph, inputs);
  if (!prepared || !prepared->plan || !prepared->plan->can_iterate(feedback)) return false;
  InKernel inside;
  prepared->plan->iterate(inputs, feedback, limit, after, outputs);
  return true;
}

Tensors run_graph(const Graph& graph, std::span<const Tensor> inputs) {
  Tensors outputs;
  run_graph(graph, inputs, outputs);
  return outputs;
}

}  // namespace tapeflow
