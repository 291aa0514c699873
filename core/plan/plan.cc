// Running plans.
#include "plan/plan.h"

#include "base/subnormals.h"
#include "plan/borrowed_memory.h"
#include "tensor/unlocked.h"

namespace tapeflow {
namespace {

// Makes a body a view of a tensor of the program, until it is given back.
void lend(PlanCode::Lent& lent, TensorBody* body, const Tensor& t) {
  const void* data = t.raw();
  if (t.body()->buffer) {
    lent.holder = t;
    lent.own.references = 2;  // the body's, and one that stays
    body->buffer = &lent.own;
    body->data = const_cast<void*>(data);
  } else {
    std::memcpy(body->small, data, t.bytes());
    body->data = body->small;
  }
}
// The same for memory that the plan writes.
void lend_for_writing(PlanCode::Lent& lent, TensorBody* body, const Tensor& t) {
  lent.holder = t;
  lent.own.references = 2;
  body->buffer = t.body()->buffer ? &lent.own : nullptr;
  body->data = t.mutable_raw();
}
void give_back(PlanCode::Lent& lent, TensorBody* body) {
  body->buffer = nullptr;
  body->data = body->small;
  lent.holder = Tensor();
}

}  // namespace

bool Plan::fits(std::span<const Tensor> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].dtype() != code_.inputs[i].spec.dtype || !(inputs[i].shape() == code_.inputs[i].spec.shape))
      return false;
  return true;
}

void Plan::run_kernel(Step& step) {
  if (step.results < 0) {
    step.kernel(*step.call);
    for (size_t k = 0; k < step.out.size(); ++k) {
      Tensor& t = step.call->out[k];
      if (t.body() == step.out[k]) continue;
      std::memcpy(step.out[k]->data, t.raw(), t.bytes());
      t = Tensor::borrow(step.out[k]);
    }
    return;
  }
  PlanCode::KernelResults& m = code_.kernel_results[size_t(step.results)];
  step.call->out.clear();
  step.kernel(*step.call);
  for (size_t k = 0; k < m.bodies.size(); ++k) {
    if (!(step.call->out[k].shape() == m.bodies[k]->shape))
      fail(ErrorKind::runtime, step.call->name(), ": the shape rule said ", m.bodies[k]->shape, ", the kernel made ",
           step.call->out[k].shape());
    bind(m.bodies[k], step.call->out[k]);
  }
  std::swap(m.held, step.call->out);
  for (PlanCode::Alias& a : m.aliases) alias(a.body, a.root, a.offset);
}

void Plan::run_step(Step& step) {
  if (!step.kernel) return step.program->run();
  if (!step.program) return run_kernel(step);
  auto run_epilogue = [&](int64_t first, int64_t count, int64_t rows, int64_t pitch) {
    step.program->run_part(first, count, rows, pitch);
  };
  const Epilogue finish(run_epilogue);
  step.call->epilogue = &finish;
  run_kernel(step);
  if (std::exchange(step.call->epilogue, nullptr)) step.program->run();
}

void Plan::run_steps() {
  const bool worthwhile = code_.microseconds >= worth_unlocking_from;
  size_t s = 0;
  auto region = code_.regions.begin();
  while (s < code_.steps.size()) {
    if (code_.steps[s].needs_lock) {
      run_step(code_.steps[s++]);
      continue;
    }
    const Unlocked unlocked(worthwhile);
    while (s < code_.steps.size() && !code_.steps[s].needs_lock) {
      if (region != code_.regions.end() && s == region->first) {
        run_region(*region);
        s = region->lanes.back().end;
        ++region;
      } else {
        run_step(code_.steps[s++]);
      }
    }
  }
}

bool Plan::run(std::span<const Tensor> inputs, Tensors& outputs) {
  if (running_) return false;
  for (const PlanCode::VariableUse& u : code_.variables)
    if (!u.variable->value || !(u.variable->value.shape() == u.spec.shape)) return false;
  struct Running {
    Plan& plan;
    ~Running() {
      plan.running_ = false;
      for (PlanCode::Alias& a : plan.code_.aliases) release(a.body);
      for (PlanCode::KernelResults& m : plan.code_.kernel_results) {
        for (PlanCode::Alias& a : m.aliases) release(a.body);
        for (TensorBody* b : m.bodies) release(b);
        m.held.clear();
      }
      for (PlanCode::Store& s : plan.code_.stores) {
        if (s.computed) give_back(s.lent, s.body);
        s.fresh = Tensor();
      }
      for (PlanCode::Input& i : plan.code_.inputs) give_back(i.lent, i.body);
      for (PlanCode::VariableUse& u : plan.code_.variables) give_back(u.lent, u.body);
      for (PlanCode::Result& r : plan.code_.results) {
        if (r.kind == PlanCode::Result::Kind::computed) release(r.body);
        if (r.kind == PlanCode::Result::Kind::computed || r.kind == PlanCode::Result::Kind::variable)
          r.tensor = Tensor();
      }
    }
  } running{*this};
  running_ = true;
  FlushSubnormals flush(code_.flush_subnormals);

  for (PlanCode::Store& s : code_.stores) {
    if (!s.computed) continue;
    const Tensor& old = s.variable->value;
    if (old) old.raw();
    bool over = s.in_place && old && old.unique() && old.shape() == s.spec.shape;
    if (!over) s.fresh = Tensor::allocate(s.spec.dtype, s.spec.shape);
    lend_for_writing(s.lent, s.body, over ? old : s.fresh);
  }
  for (size_t i = 0; i < code_.inputs.size(); ++i) lend(code_.inputs[i].lent, code_.inputs[i].body, inputs[i]);
  for (PlanCode::VariableUse& u : code_.variables) lend(u.lent, u.body, u.variable->value);
  for (PlanCode::Result& r : code_.results) {
    if (r.kind == PlanCode::Result::Kind::variable)
      r.tensor = code_.variables[size_t(r.which)].variable->value.view(r.spec.shape);
    if (r.kind != PlanCode::Result::Kind::computed) continue;
    r.tensor = Tensor::allocate(r.spec.dtype, r.spec.shape);
    alias(r.body, r.tensor.body(), 0);
  }
  for (PlanCode::Alias& a : code_.aliases) alias(a.body, a.root, a.offset);

  run_steps();

  auto copy_of_body = [](TensorBody* body) { return copy_of(Tensor::borrow(body)); };
  for (PlanCode::Store& s : code_.stores) {
    if (!s.computed) {
      Tensor value = copy_of_body(s.body);
      check_assignable(*s.variable, value, "assign");
      s.variable->value = std::move(value);
    } else if (s.fresh) {
      s.variable->value = std::move(s.fresh);
    }
  }
  for (PlanCode::Result& r : code_.results) {
    switch (r.kind) {
      case PlanCode::Result::Kind::computed:
      case PlanCode::Result::Kind::variable: outputs.push_back(std::move(r.tensor)); break;
      case PlanCode::Result::Kind::input: outputs.push_back(inputs[size_t(r.which)]); break;
      case PlanCode::Result::Kind::constant: outputs.push_back(r.tensor); break;
      case PlanCode::Result::Kind::copied: outputs.push_back(copy_of_body(r.body)); break;
      case PlanCode::Result::Kind::stored:
        outputs.push_back(code_.stores[size_t(r.which)].variable->value.view(r.spec.shape));
        break;
    }
  }
  return true;
}

}  // namespace tapeflow
