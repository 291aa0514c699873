// What a tape holds, as plain Python data: records, events, leaves and where they came from. The diagnostics read it.
#include "python/graph/graph_rows.h"
#include "python/tape.h"
#include "python/watchable.h"

namespace tapeflow::python {
namespace {

PyObject* code_or_none(const Location& l) { return l.code ? static_cast<PyObject*>(l.code) : Py_None; }

}  // namespace

static PyObject* rows_of(PyObject* self, bool expand) {
  return guarded([&]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    const Tape& tape = tape_of(self);
    GraphRows rows(list.get(), GraphRows::kFirst, [&](VariableBody& v) { return tape.find_known(v); });
    uint32_t number = 0;
    tape.visit_records([&](const Tape::RecordView& r) {
      rows.set_record(number++);
      SmallVector<ValueIndex, 8> outputs;
      SmallVector<Spec, 8> input_specs, output_specs;
      for (int i = 0; i < r.outputs; ++i) {
        outputs.push_back(r.first_output + ValueIndex(i));
        output_specs.push_back(r.context.output_spec(i));
      }
      std::span<const ValueIndex> produced(outputs.begin(), outputs.size());
      if (expand && r.op.keeps_params && rows.expand(r.op, r.context.params, r.location, r.inputs, produced)) return;
      for (int i = 0; i < int(r.inputs.size()); ++i) input_specs.push_back({r.context.dtype(i), r.context.shape(i)});
      rows.add_row(r.op.public_name() ? r.op.public_name() : r.op.name, r.location, r.kept_bytes, r.inputs, produced,
                   r.op.gradient == Gradient::none || is_opaque_call(r.op, r.context.params),
                   {input_specs.begin(), input_specs.size()}, {output_specs.begin(), output_specs.size()});
    });
    return list.release();
  });
}

// _shapes(): for each record, the shapes of its outputs.
PyObject* tape_shapes(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    tape_of(self).visit_records([&](const Tape::RecordView& r) {
      Ref shapes = checked(PyList_New(0));
      for (int i = 0; i < r.outputs; ++i) {
        Ref shape = checked(wrap_shape(r.context.output_spec(i).shape));
        if (PyList_Append(shapes.get(), shape.get()) < 0) throw_python_error();
      }
      if (PyList_Append(list.get(), shapes.get()) < 0) throw_python_error();
    });
    return list.release();
  });
}

// _records(): a row for each record, as graph_rows.h says.
PyObject* tape_records(PyObject* self, PyObject*) { return rows_of(self, false); }
// _rows(): the same with calls, branches and loops written as what is inside of them.
PyObject* tape_rows(PyObject* self, PyObject*) { return rows_of(self, true); }

// _kept(): for each record, the tensors that it keeps, inputs first; None for the others.
PyObject* tape_kept(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    tape_of(self).visit_records([&](const Tape::RecordView& r) {
      Ref row = checked(PyList_New(0));
      for (auto kept : {r.context.kept_inputs, r.context.kept_outputs})
        for (const Tensor& t : kept) {
          Ref item = t ? checked(wrap(t)) : Ref::share(Py_None);
          if (PyList_Append(row.get(), item.get()) < 0) throw_python_error();
        }
      if (PyList_Append(list.get(), row.get()) < 0) throw_python_error();
    });
    return list.release();
  });
}

// _events(): for each event, what happened, the operation, the code object and instruction, how many records there
// were, the indices of its inputs and outputs, and what the tape was doing.
PyObject* tape_events(PyObject* self, PyObject*) {
  static const char* events[] = {"operation", "constant", "numpy",  "number", "boolean",
                                 "shape",     "argument", "assign", "watch"};
  static const char* moments[] = {"open", "paused", "closed"};
  return guarded([&]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    tape_of(self).trace().visit_events([&](const LoggedEvent& n, std::span<const ValueIndex> in) {
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

static PyObject* describe_leaf(const Leaf& leaf) {
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
    return describe_leaf(describe(kUntracked, t));
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
      if (!owner || owner == &tape_of(self) || owner->kind() != Watcher::Kind::tape || !is_tracked(mark.value))
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

// _index_of(tensor or variable): where it is tracked on this tape or known to it, or None.
PyObject* tape_index_of(PyObject* self, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Ref x = resolve_or_fail(o, "GradientTape.explain");
    ValueIndex i = is_tensor(x.get()) ? tape_of(self).find_known(tensor_of(x.get()))
                                      : tape_of(self).find_known(variable_of(x.get()));
    return i == kUntracked ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(i);
  });
}

}  // namespace tapeflow::python
