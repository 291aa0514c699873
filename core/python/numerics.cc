// NumericsCheck(found): receives every operation on this thread and reports to `found` each that made infinities or
// NaNs.
#include "autodiff/numerics.h"

#include "python/common.h"

namespace tapeflow::python {
namespace {

struct CheckObject {
  PyObject_HEAD NumericsCheck* check;
  PyObject* found;
  bool with_tensors;  // `found` also gets the result, the operands, and whether the operation copies elements
};
NumericsCheck& check_of(PyObject* self) { return *reinterpret_cast<CheckObject*>(self)->check; }

// (dtype, shape, (negative infinities, positive infinities, NaNs))
Ref describe(const Spec& spec, const NonFinite& n) {
  Ref shape = checked(wrap_shape(spec.shape)), dtype = checked(wrap_dtype(spec.dtype));
  return checked(Py_BuildValue("(OO(LLL))", dtype.get(), shape.get(), (long long)n.negative_infinities,
                               (long long)n.positive_infinities, (long long)n.nans));
}

void report(PyObject* found, const Finding& f, bool with_tensors) {
  Ref inputs = checked(PyList_New(0));
  for (const Finding::Input& in : f.inputs)
    if (PyList_Append(inputs.get(), describe(in.spec, in.count).get()) < 0) throw_python_error();
  PyObject* code = f.location.code ? static_cast<PyObject*>(f.location.code) : Py_None;
  Ref output = describe(f.spec, f.count);
  Ref facts = checked(Py_BuildValue("(ssziiiOOOi)", f.op->name, f.op->public_name(),
                                    f.gradient_of ? f.gradient_of->name : nullptr, int(f.in_graph), int(f.output),
                                    int(f.outputs), output.get(), inputs.get(), code, f.location.instruction));
  if (with_tensors) {
    Ref value = checked(wrap(f.value)), operands = checked(wrap_list(f.operands));
    PyObject* copies = f.op->copies_elements ? Py_True : Py_False;
    Ref more = checked(PyTuple_Pack(3, value.get(), operands.get(), copies));
    facts = checked(PySequence_Concat(facts.get(), more.get()));
  }
  checked(PyObject_Call(found, facts.get(), nullptr));
}

PyObject* check_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* found;
  int with_tensors = 0;
  if (!PyArg_ParseTuple(args, "O|p:NumericsCheck", &found, &with_tensors)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto* o = reinterpret_cast<CheckObject*>(self);
  o->found = Py_NewRef(found);
  o->with_tensors = with_tensors;
  o->check = new NumericsCheck([o](const Finding& f) { report(o->found, f, o->with_tensors); }, o->with_tensors);
  return self;
}
void check_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* o = reinterpret_cast<CheckObject*>(self);
  if (o->check && o->check->stop()) delete o->check;
  Py_XDECREF(o->found);
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* check_start(PyObject* self, PyObject*) {
  check_of(self).start();
  Py_RETURN_NONE;
}
PyObject* check_stop(PyObject* self, PyObject*) {
  check_of(self).stop();
  Py_RETURN_NONE;
}

PyObject* check_measure(PyObject* self, PyObject* on) {
  int enabled = PyObject_IsTrue(on);
  if (enabled < 0) return nullptr;
  check_of(self).measure(enabled);
  Py_RETURN_NONE;
}
// times(): rows of (operation, code, instruction, backward, nanoseconds, calls, bytes of results, largest element).
PyObject* check_times(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref rows = checked(PyList_New(0));
    if (const OpTimes* times = check_of(self).times())
      for (const auto& [key, sum] : times->sums()) {
        PyObject* code = key.code ? static_cast<PyObject*>(key.code) : Py_None;
        Ref row =
            checked(Py_BuildValue("(sOiOLLLd)", key.op->public_name() ? key.op->public_name() : key.op->name, code,
                                  key.instruction, key.backward ? Py_True : Py_False, (long long)sum.nanoseconds,
                                  (long long)sum.calls, (long long)sum.bytes, sum.largest));
        if (PyList_Append(rows.get(), row.get()) < 0) throw_python_error();
      }
    return rows.release();
  });
}

PyMethodDef methods[] = {
    {"start", check_start, METH_NOARGS, "Attaches to this thread, in place of another check."},
    {"stop", check_stop, METH_NOARGS, "Detaches from the thread."},
    {"measure", check_measure, METH_O, "measure(on): adds up the times of operations from now on, or no more."},
    {"times", check_times, METH_NOARGS, "The times by operation and line, as measured so far."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(check_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(check_dealloc)},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"tapeflow._src._core.NumericsCheck", sizeof(CheckObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void add_numerics_type(PyObject* module) {
  Ref type = checked(PyType_FromSpec(&spec));
  if (PyModule_AddObjectRef(module, "NumericsCheck", type.get()) < 0) throw_python_error();
}

}  // namespace tapeflow::python
