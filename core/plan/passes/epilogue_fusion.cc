// Epilogue fusion: a fusion processes the result of a kernel, block by block, as the kernel produces it: bias and
// activation after a matrix product or a convolution.
//
// Input:     `steps`: kernels and fusions.
// Output:    a fusion whose last operand to be computed is the float32 result of a kernel with Op::runs_epilogue is the
//            epilogue of that step.
// Invariant: an epilogue reads the result of its kernel element by element; it has no reductions (they are steps of
//            their own again).
#include <algorithm>
#include <utility>

#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

// The step whose kernel the fusion of step `at` can follow; kNone if there is none.
int kernel_step_of(const PlanIR& ir, size_t at) {
  const Step& step = ir.steps[at];
  int last = kNone;
  for (int i : step.fused)
    for (ValueId v : ir.node(i).inputs)
      if (ir.computed(ir.root(v)) && ir.root_info(v).step != int(at)) last = std::max(last, ir.root_info(v).step);
  if (last == kNone || ir.steps[size_t(last)].is_fusion() || !ir.steps[size_t(last)].fused.empty()) return kNone;
  const Node& kernel = ir.node(ir.steps[size_t(last)].kernel);
  if (!kernel.op->runs_epilogue || ir.dtype(kernel.first_output) != DType::float32) return kNone;
  const int64_t size = ir.elements_of(step);
  for (int i : step.fused)
    for (ValueId v : ir.node(i).inputs)
      if (ir.root(v) == kernel.first_output && (ir.values[v].offset != 0 || ir.elements(v) != size)) return kNone;
  return ir.elements(kernel.first_output) == size ? last : kNone;
}

}  // namespace

void epilogue_fusion(PlanIR& ir) {
  std::vector<std::vector<int>> released(ir.steps.size());  // reductions, by the step they leave
  for (size_t s = 0; s < ir.steps.size(); ++s) {
    Step& fusion = ir.steps[s];
    if (!fusion.is_fusion()) continue;
    const int at = kernel_step_of(ir, s);
    if (at == kNone) continue;
    Step& step = ir.steps[size_t(at)];
    released[s] = std::move(fusion.reductions);
    step.fused = std::move(fusion.fused);
    step.row_length = fusion.row_length;
    fusion = Step();
    ir.number(step, at);
  }
  std::vector<Step> before = std::exchange(ir.steps, {});
  for (size_t s = 0; s < before.size(); ++s) {
    for (int i : released[s]) {
      Step reduction;
      reduction.kernel = i;
      ir.steps.push_back(std::move(reduction));
    }
    if (!before[s].is_fusion() || !before[s].fused.empty()) ir.steps.push_back(std::move(before[s]));
  }
  ir.number_steps();
}

}  // namespace tapeflow::plan
