// Where operations go while a function is traced, and the nodes of control flow and of lists of tensors.
#include <algorithm>
#include <chrono>
#include <string_view>

#include "control_flow/control_ops.h"
#include "control_flow/list_ops.h"
#include "control_flow/loop.h"
#include "graph/graph.h"
#include "op/escape.h"
#include "ops/ops.h"
#include "ops/partial_shape.h"
#include "python/graph/graph.h"

namespace tapeflow::python {

namespace {

// ---- control flow

PyObject* case_node(PyObject*, PyObject* args) {
  PyObject *index, *branches, *inputs;
  if (!PyArg_ParseTuple(args, "OOO:add_case", &index, &branches, &inputs)) return nullptr;
  return guarded([&] {
    Ref items = checked(PySequence_Fast(branches, "a list of graphs is expected"));
    SmallVector<std::shared_ptr<Graph>, 4> graphs;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      graphs.push_back(checked_graph(PySequence_Fast_GET_ITEM(items.get(), i)));
    SmallVector<Tensor, 8> in = tensors_of(inputs, "switch_case");
    Tensors out = add_case(operand(index), std::span(graphs.begin(), graphs.size()), in);
    return wrap_list(std::span(out.begin(), out.size() - 1));  // without the saved tensors
  });
}
PyObject* while_node(PyObject*, PyObject* args) {
  PyObject *condition, *body, *inputs;
  long long variables, limit;
  if (!PyArg_ParseTuple(args, "OOOLL:add_while", &condition, &body, &inputs, &variables, &limit)) return nullptr;
  return guarded([&] {
    SmallVector<Tensor, 8> in = tensors_of(inputs, "while_loop");
    Tensors out = add_while(checked_graph(condition), checked_graph(body), in, variables, limit);
    return wrap_list(std::span(out.begin(), out.size() - 1));  // without the saved tensors
  });
}

// ---- lists of tensors

PyObject* list_set_node(PyObject*, PyObject* args) {
  PyObject *list, *index, *value;
  int growing;
  if (!PyArg_ParseTuple(args, "OOOp:list_set", &list, &index, &value, &growing)) return nullptr;
  return guarded([&] { return wrap(list_set(operand(list), operand(index), operand(value), growing)); });
}
PyObject* list_get_node(PyObject*, PyObject* args) {
  PyObject *list, *index, *element;
  if (!PyArg_ParseTuple(args, "OOO:list_get", &list, &index, &element)) return nullptr;
  return guarded([&] { return wrap(list_get(operand(list), operand(index), shape_from(element))); });
}
PyObject* list_stack_node(PyObject*, PyObject* args) {
  PyObject *list, *element;
  if (!PyArg_ParseTuple(args, "OO:list_stack", &list, &element)) return nullptr;
  return guarded([&] { return wrap(list_stack(operand(list), shape_from(element))); });
}
PyObject* required_node(PyObject*, PyObject* args) {
  PyObject *value, *holds;
  const char* text;
  if (!PyArg_ParseTuple(args, "OOs:required", &value, &holds, &text)) return nullptr;
  return guarded([&] { return wrap(required(operand(value), operand(holds), text)); });
}

// ---- where operations go

PyObject* is_symbolic(PyObject*, PyObject* o) { return PyBool_FromLong(is_tensor(o) && tensor_of(o).symbolic()); }
PyObject* current_graph(PyObject*, PyObject*) {
  auto* graph = static_cast<Graph*>(thread_state().stage);
  return Py_NewRef(graph && graph->wrapper ? static_cast<PyObject*>(graph->wrapper) : Py_None);
}
PyObject* is_tracing(PyObject*, PyObject*) { return PyBool_FromLong(thread_state().stage != nullptr); }
// swap_stage(graph or None) -> the one before
PyObject* swap_stage(PyObject*, PyObject* to) {
  return guarded([&] {
    Ref before(current_graph(nullptr, nullptr));
    thread_state().stage = to == Py_None ? nullptr : checked_graph(to).get();
    return before.release();
  });
}
// place(device, replica, among_several) -> what held before; see base/thread_locals.h
PyObject* place(PyObject*, PyObject* args) {
  int device, replica, among_several;
  if (!PyArg_ParseTuple(args, "iip:place", &device, &replica, &among_several)) return nullptr;
  if (device < 0 || device > 255 || replica < 0 || replica > 255)
    return PyErr_Format(PyExc_ValueError, "tf.device: there are at most 255 logical processors; got %d", device);
  const ThreadPlace before = thread_locals.place;
  thread_locals.place = {uint8_t(device), uint8_t(replica), among_several != 0};
  return Py_BuildValue("(iiO)", before.device, before.replica, before.among_several ? Py_True : Py_False);
}
PyObject* current_place(PyObject*, PyObject*) {
  return Py_BuildValue("(iiO)", thread_locals.place.device, thread_locals.place.replica,
                       thread_locals.place.among_several ? Py_True : Py_False);
}
PyObject* has_made_tensors(PyObject*, PyObject*) { return PyBool_FromLong(any_tensor_made()); }
PyObject* forget_first_tensor(PyObject*, PyObject*) {
  forget_tensors_made();
  Py_RETURN_NONE;
}
// device_of(tensor or variable): one more than the number of the processor; 0 if the program named none.
PyObject* device_of(PyObject*, PyObject* o) {
  return guarded([&] {
    if (is_variable(o)) return PyLong_FromLong(reinterpret_cast<VariableObject*>(o)->device);
    return PyLong_FromLong(is_tensor(o) ? reinterpret_cast<TensorObject*>(o)->device : 0);
  });
}
// place_of(tensor) -> (graph or None, value number, node number)
PyObject* place_of(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o) || !tensor_of(o).symbolic()) Py_RETURN_NONE;
    Symbol s = tensor_of(o).body()->symbol();
    auto* graph = static_cast<Graph*>(s.graph);
    PyObject* wrapper = graph && graph->wrapper ? static_cast<PyObject*>(graph->wrapper) : Py_None;
    return Py_BuildValue("(OIi)", wrapper, s.value, graph ? graph->values[s.value].node : -1);
  });
}
// hoist_last(graph) -> its number: moves the last node to right after the newest node that it uses or that has an
// effect.
PyObject* hoist_last(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Graph& graph = *checked_graph(o);
    const int last = int(graph.nodes.size()) - 1;
    if (last < 0 || !graph.controls.empty() || !graph.overrides.empty()) return PyLong_FromLong(last);
    int newest = -1;
    for_each_operand(graph.nodes[size_t(last)], [&](ValueId v) { newest = std::max(newest, graph.values[v].node); });
    for (int i = last - 1; i > newest; --i)
      if (graph.nodes[size_t(i)].op->effect) newest = i;
    const int place = newest + 1;
    std::rotate(graph.nodes.begin() + place, graph.nodes.begin() + last, graph.nodes.end());
    for (Value& v : graph.values)
      if (v.node >= place) v.node = v.node == last ? place : v.node + 1;
    return PyLong_FromLong(place);
  });
}
// narrow_shape(tensor, shape): says what a symbolic tensor's shape will be.
PyObject* narrow_shape(PyObject*, PyObject* args) {
  PyObject *o, *shape;
  if (!PyArg_ParseTuple(args, "OO:narrow_shape", &o, &shape)) return nullptr;
  return guarded([&]() -> PyObject* {
    TensorBody* body = tensor_of(o).body();
    body->shape = shape_from(shape);
    body->size = body->shape.fully_known() ? body->shape.elements() : -1;
    Py_RETURN_NONE;
  });
}

// known_elements(tensor): the flat elements of an integer tensor as far as they are known while tracing, None for
// others; None if not even their number is known.
PyObject* known_elements_of(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(o);
    if (!t.symbolic() && !integers.has(t.dtype())) Py_RETURN_NONE;
    auto* graph = t.symbolic() ? static_cast<Graph*>(t.body()->symbol().graph) : nullptr;
    if (t.symbolic() && !graph) Py_RETURN_NONE;
    Ints known = t.symbolic() ? known_elements(*graph, t) : read_ints(t);
    if (known.size() == 1 && known[0] == kUnknownCount) Py_RETURN_NONE;
    Ref list = checked(PyList_New(Py_ssize_t(known.size())));
    for (size_t i = 0; i < known.size(); ++i)
      PyList_SET_ITEM(list.get(), Py_ssize_t(i),
                      known[i] == kUnknownInt ? Py_NewRef(Py_None) : checked(PyLong_FromLongLong(known[i])).release());
    return list.release();
  });
}

// known_value(tensor): a small tensor that follows from constants and known shapes, else None.
PyObject* known_value_of(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(o);
    if (!t.symbolic()) return Py_NewRef(o);
    const auto* graph = static_cast<const Graph*>(t.body()->symbol().graph);
    std::optional<Tensor> known = graph ? known_value(*graph, t) : std::nullopt;
    if (!known) Py_RETURN_NONE;
    return wrap(*known);
  });
}

// constant_of(tensor): the tensor that a constant of a graph holds, also through identities; None for other values.
PyObject* constant_of(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o) || !tensor_of(o).symbolic()) Py_RETURN_NONE;
    const Symbol& symbol = tensor_of(o).body()->symbol();
    const auto* graph = static_cast<const Graph*>(symbol.graph);
    if (!graph) Py_RETURN_NONE;
    for (ValueId v = symbol.value;;) {
      const Value& value = graph->values[v];
      if (value.node == Value::kConstant) return wrap(value.tensor);
      if (value.node < 0) Py_RETURN_NONE;
      const Node& node = graph->nodes[size_t(value.node)];
      if (node.op == &constant_op()) return wrap(constant_in(node.params));
      if (!node.op || node.op->planning.view != ViewKind::always || node.inputs.size() != 1) Py_RETURN_NONE;
      const Tensor &from = graph->values[node.inputs[0]].tensor, &to = value.tensor;
      if (from.dtype() != to.dtype() || !(from.shape() == to.shape())) Py_RETURN_NONE;
      v = node.inputs[0];
    }
  });
}

PyMethodDef functions[] = {
    {"constant_of", constant_of, METH_O, nullptr},
    {"known_elements", known_elements_of, METH_O, nullptr},
    {"known_value", known_value_of, METH_O, nullptr},
    {"add_case", case_node, METH_VARARGS, nullptr},
    {"add_while", while_node, METH_VARARGS, nullptr},
    {"list_set", list_set_node, METH_VARARGS, nullptr},
    {"list_get", list_get_node, METH_VARARGS, nullptr},
    {"list_stack", list_stack_node, METH_VARARGS, nullptr},
    {"required", required_node, METH_VARARGS, nullptr},
    {"is_symbolic", is_symbolic, METH_O, "Whether the object is a tensor that stands for a value of a graph."},
    {"current_graph", current_graph, METH_NOARGS, "The graph that operations go to, or None."},
    {"is_tracing", is_tracing, METH_NOARGS, nullptr},
    {"swap_stage", swap_stage, METH_O, nullptr},
    {"place", place, METH_VARARGS, nullptr},
    {"current_place", current_place, METH_NOARGS, nullptr},
    {"has_made_tensors", has_made_tensors, METH_NOARGS, nullptr},
    {"forget_first_tensor", forget_first_tensor, METH_NOARGS, nullptr},
    {"device_of", device_of, METH_O, nullptr},
    {"place_of", place_of, METH_O, nullptr},
    {"narrow_shape", narrow_shape, METH_VARARGS, nullptr},
    {"hoist_last", hoist_last, METH_O, "Moves the last node of a graph to as early a place as its inputs allow."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

// The tensor and, in the lines after it, where it was made.
std::string describe_in_python(const Tensor& t) {
  PyObject* hook = registered("describe_escaped");
  if (!hook) return "a symbolic tf.Tensor";
  Ref tensor = checked(wrap(t));
  Ref text = checked(PyObject_CallOneArg(hook, tensor.get()));
  const char* characters = PyUnicode_AsUTF8(text.get());
  if (!characters) throw_python_error();
  return characters;
}

// Runs a function of Python that does nothing: at its start the interpreter hands its lock to a thread that asked for
// it. Releasing and taking the lock here would starve that thread, which never sees it free.
constexpr int64_t kTurnNanoseconds = 1000000;  // between two turns of other threads
static void give_turn() {
  static PyObject* nothing = [] {
    Ref names = checked(PyDict_New());
    return checked(PyRun_String("lambda: None", Py_eval_input, names.get(), names.get())).release();
  }();
  Ref done = checked(PyObject_CallNoArgs(nothing));
}

void add_stage(PyObject* module) {
  between_iterations = [] {  // a signal, such as that of Ctrl-C, ends a loop; other threads get their turn
    using Clock = std::chrono::steady_clock;
    if (PyErr_CheckSignals() < 0) throw_python_error();
    const int64_t now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    if (now - thread_locals.last_turn > kTurnNanoseconds) {
      thread_locals.last_turn = now;
      give_turn();
    }
  };
  describe_escaped = describe_in_python;
  first_seen_in = [](const TensorBody& body) { return static_cast<const TensorObject*>(body.wrapper)->trace; };
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
