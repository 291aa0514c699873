// Indexing: x[...] with integers, slices, ellipsis, newaxis and integer tensors, turned into one strided slice.
#include "autodiff/tape.h"
#include "ops/arrays/slicing.h"
#include "ops/ops.h"
#include "python/common.h"
#include "python/graph/graph.h"

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
  if (PyLong_Check(key) || PySlice_Check(key) || PyTuple_Check(key) || key == Py_None || key == Py_Ellipsis)
    return false;
  return known_dtype(key) == DType::boolean;
}

// A number of a key that only running the graph gives, and its place among the numbers of the encoded key.
struct OpenNumber {
  size_t place;
  Tensor value;
};
using OpenNumbers = SmallVector<OpenNumber, 4>;

// The number that stands in a key. A symbolic one is set apart, for the `place` in the encoded key.
int64_t index_value(PyObject* key, OpenNumbers* open = nullptr, size_t place = 0) {
  if (PyLong_CheckExact(key)) {
    long long v = PyLong_AsLongLong(key);
    if (v == -1 && PyErr_Occurred()) throw_python_error();
    return v;
  }
  if (PyBool_Check(key) || PyFloat_Check(key) || PyUnicode_Check(key) || PyList_Check(key) || PyDict_Check(key))
    fail_key(key);
  if (is_tensor(key) || is_variable(key) || known_dtype(key) != DType::invalid) {
    Tensor t = to_tensor(key, DType::invalid, DType::int32, "__getitem__");
    if (t.rank() != 0 || !integers.has(t.dtype())) fail_key(key);
    if (t.symbolic() && open) {
      open->push_back({place, t});
      return 0;
    }
    log_on_tapes_if_any(Event::argument, t);
    return read_ints(t)[0];
  }
  if (!PyIndex_Check(key)) fail_key(key);
  Py_ssize_t v = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (v == -1 && PyErr_Occurred()) throw_python_error();
  return v;
}

SliceKey parse_key_with(PyObject* key, OpenNumbers* open) {
  SliceKey result;
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
    size_t place = size_t(i) * kNumbersPerPart;
    if (item == Py_Ellipsis) {
      result.push_back({SlicePart::Kind::ellipsis});
    } else if (item == Py_None) {
      result.push_back({SlicePart::Kind::new_axis});
    } else if (PySlice_Check(item)) {
      auto* s = reinterpret_cast<PySliceObject*>(item);
      SlicePart part{SlicePart::Kind::range};
      if (s->start != Py_None) part.begin = index_value(s->start, open, place + 1), part.has_begin = true;
      if (s->stop != Py_None) part.end = index_value(s->stop, open, place + 2), part.has_end = true;
      if (s->step != Py_None) part.step = index_value(s->step, open, place + 3);
      result.push_back(part);
    } else {
      SlicePart part{SlicePart::Kind::index};
      part.begin = index_value(item, open, place + 1);
      result.push_back(part);
    }
  }
  return result;
}

// The key as one vector of numbers, made when the graph runs.
Params encode_open_key(const SliceKey& key, const OpenNumbers& open) {
  Params known = encode_key(key);
  SmallVector<Tensor, 8> numbers;
  for (int64_t n : known[get_item_params.key]) numbers.push_back(Tensor::scalar(n));
  for (const OpenNumber& o : open) numbers[o.place] = cast(o.value, DType::int64);
  return {Param(stack(numbers, 0), int(Argument::Kind::ints))};
}

}  // namespace

SliceKey parse_key(PyObject* key) { return parse_key_with(key, nullptr); }

PyObject* subscript(PyObject* self, PyObject* key) {
  if (is_bool_array(key)) {
    PyObject* mask = registered("boolean_mask");
    if (mask) return PyObject_CallFunctionObjArgs(mask, self, key, nullptr);
  }
  return guarded([&] {
    OpenNumbers open;
    bool tracing = thread_state().stage != nullptr;
    SliceKey parsed = parse_key_with(key, tracing ? &open : nullptr);
    bool named = tracing && static_cast<Graph*>(thread_state().stage)->graph_mode();  // it is one node there
    if (open.empty() && named) return wrap(get_item(operand(self), encode_key(parsed)));
    if (open.empty()) return wrap(slice_by_key(operand(self), parsed));
    return wrap(get_item(operand(self), encode_open_key(parsed, open)));
  });
}

}  // namespace tapeflow::python
