// Deferred rules: while tracing, a rule that needs shapes or elements which are unknown becomes an
// operation of its own, `Deferred`, that runs the rule when they are. It is differentiable like any other.
#pragma once
#include "base/parallel.h"
#include "op/op.h"

namespace tapeflow {

// Whether the rule of this operation has to be deferred for values that only running the graph gives.
bool must_defer(const Call&);
bool must_defer(const RuleContext&);  // its kept tensors are all there

// The VJP of an operation that runs other operations: runs them again on its inputs from `first` on, under a tape.
void differentiate_run(RuleContext&, FunctionRef<Tensors(std::span<const Tensor> in)> run, int first = 0);

// Receives a rule before it is deferred; true if it has set the results itself.
extern bool (*before_deferring)(RuleContext&);

// Whether the saved tensors of an operation, its last output, are values of the graph that is being traced: its rule
// need not wait for elements then. Null: they never are.
extern bool (*saves_traced_tensors)(const Op&, const Tensor& saved);

// The rule that a node of `Deferred` runs. The inputs of the node are those of the operation, its outputs, and the
// cotangents that flow; its outputs are the gradients of the inputs that want one.
struct DeferredRule {
  const Op* op;
  int inputs, outputs;
  SmallVector<bool, 4> flows;   // per output: a cotangent is given
  SmallVector<bool, 8> wanted;  // per input
};
const DeferredRule* deferred_rule_of(const Op&, const Params&);  // null for other operations
// Runs the rule now, also on tensors whose shapes are not known: for those who know that it does not ask for them.
Tensors run_deferred_rule(const Params&, std::span<const Tensor> in);

// Sets the results of a VJP to symbolic tensors that the deferred rule will give.
void defer_rule(RuleContext&);

}  // namespace tapeflow
