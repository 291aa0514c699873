// Dispatch: runs the shape rule and the kernel of an operation, then notifies the open recorders.
#include <algorithm>

#include "op/escape.h"
#include "op/op.h"
#include "op/unlocked_kernel.h"
#include "tensor/lazy.h"

namespace tapeflow {

const char* Call::name() const { return op.public_name(); }

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

// Leaves a large elementwise result lazy until its first reader; false if it must be computed now.
bool wait(Call& call) {
  const Op& op = call.op;
  const Tensor &a = call.in[0], &b = call.in[op.float_binary ? 1 : 0];
  if (std::max(a.size(), b.size()) < kLazyElements || a.dtype() != DType::float32) return false;
  ElementwiseOperation operation{.a = a, .unary = op.float_unary, .arithmetic = op.planning.arithmetic};
  if (op.float_binary) {
    if (!operation.placement.find(a.shape(), b.shape(), call.specs[0].shape)) return false;
    operation.b = b;
    operation.binary = operation.placement.loop(*op.float_binary);
  }
  Tensor y;
  if (!make_lazy(call.specs[0].shape, std::move(operation), &y)) return false;
  call.out.push_back(std::move(y));
  return true;
}

// The commonest case, without the shape rule and the kernel: a few float32 elements, shapes that agree or a
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

[[gnu::always_inline]] inline void run_kernel(Call& call, ThreadState& state, bool computed) {
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
  if (!inside.before && worth_unlocking(call)) return run_unlocked(call);
  call.op.kernel(call);
}

// Constants that are folded while tracing. What a kernel refuses for its elements becomes a node that fails when it
// runs: it may stand in a branch that is not taken. Shapes that do not fit fail at once.
[[gnu::noinline]] void fold(Call& call, ThreadState& state, bool computed) {
  try {
    return run_kernel(call, state, computed);
  } catch (const Error& e) {
    if (e.kind != ErrorKind::invalid_argument) throw;
    call.out.clear();
    call.specs.clear();
    try {
      return state.stage->add(call);
    } catch (const Error&) {
      // The shape rule, tried out on zeros, refuses it as well.
    }
    throw;
  }
}

}  // namespace

void dispatch(Call& call) {
  ThreadState& state = thread_state();
  bool computed = true;
  for (const Tensor& t : call.in) computed &= t.computed();
  const bool done = computed && !state.stage ? run_small_floats(call) : staged(call, state.stage);
  if (!done) {
    if (call.op.infer) call.op.infer(call);
    if (state.stage)
      fold(call, state, computed);
    else
      run_kernel(call, state, computed);
  }
  // Outermost first: what an inner recorder does with the result is itself tracked by those outside of it.
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

}  // namespace tapeflow
