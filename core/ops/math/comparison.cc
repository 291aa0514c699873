// Comparisons, logic, bits, and the choice between two tensors.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "ops/arrays/elements.h"
#include "ops/family.h"

namespace tapeflow {
namespace {

constexpr const char* kComparisonAdvice =
    "A comparison is a step: use tf.sigmoid for a smooth one, or tf.where to choose between smooth values.";

constexpr DTypes comparable = fixed_size | strings;
const Op& equal_op = binary<comparable>([](auto a, auto b) { return a == b; }, [](auto& v) { return v.equal; },
                                        NoGradient{}, NoGradient{},
                                        Op{.name = "Equal",
                                           .names = {"math.equal", "equal"},
                                           .doc = R"(Whether `x` equals `y`, element by element.

>>> tf.equal([1, 2], [1, 3])
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>)",
                                           .advice = kComparisonAdvice});
const Op& not_equal_op = binary<comparable>([](auto a, auto b) { return a != b; }, [](auto& v) { return v.not_equal; },
                                            NoGradient{}, NoGradient{},
                                            Op{.name = "NotEqual",
                                               .names = {"math.not_equal", "not_equal"},
                                               .doc = R"(Whether `x` differs from `y`.

>>> tf.not_equal([1, 2], [1, 3])
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>)",
                                               .advice = kComparisonAdvice});
const Op& less_op = binary<real_numbers>([](auto a, auto b) { return a < b; }, [](auto& v) { return v.less; },
                                         NoGradient{}, NoGradient{},
                                         Op{.name = "Less",
                                            .names = {"math.less", "less"},
                                            .doc = R"(Whether `x < y`.

>>> tf.less([1, 2], 2)
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>)",
                                            .advice = kComparisonAdvice});
const Op& less_equal_op = binary<real_numbers>([](auto a, auto b) { return a <= b; },
                                               [](auto& v) { return v.less_equal; }, NoGradient{}, NoGradient{},
                                               Op{.name = "LessEqual",
                                                  .names = {"math.less_equal", "less_equal"},
                                                  .doc = R"(Whether `x <= y`.

>>> tf.less_equal([1, 2], 1)
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>)",
                                                  .advice = kComparisonAdvice});
const Op& greater_op = binary<real_numbers>([](auto a, auto b) { return a > b; }, [](auto& v) { return v.greater; },
                                            NoGradient{}, NoGradient{},
                                            Op{.name = "Greater",
                                               .names = {"math.greater", "greater"},
                                               .doc = R"(Whether `x > y`.

>>> tf.greater([1, 2], 1)
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>)",
                                               .advice = kComparisonAdvice});
const Op& greater_equal_op = binary<real_numbers>([](auto a, auto b) { return a >= b; },
                                                  [](auto& v) { return v.greater_equal; }, NoGradient{}, NoGradient{},
                                                  Op{.name = "GreaterEqual",
                                                     .names = {"math.greater_equal", "greater_equal"},
                                                     .doc = R"(Whether `x >= y`.

>>> tf.greater_equal([1, 2], 2)
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>)",
                                                     .advice = kComparisonAdvice});

const Op& logical_and_op =
    binary<booleans>("LogicalAnd", [](auto a, auto b) { return (a & b) != 0; }, NoFast{}, NoGradient{}, NoGradient{},
                     {{"math.logical_and", "logical_and"},
                      R"(Whether both are true.

>>> tf.logical_and([True, True], [True, False])
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>)"});
const Op& logical_or_op =
    binary<booleans>("LogicalOr", [](auto a, auto b) { return (a | b) != 0; }, NoFast{}, NoGradient{}, NoGradient{},
                     {{"math.logical_or", "logical_or"},
                      R"(Whether one of the two is true.

>>> tf.logical_or([True, False], [False, False])
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>)"});
const Op& logical_not_op = unary<booleans>("LogicalNot", [](auto x) { return !x; }, NoFast{}, NoGradient{},
                                           {{"math.logical_not", "logical_not"},
                                            R"(True where `x` is False, and False where it is True.

>>> tf.logical_not([True, False])
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>)"});

const Op& bitwise_and_op = binary<integers>("BitwiseAnd", [](auto a, auto b) { return decltype(a)(a & b); }, NoFast{},
                                            NoGradient{}, NoGradient{}, {{"bitwise.bitwise_and"}, R"(Bits set in both.

>>> tf.bitwise.bitwise_and([6], [3])
<tf.Tensor: shape=(1,), dtype=int32, numpy=array([2], dtype=int32)>)"});
const Op& bitwise_or_op =
    binary<integers>("BitwiseOr", [](auto a, auto b) { return decltype(a)(a | b); }, NoFast{}, NoGradient{},
                     NoGradient{}, {{"bitwise.bitwise_or"}, R"(Bits set in one of the two.

>>> tf.bitwise.bitwise_or([6], [3])
<tf.Tensor: shape=(1,), dtype=int32, numpy=array([7], dtype=int32)>)"});
const Op& bitwise_xor_op =
    binary<integers>("BitwiseXor", [](auto a, auto b) { return decltype(a)(a ^ b); }, NoFast{}, NoGradient{},
                     NoGradient{}, {{"bitwise.bitwise_xor"}, R"(Bits set in exactly one of the two.

>>> tf.bitwise.bitwise_xor([6], [3])
<tf.Tensor: shape=(1,), dtype=int32, numpy=array([5], dtype=int32)>)"});
const Op& invert_op = unary<integers>("Invert", [](auto x) { return decltype(x)(~x); }, NoFast{}, NoGradient{},
                                      {{"bitwise.invert"}, R"(Every bit flipped.

>>> tf.bitwise.invert([0])
<tf.Tensor: shape=(1,), dtype=int32, numpy=array([-1], dtype=int32)>)"});
// Shifts are brought into the range of the type, as TensorFlow does. They keep the type, for the sake of vectors.
template <class T> std::make_unsigned_t<T> clamped_shift(T b) {
  constexpr T most = T(sizeof(T) * 8 - 1);
  const T limited = b > most ? most : b;
  if constexpr (std::is_signed_v<T>) return std::make_unsigned_t<T>(limited < 0 ? T(0) : limited);
  return limited;
}
const Op& left_shift_op =
    binary<integers>("LeftShift",
                     [](auto a, auto b) {
                       using T = decltype(a);
                       using U = std::make_unsigned_t<T>;
                       return T(U(a) << clamped_shift<T>(b));
                     },
                     NoFast{}, NoGradient{}, NoGradient{}, {{"bitwise.left_shift"}, R"(Bits moved up by `y`.

>>> tf.bitwise.left_shift([1], [3])
<tf.Tensor: shape=(1,), dtype=int32, numpy=array([8], dtype=int32)>)"});
const Op& right_shift_op =
    binary<integers>("RightShift",
                     [](auto a, auto b) {
                       using T = decltype(a);
                       return T(a >> clamped_shift<T>(b));
                     },
                     NoFast{}, NoGradient{}, NoGradient{}, {{"bitwise.right_shift"}, R"(Bits moved down by `y`.

>>> tf.bitwise.right_shift([8], [3])
<tf.Tensor: shape=(1,), dtype=int32, numpy=array([1], dtype=int32)>)"});

const Op& population_count_op = unary<integers>(
    "PopulationCount", [](auto x) { return uint8_t(std::popcount(std::make_unsigned_t<decltype(x)>(x))); }, NoFast{},
    NoGradient{}, {{}, ""});

const Op& is_nan_op = unary<floating>("IsNan", [](auto x) { return x != x; }, NoFast{}, NoGradient{},
                                      {{"math.is_nan"}, R"(Whether an element is NaN.

>>> tf.math.is_nan([1., float('nan')])
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>)"});
const Op& is_inf_op = unary<floating>("IsInf", [](auto x) { return std::isinf(x); }, NoFast{}, NoGradient{},
                                      {{"math.is_inf"}, R"(Whether an element is infinite.

>>> tf.math.is_inf([1., float('inf')])
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>)"});
const Op& is_finite_op = unary<floating>("IsFinite", [](auto x) { return std::isfinite(x); }, NoFast{}, NoGradient{},
                                         {{"math.is_finite"},
                                          R"(Whether an element is neither NaN nor infinite.

>>> tf.math.is_finite([1., float('inf')])
<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>)"});

// Numbers are chosen by masks, not by jumps, which a processor cannot foresee.
template <class T> T choose_one(bool condition, const T& x, const T& y) {
  if constexpr (std::is_integral_v<T>) {
    const T mask = T(-T(condition));
    return T((x & mask) | (y & T(~mask)));
  } else {
    return condition ? x : y;
  }
}
// Elements of the size of a float or double go through the vector kernels: their bits are moved, not looked at.
template <class T> using Moved =
    std::conditional_t<std::is_same_v<T, uint32_t>, float, std::conditional_t<std::is_same_v<T, uint64_t>, double, T>>;
template <class T, bool SingleA, bool SingleB>
void choice_loop(const void* condition, const void* then, const void* otherwise, void* y, int64_t n) {
  const bool* chosen = static_cast<const bool*>(condition);
  const auto *a = static_cast<const Moved<T>*>(then), *b = static_cast<const Moved<T>*>(otherwise);
  auto* to = static_cast<Moved<T>*>(y);
  if constexpr (!std::is_same_v<T, Moved<T>>) {
    const ChoiceKernel<Moved<T>>& kernel = vector_kernels<Moved<T>>().choose;
    if constexpr (SingleA && SingleB)
      kernel.ss(chosen, *a, *b, to, n);
    else if constexpr (SingleA)
      kernel.sv(chosen, *a, b, to, n);
    else if constexpr (SingleB)
      kernel.vs(chosen, a, *b, to, n);
    else
      kernel.vv(chosen, a, b, to, n);
  } else {
    const auto choose_all = [chosen, a, b, to, n]() TAPEFLOW_LOOP {
      for (int64_t i = 0; i < n; ++i) to[i] = choose_one(chosen[i], a[SingleA ? 0 : i], b[SingleB ? 0 : i]);
    };
    if constexpr (std::is_integral_v<T>)
      run_vectorized(choose_all);
    else
      choose_all();
  }
}
template <class T> constexpr ChoiceLoops choice_loops{choice_loop<T, false, false>, choice_loop<T, false, true>,
                                                      choice_loop<T, true, false>, choice_loop<T, true, true>};

// The condition and both operands, broadcast: neighbouring dimensions through which all three run evenly count as one.
struct BroadcastChoice {
  Shape shape;
  int64_t stride[3][kMaxRank];  // 0 where an operand repeats

  BroadcastChoice(const Shape& whole, const Tensor* const (&operands)[3]) {
    for (int d = 0; d < whole.rank(); ++d) {
      if (whole[d] == 1) continue;
      int64_t step[3];
      for (int k = 0; k < 3; ++k) {
        const Shape& own = operands[k]->shape();
        const int at = d - (whole.rank() - own.rank());
        step[k] = at >= 0 && own[at] != 1 ? own.elements(at + 1, own.rank()) : 0;
      }
      const int last = shape.rank() - 1;
      const auto evenly = [&](int k) { return stride[k][last] == step[k] * whole[d]; };
      if (last >= 0 && evenly(0) && evenly(1) && evenly(2))
        shape[last] *= whole[d];
      else
        shape.append(whole[d]);
      for (int k = 0; k < 3; ++k) stride[k][shape.rank() - 1] = step[k];
    }
    if (shape.rank() > 0) return;
    shape.append(1);
    for (auto& steps : stride) steps[0] = 0;
  }
};

template <class T> void choose_line(const bool* c, const T* a, const T* b, T* to, const int64_t* step, int64_t n) {
  if (step[0] == 0) {
    const T* chosen = *c ? a : b;
    if (step[*c ? 1 : 2])
      std::copy_n(chosen, n, to);
    else
      std::fill_n(to, n, *chosen);
    return;
  }
  const ChoiceLoops& loops = choice_loops<T>;
  (step[1] ? step[2] ? loops.vv : loops.vs : step[2] ? loops.sv : loops.ss)(c, a, b, to, n);
}

template <class T> void choose(const Tensor& c, const Tensor& x, const Tensor& y, const Tensor& out) {
  if (out.size() == 0) return;
  PauseRecording paused;
  const BroadcastChoice choice(out.shape(), {&c, &x, &y});
  const int last = choice.shape.rank() - 1;
  const int64_t length = choice.shape[last];
  constexpr int64_t kShort = 32;
  if (last > 0 && length < kShort) {  // lines are too short: operands are repeated first
    const auto whole = [&](const Tensor& t) { return t.size() == 1 ? t : broadcast_to(t, out.shape()); };
    if (c.shape() != out.shape()) return choose<T>(broadcast_to(c, out.shape()), x, y, out);
    if ((x.size() != 1 && x.shape() != out.shape()) || (y.size() != 1 && y.shape() != out.shape()))
      return choose<T>(c, whole(x), whole(y), out);
  }
  const bool* chosen = static_cast<const bool*>(c.raw());
  const T *a = static_cast<const T*>(x.raw()), *b = static_cast<const T*>(y.raw());
  T* to = out.mutable_data<T>();
  const int64_t step[3] = {choice.stride[0][last], choice.stride[1][last], choice.stride[2][last]};
  if (last == 0)
    return parallel_for(length, kCheapGrain, [&](int64_t begin, int64_t end) {
      choose_line(chosen + begin * step[0], a + begin * step[1], b + begin * step[2], to + begin, step, end - begin);
    });
  parallel_for(out.size() / length, std::max<int64_t>(1, kCheapGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      int64_t at[3] = {}, rest = line;
      for (int d = last - 1; d >= 0; --d) {
        for (int k = 0; k < 3; ++k) at[k] += rest % choice.shape[d] * choice.stride[k][d];
        rest /= choice.shape[d];
      }
      choose_line(chosen + at[0], a + at[1], b + at[2], to + line * length, step, length);
    }
  });
}

const Op& select_op = define(Op{
    .name = "SelectV2",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("condition", booleans, 1), tensor("t", any_dtype), tensor("e", any_dtype)},
    .infer =
        [](Call& call) {
          const Tensor &c = call.in[0], &x = call.in[1], &y = call.in[2];
          if (x.dtype() != y.dtype() && thread_state().stage)
            fail(ErrorKind::type, "where: Input 'e' of 'SelectV2' Op has type ", name_of(y.dtype()),
                 " that does not match type ", name_of(x.dtype()), " of argument 't'.");
          if (x.dtype() != y.dtype())
            fail(ErrorKind::invalid_argument,
                 "where: cannot compute SelectV2 as input #2(zero-based) was expected to be a ",
                 legacy_name_of(x.dtype()), " tensor but is a ", legacy_name_of(y.dtype()), " tensor");
          Shape both, all;
          if (!broadcast(x.shape(), y.shape(), &both) || !broadcast(c.shape(), both, &all))
            fail(ErrorKind::invalid_argument, "where: condition ", c.shape(), ", then ", x.shape(), ", and else ",
                 y.shape(), " must be broadcastable");
          call.returns(x.dtype(), all);
        },
    .kernel =
        [](Call& call) {
          by_size(call.in[1].dtype(), [&]<class T>(T*) { choose<T>(call.in[0], call.in[1], call.in[2], call.out[0]); });
        },
    .vjp =
        [](RuleContext& c) {
          Tensor zero = Tensor::number(c.dtype(1), 0), dy = c.dy();
          if (c.wants(1)) c.set(1, unbroadcast(select(c.x(0), dy, zero), c.shape(1)));
          if (c.wants(2)) c.set(2, unbroadcast(select(c.x(0), zero, dy), c.shape(2)));
        },
    .keep = keep_input(0),
    .element_loops =
        [](DType operand, DType) {
          ElementLoops loops;
          if ((fixed_size | complexes).has(operand) && size_of(operand) <= sizeof(double))
            by_size(operand, [&]<class T>(T*) { loops.choice = &choice_loops<T>; });
          return loops;
        },
    .elementwise = true,
    .batch = batch_broadcasting,
    .non_finite = {nullptr, "Both branches of tf.where have gradients, and 0 * inf is NaN: choose the argument first."},
});

}  // namespace

Tensor equal(const Tensor& a, const Tensor& b) { return run(equal_op, {a, b}); }
Tensor not_equal(const Tensor& a, const Tensor& b) { return run(not_equal_op, {a, b}); }
Tensor less(const Tensor& a, const Tensor& b) { return run(less_op, {a, b}); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return run(less_equal_op, {a, b}); }
Tensor greater(const Tensor& a, const Tensor& b) { return run(greater_op, {a, b}); }
Tensor greater_equal(const Tensor& a, const Tensor& b) { return run(greater_equal_op, {a, b}); }
Tensor logical_and(const Tensor& a, const Tensor& b) { return run(logical_and_op, {a, b}); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return run(logical_or_op, {a, b}); }
Tensor logical_not(const Tensor& x) { return run(logical_not_op, {x}); }
Tensor bitwise_and(const Tensor& a, const Tensor& b) { return run(bitwise_and_op, {a, b}); }
Tensor bitwise_or(const Tensor& a, const Tensor& b) { return run(bitwise_or_op, {a, b}); }
Tensor bitwise_xor(const Tensor& a, const Tensor& b) { return run(bitwise_xor_op, {a, b}); }
Tensor invert(const Tensor& x) { return run(invert_op, {x}); }
Tensor select(const Tensor& c, const Tensor& x, const Tensor& y) { return run(select_op, {c, x, y}); }

}  // namespace tapeflow
