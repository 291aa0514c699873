// The door: runs the shape rule and the kernel of an operation, then tells the open recorders.
#include <algorithm>
#include <mutex>
#include <vector>

#include "op/escape.h"
#include "op/op.h"
#include "tensor/pending.h"

namespace tapeflow {

const char* Call::name() const { return op.public_name(); }

constinit thread_local ThreadState* state_of_thread __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

using Recorders = SmallVector<Recorder*, 4>;

// The state of a thread with the lists that PauseRecording will put back: who stops meanwhile leaves them, too.
struct WholeState : ThreadState {
  std::vector<Recorders*> hidden;
  WholeState();
  ~WholeState();
};
struct AllStates {
  std::mutex mutex;
  std::vector<WholeState*> states;
};
AllStates& all_states() {
  static AllStates& all = *new AllStates;  // threads may end after everything else
  return all;
}
WholeState::WholeState() {
  std::lock_guard lock(all_states().mutex);
  all_states().states.push_back(this);
}
WholeState::~WholeState() {
  std::lock_guard lock(all_states().mutex);
  std::erase(all_states().states, this);
}
std::vector<Recorders*>& hidden_lists() { return static_cast<WholeState&>(thread_state()).hidden; }

bool take_out(Recorders& recorders, const Recorder* recorder) {
  size_t at = 0;
  while (at < recorders.size() && recorders[at] != recorder) ++at;
  if (at == recorders.size()) return false;
  for (; at + 1 < recorders.size(); ++at) recorders[at] = recorders[at + 1];
  recorders.pop_back();
  return true;
}
bool take_out(WholeState& state, const Recorder* recorder) {
  bool found = take_out(state.recorders, recorder);
  for (Recorders* list : state.hidden) found |= take_out(*list, recorder);
  return found;
}

void hide(Recorders& saved) {
  if (!saved.empty()) hidden_lists().push_back(&saved);
}

}  // namespace

ThreadState& begin_thread() {
  static thread_local WholeState state;
  return *(state_of_thread = &state);
}

void stop_recorder(const Recorder* recorder) {
  if (take_out(static_cast<WholeState&>(thread_state()), recorder)) return;
  // It was opened on another thread, as that of an object which the garbage collector finds.
  std::lock_guard lock(all_states().mutex);
  for (WholeState* state : all_states().states) take_out(*state, recorder);
}

namespace {

// What is traced becomes a node. True if it did.
bool staged(Call& call, Stage* stage) {
  if (stage && stage->takes(call)) {
    stage->add(call);
    return true;
  }
  for (const Tensor& t : call.in)
    if (t.symbolic()) fail_escaped(call.name(), t);
  return false;
}

// Lets a large elementwise result wait for its first reader; false if it must be computed now.
bool wait(Call& call) {
  const Op& op = call.op;
  const Tensor &a = call.in[0], &b = call.in[op.float_binary ? 1 : 0];
  if (std::max(a.size(), b.size()) < kPendingElements || a.dtype() != DType::float32) return false;
  ElementwiseOperation operation{a, Tensor(), op.float_unary};
  if (op.float_binary) {
    if (!operation.placement.find(a.shape(), b.shape(), call.specs[0].shape)) return false;
    operation.b = b;
    operation.binary = operation.placement.loop(*op.float_binary);
  }
  Tensor y;
  if (!make_pending(call.specs[0].shape, std::move(operation), &y)) return false;
  call.out.push_back(std::move(y));
  return true;
}

// The commonest case, without the way through shape rule and kernel: a few float32 elements, shapes that agree or a
// scalar. False if it is not that.
bool run_small_floats(Call& call) {
  constexpr int64_t kMost = std::min(kCheapGrain, kCostlyGrain);  // what one thread does
  const Op& op = call.op;
  if (!op.float_unary && !op.float_binary) return false;
  const Tensor& a = call.in[0];
  if (a.dtype() != DType::float32 || a.size() > kMost) return false;
  if (op.float_unary) {
    Tensor& y = call.out.emplace_back() = Tensor::allocate_like(a);
    op.float_unary(a.raw(), y.mutable_raw(), a.size());
    return true;
  }
  const Tensor& b = call.in[1];
  if (b.dtype() != DType::float32 || b.size() > kMost) return false;
  const bool same = a.shape() == b.shape();
  if (!same && a.rank() != 0 && b.rank() != 0) return false;
  const Tensor& larger = same || b.rank() == 0 ? a : b;
  Tensor& y = call.out.emplace_back() = Tensor::allocate_like(larger);
  auto loop = same ? op.float_binary->vv : b.rank() == 0 ? op.float_binary->vs : op.float_binary->sv;
  loop(a.raw(), b.raw(), y.mutable_raw(), larger.size());
  return true;
}

void run_kernel(Call& call, ThreadState& state, bool computed) {
  const bool elementwise = call.op.float_unary || call.op.float_binary;
  if (elementwise && !state.in_kernel && wait(call)) return;
  if (!computed)
    for (const Tensor& t : call.in) t.raw();
  if (!call.op.makes_outputs)
    for (const Spec& spec : call.specs) call.out.push_back(Tensor::allocate(spec.dtype, spec.shape));
  if (elementwise) return call.op.kernel(call);
  struct Inside {
    bool& flag;
    bool before;
    ~Inside() { flag = before; }
  } inside{state.in_kernel, state.in_kernel};
  state.in_kernel = true;
  call.op.kernel(call);
}

}  // namespace

std::string (*describe_escaped)(const Tensor&) = nullptr;

void fail_escaped(const char* operation, const Tensor& t) {
  std::string what = describe_escaped ? describe_escaped(t) : "a symbolic tf.Tensor";
  size_t end = what.find('\n');
  fail(ErrorKind::type, operation, ": ", what.substr(0, end),
       " is out of scope and cannot be used here. Use return values, explicit "
       "Python locals or TensorFlow collections to access it.\nPlease see "
       "https://www.tensorflow.org/guide/function#all_outputs_of_a_tffunction_must_be_return_values for more "
       "information.",
       end == std::string::npos ? std::string() : what.substr(end));
}

void dispatch(Call& call) {
  ThreadState& state = thread_state();
  bool computed = true;
  for (const Tensor& t : call.in) computed &= t.computed();
  const bool done = computed && !state.stage ? run_small_floats(call) : staged(call, state.stage);
  if (!done) {
    if (call.op.infer) call.op.infer(call);
    run_kernel(call, state, computed);
  }
  // Outermost first: what an inner recorder does with the result is itself followed by those outside of it.
  for (size_t i = 0; i < state.recorders.size(); ++i) state.recorders[i]->record(call);
}

Tensor run(const Op& op, std::span<const Tensor> in, const Params& params) {
  Call call(op, in, params);
  dispatch(call);
  return std::move(call.out[0]);
}

Tensors run_all(const Op& op, std::span<const Tensor> in, const Params& params) {
  Call call(op, in, params);
  dispatch(call);
  return std::move(call.out);
}

const Tensor& read_variable(VariableBody& v) {
  ThreadState& state = thread_state();
  if (!v.value && !state.stage) fail(ErrorKind::failed_precondition, "Variable: it was read before it was initialised");
  const Tensor& value = state.stage ? state.stage->read(v) : v.value;
  for (Recorder* r : state.recorders) r->read(v, value);
  return value;
}

PauseRecording::PauseRecording(size_t first) : saved_(thread_state().recorders) {
  hide(saved_);
  thread_state().recorders.resize(first);
}
PauseRecording::PauseRecording(TapesOnly) : saved_(thread_state().recorders) {
  hide(saved_);
  auto& recorders = thread_state().recorders;
  recorders.clear();
  for (Recorder* r : saved_)
    if (r->forward()) recorders.push_back(r);
}
PauseRecording::~PauseRecording() {
  auto& hidden = hidden_lists();
  if (!hidden.empty() && hidden.back() == &saved_)
    hidden.pop_back();
  else
    std::erase(hidden, &saved_);
  thread_state().recorders = std::move(saved_);
}

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
  Spec spec = output_spec(i);
  Tensor zero = Tensor::allocate(spec.dtype, spec.shape);
  std::memset(zero.mutable_raw(), 0, zero.bytes());
  return zero;
}
Shape RuleContext::shape(int i) const {
  if (kept_inputs[size_t(i)]) return kept_inputs[size_t(i)].shape();
  if (forms[size_t(i)].rank == kLikeOutput) return output_spec(0).shape;
  const int64_t* at = dims;
  for (int k = 0; k < i; ++k) at += std::max<int8_t>(0, forms[size_t(k)].rank);
  return Shape(at, forms[size_t(i)].rank);
}
Spec RuleContext::output_spec(int i) const {
  if (kept_outputs[size_t(i)]) return {kept_outputs[size_t(i)].dtype(), kept_outputs[size_t(i)].shape()};
  const int64_t* at = dims;
  for (int k = 0; k < inputs() + i; ++k) at += std::max<int8_t>(0, forms[size_t(k)].rank);
  Form form = forms[size_t(inputs() + i)];
  return {form.dtype, Shape(at, form.rank)};
}

void RuleContext::set_spread(int i, const Op& spread, std::span<const Tensor> in, const Params& given) {
  const Tensor* so_far = total(i);
  if (so_far && wide_floating.has(so_far->dtype())) return spread.add_to(Call(spread, in, given), *so_far);
  set(i, run(spread, in, given));
}

void RuleContext::set_rows(int i, Tensor values, Tensor indices) {
  if (sparse_indices.size() <= size_t(i)) sparse_indices.resize(size_t(i) + 1);
  sparse_indices[size_t(i)] = std::move(indices);
  set(i, std::move(values));
}

}  // namespace tapeflow
