// The steps of a plan: calls of kernels and programs of groups, with the bodies of the tensors they read and write.
#include <algorithm>
#include <string_view>

#include "graph/planner.h"
#include "graph/shown_memory.h"
#include "kernels/vector.h"

namespace tapeflow {

void Planner::alias(ValueId v) {
  if (meant(v) == v || !aliased_.insert(v).second) return;
  TensorBody *body = body_of(v), *root = body_of(meant(v));
  const Info& info = info_[meant(v)];
  bool by_kernel = info.kind == Info::Kind::computed && made(graph().nodes[size_t(info.node)]);
  if (by_kernel)
    made_aliases_[info.node].push_back({body, root, info_[v].offset});
  else if (info.kind == Info::Kind::constant || (info.kind == Info::Kind::computed && !info.stored))
    lie_in(body, root, info_[v].offset);
  else
    plan_->aliases_.push_back({body, root, info_[v].offset});
}

void Planner::make_steps() {
  Graph& g = graph();
  for (size_t s = 0; s < scheduled_.size(); ++s)
    scheduled_[s].each_node([&](int i) {
      for (ValueId v : g.nodes[size_t(i)].inputs) alias(v);
    });
  for (ValueId v : g.outputs) alias(v);
  for (auto& [variable, v] : stores_) alias(v);
  for (const Scheduled& s : scheduled_) {
    Plan::Step step;
    step.program_order = s.program_order;
    step.after = s.after;
    if (s.kernel != kNone) make_call(s, step);
    if (!s.group.empty()) step.program = make_program(s);
    plan_->steps_.push_back(std::move(step));
  }
  for (const Section& section : sections_) make_section(section);
}

const ElementwiseProgram* Planner::make_program(const Scheduled& s) {
  Graph& g = graph();
  int64_t size = spec(g.nodes[size_t(s.group[0])].first_output).shape.elements();
  ElementwiseProgram& program = plan_->programs_.emplace_back(size, s.row_length);
  for (int i : s.group) {
    const Node& n = g.nodes[size_t(i)];
    Placement placement;
    int64_t rows = s.row_length;
    fits_group(n, size, &rows, placement);
    ElementwiseProgram::Step step;
    ElementwiseProgram::Operand* operands[] = {&step.a, &step.b};
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      ValueId v = n.inputs[k];
      const Info& m = info_[meant(v)];
      operands[k]->layout = k == 0 ? placement.a : placement.b;
      if (operands[k]->layout == Layout::spread)
        *operands[k] = program.spread(body_of(v), spec(n.first_output).shape);
      else if (m.member != kNone && m.step == info_[n.first_output].step)
        operands[k]->step = m.member;
      else
        operands[k]->body = body_of(v);
    }
    step.unary = n.op->float_unary;
    if (n.op->float_binary) step.binary = placement.loop(*n.op->float_binary);
    Info& made = info_[n.first_output];
    if (made.kept) step.target = body_of(n.first_output);
    made.member = program.add(step);
  }
  for (int i : s.sums) {
    const Node& n = g.nodes[size_t(i)];
    const SumTable table = sum_table(n);
    const float divisor = std::string_view(n.op->name) == "Mean" ? float(table.length / table.columns) : 1.0f;
    program.add({info_[meant(n.inputs[0])].member, table.length, table.columns, divisor, body_of(n.first_output)}, {vector_kernels<float>().sum, vector_kernels<float>().accumulate});
  }
  program.finish();
  return &program;
}

// What a kernel in a part reads of others is a guest there.
TensorBody* Planner::body_for(ValueId v, int part) {
  TensorBody* body = body_of(v);
  const Info& from = info_[meant(v)];
  if (part == kNone || (from.kind == Info::Kind::computed && part_of(meant(v)) == part)) return body;
  TensorBody*& own = guests_[{part, v}];
  if (!own) own = plan_->bodies_.emplace_back(bare_body(body->dtype, body->shape)).body();
  return own;
}

void Planner::make_section(const Section& section) {
  Plan::Branches& branches = plan_->branches_.emplace_back();
  branches.first = section.first;
  branches.follows = section.follows;
  size_t s = section.first;
  for (size_t end : section.ends) {
    auto& part = branches.parts.emplace_back();
    part.end = end;
    for (auto it = guests_.lower_bound({scheduled_[s].part, 0}); it != guests_.end() && it->first.first == scheduled_[s].part; ++it)
      branches.guests.emplace_back(body_of(it->first.second), it->second);
    for (; s < end; ++s) scheduled_[s].each_node([&](int i) { part.nodes.push_back(i); });
    std::ranges::sort(part.nodes);
  }
}

void Planner::make_call(const Scheduled& s, Plan::Step& step) {
  const Node& n = graph().nodes[size_t(s.kernel)];
  step.kernel = n.op->kernel;
  step.in = std::make_unique<SmallVector<Tensor, 4>>();
  for (ValueId v : n.inputs) step.in->push_back(Tensor::borrow(body_for(v, s.part)));
  step.call = std::make_unique<Call>(*n.op, std::span<const Tensor>(step.in->begin(), step.in->size()), n.params);
  for (uint32_t k = 0; k < n.outputs; ++k) {
    const Spec output = spec(n.first_output + k);
    step.call->returns(output.dtype, output.shape);
  }
  if (!made(n)) {
    for (uint32_t k = 0; k < n.outputs; ++k) {
      step.out.push_back(body_of(n.first_output + k));
      step.call->out.push_back(Tensor::borrow(step.out.back()));
    }
    return;
  }
  step.made = int(plan_->made_.size());
  Plan::Made& made = plan_->made_.emplace_back();
  for (uint32_t k = 0; k < n.outputs; ++k) made.bodies.push_back(body_of(n.first_output + k));
  made.aliases = made_aliases_[s.kernel];
}

}  // namespace tapeflow
