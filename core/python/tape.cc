// GradientTape as Python sees it.
#include <algorithm>
#include <memory>
#include <new>

#include "graph/run.h"
#include "ops/ops.h"
#include "python/tape.h"
#include "python/watchable.h"
#include "transforms/differentiate.h"
#include "vmap/jacobian.h"

namespace tapeflow::python {
namespace {

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

// A tape may be part of a cycle: the rule of a custom gradient that it recorded may hold the tape, and so may a
// variable.
int tape_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Tape* tape = reinterpret_cast<TapeObject*>(self)->tape;
  if (!tape || tape->recording()) return 0;  // an open tape is in use
  for (VariableBody* v : tape->watched_variables()) Py_VISIT(static_cast<PyObject*>(v->wrapper));
  int stopped = 0;
  tape->visit_params([&](const Op& op, const Params& params) {
    if (op.python_rule && !stopped) stopped = visit_python_rules(op, params, visit, arg);
  });
  return stopped;
}
int tape_clear(PyObject* self) {
  if (Tape* tape = reinterpret_cast<TapeObject*>(self)->tape) {
    tape->use_up();
    tape->release_watched();
  }
  return 0;
}
void tape_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* type = Py_TYPE(self);
  delete_in_block(reinterpret_cast<TapeObject*>(self)->tape);
  type->tp_free(self);
  Py_DECREF(type);
}

// Called with (tape, targets, sources, gradients) after each call of gradient, before the tape is used up; or null.
PyObject* gradient_observer = nullptr;
// Called with each tape that is about to record; or null.
PyObject* tape_observer = nullptr;
long long unseen_tapes = 0;  // so many tapes open before it is called again
PyObject* set_tape_observers(PyObject*, PyObject* args) {
  PyObject *opened, *gradient;
  unseen_tapes = 0;
  if (!PyArg_ParseTuple(args, "OO|L:set_tape_observers", &opened, &gradient, &unseen_tapes)) return nullptr;
  Py_XSETREF(tape_observer, opened == Py_None ? nullptr : Py_NewRef(opened));
  Py_XSETREF(gradient_observer, gradient == Py_None ? nullptr : Py_NewRef(gradient));
  Py_RETURN_NONE;
}

PyObject* tape_enter(PyObject* self, PyObject*) {
  return guarded([&] {
    if (tape_observer && --unseen_tapes < 0) {
      Ref observer = Ref::share(tape_observer);
      checked(PyObject_CallOneArg(observer.get(), self));
    }
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

PyObject* watch_structure(PyObject* self, PyObject* structure) {
  return guarded([&]() -> PyObject* {
    SmallVector<PyObject*, 8> leaves;
    flatten(structure, leaves);
    for (PyObject* o : leaves) {
      if (Ref parts = resolve(o) ? Ref() : parts_of(o)) {
        Ref done = checked(watch_structure(self, parts.get()));
        continue;
      }
      Ref x = resolve_or_fail(o, "GradientTape.watch");
      if (!differentiable.has(dtype_of_resolved(x.get())))
        warn_about_dtype("warn_watched_dtype", dtype_of_resolved(x.get()));
      if (is_variable(x.get()))
        tape_of(self).watch(variable_of(x.get()));
      else
        tape_of(self).watch(tensor_of(x.get()));
    }
    Py_RETURN_NONE;
  });
}
PyObject* tape_watch(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  bool by_keyword = keywords && PyTuple_GET_SIZE(keywords) == 1 &&
                    PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, 0), "tensor") == 0;
  if (n + Py_ssize_t(by_keyword) != 1 || (keywords && !by_keyword))
    return PyErr_Format(PyExc_TypeError, "GradientTape.watch() takes one argument, `tensor`");
  return watch_structure(self, args[0]);
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

void tell_observer(PyObject* self, std::span<PyObject* const> targets, std::span<PyObject* const> sources,
                   std::span<const Ref> gradients) {
  auto list_of = [](auto items, auto object) {
    Ref list = checked(PyList_New(Py_ssize_t(items.size())));
    for (size_t i = 0; i < items.size(); ++i) PyList_SET_ITEM(list.get(), Py_ssize_t(i), Py_NewRef(object(items[i])));
    return list;
  };
  auto itself = [](PyObject* o) { return o; };
  Ref t = list_of(targets, itself), s = list_of(sources, itself),
      g = list_of(gradients, [](const Ref& r) { return r.get(); });
  Ref observer = Ref::share(gradient_observer);
  checked(PyObject_CallFunctionObjArgs(observer.get(), self, t.get(), s.get(), g.get(), nullptr));
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
      if (!differentiable.has(dtype_of_resolved(s))) warn_about_dtype("warn_source_dtype", dtype_of_resolved(s));
      sources.push_back(is_tensor(s) ? tape.find(tensor_of(s)) : tape.find(variable_of(s)));
    }
    for (size_t i = 0; i < target_leaves.size(); ++i) {
      if (target_leaves[i] == Py_None) continue;
      Ref t = resolve_or_fail(target_leaves[i], "GradientTape.gradient");
      Spec spec = spec_of_resolved(t.get());
      if (!differentiable.has(spec.dtype)) {
        warn_about_dtype("warn_target_dtype", spec.dtype);
        continue;
      }
      targets.push_back(is_tensor(t.get()) ? tape.find(tensor_of(t.get())) : tape.find(variable_of(t.get())));
      Tensor dy;
      if (!cotangent_leaves.empty() && cotangent_leaves[i] != Py_None) {
        dy = to_tensor(cotangent_leaves[i], spec.dtype, DType::invalid, "GradientTape.gradient");
        bool known = dy.size() >= 0 && spec.shape.fully_known();
        if (known && !(dy.shape() == spec.shape)) {
          Shape both;
          if (dy.size() == 1 && spec.shape.elements() == 1)
            dy = reshape(dy, spec.shape);
          else if (!broadcast(dy.shape(), spec.shape, &both) || !(both == spec.shape))
            fail(ErrorKind::invalid_argument,
                 "GradientTape.gradient: output_gradients must have the target's shape; Incompatible shapes: ",
                 dy.shape(), " vs. ", spec.shape);
          dy = broadcast_to(dy, spec.shape);
        }
      }
      if (targets.back() == kUntracked)
        for (size_t s = 0; s < resolved_sources.size(); ++s)
          if (same_value(resolved_sources[s].get(), t.get()))
            direct.emplace_back(s, dy ? dy : filled_as(t.get(), spec, 1));
      if (!dy && !spec.shape.fully_known()) dy = filled_as(t.get(), spec, 1);
      target_specs.push_back(spec);
      cotangents.push_back(std::move(dy));
    }
    if (tape.recording() && !tape.persistent()) tape.stop();
    bool strict = reinterpret_cast<TapeObject*>(self)->strict && !zeros_for_none;
    bool observed = gradient_observer && !zeros_for_none;
    BlockVector<Cotangent> flow = tape.gradient(targets, target_specs, cotangents, sources, strict || observed);

    for (auto& [s, dy] : direct) accumulate(flow[s], {dy, Tensor()}, dy.shape());
    const bool complete = std::all_of(flow.begin(), flow.end(), [](const Cotangent& c) { return bool(c); });
    if (strict && !complete) {
      Ref missing = checked(PyList_New(0));
      for (size_t i = 0; i < flow.size(); ++i)
        if (!flow[i] && PyList_Append(missing.get(), source_leaves[i]) < 0) throw_python_error();
      checked(PyObject_CallFunctionObjArgs(registered("refuse_none"), self, a.target, missing.get(), nullptr));
    }
    if (strict && !observed && !tape.persistent()) tape.use_up();

    SmallVector<Ref, 8> results;
    for (size_t i = 0; i < flow.size(); ++i) {
      Spec spec = spec_of_resolved(resolved_sources[i].get());
      if (!flow[i] && zeros_for_none) flow[i].values = filled_as(resolved_sources[i].get(), spec, 0);
      results.push_back(checked(wrap_cotangent(flow[i], spec.shape)));
    }
    if (observed) {
      tell_observer(self, {target_leaves.begin(), target_leaves.size()}, {source_leaves.begin(), source_leaves.size()},
                    {results.begin(), results.size()});
      if (!tape.persistent() && complete) tape.use_up();
      if (!tape.persistent() && !complete) tape.release_tensors();
    } else if (!complete && !zeros_for_none && !strict) {
      Ref missing = checked(PyList_New(0));  // the numbers of the sources
      for (size_t i = 0; i < flow.size(); ++i)
        if (!flow[i] && PyList_Append(missing.get(), checked(PyLong_FromSize_t(i)).get()) < 0) throw_python_error();
      checked(
          PyObject_CallFunctionObjArgs(registered("register_none"), self, a.target, a.sources, missing.get(), nullptr));
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
    const bool complete = std::all_of(jacobians.begin(), jacobians.end(), [](const Tensor& j) { return bool(j); });
    if (!tape.persistent() && complete) tape.use_up();
    if (!tape.persistent() && !complete) tape.release_tensors();  // explanations read the rest
    Ref result = checked(PyList_New(0));
    for (const Tensor& j : jacobians) {
      Ref item = j ? checked(wrap(j)) : Ref::share(Py_None);
      if (PyList_Append(result.get(), item.get()) < 0) throw_python_error();
    }
    return result.release();
  });
}

PyObject* get_persistent(PyObject* self, void*) { return PyBool_FromLong(tape_of(self).persistent()); }
PyObject* get_recording(PyObject* self, void*) { return PyBool_FromLong(tape_of(self).recording()); }
PyObject* get_watches_accessed(PyObject* self, void*) {
  return PyBool_FromLong(tape_of(self).watches_accessed_variables());
}
PyObject* get_used_up(PyObject* self, void*) { return PyBool_FromLong(tape_of(self).used_up()); }

PyMethodDef tape_methods[] = {
    {"__enter__", tape_enter, METH_NOARGS, nullptr},
    {"__exit__", method(tape_exit), METH_FASTCALL, nullptr},
    {"_pause", tape_pause, METH_NOARGS, nullptr},
    {"_resume", tape_resume, METH_NOARGS, nullptr},
    {"watch", method(tape_watch), METH_FASTCALL | METH_KEYWORDS,
     R"(watch($self, /, tensor)
--

Watches a tensor, a variable, or a nested structure of them.

Args:
  tensor: What to watch. Its dtype must be floating or complex.

>>> x = tf.constant(3.)
>>> with tf.GradientTape() as tape:
...     tape.watch(x)
...     y = x * x
>>> tape.gradient(y, x)
<tf.Tensor: shape=(), dtype=float32, numpy=6.0>)"},
    {"watched_variables", tape_watched_variables, METH_NOARGS,
     R"(watched_variables($self, /)
--

The variables that the tape watches, in the order in which they were made.

Returns:
  A tuple of variables.)"},
    {"_records", tape_records, METH_NOARGS, nullptr},
    {"_shapes", tape_shapes, METH_NOARGS, nullptr},
    {"_rows", tape_rows, METH_NOARGS, nullptr},
    {"_kept", tape_kept, METH_NOARGS, nullptr},
    {"_index_of", tape_index_of, METH_O, nullptr},
    {"_events", tape_events, METH_NOARGS, nullptr},
    {"_leaves", tape_leaves, METH_NOARGS, nullptr},
    {"_likeness", tape_likeness, METH_O, nullptr},
    {"_opened_at", tape_opened_at, METH_NOARGS, nullptr},
    {"_used_up_at", tape_used_up_at, METH_NOARGS, nullptr},
    {"_reset_at", tape_reset_at, METH_NOARGS, nullptr},
    {"_forgot", tape_forgot, METH_O, nullptr},
    {"_elsewhere", tape_elsewhere, METH_O, nullptr},
    {"_jacobian", tape_jacobian, METH_VARARGS, nullptr},
    {"reset", tape_reset, METH_NOARGS,
     R"(reset($self, /)
--

Forgets everything recorded so far.)"},
    {"gradient", method(tape_gradient), METH_FASTCALL | METH_KEYWORDS,
     R"(gradient($self, /, target, sources, output_gradients=None, unconnected_gradients='none')
--

Derivatives of `target` by each of `sources`, in the structure of `sources`.

Args:
  target: A tensor, or a list or nested structure of tensors; several targets, and the elements of one, are added up.
  sources: A tensor or variable, or a list or nested structure of them. Tensors must be watched.
  output_gradients: Weights of the elements of `target`, in its structure; ones if None.
  unconnected_gradients: What a source gives that `target` does not depend on: 'none' or 'zero'.

Returns:
  A tensor for each source (`tf.IndexedSlices` for one that was only gathered from), or None.

>>> x = tf.Variable(3.)
>>> with tf.GradientTape() as tape:
...     y = x * x
>>> tape.gradient(y, [x])
[<tf.Tensor: shape=(), dtype=float32, numpy=6.0>])"},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef tape_properties[] = {
    {"_persistent", get_persistent, nullptr, nullptr, nullptr},
    {"_recording", get_recording, nullptr, nullptr, nullptr},
    {"_watches_accessed_variables", get_watches_accessed, nullptr, nullptr, nullptr},
    {"_used_up", get_used_up, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
const char* tape_doc =
    "GradientTape(persistent=False, watch_accessed_variables=True, *, strict=False)\n--\n\n"
    "Records operations, so that derivatives can be computed.";
PyType_Slot tape_slots[] = {
    {Py_tp_doc, const_cast<char*>(tape_doc)},
    {Py_tp_new, reinterpret_cast<void*>(tape_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(tape_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(tape_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(tape_clear)},
    {Py_tp_methods, tape_methods},
    {Py_tp_getset, tape_properties},
    {0, nullptr},
};
PyType_Spec tape_spec = {"tapeflow._src._core.GradientTape", sizeof(TapeObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, tape_slots};

}  // namespace

bool is_indexed_slices(PyObject* o) {
  PyObject* slices = registered("IndexedSlices");
  return slices && PyObject_IsInstance(o, slices) == 1;
}

PyObject* wrap_cotangent(const Cotangent& c, const Shape& shape) {
  if (!c) return Py_NewRef(Py_None);
  if (!c.indices) return wrap(c.values);
  PyObject* slices = registered("IndexedSlices");
  Ref values = checked(wrap(c.values)), indices = checked(wrap(c.indices));
  Ref dense_shape = checked(wrap(int_tensor(shape.dims())));
  return PyObject_CallFunctionObjArgs(slices, values.get(), indices.get(), dense_shape.get(), nullptr);
}

static PyMethodDef functions[] = {
    {"set_tape_observers", set_tape_observers, METH_VARARGS,
     "set_tape_observers(opened, gradient, unseen=0): what is called when a tape begins to record, but for the next "
     "`unseen` ones, and after a gradient call."},
    {nullptr, nullptr, 0, nullptr},
};

void add_tape_type(PyObject* module) {
  add_type(module, "GradientTape", tape_spec);
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
