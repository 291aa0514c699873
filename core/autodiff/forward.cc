// Tangents, operation by operation.
//
// An op without a forward rule gets its tangent from the reverse one: the VJP is linear in dy, so differentiating it by
// dy and applying that to x_dot gives J x_dot. The value of dy does not matter; zeros are taken.
#include "autodiff/forward.h"

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
    sources.push_back(flows ? tape.find(dy.back()) : kNotFollowed);
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
  std::vector<Cotangent> flow = tape.gradient(targets, target_specs, cotangents, sources);
  for (size_t i = 0; i < flow.size(); ++i)
    y_dot.push_back(flow[i] ? densified(flow[i], call.out[i].shape()) : Tensor());
  return y_dot;
}

}  // namespace

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
  follow(t, ValueIndex(tangents_.size()));
  tangents_.push_back(std::move(tangent));
}

void ForwardAccumulator::watch(VariableBody& v, Tensor tangent) {
  follow(v, ValueIndex(tangents_.size()));
  tangents_.push_back(std::move(tangent));
}

Tensor ForwardAccumulator::tangent(const Tensor& t) const {
  ValueIndex i = find(t);
  return i == kNotFollowed ? Tensor() : tangents_[i];
}

Tensor ForwardAccumulator::tangent(const VariableBody& v) const {
  ValueIndex i = find(v);
  return i == kNotFollowed ? Tensor() : tangents_[i];
}

void ForwardAccumulator::read(VariableBody& v, const Tensor& value) {
  ValueIndex index = find(v);
  if (index != kNotFollowed && find(value) != index) follow(value, index);
}

void ForwardAccumulator::record(const Call& call) {
  const Op& op = call.op;
  SmallVector<Tensor, 4> x_dot;
  bool followed = false;
  for (const Tensor& t : call.in) {
    ValueIndex i = find(t);
    x_dot.push_back(i == kNotFollowed ? Tensor() : tangents_[i]);
    followed |= bool(x_dot.back());
  }
  if (!followed || op.gradient == Gradient::none) return;
  if (op.gradient == Gradient::missing)
    fail(ErrorKind::lookup, op.public_name(), ": gradient registry has no entry for: ", op.name);

  // Only the recorders that were open before this one hear of the work on tangents.
  auto& recorders = thread_state().recorders;
  size_t mine = 0;
  while (mine < recorders.size() && recorders[mine] != this) ++mine;
  PauseRecording inner(mine);

  SmallVector<Tensor, 4> y_dot;
  if (op.jvp) {
    RuleContext context{op, call.params, call.in, call.out, {}, nullptr, x_dot, {}, {}, {}};
    context.result.resize(call.out.size());
    op.jvp(context);
    y_dot = std::move(context.result);
  } else {
    y_dot = transpose_vjp(call, x_dot);
  }
  for (size_t j = 0; j < call.out.size(); ++j)
    if (y_dot[j] && differentiable.has(call.out[j].dtype())) watch(call.out[j], y_dot[j]);
}

}  // namespace tapeflow
