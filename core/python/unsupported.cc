// The error that a value is no tensor. For a type that runs operations on itself its text is made when somebody reads
// it: such an operation begins with this error, and printing a large value takes a thousand times as long as the rest.
#include "python/common.h"

namespace tapeflow::python {
namespace {

struct MessageObject {
  PyObject_HEAD PyObject* value;
  bool symbolic;
};

std::string message(PyObject* value, bool symbolic) {
  Ref text = checked(PyObject_Repr(value)), type = checked(PyObject_Repr(reinterpret_cast<PyObject*>(Py_TYPE(value))));
  const std::string shown = PyUnicode_AsUTF8(text.get()), of = PyUnicode_AsUTF8(type.get());
  if (symbolic)
    return "Failed to convert elements of " + shown + " of type " + of +
           " to Tensor. Consider casting elements to a supported type. See "
           "https://www.tensorflow.org/api_docs/python/tf/dtypes for supported TF dtypes.";
  return "Attempt to convert a value (" + shown + ") with an unsupported type (" + of + ") to a Tensor.";
}

PyObject* message_text(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const auto* m = reinterpret_cast<MessageObject*>(self);
    return PyUnicode_FromString(message(m->value, m->symbolic).c_str());
  });
}

PyObject* message_repr(PyObject* self) {
  Ref text(message_text(self));
  return text ? PyObject_Repr(text.get()) : nullptr;
}

PyObject* message_reduce(PyObject* self, PyObject*) {
  Ref text(message_text(self));
  return text ? Py_BuildValue("O(O)", &PyUnicode_Type, text.get()) : nullptr;
}

void message_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_CLEAR(reinterpret_cast<MessageObject*>(self)->value);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"__reduce__", message_reduce, METH_NOARGS, nullptr}, {}};

PyType_Slot slots[] = {{Py_tp_str, reinterpret_cast<void*>(message_text)},
                       {Py_tp_repr, reinterpret_cast<void*>(message_repr)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(message_dealloc)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

PyType_Spec spec = {"tapeflow._src._core.UnsupportedMessage", sizeof(MessageObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void fail_unsupported(PyObject* value) {
  const bool symbolic = thread_state().stage;
  if (PyType_Check(value) || !PyObject_HasAttrString(value, "__tf_operation__"))
    fail(symbolic ? ErrorKind::type : ErrorKind::value, message(value, symbolic));
  static PyObject* type = PyType_FromSpec(&spec);
  Ref lazy = checked(type ? PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(type), 0) : nullptr);
  auto* m = reinterpret_cast<MessageObject*>(lazy.get());
  m->value = Py_NewRef(value);
  m->symbolic = symbolic;
  PyErr_SetObject(symbolic ? PyExc_TypeError : PyExc_ValueError, lazy.get());
  throw_python_error();
}

}  // namespace tapeflow::python
