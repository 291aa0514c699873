// Control flow as operations: Case and While hold the graphs of their branches and bodies. When a gradient is asked for,
// they remember what it needs; only derivatives of higher order run them again under a tape.
#include "graph/control_ops.h"

#include <algorithm>
#include <utility>

#include "autodiff/deferred.h"
#include "graph/branch.h"
#include "graph/loop.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

// What a control operation is; the first of its parameters. The second one says for which inputs a gradient is asked for.
struct Control {
  std::vector<std::shared_ptr<Graph>> graphs;
  std::vector<Param> variables;  // that the graphs read themselves; their values are the last inputs, to be followed
  std::unique_ptr<Loop> loop;
};
const Control& control_in(const Params& params) { return *static_cast<const Control*>(params[0].object.get()); }

// While it lives, nodes run a second time, for their derivative.
struct Replay {
  bool before = std::exchange(replaying(), true);
  ~Replay() { replaying() = before; }
};

// The results of a run. An input may be among them: it is not the same value to a tape.
void give(Call& call, std::vector<Tensor> results) {
  for (Tensor& t : results) call.out.push_back(t.body()->references == 1 ? std::move(t) : t.view(t.shape()));
}

// ---- histories travel as tensors without elements

template <class History> Tensor carry(History history) {
  auto* carried = new History(std::move(history));
  Tensor t = Tensor::allocate(DType::variant, Shape());
  t.body()->buffer = wrap_foreign_memory(carried, size_of(DType::variant), carried, [](void* p) { delete static_cast<History*>(p); });
  t.body()->data = carried;
  return t;
}
Tensor no_history() {
  Tensor t = Tensor::allocate(DType::variant, Shape());
  std::memset(t.mutable_raw(), 0, t.bytes());
  return t;
}
// Null if there is none, or if somebody listens: then the run is repeated, so that it can be heard.
template <class History> const History* history_in(const Tensor& t) {
  bool heard = std::ranges::any_of(thread_state().recorders, [](const Recorder* r) { return !r->only_notes(); });
  if (!t.body()->buffer || heard) return nullptr;
  return static_cast<const History*>(t.raw());
}

// The sources that the second parameter names; `first` is where the inputs of the graphs begin.
Sources sources_of(const Params& params, size_t first, size_t inputs) {
  const Control& control = control_in(params);
  const Ints& asked = params.ints(1);
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
    if (std::ranges::find(sources.variables, &variable_in(control.variables[v])) != sources.variables.end()) set(first + inputs + v, dx[next++]);
}

// Operations that draw random numbers are the only ones with a public name that are stateful and have no effect.
bool is_random(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& n) {
    if (!n.op) return false;
    if (is_control_op(*n.op)) return std::ranges::any_of(graphs_of(n), [](const auto& inner) { return is_random(*inner); });
    return n.op->stateful && !n.op->effect && find_op(n.op->name) == n.op;
  });
}

void check_can_run_again(const RuleContext& c, const char* who) {
  const Control& control = control_in(c.params);
  const char* why = nullptr;
  if (!control.variables.empty()) why = "assigns to the variables it reads";
  if (std::ranges::any_of(control.graphs, [](const auto& graph) { return is_random(*graph); })) why = "draws random numbers";
  if (why)
    fail(ErrorKind::unimplemented, who, ": a derivative of higher order would run a graph again that ", why,
         ". Do that before it, and give the values to it.");
}

// The node that made the history, which a gradient now asks for, is told so.
void ask_node(const RuleContext& c) {
  const Tensor& history = c.kept_outputs[size_t(c.outputs() - 1)];
  if (!history.symbolic()) return;
  Symbol place = history.body()->symbol();
  auto& graph = *static_cast<Graph*>(place.graph);
  Node& node = graph.nodes[size_t(graph.values[place.value].node)];
  Ints asked;
  for (int i = 0; i < c.inputs(); ++i) asked.push_back(c.wants(i) || (node.params[1].kind == Param::Kind::ints && node.params.ints(1)[size_t(i)]));
  node.params = Params{node.params[0], Param(asked)};
}
const bool hears = (before_deferring = [](RuleContext& c) {
  if (is_control_op(c.op)) ask_node(c);
  return item_as_rows(c);
}, true);

Shape common_shape(const Shape& a, const Shape& b) {
  if (!a.known_rank() || a.rank() != b.rank()) return Shape::unknown();
  Shape both = a;
  for (int i = 0; i < a.rank(); ++i)
    if (a[i] != b[i]) both[i] = -1;
  return both;
}

// ---- branches: the index of the branch, then what the branches use

const std::shared_ptr<Graph>& chosen_branch(const Params& params, const Tensor& number) {
  const auto& branches = control_in(params).graphs;
  int64_t index = read_ints(number.dtype() == DType::boolean ? cast(number, DType::int32) : number)[0];
  return branches[index < 0 || index >= int64_t(branches.size()) ? branches.size() - 1 : size_t(index)];
}

const Op& case_op = define_inner(Op{
    .name = "Case",
    .arguments = {tensors("branch_index_and_inputs", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const auto& branches = control_in(call.params).graphs;
          const Graph& first = *branches[0];
          for (size_t i = 0; i < first.outputs.size(); ++i) {
            const Tensor& t = first.values[first.outputs[i]].tensor;
            Shape shape = t.shape();
            for (const auto& other : branches) shape = common_shape(shape, other->values[other->outputs[i]].tensor.shape());
            call.returns(t.dtype(), shape);
          }
          call.returns(DType::variant, Shape());
        },
    .kernel =
        [](Call& call) {
          PauseRecording unheard;
          const auto& branch = chosen_branch(call.params, call.in[0]);
          std::span<const Tensor> in = call.in.subspan(1, branch->inputs.size());
          if (call.params[1].is_none()) {
            give(call, call_graph(branch, in));
            return call.out.push_back(no_history());
          }
          BranchHistory history{sources_of(call.params, 1, in.size()), {}, {}};
          give(call, run_branch(branch, in, history));
          call.out.push_back(carry(std::move(history)));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          const auto& branch = chosen_branch(c.params, c.x(0));
          size_t inputs = branch->inputs.size();
          if (auto* history = history_in<BranchHistory>(c.y(c.outputs() - 1)))
            return set_results(c, history->sources, walk_back(*history, c.kept_inputs.subspan(1), c.given, c.kept_outputs), 1, inputs);
          check_can_run_again(c, "cond");
          Replay replay;
          differentiate_run(c, [&](std::span<const Tensor> in) { return call_graph(branch, in.subspan(0, inputs)); }, 1);
        },
    .keep = keep_everything,
    .stateful = true,
    .effect = true,
    .rule_needs_values = true,
});

// ---- loops: the loop variables, then what condition and body use besides

const Op& while_op = define_inner(Op{
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
          PauseRecording unheard;
          const Loop& loop = *control_in(call.params).loop;
          if (call.params[1].is_none()) {
            give(call, loop.run(call.in));
            return call.out.push_back(no_history());
          }
          Loop::History history;
          history.sources = sources_of(call.params, 0, loop.body()->inputs.size());
          give(call, loop.run(call.in, &history));
          call.out.push_back(carry(std::move(history)));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          const Loop& loop = *control_in(c.params).loop;
          if (auto* history = history_in<Loop::History>(c.y(c.outputs() - 1)))
            return set_results(c, history->sources, loop.walk_back(*history, c.kept_inputs, c.given, c.kept_outputs), 0, loop.body()->inputs.size());
          check_can_run_again(c, "while_loop");
          Replay replay;
          differentiate_run(c, [&](std::span<const Tensor> in) { return loop.run_heard(in); });
        },
    .keep = keep_everything,
    .stateful = true,
    .effect = true,
    .rule_needs_values = true,
});

SmallVector<Tensor, 2> add(const Op& op, std::shared_ptr<Control> control, SmallVector<Tensor, 8> in) {
  std::vector<VariableBody*> variables;
  for (const auto& graph : control->graphs)
    for (VariableBody* v : variables_read(*graph))
      if (std::ranges::find(variables, v) == variables.end()) variables.push_back(v);
  for (VariableBody* v : variables) {
    control->variables.push_back(variable_param(*v));
    in.push_back(read_variable(*v));
  }
  return run_all(op, in, {Param(std::static_pointer_cast<void>(std::move(control))), Param()});
}

}  // namespace

bool is_control_op(const Op& op) { return &op == &case_op || &op == &while_op; }

std::vector<std::shared_ptr<Graph>> graphs_of(const Node& node) { return control_in(node.params).graphs; }

Params remembering(const Params& params, std::span<const Tensor> inputs) {
  Ints asked;
  bool any = false;
  for (const Tensor& t : inputs) {
    asked.push_back(std::ranges::any_of(thread_state().recorders, [&](const Recorder* r) { return r->follows(t); }));
    any |= asked.back() != 0;
  }
  return any ? Params{params[0], Param(asked)} : params;
}

SmallVector<Tensor, 2> add_case(const Tensor& index, std::span<const std::shared_ptr<Graph>> branches, std::span<const Tensor> inputs) {
  auto control = std::make_shared<Control>();
  control->graphs.assign(branches.begin(), branches.end());
  SmallVector<Tensor, 8> in;
  in.push_back(index);
  for (const Tensor& t : inputs) in.push_back(t);
  return add(case_op, std::move(control), std::move(in));
}

SmallVector<Tensor, 2> add_while(std::shared_ptr<Graph> condition, std::shared_ptr<Graph> body, std::span<const Tensor> inputs,
                                 int64_t loop_variables, int64_t limit) {
  auto control = std::make_shared<Control>();
  control->graphs = {condition, body};
  control->loop = std::make_unique<Loop>(std::move(condition), std::move(body), loop_variables, limit);
  SmallVector<Tensor, 8> in;
  for (const Tensor& t : inputs) in.push_back(t);
  return add(while_op, std::move(control), std::move(in));
}

}  // namespace tapeflow
