#include "python/shared_window.h"

#include "autodiff/tape.h"
#include "collectives/shared_window.h"
#include "python/graph/graph.h"

namespace tapeflow::python {
namespace {

struct WindowObject {
  PyObject_HEAD SharedWindow* window;
};

SharedWindow& window_of(PyObject* self) { return *reinterpret_cast<WindowObject*>(self)->window; }

// SharedWindow(addresses, rank, bytes)
PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* addresses;
  int rank;
  Py_ssize_t bytes;
  if (!PyArg_ParseTuple(args, "O!in:SharedWindow", &PyList_Type, &addresses, &rank, &bytes)) return nullptr;
  return guarded([&]() -> PyObject* {
    std::vector<void*> segments;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(addresses); ++i) {
      segments.push_back(PyLong_AsVoidPtr(PyList_GET_ITEM(addresses, i)));
      if (PyErr_Occurred()) throw_python_error();
    }
    Ref self = checked(type->tp_alloc(type, 0));
    reinterpret_cast<WindowObject*>(self.get())->window = new SharedWindow(std::move(segments), rank, size_t(bytes));
    return self.release();
  });
}

void destroy(PyObject* self) {
  delete reinterpret_cast<WindowObject*>(self)->window;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// What a message gives: its sums, None while it waits for other ranks, False if they announced another one.
PyObject* finished(SharedWindow& window, uint64_t message, double seconds) {
  switch (window.finish(message, seconds)) {
    case SharedWindow::State::waiting: Py_RETURN_NONE;
    case SharedWindow::State::disagreement: Py_RETURN_FALSE;
    case SharedWindow::State::done: break;
  }
  return wrap_list(window.take(message));
}

uint64_t started(SharedWindow& window, PyObject* checksum, PyObject* tensors, bool bfloat16) {
  const unsigned long mark = PyLong_AsUnsignedLong(checksum);
  if (PyErr_Occurred()) throw_python_error();
  SmallVector<Tensor, 8> in = tensors_of(tensors, "all_reduce");
  DType wire = in.empty() ? DType::invalid : in[0].dtype();
  if (bfloat16 && wire == DType::float32) wire = DType::bfloat16;
  return window.start(uint32_t(mark), in, wire);
}

// start(checksum, tensors, bfloat16) -> number of the message
PyObject* start(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  if (n != 3) return PyErr_Format(PyExc_TypeError, "start takes a checksum, tensors and a flag");
  return guarded(
      [&] { return PyLong_FromUnsignedLongLong(started(window_of(self), args[0], args[1], args[2] == Py_True)); });
}

// finish(message, seconds) -> the sums, None or False
PyObject* finish(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "finish takes a message and seconds");
  const unsigned long long message = PyLong_AsUnsignedLongLong(args[0]);
  const double seconds = PyFloat_AsDouble(args[1]);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&] { return finished(window_of(self), message, seconds); });
}

// sum(checksum, value, seconds) -> the sum of a tensor in an eager program that records nothing; None if the value is
// something else or there is more to do; the number of the message if it is not done in time.
PyObject* sum(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  if (n != 3) return PyErr_Format(PyExc_TypeError, "sum takes a checksum, a value and seconds");
  if (!is_tensor(args[1]) || thread_state().stage || is_recording()) Py_RETURN_NONE;
  const unsigned long checksum = PyLong_AsUnsignedLong(args[0]);
  const double seconds = PyFloat_AsDouble(args[2]);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&]() -> PyObject* {
    const Tensor t = tensor_of(args[1]);
    if (t.symbolic() || !fixed_size.has(t.dtype())) Py_RETURN_NONE;
    SharedWindow& window = window_of(self);
    const uint64_t message = window.start(uint32_t(checksum), {&t, 1}, t.dtype());
    if (window.finish(message, seconds) != SharedWindow::State::done) return PyLong_FromUnsignedLongLong(message);
    return wrap(window.take(message)[0]);
  });
}

// announced() -> the last message of each rank
PyObject* announced(PyObject* self, PyObject*) {
  return guarded([&] {
    SharedWindow& window = window_of(self);
    Ref list = checked(PyList_New(window.size()));
    for (int r = 0; r < window.size(); ++r)
      PyList_SET_ITEM(list.get(), r, checked(PyLong_FromUnsignedLongLong(window.announced(r))).release());
    return list.release();
  });
}

// times(message) -> how often such a message was started
PyObject* times(PyObject* self, PyObject* message) {
  const unsigned long long number = PyLong_AsUnsignedLongLong(message);
  return PyErr_Occurred() ? nullptr : PyLong_FromUnsignedLongLong(window_of(self).times(number));
}

// uninitialized(dtype, n) -> a vector whose elements are to be written by what receives a message
PyObject* uninitialized(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "uninitialized takes a dtype and a number of elements");
  const long long count = PyLong_AsLongLong(args[1]);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&] { return wrap(Tensor::allocate(dtype_from(args[0]), Shape({count}))); });
}

PyMethodDef functions[] = {
    {"uninitialized", method(uninitialized), METH_FASTCALL, "A vector whose elements are not set."},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef methods[] = {
    {"start", method(start), METH_FASTCALL, "Starts to add tensors of one dtype over all ranks."},
    {"finish", method(finish), METH_FASTCALL, "The sums; None if time is up; False if the ranks disagree."},
    {"sum", method(sum), METH_FASTCALL, "The sum of one tensor over all ranks, without a detour."},
    {"times", times, METH_O, "How often such a message was started, this one included."},
    {"announced", announced, METH_NOARGS, "The number of the last message of each rank."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"tapeflow._src._core.SharedWindow", sizeof(WindowObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void add_shared_window_type(PyObject* module) {
  Ref type = checked(PyType_FromSpec(&spec));
  if (PyModule_AddObjectRef(module, "SharedWindow", type.get()) < 0) throw_python_error();
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
