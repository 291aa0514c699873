// Converting Python values to tensors and tensors to NumPy arrays. The only file that uses NumPy's C interface.
#include "autodiff/tape.h"
#include "python/common.h"
#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/ops.h"
#include "ops/partial_shape.h"
#include "python/scalar.h"

namespace tapeflow::python {

namespace {

// Types that NumPy has from ml_dtypes, by number.
PyArray_Descr* added_descrs[kDTypeLimit] = {};
constexpr DTypes added_dtypes = DTypes(DType::bfloat16) | float8s;

int numpy_type_of(DType d) {
  switch (storage_dtype(d)) {
    case DType::float32: return NPY_FLOAT32;
    case DType::float64: return NPY_FLOAT64;
    case DType::float16: return NPY_FLOAT16;
    case DType::int8: return NPY_INT8;
    case DType::int16: return NPY_INT16;
    case DType::int32: return NPY_INT32;
    case DType::int64: return NPY_INT64;
    case DType::uint8: return NPY_UINT8;
    case DType::uint16: return NPY_UINT16;
    case DType::uint32: return NPY_UINT32;
    case DType::uint64: return NPY_UINT64;
    case DType::boolean: return NPY_BOOL;
    case DType::complex64: return NPY_COMPLEX64;
    case DType::complex128: return NPY_COMPLEX128;
    default: return added_descrs[int(d)] ? added_descrs[int(d)]->type_num : NPY_OBJECT;
  }
}

PyArray_Descr* descr_of(DType d) {
  if (PyArray_Descr* added = added_descrs[int(d)])
    return reinterpret_cast<PyArray_Descr*>(Py_NewRef(reinterpret_cast<PyObject*>(added)));
  return PyArray_DescrFromType(numpy_type_of(d));
}

// A quantized type is a structure of one field, which has its name.
DType quantized_dtype(PyArray_Descr* descr) {
  PyObject* names = PyDataType_NAMES(descr);
  if (!names || PyTuple_GET_SIZE(names) != 1) return DType::invalid;
  for (int i = 0; i < kDTypeLimit; ++i)
    if (quantized.has(DType(i)) && size_of(DType(i)) == size_t(PyDataType_ELSIZE(descr)) &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), name_of(DType(i))) == 0)
      return DType(i);
  return DType::invalid;
}

DType dtype_of_numpy(PyArray_Descr* descr) {
  switch (descr->type_num) {
    case NPY_FLOAT32: return DType::float32;
    case NPY_FLOAT64: return DType::float64;
    case NPY_FLOAT16: return DType::float16;
    case NPY_INT8: return DType::int8;
    case NPY_INT16: return DType::int16;
    case NPY_UINT8: return DType::uint8;
    case NPY_UINT16: return DType::uint16;
    case NPY_BOOL: return DType::boolean;
    case NPY_COMPLEX64: return DType::complex64;
    case NPY_COMPLEX128: return DType::complex128;
    case NPY_UNICODE:
    case NPY_STRING: return DType::string;
    // C has five signed integer types for four sizes: go by size.
    case NPY_INT:
    case NPY_LONG:
    case NPY_LONGLONG: return PyDataType_ELSIZE(descr) == 4 ? DType::int32 : DType::int64;
    case NPY_UINT:
    case NPY_ULONG:
    case NPY_ULONGLONG: return PyDataType_ELSIZE(descr) == 4 ? DType::uint32 : DType::uint64;
    default: break;
  }
  for (int i = 0; i < kDTypeLimit; ++i)
    if (added_descrs[i] && descr->type_num == added_descrs[i]->type_num) return DType(i);
  return descr->type_num == NPY_VOID ? quantized_dtype(descr) : DType::invalid;
}

// ---- NumPy

Tensor string_array(PyArrayObject* array) {
  Ref list =
      checked(PyArray_ToList(reinterpret_cast<PyArrayObject*>(checked(PyArray_Flatten(array, NPY_CORDER)).get())));
  Tensor t = Tensor::allocate(DType::string, Shape(PyArray_DIMS(array), PyArray_NDIM(array)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
    if (!put_scalar(t.mutable_raw(), i, DType::string, PyList_GET_ITEM(list.get(), i)))
      fail_unsupported(PyList_GET_ITEM(list.get(), i));
  return t;
}

// Whether a value beside a tensor takes the tensor's dtype; a boolean is 0 or 1 in every dtype of numbers.
bool keeps_its_kind(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::boolean) return numbers.has(to);
  if (complexes.has(to)) return numbers.has(from);
  if (floating.has(to)) return real_numbers.has(from);
  return integers.has(to) && integers.has(from);
}

Tensor from_array(PyArrayObject* array, DType wanted, DType preferred, const char* who) {
  PyArray_Descr* descr = PyArray_DESCR(array);
  if (PyArray_NDIM(array) > kMaxRank)
    fail(ErrorKind::value, who, ": at most ", kMaxRank, " dimensions; got ", PyArray_NDIM(array));
  if (descr->type_num == NPY_OBJECT) {
    Ref list = checked(PyArray_ToList(array));
    if (PyArray_SIZE(array) == 0)
      return Tensor::allocate(wanted == DType::invalid ? DType::string : wanted,
                              Shape(PyArray_DIMS(array), PyArray_NDIM(array)));
    return to_tensor(list.get(), wanted, preferred, who);
  }
  DType own = dtype_of_numpy(descr);
  if (own == DType::string) {
    if (wanted != DType::invalid && wanted != DType::string)
      fail_conversion(reinterpret_cast<PyObject*>(array), wanted);
    return string_array(array);
  }
  if (own == DType::invalid) {
    Ref text = checked(PyObject_Str(reinterpret_cast<PyObject*>(descr)));
    fail(ErrorKind::value,
         "Failed to convert a NumPy array to a Tensor (Unsupported numpy type: ", PyUnicode_AsUTF8(text.get()), ").");
  }
  DType d = own;
  if (wanted != DType::invalid)
    d = wanted;
  else if (preferred != DType::invalid && keeps_its_kind(own, preferred))
    d = preferred;
  if (d == DType::string) fail_conversion(reinterpret_cast<PyObject*>(array), d);
  Tensor t = Tensor::allocate(own, Shape(PyArray_DIMS(array), PyArray_NDIM(array)));
  if (PyArray_IS_C_CONTIGUOUS(array) && PyArray_ISNOTSWAPPED(array)) {
    if (t.size()) std::memcpy(t.mutable_raw(), PyArray_DATA(array), t.bytes());
  } else {
    PyArray_Descr* target = PyArray_DescrNewByteorder(descr, NPY_NATIVE);
    Ref plain = checked(PyArray_FromArray(array, target, NPY_ARRAY_CARRAY_RO));
    if (t.size()) std::memcpy(t.mutable_raw(), PyArray_DATA(reinterpret_cast<PyArrayObject*>(plain.get())), t.bytes());
  }
  PauseRecording paused;
  EnterStage nowhere(nullptr);  // an array is a constant, of any dtype
  if (wanted == DType::invalid && floating.has(own) && integers.has(preferred)) {
    Tensor whole = cast(t, preferred);  // integral values count as integers beside integers
    Tensor again = cast(whole, own);
    if (std::memcmp(again.raw(), t.raw(), t.bytes()) == 0) return whole;
  }
  return d == own ? t : cast(t, d);
}

// ---- lists

struct Leaves {
  Shape shape;
  std::vector<PyObject*> items;  // borrowed
  bool packs_tensors = false;    // some item is a tensor, a variable or an array
};

bool is_sequence(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }
Py_ssize_t sequence_size(PyObject* o) { return PyList_Check(o) ? PyList_GET_SIZE(o) : PyTuple_GET_SIZE(o); }
PyObject* sequence_item(PyObject* o, Py_ssize_t i) {
  return PyList_Check(o) ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i);
}

[[noreturn]] void fail_ragged() { fail(ErrorKind::value, "Can't convert non-rectangular Python sequence to Tensor."); }

// A list may hold itself.
void check_depth(int depth) {
  if (depth >= kMaxRank) fail(ErrorKind::value, "at most ", kMaxRank, " levels of lists can become a Tensor");
}

void collect(PyObject* o, int depth, Leaves& leaves) {
  if (is_sequence(o)) {
    check_depth(depth);
    Py_ssize_t n = sequence_size(o);
    if (depth == leaves.shape.rank()) {
      if (!leaves.items.empty()) fail_ragged();
      leaves.shape.append(n);
    } else if (leaves.shape[depth] != n) {
      fail_ragged();
    }
    for (Py_ssize_t i = 0; i < n; ++i) collect(sequence_item(o, i), depth + 1, leaves);
    return;
  }
  if (!is_python_scalar(o)) leaves.packs_tensors = true;
  if (depth != leaves.shape.rank()) {
    if (leaves.packs_tensors) return;
    fail_ragged();
  }
  leaves.items.push_back(o);
}

bool holds_tensors(PyObject* o, int depth = 0) {
  if (!is_sequence(o)) return !is_python_scalar(o);
  check_depth(depth);
  for (Py_ssize_t i = 0; i < sequence_size(o); ++i)
    if (holds_tensors(sequence_item(o, i), depth + 1)) return true;
  return false;
}

DType common_dtype(const std::vector<PyObject*>& items) {
  DType result = DType::invalid;
  const bool wide = !items.empty() && PyArray_IsScalar(items[0], Double);  // a NumPy number is also a Python one
  for (PyObject* o : items) {
    DType d = natural_dtype(o);
    if (result == DType::invalid || result == d)
      result = d;
    else if (d == DType::boolean && (integers.has(result) || result == DType::float32))
      continue;
    else if (result == DType::int32 && integers.has(d))
      result = d;
    else if (integers.has(result) && d == DType::int32)
      continue;
    else if (integers.has(result) && (d == DType::float32 || d == DType::complex128))
      result = d;
    else if (result == DType::float32 && integers.has(d))
      continue;
    else if (result == DType::float32 && d == DType::complex128)
      result = d;
    else if (result == DType::complex128 && (integers.has(d) || d == DType::float32))
      continue;
    else
      fail(ErrorKind::value, "Can't convert Python sequence with mixed types to Tensor.");
  }
  if (wide && result == DType::float32) return DType::float64;
  return result == DType::invalid ? DType::float32 : result;
}

DType dtype_inside(PyObject* o, int depth = 0) {
  if (!is_sequence(o)) return known_dtype(o);
  check_depth(depth);
  for (Py_ssize_t i = 0; i < sequence_size(o); ++i) {
    DType d = dtype_inside(sequence_item(o, i), depth + 1);
    if (d != DType::invalid) return d;
  }
  return DType::invalid;
}

// What lists of NumPy values become: the dtype of their first element, but integers are integers of Python. Invalid if
// there is a tensor among them, or something else that says itself what it becomes.
struct Found {
  DType first = DType::invalid;
  bool any_real = false, only_numpy = true;
};
void look_inside(PyObject* o, Found& found, int depth = 0) {
  if (is_sequence(o)) {
    check_depth(depth);
    for (Py_ssize_t i = 0; i < sequence_size(o) && found.only_numpy; ++i)
      look_inside(sequence_item(o, i), found, depth + 1);
    return;
  }
  const bool python = is_python_scalar(o) && !PyArray_IsScalar(o, Generic);
  if (!python && !PyArray_Check(o) && !PyArray_IsScalar(o, Generic)) found.only_numpy = false;
  if (!found.only_numpy) return;
  DType d = python ? natural_dtype(o) : known_dtype(o);
  if (d == DType::invalid || d == DType::uint64) found.only_numpy = false;
  if (found.first == DType::invalid) found.first = d;
  found.any_real |= floating.has(d);
}

Tensor pack_sequence(PyObject* o, DType wanted, DType preferred, const char* who) {
  check_depth(thread_locals.packing_depth / 2);  // a list of NumPy values is looked at twice
  struct Inside {
    Inside() { ++thread_locals.packing_depth; }
    ~Inside() { --thread_locals.packing_depth; }
  } deeper;
  if (Found found; wanted == DType::invalid && preferred == DType::invalid) {
    look_inside(o, found);
    if (found.only_numpy && found.first != DType::invalid) {
      const bool whole = integers.has(found.first) && !found.any_real;
      Tensor t = pack_sequence(o,
                               whole                       ? DType::int64
                               : integers.has(found.first) ? DType::float32
                                                           : found.first,
                               preferred, who);
      const auto fits = [](int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; };
      if (!whole || !std::all_of(t.data<int64_t>(), t.data<int64_t>() + t.size(), fits)) return t;
      PauseRecording paused;
      EnterStage nowhere(nullptr);
      return cast(t, DType::int32);
    }
  }
  DType inside = wanted != DType::invalid ? wanted : dtype_inside(o);
  if (wanted == DType::invalid && preferred != DType::invalid && inside != DType::invalid &&
      keeps_its_kind(inside, preferred))
    wanted = inside = preferred;
  SmallVector<Tensor, 8> parts;
  for (Py_ssize_t i = 0; i < sequence_size(o); ++i) {
    PyObject* item = sequence_item(o, i);
    bool converts =
        wanted != DType::invalid && (is_tensor(item) || is_variable(item));  // as in TensorFlow, inside a list
    parts.push_back(converts ? cast(to_tensor(item, DType::invalid, preferred, who), wanted)
                             : to_tensor(item, inside, preferred, who));
  }
  for (const Tensor& t : parts)
    if (!merged(t.shape(), parts[0].shape()))
      fail(ErrorKind::value, who, ": Shapes of all inputs must match: values[0].shape = ", parts[0].shape(),
           " != values[i].shape = ", t.shape());
  return stack(parts, 0);
}

// Whether an integer that no caller asked for in 32 bits does not fit in them.
bool too_long(PyObject* item, DType found, DType wanted) {
  return wanted == DType::invalid && found == DType::int32 && PyLong_Check(item);
}

Tensor from_sequence(PyObject* o, DType wanted, DType preferred, const char* who) {
  if (holds_tensors(o)) return pack_sequence(o, wanted, preferred, who);
  Leaves leaves;
  collect(o, 0, leaves);
  DType d = wanted;
  if (d == DType::invalid) {
    d = leaves.items.empty() && preferred != DType::invalid ? preferred : common_dtype(leaves.items);
    if (preferred != DType::invalid && keeps_its_kind(d, preferred)) d = preferred;
  }
  if (leaves.shape.elements() != int64_t(leaves.items.size())) fail_ragged();
  Tensor t = Tensor::allocate(d, leaves.shape);
  for (size_t i = 0; i < leaves.items.size(); ++i)
    if (!put_scalar(t.mutable_raw(), int64_t(i), d, leaves.items[i])) {
      if (too_long(leaves.items[i], d, wanted)) return from_sequence(o, DType::int64, DType::invalid, who);
      fail_conversion(leaves.items[i], d);
    }
  return t;
}

void check_dtype(const Tensor& t, DType wanted, const char* who) {
  if (wanted != DType::invalid && t.dtype() != wanted)
    fail(ErrorKind::value, who, ": Tensor conversion requested dtype ", name_of(wanted), " for Tensor with dtype ",
         name_of(t.dtype()));
}

Tensor from_other(PyObject* o, DType wanted, DType preferred, const char* who) {
  if (PyObject_HasAttrString(o, "__tf_tensor__")) {
    Ref d = Ref(wanted == DType::invalid ? Py_NewRef(Py_None) : wrap_dtype(wanted));
    Ref converted = checked(PyObject_CallMethod(o, "__tf_tensor__", "O", d.get()));
    if (!is_tensor(converted.get()) && !is_variable(converted.get())) fail_unsupported(o);
    return to_tensor(converted.get(), wanted, preferred, who);
  }
  if (PyObject* convert = registered("convert_other")) {
    Ref d = Ref(wanted == DType::invalid ? Py_NewRef(Py_None) : wrap_dtype(wanted));
    Ref converted = checked(PyObject_CallFunctionObjArgs(convert, o, d.get(), nullptr));
    if (converted.get() != Py_NotImplemented) return to_tensor(converted.get(), wanted, preferred, who);
  }
  if (!PyType_Check(o) && (PyObject_HasAttrString(o, "__array__") || PyObject_HasAttrString(o, "__array_interface__") ||
                           PyObject_CheckBuffer(o))) {
    Ref array = checked(PyArray_FromAny(o, nullptr, 0, 0, NPY_ARRAY_CARRAY_RO, nullptr));
    return from_array(reinterpret_cast<PyArrayObject*>(array.get()), wanted, preferred, who);
  }
  if (PyRange_Check(o)) {
    Ref list = checked(PySequence_List(o));
    return from_sequence(list.get(), wanted, preferred, who);
  }
  if (o == Py_None && thread_state().stage && thread_locals.packing_depth == 0)
    fail(ErrorKind::value, "None values not supported.");
  fail_unsupported(o);
}

}  // namespace

bool is_plain_array(PyObject* o) { return PyArray_CheckExact(o); }

Shape shape_of_array(PyObject* o) {
  auto* array = reinterpret_cast<PyArrayObject*>(o);
  if (PyArray_NDIM(array) > kMaxRank) return Shape::unknown();
  Shape shape;
  for (int i = 0; i < PyArray_NDIM(array); ++i) shape.append(PyArray_DIM(array, i));
  return shape;
}

DType known_dtype(PyObject* o) {
  if (is_tensor(o)) return reinterpret_cast<TensorObject*>(o)->body->dtype;
  if (is_variable(o)) return variable_of(o).dtype;
  if (is_variable_object(o)) return DType::invalid;  // its conversion decides
  if (PyFloat_CheckExact(o) || PyLong_CheckExact(o) || is_sequence(o)) return DType::invalid;
  if (PyArray_Check(o)) return dtype_of_numpy(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(o)));
  if (PyArray_CheckScalar(o)) {
    PyArray_Descr* descr = PyArray_DescrFromScalar(o);
    DType d = dtype_of_numpy(descr);
    Py_DECREF(descr);
    return d;
  }
  if (is_python_scalar(o) || o == Py_None) return DType::invalid;
  Ref dtype(PyObject_GetAttrString(o, "dtype"));
  if (!dtype) {
    PyErr_Clear();
    return DType::invalid;
  }
  try {
    return dtype_from(dtype.get());
  } catch (const Error&) {
    PyErr_Clear();
    return DType::invalid;
  }
}

Tensor to_tensor(PyObject* o, DType wanted, DType preferred, const char* who) {
  if (is_tensor(o)) {
    Tensor t = tensor_of(o);
    check_dtype(t, wanted, who);
    return t;
  }
  if (is_variable(o)) {
    const Tensor& t = read_variable(variable_of(o));
    check_dtype(t, wanted, who);
    return t;
  }
  if (PyFloat_CheckExact(o) || PyLong_CheckExact(o)) return scalar_tensor(o, wanted, preferred);
  if (is_sequence(o)) return from_sequence(o, wanted, preferred, who);
  if (PyArray_Check(o)) return from_array(reinterpret_cast<PyArrayObject*>(o), wanted, preferred, who);
  if (PyArray_CheckScalar(o)) {
    Ref array = checked(PyArray_FromAny(o, nullptr, 0, 0, NPY_ARRAY_CARRAY_RO, nullptr));
    return from_array(reinterpret_cast<PyArrayObject*>(array.get()), wanted, preferred, who);
  }
  if (is_python_scalar(o)) return scalar_tensor(o, wanted, preferred);
  return from_other(o, wanted, preferred, who);
}

static bool is_tensor_shape(PyObject* o) {
  static PyObject* type = nullptr;
  if (!type) type = registered("TensorShape");
  return reinterpret_cast<PyObject*>(Py_TYPE(o)) == type;
}

bool is_plain_value(PyObject* o) { return is_sequence(o) || (is_python_scalar(o) && !PyArray_CheckScalar(o)); }

Tensor to_tensor_beside(PyObject* o, DType decided, const char* who) {
  Tensor t = to_tensor(o, DType::invalid, decided, who);
  if (t.dtype() != decided && is_plain_value(o)) fail_conversion(o, decided);
  return t;
}

// Whether an object says which integer it is, as a size of a TensorFlow 1 shape does.
static bool stands_for_integer(PyObject* o) {
  return PyIndex_Check(o) && !PyBool_Check(o) && !is_tensor(o) && !is_variable(o) && !PyArray_Check(o);
}

Tensor whole_numbers(PyObject* o, Tensor t) {
  if (!is_sequence(o) || !floating.has(t.dtype())) return t;
  for (Py_ssize_t i = 0; i < sequence_size(o); ++i)
    if (PyObject* item = sequence_item(o, i); !is_tensor(item) && !PyLong_Check(item)) return t;
  return cast(t, DType::int32);
}

Ints to_ints(PyObject* o, const char* who, const char* argument) {
  Ints result;
  if (is_sequence(o)) {
    bool plain = true;
    for (Py_ssize_t i = 0; i < sequence_size(o) && plain; ++i) {
      PyObject* item = sequence_item(o, i);
      plain = PyLong_CheckExact(item) || stands_for_integer(item);
    }
    if (plain) {
      for (Py_ssize_t i = 0; i < sequence_size(o); ++i) {
        PyObject* item = sequence_item(o, i);
        Ref number = PyLong_CheckExact(item) ? Ref::share(item) : checked(PyNumber_Index(item));
        result.push_back(to_integer(number.get(), who, argument));
      }
      return result;
    }
  } else if (PyLong_CheckExact(o)) {
    result.push_back(to_integer(o, who, argument));
    return result;
  } else if (is_tensor_shape(o)) {
    Shape shape = shape_from(o);
    if (shape.fully_known()) return Param(shape).ints;
  }
  Tensor t = to_tensor(o, DType::invalid, DType::int32, who);
  if (t.rank() > 1 && (thread_state().stage || std::strcmp(argument, "axis")))
    fail(ErrorKind::invalid_argument, who, ": ", argument, " input must be 1-D, not ", t.shape(),
         ": it must be at most rank 1 but is rank ", t.rank());
  if (t.size() == 0) return result;
  t = whole_numbers(o, std::move(t));
  if (!integers.has(t.dtype()))
    fail(ErrorKind::invalid_argument, who, ": ", argument, " must be integers: Value for attr 'T", argument, "' of ",
         legacy_name_of(t.dtype()), " is not in the list of allowed values: int32, int64");
  log_on_tapes_if_any(Event::argument, t);
  return read_ints(t);
}

int64_t to_integer(PyObject* o, const char* who, const char* argument) {
  if (PyLong_Check(o)) {
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) fail(ErrorKind::value, who, ": ", argument, " is too large for an int64");
    return v;
  }
  if (o == Py_None)
    fail(ErrorKind::value, who, ": ", argument,
         " must be an integer: Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a "
         "Tensor.");
  if (PyFloat_Check(o) || PyUnicode_Check(o))
    fail(ErrorKind::type, who, ": ", argument, " must be an integer; got a ", Py_TYPE(o)->tp_name);
  Tensor t = to_tensor(o, DType::invalid, DType::int32, who);
  if (t.size() != 1 || !integers.has(t.dtype()))
    fail(ErrorKind::type, who, ": ", argument, " must be one integer; got shape ", t.shape(), " and dtype ",
         name_of(t.dtype()));
  log_on_tapes_if_any(Event::argument, t);
  return read_ints(t)[0];
}

// ---- tensors to NumPy

namespace {
void release_buffer(PyObject* capsule) {
  static_cast<Buffer*>(PyCapsule_GetPointer(capsule, "tapeflow.buffer"))->drop();
}

PyObject* string_objects(const Tensor& t) {
  npy_intp dims[kMaxRank];
  std::copy(t.shape().begin(), t.shape().end(), dims);
  Ref array = checked(PyArray_SimpleNew(t.rank(), dims, NPY_OBJECT));
  auto** items = static_cast<PyObject**>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.get())));
  for (int64_t i = 0; i < t.size(); ++i) {
    const std::string& s = t.data<std::string>()[i];
    Py_XSETREF(items[i], checked(PyBytes_FromStringAndSize(s.data(), Py_ssize_t(s.size()))).release());
  }
  return array.release();
}
}  // namespace

PyObject* to_numpy(const Tensor& t, bool writable) {
  if (t.dtype() == DType::string) return string_objects(t);
  npy_intp dims[kMaxRank];
  std::copy(t.shape().begin(), t.shape().end(), dims);
  t.raw();  // has its buffer from now on
  Buffer* buffer = t.body()->buffer;
  bool share = buffer && (!writable || (t.unique() && !buffer->release));
  if (!share) {
    Ref array =
        checked(PyArray_NewFromDescr(&PyArray_Type, descr_of(t.dtype()), t.rank(), dims, nullptr, nullptr, 0, nullptr));
    auto* a = reinterpret_cast<PyArrayObject*>(array.get());
    if (t.size()) std::memcpy(PyArray_DATA(a), t.raw(), t.bytes());
    if (!writable) PyArray_CLEARFLAGS(a, NPY_ARRAY_WRITEABLE);
    return array.release();
  }
  Ref array = checked(PyArray_NewFromDescr(&PyArray_Type, descr_of(t.dtype()), t.rank(), dims, nullptr, t.mutable_raw(),
                                           writable ? NPY_ARRAY_WRITEABLE : 0, nullptr));
  PyObject* capsule = PyCapsule_New(buffer, "tapeflow.buffer", release_buffer);
  if (!capsule) throw_python_error();
  buffer->retain();
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.get()), capsule) < 0) throw_python_error();
  return array.release();
}

PyObject* to_numpy_scalar(const Tensor& t) {
  if (t.dtype() == DType::string) {
    const std::string& s = *t.data<std::string>();
    return PyBytes_FromStringAndSize(s.data(), Py_ssize_t(s.size()));
  }
  PyArray_Descr* descr = descr_of(t.dtype());
  PyObject* scalar = PyArray_Scalar(t.mutable_raw(), descr, nullptr);
  Py_DECREF(descr);
  return scalar;
}

void import_numpy() {
  if (_import_array() < 0) throw_python_error();
  Ref ml_dtypes = checked(PyImport_ImportModule("ml_dtypes"));
  for (int i = 0; i < kDTypeLimit; ++i) {
    if (!added_dtypes.has(DType(i))) continue;
    Ref type = checked(PyObject_GetAttrString(ml_dtypes.get(), name_of(DType(i))));
    if (!PyArray_DescrConverter(type.get(), &added_descrs[i])) throw_python_error();
  }
}

}  // namespace tapeflow::python
