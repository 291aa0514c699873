// The Deferred operation: inputs are the inputs of the operation, its outputs, and the cotangents that flow; parameters
// are its plan and then the operation's own.
#include "autodiff/deferred.h"

#include <cstring>

#include "autodiff/tape.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

constexpr struct : Keys {
  Key<Boxed<const DeferredRule>> plan = next("plan");
} inner_params;
const DeferredRule& plan_of(const Params& params) { return params[inner_params.plan]; }

// Runs the operation's rule, or another one in its place; one dense tensor per wanted input, zeros where it gives
// nothing.
Tensors run_rule(const Params& all, std::span<const Tensor> in, FunctionRef<void(RuleContext&)> rule) {
  const DeferredRule& plan = plan_of(all);
  Params params = all.without_first();
  SmallVector<Tensor, 4> dy;
  size_t next = size_t(plan.inputs + plan.outputs);
  for (bool flows : plan.flows) dy.push_back(flows ? in[next++] : Tensor());
  RuleContext context{*plan.op,
                      params,
                      in.subspan(0, size_t(plan.inputs)),
                      in.subspan(size_t(plan.inputs), size_t(plan.outputs)),
                      {},
                      nullptr,
                      dy,
                      plan.wanted,
                      {},
                      {}};
  context.result.resize(size_t(plan.inputs));
  rule(context);
  Tensors result;
  for (int i = 0; i < plan.inputs; ++i) {
    if (!plan.wanted[size_t(i)]) continue;
    const Tensor& dx = context.result[size_t(i)];
    Tensor rows = size_t(i) < context.sparse_indices.size() ? context.sparse_indices[size_t(i)] : Tensor();
    result.push_back(dx ? densified({dx, rows}, in[size_t(i)].shape()) : zeros_like(in[size_t(i)]));
  }
  return result;
}

Tensors run_rule(const Params& all, std::span<const Tensor> in) { return run_rule(all, in, plan_of(all).op->vjp); }

void infer(Call& call) {
  const DeferredRule& plan = plan_of(call.params);
  for (int i = 0; i < plan.inputs; ++i)
    if (plan.wanted[size_t(i)]) call.returns(call.in[size_t(i)].dtype(), call.in[size_t(i)].shape());
}

// Whether the rule runs the operation again under a tape. Of those that `expand` replaces, only control flow, which has
// effects, saves tensors for its rule.
bool rule_runs_again(const Op& op) { return op.expand && op.rule_needs_values && !op.effect; }

// Such a rule: differentiates the operations that replace this one. False if nothing can replace it.
bool expand_run_again(Call& call) {
  const Op& op = *plan_of(call.params).op;
  bool expanded = false;
  auto rule = [&](RuleContext& c) {
    differentiate_run(c, [&](std::span<const Tensor> in) {
      Call again(op, in, c.params);
      expanded = op.expand(again);
      return expanded ? Tensors(again.out) : Tensors();
    });
  };
  Tensors found = run_rule(call.params, call.in, rule);
  if (expanded) call.out = std::move(found);
  return expanded;
}

// Runs the rule, if what it waited for is known now.
bool expand(Call& call) {
  const DeferredRule& plan = plan_of(call.params);
  if (call.params.has_tensor()) return false;
  for (const Tensor& t : call.in)
    if (t.size() < 0) return false;
  if (rule_runs_again(*plan.op)) return expand_run_again(call);
  if (plan.op->rule_needs_values) {
    if (!saves_traced_tensors || plan.outputs == 0) return false;
    if (!saves_traced_tensors(*plan.op, call.in[size_t(plan.inputs + plan.outputs - 1)])) return false;
  }
  for (Tensor& t : run_rule(call.params, call.in)) call.out.push_back(std::move(t));
  return true;
}

const Op& deferred_op = define_inner(Op{
    .name = "Deferred",
    .arguments = {tensors("values", any_dtype)},
    .infer_staged = infer,
    .kernel =
        [](Call& call) {
          PauseRecording unrecorded;
          for (Tensor& t : run_rule(call.params, call.in)) call.out.push_back(std::move(t));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          differentiate_run(c, [&](std::span<const Tensor> in) { return run_rule(c.params, in); });
        },
    .keep = keep_everything,
    .stateful = true,
    .is_program = true,
    .expand = expand,
    .rule_needs_values = true,
});

}  // namespace

const DeferredRule* deferred_rule_of(const Op& op, const Params& params) {
  return &op == &deferred_op ? &plan_of(params) : nullptr;
}

Tensors run_deferred_rule(const Params& params, std::span<const Tensor> in) { return run_rule(params, in); }

void differentiate_run(RuleContext& c, FunctionRef<Tensors(std::span<const Tensor>)> run, int first) {
  Tape tape(false, false);
  SmallVector<ValueIndex, 8> sources, targets;
  SmallVector<Spec, 4> specs;
  SmallVector<Tensor, 4> in, dy;
  for (int i = first; i < c.inputs(); ++i) in.push_back(identity(c.x(i)));
  tape.start();
  for (int i = first; i < c.inputs(); ++i) {
    const Tensor& x = in[size_t(i - first)];
    if (c.wants(i)) tape.watch(x);
    sources.push_back(c.wants(i) ? tape.find(x) : kUntracked);
  }
  Tensors result = run(in);
  tape.stop();
  for (size_t j = 0; j < result.size(); ++j) {
    if (!c.has_dy(int(j))) continue;
    targets.push_back(tape.find(result[j]));
    specs.push_back({result[j].dtype(), result[j].shape()});
    dy.push_back(c.dy(int(j)));
  }
  BlockVector<Cotangent> flow = tape.gradient(targets, specs, dy, sources);
  for (int i = first; i < c.inputs(); ++i) {
    const Cotangent& dx = flow[size_t(i - first)];
    if (dx) c.set(i, densified(dx, c.shape(i)));
  }
}

bool must_defer(const Call& call) {
  if (!thread_state().stage) return false;
  if (call.op.rule_needs_values || call.params.has_tensor()) return true;
  for (const Tensor& t : call.in)
    if (t.size() < 0) return true;
  for (const Tensor& t : call.out)
    if (t.size() < 0) return true;
  return false;
}

static bool needs_no_shapes(const RuleContext& c) {
  if (c.params.has_tensor() || c.op.rule_needs_values) return false;
  return c.op.rule_needs_no_shapes && c.op.rule_needs_no_shapes(c);
}

bool must_defer(const RuleContext& c) {
  if (c.op.python_rule || needs_no_shapes(c)) return false;
  if (c.op.rule_needs_values || c.params.has_tensor()) return true;
  for (int i = 0; i < c.inputs(); ++i)
    if (c.kept_inputs[size_t(i)] && c.kept_inputs[size_t(i)].size() < 0) return true;
  for (int i = 0; i < c.outputs(); ++i)
    if (c.kept_outputs[size_t(i)] && c.kept_outputs[size_t(i)].size() < 0) return true;
  return false;
}

bool (*before_deferring)(RuleContext&) = nullptr;
bool (*saves_traced_tensors)(const Op&, const Tensor& saved) = nullptr;

void defer_rule(RuleContext& c) {
  if (before_deferring && before_deferring(c)) return;
  auto plan = std::make_shared<DeferredRule>();
  plan->op = &c.op;
  plan->inputs = c.inputs();
  plan->outputs = c.outputs();
  SmallVector<Tensor, 8> in;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.x(i)), plan->wanted.push_back(c.wants(i));
  for (int j = 0; j < c.outputs(); ++j) in.push_back(c.y(j));
  for (int j = 0; j < c.outputs(); ++j) {
    plan->flows.push_back(c.has_dy(j));
    if (c.has_dy(j)) in.push_back(c.dy(j));
  }
  Tensors out = run_all(deferred_op, in, Params::joined(Param(std::shared_ptr<void>(plan)), c.params));
  size_t next = 0;
  for (int i = 0; i < c.inputs(); ++i)
    if (c.wants(i)) c.set(i, out[next++]);
}

}  // namespace tapeflow
