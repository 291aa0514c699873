// The quick way from a traced function to its graph: a call whose arguments are tensors like those of the last call goes
// straight to it. All else is decided in Python, by the method `_call` of the subclass.
#include "graph/differentiate.h"
#include "python/common.h"
#include "python/graph.h"

namespace tapeflow::python {
namespace {

// How often a function was called, by whatever way.
struct CounterObject {
  PyObject_HEAD
  long long calls;
};
PyTypeObject* counter_type = nullptr;

struct FunctionObject {
  PyObject_HEAD
  std::shared_ptr<Graph>* graph;  // of the last call; null if only Python can call it
  PyObject* structure;            // of the result: a tensor or None in each place
  PyObject* pack;                 // for another structure: makes the result of a list of tensors
  PyObject* counter;
  PyObject *dict, *weak_references;
};
FunctionObject* object(PyObject* self) { return reinterpret_cast<FunctionObject*>(self); }

bool run_eagerly = false;

bool covers(const Shape& wanted, const Shape& given) {
  if (!wanted.known_rank()) return true;
  if (wanted.rank() != given.rank()) return false;
  for (int i = 0; i < wanted.rank(); ++i)
    if (wanted[i] >= 0 && wanted[i] != given[i]) return false;
  return true;
}

bool takes(const Graph& graph, PyObject* args) {
  if (size_t(PyTuple_GET_SIZE(args)) != graph.inputs.size()) return false;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    PyObject* o = PyTuple_GET_ITEM(args, Py_ssize_t(i));
    if (!is_tensor(o)) return false;
    const TensorBody *given = reinterpret_cast<TensorObject*>(o)->body, *wanted = graph.values[graph.inputs[i]].tensor.body();
    if (given->symbolic || given->dtype != wanted->dtype || !covers(wanted->shape, given->shape)) return false;
  }
  return true;
}

PyObject* function_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  FunctionObject* o = object(self);
  if (!o->graph || (kwargs && PyDict_GET_SIZE(kwargs)) || run_eagerly || thread_state().stage || !takes(**o->graph, args)) {
    Ref method(PyObject_GetAttrString(self, "_call"));
    return method ? PyObject_Call(method.get(), args, kwargs) : nullptr;
  }
  return guarded([&]() -> PyObject* {
    std::shared_ptr<Graph> graph = *o->graph;
    Ref structure = Ref::share(o->structure);
    ++reinterpret_cast<CounterObject*>(o->counter)->calls;
    SmallVector<Tensor, 8> in;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) in.push_back(tensor_of(PyTuple_GET_ITEM(args, i)));
    std::vector<Tensor> out = call_graph(graph, in);
    if (Ref pack = Ref::share(o->pack)) {
      Ref list = checked(PyList_New(Py_ssize_t(out.size())));
      for (size_t i = 0; i < out.size(); ++i) PyList_SET_ITEM(list.get(), Py_ssize_t(i), checked(wrap(std::move(out[i]))).release());
      return PyObject_CallOneArg(pack.get(), list.get());
    }
    if (out.size() == 1 && is_tensor(structure.get())) return wrap(std::move(out[0]));
    SmallVector<PyObject*, 8> leaves;
    flatten(structure.get(), leaves);
    SmallVector<Ref, 8> values;
    size_t next = 0;
    for (PyObject* leaf : leaves) values.push_back(leaf == Py_None ? Ref::share(Py_None) : Ref(wrap(std::move(out[next++]))));
    return pack_like(structure.get(), values);
  });
}

// _quicken(graph, structure, counter, only, pack): calls with arguments like the graph's inputs need not pass Python any more. If
// it is not the only graph of the function, its inputs must have known shapes: another one might fit better.
PyObject* quicken(PyObject* self, PyObject* args) {
  PyObject *graph, *structure, *counter, *pack;
  int only;
  if (!PyArg_ParseTuple(args, "OOO!pO:_quicken", &graph, &structure, counter_type, &counter, &only, &pack)) return nullptr;
  return guarded([&]() -> PyObject* {
    FunctionObject* o = object(self);
    const auto& to = checked_graph(graph);
    SmallVector<PyObject*, 8> leaves;
    flatten(structure, leaves);
    size_t tensors = 0;
    bool plain = true;
    for (PyObject* leaf : leaves) {
      plain &= leaf == Py_None || is_tensor(leaf);
      tensors += leaf != Py_None;
    }
    plain &= tensors == to->outputs.size();
    bool simple = to->captures.empty();
    for (ValueId v : to->inputs) simple &= only || to->values[v].tensor.size() >= 0;
    if (!simple) Py_RETURN_NONE;
    delete o->graph;
    o->graph = new std::shared_ptr<Graph>(to);
    Py_XSETREF(o->structure, Py_NewRef(structure));
    Py_XSETREF(o->pack, plain ? nullptr : Py_NewRef(pack));
    Py_XSETREF(o->counter, Py_NewRef(counter));
    Py_RETURN_NONE;
  });
}

int function_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(object(self)->structure);
  Py_VISIT(object(self)->pack);
  Py_VISIT(object(self)->counter);
  Py_VISIT(object(self)->dict);
  return 0;
}
int function_clear(PyObject* self) {
  delete std::exchange(object(self)->graph, nullptr);
  Py_CLEAR(object(self)->structure);
  Py_CLEAR(object(self)->pack);
  Py_CLEAR(object(self)->counter);
  Py_CLEAR(object(self)->dict);
  return 0;
}
void function_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (object(self)->weak_references) PyObject_ClearWeakRefs(self);
  function_clear(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* set_run_eagerly(PyObject*, PyObject* on) {
  int yes = PyObject_IsTrue(on);
  if (yes < 0) return nullptr;
  run_eagerly = yes;
  Py_RETURN_NONE;
}
PyObject* get_run_eagerly(PyObject*, PyObject*) { return PyBool_FromLong(run_eagerly); }

PyMethodDef methods[] = {{"_quicken", quicken, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(FunctionObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(function_call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(function_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(function_clear)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {0, nullptr},
};
PyType_Spec spec = {"tapeflow._core.FunctionBase", sizeof(FunctionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
PyMemberDef counter_members[] = {
    {"calls", T_LONGLONG, offsetof(CounterObject, calls), 0, "How often the function was called."},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot counter_slots[] = {{Py_tp_members, counter_members}, {0, nullptr}};
PyType_Spec counter_spec = {"tapeflow._core.CallCounter", sizeof(CounterObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, counter_slots};
PyMethodDef functions[] = {
    {"set_run_eagerly", set_run_eagerly, METH_O, "Whether traced functions are called as Python functions."},
    {"get_run_eagerly", get_run_eagerly, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_function_type(PyObject* module) {
  Ref counter = checked(PyType_FromSpec(&counter_spec));
  counter_type = reinterpret_cast<PyTypeObject*>(counter.get());
  if (PyModule_AddObjectRef(module, "CallCounter", counter.get()) < 0) throw_python_error();
  Ref type = checked(PyType_FromSpec(&spec));
  if (PyModule_AddObjectRef(module, "FunctionBase", type.get()) < 0) throw_python_error();
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
