// Families of operations: what all elementwise entries share (loops, dtypes, broadcasting, un-broadcasting, both modes
// of differentiation). An entry gives the element function and one rule per operand.
//
// A rule is a function of any of A a / X x (first input), B b (second input), Y y (output), and Dy dy. Used backwards,
// dy is the cotangent and the kept tensors come conjugated; used forwards, dy is the operand's tangent. What a rule
// names is what the tape keeps.
#pragma once
#include <tuple>
#include <type_traits>

#include "kernels/elementwise.h"
#include "kernels/simd/complex.h"
#include "kernels/simd/narrow_loops.h"
#include "kernels/simd/vector.h"
#include "op/batching.h"
#include "op/op.h"
#include "ops/ops.h"

namespace tapeflow {

struct A : Tensor {};
struct B : Tensor {};
struct Y : Tensor {};
struct Dy : Tensor {};
using X = A;

struct NoGradient {};  // in place of a rule: the gradient stops here
struct NoFast {};      // in place of a vector kernel: the element function serves all dtypes
struct Cheap {};       // the same for a function that is quick and cannot fail: it may join fusions

// Around a function that names a vector kernel which complex64 has, too. Without it complex dtypes take the element
// function.
template <class Fast> struct ComplexToo : Fast {};
template <class Fast> ComplexToo(Fast) -> ComplexToo<Fast>;
template <class Fast> constexpr bool fast_for_complex = false;
template <class Fast> constexpr bool fast_for_complex<ComplexToo<Fast>> = true;
template <class Fast> constexpr bool fast_for_complex<const ComplexToo<Fast>> = true;

namespace family {

template <class F> struct Signature : Signature<decltype(&F::operator())> {};
template <class F, class... P> struct Signature<Tensor (F::*)(P...) const> {
  using Arguments = std::tuple<P...>;
  template <class Q> static constexpr bool names = (std::is_same_v<P, Q> || ...);
  static constexpr Keep keep =
      (names<A> ? keep_input(0) : 0) | (names<B> ? keep_input(1) : 0) | (names<Y> ? keep_output(0) : 0);
  template <class Get> static Tensor call(Get get) { return F{}(get(static_cast<P*>(nullptr))...); }
};
template <> struct Signature<NoGradient> {
  static constexpr Keep keep = 0;
};

template <class Rule> Tensor apply(RuleContext& c, const Tensor& dy, bool backwards) {
  return Signature<Rule>::call([&]<class P>(P*) -> P {
    const Tensor& t = std::is_same_v<P, A> ? c.x(0) : std::is_same_v<P, B> ? c.x(1) : std::is_same_v<P, Y> ? c.y() : dy;
    if (!std::is_same_v<P, Dy> && backwards && complexes.has(t.dtype())) return P{conj(t)};
    return P{t};
  });
}

// The element type of the result: what the function returns, or T itself where that is T computed in float.
template <class T, class C> using Stored = std::conditional_t<std::is_same_v<C, Compute<T>>, T, C>;
template <class F, class T> using UnaryResult = Stored<T, decltype(F{}(Compute<T>{}))>;
template <class F, class T> using BinaryResult = Stored<T, decltype(F{}(Compute<T>{}, Compute<T>{}))>;

template <class R, class X> R result_of(void (*)(const X*, R*, int64_t));
template <class Fast, class T> UnaryLoop fast_unary_loop() {
  if constexpr (is_small_float<T>)
    return [](const void* x, void* y, int64_t n) {
      static const UnaryKernel<float> kernel = Fast{}(vector_kernels<float>());
      loop_narrow(kernel, narrow_type<T>(), x, y, n);
    };
  else
    return [](const void* x, void* y, int64_t n) {
      static const auto kernel = Fast{}(vector_kernels<T>());
      kernel(static_cast<const T*>(x), static_cast<decltype(result_of(kernel))*>(y), n);
    };
}
template <class Fast, class T> struct FastBinary {
  using Kernel = std::remove_cvref_t<decltype(Fast{}(vector_kernels<T>()))>;
  using R = typename Kernel::Result;
  static const Kernel& kernel() {
    static const Kernel k = Fast{}(vector_kernels<T>());
    return k;
  }
  static constexpr BinaryLoops loops{
      [](const void* a, const void* b, void* y, int64_t n) {
        kernel().vv(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<R*>(y), n);
      },
      [](const void* a, const void* b, void* y, int64_t n) {
        kernel().vs(static_cast<const T*>(a), *static_cast<const T*>(b), static_cast<R*>(y), n);
      },
      [](const void* a, const void* b, void* y, int64_t n) {
        kernel().sv(*static_cast<const T*>(a), static_cast<const T*>(b), static_cast<R*>(y), n);
      }};
};
template <class Fast, class T>
  requires is_small_float<T>
struct FastBinary<Fast, T> {
  template <Operands operands> static void loop(const void* a, const void* b, void* y, int64_t n) {
    loop_narrow(FastBinary<Fast, float>::kernel(), narrow_type<T>(), operands, a, b, y, n);
  }
  static constexpr BinaryLoops loops{loop<Operands::vv>, loop<Operands::vs>, loop<Operands::sv>};
};
template <class Fast, class T> constexpr bool has_fast =
    !std::is_same_v<Fast, NoFast> && !std::is_same_v<Fast, Cheap> &&
    (std::is_same_v<T, float> || std::is_same_v<T, double> || is_small_float<T> ||
     (fast_for_complex<Fast> && std::is_same_v<T, std::complex<float>>));

// What may join a fusion: what has a vector kernel, what is cheap, whatever gives booleans, and arithmetic (a Fast of
// an operation with PlanProperties::arithmetic). Others take long, and may fail. Elements of a fusion have at most 8
// bytes.
enum class Joining { vectors, arithmetic };
template <class Fast, class T, class R, Joining how> constexpr bool fusible =
    sizeof(R) <= sizeof(double) &&
    (has_fast<Fast, T> || std::is_same_v<R, bool> || std::is_same_v<Fast, Cheap> || how == Joining::arithmetic);
constexpr DTypes joining = floating | booleans | DType::int32 | DType::int64 | DType::complex64;
template <DTypes Set, class F, class Fast, Joining how = Joining::vectors>
ElementLoops unary_loops(DType operand, DType) {
  ElementLoops loops;
  visit<Set.bits & joining.bits>(operand, [&](auto* p) {
    using T = Pointee<decltype(p)>;
    using R = UnaryResult<F, T>;
    if constexpr (has_fast<Fast, T>)
      loops.unary = fast_unary_loop<Fast, T>();
    else if constexpr (fusible<Fast, T, R, how>)
      loops.unary = unary_loop<T, R, F>;
  });
  return loops;
}
template <DTypes Set, class F, class Fast, Joining how = Joining::vectors>
ElementLoops binary_loops(DType operand, DType) {
  ElementLoops loops;
  visit<Set.bits & joining.bits>(operand, [&](auto* p) {
    using T = Pointee<decltype(p)>;
    using R = BinaryResult<F, T>;
    if constexpr (has_fast<Fast, T>)
      loops.binary = &FastBinary<Fast, T>::loops;
    else if constexpr (fusible<Fast, T, R, how>)
      loops.binary = &ElementBinary<T, R, F>::loops;
  });
  return loops;
}

[[noreturn]] void fail_unsupported(const Call&);  // the dtype of the first input is not one the operation takes

template <DTypes Set, class F> void infer_unary(Call& call) {
  const Tensor& x = call.in[0];
  DType result = x.dtype();
  if (!visit<Set.bits>(x.dtype(), [&](auto* p) { result = dtype_of<UnaryResult<F, Pointee<decltype(p)>>>; }))
    fail_unsupported(call);
  call.returns(result, x.shape());
}

template <DTypes Set, class F, class Fast> void unary_kernel(Call& call) {
  const Tensor &x = call.in[0], &y = call.out[0];
  UnaryLoop loop = nullptr;
  size_t x_size = 0, y_size = 0;
  visit<Set.bits>(x.dtype(), [&](auto* p) {
    using T = Pointee<decltype(p)>;
    using R = UnaryResult<F, T>;
    if constexpr (has_fast<Fast, T>)
      loop = fast_unary_loop<Fast, T>();
    else
      loop = unary_loop<T, R, F>;
    x_size = sizeof(T), y_size = sizeof(R);
  });
  loop_unary(loop, x.raw(), x_size, y.mutable_raw(), y_size, x.size(), kCostlyGrain);
}

template <class Rule> void unary_vjp(RuleContext& c) { c.set(0, apply<Rule>(c, c.dy(), true)); }
template <class Rule> void unary_jvp(RuleContext& c) { c.set(0, apply<Rule>(c, c.x_dot(0), false)); }

// Throws TensorFlow's error when the operands do not broadcast.
[[noreturn]] void fail_broadcast(const Call&);
[[noreturn]] void fail_dtypes(const Call&);

template <DTypes Set, class F> void infer_binary(Call& call) {
  const Tensor &a = call.in[0], &b = call.in[1];
  if (a.dtype() != b.dtype()) fail_dtypes(call);
  DType result = a.dtype();
  if (!visit<Set.bits>(a.dtype(), [&](auto* p) { result = dtype_of<BinaryResult<F, Pointee<decltype(p)>>>; }))
    fail_unsupported(call);
  if (a.shape() == b.shape()) return call.returns(result, a.shape());
  call.specs.resize(1);
  call.specs[0].dtype = result;
  if (!broadcast(a.shape(), b.shape(), &call.specs[0].shape)) fail_broadcast(call);
}

// The switch over dtypes chooses the loops; what runs them is compiled once for all dtypes.
template <DTypes Set, class F, class Fast, int64_t Grain> void binary_kernel(Call& call) {
  const Tensor &a = call.in[0], &b = call.in[1], &y = call.out[0];
  const BinaryLoops* loops = nullptr;
  ElementSizes sizes{};
  visit<Set.bits>(a.dtype(), [&](auto* p) {
    using T = Pointee<decltype(p)>;
    using R = BinaryResult<F, T>;
    if constexpr (has_fast<Fast, T>)
      loops = &FastBinary<Fast, T>::loops;
    else
      loops = &ElementBinary<T, R, F>::loops;
    sizes = {sizeof(T), sizeof(T), sizeof(R)};
  });
  if (a.shape() == b.shape() && a.size() <= Grain) return loops->vv(a.raw(), b.raw(), y.mutable_raw(), a.size());
  loop_binary(*loops, a.raw(), a.shape(), b.raw(), b.shape(), y.mutable_raw(), y.shape(), sizes, Grain);
}

inline Tensor to_input_shape(const RuleContext& c, int i, Tensor dx) {
  return c.like_output(i) ? dx : unbroadcast(dx, c.shape(i));
}
// A rule of dy alone acts on the sum over what was repeated: it is smaller.
template <class Rule> Tensor binary_dx(RuleContext& c, int i) {
  if constexpr (!Signature<Rule>::keep) return apply<Rule>(c, to_input_shape(c, i, c.dy()), true);
  return to_input_shape(c, i, apply<Rule>(c, c.dy(), true));
}
template <class RuleA, class RuleB> void binary_vjp(RuleContext& c) {
  if constexpr (!std::is_same_v<RuleA, NoGradient>)
    if (c.wants(0)) c.set(0, binary_dx<RuleA>(c, 0));
  if constexpr (!std::is_same_v<RuleB, NoGradient>)
    if (c.wants(1)) c.set(1, binary_dx<RuleB>(c, 1));
}
// A tangent is broadcast to the full shape before the rule sees it, so that both modes share one rule.
Tensor broadcast_tangent(const RuleContext&, const Tensor& x_dot);
template <class RuleA, class RuleB> void binary_jvp(RuleContext& c) {
  Tensor sum;
  if constexpr (!std::is_same_v<RuleA, NoGradient>)
    if (c.x_dot(0)) sum = apply<RuleA>(c, broadcast_tangent(c, c.x_dot(0)), false);
  if constexpr (!std::is_same_v<RuleB, NoGradient>)
    if (c.x_dot(1)) {
      Tensor other = apply<RuleB>(c, broadcast_tangent(c, c.x_dot(1)), false);
      sum = sum ? add(sum, other) : other;
    }
  c.set(0, sum);
}

}  // namespace family

// What most elementwise entries say besides functions and rules. One that has other properties gives an Op with them.
struct Named {
  std::vector<const char*> names;
  const char* doc;
  std::vector<const char*> arguments = {};  // names of the tensor arguments, if not x (and y)
  PlanProperties planning = {};
  NonFiniteAdvice non_finite = {};
};

namespace family {
inline Op named_entry(const char* name, Named& named) {
  return Op{.name = name,
            .planning = named.planning,
            .names = std::move(named.names),
            .doc = named.doc,
            .non_finite = named.non_finite};
}
}  // namespace family

// y = f(x), element by element.
template <DTypes Set, class F, class Fast, class Rule> const Op& unary(F, Fast, Rule, Op op) {
  if (op.arguments.empty()) op.arguments = {tensor("x", Set)};
  op.infer = op.infer_staged = family::infer_unary<Set, F>;
  op.kernel = family::unary_kernel<Set, F, Fast>;
  if constexpr (family::has_fast<Fast, float> && Set.has(DType::float32))
    op.float_unary = family::fast_unary_loop<Fast, float>();
  op.element_loops = op.planning.arithmetic != Arithmetic::none
                         ? family::unary_loops<Set, F, Fast, family::Joining::arithmetic>
                         : family::unary_loops<Set, F, Fast>;
  if constexpr (std::is_same_v<Rule, NoGradient>) {
    op.gradient = Gradient::none;
  } else {
    op.vjp = family::unary_vjp<Rule>;
    op.jvp = family::unary_jvp<Rule>;
    op.keep = family::Signature<Rule>::keep;
  }
  op.rule_needs_no_shapes = [](const RuleContext&) { return true; };
  op.batch = batch_leading;
  op.family = "unary";
  op.elementwise = true;
  return define(std::move(op));
}
template <DTypes Set, class F, class Fast, class Rule>
const Op& unary(const char* name, F f, Fast fast, Rule rule, Named named) {
  Op op = family::named_entry(name, named);
  if (!named.arguments.empty()) op.arguments = {tensor(named.arguments[0], Set)};
  return unary<Set>(f, fast, rule, std::move(op));
}

// y = f(a, b), element by element, with broadcasting.
template <DTypes Set, int64_t Grain = kCheapGrain, class F, class Fast, class RuleA, class RuleB>
const Op& binary(F, Fast, RuleA, RuleB, Op op) {
  if (op.arguments.empty()) op.arguments = {tensor("x", Set), tensor("y", Set)};
  op.infer = op.infer_staged = family::infer_binary<Set, F>;
  op.kernel = family::binary_kernel<Set, F, Fast, Grain>;
  if constexpr (family::has_fast<Fast, float> && Set.has(DType::float32)) {
    if constexpr (std::is_same_v<typename family::FastBinary<Fast, float>::R, float>)
      op.float_binary = &family::FastBinary<Fast, float>::loops;
  }
  op.element_loops = op.planning.arithmetic != Arithmetic::none
                         ? family::binary_loops<Set, F, Fast, family::Joining::arithmetic>
                         : family::binary_loops<Set, F, Fast>;
  if constexpr (std::is_same_v<RuleA, NoGradient> && std::is_same_v<RuleB, NoGradient>) {
    op.gradient = Gradient::none;
  } else {
    op.vjp = family::binary_vjp<RuleA, RuleB>;
    op.jvp = family::binary_jvp<RuleA, RuleB>;
    op.keep_for[0] = family::Signature<RuleA>::keep;
    op.keep_for[1] = family::Signature<RuleB>::keep;
    op.keep = op.keep_for[0] | op.keep_for[1];
    op.keep_by_input = true;
  }
  op.batch = batch_broadcasting;
  op.family = "binary";
  op.elementwise = true;
  return define(std::move(op));
}
template <DTypes Set, int64_t Grain = kCheapGrain, class F, class Fast, class RuleA, class RuleB>
const Op& binary(const char* name, F f, Fast fast, RuleA a, RuleB b, Named named) {
  Op op = family::named_entry(name, named);
  if (!named.arguments.empty()) op.arguments = {tensor(named.arguments[0], Set), tensor(named.arguments[1], Set)};
  return binary<Set, Grain>(f, fast, a, b, std::move(op));
}

}  // namespace tapeflow
