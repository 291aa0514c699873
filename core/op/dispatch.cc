// The door: runs the shape rule and the kernel of an operation, then tells the open recorders.
#include "op/op.h"

namespace tapeflow {

const char* Call::name() const { return op.public_name(); }

ThreadState& thread_state() {
  static thread_local ThreadState state __attribute__((tls_model("initial-exec")));
  return state;
}

void stop_recorder(const Recorder* recorder) {
  auto& recorders = thread_state().recorders;
  size_t at = 0;
  while (at < recorders.size() && recorders[at] != recorder) ++at;
  if (at == recorders.size()) return;
  for (; at + 1 < recorders.size(); ++at) recorders[at] = recorders[at + 1];
  recorders.pop_back();
}

void dispatch(Call& call) {
  if (call.op.infer) call.op.infer(call);
  if (!call.op.makes_outputs)
    for (const Spec& spec : call.specs) call.out.push_back(Tensor::allocate(spec.dtype, spec.shape));
  call.op.kernel(call);
  ThreadState& state = thread_state();
  for (size_t i = state.recorders.size(); i-- > 0;) state.recorders[i]->record(call);
}

Tensor run(const Op& op, std::span<const Tensor> in, const Params& params) {
  Call call(op, in, params);
  dispatch(call);
  return std::move(call.out[0]);
}

SmallVector<Tensor, 2> run_all(const Op& op, std::span<const Tensor> in, const Params& params) {
  Call call(op, in, params);
  dispatch(call);
  return std::move(call.out);
}

const Tensor& read_variable(VariableBody& v) {
  if (!v.value) fail(ErrorKind::failed_precondition, "Variable: it was read before it was initialised");
  for (Recorder* r : thread_state().recorders) r->read(v);
  return v.value;
}

PauseRecording::PauseRecording(size_t first) : saved_(thread_state().recorders) { thread_state().recorders.resize(first); }
PauseRecording::PauseRecording(TapesOnly) : saved_(thread_state().recorders) {
  auto& recorders = thread_state().recorders;
  recorders.clear();
  for (Recorder* r : saved_)
    if (r->forward()) recorders.push_back(r);
}
PauseRecording::~PauseRecording() { thread_state().recorders = std::move(saved_); }

const Tensor& RuleContext::x(int i) const {
  const Tensor& t = kept_inputs[size_t(i)];
  if (!t) fail(ErrorKind::runtime, op.name, ": its rule reads input ", i, " but does not keep it");
  return t;
}
const Tensor& RuleContext::y(int i) const {
  const Tensor& t = kept_outputs[size_t(i)];
  if (!t) fail(ErrorKind::runtime, op.name, ": its rule reads output ", i, " but does not keep it");
  return t;
}
Tensor RuleContext::dy(int i) const {
  if (given[size_t(i)]) return given[size_t(i)];
  Tensor zero = Tensor::allocate(output_specs[size_t(i)].dtype, output_specs[size_t(i)].shape);
  std::memset(zero.mutable_raw(), 0, zero.bytes());
  return zero;
}
void RuleContext::set_rows(int i, Tensor values, Tensor indices) {
  if (sparse_indices.size() <= size_t(i)) sparse_indices.resize(size_t(i) + 1);
  sparse_indices[size_t(i)] = std::move(indices);
  set(i, std::move(values));
}

}  // namespace tapeflow
