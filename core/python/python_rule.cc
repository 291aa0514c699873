// Operations whose derivative rule is a Python function: tf.custom_gradient, and gradients overridden in a graph.
#include <algorithm>
#include <memory>

#include "autodiff/forward.h"
#include "autodiff/tape.h"
#include "graph/run.h"
#include "ops/ops.h"
#include "python/graph/graph.h"
#include "python/tape.h"
#include "transforms/differentiate.h"

namespace tapeflow::python {
namespace {

constexpr struct : Keys {
  Key<Boxed<PyObject>> rule = next("rule"), forward_rule = next("forward_rule");
  Key<int64_t> outputs = next("outputs");  // only of a node, which takes the outputs before the inputs
} custom_params;

// A list of tensors, with None for those that are missing.
Ref list_of_tensors(std::span<const Tensor> tensors) {
  Ref list = checked(PyList_New(0));
  for (const Tensor& t : tensors) {
    Ref item = t ? checked(wrap(t)) : Ref::share(Py_None);
    if (PyList_Append(list.get(), item.get()) < 0) throw_python_error();
  }
  return list;
}

// The rule of a custom operation: a callable from the list of dy to the list of dx, one per input, None for no
// gradient.
void call_python_rule(RuleContext& c) {
  PyObject* rule = &c.params[custom_params.rule];
  Ref results = checked(PyObject_CallOneArg(rule, list_of_tensors(c.given).get()));
  Ref items = checked(PySequence_Fast(results.get(), "a gradient function must return a list"));
  const int first = int(c.params.size()) == custom_params.count ? int(c.params[custom_params.outputs]) : 0;
  for (int i = first; i < c.inputs(); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i - first);
    if (item == Py_None || !c.wants(i)) continue;
    if (is_indexed_slices(item)) {
      Ref values = checked(PyObject_GetAttrString(item, "values")),
          indices = checked(PyObject_GetAttrString(item, "indices"));
      c.set_rows(i, to_tensor(values.get(), c.dtype(i), DType::invalid, "custom_gradient"),
                 to_tensor(indices.get(), DType::invalid, DType::int32, "custom_gradient"));
    } else {
      c.set(i, to_tensor(item, c.dtype(i), DType::invalid, "custom_gradient"));
    }
  }
}

// Sets each y_dot that a forward rule gave (None where nothing flows).
void set_tangents(RuleContext& c, PyObject* results, int outputs) {
  Ref items = checked(PySequence_Fast(results, "a forward rule must return a list"));
  for (int j = 0; j < outputs; ++j) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), j);
    if (item != Py_None)
      c.set(j, to_tensor(item, c.kept_outputs[size_t(j)].dtype(), DType::invalid, "custom_gradient"));
  }
}

// The forward rule of a custom operation: a callable from the list of x_dot (None where nothing flows) to that of
// y_dot. A node takes the outputs before the inputs.
void call_python_forward_rule(RuleContext& c) {
  const bool node = int(c.params.size()) == custom_params.count;
  const size_t first = node ? size_t(c.params[custom_params.outputs]) : 0;
  Ref x_dot = list_of_tensors(c.given.subspan(first));
  Ref results = checked(PyObject_CallOneArg(&c.params[custom_params.forward_rule], x_dot.get()));
  set_tangents(c, results.get(), c.outputs());
}

const Op& custom_op(bool with_forward_rule) {
  static const Op& op = define_inner(Op{.name = "CustomGradient",
                                        .planning = {.view = ViewKind::always},
                                        .arguments = {},
                                        .vjp = call_python_rule,
                                        .custom_gradient = true,
                                        .python_rule = true,
                                        .names = {"custom_gradient"}});
  static const Op& both = define_inner(Op{.name = "CustomGradient",
                                          .planning = {.view = ViewKind::always},
                                          .arguments = {},
                                          .vjp = call_python_rule,
                                          .jvp = call_python_forward_rule,
                                          .custom_gradient = true,
                                          .python_rule = true,
                                          .names = {"custom_gradient"}});
  return with_forward_rule ? both : op;
}

// The same as a node of a graph: takes the outputs and then the inputs, and gives the outputs.
int staged_outputs(const Params& params) { return int(params[custom_params.outputs]); }

const Op& staged_custom_op() {
  static const Op& op = define_inner(Op{
      .name = "CustomGradient",
      .planning = {.view = ViewKind::always},
      .arguments = {tensors("outputs_and_inputs", any_dtype)},
      .infer_staged =
          [](Call& call) {
            for (int i = 0; i < staged_outputs(call.params); ++i)
              call.returns(call.in[size_t(i)].dtype(), call.in[size_t(i)].shape());
          },
      .kernel =
          [](Call& call) {
            for (int i = 0; i < staged_outputs(call.params); ++i)
              call.out.push_back(call.in[size_t(i)].view(call.in[size_t(i)].shape()));
          },
      .makes_outputs = true,
      .vjp = call_python_rule,
      .jvp =
          [](RuleContext& c) {
            // If the function's own operations have been followed, as where a whole graph is differentiated, their
            // tangents are taken: the rule may need the place where the node was made.
            const auto outputs = c.given.first(size_t(staged_outputs(c.params)));
            const bool followed = std::ranges::any_of(outputs, [](const Tensor& t) { return bool(t); });
            if (!followed && &c.params[custom_params.forward_rule] != Py_None) return call_python_forward_rule(c);
            for (size_t i = 0; i < outputs.size(); ++i) c.set(int(i), outputs[i]);
          },
      .custom_gradient = true,
      .python_rule = true,
      .names = {"custom_gradient"},
  });
  return op;
}

// A custom operation whose rule was traced, too: takes the outputs, the inputs, and what the graph of the rule takes
// besides the dy; gives the outputs.
constexpr struct : Keys {
  Key<Boxed<const TracedRule>> rule = next("rule");
} traced_params;
const TracedRule& traced_rule(const Params& params) { return params[traced_params.rule]; }

const Op& traced_custom_op() {
  static const Op& op = define_inner(Op{
      .name = "CustomGradient",
      .planning = {.view = ViewKind::always},
      .arguments = {tensors("outputs_inputs_and_captures", any_dtype)},
      .infer_staged =
          [](Call& call) {
            for (const Tensor& t : call.in.subspan(0, size_t(traced_rule(call.params).outputs)))
              call.returns(t.dtype(), t.shape());
          },
      .kernel =
          [](Call& call) {
            for (const Tensor& t : call.in.subspan(0, size_t(traced_rule(call.params).outputs)))
              call.out.push_back(t.view(t.shape()));
          },
      .makes_outputs = true,
      .vjp =
          [](RuleContext& c) {
            const TracedRule& rule = traced_rule(c.params);
            Tensors in;
            for (int j = 0; j < rule.outputs; ++j) in.push_back(c.has_dy(j) ? c.dy(j) : zeros_like(c.x(j)));
            for (int i = rule.outputs + rule.inputs; i < c.inputs(); ++i) in.push_back(c.x(i));
            Tensors dx = call_graph(rule.graph, in);
            size_t next = 0;
            for (int i = 0; i < rule.inputs; ++i) {
              int kind = rule.kinds[size_t(i)], place = rule.outputs + i;
              if (kind == 0) continue;
              Tensor values = dx[next++], rows = kind == 2 ? dx[next++] : Tensor();
              if (!c.wants(place)) continue;
              if (rows)
                c.set_rows(place, values, rows);
              else
                c.set(place, values);
            }
          },
      .jvp =
          [](RuleContext& c) {
            const TracedRule& rule = traced_rule(c.params);
            const size_t outputs = size_t(rule.outputs), inputs = size_t(rule.inputs);
            if (rule.forward_rule) {
              Ref x_dot = list_of_tensors(c.given.subspan(outputs, inputs)),
                  x = list_of_tensors(c.kept_inputs.subspan(outputs, inputs));
              auto* function = static_cast<PyObject*>(rule.forward_rule.get());
              Ref results = checked(PyObject_CallFunctionObjArgs(function, x_dot.get(), x.get(), nullptr));
              return set_tangents(c, results.get(), rule.outputs);
            }
            for (int i = 0; i < rule.outputs; ++i) c.set(i, c.x_dot(i));
          },
      .keep = keep_all_inputs,
      .custom_gradient = true,
      .python_rule = true,
      .names = {"custom_gradient"},
  });
  return op;
}

std::shared_ptr<void> shared(PyObject* o) {
  return std::shared_ptr<void>(Py_NewRef(o), [](void* held) { Py_DECREF(static_cast<PyObject*>(held)); });
}

std::shared_ptr<TracedRule> traced_rule_from(int outputs, int inputs, PyObject* graph, PyObject* kinds) {
  auto rule = std::make_shared<TracedRule>();
  rule->graph = checked_graph(graph);
  rule->outputs = outputs;
  rule->inputs = inputs;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(kinds); ++i)
    rule->kinds.push_back(int(PyLong_AsLong(PyList_GET_ITEM(kinds, i))));
  return rule;
}

// record_traced(outputs, inputs, captures, graph, kinds, forward_rule): the same for a rule that was traced into a
// graph.
PyObject* record_traced(PyObject*, PyObject* args) {
  PyObject *outputs, *inputs, *captures, *graph, *kinds, *forward_rule;
  if (!PyArg_ParseTuple(args, "O!O!O!OO!O:record_traced", &PyList_Type, &outputs, &PyList_Type, &inputs, &PyList_Type,
                        &captures, &graph, &PyList_Type, &kinds, &forward_rule))
    return nullptr;
  return guarded([&] {
    auto rule = traced_rule_from(int(PyList_GET_SIZE(outputs)), int(PyList_GET_SIZE(inputs)), graph, kinds);
    if (forward_rule != Py_None) rule->forward_rule = shared(forward_rule);
    SmallVector<Tensor, 8> in;
    for (PyObject* list : {outputs, inputs, captures})
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) in.push_back(operand(PyList_GET_ITEM(list, i)));
    return wrap_list(run_all(traced_custom_op(), in, {Param(std::static_pointer_cast<void>(rule))}));
  });
}

// In forward mode the function's own operations have been tracked. If they left no tangent, the rule is asked for one.
bool pass_tangents(ForwardAccumulator& accumulator, PyObject* outputs, const Call& call) {
  bool any = false;
  for (size_t i = 0; i < call.out.size(); ++i) {
    Tensor tangent = accumulator.tangent(tensor_of(PyList_GET_ITEM(outputs, Py_ssize_t(i))));
    if (!tangent) continue;
    accumulator.watch(call.out[i], tangent);
    any = true;
  }
  return any;
}

// record_operation(outputs, inputs, rule, forward_rule=None): notifies the open recorders that `outputs` came from
// `inputs` by an operation with these rules. Gives new tensors with the outputs' elements; those are what is recorded.
PyObject* record_operation(PyObject*, PyObject* args) {
  PyObject *outputs, *inputs, *rule, *forward_rule = Py_None;
  if (!PyArg_ParseTuple(args, "O!O!O|O:record_operation", &PyList_Type, &outputs, &PyList_Type, &inputs, &rule,
                        &forward_rule))
    return nullptr;
  return guarded([&]() -> PyObject* {
    SmallVector<Tensor, 4> in;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i) in.push_back(operand(PyList_GET_ITEM(inputs, i)));
    bool has_forward_rule = forward_rule != Py_None;
    auto own_params = [&] { return Params{Param(shared(rule)), Param(shared(forward_rule))}; };
    const Params params = own_params();
    bool symbolic = false;
    SmallVector<Tensor, 4> both;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) both.push_back(tensor_of(PyList_GET_ITEM(outputs, i)));
    for (const Tensor& t : in) both.push_back(t);
    for (const Tensor& t : both) symbolic |= t.symbolic();
    if (thread_state().stage && symbolic)
      return wrap_list(run_all(staged_custom_op(), both, params.appended(Param(int64_t(PyList_GET_SIZE(outputs))))));
    Call call(custom_op(has_forward_rule), in, params);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) {
      Tensor t = tensor_of(PyList_GET_ITEM(outputs, i));
      call.out.push_back(t.view(t.shape()));
    }
    // Each recorder holds references of its own to the rules: see visit_python_rules().
    auto& recorders = thread_state().recorders;
    for (size_t i = 0; i < recorders.size(); ++i) {
      if (!has_forward_rule && recorders[i]->forward() &&
          pass_tangents(static_cast<ForwardAccumulator&>(*recorders[i]), outputs, call))
        continue;
      const Params own = own_params();
      Call recorded(call.op, in, own);
      recorded.out = call.out;
      recorders[i]->record(recorded);
    }
    return wrap_list(call.out);
  });
}

// override_gradient(graph, node, rule, traced): another rule for a node, for those who differentiate the graph as a
// whole. `rule` goes from the list of dy to that of dx; `traced` is None, or what it captures, its graph, and the kinds
// of the dx.
PyObject* override_gradient(PyObject*, PyObject* args) {
  PyObject *graph_object, *rule, *traced;
  int number;
  if (!PyArg_ParseTuple(args, "OiOO:override_gradient", &graph_object, &number, &rule, &traced)) return nullptr;
  return guarded([&]() -> PyObject* {
    Graph& graph = *checked_graph(graph_object);
    const Node& node = graph.nodes[size_t(number)];
    Graph::Override entry{
        &staged_custom_op(), {Param(shared(rule)), Param(shared(Py_None)), Param(int64_t(node.outputs))}, {}};
    if (traced != Py_None) {
      PyObject *captures, *rule_graph, *kinds;
      if (!PyArg_ParseTuple(traced, "O!OO!", &PyList_Type, &captures, &rule_graph, &PyList_Type, &kinds))
        throw_python_error();
      auto own = traced_rule_from(int(node.outputs), int(node.inputs.size()), rule_graph, kinds);
      entry.op = &traced_custom_op();
      entry.params = {Param(std::static_pointer_cast<void>(own))};
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(captures); ++i)
        entry.more.push_back(graph.id_of(operand(PyList_GET_ITEM(captures, i))));
    }
    graph.overrides.insert_or_assign(number, std::move(entry));
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"record_traced", record_traced, METH_VARARGS, nullptr},
    {"override_gradient", override_gradient, METH_VARARGS, nullptr},
    {"record_operation", record_operation, METH_VARARGS, "Records an operation whose rule is a Python function."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int visit_python_rules(const Op& op, const Params& params, visitproc visit, void* arg) {
  const bool recorded = &op == &custom_op(false) || &op == &custom_op(true);  // nodes of graphs share their rules
  if (!recorded || params.size() == 0) return 0;                              // used up
  for (auto key : {custom_params.rule, custom_params.forward_rule}) Py_VISIT(&params[key]);
  return 0;
}

const TracedRule* traced_rule_of(const Node& node) {
  return node.op == &traced_custom_op() ? &traced_rule(node.params) : nullptr;
}

void add_python_rules(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
