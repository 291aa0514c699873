// Running the graphs of a branch or a loop a second time, for a derivative of higher order: as the first time, and
// without a trace. Variables (streams of random numbers are variables too) have their old values meanwhile.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

Tensors values_of(std::span<VariableBody* const>);

class Replay {
 public:
  // While it lives, the variables have the values `before` at first; afterwards those they have now.
  Replay(std::span<VariableBody* const> variables, std::span<const Tensor> before);
  ~Replay();
  Replay(const Replay&) = delete;

  // What is read of the variable from now on is `source` to recorders, whatever value it has then.
  void track(VariableBody&, Tensor source);
  // A reading of the variable in the replay that goes on, or an empty handle if there is none that tracks it.
  static Tensor reading(VariableBody&);

 private:
  std::vector<VariableBody*> variables_;
  Tensors now_;
  std::vector<std::pair<VariableBody*, Tensor>> sources_;
  Replay* outer_;
};

}  // namespace tapeflow
