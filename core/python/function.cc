// The call cache between a traced function and its graphs, a guarded fast path: a call whose arguments are like those
// of a recent call goes straight to the graph. All else is decided in Python, by the method `_call` of the subclass.
#include <algorithm>
#include <cstring>

#include "python/common.h"
#include "python/graph/graph.h"
#include "transforms/differentiate.h"

namespace tapeflow::python {
namespace {

// How often a function was called, from the cache or through Python.
struct CounterObject {
  PyObject_HEAD long long calls;
};
PyTypeObject* counter_type = nullptr;

// What an argument must be like: a tensor or array that fits an input of the graph, a constant, the same object (which
// may have a handle in graphs, as datasets and iterators do), or a container of such. A composite is an object of a
// class that keeps all of its tensors in one tuple and names the attribute.
struct Pattern {
  enum class Kind : uint8_t {
    tensor,
    array,
    constant,
    object,
    handled,
    list,
    tuple,
    dict,
    composite
  } kind = Kind::constant;
  size_t input = 0;
  Ref value = {};              // the constant, the class of a composite, or a weak reference to the object
  Ref handle = {};             // the tensor that stands for an object, or the name of a composite's attribute
  std::vector<Ref> keys = {};  // of a dictionary
  std::vector<Pattern> parts = {};
};

// A graph, the arguments for which it can be called at once, and how its results are packed.
struct CachedCall {
  std::shared_ptr<Graph> graph;
  Ref structure;  // of the result: a tensor or None in each place
  Ref pack;       // for another structure: makes the result of a list of tensors; else null
  Pattern args, kwargs;
};
constexpr size_t kMostCachedCalls = 4;

struct CallCacheObject {
  PyObject_HEAD std::vector<CachedCall>* calls;  // the newest first
};
PyTypeObject* cache_type = nullptr;
std::vector<CachedCall>& calls_in(PyObject* o) { return *reinterpret_cast<CallCacheObject*>(o)->calls; }

struct FunctionObject {
  PyObject_HEAD PyObject *calls, *counter;
  PyObject *dict, *weak_references;
};
FunctionObject* object(PyObject* self) { return reinterpret_cast<FunctionObject*>(self); }

bool run_eagerly = false;
// A doctor runs most calls as graphs, and some eagerly: how many are left until the next eager one; 0: it does not.
long calls_until_eager = 0;
// The calls that ran eagerly, without those inside of others.
long eager_calls = 0;
int eager_depth = 0;

// ---- patterns

bool is_constant(PyObject* o) {
  return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) ||
         PyBytes_CheckExact(o);
}

// Finds the patterns of arguments, which consist of `leaves`. Their tensors are in the order of the graph's inputs.
class Description {
 public:
  Description(PyObject* leaves, PyObject* tensors)
      : leaves_(leaves), tensors_(tensors), found_(size_t(PyList_GET_SIZE(tensors)), false) {}

  bool describe(PyObject* args, PyObject* kwargs, CachedCall& cached) {
    if (!describe(args, cached.args)) return false;
    positional_ = false;
    return describe(kwargs, cached.kwargs) && std::find(found_.begin(), found_.end(), false) == found_.end();
  }

 private:
  bool describe(PyObject* o, Pattern& p);
  bool describe_dict(PyObject* dict, Pattern& p);
  bool describe_object(PyObject* o, Pattern& p);
  bool describe_composite(PyObject* o, Ref attribute, Pattern& p);
  // The input for a tensor, or the next one for an array, which stands in the list as the tensor made of it.
  bool find_input(PyObject* tensor_or_null, size_t& input) {
    for (size_t i = 0; i < found_.size(); ++i) {
      if (found_[i] || (tensor_or_null && PyList_GET_ITEM(tensors_, Py_ssize_t(i)) != tensor_or_null)) continue;
      found_[i] = true;
      input = i;
      return true;
    }
    return false;
  }

  PyObject *leaves_, *tensors_;
  std::vector<bool> found_;
  bool positional_ =
      true;  // then the order is that of the list; a tensor that is given again by name cannot be distinguished
};

bool Description::describe(PyObject* o, Pattern& p) {
  if (is_tensor(o)) {
    p.kind = Pattern::Kind::tensor;
    const auto times = std::count(PySequence_Fast_ITEMS(tensors_), PySequence_Fast_ITEMS(tensors_) + found_.size(), o);
    return (positional_ || times == 1) && find_input(o, p.input);
  }
  if (is_plain_array(o)) {
    p.kind = Pattern::Kind::array;
    return positional_ && find_input(nullptr, p.input);
  }
  if (is_constant(o)) {
    p.value = Ref::share(o);
    return true;
  }
  if (PyDict_CheckExact(o)) return describe_dict(o, p);
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return describe_object(o, p);
  p.kind = PyList_CheckExact(o) ? Pattern::Kind::list : Pattern::Kind::tuple;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (!describe(PySequence_Fast_GET_ITEM(o, i), p.parts.emplace_back())) return false;
  return true;
}

// Variables, modules, functions: a graph is for one of them, which it does not keep alive. Others report by a method
// what they are like.
bool Description::describe_object(PyObject* o, Pattern& p) {
  if (Ref attribute{PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "_tensors_attribute")})
    return describe_composite(o, std::move(attribute), p);
  PyErr_Clear();
  if (PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "_handle_tensor")) {
    p.kind = Pattern::Kind::handled;
    p.value = checked(PyWeakref_NewRef(o, nullptr));
    p.handle = checked(PyObject_CallMethod(o, "_handle_tensor", nullptr));
    return is_tensor(p.handle.get()) && find_input(p.handle.get(), p.input);
  }
  PyObject* const* leaves = PySequence_Fast_ITEMS(leaves_);
  const bool leaf = std::find(leaves, leaves + PyList_GET_SIZE(leaves_), o) != leaves + PyList_GET_SIZE(leaves_);
  if (!leaf || !PyType_SUPPORTS_WEAKREFS(Py_TYPE(o)) ||
      PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__tf_tracing_type__"))
    return false;
  p.kind = Pattern::Kind::object;
  p.value = checked(PyWeakref_NewRef(o, nullptr));
  return true;
}

bool Description::describe_composite(PyObject* o, Ref attribute, Pattern& p) {
  Ref parts = checked(PyObject_GetAttr(o, attribute.get()));
  if (!PyTuple_CheckExact(parts.get())) return false;
  p.kind = Pattern::Kind::composite;
  p.value = Ref::share(reinterpret_cast<PyObject*>(Py_TYPE(o)));
  p.handle = std::move(attribute);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts.get()); ++i)
    if (!is_tensor(PyTuple_GET_ITEM(parts.get(), i)) ||
        !describe(PyTuple_GET_ITEM(parts.get(), i), p.parts.emplace_back()))
      return false;
  return true;
}

// The keys in their order, as in the list of tensors.
bool Description::describe_dict(PyObject* dict, Pattern& p) {
  p.kind = Pattern::Kind::dict;
  Ref keys = checked(PyDict_Keys(dict));
  if (PyList_Sort(keys.get()) < 0) {
    PyErr_Clear();
    return false;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyList_GET_ITEM(keys.get(), i);
    if (!is_constant(key)) return false;
    p.keys.push_back(Ref::share(key));
    if (!describe(PyDict_GetItem(dict, key), p.parts.emplace_back())) return false;
  }
  return true;
}

bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a))
    return std::memcmp(&reinterpret_cast<PyFloatObject*>(a)->ob_fval, &reinterpret_cast<PyFloatObject*>(b)->ob_fval,
                       sizeof(double)) == 0;
  const int same = PyObject_RichCompareBool(a, b, Py_EQ);
  if (same < 0) throw_python_error();
  return same;
}

bool covers(const Shape& wanted, const Shape& given) {
  if (!wanted.known_rank()) return true;
  if (wanted.rank() != given.rank()) return false;
  for (int i = 0; i < wanted.rank(); ++i)
    if (wanted[i] >= 0 && wanted[i] != given[i]) return false;
  return true;
}

using Inputs = SmallVector<Tensor, 8>;
const Shape& input_shape(const Graph& graph, size_t input) { return graph.values[graph.inputs[input]].tensor.shape(); }
bool fits_input(const Graph& graph, size_t input, const Tensor& t, Inputs& in) {
  const TensorBody *given = t.body(), *wanted = graph.values[graph.inputs[input]].tensor.body();
  if (given->symbolic || given->dtype != wanted->dtype || !covers(wanted->shape, given->shape)) return false;
  in[input] = t;
  return true;
}
bool array_fits(const Graph& graph, size_t input, PyObject* array, Inputs& in) {
  if (!covers(input_shape(graph, input), shape_of_array(array))) return false;
  Tensor t = to_tensor(array, DType::invalid, DType::invalid, "convert_to_tensor");
  log_on_tapes_if_any(Event::constant, t);
  return fits_input(graph, input, t, in);
}

bool matches(const Graph& graph, const Pattern& p, PyObject* o, Inputs& in);

bool all_match(const Graph& graph, const Pattern& p, PyObject* const* items, Py_ssize_t count, Inputs& in) {
  if (size_t(count) != p.parts.size()) return false;
  for (size_t i = 0; i < p.parts.size(); ++i)
    if (!matches(graph, p.parts[i], items[i], in)) return false;
  return true;
}
bool dict_matches(const Graph& graph, const Pattern& p, PyObject* dict, Inputs& in) {
  if (size_t(PyDict_GET_SIZE(dict)) != p.parts.size()) return false;
  for (size_t i = 0; i < p.parts.size(); ++i) {
    PyObject* item = PyDict_GetItemWithError(dict, p.keys[i].get());
    if (!item && PyErr_Occurred()) throw_python_error();
    if (!item || !matches(graph, p.parts[i], item, in)) return false;
  }
  return true;
}
// Out of line: calls with plain tensors keep few registers.
[[gnu::noinline]] bool composite_matches(const Graph& graph, const Pattern& p, PyObject* o, Inputs& in) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != p.value.get()) return false;
  Ref parts = checked(PyObject_GetAttr(o, p.handle.get()));
  return PyTuple_CheckExact(parts.get()) &&
         all_match(graph, p, reinterpret_cast<PyTupleObject*>(parts.get())->ob_item, PyTuple_GET_SIZE(parts.get()), in);
}
// Whether the object of a weak reference is alive and is `o`.
bool refers_to(PyObject* weak, PyObject* o) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* found = nullptr;
  if (PyWeakref_GetRef(weak, &found) < 0) throw_python_error();
  const Ref held(found);
  return found == o;
#else
  return o != Py_None && PyWeakref_GET_OBJECT(weak) == o;  // None stands for a dead object
#endif
}
bool matches(const Graph& graph, const Pattern& p, PyObject* o, Inputs& in) {
  switch (p.kind) {
    case Pattern::Kind::tensor: return is_tensor(o) && fits_input(graph, p.input, tensor_of(o), in);
    case Pattern::Kind::array: return is_plain_array(o) && array_fits(graph, p.input, o, in);
    case Pattern::Kind::object: return refers_to(p.value.get(), o);
    case Pattern::Kind::handled:
      return refers_to(p.value.get(), o) && fits_input(graph, p.input, tensor_of(p.handle.get()), in);
    case Pattern::Kind::constant: return same_constant(p.value.get(), o);
    case Pattern::Kind::dict: return PyDict_CheckExact(o) && dict_matches(graph, p, o, in);
    case Pattern::Kind::composite: return composite_matches(graph, p, o, in);
    case Pattern::Kind::list:
      return PyList_CheckExact(o) &&
             all_match(graph, p, reinterpret_cast<PyListObject*>(o)->ob_item, PyList_GET_SIZE(o), in);
    case Pattern::Kind::tuple:
      return PyTuple_CheckExact(o) &&
             all_match(graph, p, reinterpret_cast<PyTupleObject*>(o)->ob_item, PyTuple_GET_SIZE(o), in);
  }
  return false;
}

int visit_pattern(const Pattern& p, visitproc visit, void* arg) {
  Py_VISIT(p.value.get());
  Py_VISIT(p.handle.get());
  for (const Pattern& part : p.parts)
    if (const int stop = visit_pattern(part, visit, arg)) return stop;
  return 0;
}

// ---- the cache

const CachedCall* find_cached(const std::vector<CachedCall>& calls, PyObject* args, PyObject* kwargs, Inputs& in) {
  for (const CachedCall& cached : calls) {
    in.resize(cached.graph->inputs.size());
    if (!all_match(*cached.graph, cached.args, reinterpret_cast<PyTupleObject*>(args)->ob_item, PyTuple_GET_SIZE(args),
                   in))
      continue;
    if (kwargs ? dict_matches(*cached.graph, cached.kwargs, kwargs, in) : cached.kwargs.parts.empty()) return &cached;
  }
  return nullptr;
}

PyObject* take(const CachedCall& cached, const Inputs& in) {
  // The list of calls may change while the graph runs.
  std::shared_ptr<Graph> graph = cached.graph;
  Ref structure = Ref::share(cached.structure.get()), pack = Ref::share(cached.pack.get());
  Tensors out = call_graph(graph, in);
  if (pack) {
    Ref list = checked(PyList_New(Py_ssize_t(out.size())));
    for (size_t i = 0; i < out.size(); ++i)
      PyList_SET_ITEM(list.get(), Py_ssize_t(i), checked(wrap(std::move(out[i]))).release());
    return PyObject_CallOneArg(pack.get(), list.get());
  }
  if (out.size() == 1 && is_tensor(structure.get())) return wrap(std::move(out[0]));
  SmallVector<PyObject*, 8> leaves;
  flatten(structure.get(), leaves);
  SmallVector<Ref, 8> values;
  size_t next = 0;
  for (PyObject* leaf : leaves)
    values.push_back(leaf == Py_None ? Ref::share(Py_None) : Ref(wrap(std::move(out[next++]))));
  return pack_like(structure.get(), values);
}

PyObject* call_python(PyObject* self, PyObject* args, PyObject* kwargs) {
  Ref method(PyObject_GetAttrString(self, "_call"));
  return method ? PyObject_Call(method.get(), args, kwargs) : nullptr;
}

PyObject* call_eagerly(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (!eager_depth) ++eager_calls;
  ++eager_depth;
  PyObject* result = call_python(self, args, kwargs);
  --eager_depth;
  return result;
}

PyObject* function_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  FunctionObject* o = object(self);
  if (calls_until_eager && !thread_state().stage && !--calls_until_eager) run_eagerly = true;
  if (run_eagerly) return call_eagerly(self, args, kwargs);
  if (!o->calls || thread_state().stage || thread_locals.place.among_several) return call_python(self, args, kwargs);
  return guarded([&]() -> PyObject* {
    Inputs in;
    const CachedCall* cached = find_cached(calls_in(o->calls), args, kwargs, in);
    if (!cached) return call_python(self, args, kwargs);
    ++reinterpret_cast<CounterObject*>(o->counter)->calls;
    return take(*cached, in);
  });
}

// _share(calls, counter): the call cache of a function, which its bound copies share.
PyObject* share(PyObject* self, PyObject* args) {
  PyObject *calls, *counter;
  if (!PyArg_ParseTuple(args, "O!O!:_share", cache_type, &calls, counter_type, &counter)) return nullptr;
  Py_XSETREF(object(self)->calls, Py_NewRef(calls));
  Py_XSETREF(object(self)->counter, Py_NewRef(counter));
  Py_RETURN_NONE;
}

// add(args, kwargs, leaves, tensors, graph, structure, pack, only): calls with arguments like these, of which the
// tensors are the graph's inputs, need not pass Python any more. If it is not the only graph of the function, its
// inputs must have known shapes: another one might fit better.
PyObject* add_cached(PyObject* self, PyObject* values) {
  PyObject *args, *kwargs, *leaves, *tensors, *graph, *structure, *pack;
  int only;
  if (!PyArg_ParseTuple(values, "O!O!O!O!OOOp:add", &PyTuple_Type, &args, &PyDict_Type, &kwargs, &PyList_Type, &leaves,
                        &PyList_Type, &tensors, &graph, &structure, &pack, &only))
    return nullptr;
  return guarded([&]() -> PyObject* {
    const auto& to = checked_graph(graph);
    if (thread_state().stage || !to->captures.empty() || size_t(PyList_GET_SIZE(tensors)) != to->inputs.size())
      Py_RETURN_NONE;
    for (ValueId v : to->inputs)
      if (!only && to->values[v].tensor.size() < 0) Py_RETURN_NONE;
    CachedCall cached{to, Ref::share(structure), Ref(), {}, {}};
    if (!Description(leaves, tensors).describe(args, kwargs, cached)) Py_RETURN_NONE;
    SmallVector<PyObject*, 8> results;
    flatten(structure, results);
    size_t outputs = 0;
    bool plain = true;
    for (PyObject* leaf : results) {
      plain &= leaf == Py_None || is_tensor(leaf);
      outputs += leaf != Py_None;
    }
    if (!plain || outputs != to->outputs.size()) cached.pack = Ref::share(pack);
    auto& calls = calls_in(self);
    std::vector<CachedCall> dropped;  // destroyed when the list is in order again
    if (calls.size() == kMostCachedCalls) {
      dropped.push_back(std::move(calls.back()));
      calls.pop_back();
    }
    calls.insert(calls.begin(), std::move(cached));
    Py_RETURN_NONE;
  });
}

PyObject* ways_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) reinterpret_cast<CallCacheObject*>(self)->calls = new std::vector<CachedCall>();
  return self;
}
int ways_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (const CachedCall& cached : calls_in(self)) {
    Py_VISIT(cached.structure.get());
    Py_VISIT(cached.pack.get());
    if (const int stop = visit_pattern(cached.args, visit, arg)) return stop;
    if (const int stop = visit_pattern(cached.kwargs, visit, arg)) return stop;
  }
  return 0;
}
int ways_clear(PyObject* self) {
  std::vector<CachedCall> dropped = std::move(calls_in(self));
  calls_in(self).clear();
  return 0;
}
void ways_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  ways_clear(self);
  delete reinterpret_cast<CallCacheObject*>(self)->calls;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int function_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(object(self)->calls);
  Py_VISIT(object(self)->counter);
  Py_VISIT(object(self)->dict);
  return 0;
}
int function_clear(PyObject* self) {
  Py_CLEAR(object(self)->calls);
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
  calls_until_eager = 0;
  Py_RETURN_NONE;
}
PyObject* run_as_graphs(PyObject*, PyObject* calls) {
  long count = PyLong_AsLong(calls);
  if (count == -1 && PyErr_Occurred()) return nullptr;
  run_eagerly = false;
  calls_until_eager = count + 1;
  Py_RETURN_NONE;
}
PyObject* eager_function_calls(PyObject*, PyObject*) { return PyLong_FromLong(eager_calls); }
PyObject* get_run_eagerly(PyObject*, PyObject*) { return PyBool_FromLong(run_eagerly); }

PyMethodDef methods[] = {{"_share", share, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
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
PyType_Spec spec = {"tapeflow._src._core.FunctionBase", sizeof(FunctionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
PyMethodDef cache_methods[] = {{"add", add_cached, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyType_Slot ways_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(ways_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(ways_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(ways_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(ways_clear)},
    {Py_tp_methods, cache_methods},
    {0, nullptr},
};
PyType_Spec cache_spec = {"tapeflow._src._core.CallCache", sizeof(CallCacheObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, ways_slots};
PyMemberDef counter_members[] = {
    {"calls", T_LONGLONG, offsetof(CounterObject, calls), 0, "How often the function was called."},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot counter_slots[] = {{Py_tp_members, counter_members}, {0, nullptr}};
PyType_Spec counter_spec = {"tapeflow._src._core.CallCounter", sizeof(CounterObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, counter_slots};
PyMethodDef functions[] = {
    {"set_run_eagerly", set_run_eagerly, METH_O, "Whether traced functions are called as Python functions."},
    {"run_as_graphs", run_as_graphs, METH_O, "Lets so many calls of functions run as graphs, and the next eagerly."},
    {"eager_function_calls", eager_function_calls, METH_NOARGS, "How many calls of functions ran eagerly."},
    {"get_run_eagerly", get_run_eagerly, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_function_type(PyObject* module) {
  Ref counter = checked(PyType_FromSpec(&counter_spec));
  counter_type = reinterpret_cast<PyTypeObject*>(counter.get());
  if (PyModule_AddObjectRef(module, "CallCounter", counter.get()) < 0) throw_python_error();
  Ref calls = checked(PyType_FromSpec(&cache_spec));
  cache_type = reinterpret_cast<PyTypeObject*>(calls.get());
  if (PyModule_AddObjectRef(module, "CallCache", calls.get()) < 0) throw_python_error();
  Ref type = checked(PyType_FromSpec(&spec));
  if (PyModule_AddObjectRef(module, "FunctionBase", type.get()) < 0) throw_python_error();
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
