// Taking and putting elements by position: slices, gather, scatter, partitions.
#include <array>
#include <cstring>

#include "base/blocks.h"
#include "base/parallel.h"
#include "ops/elements.h"
#include "ops/family.h"
#include "ops/partial_shape.h"
#include "ops/positions.h"
#include "ops/slicing.h"

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
    bool told = part.begin != kUnknownInt && part.end != kUnknownInt && part.step != kUnknownInt;
    switch (part.kind) {
      case SlicePart::Kind::ellipsis:
        for (int until = d + x.rank() - used; d < until; ++d) result.append(x[d]);
        break;
      case SlicePart::Kind::new_axis: result.append(1); break;
      case SlicePart::Kind::index:
        if (told && x[d] >= 0) plan_slice(Shape{x[d]}, {part});
        ++d;
        break;
      case SlicePart::Kind::range: {
        bool whole = !part.has_begin && !part.has_end && part.step == 1;
        result.append(whole ? x[d] : told && x[d] >= 0 ? plan_slice(Shape{x[d]}, {part}).result[0] : -1);
        ++d;
        break;
      }
    }
  }
  for (; d < x.rank(); ++d) result.append(x[d]);
  return result;
}

extern const Op &strided_spread_op, &gather_spread_op;

// The gradient of a slice.
void set_strided_spread(RuleContext& c, const Tensor& dy, const Ints& begin, const Ints& step) {
  c.set_spread(0, strided_spread_op, std::span(&dy, 1), {Param(c.shape(0)), Param(begin), Param(step)});
}

// x[key] where shapes or bounds are not known while tracing.
const Op& get_item_op = define(Op{
    .name = "GetItem",
    .arguments = {tensor("input", any_dtype), ints("key")},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          bool told = count_known(call.params[0]);
          for (size_t i = 0; told && i < call.params.ints(0).size(); i += kNumbersPerPart)
            told = call.params.ints(0)[i] != kUnknownInt;
          call.returns(x.dtype(), told ? known_slice(x.shape(), decode_key(call.params.ints(0))) : Shape::unknown());
        },
    .kernel =
        [](Call& call) {
          PauseRecording unheard;
          SlicePlan plan = plan_slice(call.in[0].shape(), decode_key(call.params.ints(0)));
          Tensor cut = strided_slice(call.in[0], plan.begin, plan.step, plan.count);
          call.out.push_back(cut.view(plan.result));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          SlicePlan plan = plan_slice(c.shape(0), decode_key(c.params.ints(0)));
          Tensor dy = reshape(c.dy(), Shape(plan.count.data(), int(plan.count.size())));
          set_strided_spread(c, dy, plan.begin, plan.step);
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
});

// Calls row(offset in the sliced tensor, offset in the dense slice) for each innermost row of the slice.
template <class Row>
void for_slice_rows(const Shape& shape, const Ints& begin, const Ints& step, const Ints& count, Row row) {
  int rank = shape.rank();
  int64_t stride[kMaxRank + 1], rows = 1;
  int64_t unit = 1;
  for (int i = rank - 1; i >= 0; --i) stride[i] = unit, unit *= shape[i];
  for (int i = 0; i + 1 < rank; ++i) rows *= count[size_t(i)];
  int64_t length = rank ? count[size_t(rank - 1)] : 1;
  if (length == 0) return;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t rest = r, at = rank ? begin[size_t(rank - 1)] : 0;
    for (int i = rank - 2; i >= 0; --i) {
      at += (begin[size_t(i)] + rest % count[size_t(i)] * step[size_t(i)]) * stride[i];
      rest /= count[size_t(i)];
    }
    row(at, r * length);
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

// One number per dimension, and all positions begin + i * step, i < count, inside the shape.
void require_inside(const Shape& shape, const Ints& begin, const Ints& step, const Ints& count) {
  for (const Ints* list : {&begin, &step, &count})
    if (int(list->size()) != shape.rank())
      fail(ErrorKind::invalid_argument, "strided_slice: one number per dimension is needed, ", shape.rank(), "; got ",
           list->size());
  for (int i = 0; i < shape.rank(); ++i) {
    int64_t n = count[size_t(i)], first = begin[size_t(i)], last = first + (n - 1) * step[size_t(i)];
    if (n < 0 || (n > 0 && (first < 0 || first >= shape[i] || last < 0 || last >= shape[i])))
      fail(ErrorKind::invalid_argument, "strided_slice: positions ", first, " to ", last, " are outside dimension ", i,
           " of ", shape);
  }
}

const Op& strided_slice_op = define(Op{
    .name = "StridedSlice",
    .arguments = {tensor("input", any_dtype), ints("begin"), ints("step"), ints("count")},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          Shape shape = known_shape(call.params[2]);
          if (!shape.known_rank() && x.rank() >= 0) shape = unknown_dims(x.rank());
          if (x.size() >= 0 && all_known(call.params[0]) && all_known(call.params[1]) && all_known(call.params[2]))
            require_inside(x.shape(), call.params.ints(0), call.params.ints(1), call.params.ints(2));
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Ints &begin = call.params.ints(0), &step = call.params.ints(1), &count = call.params.ints(2);
          require_inside(x.shape(), begin, step, count);
          Shape shape = shape_of(count);
          int64_t start;
          if (shape.elements() > 0 && contiguous(x.shape(), begin, step, count, &start)) {
            call.out.push_back(x.view(shape, start));
            return;
          }
          call.out.push_back(Tensor::allocate(x.dtype(), shape));
          const Tensor& y = call.out[0];
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            T* to = y.mutable_data<T>();
            int64_t length = shape.rank() ? shape.back() : 1, inner = shape.rank() ? step[step.size() - 1] : 1;
            for_slice_rows(x.shape(), begin, step, count, [&](int64_t in, int64_t out) {
              if (inner == 1)
                std::copy(from + in, from + in + length, to + out);
              else
                for (int64_t i = 0; i < length; ++i) to[out + i] = from[in + i * inner];
            });
          });
        },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { set_strided_spread(c, c.dy(), c.params.ints(0), c.params.ints(1)); },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .adds_in_place = true,
});

// Calls put(where an element goes in x, where it is in dy) for every element of the slice of x that is dy.
template <class Put> void for_spread_elements(const Call& call, const Shape& x, Put put) {
  const Shape& dy = call.in[0].shape();
  const Ints count = Param(dy).ints, &begin = call.params.ints(1), &step = call.params.ints(2);
  require_inside(x, begin, step, count);
  const int64_t length = dy.rank() ? dy.back() : 1, inner = dy.rank() ? step[step.size() - 1] : 1;
  for_slice_rows(x, begin, step, count, [&](int64_t to, int64_t from) {
    for (int64_t i = 0; i < length; ++i) put(to + i * inner, from + i);
  });
}

const Op& strided_spread_op = define(Op{
    .name = "StridedSliceGrad",
    .arguments = {tensor("dy", fixed_size), ints("shape"), ints("begin"), ints("step")},
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.params.shape(0)); },
    .infer_staged = [](Call& call) { call.returns(call.in[0].dtype(), known_shape(call.params[0])); },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.out[0];
          std::memset(x.mutable_raw(), 0, x.bytes());
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(call.in[0].raw());
            T* to = static_cast<T*>(x.mutable_raw());
            for_spread_elements(call, x.shape(), [&](int64_t place, int64_t i) { to[place] = from[i]; });
          });
        },
    .add_to =
        [](const Call& call, const Tensor& total) {
          visit<wide_floating.bits>(total.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            const T* from = call.in[0].data<T>();
            T* to = total.mutable_data<T>();
            for_spread_elements(call, total.shape(), [&](int64_t place, int64_t i) { to[place] += from[i]; });
          });
        },
    .vjp =
        [](RuleContext& c) {
          c.set(0, strided_slice(c.dy(), c.params.ints(1), c.params.ints(2), Param(c.shape(0)).ints));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
});

}  // namespace

Tensor get_item(const Tensor& x, const Params& key) { return run(get_item_op, {x}, key); }
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
    int rank = target.rank();
    int64_t length = rank ? plan.count[size_t(rank - 1)] : 1, inner = rank ? plan.step[size_t(rank - 1)] : 1;
    for_slice_rows(target.shape(), plan.begin, plan.step, plan.count, [&](int64_t out, int64_t in) {
      for (int64_t i = 0; i < length; ++i) to[out + i * inner] = from[in + i];
    });
  });
}

namespace {

// ---- gather

// Positions as int64, checked against [0, limit). Negative ones are refused, as on TensorFlow's CPU.
Positions checked_indices(const char* who, const Tensor& indices, int64_t limit) {
  Positions result(indices);
  if (const int64_t outside = result.first_outside(0, limit); outside >= 0) {
    std::string at;
    int64_t rest = outside;
    for (int d = indices.rank() - 1; d >= 0; --d) {
      at = std::to_string(rest % indices.dim(d)) + (at.empty() ? "" : "," + at);
      rest /= indices.dim(d);
    }
    fail(ErrorKind::invalid_argument, who, ": indices[", at, "] = ", result[outside], " is not in [0, ", limit, ")");
  }
  return result;
}

Scratch<int64_t> checked_partitions(const Tensor& partitions, int64_t count) {
  Scratch<int64_t> result = integers_in(partitions);
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i] < 0 || result[i] >= count)
      fail(ErrorKind::invalid_argument, "dynamic_partition: partitions[", i, "] = ", result[i], " is not in [0, ",
           count, ")");
  return result;
}

// Where elements are added up: in place, or for small floats in floats that are rounded once at the end.
template <class T> class Sums {
 public:
  explicit Sums(const Tensor& y) : y_(y) {
    if constexpr (is_small_float<T>) wide_.resize(size_t(y.size()));
  }
  ~Sums() {
    if constexpr (is_small_float<T>)
      for (size_t i = 0; i < wide_.size(); ++i) store(y_.template mutable_data<T>() + i, wide_[i]);
  }
  Sums(const Sums&) = delete;
  Compute<T>* data() {
    if constexpr (is_small_float<T>)
      return wide_.data();
    else
      return y_.template mutable_data<T>();
  }

 private:
  const Tensor& y_;
  BlockVector<float> wide_;
};

// The rows of x at the given places, one after the other.
template <class T, class Place> void copy_picked(const T* x, const Place* place, int64_t count, int64_t inner, T* y) {
  if (inner == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = x[place[i]];
  } else {
    for (int64_t i = 0; i < count; ++i) std::copy_n(x + int64_t(place[i]) * inner, inner, y + i * inner);
  }
}
// Adds rows to the rows of y at the given places.
template <class T, class Place>
void add_rows(const T* x, const Place* place, int64_t count, int64_t inner, Compute<T>* y) {
  for (int64_t i = 0; i < count; ++i) {
    Compute<T>* row = y + int64_t(place[i]) * inner;
    for (int64_t k = 0; k < inner; ++k) {
      if constexpr (std::is_same_v<T, bool>)
        row[k] = row[k] || x[i * inner + k];
      else
        row[k] = Compute<T>(row[k] + load(x + i * inner + k));
    }
  }
}

struct GatherPlan {
  int axis, batch_dims;
  int64_t batches, outer, limit, inner, count;  // x is [batches, outer, limit, inner], indices [batches, count]
  Shape result;
};
GatherPlan plan_gather(const char* who, const Shape& x, const Shape& indices, int64_t axis, int64_t batch_dims) {
  GatherPlan g;
  if (x.rank() == 0) fail(ErrorKind::invalid_argument, who, ": params must be at least 1 dimensional; got shape []");
  g.axis = normalize_axis(who, axis, x.rank());
  if (batch_dims < -indices.rank() || batch_dims > indices.rank())
    fail(ErrorKind::invalid_argument, who, ": batch_dims must be in [", -indices.rank(), ", ", indices.rank(),
         "]; got ", batch_dims);
  g.batch_dims = int(batch_dims < 0 ? batch_dims + indices.rank() : batch_dims);
  if (g.batch_dims > g.axis)
    fail(ErrorKind::invalid_argument, who, ": batch_dims (", g.batch_dims, ") must be less than or equal to axis (",
         g.axis, ").");
  for (int i = 0; i < g.batch_dims; ++i)
    if (x[i] != indices[i])
      fail(ErrorKind::invalid_argument, who, ": params.shape[", i, "]: ", x[i], " should be equal to indices.shape[", i,
           "]: ", indices[i]);
  g.batches = x.elements(0, g.batch_dims);
  g.outer = x.elements(g.batch_dims, g.axis);
  g.limit = x[g.axis];
  g.inner = x.elements(g.axis + 1, x.rank());
  g.count = indices.elements(g.batch_dims, indices.rank());
  g.result = x.slice(0, g.axis);
  for (int i = g.batch_dims; i < indices.rank(); ++i) g.result.append(indices[i]);
  for (int i = g.axis + 1; i < x.rank(); ++i) g.result.append(x[i]);
  return g;
}

const Op& gather_op = define(Op{
    .name = "GatherV2",
    .arguments = {tensor("params", any_dtype), index_tensor("indices"), integer("axis", 0), integer("batch_dims", 0)},
    .infer =
        [](Call& call) {
          call.returns(call.in[0].dtype(), plan_gather("gather", call.in[0].shape(), call.in[1].shape(),
                                                       call.params.integer(0), call.params.integer(1))
                                               .result);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor &x = call.in[0], &indices = call.in[1];
          int64_t axis = known_integer(call.params[0]), batch_dims = known_integer(call.params[1]);
          int rank =
              x.rank() < 0 || indices.rank() < 0 || batch_dims == kUnknownInt
                  ? -1
                  : int(x.rank() - 1 + indices.rank() - (batch_dims < 0 ? batch_dims + indices.rank() : batch_dims));
          if (rank < 0) return call.returns(x.dtype(), Shape::unknown());
          if (axis == kUnknownInt) return call.returns(x.dtype(), unknown_dims(rank));
          try_out(call, [](Call& c) {
            c.returns(c.in[0].dtype(),
                      plan_gather("gather", c.in[0].shape(), c.in[1].shape(), c.params.integer(0), c.params.integer(1))
                          .result);
          });
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          GatherPlan g =
              plan_gather("gather", x.shape(), call.in[1].shape(), call.params.integer(0), call.params.integer(1));
          const Positions index = checked_indices("gather", call.in[1], g.limit);
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            T* to = y.mutable_data<T>();
            if (g.batches * g.outer == 1)
              return parallel_for(g.count, std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, g.inner)),
                                  [&](int64_t begin, int64_t end) {
                                    index.with_numbers(begin, [&](const auto* place) {
                                      copy_picked(from, place, end - begin, g.inner, to + begin * g.inner);
                                    });
                                  });
            parallel_for(
                g.batches * g.outer, std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, g.count * g.inner)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t bo = begin; bo < end; ++bo)
                    index.with_numbers(bo / g.outer * g.count, [&](const auto* place) {
                      copy_picked(from + bo * g.limit * g.inner, place, g.count, g.inner, to + bo * g.count * g.inner);
                    });
                });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(0)) return;
          const Shape x = c.shape(0);
          int axis = normalize_axis("gather", c.params.integer(0), x.rank());
          const Tensor& indices = c.x(1);
          int64_t batch_dims = c.params.integer(1);
          // As in TensorFlow, only axis 0 given as such leaves rows: -1 of a vector does not.
          if (c.params.integer(0) == 0 && (batch_dims == 0 || batch_dims == -indices.rank())) {
            Shape rows{indices.size()};
            for (int i = 1; i < x.rank(); ++i) rows.append(x[i]);
            return c.set_rows(0, reshape(c.dy(), rows), reshape(indices, {indices.size()}));
          }
          c.set_spread(0, gather_spread_op, std::array{c.dy(), indices},
                       {Param(x), Param(int64_t(axis)), Param(batch_dims)});
        },
    .jvp =
        [](RuleContext& c) {
          if (c.x_dot(0)) c.set(0, gather(c.x_dot(0), c.x(1), c.params.integer(0), c.params.integer(1)));
        },
    .keep = keep_input(1),
    .adds_in_place = true,
});

// Adds the rows of dy to those of x that they were gathered from.
template <class T> void add_gathered(const Call& call, const Shape& shape, Compute<T>* x) {
  const T* from = call.in[0].data<T>();
  GatherPlan g = plan_gather("gather", shape, call.in[1].shape(), call.params.integer(1), call.params.integer(2));
  const Positions index = checked_indices("gather", call.in[1], g.limit);
  parallel_for(g.batches * g.outer, std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, g.count * g.inner)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t bo = begin; bo < end; ++bo)
                   index.with_numbers(bo / g.outer * g.count, [&](const auto* place) {
                     add_rows(from + bo * g.count * g.inner, place, g.count, g.inner, x + bo * g.limit * g.inner);
                   });
               });
}

// The transpose of gather.
const Op& gather_spread_op = define(Op{
    .name = "GatherSpread",
    .arguments = {tensor("dy", numbers), index_tensor("indices"), ints("shape"), integer("axis"),
                  integer("batch_dims")},
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.params.shape(0)); },
    .infer_staged = [](Call& call) { call.returns(call.in[0].dtype(), known_shape(call.params[0])); },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.out[0];
          std::memset(x.mutable_raw(), 0, x.bytes());
          visit<numbers.bits>(x.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            Sums<T> sums(x);
            add_gathered<T>(call, x.shape(), sums.data());
          });
        },
    .add_to =
        [](const Call& call, const Tensor& total) {
          visit<wide_floating.bits>(total.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            add_gathered<T>(call, total.shape(), total.mutable_data<T>());
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0)) c.set(0, gather(c.dy(), c.x(1), c.params.integer(1), c.params.integer(2)));
        },
    .keep = keep_input(1),
});
// ---- gather_nd and scatter_nd: indices hold whole positions in their last dimension

struct NdPlan {
  int64_t positions, depth, inner, batches;
  Shape result;
};
NdPlan plan_nd(const char* who, const Shape& x, const Shape& indices, int64_t batch_dims) {
  if (indices.rank() < 1) fail(ErrorKind::invalid_argument, who, ": indices must be at least a vector");
  NdPlan n;
  n.depth = indices.back();
  if (batch_dims < 0 || batch_dims >= indices.rank() || batch_dims > x.rank())
    fail(ErrorKind::invalid_argument, who, ": batch_dims must be in [0, ", indices.rank(), "); got ", batch_dims);
  if (n.depth + batch_dims > x.rank())
    fail(ErrorKind::invalid_argument, who, ": index innermost dimension length must be <= params rank; saw: ", n.depth,
         " vs. ", x.rank() - batch_dims);
  for (int i = 0; i < batch_dims; ++i)
    if (x[i] != indices[i])
      fail(ErrorKind::invalid_argument, who, ": batch dimensions must be equal; got ", x, " and ", indices);
  n.batches = x.elements(0, int(batch_dims));
  n.positions = indices.elements(int(batch_dims), indices.rank() - 1);
  n.inner = x.elements(int(n.depth + batch_dims), x.rank());
  n.result = indices.slice(0, indices.rank() - 1);
  for (int i = int(n.depth + batch_dims); i < x.rank(); ++i) n.result.append(x[i]);
  return n;
}

[[noreturn]] void fail_position(const char* who, const Shape& x, const Tensor& indices, int64_t position,
                                int64_t depth) {
  Scratch<int64_t> flat = integers_in(indices);
  std::string text;
  for (int64_t k = 0; k < depth; ++k) text += (k ? ", " : "") + std::to_string(flat[size_t(position * depth + k)]);
  fail(ErrorKind::invalid_argument, who, ": indices[", position, "] = [", text, "] does not index into param shape ",
       x);
}

// Row numbers of the positions in x seen as [batches, rows, inner].
Positions nd_rows(const char* who, const Shape& x, const Tensor& indices, const NdPlan& n, int64_t batch_dims) {
  if (n.depth == 1 && batch_dims == 0) {
    Positions rows(indices);
    if (const int64_t outside = rows.first_outside(0, x[0]); outside >= 0)
      fail_position(who, x, indices, outside, n.depth);
    return rows;
  }
  Scratch<int64_t> rows(n.batches * n.positions);
  int64_t per_batch = x.elements(int(batch_dims), int(batch_dims + n.depth));
  visit<integers.bits>(indices.dtype(), [&](auto* p) {
    const auto* flat = indices.data<Pointee<decltype(p)>>();
    for (int64_t b = 0, i = 0; b < n.batches; ++b)
      for (int64_t end = i + n.positions; i < end; ++i) {
        int64_t row = 0;
        for (int64_t d = 0; d < n.depth; ++d) {
          int64_t at = int64_t(*flat++), limit = x[int(d + batch_dims)];
          if (at < 0 || at >= limit) fail_position(who, x, indices, i, n.depth);
          row = row * limit + at;
        }
        rows[size_t(i)] = b * per_batch + row;
      }
  });
  return Positions(std::move(rows));
}

const Op& gather_nd_op = define(Op{
    .name = "GatherNd",
    .arguments = {tensor("params", any_dtype), index_tensor("indices"), integer("batch_dims", 0)},
    .infer =
        [](Call& call) {
          call.returns(call.in[0].dtype(),
                       plan_nd("gather_nd", call.in[0].shape(), call.in[1].shape(), call.params.integer(0)).result);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor &x = call.in[0], &indices = call.in[1];
          int64_t batch_dims = known_integer(call.params[0]), depth = indices.rank() > 0 ? indices.shape().back() : -1;
          if (x.rank() < 0 || depth < 0 || batch_dims == kUnknownInt) return call.returns(x.dtype(), Shape::unknown());
          if (depth + batch_dims > x.rank())
            fail(ErrorKind::invalid_argument,
                 "gather_nd: index innermost dimension length must be <= params rank; saw: ", depth, " vs. ",
                 x.rank() - batch_dims);
          Shape shape = indices.shape().slice(0, indices.rank() - 1);
          for (int i = int(depth + batch_dims); i < x.rank(); ++i) shape.append(x.dim(i));
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          int64_t batch_dims = call.params.integer(0);
          NdPlan n = plan_nd("gather_nd", x.shape(), call.in[1].shape(), batch_dims);
          const Positions rows = nd_rows("gather_nd", x.shape(), call.in[1], n, batch_dims);
          by_size(x.dtype(), [&]<class T>(T*) {
            rows.with_numbers(0, [&](const auto* place) {
              copy_picked(static_cast<const T*>(x.raw()), place, rows.size(), n.inner, y.mutable_data<T>());
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(0)) return;
          int64_t batch_dims = c.params.integer(0);
          const Tensor& indices = c.x(1);
          if (batch_dims == 0 && indices.rank() == 2 && indices.dim(1) == 1)
            return c.set_rows(0, c.dy(), reshape(indices, {indices.size()}));
          if (batch_dims == 0) return c.set(0, scatter_nd(indices, c.dy(), c.shape(0)));
          // Positions with the batch numbers in front.
          const Shape& s = indices.shape();
          int64_t n = s.elements(0, s.rank() - 1), per_batch = s.elements(int(batch_dims), s.rank() - 1);
          BlockVector<int64_t> numbers;
          for (int64_t i = 0; i < n; ++i) {
            int64_t unit = n / per_batch;
            for (int d = 0; d < batch_dims; ++d) {
              unit /= s[d];
              numbers.push_back(i / per_batch / unit % s[d]);
            }
          }
          Shape wide = s;
          wide[s.rank() - 1] = batch_dims;
          Tensor parts[] = {int_tensor(numbers, indices.dtype()).view(wide), indices};
          c.set(0, scatter_nd(concat(parts, s.rank() - 1), c.dy(), c.shape(0)));
        },
    .jvp =
        [](RuleContext& c) {
          if (c.x_dot(0)) c.set(0, gather_nd(c.x_dot(0), c.x(1), c.params.integer(0)));
        },
    .keep = keep_input(1),
    .names = {"gather_nd"},
    .doc = "The slices of `params` at the positions in the last dimension of `indices`.\n\n>>> tf.gather_nd([[1, 2], "
           "[3, 4]], [[0, 1], [1, 0]])\n[2, 3]",
});

const Op& scatter_nd_op = define(Op{
    .name = "ScatterNd",
    .arguments = {index_tensor("indices"), tensor("updates", numbers | booleans), ints("shape")},
    .infer =
        [](Call& call) {
          Shape shape = call.params.shape(0);
          NdPlan n = plan_nd("scatter_nd", shape, call.in[0].shape(), 0);
          if (!(n.result == call.in[1].shape()))
            fail(ErrorKind::invalid_argument, "scatter_nd: updates must have the shape ", n.result, "; got ",
                 call.in[1].shape());
          call.returns(call.in[1].dtype(), shape);
        },
    .infer_staged = [](Call& call) { call.returns(call.in[1].dtype(), known_shape(call.params[0])); },
    .kernel =
        [](Call& call) {
          const Tensor &updates = call.in[1], &y = call.out[0];
          Shape shape = call.params.shape(0);
          NdPlan n = plan_nd("scatter_nd", shape, call.in[0].shape(), 0);
          const Positions rows = nd_rows("scatter_nd", shape, call.in[0], n, 0);
          std::memset(y.mutable_raw(), 0, y.bytes());
          visit<(numbers | booleans).bits>(updates.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            Sums<T> sums(y);
            rows.with_numbers(
                0, [&](const auto* place) { add_rows(updates.data<T>(), place, rows.size(), n.inner, sums.data()); });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (c.wants(1)) c.set(1, gather_nd(c.dy(), c.x(0), 0));
        },
    .keep = keep_input(0),
    .names = {"scatter_nd"},
    .doc = "Zeros of the given `shape` with `updates` added at the positions `indices`.\n\n>>> tf.scatter_nd([[1], "
           "[3]], [5, 6], [4])\n[0, 5, 0, 6]",
});

// ---- copies of a tensor with some positions changed

struct Replaced {
  template <class C> static C combine(C, C update) { return update; }
};
struct Added {
  template <class C> static C combine(C old, C update) { return C(old + update); }
};
struct Subtracted {
  template <class C> static C combine(C old, C update) { return C(old - update); }
};
struct Larger {
  template <class C> static C combine(C old, C update) { return update > old ? update : old; }
};
struct Smaller {
  template <class C> static C combine(C old, C update) { return update < old ? update : old; }
};

void infer_tensor_scatter(Call& call) {
  const Tensor &x = call.in[0], &indices = call.in[1], &updates = call.in[2];
  NdPlan n = plan_nd(call.name(), x.shape(), indices.shape(), 0);
  if (!(n.result == updates.shape()))
    fail(ErrorKind::invalid_argument, call.name(),
         ": Outer dimensions of indices and update must match: updates must have the shape ", n.result,
         " for indices of shape ", indices.shape(), " and a tensor of shape ", x.shape(), "; got ", updates.shape());
  if (x.dtype() != updates.dtype())
    fail(ErrorKind::invalid_argument, call.name(), ": updates must have the dtype of the tensor, ", name_of(x.dtype()),
         "; got ", name_of(updates.dtype()));
  call.returns(x.dtype(), x.shape());
}

template <DTypes Set, class Combine> void tensor_scatter_kernel(Call& call) {
  const Tensor &x = call.in[0], &updates = call.in[2], &y = call.out[0];
  NdPlan n = plan_nd(call.name(), x.shape(), call.in[1].shape(), 0);
  const Positions rows = nd_rows(call.name(), x.shape(), call.in[1], n, 0);
  auto apply = [&]<class T>(T*, auto combine) {
    const T *from = static_cast<const T*>(updates.raw()), *old = static_cast<const T*>(x.raw());
    T* to = y.mutable_data<T>();
    if (to != old) std::copy(old, old + x.size(), to);  // a plan may put y in the place of x
    for (int64_t i = 0; i < rows.size(); ++i, from += n.inner) {
      T* row = to + rows[i] * n.inner;
      for (int64_t k = 0; k < n.inner; ++k) combine(row + k, from + k);
    }
  };
  if constexpr (std::is_same_v<Combine, Replaced>)
    by_size(x.dtype(), [&]<class T>(T* p) { apply(p, [](T* to, const T* from) { *to = *from; }); });
  else
    visit<Set.bits>(x.dtype(), [&](auto* p) {
      using T = Pointee<decltype(p)>;
      apply(p, [](T* to, const T* from) { store(to, Combine::combine(load(to), load(from))); });
    });
}

template <DTypes Set, class Combine>
Op tensor_scatter(const char* name, VjpFunction vjp, Keep keep, const char* path, const char* doc) {
  Op op{.name = name, .arguments = {tensor("tensor", Set), index_tensor("indices"), tensor("updates", Set)}};
  op.infer = infer_tensor_scatter;
  op.infer_staged = same_as_input;
  op.kernel = tensor_scatter_kernel<Set, Combine>;
  op.changes_first = true;
  op.vjp = vjp;
  op.keep = keep;
  op.names = {path};
  op.doc = doc;
  return op;
}

const Op& tensor_scatter_update_op = define(tensor_scatter<any_dtype, Replaced>(
    "TensorScatterUpdate",
    [](RuleContext& c) {
      const Tensor& indices = c.x(1);
      Tensor d_updates = gather_nd(c.dy(), indices, 0);
      if (c.wants(0)) c.set(0, tensor_scatter_update(c.dy(), indices, zeros_like(d_updates)));
      if (c.wants(2)) c.set(2, d_updates);
    },
    keep_input(1), "tensor_scatter_nd_update",
    "`tensor` with the slices at the positions `indices` replaced by `updates`; of several for one position the last "
    "counts.\n\n>>> tf.tensor_scatter_nd_update([1, 2, 3], [[1]], [9])\n[1, 9, 3]"));

const Op& tensor_scatter_add_op = define(tensor_scatter<numbers, Added>(
    "TensorScatterAdd",
    [](RuleContext& c) {
      if (c.wants(0)) c.set(0, identity(c.dy()));
      if (c.wants(2)) c.set(2, gather_nd(c.dy(), c.x(1), 0));
    },
    keep_input(1), "tensor_scatter_nd_add",
    "`tensor` with `updates` added at the positions `indices`.\n\n>>> tf.tensor_scatter_nd_add([1, 2, 3], [[1]], "
    "[9])\n[1, 11, 3]"));

const Op& tensor_scatter_sub_op = define(tensor_scatter<numbers, Subtracted>(
    "TensorScatterSub",
    [](RuleContext& c) {
      if (c.wants(0)) c.set(0, identity(c.dy()));
      if (c.wants(2)) c.set(2, negative(gather_nd(c.dy(), c.x(1), 0)));
    },
    keep_input(1), "tensor_scatter_nd_sub",
    "`tensor` with `updates` subtracted at the positions `indices`.\n\n>>> tf.tensor_scatter_nd_sub([1, 2, 3], [[1]], "
    "[9])\n[1, -7, 3]"));

// The gradient goes to whatever equals the result, in equal parts.
void tensor_scatter_extremum_vjp(RuleContext& c) {
  const Tensor &x = c.x(0), &indices = c.x(1), &updates = c.x(2), &y = c.y();
  Tensor old_wins = cast(equal(x, y), x.dtype()),
         update_wins = cast(equal(updates, gather_nd(y, indices, 0)), x.dtype());
  Tensor winners = add(old_wins, scatter_nd(indices, update_wins, x.shape()));
  Tensor share = divide(c.dy(), winners);
  if (c.wants(0)) c.set(0, multiply(share, old_wins));
  if (c.wants(2)) c.set(2, multiply(gather_nd(share, indices, 0), update_wins));
}
constexpr Keep keep_scatter_extremum = keep_input(0) | keep_input(1) | keep_input(2) | keep_output(0);

const Op& tensor_scatter_max_op = define(tensor_scatter<real_numbers, Larger>(
    "TensorScatterMax", tensor_scatter_extremum_vjp, keep_scatter_extremum, "tensor_scatter_nd_max",
    "`tensor` with the larger of the old element and the update at the positions `indices`.\n\n>>> "
    "tf.tensor_scatter_nd_max([1, 2, 3], [[1]], [9])\n[1, 9, 3]"));

const Op& tensor_scatter_min_op = define(tensor_scatter<real_numbers, Smaller>(
    "TensorScatterMin", tensor_scatter_extremum_vjp, keep_scatter_extremum, "tensor_scatter_nd_min",
    "`tensor` with the smaller of the old element and the update at the positions `indices`.\n\n>>> "
    "tf.tensor_scatter_nd_min([1, 2, 3], [[1]], [-9])\n[1, -9, 3]"));

// ---- partitions

// The rows of data with partition number 0, 1, ..., in their order; one result for each number.
const Op& dynamic_partition_op = define(Op{
    .name = "DynamicPartition",
    .arguments = {tensor("data", any_dtype), index_tensor("partitions"), integer("num_partitions")},
    .infer_staged =
        [](Call& call) {
          const Tensor &x = call.in[0], &partitions = call.in[1];
          int64_t count = known_integer(call.params[0]);
          if (count < 1)
            fail(ErrorKind::invalid_argument,
                 "dynamic_partition: num_partitions must be at least 1, and known while tracing");
          Shape shape = Shape::unknown();
          if (x.rank() >= 0 && partitions.rank() >= 0) {
            bool starts = partitions.rank() <= x.rank();
            for (int i = 0; starts && i < partitions.rank(); ++i)
              starts = x.dim(i) < 0 || partitions.dim(i) < 0 || x.dim(i) == partitions.dim(i);
            if (!starts)
              fail(ErrorKind::invalid_argument,
                   "dynamic_partition: data.shape must start with partitions.shape, got data.shape = ", x.shape(),
                   ", partitions.shape = ", partitions.shape());
            shape = Shape{-1};
            for (int i = partitions.rank(); i < x.rank(); ++i) shape.append(x.dim(i));
          }
          for (int64_t p = 0; p < count; ++p) call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &partitions = call.in[1];
          int64_t count = call.params.integer(0);
          if (count < 1)
            fail(ErrorKind::invalid_argument, "dynamic_partition: num_partitions must be at least 1; got ", count);
          if (partitions.rank() > x.rank() || !(x.shape().slice(0, partitions.rank()) == partitions.shape()))
            fail(ErrorKind::invalid_argument,
                 "dynamic_partition: data.shape must start with partitions.shape, got data.shape = ", x.shape(),
                 ", partitions.shape = ", partitions.shape());
          Scratch<int64_t> number = checked_partitions(partitions, count);
          BlockVector<int64_t> sizes(size_t(count), 0);
          for (int64_t p : number) ++sizes[size_t(p)];
          Shape row = x.shape().slice(partitions.rank(), x.rank());
          int64_t inner = row.elements();
          for (int64_t p = 0; p < count; ++p) {
            Shape shape{sizes[size_t(p)]};
            for (int64_t d : row) shape.append(d);
            call.out.push_back(Tensor::allocate(x.dtype(), shape));
          }
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            BlockVector<T*> to;
            for (const Tensor& y : call.out) to.push_back(y.mutable_data<T>());
            for (size_t i = 0; i < number.size(); ++i) {
              T*& at = to[size_t(number[i])];
              at = std::copy(from + int64_t(i) * inner, from + int64_t(i + 1) * inner, at);
            }
          });
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(0)) return;
          const Tensor& partitions = c.x(1);
          Scratch<int64_t> number = checked_partitions(partitions, c.params.integer(0));
          BlockVector<int64_t> next;
          SmallVector<Tensor, 8> parts;
          int64_t rows = 0;
          for (int p = 0; p < c.outputs(); ++p) {
            parts.push_back(c.dy(int(p)));
            next.push_back(rows);
            rows += c.output_spec(p).shape[0];
          }
          BlockVector<int64_t> position;
          for (int64_t p : number) position.push_back(next[size_t(p)]++);
          Tensor joined = concat(parts, 0);
          Shape wide = joined.shape();
          wide.insert(0, 1);  // so that its gradient is dense
          Tensor rows_of_x = gather(reshape(joined, wide), int_tensor(position, DType::int64), 1, 0);
          c.set(0, reshape(rows_of_x, c.shape(0)));
        },
    .keep = keep_input(1),
    .rule_needs_values = true,
    .names = {"dynamic_partition"},
    .doc = "The slices of `data` sorted into `num_partitions` tensors by the numbers in `partitions`.\n\n>>> "
           "tf.dynamic_partition([1, 2, 3], [0, 1, 0], 2)\n[[1, 3], [2]]",
    .returns_list = true,
});

// Rows put at the given places of a tensor that is just long enough; of several for one place the last counts.
const Op& stitch_op = define(Op{
    .name = "StitchRows",
    .arguments = {index_tensor("indices"), tensor("rows", any_dtype)},
    .infer_staged =
        [](Call& call) {
          Shape shape = call.in[1].shape();
          if (shape.rank() == 0)
            fail(ErrorKind::invalid_argument, "dynamic_stitch: there must be one index per row; got a scalar");
          if (shape.known_rank()) shape[0] = -1;
          call.returns(call.in[1].dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &indices = call.in[0], &rows = call.in[1];
          if (rows.rank() < 1 || rows.dim(0) != indices.size())
            fail(ErrorKind::invalid_argument, "dynamic_stitch: there must be one index per row; got ", indices.shape(),
                 " and ", rows.shape());
          int64_t length = 0;
          Scratch<int64_t> place = integers_in(indices);
          for (int64_t i : place) {
            if (i < 0) fail(ErrorKind::invalid_argument, "dynamic_stitch: indices[...] = ", i, " is out of range");
            length = std::max(length, i + 1);
          }
          Shape shape = rows.shape();
          shape[0] = length;
          Tensor y = zeros(rows.dtype(), shape);
          int64_t inner = rows.shape().elements(1, rows.rank());
          by_size(rows.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(rows.raw());
            for (size_t i = 0; i < place.size(); ++i)
              std::copy(from + int64_t(i) * inner, from + int64_t(i + 1) * inner,
                        y.mutable_data<T>() + place[i] * inner);
          });
          call.out.push_back(y);
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          if (c.wants(1)) c.set(1, gather(c.dy(), c.x(0), 0, 0));
        },
    .keep = keep_input(0),
});

// Positions of the true (nonzero) elements, in order: one row of coordinates each.
const Op& where_op = define(Op{
    .name = "Where",
    .arguments = {tensor("condition", fixed_size)},
    .infer_staged = [](Call& call) { call.returns(DType::int64, {-1, call.in[0].rank()}); },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const int rank = x.rank();
          visit<fixed_size.bits>(x.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            const T* from = x.data<T>();
            int64_t count = 0;
            for (int64_t i = 0; i < x.size(); ++i) count += load(from + i) != Compute<T>(0);
            Tensor y = Tensor::allocate(DType::int64, {count, rank});
            int64_t* to = y.mutable_data<int64_t>();
            call.out.push_back(y);
            if (rank == 0 || count == 0) return;
            // One row of elements after the other; the leading coordinates are worked out once per row. A place is
            // written for every element and kept for the true ones, without a jump.
            const int64_t columns = x.shape().back();
            Scratch<int64_t> found(columns);
            int64_t lead[kMaxRank] = {};
            for (int64_t r = 0; r < x.size() / columns; ++r, from += columns) {
              int64_t here = 0;
              for (int64_t i = 0; i < columns; ++i) {
                found[size_t(here)] = i;
                here += load(from + i) != Compute<T>(0);
              }
              for (int64_t i = 0; i < here; ++i, to += rank) {
                for (int d = 0; d + 1 < rank; ++d) to[d] = lead[d];
                to[rank - 1] = found[size_t(i)];
              }
              for (int d = rank - 2; d >= 0 && ++lead[d] == x.dim(d); --d) lead[d] = 0;
            }
          });
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
});

}  // namespace

Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis, int64_t batch_dims) {
  return run(gather_op, {x, indices}, {Param(axis), Param(batch_dims)});
}
Tensor gather_nd(const Tensor& x, const Tensor& indices, int64_t batch_dims) {
  return run(gather_nd_op, {x, indices}, {Param(batch_dims)});
}
Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape) {
  return run(scatter_nd_op, {indices, updates}, {Param(shape)});
}
Tensor gather_spread(const Tensor& dy, const Tensor& indices, const Shape& x, int64_t axis, int64_t batch_dims) {
  return run(gather_spread_op, {dy, indices}, {Param(x), Param(axis), Param(batch_dims)});
}
Tensor tensor_scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return run(tensor_scatter_update_op, {x, indices, updates});
}

void update_rows(VariableBody& v, const Tensor& indices, const Tensor& values, RowUpdate how, const char* who) {
  PauseRecording paused;
  if (!v.value) fail(ErrorKind::failed_precondition, who, ": the variable was updated before it was initialised");
  Shape shape = v.value.shape();
  if (shape.rank() == 0)
    fail(ErrorKind::invalid_argument, who, ": the variable must have at least one dimension; got shape []");
  if (!integers.has(indices.dtype()))
    fail(ErrorKind::type, who, ": indices must be integers; got ", name_of(indices.dtype()));
  const Positions rows = checked_indices(who, indices.view({indices.size()}), shape[0]);
  int64_t count = indices.size(), inner = shape.elements(1, shape.rank());
  Shape wanted = indices.shape();
  for (int i = 1; i < shape.rank(); ++i) wanted.append(shape[i]);
  if (values.rank() != 0 && !(values.shape() == wanted))
    fail(ErrorKind::invalid_argument, who,
         ": Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape ",
         values.shape(), ", indices.shape ", indices.shape(), ", params.shape ", shape);
  Tensor updates = broadcast_to(values, wanted), target = writable_value(v);
  if (how == RowUpdate::replace) {
    by_size(target.dtype(), [&]<class T>(T*) {
      const T* from = static_cast<const T*>(updates.raw());
      for (int64_t i = 0; i < count; ++i)
        std::copy(from + i * inner, from + (i + 1) * inner, target.mutable_data<T>() + rows[i] * inner);
    });
    return;
  }
  bool known = visit<numbers.bits>(target.dtype(), [&](auto* p) {
    using T = Pointee<decltype(p)>;
    const T* from = updates.data<T>();
    for (int64_t i = 0; i < count; ++i, from += inner) {
      T* to = target.mutable_data<T>() + rows[i] * inner;
      if (how == RowUpdate::add)
        for (int64_t k = 0; k < inner; ++k) store(to + k, Compute<T>(load(to + k) + load(from + k)));
      else
        for (int64_t k = 0; k < inner; ++k) store(to + k, Compute<T>(load(to + k) - load(from + k)));
    }
  });
  if (!known) fail(ErrorKind::type, who, ": a variable of dtype ", name_of(target.dtype()), " cannot be added to");
}

}  // namespace tapeflow
