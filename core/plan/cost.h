// Estimates for the steps of a plan before they run: what they cost, and whether they can fail.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

// Microseconds, on one core and with all threads that the kernel itself makes use of.
struct Cost {
  double alone = 0, threaded = 0;

  Cost& operator+=(const Cost& other) {
    alone += other.alone;
    threaded += other.threaded;
    return *this;
  }
};

Cost cost_of(const Graph&, const Node&, int threads);
// Of a fusion of so many elementwise operations on so many elements.
Cost cost_of_fusion(int64_t elements, size_t operations, int threads);

// Whether a kernel touches more than its tensors: variables, graphs, Python.
bool needs_interpreter_lock(const Graph&, const Node&);

// Whether a kernel can fail though the shapes are right.
bool may_fail(const Graph&, const Node&);

}  // namespace tapeflow
