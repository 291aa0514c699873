// Graphs as plain Python data, from which the Python side writes files and builds graphs again.
#include <memory>
#include <string_view>

#include "autodiff/deferred.h"
#include "control_flow/control_ops.h"
#include "control_flow/list_ops.h"
#include "control_flow/loop.h"
#include "python/graph/graph.h"
#include "python/graph/graph_rows.h"
#include "vmap/jacobian.h"
#include "vmap/vmap.h"

namespace tapeflow::python {
namespace {

void append(const Ref& list, PyObject* item) {
  Ref owned = checked(item);
  if (PyList_Append(list.get(), owned.get()) < 0) throw_python_error();
}

template <class Items, class Make> PyObject* list_of(const Items& items, Make make) {
  Ref list = checked(PyList_New(0));
  for (const auto& item : items) append(list, make(item));
  return list.release();
}

PyObject* number_of(ValueId v) { return PyLong_FromLongLong(int64_t(v)); }

PyObject* data_of(const Graph&);

constexpr const char* kParams = "tapeflow.params";

// (operation, inputs, outputs, whether a cotangent flows for each output, which inputs want a gradient, a handle for
// `trace_deferred`, or None if a parameter is computed) of a deferred rule.
PyObject* deferred_of(const Node& node, const DeferredRule& rule) {
  Ref handle = Ref::share(Py_None);
  if (!node.params.has_tensor()) {
    auto params = std::make_unique<Params>(node.params);
    handle = checked(PyCapsule_New(params.get(), kParams, [](PyObject* capsule) {
      delete static_cast<Params*>(PyCapsule_GetPointer(capsule, kParams));
    }));
    params.release();
  }
  const auto flag = [](bool b) { return PyBool_FromLong(b); };
  return Py_BuildValue("(siiNNO)", rule.op->name, rule.inputs, rule.outputs, list_of(rule.flows, flag),
                       list_of(rule.wanted, flag), handle.get());
}

// What a parameter that is an object is; it depends on the operation.
PyObject* object_of(const Node& node, const Param& p) {
  if (node.op == &read_variable_op() || node.op == &assign_op() || node.op == &is_initialized_op()) {
    void* wrapper = variable_in(p).wrapper;
    if (!wrapper) fail(ErrorKind::value, "a variable that the graph uses does not exist any more");
    return Py_NewRef(static_cast<PyObject*>(wrapper));
  }
  if (is_control_op(*node.op)) return list_of(graphs_of(node), [](const auto& graph) { return data_of(*graph); });
  if (const Shape* element = list_element_of(node)) return wrap_shape(*element);
  if (const std::string* message = required_message_of(node)) return PyUnicode_FromString(message->c_str());
  if (node.op == &constant_op()) return wrap(constant_in(p));
  if (const DeferredRule* rule = deferred_rule_of(*node.op, node.params)) return deferred_of(node, *rule);
  if (const TracedRule* rule = traced_rule_of(node))
    return Py_BuildValue("(NiiN)", checked(data_of(*rule->graph)).release(), rule->outputs, rule->inputs,
                         list_of(rule->kinds, [](int kind) { return PyLong_FromLong(kind); }));
  SmallVector<bool, 8> sliced;
  if (const Graph* row = batched_graph_of(*node.op, node.params, sliced))
    return Py_BuildValue("(NN)", checked(data_of(*row)).release(), list_of(sliced, PyBool_FromLong));
  bool by_example = false;
  if (const Graph* backward = jacobian_graph_of(*node.op, node.params, by_example))
    return Py_BuildValue("(NN)", checked(data_of(*backward)).release(), PyBool_FromLong(by_example));
  if (PyObject* call = python_call_in(node)) return call;
  return Py_NewRef(Py_Ellipsis);
}

// Pairs of a letter and a value.
PyObject* param_of(const Node& node, const Param& p) {
  switch (p.kind) {
    case Param::Kind::flag: return Py_BuildValue("(sO)", "b", p.flag ? Py_True : Py_False);
    case Param::Kind::integer: return Py_BuildValue("(sL)", "i", static_cast<long long>(p.integer));
    case Param::Kind::real: return Py_BuildValue("(sd)", "f", p.real);
    case Param::Kind::dtype: return Py_BuildValue("(ss)", "d", name_of(p.dtype));
    case Param::Kind::ints:
      return Py_BuildValue("(sN)", "n", list_of(p.ints, [](int64_t n) { return PyLong_FromLongLong(n); }));
    case Param::Kind::text:
      return Py_BuildValue("(sN)", "s", PyBytes_FromStringAndSize(p.text.data(), Py_ssize_t(p.text.size())));
    case Param::Kind::tensor:
      return Py_BuildValue("(s(Li))", "v", static_cast<long long>(p.tensor().body()->symbol().value),
                           p.argument_kind());
    case Param::Kind::object: return Py_BuildValue("(sN)", "o", checked(object_of(node, p)).release());
    default: return Py_BuildValue("(sO)", "x", Py_None);
  }
}

// Appends the parameters of a node. Those of a deferred rule are its plan, and then what its operation has.
void append_params(Ref& params, const Node& node) {
  const DeferredRule* rule = deferred_rule_of(*node.op, node.params);
  bool nested = rule && !is_control_op(*rule->op);  // the graphs of a branch or loop are those of the node itself
  Params own = nested ? node.params.first(1) : node.params;
  for (int i = 0; i < int(own.size()); ++i) append(params, param_of(node, own.at(i)));
  if (!nested) return;
  Node inner = node;
  inner.op = rule->op;
  inner.params = node.params.without_first();
  append_params(params, inner);
}

// (operation, inputs, parameters, first output, number of outputs, for a loop its variables and limit, number)
PyObject* node_of(const Node& node, size_t number) {
  Ref inputs = checked(list_of(node.inputs, number_of)), params = checked(PyList_New(0));
  append_params(params, node);
  const Loop* loop = is_control_op(*node.op) ? loop_of(node) : nullptr;
  Ref extent =
      loop ? checked(Py_BuildValue("(nL)", Py_ssize_t(loop->variables()), static_cast<long long>(loop->limit())))
           : Ref::share(Py_None);
  return Py_BuildValue("(sOOLIOn)", node.op->name, inputs.get(), params.get(),
                       static_cast<long long>(node.first_output), node.outputs, extent.get(), Py_ssize_t(number));
}

// (inputs as triples of number, dtype and shape; constants by number; nodes; outputs; dtype and shape of each value)
PyObject* data_of(const Graph& graph) {
  Ref inputs = checked(list_of(graph.inputs, [&](ValueId v) {
    const Tensor& t = graph.values[v].tensor;
    return Py_BuildValue("(LsN)", static_cast<long long>(v), name_of(t.dtype()), wrap_shape(t.shape()));
  }));
  Ref constants = checked(PyDict_New()), nodes = checked(PyList_New(0)),
      outputs = checked(list_of(graph.outputs, number_of));
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].node != Value::kConstant) continue;
    Ref key = checked(PyLong_FromSize_t(v)), value = checked(wrap(graph.values[v].tensor));
    if (PyDict_SetItem(constants.get(), key.get(), value.get()) < 0) throw_python_error();
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].op) append(nodes, node_of(graph.nodes[i], i));
  Ref kinds = checked(list_of(graph.values, [](const Value& v) {
    return Py_BuildValue("(sN)", name_of(v.tensor.dtype()), wrap_shape(v.tensor.shape()));
  }));
  return Py_BuildValue("(OOOOO)", inputs.get(), constants.get(), nodes.get(), outputs.get(), kinds.get());
}

PyObject* graph_data(PyObject*, PyObject* graph) {
  return guarded([&] { return data_of(*checked_graph(graph)); });
}

// trace_deferred(handle, tensors): what the rule of a deferred node gives for these tensors, whose shapes may be
// unknown.
PyObject* trace_deferred(PyObject*, PyObject* args) {
  PyObject *handle, *tensors;
  if (!PyArg_ParseTuple(args, "OO!:trace_deferred", &handle, &PyList_Type, &tensors)) return nullptr;
  return guarded([&]() -> PyObject* {
    auto* params = static_cast<Params*>(PyCapsule_GetPointer(handle, kParams));
    if (!params) throw_python_error();
    return wrap_list(run_deferred_rule(*params, tensors_of(tensors, "trace_deferred")));
  });
}

Param param_from(PyObject* pair) {
  const char* kind;
  PyObject* value;
  if (!PyArg_ParseTuple(pair, "sO:add_node", &kind, &value)) throw_python_error();
  switch (*kind) {
    case 'b': return Param(value == Py_True);
    case 'i': return Param(int64_t(PyLong_AsLongLong(value)));
    case 'f': return Param(PyFloat_AsDouble(value));
    case 'd': return Param(dtype_from(value));
    case 'n': return Param(to_ints(value, "saved_model.load", "a parameter"));
    case 's': return Param(std::string(PyBytes_AsString(value), size_t(PyBytes_Size(value))));
    case 'x': return Param();
    case 'v': {
      PyObject* tensor;
      int argument_kind;
      if (!PyArg_ParseTuple(value, "Oi:add_node", &tensor, &argument_kind)) throw_python_error();
      return Param(tensor_of(tensor), argument_kind);
    }
    default: fail(ErrorKind::value, "saved_model.load: a parameter of the kind '", kind, "' is not known");
  }
}

// add_node(operation, inputs, parameters): the outputs of an operation, by its name and parameters as graph_data gives
// them.
PyObject* add_node(PyObject*, PyObject* args) {
  const char* name;
  PyObject *inputs, *pairs;
  if (!PyArg_ParseTuple(args, "sO!O!:add_node", &name, &PyList_Type, &inputs, &PyList_Type, &pairs)) return nullptr;
  return guarded([&]() -> PyObject* {
    const Op* op = find_op(name);
    if (!op) fail(ErrorKind::value, "saved_model.load: there is no operation ", name);
    SmallVector<Tensor, 8> in;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i) in.push_back(tensor_of(PyList_GET_ITEM(inputs, i)));
    Params params = Params::sized(size_t(PyList_GET_SIZE(pairs)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs); ++i)
      params.mutable_at(int(i)) = param_from(PyList_GET_ITEM(pairs, i));
    if (PyErr_Occurred()) throw_python_error();
    return wrap_list(run_all(*op, in, params));
  });
}

// graph_rows(graph, variables): a row for each node as graph_rows.h says, and by the id of each symbolic tensor its
// number; `variables` is called with each variable and gives its number.
PyObject* graph_rows(PyObject*, PyObject* args) {
  PyObject *graph_object, *numbers_of_variables;
  if (!PyArg_ParseTuple(args, "OO!:graph_rows", &graph_object, &PyDict_Type, &numbers_of_variables)) return nullptr;
  return guarded([&]() -> PyObject* {
    const Graph& graph = *checked_graph(graph_object);
    Ref list = checked(PyList_New(0));
    auto number = [&](VariableBody& v) -> ValueIndex {
      if (!v.wrapper) return kUntracked;
      Ref key = checked(PyLong_FromVoidPtr(v.wrapper));
      if (PyObject* known = PyDict_GetItem(numbers_of_variables, key.get()))
        return ValueIndex(PyLong_AsUnsignedLong(known));
      Ref fresh = checked(PyLong_FromSsize_t(PyDict_Size(numbers_of_variables)));
      if (PyDict_SetItem(numbers_of_variables, key.get(), fresh.get()) < 0) throw_python_error();
      return ValueIndex(PyLong_AsUnsignedLong(fresh.get()));
    };
    constexpr ValueIndex kFirstInput = 1 << 20;
    GraphRows rows(list.get(), GraphRows::kFirst, number);
    std::vector<ValueIndex> at(graph.values.size(), kUntracked);
    for (size_t i = 0; i < graph.inputs.size(); ++i) at[graph.inputs[i]] = kFirstInput + ValueIndex(i);
    rows.add(graph, at);
    Ref numbers = checked(PyList_New(0));
    for (ValueIndex i : at) append(numbers, i == kUntracked ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(i));
    return Py_BuildValue("(OO)", list.get(), numbers.get());
  });
}

// value_number(tensor): the number of a symbolic tensor among the values of its graph.
PyObject* value_number(PyObject*, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(tensor) || !tensor_of(tensor).symbolic()) Py_RETURN_NONE;
    return number_of(tensor_of(tensor).body()->symbol().value);
  });
}

PyMethodDef functions[] = {
    {"graph_rows", graph_rows, METH_VARARGS, nullptr},
    {"value_number", value_number, METH_O, nullptr},
    {"trace_deferred", trace_deferred, METH_VARARGS, nullptr},
    {"graph_data", graph_data, METH_O, "A graph as plain data."},
    {"add_node", add_node, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_graph_data(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
