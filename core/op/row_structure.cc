// The structure of rows, from the properties of entries.
#include "op/row_structure.h"

#include <algorithm>
#include <cstring>

namespace tapeflow {
namespace {

// A number that stands for any element of an input; the element itself if all are the same. Conditions: both values, by
// the sign of the number.
Tensor sample_of(const Tensor& t, double number) {
  if (t.dtype() == DType::boolean) number = number > 0;
  if (t.symbolic() || t.size() == 0) return Tensor::number(t.dtype(), number);
  const size_t width = size_of(t.dtype());
  const char* p = static_cast<const char*>(t.raw());
  const bool uniform = t.size() == 1 || std::memcmp(p, p + width, size_t(t.size() - 1) * width) == 0;
  if (!uniform) return Tensor::number(t.dtype(), number);
  Tensor one = Tensor::allocate(t.dtype(), Shape());
  std::memcpy(one.mutable_raw(), p, width);
  return one;
}

// Whether zeros for the inputs that are by row give zeros, whatever the others are: tried on numbers.
bool keeps_zeros(const Call& call, std::span<const bool> by_row) {
  EnterStage nowhere(nullptr);
  PauseRecording paused;
  for (double number : {0.7, 2.0, -3.0}) {
    SmallVector<Tensor, 4> in;
    for (size_t i = 0; i < call.in.size(); ++i)
      in.push_back(by_row[i] ? Tensor::number(call.in[i].dtype(), 0) : sample_of(call.in[i], number));
    try {
      const Tensor y = run(call.op, in, call.params);
      const char* bytes = static_cast<const char*>(y.raw());
      for (size_t b = 0; b < y.bytes(); ++b)
        if (bytes[b] != 0 && !(bytes[b] == char(0x80) && b + 1 == y.bytes())) return false;
    } catch (const Error&) {
      return false;
    }
  }
  return true;
}

// Inputs that are by row have the rank and the first dimension of the result.
bool rows_meet(const Call& call, std::span<const bool> by_row) {
  const Shape& y = call.specs[0].shape;
  for (size_t i = 0; i < call.in.size(); ++i)
    if (by_row[i] && (call.in[i].rank() != y.rank() || call.in[i].dim(0) != y[0])) return false;
  return true;
}

RowStructure rows_of_reduction(const Call& call) {
  const Param& axes = call.params.value(reduction_params.axis);
  bool first = axes.is_none();
  if (!first && axes.kind != Param::Kind::ints) return RowStructure::mixed;
  if (!first)
    for (int64_t a : axes.ints) first |= a == 0 || a == -call.in[0].rank();
  const ReductionKind kind = call.op.planning.reduction;
  if (kind == ReductionKind::sum) return first ? RowStructure::summed : RowStructure::separate;
  return kind == ReductionKind::mean && !first ? RowStructure::separate : RowStructure::mixed;
}

}  // namespace

RowStructure row_structure(const Call& call, std::span<const bool> by_row, std::span<bool> also_cut) {
  const PlanProperties& known = call.op.planning;
  if (call.specs.size() != 1 || call.specs[0].shape.rank() == 0) {
    const bool sum = call.specs.size() == 1 && known.reduction == ReductionKind::sum;
    return sum ? rows_of_reduction(call) : RowStructure::mixed;
  }
  if (call.op.row_rule) return call.op.row_rule(call, by_row, also_cut);
  if (known.reduction != ReductionKind::none) return rows_of_reduction(call);
  const bool only_first = by_row[0] && std::ranges::count(by_row, true) == 1;
  if (known.view == ViewKind::always) return only_first ? RowStructure::separate : RowStructure::mixed;
  if (!rows_meet(call, by_row)) return RowStructure::mixed;
  if (known.is_broadcast) return RowStructure::separate;
  return call.op.elementwise && keeps_zeros(call, by_row) ? RowStructure::separate : RowStructure::mixed;
}

}  // namespace tapeflow
