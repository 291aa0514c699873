// Reductions over rows that share a segment number: sorted numbers, and numbers in any order.
#include <algorithm>
#include <functional>
#include <limits>

#include "base/blocks.h"
#include "base/scratch.h"
#include "kernels/simd/vector.h"
#include "op/cost.h"
#include "op/row_structure.h"
#include "ops/arrays/positions.h"
#include "ops/family.h"
#include "ops/partial_shape.h"
#include "ops/wide_elements.h"

namespace tapeflow {
namespace {

// The largest finite float16 or bfloat16, in the type that they are computed in.
template <class T> Compute<T> largest_small_float() {
  if constexpr (std::is_same_v<T, half>)
    return 65504.0f;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return 0x1.fep127f;
  else
    return Compute<T>();
}

struct SumFold {
  template <class T> static Compute<T> start() { return Compute<T>(0); }
  template <class C> static C combine(C a, C b) { return C(a + b); }
};
struct ProdFold {
  template <class T> static Compute<T> start() { return Compute<T>(1); }
  template <class C> static C combine(C a, C b) { return C(a * b); }
};
struct MaxFold {
  template <class T> static Compute<T> start() {
    return is_small_float<T> ? -largest_small_float<T>() : std::numeric_limits<Compute<T>>::lowest();
  }
  template <class C> static C combine(C a, C b) { return b > a || b != b ? b : a; }
};
struct MinFold {
  template <class T> static Compute<T> start() {
    return is_small_float<T> ? largest_small_float<T>() : std::numeric_limits<Compute<T>>::max();
  }
  template <class C> static C combine(C a, C b) { return b < a || b != b ? b : a; }
};
template <class Fold> constexpr bool is_extremum = std::is_same_v<Fold, MaxFold> || std::is_same_v<Fold, MinFold>;

// The fold of n neighbouring numbers, in four chains, so that the processor need not wait for each result.
template <class T, class Fold> Compute<T> fold_run(const T* x, int64_t n) {
  using C = Compute<T>;
  C chain[4] = {Fold::template start<T>(), Fold::template start<T>(), Fold::template start<T>(),
                Fold::template start<T>()};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) chain[k] = Fold::combine(chain[k], load(x + i + k));
  for (; i < n; ++i) chain[0] = Fold::combine(chain[0], load(x + i));
  return Fold::combine(Fold::combine(chain[0], chain[1]), Fold::combine(chain[2], chain[3]));
}

// y[ids[i]] = fold of the rows x[i]; rows with a negative number are left out. Small floats are added up as floats.
template <class T, class Fold> void fold_rows(const Tensor& x, const Positions& ids, const Tensor& y, bool sorted) {
  using C = Compute<T>;
  const int64_t count = ids.size(), inner = count == 0 ? 0 : x.size() / count;
  const bool empty_is_zero = sorted && is_extremum<Fold>;
  constexpr bool vectorizes = std::is_same_v<Fold, SumFold> && (std::is_same_v<T, float> || std::is_same_v<T, double>);
  const bool adds_rows = vectorizes && inner >= 16;
  BlockVector<C> wide;
  C* total = wide_elements<T>(y, wide);
  std::fill(total, total + y.size(), Fold::template start<T>());
  BlockVector<bool> reached(empty_is_zero ? size_t(y.dim(0)) : 0);
  const T* rows = x.data<T>();
  ids.with_numbers(0, [&](const auto* id) {
    if (inner == 1 && !sorted) {
      for (int64_t i = 0; i < count; ++i)
        if (id[i] >= 0) total[id[i]] = Fold::combine(total[id[i]], load(rows + i));
      return;
    }
    for (int64_t i = 0, next; i < count; i = next) {
      next = i + 1;
      if (id[i] < 0) continue;
      const T* from = rows + i * inner;
      C* to = total + int64_t(id[i]) * inner;
      if (adds_rows) {
        if constexpr (vectorizes) vector_kernels<T>().accumulate(from, to, inner);
      } else if (inner != 1) {
        for (int64_t k = 0; k < inner; ++k) to[k] = Fold::combine(to[k], load(from + k));
      } else {
        while (next < count && id[next] == id[i]) ++next;
        *to = fold_run<T, Fold>(from, next - i);
      }
      if (empty_is_zero) reached[size_t(id[i])] = true;
    }
  });
  for (size_t s = 0; s < reached.size(); ++s)
    if (!reached[s]) std::fill(total + int64_t(s) * inner, total + int64_t(s + 1) * inner, C(0));
  if constexpr (!std::is_same_v<T, C>)
    for (int64_t i = 0; i < y.size(); ++i) store(y.mutable_data<T>() + i, total[i]);
}

void check_starts_with(const char* who, const Shape& x, const Shape& ids) {
  if (ids.rank() > x.rank() || !(x.slice(0, ids.rank()) == ids))
    fail(ErrorKind::invalid_argument, who, ": data.shape = ", x, " does not start with segment_ids.shape = ", ids);
}

constexpr struct : Keys {
  Key<int64_t> num_segments = next("num_segments");
} unsorted_params;

void infer_unsorted(Call& call) {
  const Shape &x = call.in[0].shape(), &ids = call.in[1].shape();
  check_starts_with(call.name(), x, ids);
  int64_t segments = call.params[unsorted_params.num_segments];
  if (segments < 0)
    fail(ErrorKind::invalid_argument, call.name(), ": Input num_segments == ", segments, " must not be negative.");
  Shape shape{segments};
  for (int i = ids.rank(); i < x.rank(); ++i) shape.append(x[i]);
  call.returns(call.in[0].dtype(), shape);
}

template <DTypes Set, class Fold> void unsorted_kernel(Call& call) {
  const Tensor &x = call.in[0], &y = call.out[0];
  const Positions ids(call.in[1]);
  if (const int64_t i = ids.first_outside(std::numeric_limits<int64_t>::min(), y.dim(0)); i >= 0)
    fail(ErrorKind::invalid_argument, call.name(), ": segment_ids", place_text(call.in[1].shape(), i), " = ", ids[i],
         " is out of range [0, ", y.dim(0), ")");
  visit<Set.bits>(x.dtype(), [&](auto* p) { fold_rows<Pointee<decltype(p)>, Fold>(x, ids, y, false); });
}

template <DTypes Set, class Fold> void sorted_kernel(Call& call) {
  const Tensor &x = call.in[0], &segment_ids = call.in[1];
  if (segment_ids.rank() != 1)
    fail(ErrorKind::invalid_argument, call.name(), ": segment_ids should be a vector; got shape ", segment_ids.shape());
  if (x.rank() < 1)
    fail(ErrorKind::invalid_argument, call.name(), ": data must be at least rank 1; got shape ", x.shape());
  if (x.dim(0) != segment_ids.size())
    fail(ErrorKind::invalid_argument, call.name(),
         ": segment_ids should be the same size as dimension 0 of input; got ", segment_ids.shape(), " and ",
         x.shape());
  const Positions ids(segment_ids);
  const int64_t segments = ids.size() == 0 ? 0 : ids[ids.size() - 1] + 1;
  for (int64_t i = 0; i < ids.size(); ++i) {
    if (segments <= 0) fail(ErrorKind::invalid_argument, call.name(), ": segment ids must be >= 0; got ", segments - 1);
    if (ids[i] < 0 || ids[i] >= segments)
      fail(ErrorKind::invalid_argument, call.name(), ": Segment id ", ids[i], " out of range [0, ", segments,
           "), possibly because 'segment_ids' input is not sorted.");
    if (i && ids[i] < ids[i - 1])
      fail(ErrorKind::invalid_argument, call.name(), ": segment ids are not increasing; segment_ids[", i,
           "] = ", ids[i], " follows ", ids[i - 1]);
  }
  Shape shape = x.shape();
  shape[0] = segments;
  call.out.push_back(Tensor::allocate(x.dtype(), shape));
  visit<Set.bits>(x.dtype(), [&](auto* p) { fold_rows<Pointee<decltype(p)>, Fold>(x, ids, call.out[0], true); });
}

Tensor sorted_segment_sum(const Tensor& x, const Tensor& ids);

bool has_negative(const Tensor& ids) {
  bool found = false;
  visit<integers.bits>(ids.dtype(), [&](auto* p) {
    const auto* from = ids.data<Pointee<decltype(p)>>();
    found = std::any_of(from, from + ids.size(), [](auto i) { return std::less<>()(i, decltype(i)(0)); });
  });
  return found;
}

// The rows of t, one per segment, for each row of the data; zeros where the number is negative.
template <bool Sorted> Tensor gather_rows(const Tensor& t, const Tensor& ids) {
  if constexpr (Sorted) return gather(t, ids, 0, 0);
  Tensor zero = Tensor::number(ids.dtype(), 0), kept = greater_equal(ids, zero);
  if (t.dim(0) == 0) {
    Shape shape = ids.shape();
    for (int i = 1; i < t.rank(); ++i) shape.append(t.dim(i));
    return zeros(t.dtype(), shape);
  }
  if (!ids.symbolic() && !has_negative(ids)) return gather(t, ids, 0, 0);
  Tensor rows = gather(t, maximum(ids, zero), 0, 0);
  Shape mask = ids.shape();
  while (mask.rank() < rows.rank()) mask.append(1);
  return select(reshape(kept, mask), rows, Tensor::number(rows.dtype(), 0));
}
template <bool Sorted> Tensor segment_sum(const RuleContext& c, const Tensor& x, const Tensor& ids) {
  if constexpr (Sorted)
    return sorted_segment_sum(x, ids);
  else
    return unsorted_segment_sum(x, ids, c.params[unsorted_params.num_segments]);
}

template <bool Sorted> void sum_vjp(RuleContext& c) {
  if (c.wants(0)) c.set(0, gather_rows<Sorted>(c.dy(), c.x(1)));
}
// A zero takes its part out of the product: the derivative is the product of the others, which a division cannot give.
template <bool Sorted> void prod_vjp(RuleContext& c) {
  if (!c.wants(0)) return;
  const Tensor &x = c.x(0), &ids = c.x(1);
  Tensor zero = Tensor::number(x.dtype(), 0), one = Tensor::number(x.dtype(), 1), is_zero = equal(x, zero);
  Tensor others = select(is_zero, one, x), zeros_here = cast(is_zero, DType::int32);
  Tensor product = run(c.op, {others, ids}, c.params);
  Tensor other_zeros = subtract(gather_rows<Sorted>(segment_sum<Sorted>(c, zeros_here, ids), ids), zeros_here);
  Tensor factor = divide(gather_rows<Sorted>(product, ids), others);
  if (complexes.has(factor.dtype())) factor = conj(factor);
  Tensor dx = multiply(gather_rows<Sorted>(c.dy(), ids), factor);
  c.set(0, select(greater(other_zeros, Tensor::number(DType::int32, 0)), zero, dx));
}
// Equal winners share.
template <bool Sorted> void extremum_vjp(RuleContext& c) {
  if (!c.wants(0)) return;
  const Tensor &x = c.x(0), &ids = c.x(1);
  Tensor wins = cast(equal(x, gather_rows<Sorted>(c.y(), ids)), x.dtype());
  Tensor share = divide_no_nan(c.dy(), segment_sum<Sorted>(c, wins, ids));
  c.set(0, multiply(wins, gather_rows<Sorted>(share, ids)));
}

// Segments that are the same for all rows: the rows go behind the dimensions that are reduced.
bool batch_same_segments(BatchCall& c) {
  if (c.batched[1]) return false;
  c.run_same({move_dimension(c.in[0], 0, c.row_rank(1)), c.in[1]}, c.params);
  c.out[0] = move_dimension(c.out[0], 1, 0);
  return true;
}
// Every row gets segments of its own; negative numbers, which are left out, stay negative.
bool batch_segments(BatchCall& c) {
  if (batch_same_segments(c)) return true;
  const Tensor& ids = c.in[1];
  const int64_t segments = c.params[unsorted_params.num_segments];
  Tensor first = multiply(row_numbers(ids.dtype(), ids.shape()), Tensor::number(ids.dtype(), double(segments)));
  Tensor own = select(less(ids, Tensor::number(ids.dtype(), 0)), ids, add(ids, first));
  c.run_same({c.with_rows(0), own}, {Param(segments * c.rows)});
  Shape shape{c.rows, segments};
  for (int i = 1; i < c.out[0].rank(); ++i) shape.append(c.out[0].dim(i));
  c.out[0] = reshape(c.out[0], shape);
  return true;
}

template <class Fold, DTypes Set>
Op segment_entry(const char* name, bool sorted, std::vector<const char*> names, const char* doc) {
  Op op{.name = name, .arguments = {tensor("data", Set), index_tensor("segment_ids")}};
  if (sorted) {
    op.infer_staged = [](Call& call) {
      Shape shape = call.in[0].shape();
      if (shape.rank() == 0)
        fail(ErrorKind::invalid_argument, call.name(), ": data must be at least rank 1; got shape []");
      const Shape& ids = call.in[1].shape();
      if (ids.known_rank() && ids.rank() != 1)
        fail(ErrorKind::invalid_argument, call.name(),
             ": segment_ids should be a vector: it must be rank 1 but is rank ", ids.rank());
      if (shape.known_rank()) shape[0] = -1;
      call.returns(call.in[0].dtype(), shape);
    };
    op.kernel = sorted_kernel<Set, Fold>;
    op.makes_outputs = true;
  } else {
    op.arguments.push_back(integer(unsorted_params.num_segments));
    op.infer = infer_unsorted;
    op.infer_staged = [](Call& call) {
      const Tensor &x = call.in[0], &ids = call.in[1];
      if (x.rank() < 0 || ids.rank() < 0 || ids.rank() > x.rank()) return call.returns(x.dtype(), Shape::unknown());
      Shape shape{std::max<int64_t>(known_integer(call.params.value(unsorted_params.num_segments)), -1)};
      for (int i = ids.rank(); i < x.rank(); ++i) shape.append(x.dim(i));
      call.returns(x.dtype(), shape);
    };
    op.kernel = unsorted_kernel<Set, Fold>;
  }
  if constexpr (std::is_same_v<Fold, SumFold>) {
    op.planning.cost = {cost::elements_in_one_piece, 2.5};
    op.vjp = sorted ? sum_vjp<true> : sum_vjp<false>;
    op.jvp = [](RuleContext& c) {
      if (c.x_dot(0)) c.set(0, run(c.op, {c.x_dot(0), c.x(1)}, c.params));
    };
    op.keep = keep_input(1);
    if (!sorted)
      op.row_rule = [](const Call&, std::span<const bool> by_row, std::span<bool> also_cut) {
        also_cut[1] = true;
        return by_row[0] ? RowStructure::summed : RowStructure::mixed;
      };
  } else if constexpr (std::is_same_v<Fold, ProdFold>) {
    op.vjp = sorted ? prod_vjp<true> : prod_vjp<false>;
    op.keep = keep_input(0) | keep_input(1);
  } else {
    op.vjp = sorted ? extremum_vjp<true> : extremum_vjp<false>;
    op.keep = keep_input(0) | keep_input(1) | keep_output(0);
  }
  op.batch = sorted ? batch_same_segments : batch_segments;
  op.names = std::move(names);
  op.doc = doc;
  return op;
}

const Op& unsorted_sum_op = define(segment_entry<SumFold, numbers>(
    "UnsortedSegmentSum", false, {"math.unsorted_segment_sum"},
    R"(Rows of `data` added up by the number in `segment_ids`; negative numbers are left out.

Args:
  data: The rows.
  segment_ids: Integers, one for each row of `data`.
  num_segments: The number of rows of the result.

Returns: A tensor with `num_segments` rows.

Gradient: Each row gets the `dy` of its segment.

>>> tf.math.unsorted_segment_sum([1., 2., 3.], [0, 1, 0], 2)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 2.], dtype=float32)>)"));
const Op& unsorted_prod_op = define(segment_entry<ProdFold, numbers>(
    "UnsortedSegmentProd", false, {"math.unsorted_segment_prod"},
    R"(Rows of `data` multiplied by the number in `segment_ids`; 1 for an absent number.

Args:
  data: The rows.
  segment_ids: Integers, one for each row of `data`.
  num_segments: The number of rows of the result.

Returns: A tensor with `num_segments` rows.

Gradient: Each row gets `dy` times the product of the other rows of its segment.

>>> tf.math.unsorted_segment_prod([1., 2., 3.], [0, 1, 0], 2)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 2.], dtype=float32)>)"));
const Op& unsorted_max_op =
    define(segment_entry<MaxFold, real_numbers>("UnsortedSegmentMax", false, {"math.unsorted_segment_max"},
                                                R"(The largest rows of `data` by the number in `segment_ids`.

An absent number gives the lowest value of the dtype.

Args:
  data: The rows.
  segment_ids: Integers, one for each row of `data`.
  num_segments: The number of rows of the result.

Returns: A tensor with `num_segments` rows.

Gradient: `dy` goes to the largest rows; equal ones share it.

>>> tf.math.unsorted_segment_max([1., 2., 3.], [0, 1, 0], 2)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 2.], dtype=float32)>)"));
const Op& unsorted_min_op =
    define(segment_entry<MinFold, real_numbers>("UnsortedSegmentMin", false, {"math.unsorted_segment_min"},
                                                R"(The smallest rows of `data` by the number in `segment_ids`.

An absent number gives the highest value of the dtype.

Args:
  data: The rows.
  segment_ids: Integers, one for each row of `data`.
  num_segments: The number of rows of the result.

Returns: A tensor with `num_segments` rows.

Gradient: `dy` goes to the smallest rows; equal ones share it.

>>> tf.math.unsorted_segment_min([1., 2., 3.], [0, 1, 0], 2)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>)"));

const Op& sorted_sum_op =
    define(segment_entry<SumFold, numbers>("SegmentSum", true, {"math.segment_sum"},
                                           R"(Rows of `data` added up by their number in `segment_ids`, which is sorted.

Args:
  data: The rows.
  segment_ids: Sorted integers, one for each row of `data`.

Returns: A tensor with `segment_ids[-1] + 1` rows.

Gradient: Each row gets the `dy` of its segment.

>>> tf.math.segment_sum([1., 2., 3.], [0, 0, 1])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 3.], dtype=float32)>)"));
const Op& sorted_prod_op = define(segment_entry<ProdFold, numbers>(
    "SegmentProd", true, {"math.segment_prod"},
    R"(Rows of `data` multiplied by their number in `segment_ids`, which is sorted; 1 for an absent number.

Args:
  data: The rows.
  segment_ids: Sorted integers, one for each row of `data`.

Returns: A tensor with `segment_ids[-1] + 1` rows.

Gradient: Each row gets `dy` times the product of the other rows of its segment.

>>> tf.math.segment_prod([1., 2., 3.], [0, 0, 1])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 3.], dtype=float32)>)"));
const Op& sorted_max_op = define(segment_entry<MaxFold, real_numbers>(
    "SegmentMax", true, {"math.segment_max"},
    R"(The largest rows of `data` by their number in `segment_ids`, which is sorted; 0 for an absent number.

Args:
  data: The rows.
  segment_ids: Sorted integers, one for each row of `data`.

Returns: A tensor with `segment_ids[-1] + 1` rows.

Gradient: `dy` goes to the largest rows; equal ones share it.

>>> tf.math.segment_max([1., 2., 3.], [0, 0, 1])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 3.], dtype=float32)>)"));
const Op& sorted_min_op = define(segment_entry<MinFold, real_numbers>(
    "SegmentMin", true, {"math.segment_min"},
    R"(The smallest rows of `data` by their number in `segment_ids`, which is sorted; 0 for an absent number.

Args:
  data: The rows.
  segment_ids: Sorted integers, one for each row of `data`.

Returns: A tensor with `segment_ids[-1] + 1` rows.

Gradient: `dy` goes to the smallest rows; equal ones share it.

>>> tf.math.segment_min([1., 2., 3.], [0, 0, 1])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 3.], dtype=float32)>)"));

Tensor sorted_segment_sum(const Tensor& x, const Tensor& ids) { return run(sorted_sum_op, {x, ids}); }

// How often each of the numbers 0, 1, ... below `size` occurs; others are left out. Four tables take turns, so that
// equal neighbours need not wait for each other.
constexpr DTypes countable = DTypes(DType::int32) | DType::int64;
constexpr struct : Keys {
  Key<int64_t> size = next("size");
} count_params;
template <class T> void count_values(const T* values, int64_t n, int64_t* counts, int64_t size) {
  constexpr int64_t most = 1 << 12;  // beyond, four tables leave the first cache
  const int64_t tables = size <= most && n > 4 * size ? 4 : 1;
  Scratch<int64_t> found(tables * size);
  std::ranges::fill(found, 0);
  int64_t i = 0;
  const auto count = [&](T value, int64_t table) {
    if (uint64_t(value) < uint64_t(size)) ++found[size_t(table * size + int64_t(value))];
  };
  if (tables == 4)
    for (; i <= n - 4; i += 4)
      for (int64_t k = 0; k < 4; ++k) count(values[i + k], k);
  for (; i < n; ++i) count(values[i], 0);
  std::fill(counts, counts + size, 0);
  for (int64_t t = 0; t < tables; ++t)
    for (int64_t k = 0; k < size; ++k) counts[k] += found[size_t(t * size + k)];
}
const Op& count_values_op = define(Op{
    .name = "CountValues",
    .arguments = {tensor("values", countable), integer(count_params.size)},
    .infer =
        [](Call& call) {
          const int64_t size = call.params[count_params.size];
          if (size < 0)
            fail(ErrorKind::invalid_argument, "bincount: the number of bins must not be negative; got ", size);
          call.returns(DType::int64, {size});
        },
    .kernel =
        [](Call& call) {
          const Tensor &values = call.in[0], &y = call.out[0];
          visit<countable.bits>(values.dtype(), [&](auto* p) {
            count_values(values.data<Pointee<decltype(p)>>(), values.size(), y.mutable_data<int64_t>(), y.size());
          });
        },
    .gradient = Gradient::none,
});

}  // namespace

Tensor unsorted_segment_sum(const Tensor& x, const Tensor& ids, int64_t segments) {
  return run(unsorted_sum_op, {x, ids}, {Param(segments)});
}

}  // namespace tapeflow
