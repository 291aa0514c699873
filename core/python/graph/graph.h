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

// The rule of a custom gradient that was traced: a graph of the dy and of what it captures, and the kind of the
// gradient that each input gets (0: none, 1: a tensor, 2: rows and their numbers). The forward rule is a Python
// function of the lists of x_dot and of x, or null.
struct TracedRule {
  std::shared_ptr<Graph> graph;
  int outputs, inputs;
  SmallVector<int, 8> kinds;
  std::shared_ptr<void> forward_rule;
};
const TracedRule* traced_rule_of(const Node&);  // null if the node has none; see python_rule.cc

}  // namespace tapeflow::python
