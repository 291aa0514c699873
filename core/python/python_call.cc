// Nodes of a graph that call back into Python: tf.py_function, and compositions that could not be traced.
#include <algorithm>

#include "autodiff/numerics.h"
#include "control_flow/control_ops.h"
#include "control_flow/loop.h"
#include "graph/graph.h"
#include "graph/run.h"
#include "python/graph/graph.h"
#include "python/graph/graph_rows.h"

namespace tapeflow::python {
namespace {

struct PythonCall {
  PyObject *function, *rule;  // list of tensors -> list of tensors; (inputs, outputs, dy) -> list of dx
  SmallVector<Spec, 2> specs;
  mutable bool traceable;  // what it does may be traced, once the shapes of its inputs are known; until that has failed
  PythonCall(PyObject* f, PyObject* r, bool may_be_traced)
      : function(Py_NewRef(f)), rule(Py_NewRef(r)), traceable(may_be_traced) {}
  ~PythonCall() {
    Py_DECREF(function);
    Py_DECREF(rule);
  }
};
constexpr struct : Keys {
  Key<Boxed<const PythonCall>> call = next("call");
} python_params;
const PythonCall& python_call(const Params& params) { return params[python_params.call]; }

Op python_op(const char* name, bool effect) {
  return Op{
      .name = name,
      .arguments = {tensors("input", any_dtype)},
      .infer_staged =
          [](Call& call) {
            for (const Spec& s : python_call(call.params).specs) call.returns(s.dtype, s.shape);
          },
      .kernel =
          [](Call& call) {
            PauseRecording unrecorded;
            NumericsCheck::attach_again();
            const PythonCall& p = python_call(call.params);
            if (thread_locals.replay && p.specs.empty()) return;  // its effect has happened already
            Ref in = checked(wrap_list(call.in));
            Ref out(PyObject_CallOneArg(p.function, in.get()));
            if (!out) translate_memory_error(), throw_python_error();
            for (Tensor& t : tensors_of(out.get(), "py_function")) call.out.push_back(std::move(t));
          },
      .makes_outputs = true,
      .vjp =
          [](RuleContext& c) {
            const PythonCall& p = python_call(c.params);
            if (p.rule == Py_None) return;
            Ref in = checked(wrap_list(c.kept_inputs)), out = checked(wrap_list(c.kept_outputs)),
                dy = checked(PyList_New(0));
            for (int j = 0; j < c.outputs(); ++j) {
              Ref item = c.has_dy(j) ? checked(wrap(c.dy(j))) : Ref::share(Py_None);
              if (PyList_Append(dy.get(), item.get()) < 0) throw_python_error();
            }
            Ref results = checked(PyObject_CallFunctionObjArgs(p.rule, in.get(), out.get(), dy.get(), nullptr));
            Ref items = checked(PySequence_Fast(results.get(), "a list of gradients is expected"));
            for (int i = 0; i < c.inputs(); ++i) {
              PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
              if (item != Py_None && c.wants(i)) c.set(i, to_tensor(item, c.dtype(i), DType::invalid, "py_function"));
            }
          },
      .keep = keep_everything,
      .stateful = true,
      .effect = effect,
      .calls_python = true,
      .keeps_params = true,
      .python_rule = true,
  };
}

const Op& python_function_op() {
  static const Op& op = define_inner(python_op("EagerPyFunc", true));
  return op;
}
// What draws random numbers draws them when it runs, as the program would.
bool trace_composition(Call& call) {
  const PythonCall& p = python_call(call.params);
  if (!p.traceable || std::ranges::any_of(call.in, [](const Tensor& t) { return t.size() < 0; })) return false;
  auto& graph = *static_cast<Graph*>(thread_state().stage);
  const size_t count = graph.nodes.size();
  try {
    Ref in = checked(wrap_list(call.in));
    Ref out = checked(PyObject_CallOneArg(p.function, in.get()));
    for (Tensor& t : tensors_of(out.get(), "tf.function")) call.out.push_back(std::move(t));
  } catch (const Error&) {
    PyErr_Clear();
    call.out.clear();
  }
  bool traced = call.out.size() == p.specs.size();
  for (size_t i = count; i < graph.nodes.size(); ++i) {
    const Op* op = graph.nodes[i].op;  // null: a composition inside could not be traced
    traced &= op && !op->stateful && !op->effect;
  }
  if (traced) return true;
  call.out.clear();
  graph.cut_back(count);
  p.traceable = false;
  return false;
}
const Op& composition_op() {
  static const Op& op = []() -> const Op& {
    Op composition = python_op("Composition", false);
    composition.expand = trace_composition;
    composition.planning.graph_break = true;
    return define_inner(std::move(composition));
  }();
  return op;
}

bool is_python_op(const Op& op) { return &op == &python_function_op() || &op == &composition_op(); }

// call_python(function, inputs, dtypes, shapes, rule, effect, traceable=False): a node that runs a Python function.
PyObject* call_python(PyObject*, PyObject* args) {
  PyObject *function, *inputs, *dtypes, *shapes, *rule;
  int effect, traceable = 0;
  if (!PyArg_ParseTuple(args, "OOO!O!Op|p:call_python", &function, &inputs, &PyList_Type, &dtypes, &PyList_Type,
                        &shapes, &rule, &effect, &traceable))
    return nullptr;
  return guarded([&] {
    auto call = std::make_shared<PythonCall>(function, rule, traceable);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(dtypes); ++i)
      call->specs.push_back({dtype_from(PyList_GET_ITEM(dtypes, i)), shape_from(PyList_GET_ITEM(shapes, i))});
    SmallVector<Tensor, 8> in = tensors_of(inputs, "py_function");
    return wrap_list(
        run_all(effect ? python_function_op() : composition_op(), in, {Param(std::static_pointer_cast<void>(call))}));
  });
}

PyMethodDef functions[] = {
    {"call_python", call_python, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* python_call_in(const Node& node) {
  if (!is_python_op(*node.op)) return nullptr;
  const PythonCall& call = python_call(node.params);
  Ref dtypes = checked(PyList_New(0)), shapes = checked(PyList_New(0));
  for (const Spec& spec : call.specs) {
    Ref dtype = checked(wrap_dtype(spec.dtype)), shape = checked(wrap_shape(spec.shape));
    if (PyList_Append(dtypes.get(), dtype.get()) < 0 || PyList_Append(shapes.get(), shape.get()) < 0)
      throw_python_error();
  }
  return Py_BuildValue("(OOOO)", call.function, dtypes.get(), shapes.get(), call.rule == Py_None ? Py_False : Py_True);
}

bool is_opaque_call(const Op& op, const Params& params) {
  return params.size() && is_python_op(op) && python_call(params).rule == Py_None;
}

void add_python_calls(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
