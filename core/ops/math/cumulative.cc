// Running sums and products along one axis, and the linear recurrence that their rules need.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "base/blocks.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "op/cost.h"
#include "ops/family.h"
#include "ops/math/lines.h"

namespace tapeflow {
namespace {

// Running sums of one line of floats, in double. Within a block they do not wait for what came before.
template <int step> void add_along_line(const float* x, float* y, int64_t n, bool exclusive) {
  constexpr int64_t block = 8;
  double before = 0;
  int64_t k = 0;
  for (; k + block <= n; k += block) {
    double sum[block];
    sum[0] = x[k * step];
    for (int64_t i = 1; i < block; ++i) sum[i] = sum[i - 1] + double(x[(k + i) * step]);
    if (exclusive) {
      y[k * step] = float(before);
      for (int64_t i = 1; i < block; ++i) y[(k + i) * step] = float(before + sum[i - 1]);
    } else {
      for (int64_t i = 0; i < block; ++i) y[(k + i) * step] = float(before + sum[i]);
    }
    before += sum[block - 1];
  }
  for (; k < n; ++k) {
    double after = before + double(x[k * step]);
    y[k * step] = float(exclusive ? before : after);
    before = after;
  }
}

// Several lines at a time: each step of a line waits for the one before, those of other lines do not.
template <int lines, class T, class F>
void accumulate_lines(const T* x, T* y, int64_t count, bool exclusive, bool reverse, Compute<T> start, F f) {
  Compute<T> total[lines];
  std::fill(total, total + lines, start);
  for (int64_t k = 0; k < count; ++k) {
    int64_t at = reverse ? count - 1 - k : k;
    for (int line = 0; line < lines; ++line) {
      Compute<T> before = total[line];
      total[line] = f(before, load(x + line * count + at));
      store(y + line * count + at, exclusive ? before : total[line]);
    }
  }
}

struct Plus {
  template <class C> C operator()(C a, C b) const { return C(a + b); }
};
struct Times {
  template <class C> C operator()(C a, C b) const { return C(a * b); }
};

// One long line in eight pieces at a time: what stands before a piece is made of the totals of the pieces before it.
// False if such a total may have lost what the line itself does not: where it overflows, or vanishes in a product.
constexpr int64_t kPieces = 8, kLongLine = 1 << 10;
template <class T, class F>
bool accumulate_in_pieces(const T* x, T* y, int64_t count, bool exclusive, bool reverse, T start, F f) {
  const int64_t length = count / kPieces;
  T total[kPieces];
  std::fill(total, total + kPieces, start);
  const auto at = [&](int64_t piece, int64_t k) {
    const int64_t place = piece * length + k;
    return reverse ? count - 1 - place : place;
  };
  for (int64_t k = 0; k < length; ++k)
    for (int64_t piece = 0; piece < kPieces; ++piece) total[piece] = f(total[piece], x[at(piece, k)]);
  T before = start;
  for (T& t : total) {
    const T after = f(before, t);
    if constexpr (std::is_floating_point_v<T>) {
      const auto sound = [](T value) { return std::is_same_v<F, Times> ? std::isnormal(value) : std::isfinite(value); };
      if (!sound(t) || !sound(after)) return false;
    }
    t = before, before = after;
  }
  const auto step = [&](int64_t piece, int64_t k) {
    const int64_t place = at(piece, k);
    const T old = total[piece];
    total[piece] = f(old, x[place]);
    y[place] = exclusive ? old : total[piece];
  };
  for (int64_t k = 0; k < length; ++k)
    for (int64_t piece = 0; piece < kPieces; ++piece) step(piece, k);
  for (int64_t k = length; k < count - (kPieces - 1) * length; ++k) step(kPieces - 1, k);
  return true;
}

template <class T, class F>
void accumulate_along(const Tensor& x, const Tensor& y, int axis, bool exclusive, bool reverse, Compute<T> start, F f) {
  Lines l = lines_of(x.shape(), axis);
  const T* from = x.data<T>();
  T* to = y.mutable_data<T>();
  parallel_for(l.outer, l.grain(), [&](int64_t begin, int64_t end) {
    if (l.inner == 1) {
      int64_t o = begin;
      if constexpr (std::is_same_v<T, float> && std::is_same_v<F, Plus>) {
        for (; o < end; ++o) {
          if (reverse)
            add_along_line<-1>(from + (o + 1) * l.count - 1, to + (o + 1) * l.count - 1, l.count, exclusive);
          else
            add_along_line<1>(from + o * l.count, to + o * l.count, l.count, exclusive);
        }
      }
      for (; o + 8 <= end; o += 8)
        accumulate_lines<8>(from + o * l.count, to + o * l.count, l.count, exclusive, reverse, start, f);
      for (; o < end; ++o) {
        if constexpr (std::is_arithmetic_v<T> && (std::is_same_v<F, Plus> || std::is_same_v<F, Times>))
          if (l.count >= kLongLine &&
              accumulate_in_pieces(from + o * l.count, to + o * l.count, l.count, exclusive, reverse, start, f))
            continue;
        accumulate_lines<1>(from + o * l.count, to + o * l.count, l.count, exclusive, reverse, start, f);
      }
      return;
    }
    Scratch<Compute<T>> totals(l.inner);
    Compute<T>* total = totals.data();
    for (int64_t o = begin; o < end; ++o) {
      std::fill(total, total + l.inner, start);
      for (int64_t k = 0; k < l.count; ++k) {
        int64_t row = (o * l.count + (reverse ? l.count - 1 - k : k)) * l.inner;
        const T* in = from + row;
        T* out = to + row;
        if (exclusive)
          for (int64_t i = 0; i < l.inner; ++i) store(out + i, total[i]), total[i] = f(total[i], load(in + i));
        else
          for (int64_t i = 0; i < l.inner; ++i) total[i] = f(total[i], load(in + i)), store(out + i, total[i]);
      }
    }
  });
}

constexpr struct : Keys {
  Key<int64_t> axis = next("axis");
  Key<bool> exclusive = next("exclusive"), reverse = next("reverse");
} scan_params;
void infer_cumulative(Call& call) {
  normalize_axis(call.name(), call.params[scan_params.axis], call.in[0].rank());
  call.returns(call.in[0].dtype(), call.in[0].shape());
}

constexpr const char* kScanArguments = R"(
Args:
  x: The tensor.
  axis: The dimension to run along; negative axes count from the end.
  exclusive: Whether an element of the result leaves out its own input.
  reverse: Whether to run from the end to the beginning.

Returns: A tensor of the shape and dtype of `x`.
)";

// Defines a scan: Start gives what the result begins with, Combine what two elements give.
template <DTypes Set, class Start, class Combine> const Op& scan(Start, Combine, Op op) {
  op.arguments = {tensor("x", Set), integer(scan_params.axis, 0), flag(scan_params.exclusive),
                  flag(scan_params.reverse)};
  op.infer = infer_cumulative;
  op.kernel = [](Call& call) {
    visit<Set.bits>(call.in[0].dtype(), [&](auto* p) {
      using T = Pointee<decltype(p)>;
      using C = Compute<T>;
      accumulate_along<T>(
          call.in[0], call.out[0], normalize_axis(call.name(), call.params[scan_params.axis], call.in[0].rank()),
          call.params[scan_params.exclusive], call.params[scan_params.reverse], Start{}(C()), Combine{});
    });
  };
  op.batch = batch_along<scan_params.axis.index>;
  // One text for each instantiation, that is for each scan: the arguments come after the first line.
  static const std::string doc = [&] {
    const std::string_view own = op.doc;
    const size_t line = own.find('\n') + 1;
    return std::string(own.substr(0, line)) + kScanArguments + std::string(own.substr(line));
  }();
  op.doc = doc.c_str();
  return define(std::move(op));
}

const Op& cumsum_op =
    scan<numbers>([](auto c) { return decltype(c)(0); }, Plus{},
                  {
                      .name = "Cumsum",
                      .planning = {.cost = {cost::scans<scan_params.axis.index>, 0.5}, .cannot_fail = true},
                      .vjp =
                          [](RuleContext& c) {
                            c.set(0, cumsum(c.dy(), c.params[scan_params.axis], c.params[scan_params.exclusive],
                                            !c.params[scan_params.reverse]));
                          },
                      .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
                      .names = {"math.cumsum", "cumsum"},
                      .doc = R"(Running sum along `axis`.

Gradient: The running sum of `dy` in the other direction.

>>> tf.cumsum([1., 2., 3.])
<tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 3., 6.], dtype=float32)>)",
                  });

// Every element moved by one along an axis, up or down; the free place takes zero, or its neighbour's old value.
enum class Edge { zero, repeat };
Tensor moved_by_one(const Tensor& x, int axis, bool up, Edge edge) {
  int64_t count = x.dim(axis);
  if (count == 0) return x;
  Ints begin, size, first;
  for (int i = 0; i < x.rank(); ++i) begin.push_back(0), size.push_back(x.dim(i)), first.push_back(0);
  size[size_t(axis)] = count - 1;
  begin[size_t(axis)] = up ? 0 : 1;
  Tensor rest = slice(x, begin, size);
  size[size_t(axis)] = 1;
  first[size_t(axis)] = up ? 0 : count - 1;
  Tensor free = edge == Edge::repeat ? slice(x, first, size) : zeros(x.dtype(), Shape(size.data(), x.rank()));
  Tensor parts[2] = {up ? free : rest, up ? rest : free};
  return concat(parts, axis);
}

// Several lines at a time, as above.
template <int lines, class T> void recur_along(const T* a, const T* b, T* y, int64_t count, bool reverse) {
  Compute<T> total[lines] = {};
  for (int64_t k = 0; k < count; ++k) {
    const int64_t at = reverse ? count - 1 - k : k;
    for (int line = 0; line < lines; ++line) {
      const int64_t place = line * count + at;
      const Compute<T> term = load(b + place);
      total[line] = k == 0 ? term : Compute<T>(term + load(a + place) * total[line]);
      store(y + place, total[line]);
    }
  }
}

// y[k] = b[k] + a[k] y[k-1] along an axis, from the other end if `reverse`; the first a is not used.
Tensor recurrence(const Tensor& a, const Tensor& b, int64_t axis, bool reverse);
constexpr struct : Keys {
  Key<int64_t> axis = next("axis");
  Key<bool> reverse = next("reverse");
} recurrence_params;
const Op& recurrence_op = define(Op{
    .name = "LinearRecurrence",
    .planning = {.cost = {cost::scans<recurrence_params.axis.index>, 1.4}},
    .arguments = {tensor("a", differentiable), tensor("b", differentiable), integer(recurrence_params.axis, 0),
                  flag(recurrence_params.reverse)},
    .infer =
        [](Call& call) {
          const Tensor &a = call.in[0], &b = call.in[1];
          if (a.dtype() != b.dtype()) family::fail_dtypes(call);
          if (!(a.shape() == b.shape()))
            fail(ErrorKind::invalid_argument, call.name(), ": `a` and `b` must have one shape; got ", a.shape(),
                 " and ", b.shape());
          normalize_axis(call.name(), call.params[recurrence_params.axis], b.rank());
          call.returns(b.dtype(), b.shape());
        },
    .kernel =
        [](Call& call) {
          const Tensor &a = call.in[0], &b = call.in[1], &y = call.out[0];
          Lines l = lines_of(b.shape(), normalize_axis(call.name(), call.params[recurrence_params.axis], b.rank()));
          bool reverse = call.params[recurrence_params.reverse];
          visit<differentiable.bits>(b.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            const T *from = b.data<T>(), *factors = a.data<T>();
            T* to = y.mutable_data<T>();
            parallel_for(l.outer, l.grain(), [&](int64_t begin, int64_t end) {
              int64_t o = begin;
              const auto along = [&]<int lines>(std::integral_constant<int, lines>) {
                for (; o + lines <= end; o += lines)
                  recur_along<lines>(factors + o * l.count, from + o * l.count, to + o * l.count, l.count, reverse);
              };
              if (l.inner == 1) return along(std::integral_constant<int, 8>()), along(std::integral_constant<int, 1>());
              Scratch<Compute<T>> totals(l.inner);
              Compute<T>* total = totals.data();
              for (; o < end; ++o)
                for (int64_t k = 0; k < l.count; ++k) {
                  const int64_t row = (o * l.count + (reverse ? l.count - 1 - k : k)) * l.inner;
                  for (int64_t i = 0; i < l.inner; ++i) {
                    const Compute<T> term = load(from + row + i);
                    total[i] = k == 0 ? term : Compute<T>(term + load(factors + row + i) * total[i]);
                    store(to + row + i, total[i]);
                  }
                }
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          int64_t axis = c.params[recurrence_params.axis];
          bool reverse = c.params[recurrence_params.reverse];
          int place = normalize_axis(c.op.public_name(), axis, c.x(0).rank());
          Tensor flow = recurrence(moved_by_one(conj(c.x(0)), place, reverse, Edge::zero), c.dy(), axis, !reverse);
          if (c.wants(0)) c.set(0, multiply(flow, moved_by_one(conj(c.y()), place, !reverse, Edge::zero)));
          if (c.wants(1)) c.set(1, flow);
        },
    .keep = keep_input(0) | keep_output(0),
    .batch = batch_along<recurrence_params.axis.index>,
});
Tensor recurrence(const Tensor& a, const Tensor& b, int64_t axis, bool reverse) {
  return run(recurrence_op, {a, b}, {Param(axis), Param(reverse)});
}

// dx[i] is the product of what stands before i, times the sum of dy[j] prod(x[i+1..j]) over j >= i: no division, so
// that zeros do no harm. The sum is a recurrence from the far end.
Tensor cumprod_vjp(const RuleContext& c) {
  int64_t axis = c.params[scan_params.axis];
  bool exclusive = c.params[scan_params.exclusive], reverse = c.params[scan_params.reverse];
  Tensor x = conj(c.x(0));
  int place = normalize_axis("cumprod", axis, x.rank());
  Tensor sums = exclusive ? moved_by_one(recurrence(x, c.dy(), axis, !reverse), place, reverse, Edge::zero)
                          : recurrence(moved_by_one(x, place, reverse, Edge::zero), c.dy(), axis, !reverse);
  return multiply(cumprod(x, axis, true, reverse), sums);
}

const Op& cumprod_op =
    scan<numbers>([](auto c) { return decltype(c)(1); }, Times{},
                  {
                      .name = "Cumprod",
                      .planning = {.cost = {cost::scans<scan_params.axis.index>, 1.4}, .cannot_fail = true},
                      .vjp = [](RuleContext& c) { c.set(0, cumprod_vjp(c)); },
                      .keep = keep_input(0),
                      .names = {"math.cumprod"},
                      .doc = R"(Running product along `axis`.

Gradient: `dy * y` summed up in the other direction, divided by `x`; correct where elements are 0.

>>> tf.math.cumprod([1., 2., 3.])
<tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 2., 6.], dtype=float32)>)",
                  });

// log(exp(a) + exp(b)); -inf is the empty sum.
template <class C> C log_add(C a, C b) {
  if (a != a || b != b) return a + b;
  C high = a > b ? a : b, low = a > b ? b : a;
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

// With y[j] = log sum exp(x[..j]): dx[i] = exp(x[i] - y[i]) r[i], r[i] = dy[i] + exp(y[i] - y[i+1]) r[i+1]. All
// exponents are at most 0. Where y is -inf the weights are 0.
Tensor cumulative_logsumexp(const Tensor& x, int64_t axis, bool exclusive, bool reverse);
Tensor cumulative_logsumexp_vjp(const RuleContext& c) {
  int64_t axis = c.params[scan_params.axis];
  bool exclusive = c.params[scan_params.exclusive], reverse = c.params[scan_params.reverse];
  const Tensor& x = c.x(0);
  int place = normalize_axis("cumulative_logsumexp", axis, x.rank());
  Tensor y = exclusive ? cumulative_logsumexp(x, axis, false, reverse) : c.y();
  Tensor dy = exclusive ? moved_by_one(c.dy(), place, reverse, Edge::zero) : c.dy();
  Tensor lowest = Tensor::number(x.dtype(), -std::numeric_limits<double>::infinity());
  Tensor safe = select(equal(y, lowest), Tensor::number(x.dtype(), 0), y);
  Tensor fade = exp(subtract(y, moved_by_one(safe, place, reverse, Edge::repeat)));
  return multiply(exp(subtract(x, safe)), recurrence(fade, dy, axis, !reverse));
}

const Op& cumulative_logsumexp_op = scan<floating>(
    [](auto c) { return -std::numeric_limits<decltype(c)>::infinity(); }, [](auto a, auto b) { return log_add(a, b); },
    {
        .name = "CumulativeLogsumexp",
        .planning = {.cost = {cost::scans<scan_params.axis.index>, 39}},
        .vjp = [](RuleContext& c) { c.set(0, cumulative_logsumexp_vjp(c)); },
        .keep = keep_input(0) | keep_output(0),
        .names = {"math.cumulative_logsumexp"},
        .doc = R"(Running `log(sum(exp(x)))` along `axis`.

Gradient: The running sum of `dy * exp(-y)` in the other direction, times `exp(x)`.

>>> tf.math.cumulative_logsumexp([0., 0.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.6931472], dtype=float32)>)",
    });
Tensor cumulative_logsumexp(const Tensor& x, int64_t axis, bool exclusive, bool reverse) {
  return run(cumulative_logsumexp_op, {x}, {Param(axis), Param(exclusive), Param(reverse)});
}

}  // namespace

Tensor cumsum(const Tensor& x, int64_t axis, bool exclusive, bool reverse) {
  return run(cumsum_op, {x}, {Param(axis), Param(exclusive), Param(reverse)});
}
Tensor cumprod(const Tensor& x, int64_t axis, bool exclusive, bool reverse) {
  return run(cumprod_op, {x}, {Param(axis), Param(exclusive), Param(reverse)});
}

}  // namespace tapeflow
