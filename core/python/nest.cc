// Flattening and packing nested structures, as tf.nest does; for the calls that are made on every training step.
#include "python/common.h"

namespace tapeflow::python {
namespace {

bool is_namedtuple(PyObject* o) {
  return PyTuple_Check(o) && !PyTuple_CheckExact(o) && PyObject_HasAttrString(o, "_fields");
}
bool is_mapping(PyObject* o) {
  if (PyDict_Check(o)) return true;
  if (is_tensor(o) || is_variable_object(o) || PyUnicode_Check(o) || PyList_Check(o) || PyTuple_Check(o)) return false;
  PyObject* mapping = registered("Mapping");
  int yes = mapping ? PyObject_IsInstance(o, mapping) : 0;
  if (yes < 0) throw_python_error();
  return yes == 1;
}

Ref sorted_keys(PyObject* mapping) {
  Ref keys = checked(PyMapping_Keys(mapping));
  if (PyList_Sort(keys.get()) < 0) throw_python_error();
  return keys;
}

}  // namespace

namespace {
// A structure may hold itself.
struct Deeper {
  Deeper() {
    if (Py_EnterRecursiveCall(" in a nested structure")) throw_python_error();
  }
  ~Deeper() { Py_LeaveRecursiveCall(); }
};
}  // namespace

void flatten(PyObject* structure, SmallVector<PyObject*, 8>& leaves) {
  if (PyList_Check(structure)) {
    const Deeper deeper;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(structure); ++i) flatten(PyList_GET_ITEM(structure, i), leaves);
  } else if (PyTuple_Check(structure)) {
    const Deeper deeper;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(structure); ++i) flatten(PyTuple_GET_ITEM(structure, i), leaves);
  } else if (is_mapping(structure)) {
    const Deeper deeper;
    Ref keys = sorted_keys(structure);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
      Ref value = checked(PyObject_GetItem(structure, PyList_GET_ITEM(keys.get(), i)));
      flatten(value.get(), leaves);  // the mapping holds it
    }
  } else {
    leaves.push_back(structure);
  }
}

namespace {

Ref pack_from(PyObject* structure, std::span<Ref> leaves, size_t& next) {
  const Deeper deeper;
  if (PyList_Check(structure)) {
    Py_ssize_t n = PyList_GET_SIZE(structure);
    Ref result = checked(PyList_New(n));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyList_SET_ITEM(result.get(), i, pack_from(PyList_GET_ITEM(structure, i), leaves, next).release());
    return result;
  }
  if (PyTuple_Check(structure)) {
    Py_ssize_t n = PyTuple_GET_SIZE(structure);
    Ref result = checked(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyTuple_SET_ITEM(result.get(), i, pack_from(PyTuple_GET_ITEM(structure, i), leaves, next).release());
    if (is_namedtuple(structure))
      return checked(PyObject_Call(reinterpret_cast<PyObject*>(Py_TYPE(structure)), result.get(), nullptr));
    return result;
  }
  if (is_mapping(structure)) {
    // Values are taken in the order of the sorted keys; the result keeps the order of the given mapping.
    Ref keys = sorted_keys(structure), values = checked(PyDict_New());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
      PyObject* key = PyList_GET_ITEM(keys.get(), i);
      Ref old = checked(PyObject_GetItem(structure, key));
      Ref value = pack_from(old.get(), leaves, next);
      if (PyDict_SetItem(values.get(), key, value.get()) < 0) throw_python_error();
    }
    Ref ordered = checked(PyDict_New()), order = checked(PyMapping_Keys(structure));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order.get()); ++i) {
      PyObject* key = PyList_GET_ITEM(order.get(), i);
      if (PyDict_SetItem(ordered.get(), key, PyDict_GetItem(values.get(), key)) < 0) throw_python_error();
    }
    if (PyDict_CheckExact(structure)) return ordered;
    return checked(
        PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(Py_TYPE(structure)), ordered.get(), nullptr));
  }
  return std::move(leaves[next++]);
}

}  // namespace

PyObject* pack_like(PyObject* structure, std::span<Ref> leaves) {
  size_t next = 0;
  return pack_from(structure, leaves, next).release();
}

}  // namespace tapeflow::python
