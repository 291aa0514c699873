// The extension module: registers what Python hands over, and small functions about the core as a whole.
#include <chrono>
#include <thread>

#include "autodiff/tape.h"
#include "base/parallel.h"
#include "graph/run.h"
#include "kernels/checksum.h"
#include "kernels/linalg/blas.h"
#include "kernels/simd/vector.h"
#include "ops/ops.h"
#include "plan/parallel_regions.h"
#include "python/examples.h"
#include "python/graph/graph.h"
#include "python/shared_window.h"
#include "tensor/unlocked.h"

namespace tapeflow::python {
namespace {

PyObject* registered_objects = nullptr;     // dict by name
PyObject* dtype_objects[kDTypeLimit] = {};  // tf.DType by number

void* release_interpreter() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }
// keep_interpreter_lock(): from now on kernels run under the lock; waits for those that do not. Called at exit.
PyObject* keep_interpreter_lock(PyObject*, PyObject*) {
  no_more_unlocking.store(true);
  for (int tries = 0; unlocked_threads.load() > 0 && tries < 10000; ++tries) {
    Py_BEGIN_ALLOW_THREADS;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Py_END_ALLOW_THREADS;
  }
  Py_RETURN_NONE;
}

// unlock_from(microseconds or None): kernels that take so long run without the interpreter lock; None for the default.
PyObject* unlock_from(PyObject*, PyObject* microseconds) {
  const double value = microseconds == Py_None ? kWorthUnlocking : PyFloat_AsDouble(microseconds);
  if (PyErr_Occurred()) return nullptr;
  worth_unlocking_from = value;
  Py_RETURN_NONE;
}

void acquire_interpreter(void* released) { PyEval_RestoreThread(static_cast<PyThreadState*>(released)); }

PyObject* register_objects(PyObject*, PyObject* dict) {
  if (!PyDict_Check(dict)) return PyErr_Format(PyExc_TypeError, "register_objects takes a dict");
  if (PyDict_Update(registered_objects, dict) < 0) return nullptr;
  Py_RETURN_NONE;
}

// set_class_attributes(type, {name: value}): what `type.name` is, without a change of the slots behind Python's
// operators: `Tensor.__add__` is a function that libraries put into classes of their own.
PyObject* set_class_attributes(PyObject*, PyObject* args) {
  PyObject *type, *values;
  if (!PyArg_ParseTuple(args, "O!O!:set_class_attributes", &PyType_Type, &type, &PyDict_Type, &values)) return nullptr;
  auto* kind = reinterpret_cast<PyTypeObject*>(type);
  if (PyDict_Update(kind->tp_dict, values) < 0) return nullptr;
  PyType_Modified(kind);
  Py_RETURN_NONE;
}

PyObject* register_dtypes(PyObject*, PyObject* dict) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &key, &value)) {
    long i = PyLong_AsLong(key);
    if (i < 0 || i >= kDTypeLimit) continue;
    Py_INCREF(value);
    Py_XSETREF(dtype_objects[i], value);
  }
  Py_RETURN_NONE;
}

// convert_to_tensor(value, dtype or None, dtype_hint or None, name of the function)
PyObject* convert_to_tensor(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 4) fail(ErrorKind::type, "convert_to_tensor takes 4 arguments");
    DType wanted = args[1] == Py_None ? DType::invalid : dtype_from(args[1]);
    DType hint = args[2] == Py_None ? DType::invalid : dtype_from(args[2]);
    const char* who = PyUnicode_AsUTF8(args[3]);
    if (!who) throw_python_error();
    Tensor t = to_tensor(args[0], wanted, hint, who);
    if (!is_tensor(args[0]) && !is_variable(args[0])) log_on_tapes_if_any(Event::constant, t);
    // A variable gives a tensor of its own, so that a gradient by it means by this reading alone.
    return wrap(is_variable(args[0]) ? identity(t) : t);
  });
}

PyObject* is_tensor_object(PyObject*, PyObject* o) { return PyBool_FromLong(is_tensor(o) || is_variable_object(o)); }

PyObject* memory(PyObject*, PyObject*) {
  MemoryInfo m = memory_info();
  return Py_BuildValue("{s:L,s:L,s:L}", "current", (long long)m.current, "peak", (long long)m.peak, "cached",
                       (long long)m.cached);
}
PyObject* reset_peak(PyObject*, PyObject*) {
  reset_memory_peak();
  Py_RETURN_NONE;
}
PyObject* trim(PyObject*, PyObject*) {
  trim_memory();
  Py_RETURN_NONE;
}
PyObject* set_limit(PyObject*, PyObject* bytes) {
  long long n = PyLong_AsLongLong(bytes);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  set_cache_limit(n);
  Py_RETURN_NONE;
}
PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(thread_count()); }
PyObject* set_threads(PyObject*, PyObject* count) {
  long n = PyLong_AsLong(count);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  set_thread_count(int(n));
  Py_RETURN_NONE;
}
PyObject* names_of_passes(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    for (const std::string& name : pass_names()) {
      Ref text = checked(PyUnicode_FromString(name.c_str()));
      if (PyList_Append(list.get(), text.get()) < 0) throw_python_error();
    }
    return list.release();
  });
}
PyObject* set_lanes(PyObject*, PyObject* count) {
  long n = PyLong_AsLong(count);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  set_lane_limit(int(n));
  Py_RETURN_NONE;
}
PyObject* set_library_path(PyObject*, PyObject* directories) {
  const char* path = PyUnicode_AsUTF8(directories);
  if (!path) return nullptr;
  set_blas_library_path(path);
  Py_RETURN_NONE;
}
PyObject* instruction_set(PyObject*, PyObject*) { return PyUnicode_FromString(vector_isa()); }

// The bytes of an argument, until the end of the block.
struct Bytes : Py_buffer {
  Bytes() : Py_buffer{} {}
  ~Bytes() { PyBuffer_Release(this); }
};

PyObject* checksum(PyObject*, PyObject* args) {
  Bytes data;
  unsigned int start = 0;
  if (!PyArg_ParseTuple(args, "y*|I:crc32c", &data, &start)) return nullptr;
  return PyLong_FromUnsignedLong(crc32c(data.buf, size_t(data.len), start));
}

PyMethodDef functions[] = {
    {"keep_interpreter_lock", keep_interpreter_lock, METH_NOARGS,
     "Runs all kernels under the interpreter lock from now on."},
    {"unlock_from", unlock_from, METH_O, nullptr},
    {"set_class_attributes", set_class_attributes, METH_VARARGS, "Sets attributes of a class; its slots stay."},
    {"register_objects", register_objects, METH_O, "Hands over Python objects that the core uses, by name."},
    {"register_dtypes", register_dtypes, METH_O, "Hands over the tf.DType objects, by number."},
    {"convert_to_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(convert_to_tensor)), METH_FASTCALL,
     nullptr},
    {"is_tensor", is_tensor_object, METH_O, "Whether the object is a tensor or a variable."},
    {"memory_info", memory, METH_NOARGS, "Bytes in use, their peak, and bytes kept for reuse."},
    {"reset_memory_peak", reset_peak, METH_NOARGS, nullptr},
    {"trim_memory", trim, METH_NOARGS, "Gives unused memory back to the system."},
    {"set_cache_limit", set_limit, METH_O, "Most bytes kept for reuse."},
    {"thread_count", get_threads, METH_NOARGS, nullptr},
    {"set_thread_count", set_threads, METH_O, nullptr},
    {"pass_names", names_of_passes, METH_NOARGS, "The passes of the planner, in order."},
    {"set_lane_limit", set_lanes, METH_O,
     "How many branches of a function may run at the same time; 0 is as many as threads."},
    {"set_library_path", set_library_path, METH_O,
     "Where to look for the BLAS and LAPACK library, before its first use."},
    {"crc32c", checksum, METH_VARARGS,
     "crc32c(data, start=0): the CRC-32C of bytes, after others of which it is `start`."},
    {"instruction_set", instruction_set, METH_NOARGS, "The instruction set of the vector kernels in use."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "tapeflow._src._core",
                          "The core of Tapeflow.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyObject* registered(const char* name) { return PyDict_GetItemString(registered_objects, name); }

PyObject* wrap_dtype(DType d) {
  PyObject* o = dtype_objects[int(d)];
  if (!o) fail(ErrorKind::runtime, "tapeflow is not imported completely");
  return Py_NewRef(o);
}

DType dtype_from(PyObject* o) {
  for (int i = 0; i < kDTypeLimit; ++i)
    if (dtype_objects[i] == o && o) return DType(i);
  PyObject* as_dtype = registered("as_dtype");
  Ref dtype = checked(PyObject_CallOneArg(as_dtype, o));
  for (int i = 0; i < kDTypeLimit; ++i)
    if (dtype_objects[i] == dtype.get()) return DType(i);
  Ref text = checked(PyObject_Repr(o));
  fail(ErrorKind::type, "the dtype ", PyUnicode_AsUTF8(text.get()), " is not supported");
}

PyTypeObject* add_type(PyObject* module, const char* name, PyType_Spec& spec) {
  Ref type = checked(PyType_FromSpec(&spec));
  if (PyModule_AddObjectRef(module, name, type.get()) < 0) throw_python_error();
  return reinterpret_cast<PyTypeObject*>(type.get());
}

}  // namespace tapeflow::python

PyMODINIT_FUNC PyInit__core() {
  using namespace tapeflow::python;
  Ref module(PyModule_Create(&definition));
  if (!module) return nullptr;
#ifdef Py_GIL_DISABLED  // a free-threaded Python then turns its interpreter lock on
  if (PyUnstable_Module_SetGIL(module.get(), Py_MOD_GIL_USED) < 0) return nullptr;
#endif
  return guarded([&]() -> PyObject* {
    registered_objects = checked(PyDict_New()).release();
    import_numpy();
    add_shape_type(module.get());
    add_tensor_type(module.get());
    add_variable_type(module.get());
    add_tape_type(module.get());
    add_forward_accumulator_type(module.get());
    tapeflow::interpreter_lock = {release_interpreter, acquire_interpreter};
    add_python_rules(module.get());
    add_recording(module.get());
    add_op_functions(module.get());
    add_location(module.get());
    add_numerics_type(module.get());
    add_graph_type(module.get());
    add_python_calls(module.get());
    add_stage(module.get());
    add_shared_window_type(module.get());
    add_batching(module.get());
    add_graph_data(module.get());
    add_examples(module.get());
    add_composition_type(module.get());
    add_function_type(module.get());
    return module.release();
  });
}
