// What the steps of a plan cost, roughly: enough to tell which ones are worth a core of their own.
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
// Of a group of elementwise operations on so many elements.
Cost cost_of_group(int64_t elements, size_t operations, int threads);

}  // namespace tapeflow
