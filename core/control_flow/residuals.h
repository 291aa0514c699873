// What the runs of branches and loops share when they save tensors for their gradients.
#pragma once
#include <algorithm>

#include "transforms/differentiate.h"

namespace tapeflow {

// What a gradient is asked for: some of the inputs, and variables that the graph reads itself.
struct Sources {
  SmallVector<uint8_t, 16> inputs;  // per input
  SmallVector<VariableBody*, 4> variables;
};

// Which sources of the parts of `graph` are to be tracked. It takes some inputs of the operation, by number.
inline SmallVector<uint8_t, 16> tracked_sources(Graph& graph, std::span<const int> inputs,
                                                std::span<const uint8_t> tracked, const Sources& sources) {
  SmallVector<uint8_t, 16> result;
  for (int i : inputs) result.push_back(tracked[size_t(i)]);
  for (VariableBody* v : known_variables_read(graph))
    result.push_back(std::ranges::find(sources.variables, v) != sources.variables.end());
  return result;
}

// The memory behind inputs may belong to a plan, which uses it again: what is saved must be copied out of it.
class BorrowedBuffers {
 public:
  explicit BorrowedBuffers(std::span<const Tensor> inputs) {
    for (const Tensor& t : inputs)
      if (t.body()->buffer) buffers_.push_back(t.body()->buffer);
    std::sort(buffers_.begin(), buffers_.end());
  }
  Tensor kept(const Tensor& t) const {
    Buffer* buffer = t.body()->buffer;
    if (!buffer) return t.view(t.shape());
    return std::binary_search(buffers_.begin(), buffers_.end(), buffer) ? copy_of(t) : t;
  }

 private:
  SmallVector<Buffer*, 8> buffers_;
};

}  // namespace tapeflow
