// The graph behind a Python object.
#pragma once
#include "graph/graph.h"
#include "python/common.h"

namespace tapeflow::python {

const std::shared_ptr<Graph>& checked_graph(PyObject*);  // throws if it is not a graph
SmallVector<Tensor, 8> tensors_of(PyObject* sequence, const char* who);
// (function, dtypes, shapes, whether it has a gradient) of a node that runs a Python function; null for others.
PyObject* python_call_in(const Node&);
void add_batching(PyObject* module);    // see batch.cc
void add_graph_data(PyObject* module);  // see graph_data.cc

}  // namespace tapeflow::python
