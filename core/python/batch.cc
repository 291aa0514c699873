// vmap of a graph, as Python sees it.
#include "vmap/vmap.h"

#include "base/forget_error.h"
#include "python/graph/graph.h"

namespace tapeflow::python {
namespace {

SmallVector<bool, 8> flags_of(PyObject* list) {
  SmallVector<bool, 8> flags;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) flags.push_back(PyList_GET_ITEM(list, i) == Py_True);
  return flags;
}

// call_batched(graph, inputs, batched, rows): the outputs for all rows, each with a leading batch dimension. `batched`
// says which of the inputs have one; if `rows` is -1, they may have 1 there instead, and the rows are counted
// later.
PyObject* python_call_batched(PyObject*, PyObject* args) {
  PyObject *graph, *inputs, *batched;
  long long rows;
  if (!PyArg_ParseTuple(args, "OO!O!L:call_batched", &graph, &PyList_Type, &inputs, &PyList_Type, &batched, &rows))
    return nullptr;
  return guarded([&] {
    BatchedValues given;
    SmallVector<bool, 8> flags = flags_of(batched);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i)
      given.tensors.push_back(operand(PyList_GET_ITEM(inputs, i)));
    if (rows < 0) return wrap_list(call_batched(checked_graph(graph), given.tensors, flags));
    given.batched.assign(flags.begin(), flags.end());
    return wrap_list(rows_of(run_batched(*checked_graph(graph), given, rows), rows));
  });
}

// keep_tracked(graph, yes): whether what is done to values that the open recorders track, or those which the graph
// around it listens for, becomes nodes.
PyObject* keep_tracked(PyObject*, PyObject* args) {
  PyObject* object;
  int yes;
  if (!PyArg_ParseTuple(args, "Op:keep_tracked", &object, &yes)) return nullptr;
  return guarded([&]() -> PyObject* {
    Graph& graph = *checked_graph(object);
    graph.attached.clear();
    if (!yes) Py_RETURN_NONE;
    if (graph.outer()) graph.attached = graph.outer()->attached;
    for (const Recorder* r : thread_state().recorders) graph.attached.push_back(r);
    Py_RETURN_NONE;
  });
}

// Tracks all numbers that a gradient can be asked for.
struct TracksNumbers final : Recorder {
  void record(const Call&) override {}
  void read(VariableBody&, const Tensor&) override {}
  bool watches(const Tensor& t) const override { return (floating | complexes).has(t.dtype()); }
};

// keep_constants(graph): what is done to known numbers becomes nodes, so that tf.gradients finds the path back to them.
PyObject* keep_constants(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    static TracksNumbers recorder;
    checked_graph(object)->attached.push_back(&recorder);
    Py_RETURN_NONE;
  });
}

// batching_obstacles(graph, batched): the nodes that run once per row, and those that assign what differs by row, each
// as its number and whether it is an assignment.
PyObject* batching_obstacles(PyObject*, PyObject* args) {
  PyObject *graph, *batched;
  if (!PyArg_ParseTuple(args, "OO!:batching_obstacles", &graph, &PyList_Type, &batched)) return nullptr;
  return guarded([&]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    for (const Obstacle& o : find_obstacles(*checked_graph(graph), flags_of(batched))) {
      Ref pair = checked(Py_BuildValue("(iO)", o.node, o.kind == Obstacle::Kind::assignment ? Py_True : Py_False));
      if (PyList_Append(list.get(), pair.get()) < 0) throw_python_error();
    }
    return list.release();
  });
}

PyObject* python_differs_by_row(PyObject*, PyObject* graph) {
  return guarded([&] { return PyBool_FromLong(differs_by_row(*checked_graph(graph))); });
}

PyMethodDef functions[] = {
    {"differs_by_row", python_differs_by_row, METH_O, "Whether a graph draws random numbers or has effects."},
    {"keep_tracked", keep_tracked, METH_VARARGS, nullptr},
    {"keep_constants", keep_constants, METH_O, nullptr},
    {"batching_obstacles", batching_obstacles, METH_VARARGS, nullptr},
    {"call_batched", python_call_batched, METH_VARARGS,
     "call_batched(graph, inputs, batched, rows): runs a graph under vmap."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_batching(PyObject* module) {
  forget_error = PyErr_Clear;
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
