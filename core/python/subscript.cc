// Indexing: x[...] with integers, slices, ellipsis, newaxis and integer tensors, turned into one strided slice.
#include "autodiff/tape.h"
#include "graph/shape_ops.h"
#include "ops/ops.h"
#include "ops/slicing.h"
#include "python/common.h"

namespace tapeflow::python {
namespace {

[[noreturn]] void fail_key(PyObject* key) {
  Ref text = checked(PyObject_Repr(key));
  fail(ErrorKind::type,
       "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are "
       "valid indices, got ",
       PyUnicode_AsUTF8(text.get()));
}

bool is_bool_array(PyObject* key) {
  if (PyLong_Check(key) || PySlice_Check(key) || PyTuple_Check(key) || key == Py_None || key == Py_Ellipsis) return false;
  return known_dtype(key) == DType::boolean;
}

// While tracing, numbers that only running the graph gives are put aside.
struct OpenParts {
  std::vector<OpenPart> found;
  size_t part = 0;
  OpenPart::Which which = OpenPart::Which::begin;
};

int64_t index_value(PyObject* key, OpenParts* open) {
  if (PyLong_CheckExact(key)) {
    long long v = PyLong_AsLongLong(key);
    if (v == -1 && PyErr_Occurred()) throw_python_error();
    return v;
  }
  if (PyBool_Check(key) || PyFloat_Check(key) || PyUnicode_Check(key) || PyList_Check(key) || PyDict_Check(key)) fail_key(key);
  if (is_tensor(key) || is_variable(key) || known_dtype(key) != DType::invalid) {
    Tensor t = to_tensor(key, DType::invalid, DType::int32, "__getitem__");
    if (t.rank() != 0 || !integers.has(t.dtype())) fail_key(key);
    note_on_tapes_if_any(Event::argument, t);
    if (open && t.symbolic()) {
      open->found.push_back({t, open->part, open->which});
      return 0;
    }
    return read_ints(t)[0];
  }
  if (!PyIndex_Check(key)) fail_key(key);
  Py_ssize_t v = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (v == -1 && PyErr_Occurred()) throw_python_error();
  return v;
}

}  // namespace

namespace {

SliceKey parse_parts(PyObject* key, OpenParts* open) {
  SliceKey result;
  auto number = [&](PyObject* o, OpenPart::Which which) {
    if (open) open->part = result.size(), open->which = which;
    return index_value(o, open);
  };
  PyObject* single[] = {key};
  PyObject** items = single;
  Py_ssize_t n = 1;
  if (PyTuple_Check(key)) {
    n = PyTuple_GET_SIZE(key);
    items = n ? &PyTuple_GET_ITEM(key, 0) : single;
  } else if (PyList_CheckExact(key)) {
    n = PyList_GET_SIZE(key);
    items = n ? &PyList_GET_ITEM(key, 0) : single;
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = items[i];
    if (item == Py_Ellipsis) {
      result.push_back({SlicePart::Kind::ellipsis});
    } else if (item == Py_None) {
      result.push_back({SlicePart::Kind::new_axis});
    } else if (PySlice_Check(item)) {
      auto* s = reinterpret_cast<PySliceObject*>(item);
      SlicePart part{SlicePart::Kind::range};
      if (s->start != Py_None) part.begin = number(s->start, OpenPart::Which::begin), part.has_begin = true;
      if (s->stop != Py_None) part.end = number(s->stop, OpenPart::Which::end), part.has_end = true;
      if (s->step != Py_None) part.step = number(s->step, OpenPart::Which::step);
      result.push_back(part);
    } else {
      SlicePart part{SlicePart::Kind::index};
      part.begin = number(item, OpenPart::Which::begin);
      result.push_back(part);
    }
  }
  return result;
}

}  // namespace

SliceKey parse_key(PyObject* key) { return parse_parts(key, nullptr); }

PyObject* subscript(PyObject* self, PyObject* key) {
  if (is_bool_array(key)) {
    PyObject* mask = registered("boolean_mask");
    if (mask) return PyObject_CallFunctionObjArgs(mask, self, key, nullptr);
  }
  return guarded([&] {
    Tensor x = operand(self);
    if (!thread_state().stage) return wrap(slice_by_key(x, parse_key(key)));
    OpenParts open;
    SliceKey parts = parse_parts(key, &open);
    bool known = x.size() >= 0 && open.found.empty();
    return wrap(known ? slice_by_key(x, parts) : get_item(x, parts, open.found));
  });
}

}  // namespace tapeflow::python
