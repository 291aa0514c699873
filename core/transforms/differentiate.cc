// A graph as one operation. Its gradient is found by tracing graph and tape together into one joint graph, which is cut
// in two: the part that does not depend on the cotangents runs forward and also gives what the other part needs.
#include "transforms/differentiate.h"

#include <algorithm>

#include "autodiff/deferred.h"
#include "graph/run.h"
#include "ops/ops.h"

namespace tapeflow {

std::vector<VariableBody*> variables_read(const Graph& graph) {
  std::vector<VariableBody*> result;
  for (const Node& node : graph.nodes) {
    if (node.op != &read_variable_op()) continue;
    VariableBody* v = &variable_in(node.params);
    if (differentiable.has(v->dtype) && std::find(result.begin(), result.end(), v) == result.end()) result.push_back(v);
  }
  return result;
}

SmallVector<uint8_t, 64> dependents(const Graph& graph, std::span<const ValueId> sources) {
  SmallVector<uint8_t, 64> depends;
  depends.resize(graph.values.size());
  for (ValueId v : sources) depends[v] = 1;
  for (const Node& node : graph.nodes) {
    bool any = false;
    for_each_operand(node, [&](ValueId v) { any |= depends[v]; });
    if (any)
      for (uint32_t k = 0; k < node.outputs; ++k) depends[node.first_output + k] = 1;
  }
  return depends;
}

namespace {

std::shared_ptr<Graph> subgraph(const Graph& from, std::span<const ValueId> given, std::span<const ValueId> wanted,
                                std::span<const int> effects) {
  auto graph = std::make_shared<Graph>();
  build_subgraph(*graph, from, given, wanted, false, effects);
  return graph;
}

std::shared_ptr<JointParts> differentiate(const Graph& graph, std::span<const Tensor> constants,
                                          std::span<const uint8_t> tracked) {
  auto parts = std::make_shared<JointParts>();
  parts->variables = variables_read(graph);
  parts->tracked.assign(tracked.begin(), tracked.end());
  parts->outputs = graph.outputs.size();
  const size_t inputs = graph.inputs.size();
  Graph joint;
  std::vector<ValueId> primal, cotangents, results, wanted;
  {
    EnterStage stage(&joint);
    PauseRecording unrecorded;
    Tensors in;
    for (ValueId v : graph.inputs)
      in.push_back(joint.add_input({graph.values[v].tensor.dtype(), graph.values[v].tensor.shape()}));
    std::vector<ValueId> given = graph.inputs;
    for (const Tensor& t : constants) {
      in.push_back(joint.add_input({t.dtype(), t.shape()}));
      for (ValueId v = 0; v < graph.values.size(); ++v)
        if (graph.values[v].tensor.body() == t.body()) given.push_back(v);
    }
    primal = joint.inputs;
    Tape tape(false, false);
    tape.start();
    SmallVector<ValueIndex, 8> targets, sources;
    for (size_t i = 0; i < in.size(); ++i) {
      if (i >= inputs || tracked[i]) tape.watch(in[i]);
      sources.push_back(tape.find(in[i]));
    }
    for (size_t k = 0; k < parts->variables.size(); ++k) {
      if (tracked[inputs + k]) tape.watch(*parts->variables[k]);
      sources.push_back(tape.find(*parts->variables[k]));
    }
    Tensors out = interpret(graph, {given, in, graph.outputs, true}, [&](ValueId v, const Tensor& t) {
      if (graph.values[v].tensor.symbolic()) joint.import(graph.values[v].tensor, t);
    });
    tape.stop();
    for (const Tensor& t : out) results.push_back(joint.id_of(t));
    SmallVector<Spec, 4> specs;
    SmallVector<Tensor, 8> dy;
    for (size_t i = 0; i < out.size(); ++i) {
      if (tape.find(out[i]) == kUntracked) continue;
      parts->flowing.push_back(int(i));
      targets.push_back(tape.find(out[i]));
      specs.push_back({out[i].dtype(), out[i].shape()});
      dy.push_back(joint.add_input(specs.back()));
      cotangents.push_back(joint.inputs.back());
    }
    BlockVector<Cotangent> flow = tape.gradient(targets, specs, dy, sources);
    for (size_t i = 0; i < flow.size(); ++i) {
      if (!flow[i]) continue;
      parts->reached.push_back(int(i));
      parts->by_rows.push_back(bool(flow[i].indices));
      wanted.push_back(joint.id_of(flow[i].values));
      if (flow[i].indices) wanted.push_back(joint.id_of(flow[i].indices));
    }
  }
  parts->constants = Tensors(constants);
  // The cut: what the backward part takes from the forward part.
  const SmallVector<uint8_t, 64> backward = dependents(joint, cotangents);
  std::vector<uint8_t> crosses(joint.values.size(), 0);
  auto cross = [&](ValueId v) { crosses[v] |= !backward[v] && joint.values[v].node != Value::kConstant; };
  std::vector<int> forward_effects, backward_effects;
  for (size_t i = 0; i < joint.nodes.size(); ++i) {
    const Node& node = joint.nodes[i];
    bool late = false;
    for_each_operand(node, [&](ValueId v) { late |= bool(backward[v]); });
    if (node.op && node.op->effect) (late ? backward_effects : forward_effects).push_back(int(i));
    if (late) for_each_operand(node, cross);
  }
  for (ValueId v : wanted) cross(v);
  std::vector<ValueId> given, forward_outputs = results;
  for (ValueId v = 0; v < joint.values.size(); ++v) {
    if (!crosses[v]) continue;
    given.push_back(v);
    forward_outputs.push_back(v);
    auto input = std::find(primal.begin(), primal.end(), v);
    parts->residual_inputs.push_back(input == primal.end() ? -1 : int(input - primal.begin()));
  }
  parts->forward = subgraph(joint, primal, forward_outputs, forward_effects);
  given.insert(given.end(), cotangents.begin(), cotangents.end());
  parts->backward = subgraph(joint, given, wanted, backward_effects);
  return parts;
}

bool same_tensors(std::span<const Tensor> a, std::span<const Tensor> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) { return x.body() == y.body(); });
}

// A call that tapes record. A tape inside another one differentiates the parts again, so there is one level of parts
// per tape: those of the graph, those of their forward half, and so on.
struct CallPlan {
  std::shared_ptr<Graph> graph;  // only if there are no levels: the plan is kept with the graph otherwise
  std::vector<std::shared_ptr<JointParts>> levels;
  std::weak_ptr<Graph> called;  // the graph as it was traced, for explanations
  size_t outputs(size_t level) const {
    return level == 0 ? levels[0]->outputs : levels[level - 1]->forward->outputs.size();
  }
  const Graph& runs() const { return levels.empty() ? *graph : *levels.back()->forward; }
};

// What is kept with a graph.
struct Derivatives {
  Tensors constants;                     // that may be tracked
  std::vector<VariableBody*> variables;  // that are read
  bool repeatable = true;                // running the graph again gives the same and does nothing else
  std::vector<std::shared_ptr<JointParts>> parts;
  std::vector<std::shared_ptr<CallPlan>> calls;
  std::vector<std::shared_ptr<Graph>> specialised;
};
constexpr size_t kMostKept = 16;  // as many as plans of small graphs
template <class T> void keep(std::vector<T>& list, T item) {
  if (list.size() == kMostKept) list.erase(list.begin());
  list.push_back(std::move(item));
}

Derivatives& derivatives_of(Graph& graph) {
  if (graph.derivative) return *static_cast<Derivatives*>(graph.derivative.get());
  auto d = std::make_shared<Derivatives>();
  for (const Value& v : graph.values)
    if (v.node == Value::kConstant && differentiable.has(v.tensor.dtype())) d->constants.push_back(v.tensor);
  d->variables = variables_read(graph);
  for (const Node& n : graph.nodes)
    d->repeatable &= n.op && (n.op == &read_variable_op() || !(n.op->stateful || n.op->effect));
  graph.derivative = d;
  return *d;
}

std::shared_ptr<CallPlan> call_plan(const std::shared_ptr<Graph>& graph, std::span<const Tensor> constants,
                                    std::span<const uint8_t> tracked, size_t order) {
  Derivatives& d = derivatives_of(*graph);
  for (const auto& plan : d.calls)
    if (plan->levels.size() == order && std::ranges::equal(plan->levels[0]->tracked, tracked) &&
        same_tensors(plan->levels[0]->constants, constants))
      return plan;
  auto plan = std::make_shared<CallPlan>();
  plan->called = graph;
  plan->levels.push_back(joint_parts_of(*graph, constants, tracked));
  while (plan->levels.size() < order) {
    // The constants are inputs of the forward part.
    Graph& forward = *plan->levels.back()->forward;
    std::vector<uint8_t> sources(tracked.begin(), tracked.begin() + std::ptrdiff_t(graph->inputs.size()));
    sources.resize(forward.inputs.size(), 1);
    for (VariableBody* v : variables_read(forward)) {
      size_t at = size_t(std::find(d.variables.begin(), d.variables.end(), v) - d.variables.begin());
      sources.push_back(tracked[graph->inputs.size() + at]);
    }
    plan->levels.push_back(joint_parts_of(forward, {}, sources));
  }
  keep(derivatives_of(*graph).calls, plan);
  return plan;
}

// The part of the backward part that gives the wanted ones of what is reached.
const std::shared_ptr<Graph>& backward_part(JointParts& parts, std::span<const uint8_t> wanted) {
  if (std::ranges::find(wanted, 0) == wanted.end()) return parts.backward;
  for (auto& [has, graph] : parts.partial_backwards)
    if (std::ranges::equal(has, wanted)) return graph;
  const Graph& whole = *parts.backward;
  std::vector<ValueId> outputs;
  for (size_t k = 0, next = 0; k < wanted.size(); ++k, ++next) {
    if (wanted[k]) outputs.push_back(whole.outputs[next]);
    if (parts.by_rows[k] && ++next && wanted[k]) outputs.push_back(whole.outputs[next]);
  }
  keep(parts.partial_backwards,
       std::pair(std::vector<uint8_t>(wanted.begin(), wanted.end()), subgraph(whole, whole.inputs, outputs, {})));
  return parts.partial_backwards.back().second;
}

constexpr struct : Keys {
  Key<Boxed<const CallPlan>> plan = next("plan");
} call_params;
const CallPlan& plan_in(const Params& params) { return params[call_params.plan]; }

// A cotangent has come to what the last level keeps: the graph runs again under a tape.
void differentiate_again(RuleContext& c, const CallPlan& plan) {
  const Graph& graph = plan.runs();
  std::vector<ValueId> given = graph.inputs;
  std::vector<size_t> from(given.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = i;
  const auto& variables = plan.levels[0]->variables;
  for (const Node& n : graph.nodes)
    if (n.op == &read_variable_op()) {
      size_t at = size_t(std::find(variables.begin(), variables.end(), &variable_in(n.params)) - variables.begin());
      if (at == variables.size()) continue;
      given.push_back(n.first_output);
      from.push_back(graph.inputs.size() + at);
    }
  differentiate_run(c, [&](std::span<const Tensor> in) {
    Tensors tensors;
    for (size_t i : from) tensors.push_back(in[i]);
    return interpret(graph, {given, tensors, graph.outputs, false}, [](ValueId, const Tensor&) {});
  });
}

// Inputs of the call are those of the graph, constants, and variables, which are there only to be tracked.
Op call_entry(Keep keep) {
  return Op{
      .name = "PartitionedCall",
      .arguments = {tensors("args", any_dtype)},
      .kernel =
          [](Call& call) {
            const Graph& graph = plan_in(call.params).runs();
            for (Tensor& t : run_graph(graph, call.in.subspan(0, graph.inputs.size())))
              call.out.push_back(t.body()->references == 1
                                     ? std::move(t)
                                     : t.view(t.shape()));  // an input may be an output: not the same value
          },
      .makes_outputs = true,
      .vjp =
          [](RuleContext& c) {
            const CallPlan& plan = plan_in(c.params);
            size_t level = 0;
            for (int j = 0; j < c.outputs(); ++j)
              if (c.has_dy(j))
                while (level < plan.levels.size() && size_t(j) >= plan.outputs(level)) ++level;
            if (level == plan.levels.size()) return differentiate_again(c, plan);
            JointParts& parts = *plan.levels[level];
            size_t tensors = parts.forward->inputs.size();
            const auto& variables = plan.levels[0]->variables;
            SmallVector<int, 8> sources;
            SmallVector<uint8_t, 16> wanted;
            for (int source : parts.reached) {
              if (size_t(source) >= tensors) {
                auto it = std::find(variables.begin(), variables.end(), parts.variables[size_t(source) - tensors]);
                source = int(tensors) + int(it - variables.begin());
              }
              sources.push_back(source);
              wanted.push_back(c.wants(source));
            }
            SmallVector<Tensor, 8> in;
            for (size_t j = plan.outputs(level); j < plan.outputs(level + 1); ++j) in.push_back(c.y(int(j)));
            for (int j : parts.flowing) in.push_back(c.dy(j));
            std::shared_ptr<Graph> backward = backward_part(parts, {wanted.begin(), wanted.size()});
            Tensors dx = call_graph(backward, in);
            for (size_t k = 0, next = 0; k < wanted.size(); ++k) {
              if (!wanted[k]) continue;
              Tensor& values = dx[next++];
              if (parts.by_rows[k])
                c.set_rows(sources[k], values, dx[next++]);
              else
                c.set(sources[k], values);
            }
          },
      .keep = keep,
      .stateful = true,
      .copies_elements = true,
      .keeps_params = true,
  };
}
const Op& call_op = define_inner(call_entry(keep_everything & ~keep_all_inputs));
const Op& repeated_call_op = define_inner(call_entry(keep_everything));  // may run again for its derivative

}  // namespace

CalledGraph graph_called(const Op& op, const Params& params) {
  if ((&op != &call_op && &op != &repeated_call_op) || !params.size()) return {};
  const CallPlan& plan = plan_in(params);
  std::shared_ptr<Graph> graph = plan.graph ? plan.graph : plan.called.lock();
  return {graph, plan.levels.empty() ? 0 : plan.levels[0]->constants.size()};
}

const std::vector<VariableBody*>& known_variables_read(Graph& graph) { return derivatives_of(graph).variables; }

std::shared_ptr<JointParts> joint_parts_of(Graph& graph, std::span<const Tensor> constants,
                                           std::span<const uint8_t> tracked) {
  for (const auto& h : derivatives_of(graph).parts)
    if (std::ranges::equal(h->tracked, tracked) && same_tensors(h->constants, constants)) return h;
  std::shared_ptr<JointParts> parts = differentiate(graph, constants, tracked);
  keep(derivatives_of(graph).parts, parts);
  return parts;
}

std::shared_ptr<Graph> specialised(const std::shared_ptr<Graph>& graph, std::span<const Tensor> inputs) {
  auto fits = [&](const Graph& g) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!(g.values[g.inputs[i]].tensor.shape() == inputs[i].shape())) return false;
    return true;
  };
  if (fits(*graph)) return graph;
  Derivatives& d = derivatives_of(*graph);
  for (const auto& g : d.specialised)
    if (fits(*g)) return g;
  auto special = std::make_shared<Graph>();
  Tensors in;
  for (const Tensor& t : inputs) in.push_back(special->add_input({t.dtype(), t.shape()}));
  EnterStage stage(special.get());
  PauseRecording unrecorded;
  for (const Tensor& t : interpret(*graph, in)) special->outputs.push_back(special->id_of(t));
  keep(d.specialised, special);
  return special;
}

// The nodes of a graph become nodes of another one. In a graph of TensorFlow 1 only what somebody asks for runs: there
// each output depends on all effects of the function.
static Tensors call_into(Graph& stage, const Graph& graph, std::span<const Tensor> inputs) {
  size_t first = stage.nodes.size();
  Tensors out = interpret(graph, inputs);
  if (!stage.graph_mode()) return out;
  std::vector<int> effects;
  for (size_t i = first; i < stage.nodes.size(); ++i)
    if (stage.nodes[i].op && stage.nodes[i].op->effect) effects.push_back(int(i));
  auto waits_anyway = [&](const Tensor& t) {  // it is made by the only node with an effect
    return effects.size() == 1 && stage.owns(t) && stage.values[t.body()->symbol().value].node == effects[0];
  };
  std::vector<int> outside = stage.control_scope;
  for (size_t k = 0; k < out.size(); ++k) {
    if (effects.empty() || waits_anyway(out[k])) continue;
    stage.control_scope.insert(stage.control_scope.end(), effects.begin(), effects.end());
    out[k] = identity(out[k]);
    stage.control_scope = outside;
  }
  return out;
}

Tensors call_graph(const std::shared_ptr<Graph>& graph, std::span<const Tensor> inputs) {
  ThreadState& state = thread_state();
  if (state.stage) {
    std::vector<VariableBody*>& changing = static_cast<Graph*>(state.stage)->changing;
    for (VariableBody* v : graph->changing)
      if (std::ranges::find(changing, v) == changing.end()) changing.push_back(v);
    return call_into(*static_cast<Graph*>(state.stage), *graph, inputs);
  }
  SmallVector<const Recorder*, 4> attached;
  for (const Recorder* r : state.recorders)
    if (!r->only_events()) attached.push_back(r);
  if (attached.empty()) return run_graph(*graph, inputs);
  Derivatives& d = derivatives_of(*graph);
  SmallVector<Tensor, 8> in;
  Tensors constants;
  auto is_tracked_by_any = [&](const Tensor& t) {
    return std::any_of(attached.begin(), attached.end(), [&](const Recorder* r) { return r->watches(t); });
  };
  for (const Tensor& t : inputs) in.push_back(t);
  for (const Tensor& t : d.constants)
    if (is_tracked_by_any(t)) constants.push_back(t), in.push_back(t);
  for (VariableBody* v : d.variables) in.push_back(read_variable(*v));
  // One level for each tape that tracks something. A tape that may be asked about its own gradients runs the graph
  // again.
  size_t order = 0;
  bool asked_again = false;
  for (const Recorder* r : attached) {
    if (std::none_of(in.begin(), in.end(), [&](const Tensor& t) { return r->watches(t); })) continue;
    if (r->forward()) return interpret(*graph, inputs);
    ++order;
    asked_again |= !r->asked_once();
  }
  constexpr size_t kMostLevels = 3;
  if (order > kMostLevels || (asked_again && !d.repeatable)) return interpret(*graph, inputs);
  SmallVector<uint8_t, 16> tracked;
  for (size_t i = 0; i < in.size(); ++i)
    if (i < inputs.size() || i >= inputs.size() + constants.size()) tracked.push_back(is_tracked_by_any(in[i]));
  std::shared_ptr<CallPlan> plan;
  if (order > 0) {
    plan = call_plan(graph, constants, {tracked.begin(), tracked.size()}, order);
  } else {
    plan = std::make_shared<CallPlan>();
    plan->graph = graph;
  }
  Tensors out = run_all(asked_again ? repeated_call_op : call_op, in, {Param(std::static_pointer_cast<void>(plan))});
  out.resize(graph->outputs.size());
  return out;
}

}  // namespace tapeflow
