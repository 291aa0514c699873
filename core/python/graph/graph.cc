// Graphs as Python sees them: building one, reading it, running it.
#include <algorithm>

#include "autodiff/numerics.h"
#include "control_flow/control_ops.h"
#include "graph/graph.h"
#include "graph/run.h"
#include "ops/ops.h"
#include "plan/borrowed_memory.h"
#include "python/graph/graph.h"
#include "python/watchable.h"
#include "transforms/differentiate.h"
#include "transforms/graph_gradients.h"

namespace tapeflow::python {
namespace {

struct GraphObject {
  PyObject_HEAD std::shared_ptr<Graph>* graph;
  std::vector<Stage*>* entered;  // the stages that were in place at each __enter__
  PyObject* dict;
};
PyTypeObject* graph_type = nullptr;
const std::shared_ptr<Graph>& graph_of(PyObject* self) { return *reinterpret_cast<GraphObject*>(self)->graph; }

}  // namespace

const std::shared_ptr<Graph>& checked_graph(PyObject* o) {
  if (!PyObject_TypeCheck(o, graph_type)) fail(ErrorKind::type, "a graph is expected; got a ", Py_TYPE(o)->tp_name);
  return graph_of(o);
}

SmallVector<Tensor, 8> tensors_of(PyObject* sequence, const char* who) {
  Ref items = checked(PySequence_Fast(sequence, "a list of tensors is expected"));
  SmallVector<Tensor, 8> result;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    result.push_back(to_tensor(PySequence_Fast_GET_ITEM(items.get(), i), DType::invalid, DType::invalid, who));
  return result;
}

namespace {

// Graph(outer=None, graph_mode=False)
PyObject* graph_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* outer = Py_None;
  int graph_mode = 0;
  if (!PyArg_ParseTuple(args, "|Op:Graph", &outer, &graph_mode)) return nullptr;
  return guarded([&]() -> PyObject* {
    Graph* around = outer == Py_None ? nullptr : checked_graph(outer).get();
    Ref self = checked(type->tp_alloc(type, 0));
    auto* o = reinterpret_cast<GraphObject*>(self.get());
    o->graph = new std::shared_ptr<Graph>(std::make_shared<Graph>(around, graph_mode));
    o->entered = new std::vector<Stage*>;
    (*o->graph)->wrapper = self.get();
    (*o->graph)->is_of_program = !graph_mode;
    return self.release();
  });
}
void graph_dealloc(PyObject* self) {
  auto* o = reinterpret_cast<GraphObject*>(self);
  PyObject_GC_UnTrack(self);
  (*o->graph)->wrapper = nullptr;
  Py_CLEAR(o->dict);
  delete o->graph;
  delete o->entered;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}
int graph_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<GraphObject*>(self)->dict);
  return 0;
}
int graph_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<GraphObject*>(self)->dict);
  return 0;
}

PyObject* graph_enter(PyObject* self, PyObject*) {
  reinterpret_cast<GraphObject*>(self)->entered->push_back(thread_state().stage);
  thread_state().stage = graph_of(self).get();
  return Py_NewRef(self);
}
PyObject* graph_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  auto& entered = *reinterpret_cast<GraphObject*>(self)->entered;
  if (!entered.empty()) {
    thread_state().stage = entered.back();
    entered.pop_back();
  }
  Py_RETURN_NONE;
}

// add_input(dtype, shape): a tensor that stands for a value given when the graph runs.
PyObject* graph_add_input(PyObject* self, PyObject* args) {
  PyObject *dtype, *shape;
  if (!PyArg_ParseTuple(args, "OO:add_input", &dtype, &shape)) return nullptr;
  return guarded([&] { return wrap(graph_of(self)->add_input({dtype_from(dtype), shape_from(shape)})); });
}

PyObject* graph_set_outputs(PyObject* self, PyObject* list) {
  return guarded([&]() -> PyObject* {
    Graph& graph = *graph_of(self);
    graph.outputs.clear();
    for (const Tensor& t : tensors_of(list, "function")) graph.outputs.push_back(graph.id_of(t));
    Py_RETURN_NONE;
  });
}

PyObject* graph_call(PyObject* self, PyObject* list) {
  return guarded([&] {
    const auto& graph = graph_of(self);
    SmallVector<Tensor, 8> in = tensors_of(list, "function");
    if (in.size() != graph->inputs.size())
      fail(ErrorKind::type, "a graph with ", graph->inputs.size(), " inputs was called with ", in.size());
    return wrap_list(call_graph(graph, in));
  });
}

// evaluate(tensors, given, values): any values of the graph from any others, with the effects of the nodes if asked
// for.
PyObject* graph_evaluate(PyObject* self, PyObject* args) {
  PyObject *wanted, *given, *values, *operations;
  if (!PyArg_ParseTuple(args, "OOOO:evaluate", &wanted, &given, &values, &operations)) return nullptr;
  return guarded([&]() -> PyObject* {
    Graph& graph = *graph_of(self);
    std::vector<ValueId> wanted_ids, given_ids;
    for (const Tensor& t : tensors_of(wanted, "Session.run")) wanted_ids.push_back(graph.id_of(t));
    for (const Tensor& t : tensors_of(given, "Session.run")) given_ids.push_back(graph.id_of(t));
    Ref numbers = checked(PySequence_Fast(operations, "a list of operations is expected"));
    std::vector<int> nodes;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(numbers.get()); ++i)
      nodes.push_back(int(PyLong_AsLong(PySequence_Fast_GET_ITEM(numbers.get(), i))));
    if (PyErr_Occurred()) throw_python_error();
    EnterStage nowhere(nullptr);
    SmallVector<Tensor, 8> tensors = tensors_of(values, "Session.run");
    PauseRecording unrecorded;
    return wrap_list(interpret(graph, {given_ids, tensors, wanted_ids, false, nodes}, [](ValueId, const Tensor&) {}));
  });
}

// needs_effects(tensors): whether computing them from the inputs changes something: an iterator, a file, a variable.
PyObject* graph_needs_effects(PyObject* self, PyObject* wanted) {
  return guarded([&]() -> PyObject* {
    Graph& graph = *graph_of(self);
    std::vector<ValueId> ids;
    for (const Tensor& t : tensors_of(wanted, "function")) ids.push_back(graph.id_of(t));
    const Needs needs = find_needs(graph, ids, false, {}, std::vector<Tensor>(graph.values.size()));
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (needs.nodes[i] && graph.nodes[i].op && graph.nodes[i].op->effect) Py_RETURN_TRUE;
    Py_RETURN_FALSE;
  });
}

PyObject* graph_cut_back(PyObject* self, PyObject* count) {
  size_t n = PyLong_AsSize_t(count);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&]() -> PyObject* {
    graph_of(self)->cut_back(n);
    Py_RETURN_NONE;
  });
}

PyObject* value_list(Graph& graph, const std::vector<ValueId>& ids) {
  Tensors tensors;
  for (ValueId v : ids) tensors.push_back(graph.values[v].tensor);
  return wrap_list(tensors);
}
PyObject* get_inputs(PyObject* self, void*) {
  return guarded([&] { return value_list(*graph_of(self), graph_of(self)->inputs); });
}
PyObject* get_outputs(PyObject* self, void*) {
  return guarded([&] { return value_list(*graph_of(self), graph_of(self)->outputs); });
}
PyObject* get_captures(PyObject* self, void*) {
  return guarded([&] { return wrap_list(graph_of(self)->captures); });
}
PyObject* get_node_count(PyObject* self, void*) { return PyLong_FromSize_t(graph_of(self)->nodes.size()); }
PyObject* get_outer(PyObject* self, void*) {
  Graph* outer = graph_of(self)->outer();
  return Py_NewRef(outer && outer->wrapper ? static_cast<PyObject*>(outer->wrapper) : Py_None);
}
PyObject* get_graph_mode(PyObject* self, void*) { return PyBool_FromLong(graph_of(self)->graph_mode()); }
PyObject* get_is_function(PyObject* self, void*) { return PyBool_FromLong(graph_of(self)->is_function); }
int set_is_function(PyObject* self, PyObject* value, void*) {
  int yes = value ? PyObject_IsTrue(value) : -1;
  if (yes < 0) return -1;
  graph_of(self)->is_function = yes;
  return 0;
}
// None: no limit.
PyObject* get_memory_budget(PyObject* self, void*) {
  const size_t bytes = memory_budget_of(*graph_of(self));
  return bytes == kUnlimited ? Py_NewRef(Py_None) : PyLong_FromSize_t(bytes);
}
int set_memory_budget_of(PyObject* self, PyObject* value, void*) {
  const size_t bytes = !value || value == Py_None ? kUnlimited : PyLong_AsSize_t(value);
  if (PyErr_Occurred()) return -1;
  set_memory_budget(*graph_of(self), bytes);
  return 0;
}
PyObject* get_scope(PyObject* self, void*) { return PyUnicode_FromString(graph_of(self)->scope.c_str()); }
int set_scope(PyObject* self, PyObject* value, void*) {
  const char* text = value ? PyUnicode_AsUTF8(value) : nullptr;
  if (!text) return -1;
  graph_of(self)->scope = text;
  return 0;
}

PyObject* variable_list(const std::vector<VariableBody*>& variables) {
  Ref list = checked(PyList_New(0));
  for (VariableBody* v : variables)
    if (v->wrapper && PyList_Append(list.get(), static_cast<PyObject*>(v->wrapper)) < 0) throw_python_error();
  return list.release();
}
// The variables that the graph assigns to; setting it says which ones it will.
PyObject* get_changing(PyObject* self, void*) {
  return guarded([&] { return variable_list(graph_of(self)->changing); });
}
int set_changing(PyObject* self, PyObject* list, void*) {
  return guarded(
      [&]() -> int {
        Ref items = checked(PySequence_Fast(list, "a list of variables is expected"));
        graph_of(self)->changing.clear();
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
          graph_of(self)->changing.push_back(&variable_of(PySequence_Fast_GET_ITEM(items.get(), i)));
        return 0;
      },
      -1);
}
PyObject* get_variables(PyObject* self, void*) {
  return guarded([&] {
    std::vector<VariableBody*> variables;
    for (const Node& node : graph_of(self)->nodes) {
      if (node.op != &read_variable_op() && node.op != &assign_op()) continue;
      VariableBody* v = &variable_in(node.params);
      if (std::find(variables.begin(), variables.end(), v) == variables.end()) variables.push_back(v);
    }
    return variable_list(variables);
  });
}

PyObject* get_captured_variables(PyObject* self, void*) {
  return guarded([&] { return variable_list(graph_of(self)->captured_variables()); });
}

// node(i): (operation, name, inputs, outputs, code object, instruction), or None for one that was taken back.
PyObject* graph_node(PyObject* self, PyObject* index) {
  size_t i = PyLong_AsSize_t(index);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&]() -> PyObject* {
    Graph& graph = *graph_of(self);
    if (i >= graph.nodes.size()) fail(ErrorKind::index, "the graph has ", graph.nodes.size(), " nodes; got ", i);
    const Node& node = graph.nodes[i];
    if (!node.op) Py_RETURN_NONE;
    std::vector<ValueId> outputs;
    for (uint32_t k = 0; k < node.outputs; ++k) outputs.push_back(node.first_output + k);
    Ref in = checked(value_list(graph, {node.inputs.begin(), node.inputs.end()})),
        out = checked(value_list(graph, outputs));
    PyObject* code = node.location.code ? static_cast<PyObject*>(node.location.code) : Py_None;
    return Py_BuildValue("(ssOOOi)", node.op->name, node.name.c_str(), in.get(), out.get(), code,
                         node.location.instruction);
  });
}
// parallel_regions(): the nodes that run at the same time, a list of regions: whether the second lane waits for the
// first, and a list of lanes, each of them a list of (operation, code object, instruction).
PyObject* graph_parallel_regions(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto append = [](const Ref& list, PyObject* item) {
      Ref owned = checked(item);
      if (PyList_Append(list.get(), owned.get()) < 0) throw_python_error();
    };
    Ref regions = checked(PyList_New(0));
    for (const auto& region : parallel_regions_of(*graph_of(self))) {
      Ref lanes = checked(PyList_New(0));
      for (const auto& lane : region.lanes) {
        Ref nodes = checked(PyList_New(0));
        for (const Node* node : lane) {
          PyObject* code = node->location.code ? static_cast<PyObject*>(node->location.code) : Py_None;
          append(nodes, Py_BuildValue("(sOi)", node->op->name, code, node->location.instruction));
        }
        append(lanes, nodes.release());
      }
      append(regions, Py_BuildValue("(ON)", region.pipelined ? Py_True : Py_False, lanes.release()));
    }
    return regions.release();
  });
}
// compiler_ir(pass, shapes): the planner's IR after a pass. The first inputs have these shapes, the others those that
// the graph was traced with.
PyObject* graph_compiler_ir(PyObject* self, PyObject* args) {
  const char* pass;
  PyObject* shapes;
  if (!PyArg_ParseTuple(args, "sO!:compiler_ir", &pass, &PyList_Type, &shapes)) return nullptr;
  return guarded([&]() -> PyObject* {
    const Graph& graph = *graph_of(self);
    Tensors inputs;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const Tensor& t = graph.values[graph.inputs[i]].tensor;
      const bool given = i < size_t(PyList_GET_SIZE(shapes));
      const Shape shape = given ? shape_from(PyList_GET_ITEM(shapes, Py_ssize_t(i))) : t.shape();
      if (!shape.fully_known())
        fail(ErrorKind::value,
             "experimental_get_compiler_ir: this stage needs arguments whose shapes are known; got shape ", shape);
      inputs.push_back(bare_body(t.dtype(), shape));
    }
    return PyUnicode_FromString(ir_after(graph, inputs, pass).c_str());
  });
}
PyObject* graph_set_node_name(PyObject* self, PyObject* args) {
  Py_ssize_t node;
  const char* name;
  if (!PyArg_ParseTuple(args, "ns:set_node_name", &node, &name)) return nullptr;
  return guarded([&]() -> PyObject* {
    graph_of(self)->set_name(size_t(node), name);
    Py_RETURN_NONE;
  });
}

// ---- TensorFlow 1

std::vector<int> numbers_of(PyObject* list) {
  Ref items = checked(PySequence_Fast(list, "a list of node numbers is expected"));
  std::vector<int> result;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    result.push_back(int(PyLong_AsLong(PySequence_Fast_GET_ITEM(items.get(), i))));
  if (PyErr_Occurred()) throw_python_error();
  return result;
}
PyObject* number_list(const std::vector<int>& numbers) {
  Ref list = checked(PyList_New(0));
  for (int n : numbers) {
    Ref item = checked(PyLong_FromLong(n));
    if (PyList_Append(list.get(), item.get()) < 0) throw_python_error();
  }
  return list.release();
}

// The nodes that run before those which are made from now on; setting it also forgets which variables were read.
PyObject* get_control_scope(PyObject* self, void*) {
  return guarded([&] { return number_list(graph_of(self)->control_scope); });
}
int set_control_scope(PyObject* self, PyObject* list, void*) {
  return guarded(
      [&]() -> int {
        graph_of(self)->enter_controls(numbers_of(list));
        return 0;
      },
      -1);
}
PyObject* get_names_nodes(PyObject* self, void*) { return PyBool_FromLong(graph_of(self)->names_nodes); }
int set_names_nodes(PyObject* self, PyObject* value, void*) {
  graph_of(self)->names_nodes = value == Py_True;
  return 0;
}
PyObject* get_frozen(PyObject* self, void*) { return PyBool_FromLong(graph_of(self)->frozen); }
int set_frozen(PyObject* self, PyObject* value, void*) {
  graph_of(self)->frozen = value == Py_True;
  return 0;
}
PyObject* graph_controls(PyObject* self, PyObject* node) {
  return guarded([&] {
    const auto& controls = graph_of(self)->controls;
    auto it = controls.find(int(PyLong_AsLong(node)));
    return number_list(it == controls.end() ? std::vector<int>() : it->second);
  });
}

PyObject* graph_add_placeholder(PyObject* self, PyObject* args) {
  PyObject *dtype, *shape;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOs:add_placeholder", &dtype, &shape, &name)) return nullptr;
  return guarded([&] {
    Graph& graph = *graph_of(self);
    EnterStage stage(&graph);
    NameNode named(name);
    return wrap(add_placeholder(graph, {dtype_from(dtype), shape_from(shape)}, name));
  });
}
PyObject* graph_add_default(PyObject* self, PyObject* args) {
  PyObject *value, *shape;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOs:add_placeholder_with_default", &value, &shape, &name)) return nullptr;
  return guarded([&] {
    EnterStage stage(graph_of(self).get());
    Tensor t = to_tensor(value, DType::invalid, DType::invalid, "placeholder_with_default");
    NameNode named(name);
    return wrap(placeholder_with_default(t, shape_from(shape)));
  });
}
PyObject* graph_add_constant(PyObject* self, PyObject* args) {
  PyObject* value;
  const char* name;
  if (!PyArg_ParseTuple(args, "Os:add_constant", &value, &name)) return nullptr;
  return guarded([&] {
    EnterStage stage(graph_of(self).get());
    NameNode named(name);
    return wrap(add_constant(tensor_of(value)));
  });
}
PyObject* graph_add_no_op(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  return guarded([&] {
    EnterStage stage(graph_of(self).get());
    NameNode named(text);
    return PyLong_FromLong(add_no_op(*graph_of(self)));
  });
}

std::vector<ValueId> ids_of(Graph& graph, PyObject* list, const char* who) {
  std::vector<ValueId> ids;
  for (const Tensor& t : tensors_of(list, who)) ids.push_back(graph.id_of(t));
  return ids;
}

// A graph without what its nodes wait for, as long as this lives.
class WithoutControls {
 public:
  WithoutControls(Graph& graph, bool wanted) : graph_(graph), wanted_(wanted) {
    if (wanted_) held_ = std::exchange(graph_.controls, {});
  }
  ~WithoutControls() {
    if (wanted_) graph_.controls = std::move(held_);
  }
  WithoutControls(const WithoutControls&) = delete;
  WithoutControls& operator=(const WithoutControls&) = delete;

 private:
  Graph& graph_;
  bool wanted_;
  decltype(Graph::controls) held_;
};

// subgraph(tensors, given, operations, alone=False): a graph that computes the tensors from the given ones and runs the
// operations; `alone` without what only has to run before them.
PyObject* graph_subgraph(PyObject* self, PyObject* args) {
  PyObject *wanted, *given, *operations;
  int alone = 0;
  if (!PyArg_ParseTuple(args, "OOO|p:subgraph", &wanted, &given, &operations, &alone)) return nullptr;
  return guarded([&]() -> PyObject* {
    Graph& graph = *graph_of(self);
    WithoutControls without(graph, alone);
    std::vector<ValueId> wanted_ids = ids_of(graph, wanted, "Session.run"),
                         given_ids = ids_of(graph, given, "Session.run");
    std::vector<int> nodes = numbers_of(operations);
    Ref result = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(graph_type)));
    build_subgraph(*graph_of(result.get()), graph, given_ids, wanted_ids, false, nodes);
    return result.release();
  });
}

// gradients(targets, cotangents or None each, sources (tensors or variables), stops, [{node: rule} per graph,
// outwards]) -> list
PyObject* graph_find_gradients(PyObject* self, PyObject* args) {
  PyObject *targets, *cotangents, *sources, *stops, *rules;
  if (!PyArg_ParseTuple(args, "OO!O!OO!:gradients", &targets, &PyList_Type, &cotangents, &PyList_Type, &sources, &stops,
                        &PyList_Type, &rules))
    return nullptr;
  return guarded([&]() -> PyObject* {
    Graph& graph = *graph_of(self);
    EnterStage stage(&graph);
    PauseRecording unrecorded;
    SmallVector<Tensor, 8> ys = tensors_of(targets, "gradients"), stopped = tensors_of(stops, "gradients");
    Tensors dy;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(cotangents); ++i) {
      PyObject* item = PyList_GET_ITEM(cotangents, i);
      dy.push_back(item == Py_None ? Tensor() : to_tensor(item, ys[size_t(i)].dtype(), DType::invalid, "gradients"));
    }
    std::vector<Source> by;
    std::vector<Shape> shapes;
    std::vector<Ref> resolved;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sources); ++i) {
      resolved.push_back(resolve_or_fail(PyList_GET_ITEM(sources, i), "gradients"));
      PyObject* item = resolved.back().get();
      bool variable = is_variable(item);
      by.push_back({variable ? Tensor() : tensor_of(item), variable ? &variable_of(item) : nullptr});
      shapes.push_back(variable ? variable_of(item).shape : tensor_of(item).shape());
    }
    auto by_python = [&](int level, size_t node, std::span<const Tensor> dy_given, std::span<Cotangent> dx) {
      if (level >= PyList_GET_SIZE(rules)) return false;
      Ref number = checked(PyLong_FromSize_t(node));
      PyObject* rule = PyDict_GetItem(PyList_GET_ITEM(rules, level), number.get());
      if (!rule) return false;
      Ref given = checked(PyList_New(0));
      for (const Tensor& t : dy_given) {
        Ref item = t ? checked(wrap(t)) : Ref::share(Py_None);
        if (PyList_Append(given.get(), item.get()) < 0) throw_python_error();
      }
      Ref found = checked(PyObject_CallOneArg(rule, given.get()));
      Ref items = checked(PySequence_Fast(found.get(), "a list of gradients is expected"));
      for (size_t k = 0; k < dx.size(); ++k) {
        PyObject* item = PySequence_Fast_GET_ITEM(items.get(), Py_ssize_t(k));
        if (item != Py_None) dx[k] = {to_tensor(item, DType::invalid, DType::invalid, "gradients"), Tensor()};
      }
      return true;
    };
    std::vector<Cotangent> flow = graph_gradients(graph, ys, dy, by, stopped, by_python);
    Ref list = checked(PyList_New(0));
    for (size_t i = 0; i < flow.size(); ++i) {
      Ref item = checked(wrap_cotangent(flow[i], shapes[i]));
      if (PyList_Append(list.get(), item.get()) < 0) throw_python_error();
    }
    return list.release();
  });
}

PyObject* graph_unique_name(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  return guarded([&] { return PyUnicode_FromString(graph_of(self)->unique_name(text).c_str()); });
}
// take(tensors): the captures, in this order.
PyObject* graph_take(PyObject* self, PyObject* list) {
  return guarded([&]() -> PyObject* {
    SmallVector<Tensor, 8> tensors = tensors_of(list, "function");
    graph_of(self)->take(std::span<const Tensor>(tensors.begin(), tensors.size()));
    Py_RETURN_NONE;
  });
}
PyObject* graph_capture_held_constants(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    graph_of(self)->capture_held_constants();
    Py_RETURN_NONE;
  });
}
PyObject* graph_read_itself(PyObject* self, PyObject* variable) {
  return guarded([&]() -> PyObject* {
    graph_of(self)->read_itself(variable_of(variable));
    Py_RETURN_NONE;
  });
}
PyObject* graph_import(PyObject* self, PyObject* args) {
  PyObject *foreign, *own;
  if (!PyArg_ParseTuple(args, "OO:import_tensor", &foreign, &own)) return nullptr;
  return guarded([&]() -> PyObject* {
    graph_of(self)->import(tensor_of(foreign), tensor_of(own));
    Py_RETURN_NONE;
  });
}

PyMethodDef graph_methods[] = {
    {"__enter__", graph_enter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(graph_exit)), METH_FASTCALL, nullptr},
    {"add_input", graph_add_input, METH_VARARGS, "A tensor that stands for a value given when the graph runs."},
    {"set_outputs", graph_set_outputs, METH_O, "The tensors that the graph gives."},
    {"call", graph_call, METH_O, "Runs the graph as one operation."},
    {"evaluate", graph_evaluate, METH_VARARGS,
     "evaluate(tensors, given, values, operations): any values of the graph from any others."},
    {"needs_effects", graph_needs_effects, METH_O, "Whether computing these tensors changes something."},
    {"cut_back", graph_cut_back, METH_O, "Takes back the nodes from this number on."},
    {"node", graph_node, METH_O, "A description of a node."},
    {"parallel_regions", graph_parallel_regions, METH_NOARGS,
     "The nodes that run at the same time: regions, their lanes, the nodes of these."},
    {"compiler_ir", graph_compiler_ir, METH_VARARGS, "The planner's IR as text after a pass."},
    {"set_node_name", graph_set_node_name, METH_VARARGS, nullptr},
    {"unique_name", graph_unique_name, METH_O, nullptr},
    {"take", graph_take, METH_O, "The tensors of the outer graph that the graph takes, in this order."},
    {"capture_held_constants", graph_capture_held_constants, METH_NOARGS,
     "Constants that somebody holds become captures."},
    {"read_itself", graph_read_itself, METH_O, "The variable is read each time the graph runs."},
    {"import_tensor", graph_import, METH_VARARGS, nullptr},
    {"add_placeholder", graph_add_placeholder, METH_VARARGS, "A tensor that has to be fed."},
    {"add_placeholder_with_default", graph_add_default, METH_VARARGS, "A tensor that can be fed."},
    {"add_constant", graph_add_constant, METH_VARARGS, "A node that gives a tensor."},
    {"add_no_op", graph_add_no_op, METH_O, "A node that does nothing; gives its number."},
    {"controls", graph_controls, METH_O, "The nodes that run before a node though it does not use their outputs."},
    {"subgraph", graph_subgraph, METH_VARARGS, "A graph of its own that computes some values of this one."},
    {"gradients", graph_find_gradients, METH_VARARGS, "Gradients between values, as new nodes of this graph."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef graph_properties[] = {
    {"inputs", get_inputs, nullptr, nullptr, nullptr},
    {"outputs", get_outputs, nullptr, nullptr, nullptr},
    {"captures", get_captures, nullptr, nullptr, nullptr},
    {"node_count", get_node_count, nullptr, nullptr, nullptr},
    {"outer", get_outer, nullptr, nullptr, nullptr},
    {"graph_mode", get_graph_mode, nullptr, nullptr, nullptr},
    {"is_function", get_is_function, set_is_function, nullptr, nullptr},
    {"memory_budget", get_memory_budget, set_memory_budget_of, nullptr, nullptr},
    {"scope", get_scope, set_scope, nullptr, nullptr},
    {"control_scope", get_control_scope, set_control_scope, nullptr, nullptr},
    {"frozen", get_frozen, set_frozen, nullptr, nullptr},
    {"names_nodes", get_names_nodes, set_names_nodes, nullptr, nullptr},
    {"changing", get_changing, set_changing, nullptr, nullptr},
    {"captured_variables", get_captured_variables, nullptr, nullptr, nullptr},
    {"variables_used", get_variables, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef graph_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(GraphObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot graph_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(graph_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(graph_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(graph_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(graph_clear)},
    {Py_tp_methods, graph_methods},
    {Py_tp_getset, graph_properties},
    {Py_tp_members, graph_members},
    {0, nullptr},
};
PyType_Spec graph_spec = {"tapeflow._src._core.Graph", sizeof(GraphObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, graph_slots};

}  // namespace

void add_graph_type(PyObject* module) { graph_type = add_type(module, "Graph", graph_spec); }

}  // namespace tapeflow::python
