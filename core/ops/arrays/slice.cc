// Slices: index expressions, strided slices and their transposes.
#include <algorithm>
#include <cstring>

#include "ops/arrays/elements.h"
#include "ops/arrays/slicing.h"
#include "ops/arrays/strided_copy.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {

// ---- index expressions

SlicePlan plan_slice(const Shape& shape, const SliceKey& key) {
  int used = 0;
  bool has_ellipsis = false;
  for (const SlicePart& part : key) {
    used += part.kind == SlicePart::Kind::index || part.kind == SlicePart::Kind::range;
    if (part.kind == SlicePart::Kind::ellipsis) {
      if (has_ellipsis) fail(ErrorKind::value, "Multiple ellipses in slice spec not allowed");
      has_ellipsis = true;
    }
  }
  if (used > shape.rank() && shape.rank() == 0)
    fail(ErrorKind::invalid_argument, "__getitem__: Attempting to slice scalar input.");
  if (used > shape.rank())
    fail(ErrorKind::invalid_argument, "__getitem__: Index out of range using input dim ", shape.rank(),
         "; input has only ", shape.rank(), " dims");
  SlicePlan plan;
  int d = 0;
  auto keep_whole = [&](int until) {
    for (; d < until; ++d) {
      plan.begin.push_back(0), plan.step.push_back(1), plan.count.push_back(shape[d]);
      plan.result.append(shape[d]);
    }
  };
  for (const SlicePart& part : key) {
    switch (part.kind) {
      case SlicePart::Kind::ellipsis: keep_whole(d + shape.rank() - used); break;
      case SlicePart::Kind::new_axis: plan.result.append(1); break;
      case SlicePart::Kind::index: {
        int64_t at = part.begin < 0 ? part.begin + shape[d] : part.begin;
        if (at < 0 || at >= shape[d])
          fail(ErrorKind::invalid_argument, "__getitem__: slice index ", part.begin, " of dimension ", d,
               " out of bounds.");
        plan.begin.push_back(at), plan.step.push_back(1), plan.count.push_back(1);
        ++d;
        break;
      }
      case SlicePart::Kind::range: {
        if (part.step == 0) fail(ErrorKind::invalid_argument, "__getitem__: strides[", d, "] must be non-zero");
        int64_t n = shape[d], low = part.step > 0 ? 0 : -1, high = part.step > 0 ? n : n - 1;
        auto clamp = [&](int64_t v) { return std::min(std::max(v < 0 ? v + n : v, low), high); };
        int64_t begin = part.has_begin ? clamp(part.begin) : part.step > 0 ? low : high;
        int64_t end = part.has_end ? clamp(part.end) : part.step > 0 ? high : low;
        int64_t span = part.step > 0 ? end - begin : begin - end, size = part.step > 0 ? part.step : -part.step;
        int64_t count = span > 0 ? (span + size - 1) / size : 0;
        plan.begin.push_back(begin), plan.step.push_back(part.step), plan.count.push_back(count);
        plan.result.append(count);
        ++d;
        break;
      }
    }
  }
  keep_whole(shape.rank());
  return plan;
}

Tensor slice_by_key(const Tensor& x, const SliceKey& key) {
  if (x.size() < 0) return get_item(x, encode_key(key));
  SlicePlan plan = plan_slice(x.shape(), key);
  return reshape(strided_slice(x, plan.begin, plan.step, plan.count), plan.result);
}

Params encode_key(const SliceKey& key) {
  Ints numbers;
  for (const SlicePart& part : key)
    for (int64_t n :
         {int64_t(part.kind), part.begin, part.end, part.step, int64_t(part.has_begin) + 2 * int64_t(part.has_end)})
      numbers.push_back(n);
  return {Param(numbers)};
}

namespace {

SliceKey decode_key(const Ints& numbers) {
  SliceKey key;
  if (numbers.size() % kNumbersPerPart)
    fail(ErrorKind::invalid_argument, "__getitem__: a key has ", kNumbersPerPart, " numbers per part; got ",
         numbers.size());
  for (size_t i = 0; i < numbers.size(); i += kNumbersPerPart) {
    if (numbers[i] < 0 || numbers[i] > 3)
      fail(ErrorKind::invalid_argument, "__getitem__: a part of a key is of kind 0 to 3; got ", numbers[i]);
    key.push_back({SlicePart::Kind(numbers[i]), numbers[i + 1], numbers[i + 2], numbers[i + 3],
                   (numbers[i + 4] & 1) != 0, (numbers[i + 4] & 2) != 0});
  }
  return key;
}

// The shape of x[key] as far as it is known.
Shape known_slice(const Shape& x, const SliceKey& key) {
  if (!x.known_rank()) return Shape::unknown();
  Shape result;
  int d = 0, used = 0;
  for (const SlicePart& part : key) used += part.kind == SlicePart::Kind::index || part.kind == SlicePart::Kind::range;
  if (used > x.rank())
    fail(ErrorKind::invalid_argument, "__getitem__: Index out of range using input dim ", x.rank(), "; input has only ",
         x.rank(), " dims");
  for (const SlicePart& part : key) {
    bool known = part.begin != kUnknownInt && part.end != kUnknownInt && part.step != kUnknownInt;
    switch (part.kind) {
      case SlicePart::Kind::ellipsis:
        for (int until = d + x.rank() - used; d < until; ++d) result.append(x[d]);
        break;
      case SlicePart::Kind::new_axis: result.append(1); break;
      case SlicePart::Kind::index:
        if (known && x[d] >= 0) plan_slice(Shape{x[d]}, {part});
        ++d;
        break;
      case SlicePart::Kind::range: {
        bool whole = !part.has_begin && !part.has_end && part.step == 1;
        result.append(whole ? x[d] : known && x[d] >= 0 ? plan_slice(Shape{x[d]}, {part}).result[0] : -1);
        ++d;
        break;
      }
    }
  }
  for (; d < x.rank(); ++d) result.append(x[d]);
  return result;
}

extern const Op& strided_slice_grad_op;

// The gradient of a slice; of one that is all of `x`, dy itself.
void set_strided_slice_grad(RuleContext& c, const Tensor& dy, const Ints& begin, const Ints& step) {
  const Shape x = c.shape(0);
  bool whole = dy.shape() == x && x.elements() > 0;
  for (int i = 0; i < x.rank(); ++i) whole &= step[size_t(i)] > 0;
  if (whole) return c.set(0, dy);
  c.set_scatter_add(0, strided_slice_grad_op, std::span(&dy, 1), {Param(c.shape(0)), Param(begin), Param(step)});
}

// x[key] where shapes or bounds are not known while tracing.
const Op& get_item_entry = define(Op{
    .name = "GetItem",
    .planning = {.cannot_fail = true, .view = ViewKind::sometimes},
    .arguments = {tensor("input", any_dtype), ints(get_item_params.key)},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          bool known = count_known(call.params.value(get_item_params.key));
          for (size_t i = 0; known && i < call.params[get_item_params.key].size(); i += kNumbersPerPart)
            known = call.params[get_item_params.key][i] != kUnknownInt;
          call.returns(x.dtype(),
                       known ? known_slice(x.shape(), decode_key(call.params[get_item_params.key])) : Shape::unknown());
        },
    .kernel =
        [](Call& call) {
          PauseRecording unrecorded;
          SlicePlan plan = plan_slice(call.in[0].shape(), decode_key(call.params[get_item_params.key]));
          Tensor cut = strided_slice(call.in[0], plan.begin, plan.step, plan.count);
          call.out.push_back(cut.view(plan.result));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          SlicePlan plan = plan_slice(c.shape(0), decode_key(c.params[get_item_params.key]));
          Tensor dy = reshape(c.dy(), Shape(plan.count.data(), int(plan.count.size())));
          set_strided_slice_grad(c, dy, plan.begin, plan.step);
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .copies_elements = true,
    .batch =
        [](BatchCall& c) {
          Ints key = encode_key({SlicePart{SlicePart::Kind::range}})[get_item_params.key];
          for (int64_t n : c.params[get_item_params.key]) key.push_back(n);
          return c.run_same({c.in[0]}, {Param(key)});
        },
    .elements = Elements::moved,
    .node_name = "strided_slice",
});

// Calls row(offset in the sliced tensor, offset in the dense slice, length, step in the sliced tensor) for rows that
// make up the slice. Neighbouring dimensions through which it runs evenly count as one.
template <class Row>
void for_slice_rows(const Shape& shape, const Ints& begin, const Ints& step, const Ints& count, Row row) {
  int64_t length[kMaxRank + 1], stride[kMaxRank + 1], index[kMaxRank + 1] = {};
  int64_t at = 0, unit = 1;
  int rank = 0;  // innermost first
  for (int i = shape.rank(); i-- > 0; unit *= shape[i]) {
    const int64_t n = count[size_t(i)], along = step[size_t(i)] * unit;
    if (n == 0) return;
    at += begin[size_t(i)] * unit;
    if (n == 1) continue;
    if (rank > 0 && along == stride[rank - 1] * length[rank - 1]) {
      length[rank - 1] *= n;
    } else {
      length[rank] = n;
      stride[rank++] = along;
    }
  }
  if (rank == 0) return row(at, 0, 1, 1);
  for (int64_t from = 0;; from += length[0]) {
    row(at, from, length[0], stride[0]);
    int d = 1;
    for (; d < rank; ++d) {
      at += stride[d];
      if (++index[d] < length[d]) break;
      at -= stride[d] * length[d];
      index[d] = 0;
    }
    if (d == rank) return;
  }
}

// The slice is one run of x's memory: only the first dimension that is longer than 1 is cut, and by whole rows.
bool contiguous(const Shape& shape, const Ints& begin, const Ints& step, const Ints& count, int64_t* start) {
  int64_t at = 0, unit = 1;
  bool cut = false;  // a dimension further in (to the right) is not whole
  for (int i = shape.rank() - 1; i >= 0; --i) {
    int64_t n = count[size_t(i)];
    if (n > 1 && (step[size_t(i)] != 1 || cut)) return false;
    if (n != shape[i]) cut = true;
    at += begin[size_t(i)] * unit;
    unit *= shape[i];
  }
  *start = at;
  return true;
}

Shape shape_of(const Ints& dims) { return Shape(dims.data(), int(dims.size())); }

[[noreturn, gnu::cold, gnu::noinline]] void fail_outside(const Shape& shape, int i, int64_t first, int64_t last) {
  fail(ErrorKind::invalid_argument, "strided_slice: positions ", first, " to ", last, " are outside dimension ", i,
       " of ", shape);
}

// One number per dimension, and all positions begin + i * step, i < count, inside the shape.
void require_inside(const Shape& shape, const Ints& begin, const Ints& step, const Ints& count) {
  const size_t rank = size_t(shape.rank());
  if (begin.size() != rank || step.size() != rank || count.size() != rank)
    fail(ErrorKind::invalid_argument, "strided_slice: one number per dimension is needed, ", rank, "; got ",
         begin.size(), ", ", step.size(), " and ", count.size());
  for (size_t i = 0; i < rank; ++i) {
    const int64_t n = count[i], first = begin[i], last = first + (n - 1) * step[i], dim = shape[int(i)];
    if (n < 0 || (n > 0 && (first < 0 || first >= dim || last < 0 || last >= dim)))
      fail_outside(shape, int(i), first, last);
  }
}

void copy_slice(const Tensor& x, const Ints& begin, const Ints& step, const Tensor& y) {
  if (y.size() == 0) return;
  by_size(x.dtype(), [&]<class T>(T*) {
    const T* from = static_cast<const T*>(x.raw());
    int64_t stride[kMaxRank];
    strides_of(x.shape(), stride);
    for (int i = 0; i < x.rank(); ++i) {
      from += begin[size_t(i)] * stride[i];
      stride[i] *= step[size_t(i)];
    }
    gather_strided(from, y.mutable_data<T>(), y.shape(), stride);
  });
}

// The only axis along which the slice is not all of a tensor; none if there is no such axis, or it is long.
int sliced_axis(const Shape& shape, const Ints& begin, const Ints& step, const Ints& count) {
  int axis = AxisMovement::kNone;
  for (int i = 0; i < shape.rank(); ++i) {
    if (count[size_t(i)] == shape[i] && begin[size_t(i)] == 0 && step[size_t(i)] == 1) continue;
    if (axis != AxisMovement::kNone || shape[i] > AxisMovement::kMostParts) return AxisMovement::kNone;
    axis = i;
  }
  return axis;
}

constexpr struct : Keys {
  Key<Ints> begin = next("begin"), step = next("step"), count = next("count");
} strided_slice_params;
bool movement_of_slice(const Call& call, AxisMovement& m) {
  const Ints &begin = call.params[strided_slice_params.begin], &step = call.params[strided_slice_params.step],
             &count = call.params[strided_slice_params.count];
  const int axis = m.in_axis = m.out_axis = sliced_axis(call.in[0].shape(), begin, step, count);
  if (axis == AxisMovement::kNone) return false;
  m.results.resize(1);
  for (int64_t i = 0; i < count[size_t(axis)]; ++i)
    m.results[0].push_back({0, begin[size_t(axis)] + i * step[size_t(axis)]});
  return true;
}
const Op& strided_slice_op = define(Op{
    .name = "StridedSlice",
    .planning = {.cannot_fail = true, .view = ViewKind::sometimes, .movement = movement_of_slice},
    .arguments = {tensor("input", any_dtype), ints(strided_slice_params.begin), ints(strided_slice_params.step),
                  ints(strided_slice_params.count)},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          Shape shape = known_shape(call.params.value(strided_slice_params.count));
          if (!shape.known_rank() && x.rank() >= 0) shape = unknown_dims(x.rank());
          if (x.size() >= 0 && all_known(call.params.value(strided_slice_params.begin)) &&
              all_known(call.params.value(strided_slice_params.step)) &&
              all_known(call.params.value(strided_slice_params.count)))
            require_inside(x.shape(), call.params[strided_slice_params.begin], call.params[strided_slice_params.step],
                           call.params[strided_slice_params.count]);
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Ints &begin = call.params[strided_slice_params.begin], &step = call.params[strided_slice_params.step],
                     &count = call.params[strided_slice_params.count];
          require_inside(x.shape(), begin, step, count);
          Shape shape = shape_of(count);
          int64_t start;
          if (shape.elements() > 0 && contiguous(x.shape(), begin, step, count, &start)) {
            call.out.push_back(x.view(shape, start));
            return;
          }
          call.out.push_back(Tensor::allocate(x.dtype(), shape));
          copy_slice(x, begin, step, call.out[0]);
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          set_strided_slice_grad(c, c.dy(), c.params[strided_slice_params.begin], c.params[strided_slice_params.step]);
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .adds_in_place = true,
    .copies_elements = true,
    .batch =
        [](BatchCall& c) {
          return c.run_same({c.in[0]}, {Param(prepended(0, c.params[strided_slice_params.begin])),
                                        Param(prepended(1, c.params[strided_slice_params.step])),
                                        Param(prepended(c.rows, c.params[strided_slice_params.count]))});
        },
    .elements = Elements::moved,
});

// The same for a plan, which knows that this slice is no view, that its positions are inside, and where it goes.
const Op& strided_copy_entry = define_inner(Op{
    .name = "StridedCopy",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("input", any_dtype), ints(strided_slice_params.begin), ints(strided_slice_params.step),
                  ints(strided_slice_params.count)},
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), shape_of(call.params[strided_slice_params.count])); },
    .kernel =
        [](Call& call) {
          copy_slice(call.in[0], call.params[strided_slice_params.begin], call.params[strided_slice_params.step],
                     call.out[0]);
        },
    .gradient = Gradient::none,
    .copies_elements = true,
});

constexpr struct : Keys {
  Key<Ints> shape = next("shape"), begin = next("begin"), step = next("step");
} strided_slice_grad_params;
// Calls put(where an element goes in x, where it is in dy) for every element of the slice of x that is dy.
template <class Put> void for_scattered_elements(const Call& call, const Shape& x, Put put) {
  const Shape& dy = call.in[0].shape();
  const Ints count = Param(dy).ints, &begin = call.params[strided_slice_grad_params.begin],
             &step = call.params[strided_slice_grad_params.step];
  require_inside(x, begin, step, count);
  for_slice_rows(x, begin, step, count, [&](int64_t to, int64_t from, int64_t length, int64_t inner) {
    if (inner == 1)
      for (int64_t i = 0; i < length; ++i) put(to + i, from + i);
    else
      for (int64_t i = 0; i < length; ++i) put(to + i * inner, from + i);
  });
}

bool movement_of_slice_grad(const Call& call, AxisMovement& m) {
  const Ints &shape = call.params[strided_slice_grad_params.shape],
             &begin = call.params[strided_slice_grad_params.begin], &step = call.params[strided_slice_grad_params.step];
  const int axis = m.in_axis = m.out_axis = sliced_axis(shape_of(shape), begin, step, Param(call.in[0].shape()).ints);
  if (axis == AxisMovement::kNone) return false;
  m.results.emplace_back(size_t(shape[size_t(axis)]));
  for (int64_t i = 0; i < call.in[0].dim(axis); ++i)
    m.results[0][size_t(begin[size_t(axis)] + i * step[size_t(axis)])] = {0, i};
  return true;
}

const Op& strided_slice_grad_op = define(Op{
    .name = "StridedSliceGrad",
    .planning = {.cannot_fail = true, .movement = movement_of_slice_grad},
    .arguments = {tensor("dy", fixed_size), ints(strided_slice_grad_params.shape),
                  ints(strided_slice_grad_params.begin), ints(strided_slice_grad_params.step)},
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.params.shape(strided_slice_grad_params.shape)); },
    .infer_staged =
        [](Call& call) {
          call.returns(call.in[0].dtype(), known_shape(call.params.value(strided_slice_grad_params.shape)));
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.out[0];
          std::memset(x.mutable_raw(), 0, x.bytes());
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(call.in[0].raw());
            T* to = static_cast<T*>(x.mutable_raw());
            for_scattered_elements(call, x.shape(), [&](int64_t place, int64_t i) { to[place] = from[i]; });
          });
        },
    .scatter_add =
        [](const Call& call, const Tensor& total) {
          visit<wide_floating.bits>(total.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            const T* from = call.in[0].data<T>();
            T* to = total.mutable_data<T>();
            for_scattered_elements(call, total.shape(), [&](int64_t place, int64_t i) { to[place] += from[i]; });
          });
        },
    .vjp =
        [](RuleContext& c) {
          c.set(0, strided_slice(c.dy(), c.params[strided_slice_grad_params.begin],
                                 c.params[strided_slice_grad_params.step], Param(c.shape(0)).ints));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .copies_elements = true,
    .batch =
        [](BatchCall& c) {
          return c.run_same({c.in[0]}, {Param(prepended(c.rows, c.params[strided_slice_grad_params.shape])),
                                        Param(prepended(0, c.params[strided_slice_grad_params.begin])),
                                        Param(prepended(1, c.params[strided_slice_grad_params.step]))});
        },
});

}  // namespace

const Op& get_item_op() { return get_item_entry; }
const Op* copying_op(const Op& op) { return &op == &strided_slice_op ? &strided_copy_entry : copying_split(op); }
Tensor get_item(const Tensor& x, const Params& key) { return run(get_item_entry, {x}, key); }
Tensor strided_slice(const Tensor& x, const Ints& begin, const Ints& step, const Ints& count) {
  return run(strided_slice_op, {x}, {Param(begin), Param(step), Param(count)});
}
Tensor slice(const Tensor& x, const Ints& begin, const Ints& size) {
  Ints step;
  for (size_t i = 0; i < begin.size(); ++i) step.push_back(1);
  return strided_slice(x, begin, step, size);
}

void write_slice(const Tensor& target, const SlicePlan& plan, const Tensor& value) {
  PauseRecording paused;
  Tensor v = broadcast_to(value, plan.result);
  by_size(target.dtype(), [&]<class T>(T*) {
    const T* from = static_cast<const T*>(v.raw());
    T* to = target.mutable_data<T>();
    for_slice_rows(target.shape(), plan.begin, plan.step, plan.count,
                   [&](int64_t out, int64_t in, int64_t length, int64_t inner) {
                     for (int64_t i = 0; i < length; ++i) to[out + i * inner] = from[in + i];
                   });
  });
}

}  // namespace tapeflow
