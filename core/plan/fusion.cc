// Conditions of fusions.
#include "plan/fusion.h"

#include <algorithm>

namespace tapeflow::plan {

bool fits_fusion(PlanIR& ir, int i, int64_t size, int64_t* row_length, Placement& placement) {
  const Node& n = ir.node(i);
  const ElementLoops& loops = ir.loops[size_t(i)];
  if (!loops || ir.elements_of(n) != size) return false;
  const Shape& result = ir.shape(n.first_output);
  placement.row_length = *row_length;
  if (loops.unary) return true;
  // A constant whose elements are all equal is read as one number.
  auto shape_of = [&](ValueId v) { return ir.uniform(v) ? Shape{} : ir.shape(v); };
  const size_t a = loops.choice ? 1 : 0;
  const bool varies = placement.find(shape_of(n.inputs[a]), shape_of(n.inputs[a + 1]), result);
  if (loops.choice)
    placement.find_condition(ir.shape(n.inputs[0]), result);
  else if (!varies)
    return false;
  *row_length = placement.row_length;
  return true;
}

bool reads_in_full(const PlanIR& ir, const Node& n, ValueId v, int64_t size) {
  return std::ranges::any_of(n.inputs, [&](ValueId x) {
    return ir.root(x) == ir.root(v) && ir.values[x].offset == 0 && ir.elements(x) == size;
  });
}

ReductionTable reduction_table(const PlanIR& ir, const Node& n) {
  constexpr int64_t kMostColumns = 1 << 14, kLongTable = 1 << 16;
  const Shape& shape = ir.shape(n.inputs[0]);
  const Param& axes = n.params.value(reduction_params.axis);
  if (axes.kind == Param::Kind::none) return {shape.elements(), 1};
  if (axes.kind != Param::Kind::ints) return {0, 0};
  bool reduced[kMaxRank] = {};
  for (int64_t a : axes.ints) reduced[a < 0 ? a + shape.rank() : a] = true;
  int first = 0, last = shape.rank();  // axes of 1 may count as either
  while (first < last && (!reduced[first] || shape[first] == 1)) ++first;
  while (last > first && (!reduced[last - 1] || shape[last - 1] == 1)) --last;
  for (int i = first; i < last; ++i)
    if (!reduced[i] && shape[i] != 1) return {0, 0};
  const ReductionTable table{shape.elements(first, shape.rank()), shape.elements(last, shape.rank())};
  if (table.columns > 1 && shape.elements() < kWorthFusingReduction) return {0, 0};
  const bool fits = table.columns <= kMostColumns &&
                    (table.columns == 1 || table.length == shape.elements() || table.length <= kLongTable);
  return fits ? table : ReductionTable{0, 0};
}

}  // namespace tapeflow::plan
