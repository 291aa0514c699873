// The state of variables during a second run.
#include "graph/replay.h"

#include <utility>

#include "ops/ops.h"

namespace tapeflow {
namespace {

// The value of a variable now, which is the input to recorders.
const Op& reading_op = define_inner(Op{
    .name = "ReadVariableAgain",
    .arguments = {tensor("source", any_dtype)},
    .kernel =
        [](Call& call) {
          const Tensor& value = variable_in(call.params).value;
          call.out.push_back(value.view(value.shape()));
        },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, c.dy()); },
    .jvp = [](RuleContext& c) { c.set(0, c.x_dot(0)); },
    .stateful = true,
});

}  // namespace

Tensors values_of(std::span<VariableBody* const> variables) {
  Tensors values;
  for (const VariableBody* v : variables) values.push_back(v->value);
  return values;
}

Replay::Replay(std::span<VariableBody* const> variables, std::span<const Tensor> before)
    : variables_(variables.begin(), variables.end()),
      now_(values_of(variables)),
      outer_(std::exchange(thread_locals.replay, this)) {
  for (size_t i = 0; i < variables_.size(); ++i)
    variables_[i]->value = before[i] ? before[i].view(before[i].shape()) : Tensor();
}

Replay::~Replay() {
  for (size_t i = 0; i < variables_.size(); ++i) variables_[i]->value = std::move(now_[i]);
  thread_locals.replay = outer_;
}

void Replay::track(VariableBody& v, Tensor source) { sources_.emplace_back(&v, std::move(source)); }

Tensor Replay::reading(VariableBody& v) {
  if (!thread_locals.replay || thread_state().stage) return Tensor();
  for (const auto& [variable, source] : thread_locals.replay->sources_)
    if (variable == &v) return run(reading_op, std::span(&source, 1), {variable_param(v)});
  return Tensor();
}

}  // namespace tapeflow
