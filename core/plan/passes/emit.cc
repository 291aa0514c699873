// The steps of a plan: calls of kernels and programs of groups, with the bodies of the tensors they read and write.
#include <algorithm>
#include <limits>
#include <tuple>

#include "kernels/simd/short_rows.h"
#include "kernels/simd/vector.h"
#include "plan/borrowed_memory.h"
#include "plan/planner.h"

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

ElementwiseProgram::Step Planner::make_member(int i, const Scheduled& s, ElementwiseProgram& program) {
  const Node& n = graph().nodes[size_t(i)];
  const ElementLoops& loops = loops_[size_t(i)];
  const Shape result = spec(n.first_output).shape;
  Placement placement;
  int64_t rows = s.row_length;
  fits_group(i, result.elements(), &rows, placement);
  auto place = [&](ValueId v, Layout layout) -> ElementwiseProgram::Operand {
    const Info& m = info_[meant(v)];
    if (m.node != kNone && taken_in_.contains(m.node)) return {};
    if (layout == Layout::spread) return program.spread(body_of(v), result);
    if (m.member != kNone && m.step == info_[n.first_output].step) return {nullptr, m.member, layout};
    return {body_of(v), -1, layout};
  };
  ElementwiseProgram::Step step;
  const size_t a = loops.choice ? 1 : 0;
  step.a = place(n.inputs[a], placement.a);
  if (!loops.unary) step.b = place(n.inputs[a + 1], placement.b);
  if (loops.choice) step.c = place(n.inputs[0], placement.condition);
  step.unary = loops.unary;
  if (loops.binary) step.binary = placement.loop(*loops.binary);
  if (loops.choice) step.choice = placement.choice_loop(*loops.choice);
  step.width = size_of(spec(n.first_output).dtype);
  return step;
}

// The operands of a side of a combination are those of the member that is taken in, or the one of the outer operation.
ElementwiseProgram::Step Planner::make_combined(const ElementwiseProgram::Step& outer, const Combined& combined,
                                                const Scheduled& s, ElementwiseProgram& program) {
  using Side = std::pair<ElementwiseProgram::Operand, ElementwiseProgram::Operand>;
  auto side = [&](int taken, const ElementwiseProgram::Operand& own) -> Side {
    if (taken == kNone) return {own, {}};
    const ElementwiseProgram::Step inner = make_member(taken, s, program);
    const bool square = inner.unary && graph().nodes[size_t(taken)].op->planning.arithmetic == Arithmetic::multiply;
    return {inner.a, square ? inner.a : inner.b};
  };
  Side left = side(combined.left, outer.a), right = side(combined.right, outer.b);
  if (combined.swapped) std::swap(left, right);
  ElementwiseProgram::Step step;
  step.combined = {combined.kernel.run, combined.kernel.loop};
  std::tie(step.a, step.b) = left;
  std::tie(step.c, step.d) = right;
  step.width = outer.width;
  return step;
}

template <class T> void Planner::add_reduction(int i, const Scheduled& s, ElementwiseProgram& program) {
  const Node& n = graph().nodes[size_t(i)];
  const ReductionKind kind = n.op->planning.reduction;
  const Table table = reduced_table(n);
  const auto& kernels = vector_kernels<T>();
  const auto& rows = short_row_kernels<T>();
  constexpr T infinity = std::numeric_limits<T>::infinity();
  using Loops = ElementwiseProgram::ReductionLoops<T>;
  Loops loops = kind == ReductionKind::max   ? Loops{kernels.max, kernels.accumulate_max, -infinity, rows.max}
                : kind == ReductionKind::min ? Loops{kernels.min, kernels.accumulate_min, infinity, rows.min}
                                             : Loops{kernels.sum, kernels.accumulate, T(0), rows.sum};
  if (table.length > kLongestShortRow) loops.short_rows = nullptr;
  const Info& x = info_[meant(n.inputs[0])];
  const bool inside = x.grouped && &scheduled_[size_t(x.step)] == &s;
  const double divisor = kind == ReductionKind::mean ? double(table.length / table.columns) : 1;
  program.add({inside ? x.member : kNone, inside ? nullptr : body_of(n.inputs[0]), table.length, table.columns, divisor,
               body_of(n.first_output)},
              loops);
}

const ElementwiseProgram* Planner::make_program(const Scheduled& s) {
  Graph& g = graph();
  int64_t size = spec(g.nodes[size_t(s.group[0])].first_output).shape.elements();
  ElementwiseProgram& program = plan_->programs_.emplace_back(size, s.row_length);
  for (int i : s.group) {
    if (taken_in_.contains(i)) continue;
    Info& made = info_[g.nodes[size_t(i)].first_output];
    ElementwiseProgram::Step step = make_member(i, s, program);
    if (auto it = combined_.find(i); it != combined_.end()) step = make_combined(step, it->second, s, program);
    if (made.kept) step.target = body_of(g.nodes[size_t(i)].first_output);
    made.member = program.add(step);
  }
  for (int i : s.reductions) {
    if (spec(g.nodes[size_t(i)].first_output).dtype == DType::float64)
      add_reduction<double>(i, s, program);
    else
      add_reduction<float>(i, s, program);
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
    for (auto it = guests_.lower_bound({scheduled_[s].part, 0});
         it != guests_.end() && it->first.first == scheduled_[s].part; ++it)
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
