// Rows x[i] whose place a graph computes.
#include "control_flow/dynamic_rows.h"

#include <cstring>

#include "ops/arrays/slicing.h"

namespace tapeflow {
namespace {

int64_t integer_in(const Tensor& t) { return t.dtype() == DType::int32 ? *t.data<int32_t>() : *t.data<int64_t>(); }

constexpr struct : Keys {
  Key<int64_t> rows = next("rows");
} place_params;
const Op& place_op = define_inner(Op{
    .name = "RowNumber",
    .arguments = {tensor("place", any_dtype), integer(place_params.rows)},
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), {1}); },
    .kernel =
        [](Call& call) {
          const int64_t place = integer_in(call.in[0]),
                        number = place < 0 ? place + call.params[place_params.rows] : place;
          const Tensor& y = call.out[0];
          if (y.dtype() == DType::int32)
            *y.mutable_data<int32_t>() = int32_t(number);
          else
            *y.mutable_data<int64_t>() = number;
        },
    .gradient = Gradient::none,
});

const Op& view_op = define_inner(Op{
    .name = "Row",
    .arguments = {},
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const SlicePart part{SlicePart::Kind::index, integer_in(call.in[1])};
          const int64_t at = plan_slice(Shape{x.dim(0)}, {part}).begin[0];
          const Shape row = x.shape().slice(1, x.rank());
          call.out.push_back(x.view(row, at * row.elements()));
        },
    .makes_outputs = true,
});

}  // namespace

Tensor place_in_key(const Graph& graph, const Tensor& key) {
  if (key.size() != int64_t(kNumbersPerPart) || !integers.has(key.dtype())) return Tensor();
  const Value& value = graph.values[key.body()->symbol().value];
  if (value.node < 0) return Tensor();
  const Node& pack = graph.nodes[size_t(value.node)];
  if (pack.op != &stack_op() || pack.inputs.size() != kNumbersPerPart) return Tensor();
  const Value& kind = graph.values[pack.inputs[0]];
  if (kind.node != Value::kConstant || integer_in(kind.tensor) != int64_t(SlicePart::Kind::index)) return Tensor();
  const Tensor& place = graph.values[pack.inputs[1]].tensor;
  return place.rank() == 0 && (place.dtype() == DType::int32 || place.dtype() == DType::int64) ? place : Tensor();
}

const Op& row_op() { return view_op; }

Tensor row_number(const Tensor& place, int64_t rows) { return run(place_op, {place}, {Param(rows)}); }

}  // namespace tapeflow
