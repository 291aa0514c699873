// Operations that pass their input on as it is: identity, stopped and straight-through gradients, checks, other types
// for the same bytes.
#include <cmath>
#include <cstring>

#include "ops/arrays/elements.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

const Op& identity_op = define(Op{
    .name = "Identity",
    .planning = {.view = ViewKind::always},
    .arguments = {tensor("input", any_dtype)},
    .infer_staged = same_as_input,
    .kernel = [](Call& call) { call.out.push_back(call.in[0].view(call.in[0].shape())); },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, c.dy()); },
    .jvp = [](RuleContext& c) { c.set(0, c.x_dot(0)); },
    .copies_elements = true,
    .elementwise = true,
    .keeps_sparse = true,
    .batch = batch_leading,
    .elements = Elements::of_input,
    .names = {"identity"},
    .doc = R"(A tensor with the same elements.

Returns: A tensor equal to `input`.

Gradient: `dx = dy`.

>>> tf.identity([1., 2.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>)",
    .family = "movement",
});

const Op& stop_gradient_op = define(Op{
    .name = "StopGradient",
    .planning = {.view = ViewKind::always},
    .arguments = {tensor("input", any_dtype)},
    .infer_staged = same_as_input,
    .kernel = [](Call& call) { call.out.push_back(call.in[0].view(call.in[0].shape())); },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .copies_elements = true,
    .elementwise = true,
    .batch = batch_leading,
    .names = {"stop_gradient"},
    .doc = R"(The same elements, through which no gradient flows.

Args:
  input: The tensor to pass on.

Returns: A tensor equal to `input`.

Gradient: None: a tape sees the result as a constant.

>>> tf.stop_gradient([1., 2.])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>)",
    .advice = "tf.stop_gradient is there to block the gradient: leave it out if that is not meant.",
    .family = "movement",
});

// The elements of y, with the derivative of x: rounding that the gradient passes through unchanged.
const Op& straight_through_op = define(Op{
    .name = "StraightThrough",
    .arguments = {tensor("x", numbers), tensor("y", numbers)},
    .infer_staged = [](Call& call) { call.returns(call.in[1].dtype(), call.in[1].shape()); },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.in[1];
          if (!(x.shape() == y.shape()))
            fail(ErrorKind::invalid_argument, "straight_through: both tensors must have one shape; got ", x.shape(),
                 " and ", y.shape());
          call.out.push_back(y.view(y.shape()));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0)) c.set(0, c.dy());
        },
    .jvp = [](RuleContext& c) { c.set(0, c.x_dot(0)); },
    .elementwise = true,
    .batch = batch_leading,
});

template <class T> void check_numbers(const T* x, int64_t n, const std::string& message) {
  bool nan = false, infinite = false;
  for (int64_t i = 0; i < n; ++i) {
    auto v = load(x + i);
    nan |= std::isnan(v), infinite |= std::isinf(v);
  }
  if (nan || infinite)
    fail(ErrorKind::invalid_argument, "check_numerics: ", message, " : Tensor had ",
         infinite && nan ? "Inf and NaN"
         : infinite      ? "Inf"
                         : "NaN",
         " values");
}

constexpr struct : Keys {
  Key<std::string> message = next("message");
} check_numerics_params;
const Op& check_numerics_op = define(Op{
    .name = "CheckNumerics",
    .arguments = {tensor("tensor", floating), text(check_numerics_params.message)},
    .infer_staged = same_as_input,
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          visit<floating.bits>(x.dtype(), [&](auto* p) {
            check_numbers(x.data<Pointee<decltype(p)>>(), x.size(), call.params[check_numerics_params.message]);
          });
          call.out.push_back(x.view(x.shape()));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          std::string message = "Not a number (NaN) or infinity (Inf) values detected in gradient. " +
                                c.params[check_numerics_params.message];
          c.set(0, run(c.op, {c.dy()}, {Param(message)}));
        },
    .jvp = [](RuleContext& c) { c.set(0, c.x_dot(0)); },
    .elementwise = true,
    .batch = batch_leading,
    .names = {"debugging.check_numerics"},
    .doc = R"(`tensor`, if it holds neither NaN nor infinity; an InvalidArgumentError with `message` otherwise.

Args:
  message: The text of the error.

Returns: `tensor` itself.

Gradient: `dx = dy`.

>>> tf.debugging.check_numerics([1., 2.], 'x')
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>)",
});

constexpr struct : Keys {
  Key<DType> type = next("type");
} bitcast_params;

void infer_bitcast(Call& call) {
  const Tensor& x = call.in[0];
  if (!call.params.has(bitcast_params.type)) fail(ErrorKind::type, "bitcast: type must be given");
  DType to = call.params[bitcast_params.type];
  if (!sized.has(to)) fail(ErrorKind::invalid_argument, "bitcast: Cannot bitcast to ", name_of(to));
  size_t from_size = size_of(x.dtype()), to_size = size_of(to);
  Shape shape = x.shape();
  if (from_size > to_size) {
    shape.append(int64_t(from_size / to_size));
  } else if (from_size < to_size) {
    int64_t ratio = int64_t(to_size / from_size);
    if (shape.rank() == 0 || shape.back() != ratio)
      fail(ErrorKind::invalid_argument, "bitcast: Cannot bitcast from ", name_of(x.dtype()), " to ", name_of(to),
           ": the last dimension must be ", ratio, "; got shape ", shape);
    shape.remove(shape.rank() - 1);
  }
  call.returns(to, shape);
}

// The same bytes as elements of another type. A size that shrinks adds a dimension at the end, one that grows takes it.
const Op& bitcast_op = define(Op{
    .name = "Bitcast",
    .arguments = {tensor("input", sized), dtype_argument(bitcast_params.type)},
    .infer_staged = [](Call& call) { try_out(call, infer_bitcast); },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          infer_bitcast(call);
          Tensor y = Tensor::allocate(call.specs[0].dtype, call.specs[0].shape);
          if (y.bytes()) std::memcpy(y.mutable_raw(), x.raw(), y.bytes());
          call.out.push_back(y);
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .elementwise = true,
    .batch = batch_leading,
    .names = {"bitcast"},
    .doc = R"(The same bytes read as another type, `type`.

Args:
  input: The tensor whose bytes to read.
  type: The dtype of the result.

Returns: A tensor of dtype `type`; its last dimension changes if the sizes of the dtypes differ.

>>> tf.bitcast([1.0], tf.int32)
<tf.Tensor: shape=(1,), dtype=int32, numpy=array([1065353216], dtype=int32)>)",
});

}  // namespace

Tensor identity(const Tensor& x) { return run(identity_op, {x}); }
Tensor stop_gradient(const Tensor& x) { return run(stop_gradient_op, {x}); }

}  // namespace tapeflow
