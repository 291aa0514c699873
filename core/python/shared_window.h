// `_core.SharedWindow`: the shared memory of the processes of one machine, for Python; and memory for messages.
#pragma once
#include "python/common.h"

namespace tapeflow::python {

void add_shared_window_type(PyObject* module);

}  // namespace tapeflow::python
