// Jacobians of a value per example. Where element i of the target depends on example i alone, the cotangent for element
// i is zero but for the rows of that example, in every value of the backward pass that has the examples as leading
// dimension. These rows alone, one example after the other, take the place of a cotangent for each element: the
// backward pass runs once, as for a gradient, until it sums over the examples.
#pragma once
#include <optional>

#include "vmap/vmap.h"

namespace tapeflow {

// What each node of a backward graph does with the examples.
struct ExampleStructure {
  std::vector<SmallVector<bool, 4>> cut_inputs;  // by node that sums over examples: the inputs that are cut; else empty
  std::vector<bool> by_row;                      // by output: the examples are its leading dimension
};

// For a graph whose first input is the cotangent of a target with one element for each example. Nothing if examples
// mix, or shapes are unknown.
std::optional<ExampleStructure> find_example_structure(const Graph&, int64_t examples);

// The gradients for all elements of the target, with a leading batch dimension.
Tensors gradients_by_example(const Graph&, const ExampleStructure&, const Tensor& target_like,
                             std::span<const Tensor> captures, int64_t examples);

}  // namespace tapeflow
