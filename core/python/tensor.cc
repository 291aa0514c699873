// The Python tensor type: wrapping and unwrapping, attributes, conversions to Python and NumPy.

#include "graph/graph.h"
#include "ops/ops.h"
#include "python/common.h"

namespace tapeflow::python {

PyTypeObject* tensor_type = nullptr;

namespace {

// Wrappers are made and dropped with every operation, so the last few hundred are kept. They can be part of reference
// cycles only through attributes that a program sets, so the garbage collector sees them from then on and not before.
constexpr int kFreeLimit = 512;
TensorObject* free_objects[kFreeLimit];
int free_count = 0;
bool any_object_made = false;  // written where none is kept for reuse, as for the first one

TensorObject* new_object() {
  if (free_count) {
    TensorObject* o = free_objects[--free_count];
    PyObject_Init(reinterpret_cast<PyObject*>(o), tensor_type);
    return o;
  }
  TensorObject* o = PyObject_GC_New(TensorObject, tensor_type);
  if (!o) throw_python_error();
  any_object_made = true;
  o->dict = nullptr;
  o->weak_references = nullptr;
  return o;
}

TensorObject* object(PyObject* self) { return reinterpret_cast<TensorObject*>(self); }

void tensor_dealloc(PyObject* self) {
  TensorObject* o = object(self);
  if (o->weak_references) PyObject_ClearWeakRefs(self);
  PyObject_GC_UnTrack(self);  // also without attributes: the collector may have cleared them
  Py_CLEAR(o->dict);
  if (o->body->wrapper == self) o->body->wrapper = nullptr;
  Tensor(o->body);
  PyTypeObject* type = Py_TYPE(self);
  if (type == tensor_type && free_count < kFreeLimit)
    free_objects[free_count++] = o;
  else
    PyObject_GC_Del(self);
  Py_DECREF(type);
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(object(self)->dict);
  return 0;
}

int tensor_clear(PyObject* self) {
  Py_CLEAR(object(self)->dict);
  return 0;
}

int tensor_setattro(PyObject* self, PyObject* name, PyObject* value) {
  int result = PyObject_GenericSetAttr(self, name, value);
  if (object(self)->dict && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
  return result;
}

bool refuse_symbolic(PyObject* self, const char* what);

// After an AttributeError: one with a hint, for names of other libraries that have an equivalent here.
void add_hint(PyObject* self, PyObject* name) {
  static PyObject* hints = registered("tensor_hints");
  if (!hints || !PyErr_ExceptionMatches(PyExc_AttributeError)) return;
  PyObject *kind, *error, *traceback;
  PyErr_Fetch(&kind, &error, &traceback);
  PyObject* hint = PyDict_GetItemWithError(hints, name);  // borrowed
  if (!hint) return PyErr_Restore(kind, error, traceback);
  Py_XDECREF(kind);
  Py_XDECREF(error);
  Py_XDECREF(traceback);
  const char* type = tensor_of(self).symbolic() ? "SymbolicTensor" : Py_TYPE(self)->tp_name;
  PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'. %U", type, name, hint);
}

PyObject* tensor_getattro(PyObject* self, PyObject* name) {
  if (tensor_of(self).symbolic() && PyUnicode_CompareWithASCIIString(name, "numpy") == 0 &&
      refuse_symbolic(self, "numpy"))
    return nullptr;
  PyObject* result = PyObject_GenericGetAttr(self, name);
  if (!result) add_hint(self, name);
  if (object(self)->dict && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
  return result;
}

// Symbolic tensors are keys of feeds and fetches.
Py_hash_t refuse_hash(PyObject* self) {
  if (tensor_of(self).symbolic()) return Py_hash_t(reinterpret_cast<uintptr_t>(object(self)->body) >> 4);
  PyErr_SetString(PyExc_TypeError, "Tensor is unhashable. Instead, use tensor.ref() as the key.");
  return -1;
}

PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] {
    log_on_tapes_if_any(Event::shape, tensor_of(self));
    return wrap_shape(object(self)->body->shape);
  });
}
PyObject* get_dtype(PyObject* self, void*) {
  return guarded([&] { return wrap_dtype(object(self)->body->dtype); });
}
PyObject* get_ndim(PyObject* self, void*) {
  int rank = object(self)->body->shape.rank();
  return rank < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(rank);
}

// A tensor that stands for a value of a graph has no elements. `advice` is the Python function with the message.
bool refuse_symbolic(PyObject* self, const char* what) {
  if (!tensor_of(self).symbolic()) return false;
  Ref ignored(PyObject_CallFunction(registered("refuse_symbolic"), "Os", self, what));
  return true;
}

PyObject* numpy(PyObject* self, PyObject*) {
  return guarded([&] {
    Tensor t = tensor_of(self);
    log_on_tapes_if_any(Event::numpy, t);
    if (t.rank() == 0) return to_numpy_scalar(t);
    // Nobody but the caller's expression holds this tensor: its memory can be handed over instead of copied.
    if (is_temporary(self) && t.body()->references == 2) {
      --t.body()->references;
      PyObject* array = guarded([&] { return to_numpy(t, true); });
      ++t.body()->references;
      return array;
    }
    return to_numpy(t, true);
  });
}

// __array__(dtype=None, copy=None): a read-only view unless a copy is asked for.
PyObject* array(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(names), &dtype, &copy))
    return nullptr;
  if (refuse_symbolic(self, "__array__")) return nullptr;
  return guarded([&] {
    log_on_tapes_if_any(Event::numpy, tensor_of(self));
    Ref result(to_numpy(tensor_of(self), copy == Py_True));
    if (!result || dtype == Py_None) return result.release();
    return PyObject_CallMethod(result.get(), "astype", "O", dtype);
  });
}

PyObject* single_element(PyObject* self) {
  Tensor t = tensor_of(self);
  if (t.size() != 1)
    fail(ErrorKind::type, "Only tensors with one element can be converted to Python scalars; got shape ", t.shape());
  log_on_tapes_if_any(Event::number, t);
  return to_numpy_scalar(t);
}
PyObject* as_float(PyObject* self) {
  if (refuse_symbolic(self, "float")) return nullptr;
  return guarded([&]() -> PyObject* {
    Ref item(single_element(self));
    return item ? PyNumber_Float(item.get()) : nullptr;
  });
}
PyObject* as_int(PyObject* self) {
  if (refuse_symbolic(self, "int")) return nullptr;
  return guarded([&]() -> PyObject* {
    Ref item(single_element(self));
    return item ? PyNumber_Long(item.get()) : nullptr;
  });
}
PyObject* as_index(PyObject* self) {
  if (refuse_symbolic(self, "index")) return nullptr;
  return guarded([&]() -> PyObject* {
    Tensor t = tensor_of(self);
    if (t.rank() != 0 || !integers.has(t.dtype()))
      fail(ErrorKind::type, "only integer scalar tensors can be converted to a scalar index; got shape ", t.shape(),
           " and dtype ", name_of(t.dtype()));
    log_on_tapes_if_any(Event::argument, t);
    return PyLong_FromLongLong(read_ints(t)[0]);
  });
}
int as_bool(PyObject* self) {
  if (refuse_symbolic(self, "bool")) return -1;
  return guarded(
      [&]() -> int {
        Tensor t = tensor_of(self);
        if (t.size() == 0) return 0;
        if (t.size() != 1)
          fail(ErrorKind::value,
               "The truth value of an array with more than one element is ambiguous. Use tf.reduce_any or "
               "tf.reduce_all.");
        log_on_tapes_if_any(Event::boolean, t);
        Ref item = checked(to_numpy_scalar(t));
        return PyObject_IsTrue(item.get());
      },
      -1);
}

Py_ssize_t length(PyObject* self) {
  const Shape& shape = object(self)->body->shape;
  if (shape.rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "Scalar tensor has no `len()`");
    return -1;
  }
  if ((!shape.known_rank() || shape[0] < 0) && refuse_symbolic(self, "len")) return -1;
  return Py_ssize_t(shape[0]);
}

PyObject* iterate(PyObject* self) {
  if (object(self)->body->shape.rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "Cannot iterate over a scalar tensor.");
    return nullptr;
  }
  if (refuse_symbolic(self, "iterate")) return nullptr;
  return guarded([&] {
    auto parts = unstack(tensor_of(self), 0);
    Ref list = checked(wrap_list(parts));
    return PyObject_GetIter(list.get());
  });
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  if (refuse_symbolic(self, "__array__")) return -1;
  Tensor t = tensor_of(self);
  Ref array(guarded([&] {
    log_on_tapes_if_any(Event::numpy, t);
    return to_numpy(t, false);
  }));
  if (!array) return -1;
  return PyObject_GetBuffer(array.get(), view, flags);
}

PyObject* element_text(PyObject* self, const char* name) {
  PyObject* function = registered(name);
  return function ? PyObject_CallOneArg(function, self) : PyUnicode_FromString("<tf.Tensor>");
}
PyObject* repr(PyObject* self) { return element_text(self, "tensor_repr"); }
PyObject* str(PyObject* self) { return element_text(self, "tensor_str"); }

PyMethodDef methods[] = {
    {"_numpy", numpy, METH_NOARGS, nullptr},  // libraries know it by this name
    {"numpy", numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\nThe elements as a NumPy array (a scalar for a tensor of rank 0)."},
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(array)), METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"shape", get_shape, nullptr, "The shape, a tf.TensorShape.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of the elements, a tf.DType.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

PyObject* wrap(Tensor t) {
  if (t.body()->wrapper) return Py_NewRef(static_cast<PyObject*>(t.body()->wrapper));
  TensorObject* o = new_object();
  o->body = t.release();
  o->body->wrapper = o;
  o->trace = current_trace();
  o->device = thread_locals.place.device;
  return reinterpret_cast<PyObject*>(o);
}

bool any_tensor_made() { return any_object_made; }
void forget_tensors_made() {
  while (free_count) PyObject_GC_Del(free_objects[--free_count]);
  any_object_made = false;
}

PyObject* wrap_list(std::span<const Tensor> tensors) {
  Ref list = checked(PyList_New(Py_ssize_t(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) PyList_SET_ITEM(list.get(), Py_ssize_t(i), wrap(tensors[i]));
  return list.release();
}

void add_tensor_type(PyObject* module) {
  std::vector<PyType_Slot> slots(operator_slots, operator_slots + operator_slot_count);
  auto slot = [&](int id, void* function) { slots.push_back({id, function}); };
  slot(Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc));
  slot(Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse));
  slot(Py_tp_clear, reinterpret_cast<void*>(tensor_clear));
  slot(Py_tp_setattro, reinterpret_cast<void*>(tensor_setattro));
  slot(Py_tp_getattro, reinterpret_cast<void*>(tensor_getattro));
  slot(Py_tp_repr, reinterpret_cast<void*>(repr));
  slot(Py_tp_str, reinterpret_cast<void*>(str));
  slot(Py_tp_iter, reinterpret_cast<void*>(iterate));
  slot(Py_tp_hash, reinterpret_cast<void*>(refuse_hash));
  slot(Py_tp_richcompare, reinterpret_cast<void*>(rich_compare));
  slot(Py_mp_length, reinterpret_cast<void*>(length));
  slot(Py_mp_subscript, reinterpret_cast<void*>(subscript));
  slot(Py_nb_float, reinterpret_cast<void*>(as_float));
  slot(Py_nb_int, reinterpret_cast<void*>(as_int));
  slot(Py_nb_index, reinterpret_cast<void*>(as_index));
  slot(Py_nb_bool, reinterpret_cast<void*>(as_bool));
  slot(Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer));
  slot(Py_tp_methods, methods);
  slot(Py_tp_getset, properties);
  slot(Py_tp_members, members);
  slot(0, nullptr);
  PyType_Spec spec = {"tapeflow.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
  Ref type = checked(PyType_FromSpec(&spec));
  tensor_type = reinterpret_cast<PyTypeObject*>(type.get());
  if (PyModule_AddObjectRef(module, "Tensor", type.get()) < 0) throw_python_error();
}

}  // namespace tapeflow::python
