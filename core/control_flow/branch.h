// Running the graph of a branch. A run that is to be differentiated saves what its gradient needs.
#pragma once
#include "control_flow/residuals.h"

namespace tapeflow {

struct BranchSavedTensors {
  Sources sources;
  std::shared_ptr<JointParts> parts;
  Tensors residuals;
  Tensors variables;  // their values before the run, for one that is repeated
};
Tensors run_branch(const std::shared_ptr<Graph>&, std::span<const Tensor> in, BranchSavedTensors&);
Tensors backpropagate(const BranchSavedTensors&, std::span<const Tensor> in, std::span<const Tensor> dy,
                      std::span<const Tensor> y);

}  // namespace tapeflow
