// Activations, their fused gradients, softmax and the cross entropies.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/parallel.h"
#include "kernels/simd/complex_functions.h"
#include "kernels/simd/short_rows.h"
#include "kernels/simd/vector.h"
#include "op/row_structure.h"
#include "ops/family.h"
#include "ops/one_dtype.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

// Fused gradients exist because the composed ones cost an extra pass over memory in every training step. Their own
// rules are compositions again.
Tensor tanh_grad(const Tensor& y, const Tensor& dy);
Tensor sigmoid_grad(const Tensor& y, const Tensor& dy);
Tensor relu_grad(const Tensor& dy, const Tensor& x);
Tensor relu6_grad(const Tensor& dy, const Tensor& x);
Tensor elu_grad(const Tensor& dy, const Tensor& y);
Tensor selu_grad(const Tensor& dy, const Tensor& y);
Tensor softplus_grad(const Tensor& dy, const Tensor& x);
Tensor softsign_grad(const Tensor& dy, const Tensor& x);

template <class T> T sigmoid_of(T x) {
  if constexpr (is_complex<T>)
    return T(1) / (T(1) + std::exp(-x));
  else {
    if (x >= 0) return T(1) / (T(1) + std::exp(-x));
    T e = std::exp(x);
    return e / (T(1) + e);
  }
}

const Op& tanh_op = unary<floating | complexes>(
    "Tanh", [](auto x) { return std::tanh(x); },
    ComplexToo{RealOrComplex<[](auto& v) { return v.tanh; }, &ComplexFunctions::tanh>{}},
    [](Y y, Dy dy) { return tanh_grad(y, dy); }, {{"math.tanh", "tanh", "nn.tanh"}, R"(Hyperbolic tangent of `x`.

Gradient: `dx = dy * (1 - y**2)`.

>>> tf.tanh([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.7615941], dtype=float32)>)"});
const Op& tanh_grad_op = binary<floating | complexes>(
    "TanhGrad", [](auto y, auto dy) { return dy * (decltype(y)(1) - y * y); },
    [](auto& v) -> auto& { return v.tanh_grad; },
    [](A y, B dy, Dy d) { return multiply(d, scaled(multiply(y, dy), -2)); }, [](A y, Dy d) { return tanh_grad(y, d); },
    {{}, "", {"y", "dy"}, {.arithmetic = Arithmetic::tanh_grad}});
Tensor tanh_grad(const Tensor& y, const Tensor& dy) { return run(tanh_grad_op, {y, dy}); }

const Op& sigmoid_op = unary<floating | complexes>(
    "Sigmoid", [](auto x) { return sigmoid_of(x); }, [](auto& v) { return v.sigmoid; },
    [](Y y, Dy dy) { return sigmoid_grad(y, dy); }, {{"math.sigmoid", "sigmoid", "nn.sigmoid"}, R"(`1 / (1 + exp(-x))`.

Gradient: `dx = dy * y * (1 - y)`.

>>> tf.sigmoid([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5      , 0.7310586], dtype=float32)>)"});
const Op& sigmoid_grad_op = binary<floating | complexes>(
    "SigmoidGrad", [](auto y, auto dy) { return dy * y * (decltype(y)(1) - y); },
    [](auto& v) -> auto& { return v.sigmoid_grad; },
    [](A y, B dy, Dy d) { return multiply(d, multiply(dy, shifted(scaled(y, -2), 1))); },
    [](A y, Dy d) { return sigmoid_grad(y, d); }, {{}, "", {"y", "dy"}, {.arithmetic = Arithmetic::sigmoid_grad}});
Tensor sigmoid_grad(const Tensor& y, const Tensor& dy) { return run(sigmoid_grad_op, {y, dy}); }

// The second derivative of a piecewise linear activation is zero, not missing.
constexpr auto zero_rule = [](Dy d) { return zeros_like(d); };

const Op& relu_op = unary<real_numbers>(
    "Relu", [](auto x) { return x < 0 ? decltype(x)(0) : x; }, [](auto& v) { return v.relu; },
    [](Y y, Dy dy) { return relu_grad(dy, y); },
    {{"nn.relu"},
     R"(`max(features, 0)`.

Gradient: `dy` where `features > 0`, 0 elsewhere.

>>> tf.nn.relu([-1., 2.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 2.], dtype=float32)>)",
     {"features"},
     {.arithmetic = Arithmetic::relu}});
const Op& relu_grad_op = binary<real_numbers>(
    "ReluGrad", [](auto dy, auto x) { return x > 0 ? dy : decltype(dy)(0); },
    [](auto& v) -> auto& { return v.relu_grad; }, [](B x, Dy d) { return relu_grad(d, x); }, zero_rule,
    {{}, "", {"gradients", "features"}, {.arithmetic = Arithmetic::relu_grad}});
Tensor relu_grad(const Tensor& dy, const Tensor& x) { return run(relu_grad_op, {dy, x}); }

const Op& relu6_op = unary<real_numbers>(
    "Relu6",
    [](auto x) {
      using T = decltype(x);
      return x != x ? x : x < 0 ? T(0) : x > T(6) ? T(6) : x;
    },
    [](auto& v) { return v.relu6; }, [](Y y, Dy dy) { return relu6_grad(dy, y); },
    {{"nn.relu6"},
     R"(`min(max(features, 0), 6)`.

Gradient: `dy` where `0 < features < 6`, 0 elsewhere.

>>> tf.nn.relu6([-1., 3., 8.])
<tf.Tensor: shape=(3,), dtype=float32, numpy=array([0., 3., 6.], dtype=float32)>)",
     {"features"}});
const Op& relu6_grad_op = binary<real_numbers>(
    "Relu6Grad",
    [](auto dy, auto x) {
      using T = decltype(dy);
      return x > 0 && x < T(6) ? dy : T(0);
    },
    [](auto& v) -> auto& { return v.relu6_grad; }, [](B x, Dy d) { return relu6_grad(d, x); }, zero_rule,
    {{}, "", {"gradients", "features"}});
Tensor relu6_grad(const Tensor& dy, const Tensor& x) { return run(relu6_grad_op, {dy, x}); }

constexpr struct : Keys {
  Key<double> alpha = next("alpha");
} leaky_params;
// The gradient is linear in dy; by the input its own derivative is zero, as for the other pieces of
// lines.
std::vector<Argument> leaky_arguments(std::vector<Argument> tensors) {
  tensors.push_back(real(leaky_params.alpha, 0.2));
  return tensors;
}
Tensor leaky_relu_grad(const Tensor& dy, const Tensor& x, const Params& p);

// y = x > 0 ? a : alpha a; `a` and `y` may be the same array, and so may `a` and `x`.
template <class T> void leaky_line(const T* x, const T* a, Compute<T> alpha, T* y, int64_t n) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    const auto& kernels = vector_kernels<T>();
    constexpr int64_t block = 1024;
    bool positive[block];
    T scaled[block];
    const bool largest = x == a && alpha > 0 && alpha <= 1;  // y = max(x, alpha x)
    for (int64_t at = 0; at < n; at += block) {
      const int64_t count = std::min(block, n - at);
      kernels.multiply.vs(a + at, alpha, scaled, count);
      if (largest) {
        kernels.maximum.vv(a + at, scaled, y + at, count);
        continue;
      }
      kernels.greater.vs(x + at, T(0), positive, count);
      kernels.choose.vv(positive, a + at, scaled, y + at, count);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      auto value = load(a + i), scaled = alpha * value;
      store(y + i, load(x + i) > 0 ? value : scaled);
    }
  }
}
// x is the last input, and `a` the first: they are one for the activation itself.
void leaky_kernel(Call& call) {
  visit<floating.bits>(call.in[0].dtype(), [&](auto* p) {
    using T = Pointee<decltype(p)>;
    const T *a = call.in[0].data<T>(), *x = call.in[call.in.size() - 1].data<T>();
    T* y = call.out[0].mutable_data<T>();
    const auto alpha = Compute<T>(call.params[leaky_params.alpha]);
    parallel_for(call.in[0].size(), kCheapGrain,
                 [&](int64_t begin, int64_t end) { leaky_line(x + begin, a + begin, alpha, y + begin, end - begin); });
  });
}
// In a graph it becomes operations that a plan fuses; their gradients are the same.
bool expand_leaky(Call& call) {
  const Tensor &a = call.in[0], &x = call.in[call.in.size() - 1];
  if (!thread_state().recorders.empty() || !wide_floating.has(a.dtype())) return false;
  const Tensor alpha = Tensor::number(a.dtype(), call.params[leaky_params.alpha]);
  call.out.push_back(select(greater(x, Tensor::number(x.dtype(), 0)), a, multiply(a, alpha)));
  return true;
}

const Op& leaky_relu_op = define(Op{
    .name = "LeakyRelu",
    .arguments = leaky_arguments({tensor("features", floating)}),
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.in[0].shape()); },
    .kernel = leaky_kernel,
    .vjp = [](RuleContext& c) { c.set(0, leaky_relu_grad(c.dy(), c.x(0), c.params)); },
    .jvp = [](RuleContext& c) { c.set(0, leaky_relu_grad(c.x_dot(0), c.x(0), c.params)); },
    .keep = keep_input(0),
    .elementwise = true,
    .expand = expand_leaky,
    .batch = batch_leading,
});
const Op& leaky_relu_grad_op = define(Op{
    .name = "LeakyReluGrad",
    .arguments = leaky_arguments({tensor("gradients", floating), tensor("features", floating)}),
    .infer =
        [](Call& call) {
          family::check_dtype(call, 1);
          if (!(call.in[0].shape() == call.in[1].shape())) family::fail_broadcast(call);
          call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .kernel = leaky_kernel,
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0)) c.set(0, leaky_relu_grad(c.dy(), c.x(1), c.params));
          if (c.wants(1)) c.set(1, zeros(c.dtype(1), c.shape(1)));
        },
    .keep = keep_input(1),
    .elementwise = true,
    .expand = expand_leaky,
    .batch = batch_leading,
});
Tensor leaky_relu_grad(const Tensor& dy, const Tensor& x, const Params& p) {
  return run(leaky_relu_grad_op, {dy, x}, p);
}

const Op& elu_op = unary<floating>(
    "Elu", [](auto x) { return x < 0 ? std::expm1(x) : x; }, [](auto& v) { return v.elu; },
    [](Y y, Dy dy) { return elu_grad(dy, y); },
    {{"nn.elu"},
     R"(`exp(features) - 1` below 0, `features` above.

Gradient: `dy` where `features > 0`, `dy * exp(features)` elsewhere.

>>> tf.nn.elu([-1., 2.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.63212055,  2.        ], dtype=float32)>)",
     {"features"}});
const Op& elu_grad_op = binary<floating>(
    "EluGrad", [](auto dy, auto y) { return y < 0 ? dy * (y + 1) : dy; }, [](auto& v) -> auto& { return v.elu_grad; },
    [](B y, Dy d) { return elu_grad(d, y); },
    [](A dy, B y, Dy d) { return select(less(y, Tensor::number(y.dtype(), 0)), multiply(d, dy), zeros_like(d)); },
    {{}, "", {"gradients", "outputs"}});
Tensor elu_grad(const Tensor& dy, const Tensor& y) { return run(elu_grad_op, {dy, y}); }

constexpr double kSeluScale = 1.0507009873554804934193349852946, kSeluAlpha = 1.6732632423543772848170429916717;
const Op& selu_op = unary<floating>(
    "Selu",
    [](auto x) {
      using T = decltype(x);
      return x < 0 ? T(kSeluScale * kSeluAlpha) * std::expm1(x) : T(kSeluScale) * x;
    },
    [](auto& v) { return v.selu; }, [](Y y, Dy dy) { return selu_grad(dy, y); },
    {{"nn.selu"},
     R"(The self-normalising activation.

Gradient: `dy * scale` where `features > 0`, `dy * scale * alpha * exp(features)` elsewhere.

>>> tf.nn.selu([-1., 2.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([-1.1113307,  2.101402 ], dtype=float32)>)",
     {"features"}});
const Op& selu_grad_op = binary<floating>(
    "SeluGrad",
    [](auto dy, auto y) {
      using T = decltype(dy);
      return y < 0 ? dy * (y + T(kSeluScale * kSeluAlpha)) : dy * T(kSeluScale);
    },
    [](auto& v) -> auto& { return v.selu_grad; }, [](B y, Dy d) { return selu_grad(d, y); },
    [](A dy, B y, Dy d) { return select(less(y, Tensor::number(y.dtype(), 0)), multiply(d, dy), zeros_like(d)); },
    {{}, "", {"gradients", "outputs"}});
Tensor selu_grad(const Tensor& dy, const Tensor& y) { return run(selu_grad_op, {dy, y}); }

const Op& softplus_op = unary<floating>(
    "Softplus",
    [](auto x) {
      using T = decltype(x);
      return (x > 0 ? x : T(0)) + std::log1p(std::exp(-std::abs(x))) + (x != x ? x : T(0));
    },
    [](auto& v) { return v.softplus; }, [](X x, Dy dy) { return softplus_grad(dy, x); },
    {{"math.softplus", "nn.softplus"},
     R"(`log(exp(features) + 1)`.

Gradient: `dy * sigmoid(features)`.

>>> tf.nn.softplus([0., 1.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.6931472, 1.3132617], dtype=float32)>)",
     {"features"}});
const Op& softplus_grad_op = binary<floating>(
    "SoftplusGrad", [](auto dy, auto x) { return dy * sigmoid_of(x); },
    [](auto& v) -> auto& { return v.softplus_grad; }, [](B x, Dy d) { return softplus_grad(d, x); },
    [](A dy, B x, Dy d) { return multiply(d, sigmoid_grad(sigmoid(x), dy)); }, {{}, "", {"gradients", "features"}});
Tensor softplus_grad(const Tensor& dy, const Tensor& x) { return run(softplus_grad_op, {dy, x}); }

const Op& softsign_op = unary<floating>(
    "Softsign", [](auto x) { return x / (1 + std::abs(x)); }, [](auto& v) { return v.softsign; },
    [](X x, Dy dy) { return softsign_grad(dy, x); },
    {{"nn.softsign"},
     R"(`features / (1 + |features|)`.

Gradient: `dy / (1 + |features|)**2`.

>>> tf.nn.softsign([-1., 3.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.5 ,  0.75], dtype=float32)>)",
     {"features"}});
const Op& softsign_grad_op = binary<floating>(
    "SoftsignGrad",
    [](auto dy, auto x) {
      auto s = 1 + std::abs(x);
      return dy / (s * s);
    },
    [](auto& v) -> auto& { return v.softsign_grad; }, [](B x, Dy d) { return softsign_grad(d, x); },
    [](A dy, B x, Dy d) {
      Tensor one = Tensor::number(x.dtype(), 1), s = sign(x), size = add(one, multiply(x, s));
      return multiply(d, divide(multiply(scaled(dy, -2), s), multiply(size, square(size))));
    },
    {{}, "", {"gradients", "features"}});
Tensor softsign_grad(const Tensor& dy, const Tensor& x) { return run(softsign_grad_op, {dy, x}); }

// The cross entropy of a label and sigmoid(logits), element by element. Its own entry for speed, and because the
// composed derivative is wrong at 0.
const Op& sigmoid_cross_entropy_op = binary<floating, kCostlyGrain>(
    "SigmoidCrossEntropy",
    [](auto x, auto z) { return ((x < 0 ? decltype(x)(0) : x) - x * z) + std::log1p(std::exp(-std::abs(x))); },
    [](auto& v) -> auto& { return v.sigmoid_cross_entropy; },
    [](A x, B z, Dy dy) { return multiply(dy, subtract(sigmoid(x), z)); },
    [](A x, Dy dy) { return multiply(dy, negative(x)); }, {{}, "", {"logits", "labels"}});

// ---- gelu

constexpr double kTanhScale = 0.7978845608028654, kTanhCubic = 0.044715;  // sqrt(2/pi)
constexpr double kInvSqrt2Pi = 0.3989422804014327;

template <class T> T gelu_tanh_of(T x) {
  return T(0.5) * x * (1 + std::tanh(T(kTanhScale) * (x + T(kTanhCubic) * x * x * x)));
}
template <class T> T gelu_erf_of(T x) { return T(0.5) * x * std::erfc(-x * T(1 / std::numbers::sqrt2)); }
template <class T> T gelu_tanh_derivative(T x) {
  T t = std::tanh(T(kTanhScale) * (x + T(kTanhCubic) * x * x * x));
  return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * T(kTanhScale) * (1 + T(3 * kTanhCubic) * x * x);
}
template <class T> T gelu_erf_derivative(T x) {
  return T(0.5) * std::erfc(-x * T(1 / std::numbers::sqrt2)) + x * T(kInvSqrt2Pi) * std::exp(T(-0.5) * x * x);
}

Tensor gelu_erf_grad(const Tensor& dy, const Tensor& x);
Tensor gelu_tanh_grad(const Tensor& dy, const Tensor& x);

// gelu'' = phi(x) (2 - x²)
Tensor gelu_erf_second(const Tensor& x) {
  Tensor xx = square(x);
  return multiply(scaled(exp(scaled(xx, -0.5)), kInvSqrt2Pi), shifted(negative(xx), 2));
}
// With u = k (x + c x³), t = tanh u, s = 1 - t²: gelu'' = s u' + x s (u''/2 - t u'²)
Tensor gelu_tanh_second(const Tensor& x) {
  Tensor xx = square(x), u = multiply(scaled(x, kTanhScale), shifted(scaled(xx, kTanhCubic), 1)), t = tanh(u);
  Tensor s = shifted(negative(square(t)), 1), u1 = scaled(shifted(scaled(xx, 3 * kTanhCubic), 1), kTanhScale);
  Tensor bend = subtract(scaled(x, 3 * kTanhScale * kTanhCubic), multiply(t, square(u1)));
  return multiply(s, add(u1, multiply(x, bend)));
}

const Op& gelu_erf_op = unary<floating>(
    "GeluErf", [](auto x) { return gelu_erf_of(x); }, [](auto& v) { return v.gelu_erf; },
    [](X x, Dy dy) { return gelu_erf_grad(dy, x); }, {{}, "", {"features"}});
const Op& gelu_erf_grad_op = binary<floating, kCostlyGrain>(
    "GeluErfGrad", [](auto dy, auto x) { return dy * gelu_erf_derivative(x); },
    [](auto& v) -> auto& { return v.gelu_erf_grad; }, [](B x, Dy d) { return gelu_erf_grad(d, x); },
    [](A dy, B x, Dy d) { return multiply(d, multiply(dy, gelu_erf_second(x))); }, {{}, "", {"gradients", "features"}});
Tensor gelu_erf_grad(const Tensor& dy, const Tensor& x) { return run(gelu_erf_grad_op, {dy, x}); }

const Op& gelu_tanh_op = unary<floating>(
    "GeluTanh", [](auto x) { return gelu_tanh_of(x); }, [](auto& v) { return v.gelu_tanh; },
    [](X x, Dy dy) { return gelu_tanh_grad(dy, x); }, {{}, "", {"features"}});
const Op& gelu_tanh_grad_op = binary<floating, kCostlyGrain>(
    "GeluTanhGrad", [](auto dy, auto x) { return dy * gelu_tanh_derivative(x); },
    [](auto& v) -> auto& { return v.gelu_tanh_grad; }, [](B x, Dy d) { return gelu_tanh_grad(d, x); },
    [](A dy, B x, Dy d) { return multiply(d, multiply(dy, gelu_tanh_second(x))); },
    {{}, "", {"gradients", "features"}});
Tensor gelu_tanh_grad(const Tensor& dy, const Tensor& x) { return run(gelu_tanh_grad_op, {dy, x}); }

// ---- softmax, over the last dimension

struct Rows {
  int64_t count, length;
};
Rows rows_of(const Tensor& t) {
  int64_t length = t.rank() ? t.shape().back() : 1;
  return {length ? t.size() / length : 0, length};
}
constexpr int64_t kRowsGrain = 1 << 13;
int64_t rows_grain(Rows rows) { return std::max<int64_t>(1, kRowsGrain / std::max<int64_t>(1, rows.length)); }
template <class Body> void for_rows(Rows rows, Body body) {
  parallel_for(rows.count, rows_grain(rows), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r);
  });
}

void infer_rows(Call& call) {
  if (call.in[0].rank() < 1)
    fail(ErrorKind::invalid_argument, call.name(), ": logits must have at least 1 dimension; got shape []");
  call.returns(call.in[0].dtype(), call.in[0].shape());
}

// Runs a kernel on float or double; the small float types are widened and narrowed again.
template <class Body> void in_wide_floats(Call& call, Body body) {
  DType d = call.out[0].dtype();
  if (d == DType::float32) return body(static_cast<float*>(nullptr), call.in, call.out);
  if (d == DType::float64) return body(static_cast<double*>(nullptr), call.in, call.out);
  PauseRecording paused;
  SmallVector<Tensor, 4> in;
  Tensors out;
  for (const Tensor& t : call.in) in.push_back(small_floating.has(t.dtype()) ? cast(t, DType::float32) : t);
  for (const Tensor& t : call.out) out.push_back(Tensor::allocate(DType::float32, t.shape()));
  body(static_cast<float*>(nullptr), std::span<const Tensor>(in), out);
  for (size_t i = 0; i < out.size(); ++i) call.out[i] = cast(out[i], d);
}

Tensor softmax(const Tensor& x);
Tensor softmax_grad(const Tensor& y, const Tensor& dy);
Tensor last_sum(const Tensor& x) { return reduce_sum(x, {-1}, true); }

// y = f(x) for every row of floats; `Row` picks the loop among the vector kernels, `ShortRows` that of many short rows.
template <auto Row, auto ShortRows> const Op& define_by_row(Op op) {
  op.planning.cannot_fail = true;
  op.planning.rounded_once = small_floating;
  op.arguments = {tensor("logits", floating)};
  op.infer = infer_rows;
  op.kernel = [](Call& call) {
    in_wide_floats(call, []<class T>(T*, std::span<const Tensor> in, Tensors& out) {
      const Rows rows = rows_of(in[0]);
      const T* x = in[0].data<T>();
      T* y = out[0].template mutable_data<T>();
      if (rows.length <= kLongestShortRow) {
        const auto kernel = ShortRows(short_row_kernels<T>());
        return parallel_for(rows.count, rows_grain(rows), [&](int64_t begin, int64_t end) {
          kernel(x + begin * rows.length, y + begin * rows.length, end - begin, rows.length);
        });
      }
      const auto kernel = Row(vector_kernels<T>());
      for_rows(rows, [&](int64_t r) { kernel(x + r * rows.length, y + r * rows.length, rows.length); });
    });
  };
  op.batch = batch_leading;
  return define(std::move(op));
}

const Op& softmax_op = define_by_row<[](auto& v) { return v.softmax_row; }, [](auto& s) { return s.softmax; }>(Op{
    .name = "Softmax",
    .vjp = [](RuleContext& c) { c.set(0, softmax_grad(c.y(), c.dy())); },
    .jvp = [](RuleContext& c) { c.set(0, softmax_grad(c.y(), c.x_dot(0))); },
    .keep = keep_output(0),
    .non_finite =
        {"A whole row is -inf, so that nothing is left to normalise: mask with a large finite number (-1e9)."},
});
Tensor softmax(const Tensor& x) { return run(softmax_op, {x}); }

// y (dy - sum(y dy)): the Jacobian of softmax, which is symmetric, times dy.
const Op& softmax_grad_op = define(Op{
    .name = "SoftmaxGrad",
    .planning = {.cannot_fail = true, .rounded_once = small_floating},
    .arguments = {tensor("softmax", floating), tensor("dy", floating)},
    .infer =
        [](Call& call) {
          family::check_dtype(call, 1);
          infer_rows(call);
        },
    .kernel =
        [](Call& call) {
          in_wide_floats(call, []<class T>(T*, std::span<const Tensor> in, Tensors& out) {
            Rows rows = rows_of(in[0]);
            const VectorKernels<T>& v = vector_kernels<T>();
            for_rows(rows, [&](int64_t r) {
              const T *y = in[0].data<T>() + r * rows.length, *dy = in[1].data<T>() + r * rows.length;
              T* dx = out[0].template mutable_data<T>() + r * rows.length;
              v.subtract.vs(dy, v.dot(y, dy, rows.length), dx, rows.length);
              v.multiply.vv(y, dx, dx, rows.length);
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          Tensor y = c.x(0), d = c.dy();
          if (c.wants(0)) {
            Tensor dy = c.x(1);
            c.set(0, subtract(multiply(d, subtract(dy, last_sum(multiply(y, dy)))),
                              multiply(dy, last_sum(multiply(d, y)))));
          }
          if (c.wants(1)) c.set(1, softmax_grad(y, d));
        },
    .keep = keep_input(0) | keep_input(1),
    .batch = batch_leading,
    .row_rule = separate_rows<2>,
});
Tensor softmax_grad(const Tensor& y, const Tensor& dy) { return run(softmax_grad_op, {y, dy}); }

const Op& log_softmax_op =
    define_by_row<[](auto& v) { return v.log_softmax_row; }, [](auto& s) { return s.log_softmax; }>(Op{
        .name = "LogSoftmax",
        .vjp = [](RuleContext& c) { c.set(0, subtract(c.dy(), multiply(last_sum(c.dy()), exp(c.y())))); },
        .keep = keep_output(0),
    });

// ---- cross entropies: the loss of each row, and its derivative by the logits, which the rule multiplies by dy.

Tensor as_column(const Tensor& x) {
  Shape shape = x.shape();
  shape.append(1);
  return reshape(x, shape);
}

// Second order: d (softmax - labels) by logits is the Jacobian of softmax.
void cross_entropy_vjp(RuleContext& c) {
  Tensor d;
  if (c.has_dy(0)) d = multiply(as_column(c.dy(0)), c.y(1));
  if (c.has_dy(1)) {
    Tensor second = softmax_grad(softmax(c.x(0)), c.dy(1));
    d = d ? add(d, second) : second;
  }
  if (c.wants(0)) c.set(0, d);
}

// The shape of logits and labels, which must be equal.
Shape merged_rows(const Call& call, const Shape& logits, const Shape& labels) {
  const std::optional<Shape> rows = merged(logits, labels);
  if (!rows)
    fail(ErrorKind::invalid_argument, call.name(), ": Shapes must be equal; got logits ", call.in[0].shape(),
         " and labels ", call.in[1].shape());
  return *rows;
}

const Op& sparse_cross_entropy_op = define(Op{
    .name = "SparseSoftmaxCrossEntropyWithLogits",
    .arguments = {tensor("features", floating), index_tensor("labels")},
    .infer =
        [](Call& call) {
          const Tensor &logits = call.in[0], &labels = call.in[1];
          if (labels.rank() == 0 && logits.rank() > 1)
            fail(ErrorKind::invalid_argument,
                 "sparse_softmax_cross_entropy_with_logits: labels must be 1-D, but got shape []; logits have ",
                 logits.shape());
          if (logits.rank() < 1 || !(logits.shape().slice(0, logits.rank() - 1) == labels.shape()))
            fail(ErrorKind::invalid_argument,
                 "sparse_softmax_cross_entropy_with_logits: logits must have the shape of labels and one "
                 "dimension more; got labels ",
                 labels.shape(), " and logits ", logits.shape());
          call.returns(logits.dtype(), labels.shape());
          call.returns(logits.dtype(), logits.shape());
        },
    .infer_staged =
        [](Call& call) {
          const Shape &logits = call.in[0].shape(), &labels = call.in[1].shape();
          const bool known = logits.known_rank();
          if (known && logits.rank() < 1)
            fail(ErrorKind::invalid_argument, "sparse_softmax_cross_entropy_with_logits: logits cannot be a scalar");
          Shape rows = known ? merged_rows(call, logits.slice(0, logits.rank() - 1), labels) : labels;
          Shape all = rows;
          if (all.known_rank()) all.append(known ? logits[logits.rank() - 1] : -1);
          call.returns(call.in[0].dtype(), rows);
          call.returns(call.in[0].dtype(), all);
        },
    .kernel =
        [](Call& call) {
          Rows rows = rows_of(call.in[0]);
          Scratch<int64_t> labels = integers_in(call.in[1]);
          for (int64_t label : labels)
            if (label < 0 || label >= rows.length)
              fail(ErrorKind::invalid_argument, "sparse_softmax_cross_entropy_with_logits: Received a label value of ",
                   label, " which is outside the valid range of [0, ", rows.length, ").");
          in_wide_floats(call, [&]<class T>(T*, std::span<const Tensor> in, Tensors& out) {
            auto kernel = vector_kernels<T>().sparse_cross_entropy_row;
            for_rows(rows, [&](int64_t r) {
              out[0].template mutable_data<T>()[r] =
                  kernel(in[0].data<T>() + r * rows.length, labels[size_t(r)],
                         out[1].template mutable_data<T>() + r * rows.length, rows.length);
            });
          });
        },
    .vjp = cross_entropy_vjp,
    .keep = keep_input(0) | keep_output(1),
    .batch = batch_leading,
});

const Op& cross_entropy_op = define(Op{
    .name = "SoftmaxCrossEntropyWithLogits",
    .planning = {.cannot_fail = true, .rounded_once = small_floating},
    .arguments = {tensor("features", floating), tensor("labels", floating)},
    .infer =
        [](Call& call) {
          const Tensor &logits = call.in[0], &labels = call.in[1];
          if (logits.rank() < 1 || !(logits.shape() == labels.shape()))
            fail(ErrorKind::invalid_argument,
                 "softmax_cross_entropy_with_logits: logits and labels must be broadcastable: logits_size=",
                 logits.shape(), " labels_size=", labels.shape());
          if (logits.dtype() != labels.dtype())
            fail(ErrorKind::invalid_argument,
                 "softmax_cross_entropy_with_logits: logits and labels must have one dtype; got ",
                 name_of(logits.dtype()), " and ", name_of(labels.dtype()));
          call.returns(logits.dtype(), logits.shape().slice(0, logits.rank() - 1));
          call.returns(logits.dtype(), logits.shape());
        },
    .infer_staged =
        [](Call& call) {
          const Tensor &logits = call.in[0], &labels = call.in[1];
          if (logits.dtype() != labels.dtype())
            fail(ErrorKind::invalid_argument,
                 "softmax_cross_entropy_with_logits: logits and labels must have one dtype; got ",
                 name_of(logits.dtype()), " and ", name_of(labels.dtype()));
          Shape all = merged_rows(call, logits.shape(), labels.shape());
          if (all.rank() == 0)
            fail(ErrorKind::invalid_argument, "softmax_cross_entropy_with_logits: logits cannot be a scalar");
          call.returns(logits.dtype(), all.known_rank() ? all.slice(0, all.rank() - 1) : all);
          call.returns(logits.dtype(), all);
        },
    .kernel =
        [](Call& call) {
          Rows rows = rows_of(call.in[0]);
          if (rows.length == 0 && call.out[0].size()) std::memset(call.out[0].mutable_raw(), 0, call.out[0].bytes());
          in_wide_floats(call, [&]<class T>(T*, std::span<const Tensor> in, Tensors& out) {
            auto kernel = vector_kernels<T>().cross_entropy_row;
            for_rows(rows, [&](int64_t r) {
              out[0].template mutable_data<T>()[r] =
                  kernel(in[0].data<T>() + r * rows.length, in[1].data<T>() + r * rows.length,
                         out[1].template mutable_data<T>() + r * rows.length, rows.length);
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          cross_entropy_vjp(c);
          if (!c.wants(1)) return;
          Tensor d;
          if (c.has_dy(0)) d = multiply(as_column(c.dy(0)), negative(run(log_softmax_op, {c.x(0)})));
          // As in TensorFlow, the derivative that the second output holds counts as free of the labels.
          c.set(1, d ? d : zeros(c.dtype(1), c.shape(1)));
        },
    .keep = keep_input(0) | keep_output(1),
    .batch = batch_leading,
});

}  // namespace

Tensor tanh(const Tensor& x) { return run(tanh_op, {x}); }
Tensor sigmoid(const Tensor& x) { return run(sigmoid_op, {x}); }

}  // namespace tapeflow
