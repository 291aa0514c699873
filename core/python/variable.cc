// The Python variable type: the cell itself, reading and assigning. Its other methods are in
// tapeflow/_src/variables.py.

#include "graph/graph.h"
#include "ops/arrays/slicing.h"
#include "ops/ops.h"
#include "python/common.h"
#include "tensor/lazy.h"

namespace tapeflow::python {

PyTypeObject* variable_type = nullptr;
PyTypeObject* variable_class = nullptr;
SliceKey parse_key(PyObject* key);

namespace {

Py_hash_t refuse_hash(PyObject* self) {
  auto* graph = static_cast<Graph*>(thread_state().stage);
  if (graph && graph->graph_mode()) return Py_hash_t(reinterpret_cast<uintptr_t>(&variable_of(self)) >> 4);
  PyErr_SetString(PyExc_TypeError,
                  "Variable is unhashable. Instead, use variable.ref() as the key. (Variables are not hashable.)");
  return -1;
}

PyObject* variable_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  return guarded([&] {
    if (!variable_class && type->tp_base == variable_type) variable_class = type;
    auto* body = new VariableBody;
    body->wrapper = self;
    static int64_t variables_made = 0;
    reinterpret_cast<VariableObject*>(self)->number = ++variables_made;
    reinterpret_cast<VariableObject*>(self)->body = body;
    reinterpret_cast<VariableObject*>(self)->device = thread_locals.place.device;
    return self;
  });
}

void variable_dealloc(PyObject* self) {
  auto* o = reinterpret_cast<VariableObject*>(self);
  PyObject_GC_UnTrack(self);
  if (o->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  Py_CLEAR(o->copies);
  if (o->body->wrapper == self) o->body->wrapper = nullptr;
  o->body->drop();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}
int variable_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<VariableObject*>(self)->dict);
  Py_VISIT(reinterpret_cast<VariableObject*>(self)->copies);
  return 0;
}
int variable_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<VariableObject*>(self)->dict);
  Py_CLEAR(reinterpret_cast<VariableObject*>(self)->copies);
  return 0;
}

// _set_up(value, shape or None, trainable, name): the declared shape defaults to the value's.
PyObject* set_up(PyObject* self, PyObject* args) {
  PyObject *value, *shape;
  int trainable;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOps:_set_up", &value, &shape, &trainable, &name)) return nullptr;
  return guarded([&]() -> PyObject* {
    VariableBody& v = variable_of(self);
    Tensor t = to_tensor(value, DType::invalid, DType::invalid, "Variable");
    v.dtype = t.dtype();
    v.trainable = trainable;
    v.name = name;
    v.shape = t.shape();
    if (shape != Py_None) v.shape = shape_from(shape);
    check_assignable(v, t, "Variable");
    if (!thread_state().recorders.empty()) log_assignment_on_tapes(v, t);
    v.value = t.view(t.shape());
    Py_RETURN_NONE;
  });
}

// _declare(dtype, shape, trainable, name): a variable without a value yet.
PyObject* declare(PyObject* self, PyObject* args) {
  PyObject *dtype, *shape;
  int trainable;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOps:_declare", &dtype, &shape, &trainable, &name)) return nullptr;
  return guarded([&]() -> PyObject* {
    VariableBody& v = variable_of(self);
    v.dtype = dtype_from(dtype);
    v.trainable = trainable;
    v.name = name;
    v.shape = shape_from(shape);
    Py_RETURN_NONE;
  });
}

// _exchange(tensor or None) -> tensor or None: puts another value into the cell, and gives back the one that was there.
PyObject* exchange(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    VariableBody& v = variable_of(self);
    Tensor before =
        std::exchange(v.value, value == Py_None ? Tensor() : tensor_of(value).view(tensor_of(value).shape()));
    return before ? wrap(std::move(before)) : Py_NewRef(Py_None);
  });
}
PyObject* is_initialized_method(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(is_initialized(variable_of(self))); });
}

// What an assignment returns: a second object for the same variable, as in TensorFlow.
PyObject* bound_copy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject* other = type->tp_alloc(type, 0);
  if (!other) throw_python_error();
  auto* o = reinterpret_cast<VariableObject*>(other);
  o->body = &variable_of(self);
  o->body->retain();
  o->dict = Py_XNewRef(reinterpret_cast<VariableObject*>(self)->dict);
  o->device = reinterpret_cast<VariableObject*>(self)->device;
  return other;
}

// _set_copies(variables): this variable stands for itself in the first replica, and for a copy in each other one.
PyObject* set_copies(PyObject* self, PyObject* copies) {
  return guarded([&]() -> PyObject* {
    if (!PyTuple_CheckExact(copies)) fail(ErrorKind::type, "Variable: the copies are given as a tuple");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(copies); ++i)
      if (!is_variable(PyTuple_GET_ITEM(copies, i))) fail(ErrorKind::type, "Variable: the copies must be variables");
    Py_XSETREF(reinterpret_cast<VariableObject*>(self)->copies, Py_NewRef(copies));
    Py_RETURN_NONE;
  });
}
// _first_copy(type): the copy of the first replica, as an object of its own.
PyObject* first_copy(PyObject* self, PyObject* type) {
  return guarded([&]() -> PyObject* {
    auto* kind = reinterpret_cast<PyTypeObject*>(type);
    if (!PyType_Check(type) || !PyType_IsSubtype(kind, variable_type))
      fail(ErrorKind::type, "Variable: a class of variables is expected");
    Ref other = checked(kind->tp_alloc(kind, 0));
    auto* from = reinterpret_cast<VariableObject*>(self);
    auto* to = reinterpret_cast<VariableObject*>(other.get());
    to->body = from->body;
    to->body->retain();
    to->dict = Py_XNewRef(from->dict);
    to->number = from->number;
    to->device = from->device;
    return other.release();
  });
}

const char* names[] = {"assign", "assign_add", "assign_sub"};

// Nobody but the caller's expression holds this tensor, and no tape follows it.
bool dies_with_call(PyObject* value, const Tensor& t) {
  const Marks& marks = t.body()->marks;
  return is_tensor(value) && is_temporary(value) && t.body()->references == 2 && !marks.slot[0].tape &&
         !marks.slot[1].tape && !marks.overflow;
}

// Called with each variable that is about to change, and how; or null.
PyObject* assignment_observer = nullptr;
bool only_recorded_assignments = false;  // under tapes alone
PyObject* set_assignment_observer(PyObject*, PyObject* args) {
  PyObject* observer;
  int only_recorded = 0;
  if (!PyArg_ParseTuple(args, "O|p:set_assignment_observer", &observer, &only_recorded)) return nullptr;
  only_recorded_assignments = only_recorded;
  Py_XSETREF(assignment_observer, observer == Py_None ? nullptr : Py_NewRef(observer));
  Py_RETURN_NONE;
}
void tell_assignment(PyObject* variable, Update update) {
  Ref observer = Ref::share(assignment_observer);
  checked(PyObject_CallFunction(observer.get(), "Os", variable, names[int(update)]));
}

void update_variable(VariableBody& v, PyObject* value, Update update) {
  const char* who = names[int(update)];
  // Assigning is not an operation that gradients pass through; only the reading of `value` is seen by recorders.
  Tensor t = to_tensor(value, v.dtype, DType::invalid, who);
  if (t.size() >= 0) check_assignable(v, t, who);
  if (!thread_state().recorders.empty()) log_assignment_on_tapes(v, t);
  if (thread_state().stage) {
    run_all(assign_op(), std::span(&t, 1), {variable_param(v), Param(int64_t(update))});
    return;
  }
  if (!t.computed() && dies_with_call(value, t)) {
    if (update == Update::assign) {  // it may stay lazy: often the next statement reads it
      v.value = std::move(t);
      return;
    }
    mark_temporary(t);
  }
  apply_update(v, t, update);
}

// The tf.Operation of a node in the graph of a symbolic tensor.
PyObject* operation_in_graph_of(PyObject* tensor, int node) {
  Ref operation = checked(PyObject_GetAttrString(tensor, "op"));
  Ref graph = checked(PyObject_GetAttrString(operation.get(), "graph"));
  return checked(PyObject_CallFunction(reinterpret_cast<PyObject*>(Py_TYPE(operation.get())), "Oi", graph.get(), node))
      .release();
}

// assign(value, use_locking=None, name=None, read_value=True) and its two siblings.
template <Update update>
PyObject* assign_method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  PyObject* value = n > 0 ? args[0] : nullptr;
  PyObject* read_value = n > 3 ? args[3] : Py_True;
  static const char* allowed[] = {"use_locking", "name", "read_value", update == Update::assign ? "value" : "delta"};
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i) {
    const char* key = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, i));
    int which = -1;
    for (int k = 0; k < 4; ++k)
      if (std::strcmp(key, allowed[k]) == 0) which = k;
    if (which < 0)
      return PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%s'", names[int(update)], key);
    if (which == 2) read_value = args[n + i];
    if (which == 3) value = args[n + i];
  }
  if (!value || n > 4) return PyErr_Format(PyExc_TypeError, "%s() takes one value", names[int(update)]);
  return guarded([&]() -> PyObject* {
    if (assignment_observer && (!only_recorded_assignments || is_recording())) tell_assignment(self, update);
    update_variable(variable_of(self), value, update);
    int read = PyObject_IsTrue(read_value);
    if (read < 0) return nullptr;
    auto* graph = static_cast<Graph*>(thread_state().stage);
    if (graph && graph->graph_mode()) {
      int assignment = int(graph->nodes.size()) - 1;
      Ref after = checked(wrap(graph->read_after(variable_of(self), assignment)));
      return read ? after.release() : operation_in_graph_of(after.get(), assignment);
    }
    return read ? bound_copy(self) : Py_NewRef(Py_None);
  });
}

// A tensor of its own for each read, so that a gradient by it means by this reading alone.
PyObject* read_value(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(identity(read_variable(variable_of(self)))); });
}
PyObject* numpy(PyObject* self, PyObject*) {
  return guarded([&] {
    VariableBody& v = variable_of(self);
    if (!v.value) fail(ErrorKind::failed_precondition, "Variable: it was read before it was initialised");
    if (!thread_state().recorders.empty()) log_variable_on_tapes(Event::numpy, v);
    return v.value.rank() == 0 ? to_numpy_scalar(v.value) : to_numpy(v.value.view(v.value.shape()), true);
  });
}

// _assign_slice(key, value): v[key].assign(value).
PyObject* assign_slice(PyObject* self, PyObject* args) {
  PyObject *key, *value;
  if (!PyArg_ParseTuple(args, "OO:_assign_slice", &key, &value)) return nullptr;
  return guarded([&]() -> PyObject* {
    VariableBody& v = variable_of(self);
    Tensor t = to_tensor(value, v.dtype, DType::invalid, "assign");
    SlicePlan plan = plan_slice(v.value.shape(), parse_key(key));
    Shape ignored;
    if (!broadcast(plan.result, t.shape(), &ignored) || !(ignored == plan.result))
      fail(ErrorKind::value, "assign: the value must have the shape of the slice ", plan.result, "; got ", t.shape());
    if (!thread_state().recorders.empty()) log_assignment_on_tapes(v, t);
    write_slice(writable_value(v), plan, t);
    return bound_copy(self);
  });
}

// _update_rows(indices, values, who): who is scatter_update, scatter_add or scatter_sub.
PyObject* update_rows_of(PyObject* self, PyObject* args) {
  PyObject *indices, *values;
  const char* who;
  if (!PyArg_ParseTuple(args, "OOs:_update_rows", &indices, &values, &who)) return nullptr;
  return guarded([&]() -> PyObject* {
    VariableBody& v = variable_of(self);
    Tensor t = to_tensor(values, v.dtype, DType::invalid, who),
           places = to_tensor(indices, DType::invalid, DType::int32, who);
    if (!thread_state().recorders.empty()) log_assignment_on_tapes(v, t);
    RowUpdate how = !std::strcmp(who, "scatter_add")   ? RowUpdate::add
                    : !std::strcmp(who, "scatter_sub") ? RowUpdate::subtract
                                                       : RowUpdate::replace;
    update_rows(v, places, t, how, who);
    return bound_copy(self);
  });
}

PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] {
    VariableBody& v = variable_of(self);
    if (!thread_state().recorders.empty() && v.value) log_variable_on_tapes(Event::shape, v);
    return wrap_shape(v.shape);
  });
}
PyObject* get_dtype(PyObject* self, void*) {
  return guarded([&] { return wrap_dtype(variable_of(self).dtype); });
}
PyObject* get_trainable(PyObject* self, void*) { return PyBool_FromLong(variable_of(self).trainable); }
int set_trainable(PyObject* self, PyObject* value, void*) {
  int yes = value ? PyObject_IsTrue(value) : -1;
  if (yes < 0) return -1;
  variable_of(self).trainable = yes;
  return 0;
}

// The doc of a method that changes the variable: what it does, its argument, and an example on a variable [1., 2.].
std::string update_doc(const std::string& name, const std::string& argument, const std::string& what,
                       const std::string& about, const std::string& given, const std::string& result) {
  return name + "($self, /, " + argument + ", use_locking=False, name=None, read_value=True)\n--\n\n" + what +
         "\n\nArgs:\n  " + argument + ": " + about + R"(
  use_locking: A hint of TensorFlow's; an assignment is always atomic.
  name: A name for the operation in graphs.
  read_value: Whether to return the variable.

Returns:
  The variable, or None if `read_value` is False.

Gradient:
  None: an assignment is not recorded.

>>> v = tf.Variable([1., 2.])
>>> v.)" +
         name + "(" + given + ")\n<tf.Variable 'Variable:0' shape=(2,) dtype=float32, numpy=array(" + result +
         ", dtype=float32)>";
}
const std::string assign_doc =
    update_doc("assign", "value", "Puts a new value into the variable.",
               "The new value, of the dtype and shape of the variable.", "[5., 6.]", "[5., 6.]");
const std::string assign_add_doc = update_doc("assign_add", "delta", "Adds to the variable's value.",
                                              "What to add, of the dtype of the variable.", "[1., 1.]", "[2., 3.]");
const std::string assign_sub_doc =
    update_doc("assign_sub", "delta", "Subtracts from the variable's value.",
               "What to subtract, of the dtype of the variable.", "[1., 1.]", "[0., 1.]");

PyMethodDef methods[] = {
    {"_set_up", set_up, METH_VARARGS, nullptr},
    {"_declare", declare, METH_VARARGS, nullptr},
    {"_exchange", exchange, METH_O, nullptr},
    {"_set_copies", set_copies, METH_O, nullptr},
    {"_first_copy", first_copy, METH_O, nullptr},
    {"_is_initialized", is_initialized_method, METH_NOARGS, nullptr},
    {"assign", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(assign_method<Update::assign>)),
     METH_FASTCALL | METH_KEYWORDS, assign_doc.c_str()},
    {"assign_add", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(assign_method<Update::add>)),
     METH_FASTCALL | METH_KEYWORDS, assign_add_doc.c_str()},
    {"assign_sub", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(assign_method<Update::subtract>)),
     METH_FASTCALL | METH_KEYWORDS, assign_sub_doc.c_str()},
    {"value", read_value, METH_NOARGS, "value($self, /)\n--\n\nThe value, as a tensor."},
    {"read_value", read_value, METH_NOARGS, "read_value($self, /)\n--\n\nThe value, as a tensor."},
    {"numpy", numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\nThe value, as a NumPy array (a scalar for a variable of rank 0)."},
    {"_assign_slice", assign_slice, METH_VARARGS, nullptr},
    {"_update_rows", update_rows_of, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"shape", get_shape, nullptr, "The declared shape, a tf.TensorShape.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of the elements, a tf.DType.", nullptr},
    {"trainable", get_trainable, set_trainable, "Whether tapes watch this variable by themselves.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(VariableObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(VariableObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyMethodDef functions[] = {
    {"set_assignment_observer", set_assignment_observer, METH_VARARGS,
     "set_assignment_observer(observer, only_recorded=False): what is called with a variable and 'assign', "
     "'assign_add' or 'assign_sub'; if only_recorded, while something records."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_variable_type(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
  std::vector<PyType_Slot> slots(operator_slots, operator_slots + operator_slot_count);
  auto slot = [&](int id, void* function) { slots.push_back({id, function}); };
  slot(Py_tp_new, reinterpret_cast<void*>(variable_new));
  slot(Py_tp_dealloc, reinterpret_cast<void*>(variable_dealloc));
  slot(Py_tp_traverse, reinterpret_cast<void*>(variable_traverse));
  slot(Py_tp_clear, reinterpret_cast<void*>(variable_clear));
  slot(Py_tp_hash, reinterpret_cast<void*>(refuse_hash));
  slot(Py_tp_richcompare, reinterpret_cast<void*>(rich_compare));
  slot(Py_mp_subscript, reinterpret_cast<void*>(subscript));
  slot(Py_tp_methods, methods);
  slot(Py_tp_getset, properties);
  slot(Py_tp_members, members);
  slot(0, nullptr);
  PyType_Spec spec = {"tapeflow._src._core.Variable", sizeof(VariableObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  Ref type = checked(PyType_FromSpec(&spec));
  variable_type = reinterpret_cast<PyTypeObject*>(type.get());
  if (PyModule_AddObjectRef(module, "Variable", type.get()) < 0) throw_python_error();
}

}  // namespace tapeflow::python
