// Finding the tensor or variable behind a Python object.
#include "python/watchable.h"
#include "ops/ops.h"

namespace tapeflow::python {
namespace {

[[noreturn]] void fail_not_tensor(PyObject* o, const char* who) {
  Ref text = checked(PyObject_Repr(o));
  fail(ErrorKind::value, who, ": Passed in object ", PyUnicode_AsUTF8(text.get()), " of type '", Py_TYPE(o)->tp_name,
       "', not tf.Tensor or tf.Variable or ExtensionType.");
}

}  // namespace

Ref resolve(PyObject* o) {
  if (is_tensor(o) || is_variable(o)) return Ref::share(o);
  for (const char* name : {"handle", "_primary"}) {  // of wrappers; of variables with several copies
    Ref inner(PyObject_GetAttrString(o, name));
    if (inner && is_variable(inner.get())) return inner;
    PyErr_Clear();
  }
  return Ref();
}

Ref resolve_or_fail(PyObject* o, const char* who) {
  Ref found = resolve(o);
  if (found) return found;
  if (is_indexed_slices(o)) return Ref(wrap(to_tensor(o, DType::invalid, DType::invalid, who)));
  fail_not_tensor(o, who);
}

Ref parts_of(PyObject* o) {
  PyObject* function = registered("composite_parts");
  if (!function) return Ref();
  Ref parts = checked(PyObject_CallOneArg(function, o));
  return parts.get() == Py_None ? Ref() : std::move(parts);
}

DType dtype_of_resolved(PyObject* o) { return is_tensor(o) ? tensor_of(o).dtype() : variable_of(o).dtype; }
Spec spec_of_resolved(PyObject* o) {
  if (is_tensor(o)) return {tensor_of(o).dtype(), tensor_of(o).shape()};
  VariableBody& v = variable_of(o);
  return {v.dtype, v.value ? v.value.shape() : v.shape};
}
Tensor filled_as(PyObject* o, const Spec& spec, double value) {
  return spec.shape.fully_known() ? filled(spec.dtype, spec.shape, value) : filled_like(operand(o), value);
}

bool same_value(PyObject* a, PyObject* b) {
  if (is_tensor(a) != is_tensor(b)) return false;
  return is_tensor(a) ? tensor_of(a).body() == tensor_of(b).body() : &variable_of(a) == &variable_of(b);
}

void warn_about_dtype(const char* name, DType d) {
  PyObject* function = registered(name);
  if (!function) return;
  Ref dtype = checked(wrap_dtype(d));
  checked(PyObject_CallOneArg(function, dtype.get()));
}

}  // namespace tapeflow::python
