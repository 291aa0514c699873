// Tangents, operation by operation.
//
// An op without a forward rule gets its tangent from the reverse one: the VJP is linear in dy, so differentiating it by
// dy and applying that to x_dot gives J x_dot. The value of dy does not matter; zeros are taken.
//
// While tracing, a rule that has to know shapes or elements is deferred, as in autodiff/deferred.h.
#include "autodiff/forward.h"

#include <algorithm>

#include "autodiff/deferred.h"
#include "autodiff/tape.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

SmallVector<Tensor, 4> transpose_vjp(const Call& call, std::span<const Tensor> x_dot) {
  Tape tape(false, false);
  SmallVector<Tensor, 4> dy;
  SmallVector<ValueIndex, 4> sources;
  tape.start();
  for (const Tensor& y : call.out) {
    bool flows = differentiable.has(y.dtype());
    dy.push_back(flows ? zeros_like(y) : Tensor());
    if (flows) tape.watch(dy.back());
    sources.push_back(flows ? tape.find(dy.back()) : kUntracked);
  }
  SmallVector<bool, 8> wanted;
  for (const Tensor& t : x_dot) wanted.push_back(bool(t));
  RuleContext context{call.op, call.params, call.in, call.out, {}, nullptr, dy, wanted, {}, {}};
  context.result.resize(call.in.size());
  call.op.vjp(context);
  SmallVector<ValueIndex, 4> targets;
  SmallVector<Spec, 4> target_specs;
  SmallVector<Tensor, 4> cotangents;
  for (size_t i = 0; i < call.in.size(); ++i) {
    if (!x_dot[i] || !context.result[i]) continue;
    Tensor dx = context.result[i];
    if (i < context.sparse_indices.size() && context.sparse_indices[i])
      dx = densified({dx, context.sparse_indices[i]}, call.in[i].shape());
    targets.push_back(tape.find(dx));
    target_specs.push_back({dx.dtype(), dx.shape()});
    cotangents.push_back(x_dot[i]);
  }
  tape.stop();
  SmallVector<Tensor, 4> y_dot;
  BlockVector<Cotangent> flow = tape.gradient(targets, target_specs, cotangents, sources);
  for (size_t i = 0; i < flow.size(); ++i)
    y_dot.push_back(flow[i] ? densified(flow[i], call.out[i].shape()) : Tensor());
  return y_dot;
}

SmallVector<Tensor, 4> tangents_of(const Call& call, std::span<const Tensor> x_dot) {
  if (!call.op.jvp) return transpose_vjp(call, x_dot);
  RuleContext context{call.op, call.params, call.in, call.out, {}, nullptr, x_dot, {}, {}, {}};
  context.result.resize(call.out.size());
  call.op.jvp(context);
  return std::move(context.result);
}

// ---- the operation DeferredTangent: inputs are those of the operation, its outputs, and the tangents that flow;
// parameters are its plan and then the operation's own. Outputs are the tangents of the outputs that have any.

struct TangentPlan {
  const Op* op;
  size_t inputs, outputs;
  SmallVector<bool, 8> flows;  // per input: a tangent is given
};
constexpr struct : Keys {
  Key<Boxed<const TangentPlan>> plan = next("plan");
} inner_params;
const TangentPlan& plan_of(const Params& params) { return params[inner_params.plan]; }

Tensors run_tangents(const Params& params, std::span<const Tensor> in) {
  const TangentPlan& plan = plan_of(params);
  Params own = params.without_first();
  SmallVector<Tensor, 4> x_dot;
  size_t next = plan.inputs + plan.outputs;
  for (bool flows : plan.flows) x_dot.push_back(flows ? in[next++] : Tensor());
  Call call(*plan.op, in.subspan(0, plan.inputs), own);
  for (const Tensor& y : in.subspan(plan.inputs, plan.outputs)) call.out.push_back(y);
  SmallVector<Tensor, 4> y_dot = tangents_of(call, x_dot);
  Tensors result;
  for (size_t j = 0; j < plan.outputs; ++j)
    if (differentiable.has(call.out[j].dtype())) result.push_back(y_dot[j] ? y_dot[j] : zeros_like(call.out[j]));
  return result;
}

// Computes the tangents, if the shapes are known now.
bool expand(Call& call) {
  if (call.params.has_tensor() || plan_of(call.params).op->rule_needs_values) return false;
  if (std::ranges::any_of(call.in, [](const Tensor& t) { return t.size() < 0; })) return false;
  for (Tensor& t : run_tangents(call.params, call.in)) call.out.push_back(std::move(t));
  return true;
}

const Op& deferred_tangent_op = define_inner(Op{
    .name = "DeferredTangent",
    .arguments = {tensors("values", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const TangentPlan& plan = plan_of(call.params);
          for (const Tensor& y : call.in.subspan(plan.inputs, plan.outputs))
            if (differentiable.has(y.dtype())) call.returns(y.dtype(), y.shape());
        },
    .kernel =
        [](Call& call) {
          PauseRecording unrecorded;
          for (Tensor& t : run_tangents(call.params, call.in)) call.out.push_back(std::move(t));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          differentiate_run(c, [&](std::span<const Tensor> in) { return run_tangents(c.params, in); });
        },
    .keep = keep_everything,
    .stateful = true,
    .is_program = true,
    .expand = expand,
    .rule_needs_values = true,
});

SmallVector<Tensor, 4> defer_tangents(const Call& call, std::span<const Tensor> x_dot) {
  auto plan = std::make_shared<TangentPlan>();
  plan->op = &call.op;
  plan->inputs = call.in.size();
  plan->outputs = call.out.size();
  SmallVector<Tensor, 8> in;
  for (const Tensor& t : call.in) in.push_back(t);
  for (const Tensor& t : call.out) in.push_back(t);
  for (const Tensor& t : x_dot) {
    plan->flows.push_back(bool(t));
    if (t) in.push_back(t);
  }
  Tensors found = run_all(deferred_tangent_op, in, Params::joined(Param(std::shared_ptr<void>(plan)), call.params));
  SmallVector<Tensor, 4> y_dot;
  size_t next = 0;
  for (const Tensor& y : call.out) y_dot.push_back(differentiable.has(y.dtype()) ? found[next++] : Tensor());
  return y_dot;
}

SmallVector<Tensor, 4> find_tangents(const Call& call, std::span<const Tensor> x_dot) {
  return !call.op.python_rule && must_defer(call) ? defer_tangents(call, x_dot) : tangents_of(call, x_dot);
}

}  // namespace

SmallVector<Tensor, 4> (*tangents_for_rows)(const Call&, std::span<const Tensor> x_dot, int64_t rows,
                                            TangentRule) = nullptr;

ForwardAccumulator::~ForwardAccumulator() { stop(); }

void ForwardAccumulator::start() {
  if (recording_) fail(ErrorKind::value, "ForwardAccumulator: Accumulator is already recording.");
  thread_state().recorders.push_back(this);
  recording_ = true;
}

void ForwardAccumulator::stop() {
  if (!recording_) return;
  stop_recorder(this);
  recording_ = false;
}

void ForwardAccumulator::watch(const Tensor& t, Tensor tangent) {
  track(t, ValueIndex(tangents_.size()));
  tangents_.push_back(std::move(tangent));
}

void ForwardAccumulator::watch(VariableBody& v, Tensor tangent) {
  track(v, ValueIndex(tangents_.size()));
  tangents_.push_back(std::move(tangent));
}

Tensor ForwardAccumulator::tangent(const Tensor& t) const {
  ValueIndex i = find(t);
  return i == kUntracked ? Tensor() : tangents_[i];
}

Tensor ForwardAccumulator::tangent(const VariableBody& v) const {
  ValueIndex i = find(v);
  return i == kUntracked ? Tensor() : tangents_[i];
}

void ForwardAccumulator::read(VariableBody& v, const Tensor& value) {
  ValueIndex index = find(v);
  if (index != kUntracked && find(value) != index) track(value, index);
}

void ForwardAccumulator::record(const Call& call) {
  const Op& op = call.op;
  SmallVector<Tensor, 4> x_dot;
  bool tracked = false;
  for (const Tensor& t : call.in) {
    ValueIndex i = find(t);
    x_dot.push_back(i == kUntracked ? Tensor() : tangents_[i]);
    tracked |= bool(x_dot.back());
  }
  if (!tracked || op.gradient == Gradient::none) return;
  if (op.gradient == Gradient::missing)
    fail(ErrorKind::lookup, op.public_name(), ": gradient registry has no entry for: ", op.name);

  // Only the recorders that were open before this one see the work on tangents.
  auto& recorders = thread_state().recorders;
  size_t mine = 0;
  while (mine < recorders.size() && recorders[mine] != this) ++mine;
  PauseRecording inner(mine);

  SmallVector<Tensor, 4> y_dot =
      rows_ < 0 ? find_tangents(call, x_dot) : tangents_for_rows(call, x_dot, rows_, find_tangents);
  if (op.is_program && op.watched_params && rows_ < 0)  // a branch or loop: what it did not reach changes by zero
    for (size_t j = 0; j < y_dot.size(); ++j)
      if (!y_dot[j] && differentiable.has(call.out[j].dtype())) y_dot[j] = zeros_like(call.out[j]);
  for (size_t j = 0; j < call.out.size(); ++j)
    if (y_dot[j] && differentiable.has(call.out[j].dtype())) watch(call.out[j], y_dot[j]);
}

}  // namespace tapeflow
