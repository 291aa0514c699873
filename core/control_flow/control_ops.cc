// Control flow as operations: Case and While hold the graphs of their branches and bodies. When a gradient is asked
// for, they save what it needs; only derivatives of higher order run them again under a tape, with the same values
// of variables and the same random numbers.
#include "control_flow/control_ops.h"

#include <algorithm>
#include <utility>

#include "autodiff/deferred.h"
#include "control_flow/branch.h"
#include "control_flow/loop.h"
#include "graph/replay.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

// What a control operation is; the first of its parameters.
struct Control {
  std::vector<std::shared_ptr<Graph>> graphs;
  std::vector<Param> variables;  // that the graphs read themselves; their values are the last inputs, to be tracked
  std::vector<VariableBody*> accessed;
  std::unique_ptr<Loop> loop;
};
constexpr struct : Keys {
  Key<Boxed<const Control>> control = next("control");
  Key<Ints> asked = next("asked");  // for which inputs a gradient is asked for
} control_params;
const Control& control_in(const Params& params) { return params[control_params.control]; }

// The results of a run. An input may be among them: it is not the same value to a tape.
void give(Call& call, Tensors&& results) {
  for (Tensor& t : results) call.out.push_back(t.body()->references == 1 ? std::move(t) : t.view(t.shape()));
}

// ---- saved tensors travel as tensors without elements

template <class SavedTensors> Tensor carry(SavedTensors saved) {
  auto* carried = new_in_block<SavedTensors>(std::move(saved));
  Tensor t = Tensor::allocate(DType::variant, Shape());
  t.body()->buffer = wrap_foreign_memory(carried, size_of(DType::variant), carried,
                                         [](void* p) { delete_in_block(static_cast<SavedTensors*>(p)); });
  t.body()->data = carried;
  return t;
}
Tensor nothing_saved() {
  Tensor t = Tensor::allocate(DType::variant, Shape());
  std::memset(t.mutable_raw(), 0, t.bytes());
  return t;
}
// Null if there is none.
template <class SavedTensors> const SavedTensors* saved_in(const Tensor& t) {
  return t.body()->buffer ? static_cast<const SavedTensors*>(t.raw()) : nullptr;
}
// If a recorder watches a rule, the run is repeated, so that it is recorded.
bool rule_is_recorded() {
  return std::ranges::any_of(thread_state().recorders, [](const Recorder* r) { return !r->only_events(); });
}

// The sources that the second parameter names; `first` is where the inputs of the graphs begin.
Sources sources_of(const Params& params, size_t first, size_t inputs) {
  const Control& control = control_in(params);
  const Ints& asked = params[control_params.asked];
  Sources sources;
  for (size_t i = 0; i < inputs; ++i) sources.inputs.push_back(uint8_t(asked[first + i]));
  for (size_t v = 0; v < control.variables.size(); ++v)
    if (asked[first + inputs + v]) sources.variables.push_back(&variable_in(control.variables[v]));
  return sources;
}

void set_results(RuleContext& c, const Sources& sources, std::span<const Tensor> dx, size_t first, size_t inputs) {
  const Control& control = control_in(c.params);
  auto set = [&](size_t i, const Tensor& t) {
    if (t && c.wants(int(i))) c.set(int(i), t);
  };
  for (size_t i = 0; i < inputs; ++i) set(first + i, dx[i]);
  for (size_t v = 0, next = inputs; v < control.variables.size(); ++v)
    if (std::ranges::find(sources.variables, &variable_in(control.variables[v])) != sources.variables.end())
      set(first + inputs + v, dx[next++]);
}

// The rule of a run that is to be recorded: runs it again. The inputs of the graphs begin at `first`.
template <class SavedTensors, class Run>
void differentiate_again(RuleContext& c, const SavedTensors* saved, int first, size_t inputs, Run run_graphs) {
  const Control& control = control_in(c.params);
  if (!saved && !control.accessed.empty())
    fail(ErrorKind::unimplemented,
         "control flow: a derivative of higher order would run a graph again without knowing which values its "
         "variables had");
  Replay replay(control.accessed, saved ? saved->variables : Tensors());
  differentiate_run(
      c,
      [&](std::span<const Tensor> in) {
        for (size_t v = 0; v < control.variables.size(); ++v)
          replay.track(variable_in(control.variables[v]), in[inputs + v]);
        return run_graphs(in.subspan(0, inputs), !control.variables.empty());
      },
      first);
}

// Tells the node that made the saved tensors that a gradient needs them.
void ask_node(const RuleContext& c) {
  const Tensor& saved = c.kept_outputs[size_t(c.outputs() - 1)];
  if (!saved.symbolic()) return;
  Symbol place = saved.body()->symbol();
  auto& graph = *static_cast<Graph*>(place.graph);
  Node& node = graph.nodes[size_t(graph.values[place.value].node)];
  Ints asked;
  for (int i = 0; i < c.inputs(); ++i)
    asked.push_back(c.wants(i) ||
                    (node.params.has(control_params.asked) && node.params[control_params.asked][size_t(i)]));
  node.params = node.params.with(control_params.asked, Param(asked));
}
bool is_unrolled(const Op&, const Tensor& saved);
const bool installed = (before_deferring = [](RuleContext& c) {
  if (is_control_op(c.op)) ask_node(c);
  return item_as_rows(c);
}, true);

const bool installed_for_unrolled =
    (saves_traced_tensors = [](const Op& op, const Tensor& t) { return is_unrolled(op, t); }, true);

// While tracing, only forward mode asks for residuals here: a tape does so when a gradient is asked for (ask_node).
Params watched_params(const Params& params, std::span<const Tensor> inputs) {
  Ints asked = params.has(control_params.asked) ? params[control_params.asked] : Ints();
  asked.resize(inputs.size());
  bool any = false, staged = thread_state().stage;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto watches = [&](const Recorder* r) { return (!staged || r->forward()) && r->watches(inputs[i]); };
    if (std::ranges::none_of(thread_state().recorders, watches)) continue;
    asked[i] = 1;
    any = true;
  }
  return any ? params.with(control_params.asked, Param(asked)) : params;
}

Shape common_shape(const Shape& a, const Shape& b) {
  if (!a.known_rank() || a.rank() != b.rank()) return Shape::unknown();
  Shape both = a;
  for (int i = 0; i < a.rank(); ++i)
    if (a[i] != b[i]) both[i] = -1;
  return both;
}

// What both operations are: programs with effects, which save what their gradients need.
const Op& define_control(Op op) {
  op.makes_outputs = true;
  op.keep = keep_everything;
  op.stateful = op.effect = op.is_program = op.copies_elements = true;
  op.watched_params = watched_params;
  op.rule_needs_values = op.keeps_params = true;
  return define_inner(std::move(op));
}

// ---- branches: the index of the branch, then what the branches use

const std::shared_ptr<Graph>& chosen_branch(const Params& params, const Tensor& number) {
  const auto& branches = control_in(params).graphs;
  int64_t index = read_ints(number.dtype() == DType::boolean ? cast(number, DType::int32) : number)[0];
  return branches[index < 0 || index >= int64_t(branches.size()) ? branches.size() - 1 : size_t(index)];
}

const Op& case_op = define_control(Op{
    .name = "Case",
    .arguments = {tensors("branch_index_and_inputs", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const auto& branches = control_in(call.params).graphs;
          const Graph& first = *branches[0];
          for (size_t i = 0; i < first.outputs.size(); ++i) {
            const Tensor& t = first.values[first.outputs[i]].tensor;
            Shape shape = t.shape();
            for (const auto& other : branches)
              shape = common_shape(shape, other->values[other->outputs[i]].tensor.shape());
            call.returns(t.dtype(), shape);
          }
          call.returns(DType::variant, Shape());
        },
    .kernel =
        [](Call& call) {
          PauseRecording unrecorded;
          const auto& branch = chosen_branch(call.params, call.in[0]);
          std::span<const Tensor> in = call.in.subspan(1, branch->inputs.size());
          if (!call.params.has(control_params.asked)) {
            give(call, call_graph(branch, in));
            return call.out.push_back(nothing_saved());
          }
          BranchSavedTensors saved{
              sources_of(call.params, 1, in.size()), {}, {}, values_of(control_in(call.params).accessed)};
          give(call, run_branch(branch, in, saved));
          call.out.push_back(carry(std::move(saved)));
        },
    .vjp =
        [](RuleContext& c) {
          const auto& branch = chosen_branch(c.params, c.x(0));
          size_t inputs = branch->inputs.size();
          const auto* saved = saved_in<BranchSavedTensors>(c.y(c.outputs() - 1));
          if (saved && !rule_is_recorded())
            return set_results(c, saved->sources,
                               backpropagate(*saved, c.kept_inputs.subspan(1), c.given, c.kept_outputs), 1, inputs);
          differentiate_again(c, saved, 1, inputs, [&](std::span<const Tensor> in, bool reads_tracked) {
            return reads_tracked ? interpret(*branch, in) : call_graph(branch, in);
          });
        },
    .node_name = "cond",
});

// ---- loops: the loop variables, then what condition and body use besides

// In the graph of a plan: the iterations of a short loop.
bool unroll(Call& call) {
  const Control& control = control_in(call.params);
  if (!static_cast<const Graph*>(thread_state().stage)->unrolls || !control.accessed.empty()) return false;
  const auto iterations = control.loop->worth_unrolling(call.in);
  if (!iterations) return false;
  Loop::SavedTensors saved;
  const bool asked = call.params.has(control_params.asked);
  if (asked) saved.sources = sources_of(call.params, 0, call.in.size());
  for (Tensor& t : control.loop->unroll(call.in, *iterations, asked ? &saved : nullptr))
    call.out.push_back(std::move(t));
  call.out.push_back(asked ? carry(std::move(saved)) : nothing_saved());
  return true;
}

const Op& while_op = define_control(Op{
    .name = "While",
    .arguments = {tensors("input", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const Loop& loop = *control_in(call.params).loop;
          for (size_t i = 0; i < loop.variables(); ++i) {
            const Tensor& t = loop.body()->values[loop.body()->inputs[i]].tensor;
            call.returns(t.dtype(), t.shape());
          }
          call.returns(DType::variant, Shape());
        },
    .kernel =
        [](Call& call) {
          PauseRecording unrecorded;
          const Loop& loop = *control_in(call.params).loop;
          if (!call.params.has(control_params.asked)) {
            give(call, loop.run(call.in));
            return call.out.push_back(nothing_saved());
          }
          Loop::SavedTensors saved;
          saved.sources = sources_of(call.params, 0, loop.body()->inputs.size());
          saved.variables = values_of(control_in(call.params).accessed);
          give(call, loop.run(call.in, &saved));
          call.out.push_back(carry(std::move(saved)));
        },
    .vjp =
        [](RuleContext& c) {
          const Loop& loop = *control_in(c.params).loop;
          size_t inputs = loop.body()->inputs.size();
          const auto* saved = saved_in<Loop::SavedTensors>(c.y(c.outputs() - 1));
          if (saved && !rule_is_recorded())
            return set_results(c, saved->sources, loop.backpropagate(*saved, c.kept_inputs, c.given, c.kept_outputs), 0,
                               inputs);
          differentiate_again(c, saved, 0, inputs, [&](std::span<const Tensor> in, bool reads_tracked) {
            return loop.run_recorded(in, reads_tracked);
          });
        },
    .expand = unroll,
    .node_name = "while",
});
bool is_unrolled(const Op& op, const Tensor& saved) {
  if (&op != &while_op || saved.symbolic() || !saved.body()->buffer) return false;
  return static_cast<const Loop::SavedTensors*>(saved.raw())->unrolled;
}

// The variables that the graph, and the graphs inside it, read or assign to.
void find_variables(const Graph& graph, std::vector<VariableBody*>& found) {
  for (const Node& n : graph.nodes) {
    if (!n.op) continue;
    if (is_control_op(*n.op)) {
      for (const auto& inner : graphs_of(n)) find_variables(*inner, found);
    } else if (n.op == &read_variable_op() || n.op == &assign_op()) {
      VariableBody* v = &variable_in(n.params);
      if (std::ranges::find(found, v) == found.end()) found.push_back(v);
    }
  }
}

Tensors add(const Op& op, std::shared_ptr<Control> control, SmallVector<Tensor, 8> in) {
  std::vector<VariableBody*> variables;
  for (const auto& graph : control->graphs)
    for (VariableBody* v : variables_read(*graph))
      if (std::ranges::find(variables, v) == variables.end()) variables.push_back(v);
  for (VariableBody* v : variables) {
    control->variables.push_back(variable_param(*v));
    in.push_back(read_variable(*v));
  }
  for (const auto& graph : control->graphs) find_variables(*graph, control->accessed);
  return run_all(op, in, watched_params({Param(std::static_pointer_cast<void>(std::move(control))), Param()}, in));
}

}  // namespace

bool is_control_op(const Op& op) { return &op == &case_op || &op == &while_op; }

std::vector<std::shared_ptr<Graph>> graphs_of(const Params& params) { return control_in(params).graphs; }

bool may_assign(const Node& n, const VariableBody& v) {
  if (!n.op) return false;
  if (n.op == &assign_op()) return &variable_in(n.params) == &v;
  if (!is_control_op(*n.op)) return n.op->effect;
  return std::ranges::any_of(graphs_of(n), [&](const auto& graph) {
    return std::ranges::any_of(graph->nodes, [&](const Node& inner) { return may_assign(inner, v); });
  });
}

const Loop* loop_of(const Params& params) { return control_in(params).loop.get(); }

Tensors add_case(const Tensor& index, std::span<const std::shared_ptr<Graph>> branches,
                 std::span<const Tensor> inputs) {
  auto control = std::make_shared<Control>();
  control->graphs.assign(branches.begin(), branches.end());
  SmallVector<Tensor, 8> in;
  in.push_back(index);
  for (const Tensor& t : inputs) in.push_back(t);
  return add(case_op, std::move(control), std::move(in));
}

Tensors add_while(std::shared_ptr<Graph> condition, std::shared_ptr<Graph> body, std::span<const Tensor> inputs,
                  int64_t loop_variables, int64_t limit) {
  auto control = std::make_shared<Control>();
  control->graphs = {condition, body};
  control->loop = std::make_unique<Loop>(std::move(condition), std::move(body), loop_variables, limit);
  SmallVector<Tensor, 8> in;
  for (const Tensor& t : inputs) in.push_back(t);
  return add(while_op, std::move(control), std::move(in));
}

}  // namespace tapeflow
