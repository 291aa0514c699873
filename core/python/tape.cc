// GradientTape and ForwardAccumulator as Python sees them, and rules written in Python (tf.custom_gradient).
#include "autodiff/tape.h"
#include "transforms/differentiate.h"

#include <algorithm>
#include <memory>
#include <new>

#include "autodiff/forward.h"
#include "autodiff/numerics.h"
#include "graph/run.h"
#include "ops/ops.h"
#include "python/common.h"
#include "python/graph.h"
#include "vmap/jacobian.h"

namespace tapeflow::python {
namespace {

// ---- what may be watched or differentiated

// A tensor or a variable, possibly behind an object (such as a Keras variable) that shows one as its `handle`.
Ref resolve(PyObject* o) {
  if (is_tensor(o) || is_variable(o)) return Ref::share(o);
  Ref handle(PyObject_GetAttrString(o, "handle"));
  if (handle && is_variable(handle.get())) return handle;
  PyErr_Clear();
  return Ref();
}

[[noreturn]] void fail_not_tensor(PyObject* o, const char* who) {
  Ref text = checked(PyObject_Repr(o));
  fail(ErrorKind::value, who, ": Passed in object ", PyUnicode_AsUTF8(text.get()), " of type '", Py_TYPE(o)->tp_name,
       "', not tf.Tensor or tf.Variable or ExtensionType.");
}

// IndexedSlices and other structures of tensors stand for the tensor they give when converted.
Ref resolve_or_fail(PyObject* o, const char* who) {
  Ref found = resolve(o);
  if (found) return found;
  PyObject* slices = registered("IndexedSlices");
  if (slices && PyObject_IsInstance(o, slices) == 1)
    return Ref(wrap(to_tensor(o, DType::invalid, DType::invalid, who)));
  fail_not_tensor(o, who);
}

// The tensors of an object that consists of several, such as a ragged tensor; nothing for other objects.
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
// One value everywhere, in the shape of a tensor or variable, which need not be known yet.
Tensor filled_as(PyObject* o, const Spec& spec, double value) {
  return spec.shape.fully_known() ? filled(spec.dtype, spec.shape, value) : filled_like(operand(o), value);
}

bool same_value(PyObject* a, PyObject* b) {
  if (is_tensor(a) != is_tensor(b)) return false;
  return is_tensor(a) ? tensor_of(a).body() == tensor_of(b).body() : &variable_of(a) == &variable_of(b);
}

void warn(const char* name, DType d) {
  PyObject* function = registered(name);
  if (!function) return;
  Ref dtype = checked(wrap_dtype(d));
  checked(PyObject_CallOneArg(function, dtype.get()));
}

// ---- GradientTape

struct TapeObject {
  PyObject_HEAD Tape* tape;
  bool strict;  // a gradient that would be None is an error
};
Tape& tape_of(PyObject* self) { return *reinterpret_cast<TapeObject*>(self)->tape; }

PyObject* tape_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  int persistent = 0, watch_accessed = 1, strict = 0;
  if (PyTuple_GET_SIZE(args) || kwargs) {
    static const char* names[] = {"persistent", "watch_accessed_variables", "strict", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pp$p:GradientTape", const_cast<char**>(names), &persistent,
                                     &watch_accessed, &strict))
      return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  reinterpret_cast<TapeObject*>(self)->tape = new_in_block<Tape>(persistent, watch_accessed, true);
  reinterpret_cast<TapeObject*>(self)->strict = strict;
  return self;
}

void tape_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete_in_block(reinterpret_cast<TapeObject*>(self)->tape);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* tape_enter(PyObject* self, PyObject*) {
  return guarded([&] {
    tape_of(self).start();
    return Py_NewRef(self);
  });
}
PyObject* tape_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  tape_of(self).close();
  Py_RETURN_NONE;
}
PyObject* tape_pause(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!tape_of(self).recording()) fail(ErrorKind::runtime, "GradientTape.stop_recording: Tape is not recording.");
    tape_of(self).pause();
    Py_RETURN_NONE;
  });
}
PyObject* tape_resume(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    tape_of(self).resume();
    Py_RETURN_NONE;
  });
}

PyObject* tape_watch(PyObject* self, PyObject* structure) {
  return guarded([&]() -> PyObject* {
    SmallVector<PyObject*, 8> leaves;
    flatten(structure, leaves);
    for (PyObject* o : leaves) {
      if (Ref parts = resolve(o) ? Ref() : parts_of(o)) {
        Ref done = checked(tape_watch(self, parts.get()));
        continue;
      }
      Ref x = resolve_or_fail(o, "GradientTape.watch");
      if (!differentiable.has(dtype_of_resolved(x.get()))) warn("warn_watched_dtype", dtype_of_resolved(x.get()));
      if (is_variable(x.get()))
        tape_of(self).watch(variable_of(x.get()));
      else
        tape_of(self).watch(tensor_of(x.get()));
    }
    Py_RETURN_NONE;
  });
}

PyObject* tape_watched_variables(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    std::vector<VariableObject*> found;
    for (VariableBody* v : tape_of(self).watched_variables())
      if (v->wrapper) found.push_back(static_cast<VariableObject*>(v->wrapper));
    std::ranges::sort(found, {}, &VariableObject::number);
    Ref tuple = checked(PyTuple_New(Py_ssize_t(found.size())));
    for (size_t i = 0; i < found.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), Py_NewRef(reinterpret_cast<PyObject*>(found[i])));
    return tuple.release();
  });
}

PyObject* tape_reset(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!tape_of(self).recording()) fail(ErrorKind::value, "GradientTape.reset: Tape is not recording.");
    tape_of(self).reset();
    Py_RETURN_NONE;
  });
}

struct GradientArguments {
  PyObject *target = nullptr, *sources = nullptr, *output_gradients = Py_None, *unconnected = nullptr;
};

GradientArguments parse_gradient_arguments(PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  static const char* names[] = {"target", "sources", "output_gradients", "unconnected_gradients"};
  PyObject* slot[4] = {};
  if (n > 4) fail(ErrorKind::type, "GradientTape.gradient() takes at most 4 arguments; got ", n);
  for (Py_ssize_t i = 0; i < n; ++i) slot[i] = args[i];
  for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); ++k) {
    PyObject* key = PyTuple_GET_ITEM(keywords, k);
    int at = 0;
    while (at < 4 && PyUnicode_CompareWithASCIIString(key, names[at]) != 0) ++at;
    if (at == 4)
      fail(ErrorKind::type, "GradientTape.gradient() got an unexpected keyword argument '", PyUnicode_AsUTF8(key), "'");
    slot[at] = args[n + k];
  }
  if (!slot[0] || !slot[1]) fail(ErrorKind::type, "GradientTape.gradient() needs `target` and `sources`");
  return {slot[0], slot[1], slot[2] ? slot[2] : Py_None, slot[3]};
}

bool wants_zeros(PyObject* unconnected) {
  if (!unconnected) return false;
  Ref value(PyObject_GetAttrString(unconnected, "value"));
  if (!value) {
    PyErr_Clear();
    value = Ref::share(unconnected);
  }
  if (PyUnicode_Check(value.get())) {
    if (PyUnicode_CompareWithASCIIString(value.get(), "none") == 0) return false;
    if (PyUnicode_CompareWithASCIIString(value.get(), "zero") == 0) return true;
  }
  Ref text = checked(PyObject_Repr(unconnected));
  fail(ErrorKind::value,
       "GradientTape.gradient: Unknown value for unconnected_gradients: ", PyUnicode_AsUTF8(text.get()),
       "; it must be 'none', 'zero' or a tf.UnconnectedGradients.");
}

constexpr const char* kUsedUp =
    "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians). Make the tape with "
    "persistent=True to ask it more than once.";

PyObject* tape_gradient(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    Tape& tape = tape_of(self);
    GradientArguments a = parse_gradient_arguments(args, n, keywords);
    if (tape.used_up()) fail(ErrorKind::runtime, kUsedUp);
    bool zeros_for_none = wants_zeros(a.unconnected);
    if (a.target == Py_None)
      fail(ErrorKind::type,
           "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to be "
           "differentiated, but received None.");
    if (a.sources == Py_None)
      fail(ErrorKind::type,
           "Argument `sources` should be a list or nested structure of Tensors or Variables, but received None.");

    SmallVector<PyObject*, 8> target_leaves, source_leaves, cotangent_leaves;
    flatten(a.target, target_leaves);
    flatten(a.sources, source_leaves);
    if (a.output_gradients != Py_None) {
      flatten(a.output_gradients, cotangent_leaves);
      if (cotangent_leaves.size() != target_leaves.size())
        fail(ErrorKind::value, "GradientTape.gradient: output_gradients must have the structure of target; got ",
             cotangent_leaves.size(), " for ", target_leaves.size(), " targets");
    }

    for (auto* leaves : {&source_leaves, &target_leaves})
      for (PyObject* leaf : *leaves)
        if (leaf != Py_None && !resolve(leaf) && parts_of(leaf))
          return PyObject_CallFunctionObjArgs(registered("composite_gradient"), self, a.target, a.sources,
                                              a.output_gradients, a.unconnected ? a.unconnected : Py_None, nullptr);

    std::vector<std::pair<size_t, Tensor>> direct;  // sources that are targets although the tape never saw them
    SmallVector<ValueIndex, 8> targets, sources;
    SmallVector<Spec, 4> target_specs;
    SmallVector<Tensor, 8> cotangents;
    SmallVector<Ref, 8> resolved_sources;
    for (size_t i = 0; i < source_leaves.size(); ++i) {
      resolved_sources.push_back(resolve_or_fail(source_leaves[i], "GradientTape.gradient"));
      PyObject* s = resolved_sources.back().get();
      if (!differentiable.has(dtype_of_resolved(s))) warn("warn_source_dtype", dtype_of_resolved(s));
      sources.push_back(is_tensor(s) ? tape.find(tensor_of(s)) : tape.find(variable_of(s)));
    }
    for (size_t i = 0; i < target_leaves.size(); ++i) {
      if (target_leaves[i] == Py_None) continue;
      Ref t = resolve_or_fail(target_leaves[i], "GradientTape.gradient");
      Spec spec = spec_of_resolved(t.get());
      if (!differentiable.has(spec.dtype)) {
        warn("warn_target_dtype", spec.dtype);
        continue;
      }
      targets.push_back(is_tensor(t.get()) ? tape.find(tensor_of(t.get())) : tape.find(variable_of(t.get())));
      Tensor dy;
      if (!cotangent_leaves.empty() && cotangent_leaves[i] != Py_None) {
        dy = to_tensor(cotangent_leaves[i], spec.dtype, DType::invalid, "GradientTape.gradient");
        bool known = dy.size() >= 0 && spec.shape.fully_known();
        if (known && !(dy.shape() == spec.shape)) {
          Shape both;
          if (!broadcast(dy.shape(), spec.shape, &both) || !(both == spec.shape))
            fail(ErrorKind::invalid_argument,
                 "GradientTape.gradient: output_gradients must have the target's shape; Incompatible shapes: ",
                 dy.shape(), " vs. ", spec.shape);
          dy = broadcast_to(dy, spec.shape);
        }
      }
      if (targets.back() == kNotFollowed)
        for (size_t s = 0; s < resolved_sources.size(); ++s)
          if (same_value(resolved_sources[s].get(), t.get()))
            direct.emplace_back(s, dy ? dy : filled_as(t.get(), spec, 1));
      if (!dy && !spec.shape.fully_known()) dy = filled_as(t.get(), spec, 1);
      target_specs.push_back(spec);
      cotangents.push_back(std::move(dy));
    }
    if (tape.recording() && !tape.persistent()) tape.stop();
    bool strict = reinterpret_cast<TapeObject*>(self)->strict && !zeros_for_none;
    BlockVector<Cotangent> flow = tape.gradient(targets, target_specs, cotangents, sources, strict);

    for (auto& [s, dy] : direct) accumulate(flow[s], {dy, Tensor()}, dy.shape());
    if (strict) {
      for (size_t i = 0; i < flow.size(); ++i)
        if (!flow[i])
          checked(PyObject_CallFunctionObjArgs(registered("refuse_none"), self, a.target, source_leaves[i], nullptr));
      if (!tape.persistent()) tape.use_up();
    }

    SmallVector<Ref, 8> results;
    for (size_t i = 0; i < flow.size(); ++i) {
      Spec spec = spec_of_resolved(resolved_sources[i].get());
      if (!flow[i] && zeros_for_none) flow[i].values = filled_as(resolved_sources[i].get(), spec, 0);
      results.push_back(checked(wrap_cotangent(flow[i], spec.shape)));
    }
    return pack_like(a.sources, results);
  });
}

// _jacobian(target, sources, by_example, chunk): the Jacobian of the target (of each example of it) by each source of a
// flat list; None where there is no path.
PyObject* tape_jacobian(PyObject* self, PyObject* args) {
  PyObject *target, *source_list;
  int by_example;
  long long chunk;
  if (!PyArg_ParseTuple(args, "OO!pL:_jacobian", &target, &PyList_Type, &source_list, &by_example, &chunk))
    return nullptr;
  return guarded([&]() -> PyObject* {
    Tape& tape = tape_of(self);
    if (tape.used_up()) fail(ErrorKind::runtime, kUsedUp);
    Ref t = resolve_or_fail(target, "GradientTape.jacobian");
    SmallVector<ValueIndex, 8> sources;
    SmallVector<Shape, 4> shapes;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(source_list); ++i) {
      Ref s = resolve_or_fail(PyList_GET_ITEM(source_list, i), "GradientTape.jacobian");
      sources.push_back(is_tensor(s.get()) ? tape.find(tensor_of(s.get())) : tape.find(variable_of(s.get())));
      shapes.push_back(spec_of_resolved(s.get()).shape);
    }
    ValueIndex index = is_tensor(t.get()) ? tape.find(tensor_of(t.get())) : tape.find(variable_of(t.get()));
    if (tape.recording() && !tape.persistent()) tape.stop();
    Tensors jacobians;
    jacobians.resize(sources.size());
    if (differentiable.has(dtype_of_resolved(t.get())))
      jacobians = find_jacobian(tape, {index, operand(t.get()), sources, std::span(shapes.begin(), shapes.size()),
                                       bool(by_example), int64_t(chunk)});
    bool strict = reinterpret_cast<TapeObject*>(self)->strict;
    for (size_t s = 0; strict && s < jacobians.size(); ++s)
      if (!jacobians[s])
        checked(PyObject_CallFunctionObjArgs(registered("refuse_none"), self, target,
                                             PyList_GET_ITEM(source_list, Py_ssize_t(s)), nullptr));
    if (!tape.persistent()) tape.use_up();
    Ref result = checked(PyList_New(0));
    for (const Tensor& j : jacobians) {
      Ref item = j ? checked(wrap(j)) : Ref::share(Py_None);
      if (PyList_Append(result.get(), item.get()) < 0) throw_python_error();
    }
    return result.release();
  });
}

// The indices as Python numbers; what is not known is left out.
Ref index_list(std::span<const ValueIndex> indices) {
  Ref list = checked(PyList_New(0));
  for (ValueIndex i : indices) {
    if (i == kNotFollowed) continue;
    Ref index = checked(PyLong_FromUnsignedLong(i));
    if (PyList_Append(list.get(), index.get()) < 0) throw_python_error();
  }
  return list;
}
PyObject* code_or_none(const Location& l) { return l.code ? static_cast<PyObject*>(l.code) : Py_None; }

// _records(): for each record, the operation's public name, the code object and instruction it came from, the bytes of
// the tensors it keeps, the indices of its inputs, those of its outputs, whether its gradient stops, and the dtypes of
// the outputs.
PyObject* tape_records(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    tape_of(self).visit_records([&](const Tape::RecordView& r) {
      Ref inputs = index_list(r.inputs), outputs = checked(PyList_New(0)), dtypes = checked(PyList_New(0));
      for (int i = 0; i < r.outputs; ++i) {
        Ref index = checked(PyLong_FromUnsignedLong(r.first_output + ValueIndex(i)));
        Ref dtype = checked(PyUnicode_FromString(name_of(r.output_forms[size_t(i)].dtype)));
        if (PyList_Append(outputs.get(), index.get()) < 0 || PyList_Append(dtypes.get(), dtype.get()) < 0)
          throw_python_error();
      }
      Ref row = checked(Py_BuildValue("(sOinOOOO)", r.op.public_name() ? r.op.public_name() : r.op.name,
                                      code_or_none(r.location), r.location.instruction, Py_ssize_t(r.kept_bytes),
                                      inputs.get(), outputs.get(), r.op.gradient == Gradient::none ? Py_True : Py_False,
                                      dtypes.get()));
      if (PyList_Append(list.get(), row.get()) < 0) throw_python_error();
    });
    return list.release();
  });
}

// _notes(): for each note, what happened, the operation, the code object and instruction, how many records there were,
// the indices of its inputs and outputs, and what the tape was doing.
PyObject* tape_notes(PyObject* self, PyObject*) {
  static const char* events[] = {"operation", "constant", "numpy",  "number", "truth",
                                 "shape",     "argument", "assign", "watch"};
  static const char* moments[] = {"open", "paused", "closed"};
  return guarded([&]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    tape_of(self).trace().visit_notes([&](const Note& n, std::span<const ValueIndex> in) {
      Ref inputs = index_list(in), outputs = checked(PyList_New(0));
      for (int i = 0; i < n.outputs; ++i) {
        Ref index = checked(PyLong_FromUnsignedLong(n.first_output + ValueIndex(i)));
        if (PyList_Append(outputs.get(), index.get()) < 0) throw_python_error();
      }
      const char* name = !n.op ? nullptr : n.op->public_name() ? n.op->public_name() : n.op->name;
      Ref row = checked(Py_BuildValue("(szOiIOOs)", events[int(n.event)], name, code_or_none(n.location),
                                      n.location.instruction, n.records, inputs.get(), outputs.get(),
                                      moments[int(n.moment)]));
      if (PyList_Append(list.get(), row.get()) < 0) throw_python_error();
    });
    return list.release();
  });
}

PyObject* describe_leaf(const Leaf& leaf) {
  return Py_BuildValue("(sLKK)", name_of(leaf.dtype), static_cast<long long>(leaf.size),
                       static_cast<unsigned long long>(leaf.first), static_cast<unsigned long long>(leaf.last));
}

// _leaves(): by index, what a value that no operation made can be recognised by, and whether it was made for its use.
PyObject* tape_leaves(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref map = checked(PyDict_New());
    tape_of(self).trace().visit_leaves([&](const Leaf& leaf) {
      Ref index = checked(PyLong_FromUnsignedLong(leaf.index)), about = checked(describe_leaf(leaf));
      Ref row = checked(PyTuple_Pack(2, about.get(), leaf.fresh ? Py_True : Py_False));
      if (PyDict_SetItem(map.get(), index.get(), row.get()) < 0) throw_python_error();
    });
    return map.release();
  });
}

// _likeness(tensor or variable): what _leaves() would say of it.
PyObject* tape_likeness(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Ref x = resolve_or_fail(o, "GradientTape.explain");
    Tensor t = is_tensor(x.get()) ? tensor_of(x.get()) : variable_of(x.get()).value;
    return describe_leaf(describe(kNotFollowed, t));
  });
}

// _opened_at(), _used_up_at() and _reset_at(): a code object (or None) and an instruction in it.
PyObject* tape_opened_at(PyObject* self, PyObject*) {
  const Location& l = tape_of(self).opened_at();
  return Py_BuildValue("(Oi)", code_or_none(l), l.instruction);
}
PyObject* tape_used_up_at(PyObject* self, PyObject*) {
  const Location& l = tape_of(self).used_up_at();
  return Py_BuildValue("(Oi)", code_or_none(l), l.instruction);
}
PyObject* tape_reset_at(PyObject* self, PyObject*) {
  const Location& l = tape_of(self).reset_at();
  return Py_BuildValue("(Oi)", code_or_none(l), l.instruction);
}

// _forgot(tensor or variable): "reset" or "used up" if it was on this tape before that, else None.
PyObject* tape_forgot(PyObject* self, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Ref x = resolve_or_fail(o, "GradientTape.explain");
    const Marks& marks = is_tensor(x.get()) ? tensor_of(x.get()).body()->marks : variable_of(x.get()).marks;
    if (!tape_of(self).forgot(marks)) Py_RETURN_NONE;
    return PyUnicode_FromString(tape_of(self).forgot_by_reset() ? "reset" : "used up");
  });
}

// _elsewhere(tensor or variable): the code object and instruction where another living tape recorded it, or None.
PyObject* tape_elsewhere(PyObject* self, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Ref x = resolve_or_fail(o, "GradientTape.explain");
    const Marks& marks = is_tensor(x.get()) ? tensor_of(x.get()).body()->marks : variable_of(x.get()).marks;
    for (const Mark& mark : marks.slot) {
      Watcher* owner = Watcher::owner(mark.tape);
      if (!owner || owner == &tape_of(self) || owner->kind() != Watcher::Kind::tape || !is_followed(mark.value))
        continue;
      Location at;
      static_cast<Tape*>(owner)->visit_records([&](const Tape::RecordView& r) {
        if (mark.value >= r.first_output && mark.value < r.first_output + ValueIndex(r.outputs)) at = r.location;
      });
      return Py_BuildValue("(Oi)", code_or_none(at), at.instruction);
    }
    Py_RETURN_NONE;
  });
}

// _index_of(tensor or variable): where it is followed on this tape or known to it, or None.
PyObject* tape_index_of(PyObject* self, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Ref x = resolve_or_fail(o, "GradientTape.explain");
    ValueIndex i = is_tensor(x.get()) ? tape_of(self).find_known(tensor_of(x.get()))
                                      : tape_of(self).find_known(variable_of(x.get()));
    return i == kNotFollowed ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(i);
  });
}

PyObject* get_persistent(PyObject* self, void*) { return PyBool_FromLong(tape_of(self).persistent()); }
PyObject* get_recording(PyObject* self, void*) { return PyBool_FromLong(tape_of(self).recording()); }
PyObject* get_watches_accessed(PyObject* self, void*) {
  return PyBool_FromLong(tape_of(self).watches_accessed_variables());
}
PyObject* get_used_up(PyObject* self, void*) { return PyBool_FromLong(tape_of(self).used_up()); }

template <class F> PyCFunction method(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef tape_methods[] = {
    {"__enter__", tape_enter, METH_NOARGS, nullptr},
    {"__exit__", method(tape_exit), METH_FASTCALL, nullptr},
    {"_pause", tape_pause, METH_NOARGS, nullptr},
    {"_resume", tape_resume, METH_NOARGS, nullptr},
    {"watch", tape_watch, METH_O, "Follows a tensor, a variable, or a nested structure of them."},
    {"watched_variables", tape_watched_variables, METH_NOARGS,
     "The variables that the tape follows, in the order in which they were made."},
    {"_records", tape_records, METH_NOARGS, nullptr},
    {"_index_of", tape_index_of, METH_O, nullptr},
    {"_notes", tape_notes, METH_NOARGS, nullptr},
    {"_leaves", tape_leaves, METH_NOARGS, nullptr},
    {"_likeness", tape_likeness, METH_O, nullptr},
    {"_opened_at", tape_opened_at, METH_NOARGS, nullptr},
    {"_used_up_at", tape_used_up_at, METH_NOARGS, nullptr},
    {"_reset_at", tape_reset_at, METH_NOARGS, nullptr},
    {"_forgot", tape_forgot, METH_O, nullptr},
    {"_elsewhere", tape_elsewhere, METH_O, nullptr},
    {"_jacobian", tape_jacobian, METH_VARARGS, nullptr},
    {"reset", tape_reset, METH_NOARGS, "Forgets everything recorded so far."},
    {"gradient", method(tape_gradient), METH_FASTCALL | METH_KEYWORDS,
     "Derivatives of `target` by each of `sources`, in the structure of `sources`.\n\n"
     "Several targets, and the elements of one, are added up. `output_gradients` weighs the elements of the targets.\n"
     "A source that the target does not depend on gives None, or zeros with unconnected_gradients='zero'."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef tape_properties[] = {
    {"_persistent", get_persistent, nullptr, nullptr, nullptr},
    {"_recording", get_recording, nullptr, nullptr, nullptr},
    {"_watches_accessed_variables", get_watches_accessed, nullptr, nullptr, nullptr},
    {"_used_up", get_used_up, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot tape_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(tape_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(tape_dealloc)},
    {Py_tp_methods, tape_methods},
    {Py_tp_getset, tape_properties},
    {0, nullptr},
};
PyType_Spec tape_spec = {"tapeflow._src._core.GradientTape", sizeof(TapeObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, tape_slots};

// ---- ForwardAccumulator

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
           directions >= 0 ? ", with the directions in front" : "", "; got ", t.shape(), " for ", spec.shape,
           ". Shapes ", t.shape(), " and ", wanted, " are incompatible");
    if (!differentiable.has(spec.dtype)) warn("warn_watched_dtype", spec.dtype);
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
PyObject* accumulator_follow_directions(PyObject* self, PyObject* count) {
  return guarded([&]() -> PyObject* {
    accumulator_of(self).follow_directions(to_integer(count, "ForwardAccumulator", "tangents"));
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
    {"_follow_directions", accumulator_follow_directions, METH_O, nullptr},
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

// ---- rules written in Python

// The rule of a custom operation: a callable from the list of dy to the list of dx, one per input, None for no
// gradient.
void call_python_rule(RuleContext& c) {
  auto* rule = static_cast<PyObject*>(c.params[0].object.get());
  Ref dy = checked(PyList_New(0));
  for (const Tensor& t : c.given) {
    Ref item = t ? checked(wrap(t)) : Ref::share(Py_None);
    if (PyList_Append(dy.get(), item.get()) < 0) throw_python_error();
  }
  Ref results = checked(PyObject_CallOneArg(rule, dy.get()));
  Ref items = checked(PySequence_Fast(results.get(), "a gradient function must return a list"));
  PyObject* slices = registered("IndexedSlices");
  int first = c.params.size() > 2 ? int(c.params.integer(2)) : 0;  // as a node of a graph, the outputs are inputs too
  for (int i = first; i < c.inputs(); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i - first);
    if (item == Py_None || !c.wants(i)) continue;
    if (slices && PyObject_IsInstance(item, slices) == 1) {
      Ref values = checked(PyObject_GetAttrString(item, "values")),
          indices = checked(PyObject_GetAttrString(item, "indices"));
      c.set_rows(i, to_tensor(values.get(), c.dtype(i), DType::invalid, "custom_gradient"),
                 to_tensor(indices.get(), DType::invalid, DType::int32, "custom_gradient"));
    } else {
      c.set(i, to_tensor(item, c.dtype(i), DType::invalid, "custom_gradient"));
    }
  }
}

// The forward rule of a custom operation: a callable from the list of x_dot (None where nothing flows) to that of
// y_dot.
void call_python_forward_rule(RuleContext& c) {
  auto* rule = static_cast<PyObject*>(c.params[1].object.get());
  Ref x_dot = checked(PyList_New(0));
  for (const Tensor& t : c.given) {
    Ref item = t ? checked(wrap(t)) : Ref::share(Py_None);
    if (PyList_Append(x_dot.get(), item.get()) < 0) throw_python_error();
  }
  Ref results = checked(PyObject_CallOneArg(rule, x_dot.get()));
  Ref items = checked(PySequence_Fast(results.get(), "a forward rule must return a list"));
  for (int j = 0; j < c.outputs(); ++j) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), j);
    if (item != Py_None)
      c.set(j, to_tensor(item, c.kept_outputs[size_t(j)].dtype(), DType::invalid, "custom_gradient"));
  }
}

const Op& custom_op(bool with_forward_rule) {
  static const Op& op = define_inner(Op{.name = "CustomGradient",
                                        .arguments = {},
                                        .vjp = call_python_rule,
                                        .rule_of_its_own = true,
                                        .names = {"custom_gradient"}});
  static const Op& both = define_inner(Op{.name = "CustomGradient",
                                          .arguments = {},
                                          .vjp = call_python_rule,
                                          .jvp = call_python_forward_rule,
                                          .rule_of_its_own = true,
                                          .names = {"custom_gradient"}});
  return with_forward_rule ? both : op;
}

// The same as a node of a graph: takes the outputs and then the inputs, and gives the outputs.
int staged_outputs(const Params& params) { return int(params.integer(2)); }

const Op& staged_custom_op() {
  static const Op& op = define_inner(Op{
      .name = "CustomGradient",
      .arguments = {tensors("outputs_and_inputs", any_dtype)},
      .infer_staged =
          [](Call& call) {
            for (int i = 0; i < staged_outputs(call.params); ++i)
              call.returns(call.in[size_t(i)].dtype(), call.in[size_t(i)].shape());
          },
      .kernel =
          [](Call& call) {
            for (int i = 0; i < staged_outputs(call.params); ++i)
              call.out.push_back(call.in[size_t(i)].view(call.in[size_t(i)].shape()));
          },
      .makes_outputs = true,
      .vjp = call_python_rule,
      .jvp =
          [](RuleContext& c) {
            for (int i = 0; i < staged_outputs(c.params); ++i) c.set(i, c.x_dot(i));
          },
      .rule_of_its_own = true,
      .names = {"custom_gradient"},
  });
  return op;
}

// A custom operation whose rule was traced, too: takes the outputs, the inputs, and what the graph of the rule takes
// besides the dy; gives the outputs.
struct TracedRule {
  std::shared_ptr<Graph> graph;
  int outputs, inputs;
  SmallVector<int, 8> kinds;  // per input: 0 no gradient, 1 a tensor, 2 rows and their numbers
};
const TracedRule& traced_rule(const Params& params) { return *static_cast<const TracedRule*>(params[0].object.get()); }

const Op& traced_custom_op() {
  static const Op& op = define_inner(Op{
      .name = "CustomGradient",
      .arguments = {tensors("outputs_inputs_and_captures", any_dtype)},
      .infer_staged =
          [](Call& call) {
            for (const Tensor& t : call.in.subspan(0, size_t(traced_rule(call.params).outputs)))
              call.returns(t.dtype(), t.shape());
          },
      .kernel =
          [](Call& call) {
            for (const Tensor& t : call.in.subspan(0, size_t(traced_rule(call.params).outputs)))
              call.out.push_back(t.view(t.shape()));
          },
      .makes_outputs = true,
      .vjp =
          [](RuleContext& c) {
            const TracedRule& rule = traced_rule(c.params);
            Tensors in;
            for (int j = 0; j < rule.outputs; ++j) in.push_back(c.has_dy(j) ? c.dy(j) : zeros_like(c.x(j)));
            for (int i = rule.outputs + rule.inputs; i < c.inputs(); ++i) in.push_back(c.x(i));
            Tensors dx = call_graph(rule.graph, in);
            size_t next = 0;
            for (int i = 0; i < rule.inputs; ++i) {
              int kind = rule.kinds[size_t(i)], place = rule.outputs + i;
              if (kind == 0) continue;
              Tensor values = dx[next++], rows = kind == 2 ? dx[next++] : Tensor();
              if (!c.wants(place)) continue;
              if (rows)
                c.set_rows(place, values, rows);
              else
                c.set(place, values);
            }
          },
      .jvp =
          [](RuleContext& c) {
            for (int i = 0; i < traced_rule(c.params).outputs; ++i) c.set(i, c.x_dot(i));
          },
      .keep = keep_all_inputs,
      .rule_of_its_own = true,
      .names = {"custom_gradient"},
  });
  return op;
}

std::shared_ptr<TracedRule> traced_rule_from(int outputs, int inputs, PyObject* graph, PyObject* kinds) {
  auto rule = std::make_shared<TracedRule>();
  rule->graph = checked_graph(graph);
  rule->outputs = outputs;
  rule->inputs = inputs;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(kinds); ++i)
    rule->kinds.push_back(int(PyLong_AsLong(PyList_GET_ITEM(kinds, i))));
  return rule;
}

// record_traced(outputs, inputs, captures, graph, kinds): the same for a rule that was traced into a graph.
PyObject* record_traced(PyObject*, PyObject* args) {
  PyObject *outputs, *inputs, *captures, *graph, *kinds;
  if (!PyArg_ParseTuple(args, "O!O!O!OO!:record_traced", &PyList_Type, &outputs, &PyList_Type, &inputs, &PyList_Type,
                        &captures, &graph, &PyList_Type, &kinds))
    return nullptr;
  return guarded([&] {
    auto rule = traced_rule_from(int(PyList_GET_SIZE(outputs)), int(PyList_GET_SIZE(inputs)), graph, kinds);
    SmallVector<Tensor, 8> in;
    for (PyObject* list : {outputs, inputs, captures})
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) in.push_back(operand(PyList_GET_ITEM(list, i)));
    return wrap_list(run_all(traced_custom_op(), in, {Param(std::static_pointer_cast<void>(rule))}));
  });
}

std::shared_ptr<void> shared(PyObject* o) {
  return std::shared_ptr<void>(Py_NewRef(o), [](void* held) { Py_DECREF(static_cast<PyObject*>(held)); });
}

// In forward mode the function's own operations have been followed. If they left no tangent, the rule is asked for one.
bool pass_tangents(ForwardAccumulator& accumulator, PyObject* outputs, const Call& call) {
  bool any = false;
  for (size_t i = 0; i < call.out.size(); ++i) {
    Tensor tangent = accumulator.tangent(tensor_of(PyList_GET_ITEM(outputs, Py_ssize_t(i))));
    if (!tangent) continue;
    accumulator.watch(call.out[i], tangent);
    any = true;
  }
  return any;
}

// record_operation(outputs, inputs, rule, forward_rule=None): tells the open recorders that `outputs` came from
// `inputs` by an operation with these rules. Gives new tensors with the outputs' elements; those are what is recorded.
PyObject* record_operation(PyObject*, PyObject* args) {
  PyObject *outputs, *inputs, *rule, *forward_rule = Py_None;
  if (!PyArg_ParseTuple(args, "O!O!O|O:record_operation", &PyList_Type, &outputs, &PyList_Type, &inputs, &rule,
                        &forward_rule))
    return nullptr;
  return guarded([&]() -> PyObject* {
    SmallVector<Tensor, 4> in;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i) in.push_back(operand(PyList_GET_ITEM(inputs, i)));
    bool has_forward_rule = forward_rule != Py_None;
    Params params{Param(shared(rule)), Param(shared(forward_rule))};
    bool symbolic = false;
    SmallVector<Tensor, 4> both;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) both.push_back(tensor_of(PyList_GET_ITEM(outputs, i)));
    for (const Tensor& t : in) both.push_back(t);
    for (const Tensor& t : both) symbolic |= t.symbolic();
    if (thread_state().stage && symbolic)
      return wrap_list(
          run_all(staged_custom_op(), both, {params[0], params[1], Param(int64_t(PyList_GET_SIZE(outputs)))}));
    Call call(custom_op(has_forward_rule), in, params);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) {
      Tensor t = tensor_of(PyList_GET_ITEM(outputs, i));
      call.out.push_back(t.view(t.shape()));
    }
    auto& recorders = thread_state().recorders;
    for (size_t i = 0; i < recorders.size(); ++i)
      if (has_forward_rule || !recorders[i]->forward() ||
          !pass_tangents(static_cast<ForwardAccumulator&>(*recorders[i]), outputs, call))
        recorders[i]->record(call);
    return wrap_list(call.out);
  });
}

// override_gradient(graph, node, rule, traced): another rule for a node, for those who differentiate the graph as a
// whole. `rule` goes from the list of dy to that of dx; `traced` is None, or what it captures, its graph, and the kinds
// of the dx.
PyObject* override_gradient(PyObject*, PyObject* args) {
  PyObject *graph_object, *rule, *traced;
  int number;
  if (!PyArg_ParseTuple(args, "OiOO:override_gradient", &graph_object, &number, &rule, &traced)) return nullptr;
  return guarded([&]() -> PyObject* {
    Graph& graph = *checked_graph(graph_object);
    const Node& node = graph.nodes[size_t(number)];
    Graph::Override entry{
        &staged_custom_op(), {Param(shared(rule)), Param(shared(Py_None)), Param(int64_t(node.outputs))}, {}};
    if (traced != Py_None) {
      PyObject *captures, *rule_graph, *kinds;
      if (!PyArg_ParseTuple(traced, "O!OO!", &PyList_Type, &captures, &rule_graph, &PyList_Type, &kinds))
        throw_python_error();
      auto own = traced_rule_from(int(node.outputs), int(node.inputs.size()), rule_graph, kinds);
      entry.op = &traced_custom_op();
      entry.params = {Param(std::static_pointer_cast<void>(own))};
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(captures); ++i)
        entry.more.push_back(graph.id_of(operand(PyList_GET_ITEM(captures, i))));
    }
    graph.overrides.insert_or_assign(number, std::move(entry));
    Py_RETURN_NONE;
  });
}

// A context in which no tape on this thread records (forward mode goes on), or nothing at all: StopRecording(True).
struct StopObject {
  PyObject_HEAD PauseRecording* pause;
  bool everything;
  bool numerics_too;  // of everything, the search for NaN is stopped, too
};
PyObject* stop_new(PyTypeObject* type, PyObject* args, PyObject*) {
  int everything = 0, numerics_too = 1;
  if (!PyArg_ParseTuple(args, "|pp:StopRecording", &everything, &numerics_too)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (self) {
    reinterpret_cast<StopObject*>(self)->everything = everything;
    reinterpret_cast<StopObject*>(self)->numerics_too = everything && numerics_too;
  }
  return self;
}
PyObject* stop_enter(PyObject* self, PyObject*) {
  auto* o = reinterpret_cast<StopObject*>(self);
  if (!o->pause) {
    void* block = take_block(sizeof(PauseRecording));
    o->pause = o->everything ? new (block) PauseRecording : new (block) PauseRecording(PauseRecording::tapes());
    if (!o->numerics_too) NumericsCheck::listen_again();
  }
  return Py_NewRef(self);
}
PyObject* stop_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  if (PauseRecording* pause = std::exchange(reinterpret_cast<StopObject*>(self)->pause, nullptr))
    delete_in_block(pause);
  Py_RETURN_NONE;
}
void stop_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (PauseRecording* pause = reinterpret_cast<StopObject*>(self)->pause) delete_in_block(pause);
  type->tp_free(self);
  Py_DECREF(type);
}
PyMethodDef stop_methods[] = {
    {"__enter__", stop_enter, METH_NOARGS, nullptr},
    {"__exit__", method(stop_exit), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot stop_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(stop_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(stop_dealloc)},
    {Py_tp_methods, stop_methods},
    {0, nullptr},
};
PyType_Spec stop_spec = {"tapeflow._src._core.StopRecording", sizeof(StopObject), 0, Py_TPFLAGS_DEFAULT, stop_slots};

PyObject* tells_recording(PyObject*, PyObject*) { return PyBool_FromLong(is_recording()); }

// is_followed(tensor or variable): whether an open recorder would hear of what is done to it.
PyObject* tells_followed(PyObject*, PyObject* object) {
  return guarded([&] {
    Tensor t = operand(object);
    bool followed = false;
    for (const Recorder* r : thread_state().recorders) followed |= r->follows(t);
    return PyBool_FromLong(followed);
  });
}

PyMethodDef functions[] = {
    {"is_followed", tells_followed, METH_O, nullptr},
    {"record_traced", record_traced, METH_VARARGS, nullptr},
    {"override_gradient", override_gradient, METH_VARARGS, nullptr},
    {"record_operation", record_operation, METH_VARARGS, "Records an operation whose rule is a Python function."},
    {"is_recording", tells_recording, METH_NOARGS, "Whether a tape or an accumulator is open on this thread."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* wrap_cotangent(const Cotangent& c, const Shape& shape) {
  if (!c) return Py_NewRef(Py_None);
  if (!c.indices) return wrap(c.values);
  PyObject* slices = registered("IndexedSlices");
  Ref values = checked(wrap(c.values)), indices = checked(wrap(c.indices));
  Ref dense_shape = checked(wrap(int_tensor(shape.dims())));
  return PyObject_CallFunctionObjArgs(slices, values.get(), indices.get(), dense_shape.get(), nullptr);
}

void add_tape_types(PyObject* module) {
  for (auto [name, spec] : {std::pair{"GradientTape", &tape_spec},
                            {"ForwardAccumulator", &accumulator_spec},
                            {"StopRecording", &stop_spec}}) {
    Ref type = checked(PyType_FromSpec(spec));
    if (PyModule_AddObjectRef(module, name, type.get()) < 0) throw_python_error();
  }
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
