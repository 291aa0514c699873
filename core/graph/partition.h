// A graph that has no plan as a whole, for inputs of certain shapes: Python is called in between, or shapes depend on
// values. It is cut around graph breaks: the nodes that cannot be planned. What comes before them runs as a graph of
// its own, and so does the rest, when the shapes that they gave are known: each has plans, or is cut again.
#pragma once
#include <optional>

#include "graph/graph.h"

namespace tapeflow {

class Split {
 public:
  using MayAssign = bool (*)(const Node&, const VariableBody&);
  // Nodes from `begin` to `end` run one by one; null if too little is left beside them.
  static std::unique_ptr<Split> make(const Graph&, size_t begin, size_t end, MayAssign);

  bool fits(std::span<const Tensor> inputs) const;
  bool running() const { return runs_ > 0; }
  void run(std::span<const Tensor> inputs, Tensors& outputs);
  template <class Visit> void each_graph(Visit visit) const {
    for (const auto* part : {&head_, &rest_})
      if (*part) visit((*part)->graph);
  }

 private:
  struct Part {
    Graph graph;
    std::vector<int> inputs;  // places among the inputs of the whole and what the parts before gave
  };
  class Cutter;
  std::vector<Spec> inputs_;
  std::optional<Part> head_, rest_;
  Part middle_;
  int runs_ = 0;
};

}  // namespace tapeflow
