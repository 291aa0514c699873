// What the files of the Python layer share: wrapping tensors, converting arguments, turning errors into exceptions.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <utility>

#include "autodiff/cotangent.h"
#include "base/thread_locals.h"
#include "op/op.h"

namespace tapeflow::python {

// Owns one reference to a Python object.
class Ref {
 public:
  Ref() : object_(nullptr) {}
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  static Ref share(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Ref(borrowed);
  }
  explicit operator bool() const { return object_ != nullptr; }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_;
};

struct TensorObject {
  PyObject_HEAD TensorBody* body;
  PyObject* dict;
  PyObject* weak_references;
  uint32_t trace;  // in which the object was made; see current_trace()
  uint8_t device;  // where it was made; see base/thread_locals.h
};
struct VariableObject {
  PyObject_HEAD VariableBody* body;
  PyObject* dict;
  PyObject* weak_references;
  int64_t number;    // in the order in which variables are made
  PyObject* copies;  // the variables of the other replicas of this process, in a tuple; null if there are none
  uint8_t device;    // where it was made; see base/thread_locals.h
};

extern PyTypeObject* tensor_type;
extern PyTypeObject* variable_type;

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type; }  // the type is final

// Only the expression of the caller holds the object. From 3.14 on the interpreter may borrow references, so that a
// count of one alone proves nothing.
inline bool is_temporary(PyObject* o) {
#if PY_VERSION_HEX < 0x030e0000
  return Py_REFCNT(o) == 1;
#else
  return PyUnstable_Object_IsUniqueReferencedTemporary(o);
#endif
}
extern PyTypeObject* variable_class;  // tf.Variable, the subclass that programs use
// An object of tf.Variable or of a subclass.
inline bool is_variable_object(PyObject* o) {
  return Py_TYPE(o) == variable_class || PyType_IsSubtype(Py_TYPE(o), variable_type);
}
// One with a value. Objects of a subclass that never called tf.Variable.__init__ stand for something else, and have
// their own way to become tensors.
inline bool is_variable(PyObject* o) {
  return Py_TYPE(o) == variable_class || (PyType_IsSubtype(Py_TYPE(o), variable_type) &&
                                          reinterpret_cast<VariableObject*>(o)->body->dtype != DType::invalid);
}
inline Tensor tensor_of(PyObject* o) { return Tensor::borrow(reinterpret_cast<TensorObject*>(o)->body); }
// The variable; of a mirrored one, the copy of the replica that asks.
inline VariableBody& variable_of(PyObject* o) {
  auto* v = reinterpret_cast<VariableObject*>(o);
  if (v->copies && thread_locals.place.replica && thread_locals.place.replica <= PyTuple_GET_SIZE(v->copies))
      [[unlikely]]
    v = reinterpret_cast<VariableObject*>(PyTuple_GET_ITEM(v->copies, thread_locals.place.replica - 1));
  return *v->body;
}

PyObject* wrap(Tensor);
PyObject* wrap_list(std::span<const Tensor>);
PyObject* wrap_shape(const Shape&);
Shape shape_from(PyObject* tensor_shape);                  // of a tf.TensorShape
PyObject* wrap_dtype(DType);                               // new reference to the tf.DType
PyObject* wrap_cotangent(const Cotangent&, const Shape&);  // a tensor, an IndexedSlices, or None
bool is_indexed_slices(PyObject*);

// Anything that TensorFlow accepts as a dtype.
DType dtype_from(PyObject*);

// Converts anything that TensorFlow accepts as a tensor. `wanted` is the dtype it must have; `preferred` the one that
// numbers and lists take if they can (DType::invalid: none). `who` names the function for messages.
Tensor to_tensor(PyObject*, DType wanted, DType preferred, const char* who);
bool is_plain_array(PyObject*);   // a numpy.ndarray, not of a class derived from it
Shape shape_of_array(PyObject*);  // unknown if there are too many dimensions for a tensor
// Converts what stands beside a tensor of dtype `decided`: Python numbers and lists that cannot take it are a
// TypeError.
Tensor to_tensor_beside(PyObject*, DType decided, const char* who);
// A Python value that cannot be a tensor of this dtype.
[[noreturn]] void fail_conversion(PyObject*, DType wanted);
[[noreturn]] void fail_unsupported(PyObject*);  // it is no tensor and cannot become one
// A Python number, text or list, which has no dtype of its own.
bool is_plain_value(PyObject*);
// After a call of `function` that failed: asks an argument whose class runs operations on itself (tf.RaggedTensor) to
// run it. Null, with the first error, if there is none.
std::pair<Ref, Ref> packed_arguments(PyObject* const* args, Py_ssize_t n, PyObject* keywords);
PyObject* run_elsewhere(PyObject* function, PyObject* const* args, Py_ssize_t n, PyObject* keywords);
// The dtype of a tensor, variable, NumPy array or object that converts itself; invalid for Python numbers and lists.
DType known_dtype(PyObject*);
Ints to_ints(PyObject*, const char* who, const char* argument);
// `t`, which a list became; as integers where tensors in the list alone made it floating: TensorFlow casts these in
// shapes.
Tensor whole_numbers(PyObject* list, Tensor t);
int64_t to_integer(PyObject*, const char* who, const char* argument);

PyObject* to_numpy(const Tensor&, bool writable);
PyObject* to_numpy_scalar(const Tensor&);
void import_numpy();

// Nested structures (lists, tuples, dicts by sorted key, namedtuples). None counts as a leaf.
void flatten(PyObject* structure, SmallVector<PyObject*, 8>& leaves);  // borrowed; alive while `structure` is
PyObject* pack_like(PyObject* structure, std::span<Ref> leaves);

// Objects that the Python side hands over at import, by name: "IndexedSlices", "TensorShape", "warn_integer_target",
// ...
PyObject* registered(const char* name);
// The `__get__` of functions of ours: as an attribute of a class, one stays as it is. It makes them routines for
// `help`.
inline PyObject* function_get(PyObject* self, PyObject*, PyObject*) { return Py_NewRef(self); }

[[noreturn]] void throw_python_error();  // a Python exception is set
void set_python_error(const Error&);
void set_memory_error();
void translate_memory_error();  // a MemoryError that is set, NumPy's, becomes TensorFlow's

// Runs body, turning C++ exceptions into Python ones; returns `failure` then.
template <class Body, class Result = decltype(std::declval<Body>()())>
Result guarded(Body&& body, Result failure = {}) {
  try {
    return body();
  } catch (const Error& e) {
    set_python_error(e);
  } catch (const std::bad_alloc&) {
    set_memory_error();
  } catch (const std::length_error&) {  // of a vector: no memory holds it
    set_memory_error();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return failure;
}

inline Ref checked(PyObject* owned) {
  if (!owned) throw_python_error();
  return Ref(owned);
}

// A function of another signature as the C API wants it.
template <class F> PyCFunction method(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}
PyTypeObject* add_type(PyObject* module, const char* name, PyType_Spec&);  // borrowed; the module keeps it

// Each file adds its types and functions to the module.
void add_tensor_type(PyObject* module);
bool any_tensor_made();  // since the module was loaded, or since the next function was called
void forget_tensors_made();
void add_variable_type(PyObject* module);
void add_tape_type(PyObject* module);
void add_forward_accumulator_type(PyObject* module);
void add_python_rules(PyObject* module);
void add_recording(PyObject* module);
void add_op_functions(PyObject* module);
void add_shape_type(PyObject* module);
void add_location(PyObject* module);
void add_numerics_type(PyObject* module);
void add_graph_type(PyObject* module);
void add_python_calls(PyObject* module);
void add_stage(PyObject* module);
void add_composition_type(PyObject* module);
void add_function_type(PyObject* module);

// Operators: the table of number slots, shared by tensors and variables. See operators.cc.
extern PyType_Slot operator_slots[];
extern const int operator_slot_count;
PyObject* subscript(PyObject* self, PyObject* key);
PyObject* rich_compare(PyObject* a, PyObject* b, int operation);
Tensor operand(PyObject*);  // the tensor behind a tensor or a variable

}  // namespace tapeflow::python
