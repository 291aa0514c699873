// Operations as Python callables: parses the arguments by the entry's signature and calls dispatch.

#include <algorithm>
#include <bit>
#include <cstring>

#include "graph/graph.h"
#include "ops/ops.h"
#include "python/common.h"

namespace tapeflow::python {
namespace {

struct OpFunctionObject {
  PyObject_HEAD vectorcallfunc call;
  const Op* op;
  PyObject* names;  // interned argument names, then "name"
  PyObject* weak_references;
  bool keywords_only;  // as tf.raw_ops
  bool only_tensors;   // at most kFewTensors arguments, each a tensor
};
PyTypeObject* op_function_type = nullptr;

constexpr int kMaxArguments = 24;
constexpr size_t kFewTensors = 3;

// Sorts positional and keyword arguments into slots in the order of the signature; the last slot is `name`.
void collect_arguments(const OpFunctionObject& f, PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                       PyObject** slot) {
  Py_ssize_t count = PyTuple_GET_SIZE(f.names);
  const char* who = f.op->public_name();
  if (n > count) fail(ErrorKind::type, who, "() takes ", count, " positional arguments but ", n, " were given");
  for (Py_ssize_t i = 0; i < n; ++i) slot[i] = args[i];
  if (!keywords) return;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); ++k) {
    PyObject* key = PyTuple_GET_ITEM(keywords, k);
    Py_ssize_t at = 0;
    while (at < count && PyTuple_GET_ITEM(f.names, at) != key) ++at;
    if (at == count) {
      at = 0;
      while (at < count && PyUnicode_Compare(PyTuple_GET_ITEM(f.names, at), key) != 0) ++at;
    }
    if (at == count) fail(ErrorKind::type, who, "() got an unexpected keyword argument '", PyUnicode_AsUTF8(key), "'");
    if (slot[at]) fail(ErrorKind::type, who, "() got multiple values for argument '", PyUnicode_AsUTF8(key), "'");
    slot[at] = args[n + k];
  }
}

// `position` among the tensors. For an argument with one dtype only, the message names that dtype.
[[noreturn]] void fail_dtype(const Op& op, const Argument& a, size_t position, DType d, PyObject* given) {
  const char* who = op.public_name();
  std::string allowed;
  DType only = DType::invalid;
  int count = 0;
  for (int i = 0; i < kDTypeLimit; ++i)
    if (a.dtypes.has(DType(i))) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(name_of(DType(i)));
      only = DType(i), ++count;
    }
  if (count == 1 && is_plain_value(given)) fail_conversion(given, only);
  if (thread_state().stage) {
    if (count == 1)
      fail(ErrorKind::type, who, ": Input '", a.name, "' of '", op.name, "' Op has type ", name_of(d),
           " that does not match expected type of ", allowed, ".");
    fail(ErrorKind::type, who, ": Value passed to parameter '", a.name, "' has DataType ", name_of(d),
         " not in list of allowed values: ", allowed);
  }
  if (count == 1)
    fail(ErrorKind::invalid_argument, who, ": cannot compute ", op.name, " as input #", position,
         "(zero-based) was expected to be a ", legacy_name_of(only), " tensor but is a ", legacy_name_of(d),
         " tensor; argument '", a.name, "'");
  fail(ErrorKind::invalid_argument, who, ": Value for attr 'T' of ", legacy_name_of(d),
       " is not in the list of allowed values: ", allowed, "; argument '", a.name, "' has dtype ", name_of(d));
}

// The dtype of a tensor or variable, and, if asked for, of other values that have one.
DType dtype_of(PyObject* o, bool of_arrays) {
  return of_arrays || is_tensor(o) || is_variable(o) ? known_dtype(o) : DType::invalid;
}

// Whether nothing in a list has a dtype of its own.
bool holds_python_values(PyObject* list) {
  Ref items = checked(PySequence_Fast(list, "a list of tensors is expected"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    if (known_dtype(PySequence_Fast_GET_ITEM(items.get(), i)) != DType::invalid) return false;
  return true;
}

// Whether a Python value is of floats, by its first element.
bool begins_with_float(PyObject* o) {
  for (int depth = 0; depth < kMaxRank && (PyList_Check(o) || PyTuple_Check(o)); ++depth) {
    if (PySequence_Fast_GET_SIZE(o) == 0) return false;
    o = PySequence_Fast_GET_ITEM(o, 0);
  }
  return PyFloat_CheckExact(o);
}

// The dtype that the arguments of a group share: that of the first tensor, else of the first array; float32 if Python
// floats come before an array of real numbers.
struct GroupDType {
  DType dtype = DType::invalid;
  bool floats_first = false;

  void see(PyObject* o, bool of_arrays) {
    if (dtype != DType::invalid) return;
    const DType found = dtype_of(o, of_arrays);
    if (found == DType::invalid)
      floats_first |= of_arrays && begins_with_float(o);
    else
      dtype = floats_first && real_numbers.has(found) ? DType::float32 : found;
  }
  void see_list(PyObject* list, bool of_arrays) {
    Ref items = checked(PySequence_Fast(list, "a list of tensors is expected"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      see(PySequence_Fast_GET_ITEM(items.get(), i), of_arrays);
  }
};

// Whether what is given as a list of tensors becomes one tensor: a tensor, plain numbers that tf.stack would put side
// by side anyway, an array for tf.concat.
bool takes_whole(const Argument& a, PyObject* o) {
  if (is_tensor(o) || is_variable(o) || o == Py_None) return true;
  const bool listed = PyList_Check(o) || PyTuple_Check(o);
  switch (a.whole) {
    case Argument::Whole::tensor: return false;
    case Argument::Whole::array: return !listed && known_dtype(o) != DType::invalid;
    case Argument::Whole::numbers: return listed && holds_python_values(o);
  }
  return false;
}

// tf.stack of the rows of a tensor.
Tensor restacked(const Tensor& x, PyObject* axis_or_null, const char* who) {
  int64_t axis = axis_or_null ? to_integer(axis_or_null, who, "axis") : 0;
  if (axis == 0 || !x.shape().known_rank() || x.rank() == 0) return identity(x);
  Tensors rows = unstack(x, 0);
  return stack(rows, axis);
}

bool holds_symbolic(PyObject* o, int depth = 0) {
  if (is_tensor(o)) return tensor_of(o).symbolic();
  if (is_variable(o)) return true;
  if ((!PyList_Check(o) && !PyTuple_Check(o)) || depth > kMaxRank) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (holds_symbolic(PySequence_Fast_GET_ITEM(o, i), depth + 1)) return true;
  return false;
}

// The dtype of an empty list, where an argument takes booleans alone: nothing in the list decides.
DType wanted_of_empty(const Argument& a, PyObject* o) {
  bool empty = PyList_CheckExact(o) && PyList_GET_SIZE(o) == 0;
  return empty && a.dtypes.bits == DTypes(booleans).bits ? DType::boolean : DType::invalid;
}

Param parse_param(const Op& op, const Argument& a, PyObject* o) {
  const char* who = op.public_name();
  if (thread_state().stage && a.kind != Argument::Kind::text && a.kind != Argument::Kind::dtype && holds_symbolic(o)) {
    Tensor t = to_tensor(o, DType::invalid, DType::invalid, who);
    DTypes allowed = a.kind == Argument::Kind::flag   ? DTypes(booleans)
                     : a.kind == Argument::Kind::real ? real_numbers
                                                      : integers;
    if (a.kind == Argument::Kind::ints) t = whole_numbers(o, std::move(t));
    if (!allowed.has(t.dtype()))
      fail(ErrorKind::type, who, ": argument '", a.name, "' cannot be a tensor of dtype ", name_of(t.dtype()));
    Param open(t, int(a.kind));
    auto* stage = static_cast<const Graph*>(thread_state().stage);
    std::optional<Param> settled = t.symbolic() ? settled_param(*stage, open) : std::nullopt;
    return settled ? *settled : open;
  }
  switch (a.kind) {
    case Argument::Kind::flag: {
      if (o == Py_None && !a.required) return a.fallback;
      int yes = PyObject_IsTrue(o);
      if (yes < 0) throw_python_error();
      return Param(yes == 1);
    }
    case Argument::Kind::integer: return Param(to_integer(o, who, a.name));
    case Argument::Kind::real: {
      double v = PyFloat_AsDouble(o);
      if (v == -1.0 && PyErr_Occurred()) throw_python_error();
      return Param(v);
    }
    case Argument::Kind::dtype:
      if (o == Py_None && a.required) fail(ErrorKind::type, who, ": argument '", a.name, "' must not be None");
      return o == Py_None ? Param() : Param(dtype_from(o));
    case Argument::Kind::axes:
    case Argument::Kind::ints:
      if (o == Py_None) {
        if (a.required)
          fail(ErrorKind::value, who, ": argument '", a.name,
               "' must not be None: Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to "
               "a Tensor.");
        return Param();
      }
      return Param(to_ints(o, who, a.name));
    case Argument::Kind::text: {
      if (o == Py_None && !a.required) return a.fallback;
      if (!PyUnicode_Check(o))
        fail(ErrorKind::type, who, ": argument '", a.name, "' must be a string; got a ", Py_TYPE(o)->tp_name);
      const char* words = PyUnicode_AsUTF8(o);
      if (!words) throw_python_error();
      return Param(words);
    }
    default: return Param();
  }
}

// An argument, or an item of a list of them, whose class runs operations on itself (tf.RaggedTensor).
PyObject* find_runner(PyObject* const* args, Py_ssize_t n, int depth = 0) {
  if (depth > kMaxRank) return nullptr;  // a list may hold itself
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = args[i];
    if (!PyType_Check(o) && PyObject_HasAttrString(o, "__tf_operation__")) return o;  // a class is no operand
    if (!PyList_Check(o) && !PyTuple_Check(o)) continue;
    PyObject** items = PySequence_Fast_ITEMS(o);
    if (PyObject* found = find_runner(items, PySequence_Fast_GET_SIZE(o), depth + 1)) return found;
  }
  return nullptr;
}

// Whether a call is the plain one: just the arguments, all tensors or variables of dtypes that are allowed.
bool is_plain_call(const OpFunctionObject& f, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  if (!f.only_tensors || keywords || size_t(n) != f.op->arguments.size()) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    DType dtype = is_tensor(args[i])     ? tensor_of(args[i]).dtype()
                  : is_variable(args[i]) ? variable_of(args[i]).dtype
                                         : DType::invalid;
    if (!f.op->arguments[size_t(i)].dtypes.has(dtype)) return false;
  }
  return true;
}

PyObject* run_op(PyObject* self, PyObject* const* args, size_t flagged, PyObject* keywords) {
  const auto& f = *reinterpret_cast<OpFunctionObject*>(self);
  const Op& op = *f.op;
  return guarded([&]() -> PyObject* {
    Py_ssize_t n = PyVectorcall_NARGS(flagged);
    if (is_plain_call(f, args, n, keywords)) {
      Tensor in[kFewTensors];
      for (Py_ssize_t i = 0; i < n; ++i) in[i] = operand(args[i]);
      Params none;
      Call call(op, {in, size_t(n)}, none);
      dispatch(call);
      return op.returns_list ? wrap_list(call.out) : wrap(std::move(call.out[0]));
    }
    PyObject* slot[kMaxArguments] = {};
    if (f.keywords_only && n > 0) fail(ErrorKind::type, op.name, "() takes keyword arguments only");
    collect_arguments(f, args, n, keywords, slot);

    SmallVector<Tensor, 4> in;
    size_t tensors = 0, count = op.arguments.size();
    for (size_t i = 0; i < count; ++i) {
      const Argument& a = op.arguments[i];
      bool is_tensor_argument = a.kind == Argument::Kind::tensor || a.kind == Argument::Kind::tensors;
      if (!slot[i] && a.required)
        fail(ErrorKind::type, op.public_name(), "() missing required argument '", a.name, "'");
      if (is_tensor_argument) ++tensors;
    }
    GroupDType group[4];
    for (bool of_arrays : {false, true})
      for (size_t i = 0; i < count; ++i) {
        const Argument& a = op.arguments[i];
        if (a.group < 0 || !slot[i]) continue;
        if (a.kind == Argument::Kind::tensor) group[a.group].see(slot[i], of_arrays);
        if (a.kind == Argument::Kind::tensors && PySequence_Check(slot[i]) && !is_tensor(slot[i]))
          group[a.group].see_list(slot[i], of_arrays);
      }
    for (size_t i = 0; i < count; ++i) {
      const Argument& a = op.arguments[i];
      DType preferred = a.group >= 0 && group[a.group].dtype != DType::invalid ? group[a.group].dtype : a.preferred;
      if (a.kind == Argument::Kind::tensor) {
        in.push_back(to_tensor(slot[i], wanted_of_empty(a, slot[i]), preferred, op.public_name()));
        DType own = in.back().dtype(), decided = a.group >= 0 ? group[a.group].dtype : DType::invalid;
        if (decided != DType::invalid && own != decided && a.dtypes.has(decided) && is_plain_value(slot[i]) &&
            !op.mixed_dtypes)
          fail_conversion(slot[i], decided);
        if (!a.dtypes.has(own)) {
          // An array is cast to the only dtype that an argument has, as numbers for a condition.
          const DType only = DType(std::countr_zero(a.dtypes.bits));
          if (std::popcount(a.dtypes.bits) != 1 || !is_plain_array(slot[i]) || !real_numbers.has(own) ||
              !(real_numbers | booleans).has(only))
            fail_dtype(op, a, in.size() - 1, own, slot[i]);
          in.back() = to_tensor(slot[i], only, preferred, op.public_name());
        }
        if (a.group >= 0 && group[a.group].dtype == DType::invalid) group[a.group].dtype = in.back().dtype();
      } else if (a.kind == Argument::Kind::tensors) {
        if (takes_whole(a, slot[i])) {
          Tensor whole = to_tensor(slot[i], DType::invalid, preferred, op.public_name());
          if (a.whole == Argument::Whole::numbers) return wrap(restacked(whole, slot[i + 1], op.public_name()));
          in.push_back(std::move(whole));
        } else {
          Ref items = checked(PySequence_Fast(slot[i], "a list of tensors is expected"));
          for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(items.get()); ++k) {
            in.push_back(
                to_tensor(PySequence_Fast_GET_ITEM(items.get(), k), DType::invalid, preferred, op.public_name()));
            if (preferred == DType::invalid) preferred = in.back().dtype();
          }
        }
        for (const Tensor& t : in)
          if (!a.dtypes.has(t.dtype())) fail_dtype(op, a, in.size() - 1, t.dtype(), slot[i]);
      }
    }
    Params params;
    if (tensors != count) {
      params = Params::sized(count - tensors);
      int next = 0;
      for (size_t i = 0; i < count; ++i) {
        const Argument& a = op.arguments[i];
        if (a.kind == Argument::Kind::tensor || a.kind == Argument::Kind::tensors) continue;
        params.mutable_at(next++) = slot[i] ? parse_param(op, a, slot[i]) : a.fallback;
      }
    }
    Call call(op, in, params);
    NameNode named(thread_state().stage && slot[count] && PyUnicode_Check(slot[count]) ? PyUnicode_AsUTF8(slot[count])
                                                                                       : nullptr);
    dispatch(call);
    if (op.returns_list) return wrap_list(call.out);
    return wrap(std::move(call.out[0]));
  });
}

}  // namespace

std::pair<Ref, Ref> packed_arguments(PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  Ref positional(PyTuple_New(n)), by_name(PyDict_New());
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; i < named; ++i) PyDict_SetItem(by_name.get(), PyTuple_GET_ITEM(keywords, i), args[n + i]);
  return {std::move(positional), std::move(by_name)};
}

// Types that run operations on themselves come first, then the dispatchers that a program registered for all
// operations (tf.__internal__.dispatch): these see the outermost call, not those inside a composition.
PyObject* run_elsewhere(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  if (PyObject* runner = find_runner(args, n + named)) {
    auto [positional, by_name] = packed_arguments(args, n, keywords);
    PyObject* result = PyObject_CallMethod(runner, "__tf_operation__", "OOO", self, positional.get(), by_name.get());
    if (result != Py_NotImplemented) {
      Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
      return result;
    }
    Py_DECREF(result);
  }
  PyObject* fallback = thread_locals.composition_depth ? nullptr : registered("fallback_dispatch");
  bool unsupported =
      PyErr_GivenExceptionMatches(type, PyExc_TypeError) || PyErr_GivenExceptionMatches(type, PyExc_ValueError);
  if (fallback && unsupported) {
    auto [positional, by_name] = packed_arguments(args, n, keywords);
    Ref result(PyObject_CallFunctionObjArgs(fallback, self, positional.get(), by_name.get(), nullptr));
    if (result.get() != Py_NotImplemented) {
      Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
      return result.release();
    }
  }
  PyErr_Restore(type, value, trace);
  return nullptr;
}

namespace {

PyObject* call_op(PyObject* self, PyObject* const* args, size_t flagged, PyObject* keywords) {
  PyObject* result = run_op(self, args, flagged, keywords);
  return result ? result : run_elsewhere(self, args, PyVectorcall_NARGS(flagged), keywords);
}

void op_function_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (reinterpret_cast<OpFunctionObject*>(self)->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(reinterpret_cast<OpFunctionObject*>(self)->names);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* op_function_repr(PyObject* self) {
  return PyUnicode_FromFormat("<tf.%s>", reinterpret_cast<OpFunctionObject*>(self)->op->public_name());
}

const char* last_part(const char* path) {
  const char* dot = std::strrchr(path, '.');
  return dot ? dot + 1 : path;
}

PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(last_part(reinterpret_cast<OpFunctionObject*>(self)->op->public_name()));
}
PyObject* get_doc(PyObject* self, void*) {
  const Op& op = *reinterpret_cast<OpFunctionObject*>(self)->op;
  PyObject* describe = registered("doc_of_primitive");
  return describe ? PyObject_CallFunction(describe, "ss", op.name, op.doc) : PyUnicode_FromString(op.doc);
}

std::string default_text(const Argument& a) {
  switch (a.fallback.kind) {
    case Param::Kind::flag: return a.fallback.flag ? "True" : "False";
    case Param::Kind::integer: return std::to_string(a.fallback.integer);
    case Param::Kind::real: {
      Ref number(PyFloat_FromDouble(a.fallback.real));
      Ref text(PyObject_Repr(number.get()));
      return PyUnicode_AsUTF8(text.get());
    }
    case Param::Kind::text: return "'" + a.fallback.text + "'";
    default: return "None";
  }
}
PyObject* get_text_signature(PyObject* self, void*) {
  const auto& f = *reinterpret_cast<OpFunctionObject*>(self);
  std::string text = f.keywords_only ? "(*, " : "(";
  for (const Argument& a : f.op->arguments)
    text += std::string(a.name) + (a.required ? "" : "=" + default_text(a)) + ", ";
  text += "name=None)";
  return PyUnicode_FromString(text.c_str());
}
PyObject* get_signature(PyObject* self, void*) {
  PyObject* make = registered("signature_from_text");
  Ref text(get_text_signature(self, nullptr));
  if (!make || !text) return PyErr_Format(PyExc_AttributeError, "__signature__");
  return PyObject_CallOneArg(make, text.get());
}
PyObject* reduce(PyObject* self, PyObject*) {
  const auto& f = *reinterpret_cast<OpFunctionObject*>(self);
  PyObject* find = registered("find_public");
  if (!find) return nullptr;
  std::string path = f.keywords_only ? std::string("raw_ops.") + f.op->name : f.op->public_name();
  return Py_BuildValue("O(s)", find, path.c_str());
}

// Programs that look at functions (`inspect`, the serializers of Keras) take one without Python code for a function
// that takes anything, as TensorFlow's are.
PyObject* get_class(PyObject*, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(&PyFunction_Type)); }
PyObject* get_of_function(PyObject*, void* name) {
  PyObject* function = registered("function_of_primitives");
  const char* text = static_cast<const char*>(name);
  return function ? PyObject_GetAttrString(function, text) : PyErr_Format(PyExc_AttributeError, "%s", text);
}
PyGetSetDef of_function(const char* name) { return {name, get_of_function, nullptr, nullptr, const_cast<char*>(name)}; }

PyGetSetDef properties[] = {
    {"__class__", get_class, nullptr, nullptr, nullptr},
    of_function("__code__"),
    of_function("__globals__"),
    of_function("__defaults__"),
    of_function("__kwdefaults__"),
    of_function("__closure__"),
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_name, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__text_signature__", get_text_signature, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpFunctionObject, call), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(OpFunctionObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
// The module that holds the function under its name: serializers find it there. The type has a `__module__` of its own,
// so this is no property.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "__module__") != 0) return PyObject_GenericGetAttr(self, name);
  const auto& f = *reinterpret_cast<OpFunctionObject*>(self);
  const std::string path = f.keywords_only ? "raw_ops." : f.op->public_name();
  const size_t dot = path.rfind('.');
  return PyUnicode_FromString(("tapeflow" + (dot == path.npos ? "" : "." + path.substr(0, dot))).c_str());
}
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(op_function_dealloc)},
    {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(op_function_repr)},
    {Py_tp_descr_get, reinterpret_cast<void*>(function_get)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, nullptr},
};
PyType_Spec spec = {"tapeflow.OpFunction", sizeof(OpFunctionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

PyObject* make_function(const Op& op, bool keywords_only) {
  Ref self = checked(op_function_type->tp_alloc(op_function_type, 0));
  auto* f = reinterpret_cast<OpFunctionObject*>(self.get());
  f->call = call_op;
  f->op = &op;
  f->keywords_only = keywords_only;
  f->only_tensors = !keywords_only && op.arguments.size() <= kFewTensors &&
                    std::all_of(op.arguments.begin(), op.arguments.end(),
                                [](const Argument& a) { return a.kind == Argument::Kind::tensor && a.required; });
  if (op.arguments.size() >= kMaxArguments) fail(ErrorKind::runtime, op.name, " has too many arguments");
  f->names = checked(PyTuple_New(Py_ssize_t(op.arguments.size()) + 1)).release();
  for (size_t i = 0; i <= op.arguments.size(); ++i) {
    const char* name = i < op.arguments.size() ? op.arguments[i].name : "name";
    PyTuple_SET_ITEM(f->names, Py_ssize_t(i), PyUnicode_InternFromString(name));
  }
  return self.release();
}

const char* kind_word(Argument::Kind kind) {
  static const char* words[] = {"tensor", "tensors", "flag", "integer", "real", "dtype", "axes", "ints", "text"};
  return words[size_t(kind)];
}
const char* gradient_word(Gradient g) {
  return g == Gradient::rule ? "rule" : g == Gradient::none ? "none" : "missing";
}

// One row per entry: (name, function, function for raw_ops, public paths, facts)
PyObject* op_functions(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    for (const Op* op : registry()) {
      Ref function = checked(make_function(*op, false)), raw = checked(make_function(*op, true));
      Ref paths = checked(PyList_New(0));
      for (const char* path : op->names) {
        Ref text = checked(PyUnicode_FromString(path));
        PyList_Append(paths.get(), text.get());
      }
      Ref dtypes = checked(PyList_New(0)), kinds = checked(PyList_New(0));
      for (const Argument& a : op->arguments) {
        Ref kind = checked(PyUnicode_InternFromString(kind_word(a.kind)));
        PyList_Append(kinds.get(), kind.get());
        if (a.kind != Argument::Kind::tensor && a.kind != Argument::Kind::tensors) continue;
        Ref set = checked(PyList_New(0));
        for (int d = 0; d < kDTypeLimit; ++d)
          if (a.dtypes.has(DType(d))) {
            Ref text = checked(PyUnicode_FromString(name_of(DType(d))));
            PyList_Append(set.get(), text.get());
          }
        PyList_Append(dtypes.get(), set.get());
      }
      auto as_bool = [](bool value) { return value ? Py_True : Py_False; };
      const bool indexes = std::ranges::any_of(op->arguments, [](const Argument& a) {
        return a.kind == Argument::Kind::tensor && a.group < 0 && a.preferred == DType::int32;
      });
      Ref facts = checked(Py_BuildValue(
          "{s:s,s:s,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:s,s:z,s:z,s:z,s:z,s:s}", "gradient", gradient_word(op->gradient),
          "family", op->family ? op->family : "", "elementwise", as_bool(op->elementwise), "has_jvp", as_bool(op->jvp),
          "dtypes", dtypes.get(), "kinds", kinds.get(), "returns_list", as_bool(op->returns_list), "has_batch_rule",
          as_bool(op->batch), "indexes", as_bool(indexes), "copies_elements", as_bool(op->copies_elements), "node_name",
          op->node_name ? op->node_name : op->name, "advice", op->advice, "non_finite_advice", op->non_finite.result,
          "non_finite_gradient_advice", op->non_finite.gradient, "symbol", op->symbol, "public_name",
          op->public_name()));
      Ref row = checked(Py_BuildValue("(sOOOO)", op->name, function.get(), raw.get(), paths.get(), facts.get()));
      PyList_Append(list.get(), row.get());
    }
    return list.release();
  });
}

PyMethodDef functions[] = {
    {"op_functions", op_functions, METH_NOARGS, "All primitives, one row each."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_op_functions(PyObject* module) {
  Ref type = checked(PyType_FromSpec(&spec));
  op_function_type = reinterpret_cast<PyTypeObject*>(type.get());
  if (PyModule_AddObjectRef(module, "OpFunction", type.get()) < 0) throw_python_error();
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
