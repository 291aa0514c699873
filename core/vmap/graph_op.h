// Operations that run a graph under vmap, as one node, when shapes are unknown while tracing.
#pragma once
#include "autodiff/deferred.h"
#include "op/op.h"

namespace tapeflow {

// `Run` gives the results for the parameters and inputs of a call. The gradient runs it again under a tape.
template <Tensors (*Run)(const Params&, std::span<const Tensor>)> const Op& define_graph_op(Op op) {
  op.kernel = [](Call& call) {
    PauseRecording unrecorded;
    for (Tensor& t : Run(call.params, call.in)) call.out.push_back(std::move(t));
  };
  op.makes_outputs = true;
  op.vjp = [](RuleContext& c) { differentiate_run(c, [&](std::span<const Tensor> in) { return Run(c.params, in); }); };
  op.keep = keep_everything;
  op.stateful = true;
  op.rule_needs_values = true;
  return define_inner(std::move(op));
}

}  // namespace tapeflow
