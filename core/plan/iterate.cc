// Running a plan on its own results: the iterations of a loop, whose state stays in the memory of the plan. What run()
// does for each call (checks, allocation of outputs) is done once.
#include "base/subnormals.h"
#include "plan/borrowed_memory.h"
#include "plan/plan.h"

namespace tapeflow {
namespace {

bool is_small(const PlanCode::Result& r) {
  return size_t(r.body->size) * size_of(r.body->dtype) <= sizeof r.body->small;
}

// The result that a step computes and result k is; null if there is none.
const PlanCode::Result* source_of(const PlanCode& code, size_t k) {
  for (const PlanCode::Result& r : code.results)
    if (r.kind == PlanCode::Result::Kind::computed && r.body == code.results[k].body) return &r;
  return nullptr;
}

}  // namespace

bool Plan::can_iterate(std::span<const int> feedback) const {
  using Kind = PlanCode::Result::Kind;
  if (running_ || !code_.variables.empty() || !code_.stores.empty()) return false;
  for (size_t k = 0; k < feedback.size(); ++k) {
    const PlanCode::Result& r = code_.results[k];
    if (feedback[k] < 0) {
      if (r.kind == Kind::variable || r.kind == Kind::stored) return false;
    } else if (source_of(code_, k)) {
      const Spec& input = code_.inputs[size_t(feedback[k])].spec;
      if (input.dtype != r.spec.dtype || !(input.shape == r.spec.shape)) return false;
    } else if (r.kind != Kind::input || r.which != feedback[k]) {
      return false;
    }
  }
  const PlanCode::Result& condition = code_.results.back();
  return condition.kind == Kind::computed && condition.spec.dtype == DType::boolean &&
         condition.spec.shape.elements() == 1;
}

// Small results lie in their bodies and are copied; for others two tensors take turns.
class Plan::Iteration {
 public:
  Iteration(PlanCode& code, std::span<const Tensor> inputs, std::span<const int> feedback, bool& running)
      : code_(code), feedback_(feedback), running_(running), flush_(code.flush_subnormals) {
    running_ = true;
    for (size_t i = 0; i < inputs.size(); ++i) {  // counts of holders that no other thread sees: see Unlocked
      views_.push_back(lasting_view(inputs[i]));
      bind(code_.inputs[i].body, views_.back());
    }
    for (PlanCode::Result& r : code_.results) {
      using Kind = PlanCode::Result::Kind;
      if (r.kind == Kind::computed && !is_small(r)) place(r, Tensor::allocate(r.spec.dtype, r.spec.shape));
      results_.push_back(r.kind == Kind::constant
                             ? r.tensor
                             : Tensor::borrow(r.kind == Kind::input ? code_.inputs[size_t(r.which)].body : r.body));
    }
    for (size_t k = 0; k < feedback.size(); ++k) sources_.push_back(source_of(code_, k));
    spare_.resize(code_.results.size());
    for (const PlanCode::Alias& a : code_.aliases) alias(a.body, a.root, a.offset);
  }
  ~Iteration() {
    running_ = false;
    results_.clear();
    for (PlanCode::Alias& a : code_.aliases) release(a.body);
    for (PlanCode::Input& i : code_.inputs) release(i.body);
    release_kernel_results();
    for (PlanCode::Result& r : code_.results) {
      if (r.kind != PlanCode::Result::Kind::computed) continue;
      release(r.body);
      r.tensor = Tensor();
    }
  }
  Iteration(const Iteration&) = delete;

  std::span<const Tensor> results() const { return results_; }
  bool condition() const { return *static_cast<const bool*>(code_.results.back().body->data); }

  // The results of this iteration become the inputs of the next one.
  void feed_back() {
    release_kernel_results();
    for (size_t k = 0; k < feedback_.size(); ++k) {
      const PlanCode::Result* r = sources_[k];
      if (feedback_[k] < 0 || !r) continue;
      TensorBody* input = code_.inputs[size_t(feedback_[k])].body;
      if (is_small(*r)) {
        std::memcpy(input->small, r->body->small, sizeof input->small);
        continue;
      }
      release(input);
      bind(input, r->tensor);
    }
    for (size_t k = 0; k < feedback_.size(); ++k) {
      PlanCode::Result& r = code_.results[k];
      if (r.kind != PlanCode::Result::Kind::computed || is_small(r)) continue;
      release(r.body);
      Tensor next = std::exchange(spare_[k], r.tensor);
      place(r, next ? std::move(next) : Tensor::allocate(r.spec.dtype, r.spec.shape));
    }
    for (PlanCode::Alias& a : code_.aliases) {
      release(a.body);
      alias(a.body, a.root, a.offset);
    }
  }

  // A result that outlives the iteration.
  Tensor kept_result(size_t k) const {
    const PlanCode::Result& r = code_.results[k];
    return r.kind == PlanCode::Result::Kind::computed && !is_small(r) ? r.tensor : copy_of(results_[k]);
  }

 private:
  static void place(PlanCode::Result& r, Tensor t) {
    alias(r.body, t.body(), 0);
    r.tensor = std::move(t);
  }
  void release_kernel_results() {
    for (PlanCode::KernelResults& m : code_.kernel_results) {
      for (PlanCode::Alias& a : m.aliases) release(a.body);
      for (TensorBody* b : m.bodies) release(b);
      m.held.clear();
    }
  }

  PlanCode& code_;
  std::span<const int> feedback_;
  bool& running_;
  FlushSubnormals flush_;
  Tensors views_;  // of the inputs
  Tensors results_;
  SmallVector<const PlanCode::Result*, 8> sources_;  // by result: where it is computed; null if it is an input
  Tensors spare_;                                    // by result: the other tensor
};

void Plan::iterate(std::span<const Tensor> inputs, std::span<const int> feedback, int64_t limit,
                   FunctionRef<void(std::span<const Tensor>)> after, Tensors& outputs) {
  Iteration iteration(code_, inputs, feedback, running_);
  for (int64_t i = 1;; ++i) {
    run_steps();
    after(iteration.results());
    if (!iteration.condition() || i == limit) break;
    iteration.feed_back();
  }
  outputs.clear();
  for (size_t k = 0; k < feedback.size(); ++k) outputs.push_back(iteration.kept_result(k));
}

}  // namespace tapeflow
