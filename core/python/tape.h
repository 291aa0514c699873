// The Python object of a tape, and the functions of tape_records.cc that are among its methods.
#pragma once
#include "autodiff/tape.h"
#include "python/common.h"

namespace tapeflow::python {

struct TapeObject {
  PyObject_HEAD Tape* tape;
  bool strict;  // a gradient that would be None is an error
};
inline Tape& tape_of(PyObject* self) { return *reinterpret_cast<TapeObject*>(self)->tape; }

// The Python rules that a record holds, each by a reference of its own; for the garbage collector.
int visit_python_rules(const Op&, const Params&, visitproc visit, void* arg);

PyObject* tape_records(PyObject* self, PyObject*);
PyObject* tape_shapes(PyObject* self, PyObject*);
PyObject* tape_rows(PyObject* self, PyObject*);
PyObject* tape_kept(PyObject* self, PyObject*);
PyObject* tape_events(PyObject* self, PyObject*);
PyObject* tape_leaves(PyObject* self, PyObject*);
PyObject* tape_likeness(PyObject* self, PyObject* tensor_or_variable);
PyObject* tape_opened_at(PyObject* self, PyObject*);
PyObject* tape_used_up_at(PyObject* self, PyObject*);
PyObject* tape_reset_at(PyObject* self, PyObject*);
PyObject* tape_forgot(PyObject* self, PyObject* tensor_or_variable);
PyObject* tape_elsewhere(PyObject* self, PyObject* tensor_or_variable);
PyObject* tape_index_of(PyObject* self, PyObject* tensor_or_variable);

}  // namespace tapeflow::python
