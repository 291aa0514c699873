// Running plans.
#include "plan/plan.h"

#include "base/subnormals.h"
#include "plan/borrowed_memory.h"

namespace tapeflow {

bool Plan::fits(std::span<const Tensor> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].dtype() != inputs_[i].spec.dtype || !(inputs[i].shape() == inputs_[i].spec.shape)) return false;
  return true;
}

void Plan::run_kernel(Step& step) {
  if (step.made < 0) {
    step.kernel(*step.call);
    for (size_t k = 0; k < step.out.size(); ++k) {
      Tensor& t = step.call->out[k];
      if (t.body() == step.out[k]) continue;
      std::memcpy(step.out[k]->data, t.raw(), t.bytes());
      t = Tensor::borrow(step.out[k]);
    }
    return;
  }
  Made& m = made_[size_t(step.made)];
  step.call->out.clear();
  step.kernel(*step.call);
  for (size_t k = 0; k < m.bodies.size(); ++k) {
    if (!(step.call->out[k].shape() == m.bodies[k]->shape))
      fail(ErrorKind::runtime, step.call->name(), ": the shape rule said ", m.bodies[k]->shape, ", the kernel made ",
           step.call->out[k].shape());
    bind(m.bodies[k], step.call->out[k]);
  }
  std::swap(m.held, step.call->out);
  for (Alias& a : m.aliases) lie_in(a.body, a.root, a.offset);
}

void Plan::run_step(Step& step) {
  if (!step.kernel) return step.program->run();
  if (!step.program) return run_kernel(step);
  auto follow = [&](int64_t first, int64_t count, int64_t rows, int64_t pitch) {
    step.program->run_part(first, count, rows, pitch);
  };
  const Finish finish(follow);
  step.call->finish = &finish;
  run_kernel(step);
  if (std::exchange(step.call->finish, nullptr)) step.program->run();
}

void Plan::run_steps() {
  size_t s = 0;
  for (Branches& b : branches_) {
    while (s < b.first) run_step(steps_[s++]);
    run_branches(b);
    s = b.parts.back().end;
  }
  while (s < steps_.size()) run_step(steps_[s++]);
}

bool Plan::run(std::span<const Tensor> inputs, Tensors& outputs) {
  if (running_) return false;
  for (const VariableUse& u : variables_)
    if (!u.variable->value || !(u.variable->value.shape() == u.spec.shape)) return false;
  struct Running {
    Plan& plan;
    ~Running() {
      plan.running_ = false;
      for (Alias& a : plan.aliases_) release(a.body);
      for (Input& i : plan.inputs_) release(i.body);
      for (VariableUse& u : plan.variables_)
        if (u.body) release(u.body);
      for (Made& m : plan.made_) {
        for (Alias& a : m.aliases) release(a.body);
        for (TensorBody* b : m.bodies) release(b);
        m.held.clear();
      }
      for (Store& s : plan.stores_) {
        if (s.computed) release(s.body);
        s.fresh = Tensor();
      }
      for (Result& r : plan.results_) {
        if (r.kind == Result::Kind::computed) release(r.body);
        if (r.kind == Result::Kind::computed || r.kind == Result::Kind::variable) r.tensor = Tensor();
      }
    }
  } running{*this};
  running_ = true;
  FlushSubnormals flush(flushes_);

  for (Store& s : stores_) {
    if (!s.computed) continue;
    const Tensor& old = s.variable->value;
    if (old) old.raw();
    bool over = s.in_place && old && old.unique() && old.shape() == s.spec.shape;
    if (!over) s.fresh = Tensor::allocate(s.spec.dtype, s.spec.shape);
    const Tensor& place = over ? old : s.fresh;
    lie_in(s.body, place.body(), 0);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) bind(inputs_[i].body, inputs[i]);
  for (VariableUse& u : variables_)
    if (u.body) bind(u.body, u.variable->value);
  for (Result& r : results_) {
    if (r.kind == Result::Kind::variable) r.tensor = variables_[size_t(r.which)].variable->value.view(r.spec.shape);
    if (r.kind != Result::Kind::computed) continue;
    r.tensor = Tensor::allocate(r.spec.dtype, r.spec.shape);
    lie_in(r.body, r.tensor.body(), 0);
  }
  for (Alias& a : aliases_) lie_in(a.body, a.root, a.offset);

  run_steps();

  auto copy_of_body = [](TensorBody* body) { return copy_of(Tensor::borrow(body)); };
  for (Store& s : stores_) {
    if (!s.computed) {
      Tensor value = copy_of_body(s.body);
      check_assignable(*s.variable, value, "assign");
      s.variable->value = std::move(value);
    } else if (s.fresh) {
      s.variable->value = std::move(s.fresh);
    }
  }
  for (Result& r : results_) {
    switch (r.kind) {
      case Result::Kind::computed:
      case Result::Kind::variable: outputs.push_back(std::move(r.tensor)); break;
      case Result::Kind::input: outputs.push_back(inputs[size_t(r.which)]); break;
      case Result::Kind::constant: outputs.push_back(r.tensor); break;
      case Result::Kind::copied: outputs.push_back(copy_of_body(r.body)); break;
      case Result::Kind::stored: outputs.push_back(stores_[size_t(r.which)].variable->value.view(r.spec.shape)); break;
    }
  }
  return true;
}

}  // namespace tapeflow
