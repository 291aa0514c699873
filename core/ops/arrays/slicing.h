// A parsed index expression, and the slice it means for a given shape.
#pragma once
#include "ops/ops.h"

namespace tapeflow {

struct SlicePart {
  enum class Kind : uint8_t { index, range, ellipsis, new_axis } kind;
  int64_t begin = 0, end = 0, step = 1;
  bool has_begin = false, has_end = false;  // of a range
};
using SliceKey = SmallVector<SlicePart, 4>;

// For each dimension of x: the first position, the step and the number of positions; and the shape of the result.
struct SlicePlan {
  Ints begin, step, count;
  Shape result;
};
SlicePlan plan_slice(const Shape&, const SliceKey&);

Tensor slice_by_key(const Tensor&, const SliceKey&);
constexpr size_t kNumbersPerPart = 5;  // kind, begin, end, step, which of the bounds are given (1, 2)
// The key as the parameter of the operation GetItem, which cuts when shapes and bounds are there.
inline constexpr struct : Keys {
  Key<Ints> key = next("key");
} get_item_params;
Params encode_key(const SliceKey&);
const Op& get_item_op();
Tensor get_item(const Tensor& x, const Params& key);
// What a plan runs in the place of a slice, a split or an unstacking whose results are no views of its input: it knows
// where they go. Null if the operation is none of these.
const Op* copying_op(const Op&);
const Op* copying_split(const Op&);  // the same for splits and unstackings alone
// The positions begin + i * step, i < count, of every dimension.
Tensor strided_slice(const Tensor& x, const Ints& begin, const Ints& step, const Ints& count);
// Writes `value`, which must broadcast to the slice, into the positions of `target`.
void write_slice(const Tensor& target, const SlicePlan&, const Tensor& value);

// Rows of a variable, each with a row of `values`: replaced by it, with it added or subtracted. Repeated rows add up.
enum class RowUpdate { replace, add, subtract };
void update_rows(VariableBody&, const Tensor& indices, const Tensor& values, RowUpdate, const char* who);

}  // namespace tapeflow
