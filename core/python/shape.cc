// The C part of tf.TensorShape: one field, and the steps that programs take most often.

#include "python/common.h"

namespace tapeflow::python {
namespace {

struct ShapeObject {
  PyObject_HEAD PyObject* dims;  // a tuple of int or None; None if the rank is unknown
};

PyObject* dims_of(PyObject* self) { return reinterpret_cast<ShapeObject*>(self)->dims; }

bool require_rank(PyObject* self, const char* what) {
  if (dims_of(self) != Py_None) return true;
  PyErr_Format(PyExc_ValueError, "%s", what);
  return false;
}

PyObject* shape_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* dims = Py_None;
  if (!PyArg_UnpackTuple(args, "TensorShapeBase", 0, 1, &dims)) return nullptr;
  if (dims != Py_None && !PyTuple_CheckExact(dims)) {
    PyErr_SetString(PyExc_TypeError, "TensorShapeBase takes a tuple or None");
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (self) reinterpret_cast<ShapeObject*>(self)->dims = Py_NewRef(dims);
  return self;
}

void shape_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_CLEAR(reinterpret_cast<ShapeObject*>(self)->dims);
  type->tp_free(self);
  Py_DECREF(type);
}

Py_ssize_t shape_length(PyObject* self) {
  if (!require_rank(self, "Cannot take the length of shape with unknown rank.")) return -1;
  return PyTuple_GET_SIZE(dims_of(self));
}

PyObject* shape_item(PyObject* self, PyObject* key) {
  if (PySlice_Check(key)) return PyObject_CallMethod(self, "_getslice", "O", key);
  Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  if (dims_of(self) == Py_None) Py_RETURN_NONE;
  Py_ssize_t n = PyTuple_GET_SIZE(dims_of(self));
  if (i < 0) i += n;
  if (i < 0 || i >= n) {
    PyErr_SetString(PyExc_IndexError, "tuple index out of range");
    return nullptr;
  }
  return Py_NewRef(PyTuple_GET_ITEM(dims_of(self), i));
}

PyObject* shape_at(PyObject* self, Py_ssize_t i) {
  Ref index(PyLong_FromSsize_t(i));
  return index ? shape_item(self, index.get()) : nullptr;
}

PyObject* shape_iterate(PyObject* self) {
  if (!require_rank(self, "Cannot iterate over a shape with unknown rank.")) return nullptr;
  return PyObject_GetIter(dims_of(self));
}

PyObject* shape_rank(PyObject* self, void*) {
  if (dims_of(self) == Py_None) Py_RETURN_NONE;
  return PyLong_FromSsize_t(PyTuple_GET_SIZE(dims_of(self)));
}

PyObject* shape_as_list(PyObject* self, PyObject*) {
  if (!require_rank(self, "as_list() is not defined on an unknown TensorShape.")) return nullptr;
  return PySequence_List(dims_of(self));
}

PyMethodDef methods[] = {
    {"as_list", shape_as_list, METH_NOARGS,
     "as_list($self, /)\n--\n\nReturns the dimensions as a list of int or None."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"rank", shape_rank, nullptr, "Number of dimensions, or None.", nullptr},
    {"ndims", shape_rank, nullptr, "Number of dimensions, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"_dims", T_OBJECT, offsetof(ShapeObject, dims), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(shape_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(shape_dealloc)},
    {Py_tp_iter, reinterpret_cast<void*>(shape_iterate)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_sq_length, reinterpret_cast<void*>(shape_length)},
    {Py_sq_item, reinterpret_cast<void*>(shape_at)},
    {Py_mp_length, reinterpret_cast<void*>(shape_length)},
    {Py_mp_subscript, reinterpret_cast<void*>(shape_item)},
    {0, nullptr},
};
PyType_Spec spec = {"tapeflow._src._core.TensorShapeBase", sizeof(ShapeObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

PyObject* wrap_shape(const Shape& shape) {
  Ref dims;
  if (shape.known_rank()) {
    dims = checked(PyTuple_New(shape.rank()));
    for (int i = 0; i < shape.rank(); ++i)
      PyTuple_SET_ITEM(dims.get(), i, shape[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(shape[i]));
  } else {
    dims = Ref::share(Py_None);
  }
  static PyTypeObject* type = nullptr;
  if (!type) type = reinterpret_cast<PyTypeObject*>(registered("TensorShape"));
  if (!type) fail(ErrorKind::runtime, "tapeflow is not imported completely");
  Ref self = checked(type->tp_alloc(type, 0));
  reinterpret_cast<ShapeObject*>(self.get())->dims = dims.release();
  return self.release();
}

Shape shape_from(PyObject* tensor_shape) {
  Ref dims = checked(PyObject_GetAttrString(tensor_shape, "_dims"));
  if (dims.get() == Py_None) return Shape::unknown();
  Shape shape;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dims.get()); ++i) {
    PyObject* d = PyTuple_GET_ITEM(dims.get(), i);
    shape.append(d == Py_None ? -1 : PyLong_AsLongLong(d));
  }
  return shape;
}

void add_shape_type(PyObject* module) {
  Ref type = checked(PyType_FromSpec(&spec));
  if (PyModule_AddObjectRef(module, "TensorShapeBase", type.get()) < 0) throw_python_error();
}

}  // namespace tapeflow::python
