// Python numbers and text as elements of tensors.
#include <cmath>
#include <limits>

#include "base/float8.h"
#include "python/scalar.h"

namespace tapeflow::python {
namespace {

constexpr DTypes real_or_complex = differentiable | float8s;

template <class T> void put(void* at, int64_t i, T value) { static_cast<T*>(at)[i] = value; }

void put_real(void* at, int64_t i, DType d, double v) {
  switch (d) {
    case DType::float32: return put(at, i, float(v));
    case DType::float64: return put(at, i, v);
    case DType::float16: return put(at, i, half(float(v)));
    case DType::bfloat16: return put(at, i, bfloat16(float(v)));
    case DType::complex64: return put(at, i, std::complex<float>(float(v)));
    case DType::complex128: return put(at, i, std::complex<double>(v));
    default: return put(at, i, float8_from_double(d, v));
  }
}

template <class T> bool put_integer_as(void* at, int64_t i, PyObject* o) {
  int overflow = 0;
  if constexpr (std::is_same_v<T, uint64_t>) {
    unsigned long long v = PyLong_AsUnsignedLongLong(o);
    if (v == static_cast<unsigned long long>(-1) && PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    put(at, i, T(v));
    return true;
  }
  long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow || v < (long long)(std::numeric_limits<T>::min()) ||
      (sizeof(T) < 8 && v > (long long)(std::numeric_limits<T>::max())))
    return false;
  put(at, i, T(v));
  return true;
}

}  // namespace

void fail_conversion(PyObject* o, DType wanted) {
  Ref text = checked(PyObject_Repr(o));
  const char* words = PyUnicode_AsUTF8(text.get());
  if (!words) throw_python_error();
  if (thread_state().stage)
    fail(ErrorKind::type, "Expected ", name_of(wanted), ", but got ", words, " of type '", Py_TYPE(o)->tp_name,
         "'. Cannot convert ", words, " to a tensor of dtype ", name_of(wanted), ".");
  fail(ErrorKind::type, "Cannot convert ", words, " to EagerTensor of dtype ", legacy_name_of(wanted),
       wanted == DType::float32 ? " (float32)" : "", ".");
}

bool put_scalar(void* at, int64_t i, DType d, PyObject* o) {
  if (PyBool_Check(o) && d == DType::boolean) {
    put(at, i, o == Py_True);
    return true;
  }
  if (PyFloat_Check(o)) {
    if (!real_or_complex.has(d)) return false;
    put_real(at, i, d, PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (PyLong_Check(o)) {
    if (real_or_complex.has(d)) {
      double v = PyLong_AsDouble(o);
      if (v == -1.0 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw_python_error();
        PyErr_Clear();
        fail(ErrorKind::value, "Can't convert Python sequence with out-of-range integer to Tensor.");
      }
      put_real(at, i, d, v);
      return true;
    }
    switch (storage_dtype(d)) {
      case DType::int8: return put_integer_as<int8_t>(at, i, o);
      case DType::int16: return put_integer_as<int16_t>(at, i, o);
      case DType::int32: return put_integer_as<int32_t>(at, i, o);
      case DType::int64: return put_integer_as<int64_t>(at, i, o);
      case DType::uint8: return put_integer_as<uint8_t>(at, i, o);
      case DType::uint16: return put_integer_as<uint16_t>(at, i, o);
      case DType::uint32: return put_integer_as<uint32_t>(at, i, o);
      case DType::uint64: return put_integer_as<uint64_t>(at, i, o);
      default: return false;
    }
  }
  if (PyComplex_Check(o)) {
    Py_complex v = PyComplex_AsCComplex(o);
    if (d == DType::complex64)
      put(at, i, std::complex<float>(float(v.real), float(v.imag)));
    else if (d == DType::complex128)
      put(at, i, std::complex<double>(v.real, v.imag));
    else
      return false;
    return true;
  }
  if (PyUnicode_Check(o) || PyBytes_Check(o)) {
    if (d != DType::string) return false;
    Py_ssize_t n;
    const char* text;
    if (PyUnicode_Check(o)) {
      text = PyUnicode_AsUTF8AndSize(o, &n);
      if (!text) throw_python_error();
    } else {
      text = PyBytes_AS_STRING(o);
      n = PyBytes_GET_SIZE(o);
    }
    static_cast<std::string*>(at)[i].assign(text, size_t(n));
    return true;
  }
  return false;
}

bool is_python_scalar(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o);
}

DType natural_dtype(PyObject* o) {
  if (PyBool_Check(o)) return DType::boolean;
  if (PyFloat_Check(o)) {
    const double v = PyFloat_AS_DOUBLE(o);
    if (std::isfinite(v) && !std::isfinite(float(v)))
      fail(ErrorKind::value,
           "Can't convert Python sequence with a value out of range for a double-precision float: ", v,
           " is too large for float32. Say dtype=tf.float64.");
    return DType::float32;
  }
  if (PyComplex_Check(o)) return DType::complex128;
  if (PyUnicode_Check(o) || PyBytes_Check(o)) return DType::string;
  int overflow = 0;
  long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) fail(ErrorKind::value, "Can't convert Python sequence with out-of-range integer to Tensor.");
  return v >= INT32_MIN && v <= INT32_MAX ? DType::int32 : DType::int64;
}

Tensor scalar_tensor(PyObject* o, DType wanted, DType preferred) {
  DType d = wanted != DType::invalid ? wanted : preferred != DType::invalid ? preferred : natural_dtype(o);
  Tensor t = Tensor::allocate(d, Shape());
  if (put_scalar(t.mutable_raw(), 0, d, o)) return t;
  if (wanted == DType::invalid && preferred != DType::invalid) return scalar_tensor(o, DType::invalid, DType::invalid);
  fail_conversion(o, d);
}

}  // namespace tapeflow::python
