// Python numbers and text as elements of tensors.
#pragma once
#include "python/common.h"

namespace tapeflow::python {

bool is_python_scalar(PyObject*);  // a number or text; NumPy scalars that derive from Python's are among them
DType natural_dtype(PyObject* scalar);
// Writes a Python scalar as element i; false if it cannot have this dtype.
bool put_scalar(void* at, int64_t i, DType, PyObject*);
Tensor scalar_tensor(PyObject*, DType wanted, DType preferred);

}  // namespace tapeflow::python
