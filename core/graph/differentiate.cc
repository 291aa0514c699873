// A graph as one operation. Its gradient is found by tracing graph and tape together into one joint graph, which is cut
// in two: the part that does not depend on the cotangents runs forward and also gives what the other part needs.
#include "graph/differentiate.h"

#include <algorithm>

#include "graph/run.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

struct Halves {
  std::vector<Tensor> constants;       // of the graph, that were followed: inputs like the others
  std::shared_ptr<Graph> forward, backward;
  size_t outputs = 0;                  // of the original graph; the forward half gives the residuals after them
  SmallVector<int, 8> flowing;         // outputs that have a cotangent, which are the last inputs of the backward half
  // Inputs, then variables, then constants, that have a gradient: the outputs of the backward half, in which rows are
  // followed by their numbers.
  SmallVector<int, 8> reached;
  SmallVector<bool, 8> by_rows;
};

std::vector<VariableBody*> variables_read(const Graph& graph) {
  std::vector<VariableBody*> result;
  for (const Node& node : graph.nodes) {
    if (node.op != &read_variable_op()) continue;
    VariableBody* v = &variable_in(node.params[0]);
    if (differentiable.has(v->dtype) && std::find(result.begin(), result.end(), v) == result.end()) result.push_back(v);
  }
  return result;
}

// The values that depend on any of `sources`.
std::vector<uint8_t> dependents(const Graph& graph, std::span<const ValueId> sources) {
  std::vector<uint8_t> depends(graph.values.size(), 0);
  for (ValueId v : sources) depends[v] = 1;
  for (const Node& node : graph.nodes) {
    bool any = false;
    for_each_operand(node, [&](ValueId v) { any |= depends[v]; });
    if (any)
      for (uint32_t k = 0; k < node.outputs; ++k) depends[node.first_output + k] = 1;
  }
  return depends;
}

std::shared_ptr<Graph> excerpt(const Graph& from, std::span<const ValueId> given, std::span<const ValueId> wanted, bool effects) {
  auto graph = std::make_shared<Graph>();
  build_excerpt(*graph, from, given, wanted, effects);
  return graph;
}

std::shared_ptr<Halves> differentiate(const Graph& graph, std::vector<Tensor> constants) {
  auto halves = std::make_shared<Halves>();
  halves->constants = constants;
  halves->outputs = graph.outputs.size();
  Graph joint;
  std::vector<VariableBody*> variables = variables_read(graph);
  std::vector<ValueId> primal, cotangents, results, wanted;
  {
    EnterStage stage(&joint);
    PauseRecording unheard;
    std::vector<Tensor> in;
    for (ValueId v : graph.inputs) in.push_back(joint.add_input({graph.values[v].tensor.dtype(), graph.values[v].tensor.shape()}));
    std::vector<ValueId> given = graph.inputs;
    for (const Tensor& t : constants) {
      in.push_back(joint.add_input({t.dtype(), t.shape()}));
      for (ValueId v = 0; v < graph.values.size(); ++v)
        if (graph.values[v].tensor.body() == t.body()) given.push_back(v);
    }
    primal = joint.inputs;
    Tape tape(false, false);
    tape.start();
    for (const Tensor& t : in) tape.watch(t);
    for (VariableBody* v : variables) tape.watch(*v);
    std::vector<Tensor> out = interpret(graph, {given, in, graph.outputs, true},
                                        [&](ValueId v, const Tensor& t) { if (graph.values[v].tensor.symbolic()) joint.import(graph.values[v].tensor, t); });
    tape.stop();
    for (const Tensor& t : out) results.push_back(joint.id_of(t));
    SmallVector<ValueIndex, 8> targets, sources;
    SmallVector<Spec, 4> specs;
    SmallVector<Tensor, 8> dy;
    for (size_t i = 0; i < out.size(); ++i) {
      if (tape.find(out[i]) == kNotFollowed) continue;
      halves->flowing.push_back(int(i));
      targets.push_back(tape.find(out[i]));
      specs.push_back({out[i].dtype(), out[i].shape()});
      dy.push_back(joint.add_input(specs.back()));
      cotangents.push_back(joint.inputs.back());
    }
    size_t inputs = graph.inputs.size();
    for (size_t i = 0; i < inputs; ++i) sources.push_back(tape.find(in[i]));
    for (VariableBody* v : variables) sources.push_back(tape.find(*v));
    for (size_t i = inputs; i < in.size(); ++i) sources.push_back(tape.find(in[i]));
    std::vector<Cotangent> flow = tape.gradient(targets, specs, dy, sources);
    for (size_t i = 0; i < flow.size(); ++i) {
      if (!flow[i]) continue;
      halves->reached.push_back(int(i));
      halves->by_rows.push_back(bool(flow[i].indices));
      wanted.push_back(joint.id_of(flow[i].values));
      if (flow[i].indices) wanted.push_back(joint.id_of(flow[i].indices));
    }
  }
  // The cut: what the backward half takes from the forward half.
  std::vector<uint8_t> backward = dependents(joint, cotangents), crosses(joint.values.size(), 0);
  auto cross = [&](ValueId v) { crosses[v] |= !backward[v] && joint.values[v].node != Value::kConstant; };
  for (const Node& node : joint.nodes) {
    if (!node.outputs || !backward[node.first_output]) continue;
    for_each_operand(node, cross);
  }
  for (ValueId v : wanted) cross(v);
  std::vector<ValueId> given, forward_outputs = results;
  for (ValueId v = 0; v < joint.values.size(); ++v)
    if (crosses[v]) given.push_back(v), forward_outputs.push_back(v);
  halves->forward = excerpt(joint, primal, forward_outputs, true);
  given.insert(given.end(), cotangents.begin(), cotangents.end());
  halves->backward = excerpt(joint, given, wanted, false);
  return halves;
}

const Op& call_op = define_inner(Op{
    .name = "PartitionedCall",
    .arguments = {tensors("args", any_dtype)},
    .kernel =
        [](Call& call) {
          const auto& halves = *static_cast<const Halves*>(call.params[0].object.get());
          // Inputs, variables (which are there only to be followed), constants.
          size_t constants = halves.constants.size(), inputs = halves.forward->inputs.size() - constants;
          std::vector<Tensor> in(call.in.begin(), call.in.begin() + std::ptrdiff_t(inputs));
          in.insert(in.end(), halves.constants.begin(), halves.constants.end());
          for (Tensor& t : run_graph(*halves.forward, in))
            call.out.push_back(t.body()->references == 1 ? std::move(t) : t.view(t.shape()));  // an input may be an output: not the same value
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          const auto& halves = *static_cast<const Halves*>(c.params[0].object.get());
          std::vector<Tensor> in;
          for (int j = int(halves.outputs); j < c.outputs(); ++j) in.push_back(c.y(j));
          for (int j : halves.flowing) in.push_back(c.dy(j));
          std::vector<Tensor> dx = call_graph(halves.backward, in);
          for (size_t k = 0, next = 0; k < halves.reached.size(); ++k, ++next) {
            Tensor& values = dx[next];
            if (halves.by_rows[k]) ++next;
            if (!c.wants(halves.reached[k])) continue;
            if (halves.by_rows[k]) c.set_rows(halves.reached[k], values, dx[next]);
            else c.set(halves.reached[k], values);
          }
        },
    .keep = keep_everything & ~keep_all_inputs,
    .stateful = true,
});

}  // namespace

std::vector<Tensor> call_graph(const std::shared_ptr<Graph>& graph, std::span<const Tensor> inputs) {
  ThreadState& state = thread_state();
  if (state.stage) return interpret(*graph, inputs);
  SmallVector<const Recorder*, 4> listening;
  for (const Recorder* r : state.recorders)
    if (!r->only_notes()) listening.push_back(r);
  if (listening.empty()) return run_graph(*graph, inputs);
  // Only the gradient of first order by one tape is a graph of its own; all else hears of every node.
  const Recorder& tape = *listening[0];
  if (listening.size() > 1 || !tape.asked_once()) return interpret(*graph, inputs);
  std::vector<Tensor> followed;
  for (const Value& v : graph->values)
    if (v.node == Value::kConstant && tape.follows(v.tensor)) followed.push_back(v.tensor);
  auto halves = std::static_pointer_cast<Halves>(graph->derivative);
  auto same = [](const Tensor& a, const Tensor& b) { return a.body() == b.body(); };
  if (!halves || !std::equal(followed.begin(), followed.end(), halves->constants.begin(), halves->constants.end(), same))
    graph->derivative = halves = differentiate(*graph, std::move(followed));
  SmallVector<Tensor, 8> in;
  for (const Tensor& t : inputs) in.push_back(t);
  for (VariableBody* v : variables_read(*graph)) in.push_back(read_variable(*v));
  for (const Tensor& t : halves->constants) in.push_back(t);
  SmallVector<Tensor, 2> out = run_all(call_op, in, {Param(std::static_pointer_cast<void>(halves))});
  return {out.begin(), out.begin() + std::ptrdiff_t(halves->outputs)};
}

}  // namespace tapeflow
