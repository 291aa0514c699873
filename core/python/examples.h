#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace tapeflow::python {

void add_examples(PyObject* module);  // see examples.cc

}  // namespace tapeflow::python
