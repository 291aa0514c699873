// Maps kinds of errors to Python exception classes; the only place that knows both.
#include <exception>

#include "python/common.h"
#include "tensor/out_of_memory.h"

namespace tapeflow::python {

void throw_python_error() { throw Error(ErrorKind::python, "a Python exception is set"); }

namespace {
// tf.errors.InvalidArgumentError(node_def, op, message) and its siblings.
void set_op_error(const char* name, const char* message) {
  PyObject* type = registered(name);
  Ref error(type ? PyObject_CallFunction(type, "OOs", Py_None, Py_None, message) : nullptr);
  if (error) PyErr_SetObject(type, error.get());
}
}  // namespace

void set_python_error(const Error& e) {
  switch (e.kind) {
    case ErrorKind::python: return;
    // What is wrong already while tracing is a ValueError in TensorFlow, or an InvalidArgumentError if only running
    // shows it.
    case ErrorKind::invalid_argument:
      return set_op_error(thread_state().stage ? "InvalidArgumentWhileTracingError" : "InvalidArgumentError", e.what());
    case ErrorKind::unimplemented: return set_op_error("UnimplementedError", e.what());
    case ErrorKind::failed_precondition: return set_op_error("FailedPreconditionError", e.what());
    case ErrorKind::value: return PyErr_SetString(PyExc_ValueError, e.what());
    case ErrorKind::type: return PyErr_SetString(PyExc_TypeError, e.what());
    case ErrorKind::lookup: return PyErr_SetString(PyExc_LookupError, e.what());
    case ErrorKind::needs_value: return PyErr_SetString(registered("SymbolicValueError"), e.what());
    case ErrorKind::index: return PyErr_SetString(PyExc_IndexError, e.what());
    case ErrorKind::runtime: return PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

// Says what did not find room, if it is called while that exception is handled.
void set_memory_error() {
  const char* message = "OOM when allocating tensor: the memory does not suffice.";
  try {
    if (std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const OutOfMemory& e) {
    return set_op_error("ResourceExhaustedError", e.what());
  } catch (...) {  // of a container
  }
  set_op_error("ResourceExhaustedError", message);
}

// An error that is both, as those of tf.py_function are, keeps its message.
void translate_memory_error() {
  if (!PyErr_ExceptionMatches(PyExc_MemoryError) || PyErr_ExceptionMatches(registered("ResourceExhaustedError")))
    return;
  PyErr_Clear();
  set_memory_error();
}

}  // namespace tapeflow::python
