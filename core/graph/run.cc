// Running graphs: a plan is made for each set of input shapes and kept with the graph.
#include "graph/run.h"

namespace tapeflow {

std::vector<Tensor> run_graph(const Graph& graph, std::span<const Tensor> inputs) {
  EnterStage nowhere(nullptr);
  PauseRecording unheard;
  return interpret(graph, inputs);
}

}  // namespace tapeflow
