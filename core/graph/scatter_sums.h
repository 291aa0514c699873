// Sums with terms that are mostly zeros, as gradients of slices and of looked-up rows are, while a graph runs node by
// node: such a term is not made, its elements are added to the other one. In plans, chain fusion does it.
#pragma once
#include <algorithm>

#include "graph/graph.h"
#include "graph/run.h"

namespace tapeflow {

class ScatterSums {
 public:
  // Finds the terms that nobody but one addition, as its second input, reads.
  ScatterSums(const Graph&, const Needs&, std::span<const ValueId> wanted);

  bool defers(size_t node) const { return !deferred_.empty() && deferred_[node]; }
  // Keeps what a deferred node was to compute `term` from.
  void keep(ValueId term, std::span<const Tensor> in, const Params&);
  // Whether a node is the addition of a term that was kept.
  bool adds(const Node& n) const { return !kept_.empty() && n.inputs.size() == 2 && find(n.inputs[1]) != kept_.end(); }
  // What such an addition gives; `first` is its first input, overwritten if nobody else holds it.
  Tensor sum(Tensor first, const Node& addition);

 private:
  struct Kept {
    ValueId term;
    const Op* op;
    SmallVector<Tensor, 4> in;
    Params params;
  };
  std::vector<Kept>::const_iterator find(ValueId term) const { return std::ranges::find(kept_, term, &Kept::term); }

  const Graph& graph_;
  std::vector<uint8_t> deferred_;  // by node; empty if there is none
  std::vector<Kept> kept_;
};

}  // namespace tapeflow
