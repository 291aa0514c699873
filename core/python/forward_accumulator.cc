// ForwardAccumulator as Python sees it.
#include "autodiff/forward.h"
#include "python/watchable.h"

namespace tapeflow::python {
namespace {

struct AccumulatorObject {
  PyObject_HEAD ForwardAccumulator* accumulator;
};
ForwardAccumulator& accumulator_of(PyObject* self) { return *reinterpret_cast<AccumulatorObject*>(self)->accumulator; }

PyObject* accumulator_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) reinterpret_cast<AccumulatorObject*>(self)->accumulator = new_in_block<ForwardAccumulator>();
  return self;
}
void accumulator_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete_in_block(reinterpret_cast<AccumulatorObject*>(self)->accumulator);
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* accumulator_enter(PyObject* self, PyObject*) {
  return guarded([&] {
    accumulator_of(self).start();
    return Py_NewRef(self);
  });
}
PyObject* accumulator_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  accumulator_of(self).stop();
  Py_RETURN_NONE;
}
PyObject* accumulator_watch(PyObject* self, PyObject* args) {
  PyObject *primal, *tangent;
  if (!PyArg_ParseTuple(args, "OO:_watch", &primal, &tangent)) return nullptr;
  return guarded([&]() -> PyObject* {
    Ref x = resolve_or_fail(primal, "ForwardAccumulator");
    Spec spec = spec_of_resolved(x.get());
    Tensor t = to_tensor(tangent, spec.dtype, DType::invalid, "ForwardAccumulator");
    int64_t directions = accumulator_of(self).directions();
    Shape wanted = spec.shape;
    if (directions >= 0) wanted.insert(0, directions);
    if (!(t.shape() == wanted))
      fail(ErrorKind::value, "ForwardAccumulator: a tangent must have the shape of its primal",
           directions >= 0 ? ", with the directions as leading dimension" : "", "; got ", t.shape(), " for ",
           spec.shape, ". Shapes ", t.shape(), " and ", wanted, " are incompatible");
    if (!differentiable.has(spec.dtype)) warn_about_dtype("warn_watched_dtype", spec.dtype);
    if (is_variable(x.get()))
      accumulator_of(self).watch(variable_of(x.get()), t);
    else
      accumulator_of(self).watch(tensor_of(x.get()), t);
    Py_RETURN_NONE;
  });
}
PyObject* accumulator_jvp(PyObject* self, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Ref x = resolve_or_fail(o, "ForwardAccumulator.jvp");
    Tensor t = is_variable(x.get()) ? accumulator_of(self).tangent(variable_of(x.get()))
                                    : accumulator_of(self).tangent(tensor_of(x.get()));
    if (!t) Py_RETURN_NONE;
    return wrap(t);
  });
}
PyObject* accumulator_track_directions(PyObject* self, PyObject* count) {
  return guarded([&]() -> PyObject* {
    accumulator_of(self).track_directions(to_integer(count, "ForwardAccumulator", "tangents"));
    Py_RETURN_NONE;
  });
}
// The number of directions as the dimensions that tangents have in front: none, or one.
PyObject* accumulator_directions(PyObject* self, void*) {
  int64_t count = accumulator_of(self).directions();
  return count < 0 ? PyTuple_New(0) : Py_BuildValue("(L)", static_cast<long long>(count));
}
PyObject* accumulator_recording(PyObject* self, void*) { return PyBool_FromLong(accumulator_of(self).recording()); }

PyMethodDef accumulator_methods[] = {
    {"__enter__", accumulator_enter, METH_NOARGS, nullptr},
    {"__exit__", method(accumulator_exit), METH_FASTCALL, nullptr},
    {"_watch", accumulator_watch, METH_VARARGS, nullptr},
    {"_tangent", accumulator_jvp, METH_O, nullptr},
    {"_track_directions", accumulator_track_directions, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef accumulator_properties[] = {
    {"_recording", accumulator_recording, nullptr, nullptr, nullptr},
    {"_directions", accumulator_directions, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot accumulator_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(accumulator_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(accumulator_dealloc)},
    {Py_tp_methods, accumulator_methods},
    {Py_tp_getset, accumulator_properties},
    {0, nullptr},
};
PyType_Spec accumulator_spec = {"tapeflow._src._core.ForwardAccumulator", sizeof(AccumulatorObject), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, accumulator_slots};

}  // namespace

void add_forward_accumulator_type(PyObject* module) { add_type(module, "ForwardAccumulator", accumulator_spec); }

}  // namespace tapeflow::python
