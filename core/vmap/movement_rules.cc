// Batching of operations that move elements: the rows are a dimension more in front, which nothing touches.
#include "ops/arrays/slicing.h"
#include "vmap/rules.h"

namespace tapeflow {
namespace {

Ints in_front(int64_t first, const Ints& rest) {
  Ints result{first};
  for (int64_t n : rest) result.push_back(n);
  return result;
}

bool reshaping(BatchCall& c) {
  c.run_same({c.in[0]}, {Param(in_front(c.rows, c.params.ints(0)))});
  return true;
}

bool expanding(BatchCall& c) {
  c.run_same({c.in[0]}, {Param(int64_t(row_axis(c, c.params.integer(0), c.row_rank(0) + 1) + 1))});
  return true;
}

bool squeezing(BatchCall& c) {
  Ints axes;
  Shape row = c.row_shape(0);
  if (c.params[0].is_none() || c.params.ints(0).empty()) {
    for (int i = 0; i < row.rank(); ++i)
      if (row[i] == 1) axes.push_back(i + 1);
  } else {
    for (int64_t axis : c.params.ints(0)) axes.push_back(row_axis(c, axis, row.rank()) + 1);
  }
  if (axes.empty())
    c.out.push_back(identity(c.in[0]));
  else
    c.run_same({c.in[0]}, {Param(axes)});
  return true;
}

bool transposing(BatchCall& c) {
  int rank = c.row_rank(0);
  Ints order{0};
  for (int i = 0; i < rank; ++i)
    order.push_back(c.params[0].is_none() ? rank - i : row_axis(c, c.params.ints(0)[size_t(i)], rank) + 1);
  c.run_same({c.in[0]}, c.with_param(0, Param(order)));
  return true;
}

bool telling_shape(BatchCall& c) {
  c.out.push_back(int_tensor(c.row_shape(0).dims(), c.params[0].is_none() ? DType::int32 : c.params.dtype(0)));
  return c.same_for_all = true;
}

bool ensuring_shape(BatchCall& c) {
  if (c.params[0].is_none())
    c.out.push_back(identity(c.in[0]));
  else
    c.run_same({c.in[0]}, {Param(in_front(-1, c.params.ints(0)))});
  return true;
}

bool spreading(BatchCall& c) {
  const Ints& wanted = c.params.ints(0);
  c.run_same({c.with_rank(0, int(wanted.size()))}, {Param(in_front(c.rows, wanted))});
  return true;
}

bool joining(BatchCall& c) {
  c.run_same(c.all_with_rows(), {Param(int64_t(row_axis(c, c.params.integer(0), c.row_rank(0)) + 1))});
  return true;
}

bool stacking(BatchCall& c) {
  c.run_same(c.all_with_rows(), {Param(int64_t(row_axis(c, c.params.integer(0), c.row_rank(0) + 1) + 1))});
  return true;
}

// Taking apart along the axis that the second parameter names.
bool parting(BatchCall& c) {
  c.run_same({c.in[0]}, c.with_param(1, Param(int64_t(row_axis(c, c.params.integer(1), c.row_rank(0)) + 1))));
  return true;
}

bool tiling(BatchCall& c) {
  c.run_same({c.in[0]}, {Param(in_front(1, c.params.ints(0)))});
  return true;
}

bool reversing(BatchCall& c) {
  Ints axes;
  for (int64_t axis : c.params.ints(0)) axes.push_back(row_axis(c, axis, c.row_rank(0)) + 1);
  c.run_same({c.in[0]}, {Param(axes)});
  return true;
}

bool padding(BatchCall& c) {
  if (c.batched[1]) return false;
  c.run_same({c.in[0], c.in[1]}, {Param(in_front(0, in_front(0, c.params.ints(0))))});
  return true;
}

bool slicing(BatchCall& c) {
  c.run_same({c.in[0]}, {Param(in_front(0, c.params.ints(0))), Param(in_front(1, c.params.ints(1))),
                         Param(in_front(c.rows, c.params.ints(2)))});
  return true;
}

bool unslicing(BatchCall& c) {
  c.run_same({c.in[0]}, {Param(in_front(c.rows, c.params.ints(0))), Param(in_front(0, c.params.ints(1))),
                         Param(in_front(1, c.params.ints(2)))});
  return true;
}

bool cutting_by_key(BatchCall& c) {
  Ints key = encode_key({SlicePart{SlicePart::Kind::range}}).ints(0);
  for (int64_t n : c.params.ints(0)) key.push_back(n);
  c.run_same({c.in[0]}, {Param(key)});
  return true;
}

constexpr NamedRule rules[] = {
    {"Reshape", reshaping},
    {"ExpandDims", expanding},
    {"Squeeze", squeezing},
    {"Transpose", transposing},
    {"Shape", telling_shape},
    {"BroadcastTo", spreading},
    {"EnsureShape", ensuring_shape},
    {"ConcatV2", joining},
    {"Pack", stacking},
    {"SplitV", parting},
    {"Unpack", parting},
    {"Tile", tiling},
    {"ReverseV2", reversing},
    {"PadV2", padding},
    {"StridedSlice", slicing},
    {"StridedSliceGrad", unslicing},
    {"GetItem", cutting_by_key},
};

}  // namespace

std::span<const NamedRule> movement_rules() { return rules; }

}  // namespace tapeflow
