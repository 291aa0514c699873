// What may be watched or differentiated: a tensor or a variable, or an object that stands for one.
#pragma once
#include "python/common.h"

namespace tapeflow::python {

// A tensor or a variable, possibly behind an object (such as a Keras variable) that has one as its `handle`. Null for
// other objects.
Ref resolve(PyObject*);
// The same; an IndexedSlices stands for the tensor it converts to. Throws for other objects.
Ref resolve_or_fail(PyObject*, const char* who);
// The tensors of an object that consists of several, such as a ragged tensor; null for other objects.
Ref parts_of(PyObject*);

// Of what `resolve` gave.
DType dtype_of_resolved(PyObject*);
Spec spec_of_resolved(PyObject*);
bool same_value(PyObject*, PyObject*);
// One value everywhere, in the shape of a tensor or variable, which may be unknown while tracing.
Tensor filled_as(PyObject*, const Spec&, double value);

// Calls a registered Python function that warns about a dtype.
void warn_about_dtype(const char* function, DType);

}  // namespace tapeflow::python
