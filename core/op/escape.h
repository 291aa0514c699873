// Describes a symbolic tensor that is used outside of its graph.
#pragma once
#include <string>

#include "op/op.h"

namespace tapeflow {

// Set by the layer that knows names and lines of programs.
extern std::string (*describe_escaped)(const Tensor&);

// Fails: the tensor has no value here.
[[noreturn]] void fail_escaped(const char* operation, const Tensor&);

}  // namespace tapeflow
