// Positions of extrema along one axis.
#include <algorithm>

#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/simd/arg_extremum.h"
#include "ops/family.h"
#include "ops/math/lines.h"
#include "ops/math/reducer.h"

namespace tapeflow {
namespace {

constexpr DTypes kPlaceTypes = DTypes(DType::int16) | DType::uint16 | DType::int32 | DType::int64;

constexpr struct : Keys {
  Key<Ints> axis = next("axis");
  Key<DType> output_type = next("output_type");
} arg_params;

// One axis; None is the first.
int arg_axis(const Call& call) {
  const Param& p = call.params.value(arg_params.axis);
  if (!p.is_none() && p.ints.size() != 1)
    fail(ErrorKind::invalid_argument, call.name(), ": axis must be one integer; got ", p.ints.size());
  int64_t axis = p.is_none() ? 0 : p.ints[0], rank = call.in[0].rank();
  if (axis < -rank || axis >= rank)
    fail(ErrorKind::invalid_argument, call.name(), ": Expected dimension in the range [", -rank, ", ", rank,
         "), but got ", axis);
  return int(axis < 0 ? axis + rank : axis);
}

// The first of equal elements wins; NaN never does.
template <bool Largest, class C> bool better(C candidate, C best) {
  return (Largest ? candidate > best : candidate < best) || (best != best && candidate == candidate);
}
template <class T> constexpr bool has_kernels = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Columns: each row is folded into the best elements so far. Several short rows count as one long row.
template <bool Largest, class T> void find_in_columns(const T* x, int64_t rows, int64_t columns, int64_t* to) {
  using Kernels = ArgExtremumKernels<T>;
  using Place = typename Kernels::Place;
  constexpr int64_t kWidth = 512, kBlock = 2048;
  const Kernels& kernels = arg_extremum_kernels<Largest, T>();
  const int64_t joined = std::clamp<int64_t>(kWidth / columns, 1, rows), width = joined * columns,
                whole = rows / joined, block = std::min(width, kBlock);
  Scratch<T> best(width);
  Scratch<Place> places(width);
  std::copy_n(x, width, best.data());
  std::ranges::fill(places, Place(0));
  for (int64_t begin = 0; begin < width; begin += block)
    for (int64_t r = 1; r < whole; ++r)
      kernels.fold(x + r * width + begin, best.data() + begin, places.data() + begin, Place(r),
                   std::min(block, width - begin));
  for (int64_t i = 0; i < columns; ++i) {
    T found = best[size_t(i)];
    int64_t place = int64_t(places[size_t(i)]) * joined;
    const auto meet = [&](T candidate, int64_t at) {
      if (better<Largest>(candidate, found) || (candidate == found && at < place)) found = candidate, place = at;
    };
    for (int64_t j = 1; j < joined; ++j)
      meet(best[size_t(j * columns + i)], int64_t(places[size_t(j * columns + i)]) * joined + j);
    for (int64_t r = whole * joined; r < rows; ++r) meet(x[r * columns + i], r);
    to[i] = found == found ? place : 0;
  }
}

// The first element that equals `value`, which is there: by blocks, in which the compiler looks at vectors.
template <class T> int64_t first_equal(const T* x, int64_t n, T value) {
  constexpr int64_t kBlock = 64;
  int64_t begin = 0;
  run_vectorized<sizeof(T) == 8 ? Widest::avx512 : Widest::avx2>([x, n, value, &begin]() TAPEFLOW_LOOP {
    for (; begin + kBlock <= n; begin += kBlock) {
      T found = 0;
      for (int64_t i = 0; i < kBlock; ++i) found = T(found | T(x[begin + i] == value));
      if (found) return;
    }
  });
  return std::find(x + begin, x + n, value) - x;
}

// The same for integers: in a run, and in columns.
template <bool Largest, class T> int64_t find_integer(const T* x, int64_t n) {
  constexpr int64_t kPart = 512;
  const Steps<T> steps = Largest ? max_steps<T>() : min_steps<T>();
  int64_t part = 0;
  T best = steps.row(x, std::min(n, kPart));
  for (int64_t begin = kPart; begin < n; begin += kPart) {
    const T found = steps.row(x + begin, std::min(n - begin, kPart));
    if (Largest ? found > best : found < best) best = found, part = begin;
  }
  return part + first_equal(x + part, std::min(n - part, kPart), best);
}
template <bool Largest, class T> void find_integers_in_columns(const T* x, int64_t rows, int64_t columns, int64_t* to) {
  using Place = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  constexpr int64_t kBlock = 1024;
  for (int64_t begin = 0; begin < columns; begin += kBlock) {
    const int64_t n = std::min(kBlock, columns - begin);
    T best[kBlock];
    Place places[kBlock] = {};
    std::copy_n(x + begin, n, best);
    for (int64_t r = 1; r < rows; ++r)
      run_vectorized([row = x + r * columns + begin, &best, &places, r, n]() TAPEFLOW_LOOP {
        for (int64_t i = 0; i < n; ++i) {
          const bool wins = Largest ? row[i] > best[i] : row[i] < best[i];
          best[i] = wins ? row[i] : best[i];
          places[i] = wins ? Place(r) : places[i];
        }
      });
    std::copy_n(places, n, to + begin);
  }
}

template <bool Largest, class T> void find_extrema(const T* from, Lines l, int64_t* to) {
  parallel_for(l.outer, l.grain(), [&](int64_t begin, int64_t end) {
    if constexpr (has_kernels<T>) {
      if (l.inner == 1 && l.count > 0)
        return arg_extremum_kernels<Largest, T>().rows(from + begin * l.count, to + begin, end - begin, l.count);
      if (l.inner > 1 && l.count > 1 && l.count < (int64_t(1) << 31)) {
        for (int64_t o = begin; o < end; ++o)
          find_in_columns<Largest>(from + o * l.count * l.inner, l.count, l.inner, to + o * l.inner);
        return;
      }
    }
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (l.inner == 1 && l.count > 8) {
        for (int64_t o = begin; o < end; ++o) to[o] = find_integer<Largest>(from + o * l.count, l.count);
        return;
      }
      if (l.inner >= 8 && l.count > 1 && l.count < (int64_t(1) << 31)) {
        for (int64_t o = begin; o < end; ++o)
          find_integers_in_columns<Largest>(from + o * l.count * l.inner, l.count, l.inner, to + o * l.inner);
        return;
      }
    }
    Scratch<Compute<T>> best(l.inner);
    for (int64_t o = begin; o < end; ++o) {
      int64_t* place = to + o * l.inner;
      for (int64_t k = 0; k < l.count; ++k) {
        const T* row = from + (o * l.count + k) * l.inner;
        for (int64_t i = 0; i < l.inner; ++i) {
          Compute<T> value = load(row + i);
          if (k == 0 || better<Largest>(value, best[size_t(i)])) best[size_t(i)] = value, place[i] = k;
        }
      }
    }
  });
}
template <bool Largest> void arg_extremum(Call& call) {
  const Tensor &x = call.in[0], &y = call.out[0];
  int axis = arg_axis(call);
  Lines l = lines_of(x.shape(), axis);
  if (l.count == 0 && y.size() > 0)
    fail(ErrorKind::invalid_argument, call.name(), ": Reduction axis ", axis, " is empty in shape ", x.shape());
  bool direct = y.dtype() == DType::int64;
  Tensor places = direct ? y : Tensor::allocate(DType::int64, y.shape());
  visit<(real_numbers | booleans).bits>(x.dtype(), [&](auto* p) {
    find_extrema<Largest>(x.data<Pointee<decltype(p)>>(), l, places.mutable_data<int64_t>());
  });
  if (!direct)
    visit<kPlaceTypes.bits>(y.dtype(), [&](auto* p) {
      using T = Pointee<decltype(p)>;
      for (int64_t i = 0; i < y.size(); ++i) y.mutable_data<T>()[i] = T(places.data<int64_t>()[i]);
    });
}
void infer_arg_extremum(Call& call) {
  Shape shape = call.in[0].shape();
  shape.remove(arg_axis(call));
  DType result = call.params.has(arg_params.output_type) ? call.params[arg_params.output_type] : DType::int64;
  if (!kPlaceTypes.has(result))
    fail(ErrorKind::invalid_argument, call.name(), ": output_type must be int16, uint16, int32 or int64; got ",
         name_of(result));
  call.returns(result, shape);
}
bool batch_arg_extremum(BatchCall& c) {
  const int64_t axis = c.params.has(arg_params.axis) ? c.params[arg_params.axis][0] : 0;
  return c.run_same({c.in[0]}, c.params.with(arg_params.axis, Param(Ints{c.batch_axis(axis, c.row_rank(0))})));
}

template <bool Largest> const Op& define_arg_extremum(Op op) {
  op.arguments = {tensor("input", real_numbers | booleans), axes(arg_params.axis),
                  dtype_argument(arg_params.output_type)};
  op.infer = infer_arg_extremum;
  op.kernel = arg_extremum<Largest>;
  op.gradient = Gradient::none;
  op.batch = batch_arg_extremum;
  op.advice = "An index has zero gradient almost everywhere: use tf.nn.softmax for a smooth choice.";
  return define(std::move(op));
}

const Op& arg_max_op = define_arg_extremum<true>({
    .name = "ArgMax",
    .names = {"math.argmax", "argmax"},
    .doc = R"(Position of the largest element along `axis`; the first one of equals.

Args:
  input: The tensor.
  axis: The dimension to search; 0 if None. Negative axes count from the end.
  output_type: The dtype of the positions, `tf.int64` if None.

Returns: An integer tensor without the dimension `axis`.

>>> tf.argmax([1., 3., 2.])
<tf.Tensor: shape=(), dtype=int64, numpy=1>)",
});
const Op& arg_min_op = define_arg_extremum<false>({
    .name = "ArgMin",
    .names = {"math.argmin", "argmin"},
    .doc = R"(Position of the smallest element along `axis`; the first one of equals.

Args:
  input: The tensor.
  axis: The dimension to search; 0 if None. Negative axes count from the end.
  output_type: The dtype of the positions, `tf.int64` if None.

Returns: An integer tensor without the dimension `axis`.

>>> tf.argmin([2., 1., 3.])
<tf.Tensor: shape=(), dtype=int64, numpy=1>)",
});

}  // namespace

}  // namespace tapeflow
