// Pausing the recorders of a thread, and asking what they record.
#include "autodiff/numerics.h"
#include "autodiff/tape.h"
#include "python/common.h"

namespace tapeflow::python {
namespace {

// A context in which no tape on this thread records (forward mode goes on), or nothing at all: StopRecording(True).
struct StopObject {
  PyObject_HEAD PauseRecording* pause;
  bool everything;
  bool numerics_too;  // of everything, the search for NaN is stopped, too
};
PyObject* stop_new(PyTypeObject* type, PyObject* args, PyObject*) {
  int everything = 0, numerics_too = 1;
  if (!PyArg_ParseTuple(args, "|pp:StopRecording", &everything, &numerics_too)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (self) {
    reinterpret_cast<StopObject*>(self)->everything = everything;
    reinterpret_cast<StopObject*>(self)->numerics_too = everything && numerics_too;
  }
  return self;
}
PyObject* stop_enter(PyObject* self, PyObject*) {
  auto* o = reinterpret_cast<StopObject*>(self);
  if (!o->pause) {
    void* block = take_block(sizeof(PauseRecording));
    o->pause = o->everything ? new (block) PauseRecording : new (block) PauseRecording(PauseRecording::tapes());
    if (!o->numerics_too) NumericsCheck::attach_again();
  }
  return Py_NewRef(self);
}
PyObject* stop_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  if (PauseRecording* pause = std::exchange(reinterpret_cast<StopObject*>(self)->pause, nullptr))
    delete_in_block(pause);
  Py_RETURN_NONE;
}
void stop_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (PauseRecording* pause = reinterpret_cast<StopObject*>(self)->pause) delete_in_block(pause);
  type->tp_free(self);
  Py_DECREF(type);
}
PyMethodDef stop_methods[] = {
    {"__enter__", stop_enter, METH_NOARGS, nullptr},
    {"__exit__", method(stop_exit), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot stop_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(stop_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(stop_dealloc)},
    {Py_tp_methods, stop_methods},
    {0, nullptr},
};
PyType_Spec stop_spec = {"tapeflow._src._core.StopRecording", sizeof(StopObject), 0, Py_TPFLAGS_DEFAULT, stop_slots};

PyObject* tells_recording(PyObject*, PyObject*) { return PyBool_FromLong(is_recording()); }

// is_tracked(tensor or variable): whether an open recorder would see what is done to it.
PyObject* recorders_track(PyObject*, PyObject* object) {
  return guarded([&] {
    Tensor t = operand(object);
    bool tracked = false;
    for (const Recorder* r : thread_state().recorders) tracked |= r->watches(t);
    return PyBool_FromLong(tracked);
  });
}

PyMethodDef functions[] = {
    {"is_tracked", recorders_track, METH_O, nullptr},
    {"is_recording", tells_recording, METH_NOARGS, "Whether a tape or an accumulator is open on this thread."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_recording(PyObject* module) {
  add_type(module, "StopRecording", stop_spec);
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
