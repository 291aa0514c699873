// The Shape and GetItem operations of graphs.
#include "graph/shape_ops.h"

namespace tapeflow {
namespace {

const Op& shape_op = define_inner(Op{
    .name = "Shape",
    .arguments = {tensor("input", any_dtype), integer("dtype")},
    .infer_staged =
        [](Call& call) {
          const Shape& shape = call.in[0].shape();
          call.returns(DType(call.params.integer(0)), Shape{shape.known_rank() ? shape.rank() : -1});
        },
    .kernel = [](Call& call) { call.out.push_back(int_tensor(call.in[0].shape().dims(), DType(call.params.integer(0)))); },
    .makes_outputs = true,
    .gradient = Gradient::none,
});

struct Key {
  SliceKey parts;
  std::vector<std::pair<size_t, OpenPart::Which>> open;  // per input after the first
};
const Key& key_in(const Params& params) { return *static_cast<const Key*>(params[0].object.get()); }

bool is_open(const Key& key, size_t part) {
  for (auto& [number, which] : key.open)
    if (number == part) return true;
  return false;
}

template <class Value> SliceKey filled_key(const Key& key, Value value) {
  SliceKey parts = key.parts;
  for (size_t i = 0; i < key.open.size(); ++i) {
    SlicePart& part = parts[key.open[i].first];
    int64_t number = read_ints(value(int(i) + 1))[0];
    switch (key.open[i].second) {
      case OpenPart::Which::begin: part.begin = number; break;
      case OpenPart::Which::end: part.end = number; break;
      case OpenPart::Which::step: part.step = number; break;
    }
  }
  return parts;
}

Shape staged_shape(const Shape& shape, const Key& key) {
  if (!shape.known_rank()) return Shape::unknown();
  int used = 0;
  for (const SlicePart& part : key.parts) used += part.kind == SlicePart::Kind::index || part.kind == SlicePart::Kind::range;
  if (used > shape.rank())
    fail(ErrorKind::invalid_argument, "__getitem__: Index out of range using input dim ", shape.rank(), "; input has only ", shape.rank(), " dims");
  Shape result;
  int d = 0;
  for (size_t i = 0; i < key.parts.size(); ++i) {
    const SlicePart& part = key.parts[i];
    if (part.kind == SlicePart::Kind::ellipsis) {
      for (int end = d + shape.rank() - used; d < end; ++d) result.append(shape[d]);
    } else if (part.kind == SlicePart::Kind::new_axis) {
      result.append(1);
    } else {
      int64_t size = shape[d++];
      if (part.kind == SlicePart::Kind::index) continue;
      bool whole = !part.has_begin && !part.has_end && part.step == 1;
      if (whole) result.append(size);
      else if (size < 0 || is_open(key, i)) result.append(-1);
      else result.append(plan_slice(Shape{size}, SliceKey{part}).result[0]);
    }
  }
  for (; d < shape.rank(); ++d) result.append(shape[d]);
  return result;
}

const Op& get_item_op = define_inner(Op{
    .name = "GetItem",
    .arguments = {tensors("input_and_indices", any_dtype)},
    .infer_staged = [](Call& call) { call.returns(call.in[0].dtype(), staged_shape(call.in[0].shape(), key_in(call.params))); },
    .kernel =
        [](Call& call) {
          PauseRecording unheard;
          SliceKey key = filled_key(key_in(call.params), [&](int i) { return call.in[size_t(i)]; });
          call.out.push_back(slice_by_key(call.in[0], key));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          SlicePlan plan = plan_slice(c.x(0).shape(), filled_key(key_in(c.params), [&](int i) { return c.x(i); }));
          Tensor dy = reshape(c.dy(), Shape(plan.count.data(), int(plan.count.size())));
          c.set(0, strided_spread(dy, c.x(0).shape(), plan.begin, plan.step));
        },
    .keep = keep_all_inputs,
    .rule_needs_values = true,
});

}  // namespace

Tensor shape_of(const Tensor& x, DType dtype) { return run(shape_op, std::initializer_list<Tensor>{x}, {Param(int64_t(dtype))}); }

Tensor filled_when_run(const Tensor& x, double value) {
  static const Op& broadcast_op = *find_op("BroadcastTo");
  Params params{Param(shape_of(x, DType::int32), int(Argument::Kind::ints))};
  return run(broadcast_op, std::initializer_list<Tensor>{filled(x.dtype(), {}, value)}, params);
}

Tensor get_item(const Tensor& x, const SliceKey& key, std::span<const OpenPart> open) {
  auto plan = std::make_shared<Key>();
  plan->parts = key;
  SmallVector<Tensor, 4> in;
  in.push_back(x);
  for (const OpenPart& part : open) {
    in.push_back(part.value);
    plan->open.push_back({part.part, part.which});
  }
  return run(get_item_op, in, {Param(std::static_pointer_cast<void>(plan))});
}

}  // namespace tapeflow
