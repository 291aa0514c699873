// Where in the user's program an operation is being called: the innermost frame that is not Tapeflow's own or NumPy's.
#define Py_BUILD_CORE 1
#include <Python.h>
#undef Py_BUILD_CORE
#if PY_VERSION_HEX < 0x030d0000
#define TAPEFLOW_FAST_FRAMES 1
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#else
#define TAPEFLOW_FAST_FRAMES 0
#endif

#include "autodiff/tape.h"
#include "python/common.h"

namespace tapeflow::python {
namespace {

// Whether a code object belongs to this package or to NumPy, remembered for the last few hundred code objects.
struct Known {
  PyObject* code = nullptr;  // kept alive, so that its address stays its own
  bool ours = false;
};
constexpr size_t kKnown = 512;
Known known[kKnown];
PyObject* skipped_folders = nullptr;  // a tuple

bool is_ours(PyCodeObject* code) {
  Known& k = known[(reinterpret_cast<uintptr_t>(code) >> 5) % kKnown];
  if (k.code == reinterpret_cast<PyObject*>(code)) return k.ours;
  bool ours = false;
  for (Py_ssize_t i = 0; skipped_folders && i < PyTuple_GET_SIZE(skipped_folders) && !ours; ++i) {
    Py_ssize_t match =
        PyUnicode_Tailmatch(code->co_filename, PyTuple_GET_ITEM(skipped_folders, i), 0, PY_SSIZE_T_MAX, -1);
    if (match < 0) PyErr_Clear();
    ours = match == 1;
  }
  Py_INCREF(code);
  Py_XDECREF(k.code);
  k = {reinterpret_cast<PyObject*>(code), ours};
  return ours;
}

#if TAPEFLOW_FAST_FRAMES
Location current_location() {
  PyThreadState* state = PyThreadState_Get();
  for (_PyInterpreterFrame* f = state->cframe->current_frame; f; f = f->previous) {
    PyCodeObject* code = f->f_code;
    if (!code || !PyCode_Check(code)) continue;
    if (is_ours(code) && f->previous) continue;
    Py_INCREF(code);
    return {code, int(_PyInterpreterFrame_LASTI(f)) * int(sizeof(_Py_CODEUNIT))};
  }
  return {};
}
#else
Location current_location() {
  PyFrameObject* f = PyThreadState_GetFrame(PyThreadState_Get());
  while (f) {
    PyCodeObject* code = PyFrame_GetCode(f);
    PyFrameObject* back = is_ours(code) ? PyFrame_GetBack(f) : nullptr;
    if (!back) {
      Location here{code, PyFrame_GetLasti(f)};
      Py_DECREF(f);
      return here;
    }
    Py_DECREF(code);
    Py_DECREF(f);
    f = back;
  }
  return {};
}
#endif

void release_code(void* code) { Py_DECREF(static_cast<PyObject*>(code)); }
void retain_code(void* code) { Py_INCREF(static_cast<PyObject*>(code)); }

PyObject* set_record_locations(PyObject*, PyObject* on) {
  int yes = PyObject_IsTrue(on);
  if (yes < 0) return nullptr;
  location_source.current = yes ? current_location : nullptr;
  Py_RETURN_NONE;
}

PyObject* set_skipped_folders(PyObject*, PyObject* folders) {
  Py_INCREF(folders);
  Py_XSETREF(skipped_folders, folders);
  for (Known& k : known) {
    Py_CLEAR(k.code);
    k.ours = false;
  }
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"set_record_locations", set_record_locations, METH_O, "Whether records remember the line they came from."},
    {"set_skipped_folders", set_skipped_folders, METH_VARARGS,
     "The folders whose frames are skipped when looking for a line."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_location(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
  location_source = {current_location, release_code, retain_code};
}

}  // namespace tapeflow::python
