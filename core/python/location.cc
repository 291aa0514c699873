// Where in the user's program an operation is being called: the innermost frame that is not Tapeflow's own, NumPy's or
// a library's. In a program that consists of libraries alone, the innermost frame of one.
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

// Whether a code object belongs to this package or to NumPy, to a library, or to the program; cached for the last
// few hundred code objects.
enum class Owner : uint8_t { program, library, ours };
struct Known {
  PyObject* code = nullptr;  // kept alive, so that its address stays its own
  Owner owner = Owner::program;
};
constexpr size_t kKnown = 512;
Known known[kKnown];
PyObject* skipped_folders = nullptr;  // a tuple
PyObject* library_folders = nullptr;  // a tuple

bool lies_in(PyCodeObject* code, PyObject* folders) {
  for (Py_ssize_t i = 0; folders && i < PyTuple_GET_SIZE(folders); ++i) {
    Py_ssize_t match = PyUnicode_Tailmatch(code->co_filename, PyTuple_GET_ITEM(folders, i), 0, PY_SSIZE_T_MAX, -1);
    if (match < 0) PyErr_Clear();
    if (match == 1) return true;
  }
  return false;
}

Owner owner_of(PyCodeObject* code) {
  Known& k = known[(reinterpret_cast<uintptr_t>(code) >> 5) % kKnown];
  if (k.code == reinterpret_cast<PyObject*>(code)) return k.owner;
  Owner owner = lies_in(code, skipped_folders)   ? Owner::ours
                : lies_in(code, library_folders) ? Owner::library
                                                 : Owner::program;
  Py_INCREF(code);
  Py_XDECREF(k.code);
  k = {reinterpret_cast<PyObject*>(code), owner};
  return owner;
}

#if TAPEFLOW_FAST_FRAMES
Location current_location() {
  PyThreadState* state = PyThreadState_Get();
  _PyInterpreterFrame* found = nullptr;
  for (_PyInterpreterFrame* f = state->cframe->current_frame; f; f = f->previous) {
    if (!f->f_code || !PyCode_Check(f->f_code)) continue;
    Owner owner = owner_of(f->f_code);
    if (owner == Owner::ours && (f->previous || found)) continue;
    if (!found || owner == Owner::program) found = f;
    if (owner == Owner::program) break;
  }
  if (!found) return {};
  Py_INCREF(found->f_code);
  return {found->f_code, int(_PyInterpreterFrame_LASTI(found)) * int(sizeof(_Py_CODEUNIT))};
}
#else
Location current_location() {
  Location found;
  for (PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get()), *back; f; f = back) {
    PyCodeObject* code = PyFrame_GetCode(f);
    back = PyFrame_GetBack(f);
    Owner owner = owner_of(code);
    const bool take = (owner == Owner::program || !found.code) && (owner != Owner::ours || !back);
    if (take) {
      if (found.code) Py_DECREF(static_cast<PyObject*>(found.code));
      found = {code, PyFrame_GetLasti(f)};
    } else {
      Py_DECREF(code);
    }
    Py_DECREF(f);
    if (take && owner == Owner::program) {
      Py_XDECREF(back);
      break;
    }
  }
  return found;
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

PyObject* set_folders(PyObject*& place, PyObject* folders) {
  Py_INCREF(folders);
  Py_XSETREF(place, folders);
  for (Known& k : known) {
    Py_CLEAR(k.code);
    k.owner = Owner::program;
  }
  Py_RETURN_NONE;
}
PyObject* set_skipped_folders(PyObject*, PyObject* folders) { return set_folders(skipped_folders, folders); }
PyObject* set_library_folders(PyObject*, PyObject* folders) { return set_folders(library_folders, folders); }

PyObject* here_for_python(PyObject*, PyObject*) {
  Location at = here();
  PyObject* code = at.code ? static_cast<PyObject*>(at.code) : Py_NewRef(Py_None);
  return Py_BuildValue("(Ni)", code, at.instruction);
}

PyMethodDef functions[] = {
    {"current_line", here_for_python, METH_NOARGS, "The code object and instruction of the program that is running."},
    {"set_record_locations", set_record_locations, METH_O, "Whether records hold the line they came from."},
    {"set_skipped_folders", set_skipped_folders, METH_VARARGS,
     "The folders whose frames are skipped when looking for a line."},
    {"set_library_folders", set_library_folders, METH_VARARGS,
     "The folders whose frames are skipped if there is one of the program outside of them."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_location(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
  location_source = {current_location, release_code, retain_code};
}

}  // namespace tapeflow::python
