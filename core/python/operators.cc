// Python's operators on tensors and variables: one table, since the set of operators is closed.
#include "graph/graph.h"
#include "ops/ops.h"
#include "python/common.h"

namespace tapeflow::python {

Tensor operand(PyObject* o) {
  if (is_tensor(o)) return tensor_of(o);
  return is_variable(o) ? read_variable(variable_of(o)) : to_tensor(o, DType::invalid, DType::invalid, "operator");
}

namespace {

bool is_operand(PyObject* o) { return is_tensor(o) || is_variable_object(o); }

// Types that know better than us what an operator means with one of our tensors: they do not convert to one.
bool foreign_type(PyObject* o) {
  if (is_operand(o) || PyFloat_Check(o) || PyLong_Check(o) || PyList_Check(o) || PyTuple_Check(o) || o == Py_None)
    return false;
  if (PyObject_HasAttrString(o, "__tf_operation__"))
    return !is_indexed_slices(o) && !PyObject_HasAttrString(o, "__tf_tensor__");
  if (known_dtype(o) != DType::invalid || PyComplex_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o)) return false;
  return !PyObject_HasAttrString(o, "__tf_tensor__") && !PyObject_HasAttrString(o, "__array__");
}

// After a conversion that failed: a class with operators of its own is asked next.
PyObject* left_to_the_other(PyObject* a, PyObject* b) {
  PyObject* other = is_operand(a) ? b : a;
  bool failed_to_convert = PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError);
  if (!failed_to_convert || is_operand(other) || is_plain_value(other)) return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (PyObject_HasAttrString(other, "__radd__") && !PyObject_HasAttrString(other, "__array_interface__")) {
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    Py_RETURN_NOTIMPLEMENTED;
  }
  PyErr_Restore(type, value, trace);
  return nullptr;
}

struct Operands {
  Tensor a, b;
};
// Python numbers, lists and arrays take the dtype of the tensor beside them. Where they cannot, + and @ leave the
// complaint to the operation, as TensorFlow does.
enum class Beside { must_agree, may_differ };
Operands convert_operands(PyObject* a, PyObject* b, const char* who, Beside beside) {
  auto convert = [&](PyObject* o, DType d) {
    return beside == Beside::must_agree ? to_tensor_beside(o, d, who) : to_tensor(o, DType::invalid, d, who);
  };
  if (is_operand(a)) {
    Tensor x = operand(a);
    return {x, is_operand(b) ? operand(b) : convert(b, x.dtype())};
  }
  Tensor y = operand(b);
  return {to_tensor_beside(a, y.dtype(), who), y};
}
// `name`: of the node, in a graph.
template <class Compute> PyObject* binary(PyObject* a, PyObject* b, const char* who, const char* name, Compute compute,
                                          Beside beside = Beside::must_agree) {
  if (foreign_type(a) || foreign_type(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* result = guarded([&] {
    Operands o = convert_operands(a, b, who, beside);
    NameNode named(name);
    return wrap(compute(o.a, o.b));
  });
  return result ? result : left_to_the_other(a, b);
}

PyObject* nb_add(PyObject* a, PyObject* b) { return binary(a, b, "add", "add", add, Beside::may_differ); }
PyObject* nb_subtract(PyObject* a, PyObject* b) { return binary(a, b, "subtract", "sub", subtract); }
PyObject* nb_floor_divide(PyObject* a, PyObject* b) { return binary(a, b, "floordiv", "floordiv", floor_div); }
PyObject* nb_remainder(PyObject* a, PyObject* b) { return binary(a, b, "floormod", "mod", floor_mod); }

// Whole numbers divide as floats: float32 for the 8 and 16 bit types, float64 for the others.
Tensor true_divide(const Tensor& x, const Tensor& y) {
  auto divide_named = [](const Tensor& numerator, const Tensor& denominator) {
    NameNode named("truediv");
    return divide(numerator, denominator);
  };
  if (!integers.has(x.dtype()) || x.dtype() != y.dtype()) return divide_named(x, y);
  DType d = size_of(x.dtype()) <= 2 ? DType::float32 : DType::float64;
  return divide_named(cast(x, d), cast(y, d));
}
PyObject* nb_true_divide(PyObject* a, PyObject* b) { return binary(a, b, "truediv", nullptr, true_divide); }

PyObject* nb_power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(a, b, "pow", "pow", power);
}
PyObject* nb_matrix_multiply(PyObject* a, PyObject* b) {
  auto multiply_matrices = [](const Tensor& x, const Tensor& y) { return matmul(x, y, false, false); };
  return binary(a, b, "matmul", "matmul", multiply_matrices, Beside::may_differ);
}

// Of booleans the logical operation, of others the one on bits.
template <auto Logical, auto Bitwise> Tensor by_dtype(const Tensor& x, const Tensor& y) {
  return x.dtype() == DType::boolean ? Logical(x, y) : Bitwise(x, y);
}
PyObject* nb_multiply(PyObject* a, PyObject* b) {
  auto multiply_or_both = [](const Tensor& x, const Tensor& y) {
    return x.dtype() == DType::boolean && y.dtype() == DType::boolean ? logical_and(x, y) : multiply(x, y);
  };
  return binary(a, b, "multiply", "mul", multiply_or_both);
}
PyObject* nb_and(PyObject* a, PyObject* b) {
  return binary(a, b, "logical_and", "and", by_dtype<logical_and, bitwise_and>);
}
PyObject* nb_or(PyObject* a, PyObject* b) { return binary(a, b, "logical_or", "or", by_dtype<logical_or, bitwise_or>); }
PyObject* nb_xor(PyObject* a, PyObject* b) {
  return binary(a, b, "logical_xor", "xor", by_dtype<not_equal, bitwise_xor>);
}

PyObject* nb_negative(PyObject* a) {
  return guarded([&] { return wrap(negative(operand(a))); });
}
PyObject* nb_positive(PyObject* a) {
  return guarded([&] { return wrap(identity(operand(a))); });
}
PyObject* nb_absolute(PyObject* a) {
  return guarded([&] {
    Tensor x = operand(a);
    return wrap(complexes.has(x.dtype()) ? complex_absolute(x) : absolute(x));
  });
}
PyObject* nb_invert(PyObject* a) {
  return guarded([&] {
    Tensor x = operand(a);
    return wrap(x.dtype() == DType::boolean ? logical_not(x) : invert(x));
  });
}

}  // namespace

PyType_Slot operator_slots[] = {
    {Py_nb_add, reinterpret_cast<void*>(nb_add)},
    {Py_nb_subtract, reinterpret_cast<void*>(nb_subtract)},
    {Py_nb_multiply, reinterpret_cast<void*>(nb_multiply)},
    {Py_nb_true_divide, reinterpret_cast<void*>(nb_true_divide)},
    {Py_nb_floor_divide, reinterpret_cast<void*>(nb_floor_divide)},
    {Py_nb_remainder, reinterpret_cast<void*>(nb_remainder)},
    {Py_nb_power, reinterpret_cast<void*>(nb_power)},
    {Py_nb_matrix_multiply, reinterpret_cast<void*>(nb_matrix_multiply)},
    {Py_nb_and, reinterpret_cast<void*>(nb_and)},
    {Py_nb_or, reinterpret_cast<void*>(nb_or)},
    {Py_nb_xor, reinterpret_cast<void*>(nb_xor)},
    {Py_nb_negative, reinterpret_cast<void*>(nb_negative)},
    {Py_nb_positive, reinterpret_cast<void*>(nb_positive)},
    {Py_nb_absolute, reinterpret_cast<void*>(nb_absolute)},
    {Py_nb_invert, reinterpret_cast<void*>(nb_invert)},
};
const int operator_slot_count = int(sizeof operator_slots / sizeof operator_slots[0]);

PyObject* rich_compare(PyObject* a, PyObject* b, int operation) {
  bool equality = operation == Py_EQ || operation == Py_NE;
  // == never raises: what cannot be compared is different.
  auto different = [&] { return PyBool_FromLong(operation == Py_NE); };
  if (equality && b == Py_None) return different();
  // In a TensorFlow 1 graph == compares identities, so that tensors can be keys and members of lists.
  auto* graph = static_cast<Graph*>(thread_state().stage);
  if (equality && graph && graph->graph_mode()) return PyBool_FromLong((a == b) == (operation == Py_EQ));
  if (foreign_type(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&]() -> PyObject* {
    Operands o;
    try {
      o = convert_operands(a, b, "equal", Beside::must_agree);
    } catch (const Error&) {
      if (!equality) throw;
      PyErr_Clear();
      return different();
    }
    if (equality) {
      Shape ignored;
      if (o.a.dtype() != o.b.dtype() && !(is_operand(a) && is_operand(b))) return different();
      if (!broadcast(o.a.shape(), o.b.shape(), &ignored)) return wrap(Tensor::scalar(operation == Py_NE));
    }
    switch (operation) {
      case Py_EQ: return wrap(equal(o.a, o.b));
      case Py_NE: return wrap(not_equal(o.a, o.b));
      case Py_LT: return wrap(less(o.a, o.b));
      case Py_LE: return wrap(less_equal(o.a, o.b));
      case Py_GT: return wrap(greater(o.a, o.b));
      default: return wrap(greater_equal(o.a, o.b));
    }
  });
}

}  // namespace tapeflow::python
