// Emit: the code of a plan.
//
// Input:     `steps` with fused loops and regions, and bodies of values.
// Output:    `code`: calls of kernels and programs of fusions, with the bodies of the tensors they read and write,
//            aliases of those, and parallel regions.
// Invariant: a lane holds no body that another lane holds: what it reads of others it reads through borrowed views.
#include <algorithm>
#include <limits>
#include <tuple>

#include "base/parallel.h"
#include "kernels/simd/short_rows.h"
#include "kernels/simd/vector.h"
#include "plan/borrowed_memory.h"
#include "plan/cost.h"
#include "plan/fusion.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

class Emitter {
 public:
  explicit Emitter(PlanIR& ir) : ir_(ir), code_(ir.code) {}

  void run() {
    for (const Step& step : ir_.steps)
      step.each_node([&](int i) {
        for (ValueId v : ir_.node(i).inputs) add_alias(v);
      });
    for (ValueId v : ir_.graph->outputs) add_alias(v);
    for (const auto& [variable, v] : ir_.stores) add_alias(v);
    for (const Step& step : ir_.steps) {
      PlanCode::Step emitted;
      emitted.program_order = step.program_order;
      emitted.after = step.after;
      emitted.needs_lock = !step.is_fusion() && needs_interpreter_lock(*ir_.graph, ir_.node(step.kernel));
      code_.microseconds += estimated_microseconds(step);
      if (!step.is_fusion()) add_call(step, emitted);
      if (!step.fused.empty()) emitted.program = add_program(step);
      code_.steps.push_back(std::move(emitted));
    }
    for (const ParallelRegion& region : ir_.regions) add_region(region);
  }

 private:
  using Program = ElementwiseProgram;

  double estimated_microseconds(const Step& step) const {
    Cost cost;
    if (!step.is_fusion()) cost = cost_of(*ir_.graph, ir_.node(step.kernel), thread_count());
    if (!step.fused.empty())
      cost += cost_of_fusion(ir_.elements_of(step), step.fused.size() + step.reductions.size(), thread_count());
    return cost.threaded;
  }

  // A view gets its memory now if its root has it, else when the plan runs and the root gets it.
  void add_alias(ValueId v) {
    const ValueId root = ir_.root(v);
    if (root == v || !aliased_.insert(v).second) return;
    const PlanCode::Alias found{ir_.body_of(v), ir_.body_of(root), ir_.values[v].offset};
    const ValueInfo& info = ir_.values[root];
    if (info.kind == ValueInfo::Kind::computed && ir_.node(info.node).op->makes_outputs)
      aliases_of_results_[info.node].push_back(found);
    else if (info.kind == ValueInfo::Kind::constant || (info.kind == ValueInfo::Kind::computed && !info.stored))
      alias(found.body, found.root, found.offset);
    else
      code_.aliases.push_back(found);
  }

  // ---- programs of fusions

  Program::Step fused_step(int i, const Step& step, Program& program) {
    const Node& n = ir_.node(i);
    const ElementLoops& loops = ir_.loops[size_t(i)];
    const Shape& result = ir_.shape(n.first_output);
    Placement placement;
    int64_t rows = step.row_length;
    fits_fusion(ir_, i, result.elements(), &rows, placement);
    auto operand = [&](ValueId v, Layout layout) -> Program::Operand {
      const ValueInfo& x = ir_.root_info(v);
      if (x.node != kNone && ir_.inlined.contains(x.node)) return {};
      if (layout == Layout::broadcast) return program.broadcast(ir_.body_of(v), result);
      if (x.program_step != kNone && x.step == ir_.values[n.first_output].step)
        return {nullptr, x.program_step, layout};
      return {ir_.body_of(v), -1, layout};
    };
    Program::Step emitted;
    const size_t a = loops.choice ? 1 : 0;
    emitted.a = operand(n.inputs[a], placement.a);
    if (!loops.unary) emitted.b = operand(n.inputs[a + 1], placement.b);
    if (loops.choice) emitted.c = operand(n.inputs[0], placement.condition);
    emitted.unary = loops.unary;
    if (loops.binary) emitted.binary = placement.loop(*loops.binary);
    if (loops.choice) emitted.choice = placement.choice_loop(*loops.choice);
    emitted.width = size_of(ir_.dtype(n.first_output));
    if (wide_floating.has(ir_.dtype(n.first_output))) emitted.arithmetic = n.op->planning.arithmetic;
    return emitted;
  }

  // The operands of a side of a fused loop are those of the inlined node, or the one of the outer node.
  Program::Step fused_loop(const Program::Step& outer, const FusedLoop& loop, const Step& step, Program& program) {
    using Side = std::pair<Program::Operand, Program::Operand>;
    auto side = [&](int inlined, const Program::Operand& own) -> Side {
      if (inlined == kNone) return {own, {}};
      const Program::Step inner = fused_step(inlined, step, program);
      const bool square = inner.unary && ir_.node(inlined).op->planning.arithmetic == Arithmetic::multiply;
      return {inner.a, square ? inner.a : inner.b};
    };
    Side left = side(loop.left, outer.a), right = side(loop.right, outer.b);
    if (loop.swapped) std::swap(left, right);
    Program::Step emitted;
    emitted.combined = {loop.kernel.run, loop.kernel.loop};
    std::tie(emitted.a, emitted.b) = left;
    std::tie(emitted.c, emitted.d) = right;
    emitted.width = outer.width;
    return emitted;
  }

  template <class T> void add_reduction(int i, const Step& step, Program& program) {
    const Node& n = ir_.node(i);
    const ReductionKind kind = n.op->planning.reduction;
    const ReductionTable table = reduction_table(ir_, n);
    const auto& kernels = vector_kernels<T>();
    const auto& rows = short_row_kernels<T>();
    constexpr T infinity = std::numeric_limits<T>::infinity();
    using Loops = Program::ReductionLoops<T>;
    Loops loops = kind == ReductionKind::max   ? Loops{kernels.max, kernels.accumulate_max, -infinity, rows.max}
                  : kind == ReductionKind::min ? Loops{kernels.min, kernels.accumulate_min, infinity, rows.min}
                                               : Loops{kernels.sum, kernels.accumulate, T(0), rows.sum};
    if (table.length > kLongestShortRow) loops.short_rows = nullptr;
    const ValueInfo& x = ir_.root_info(n.inputs[0]);
    const bool inside = x.fused && &ir_.steps[size_t(x.step)] == &step;
    const double divisor = kind == ReductionKind::mean ? double(table.length / table.columns) : 1;
    program.add({inside ? x.program_step : kNone, inside ? nullptr : ir_.body_of(n.inputs[0]), table.length,
                 table.columns, divisor, ir_.body_of(n.first_output)},
                loops);
  }

  const Program* add_program(const Step& step) {
    Program& program = code_.programs.emplace_back(ir_.elements_of(step), step.row_length);
    for (int i : step.fused) {
      if (ir_.inlined.contains(i)) continue;
      const ValueId y = ir_.node(i).first_output;
      Program::Step emitted = fused_step(i, step, program);
      if (auto it = ir_.fused_loops.find(i); it != ir_.fused_loops.end())
        emitted = fused_loop(emitted, it->second, step, program);
      if (ir_.values[y].materialized) emitted.target = ir_.body_of(y);
      ir_.values[y].program_step = program.add(emitted);
    }
    for (int i : step.reductions) {
      if (ir_.dtype(ir_.node(i).first_output) == DType::float64)
        add_reduction<double>(i, step, program);
      else
        add_reduction<float>(i, step, program);
    }
    program.finish();
    return &program;
  }

  // ---- kernels

  TensorBody* body_for(ValueId v, int lane) {
    TensorBody* body = ir_.body_of(v);
    const ValueId root = ir_.root(v);
    if (lane == kNone || (ir_.computed(root) && ir_.lane_of(root) == lane)) return body;
    TensorBody*& view = borrowed_[{lane, v}];
    if (!view) view = code_.bodies.emplace_back(bare_body(body->dtype, body->shape)).body();
    return view;
  }

  void add_call(const Step& step, PlanCode::Step& emitted) {
    const Node& n = ir_.node(step.kernel);
    emitted.kernel = n.op->kernel;
    emitted.in = std::make_unique<SmallVector<Tensor, 4>>();
    for (ValueId v : n.inputs) emitted.in->push_back(Tensor::borrow(body_for(v, step.lane)));
    emitted.call =
        std::make_unique<Call>(*n.op, std::span<const Tensor>(emitted.in->begin(), emitted.in->size()), n.params);
    for (uint32_t k = 0; k < n.outputs; ++k)
      emitted.call->returns(ir_.dtype(n.first_output + k), ir_.shape(n.first_output + k));
    if (!n.op->makes_outputs) {
      for (uint32_t k = 0; k < n.outputs; ++k) {
        emitted.out.push_back(ir_.body_of(n.first_output + k));
        emitted.call->out.push_back(Tensor::borrow(emitted.out.back()));
      }
      return;
    }
    emitted.results = int(code_.kernel_results.size());
    PlanCode::KernelResults& results = code_.kernel_results.emplace_back();
    for (uint32_t k = 0; k < n.outputs; ++k) results.bodies.push_back(ir_.body_of(n.first_output + k));
    results.aliases = aliases_of_results_[step.kernel];
  }

  void add_region(const ParallelRegion& region) {
    PlanCode::Region& emitted = code_.regions.emplace_back();
    emitted.first = region.first;
    emitted.pipelined = region.pipelined;
    size_t s = region.first;
    for (size_t end : region.ends) {
      auto& lane = emitted.lanes.emplace_back();
      lane.end = end;
      const int number = ir_.steps[s].lane;
      for (auto it = borrowed_.lower_bound({number, 0}); it != borrowed_.end() && it->first.first == number; ++it)
        emitted.views.emplace_back(ir_.body_of(it->first.second), it->second);
      for (; s < end; ++s) ir_.steps[s].each_node([&](int i) { lane.nodes.push_back(i); });
      std::ranges::sort(lane.nodes);
    }
  }

  PlanIR& ir_;
  PlanCode& code_;
  std::set<ValueId> aliased_;
  std::map<int, std::vector<PlanCode::Alias>> aliases_of_results_;  // by node
  std::map<std::pair<int, ValueId>, TensorBody*> borrowed_;         // by lane and value
};

}  // namespace

void emit(PlanIR& ir) {
  Emitter(ir).run();
  ir.code.graph = ir.graph;
}

}  // namespace tapeflow::plan
