// The shape of a tensor: read, checked, and changed without moving elements.
#include <algorithm>
#include <limits>

#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

int64_t product_without_zeros(const char* who, const Shape& shape) {
  int64_t product = 1;
  for (int64_t d : shape)
    if (d > 0) product = checked_product(who, product, d);
  return product;
}

// One dimension may be -1: what is left. Beside a 0 that is what is left of the dimensions that are not 0.
Shape resolved_shape(const char* who, const Shape& from, int64_t size, const Ints& dims) {
  if (dims.size() > size_t(kMaxRank))
    fail(ErrorKind::invalid_argument, who, ": at most ", kMaxRank, " dimensions; got ", dims.size());
  Shape shape(dims.data(), int(dims.size()));
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1) {
      if (unknown >= 0)
        fail(ErrorKind::invalid_argument, who, ": Only one input size may be -1, not both ", unknown, " and ", i);
      unknown = i;
    } else if (shape[i] < 0) {
      fail(ErrorKind::invalid_argument, who, ": Size ", i, " must be non-negative, not ", shape[i]);
    } else {
      if (shape[i] && known > std::numeric_limits<int64_t>::max() / shape[i])
        fail(ErrorKind::invalid_argument, who, ": Shape ", shape,
             " has too many elements: the product of sizes must be "
             "less than 2**63");
      known *= shape[i];
    }
  }
  if (unknown >= 0) {
    if (known == 0 ? size != 0 : size % known != 0)
      fail(ErrorKind::invalid_argument, who, ": Input to reshape is a tensor with ", size,
           " values, but the requested shape requires a multiple of ", known, ": it must be evenly divisible by ",
           known);
    shape[unknown] = known ? size / known : product_without_zeros(who, from) / product_without_zeros(who, shape);
  } else if (known != size) {
    fail(ErrorKind::invalid_argument, who, ": Input to reshape is a tensor with ", size,
         " values, but the requested shape has ", known, ": Cannot reshape a tensor with ", size, " elements to shape ",
         shape);
  }
  return shape;
}

constexpr struct : Keys {
  Key<Ints> shape = next("shape");
} reshape_params;

void infer_reshape(Call& call) {
  const Tensor& x = call.in[0];
  const Param& wanted = call.params.value(reshape_params.shape);
  Shape shape = known_shape(wanted);
  if (!shape.known_rank()) return call.returns(x.dtype(), shape);
  if (x.size() >= 0 && all_known(wanted))
    return call.returns(x.dtype(), resolved_shape(call.name(), x.shape(), x.size(), wanted.ints));
  int open = 0, place = 0;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] < 0)
      ++open, place = i;
    else
      known = checked_product(call.name(), known, shape[i]);
  }
  // One dimension that is left is what remains of the elements.
  if (open == 1 && x.size() >= 0 && known > 0 && x.size() % known == 0) shape[place] = x.size() / known;
  call.returns(x.dtype(), shape);
}

const Op& reshape_op = define(Op{
    .name = "Reshape",
    .planning = {.view = ViewKind::always},
    .arguments = {tensor("tensor", any_dtype), ints(reshape_params.shape)},
    .infer_staged = infer_reshape,
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          call.out.push_back(
              x.view(resolved_shape(call.name(), x.shape(), x.size(), call.params[reshape_params.shape])));
        },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, reshape(c.dy(), c.shape(0))); },
    .jvp = [](RuleContext& c) { c.set(0, reshape(c.x_dot(0), c.y().shape())); },
    .copies_elements = true,
    .batch =
        [](BatchCall& c) { return c.run_same({c.in[0]}, {Param(prepended(c.rows, c.params[reshape_params.shape]))}); },
    .elements = Elements::of_input,
    .names = {"reshape"},
    .doc = R"(The same elements under another shape; one dimension may be -1.

Args:
  tensor: The tensor whose elements to take, in row-major order.
  shape: The new shape; one dimension may be -1 and follows from the others.

Returns: A tensor of shape `shape`. It shares the memory of `tensor`.

Gradient: `dx` is `dy` in the shape of `tensor`.

>>> tf.reshape([1, 2, 3, 4], [2, -1])
<tf.Tensor: shape=(2, 2), dtype=int32, numpy=
array([[1, 2],
       [3, 4]], dtype=int32)>)",
    .family = "movement",
});

constexpr struct : Keys {
  Key<int64_t> axis = next("axis");
} expand_dims_params;
const Op& expand_dims_op = define(Op{
    .name = "ExpandDims",
    .planning = {.view = ViewKind::always},
    .arguments = {tensor("input", any_dtype), integer(expand_dims_params.axis)},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          int64_t axis = known_integer(call.params.value(expand_dims_params.axis));
          if (x.rank() < 0) return call.returns(x.dtype(), Shape::unknown());
          if (axis == kUnknownInt) return call.returns(x.dtype(), unknown_dims(x.rank() + 1));
          if (axis < -x.rank() - 1 || axis > x.rank())
            fail(ErrorKind::invalid_argument, call.name(), ": Tried to expand dim index ", axis, " for tensor with ",
                 x.rank(), " dimensions.");
          Shape shape = x.shape();
          shape.insert(int(axis < 0 ? axis + x.rank() + 1 : axis), 1);
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          int64_t axis = call.params[expand_dims_params.axis];
          if (axis < -x.rank() - 1 || axis > x.rank())
            fail(ErrorKind::invalid_argument, call.name(), ": Tried to expand dim index ", axis, " for tensor with ",
                 x.rank(), " dimensions.");
          Shape shape = x.shape();
          shape.insert(int(axis < 0 ? axis + x.rank() + 1 : axis), 1);
          call.out.push_back(x.view(shape));
        },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, reshape(c.dy(), c.shape(0))); },
    .jvp = [](RuleContext& c) { c.set(0, reshape(c.x_dot(0), c.y().shape())); },
    .copies_elements = true,
    .batch =
        [](BatchCall& c) {
          return c.run_same({c.in[0]}, {Param(c.batch_axis(c.params[expand_dims_params.axis], c.row_rank(0) + 1))});
        },
    .elements = Elements::of_input,
    .names = {"expand_dims"},
    .doc = R"(A dimension of 1 put in at `axis`.

Args:
  input: The tensor.
  axis: Where the new dimension stands; negative axes count from the end.

Returns: A tensor of one more dimension. It shares the memory of `input`.

Gradient: `dx` is `dy` in the shape of `input`.

>>> tf.expand_dims([1, 2], 0)
<tf.Tensor: shape=(1, 2), dtype=int32, numpy=array([[1, 2]], dtype=int32)>)",
    .family = "movement",
});

constexpr struct : Keys {
  Key<Ints> axis = next("axis");
} squeeze_params;
const Op& squeeze_op = define(Op{
    .name = "Squeeze",
    .planning = {.view = ViewKind::always},
    .arguments = {tensor("input", any_dtype), axes(squeeze_params.axis)},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Param& axes = call.params.value(squeeze_params.axis);
          bool everywhere = axes.is_none() || axes.ints.empty(), drop[kMaxRank] = {};
          if (x.rank() < 0 || !all_known(axes) ||
              (everywhere && x.size() < 0 && std::count(x.shape().begin(), x.shape().end(), -1)))
            return call.returns(x.dtype(), Shape::unknown());
          for (int i = 0; i < x.rank() && everywhere; ++i) drop[i] = x.dim(i) == 1;
          for (int64_t axis : axes.ints) {
            if (axis < -x.rank() || axis >= x.rank())
              fail(ErrorKind::invalid_argument, call.name(), ": Tried to squeeze dim index ", axis, " for tensor with ",
                   x.rank(), " dimensions.");
            int i = int(axis < 0 ? axis + x.rank() : axis);
            if (x.dim(i) >= 0 && x.dim(i) != 1)
              fail(ErrorKind::invalid_argument, call.name(), ": Can not squeeze dim[", i,
                   "], expected a dimension of 1, got ", x.dim(i));
            drop[i] = true;
          }
          Shape shape;
          for (int i = 0; i < x.rank(); ++i)
            if (!drop[i]) shape.append(x.dim(i));
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          bool drop[kMaxRank] = {};
          if (!call.params.has(squeeze_params.axis) || call.params[squeeze_params.axis].empty()) {
            for (int i = 0; i < x.rank(); ++i) drop[i] = x.dim(i) == 1;
          } else {
            for (int64_t axis : call.params[squeeze_params.axis]) {
              if (axis < -x.rank() || axis >= x.rank())
                fail(ErrorKind::invalid_argument, call.name(), ": Tried to squeeze dim index ", axis,
                     " for tensor with ", x.rank(), " dimensions.");
              int i = int(axis < 0 ? axis + x.rank() : axis);
              if (x.dim(i) != 1)
                fail(ErrorKind::invalid_argument, call.name(), ": Can not squeeze dim[", i,
                     "], expected a dimension of 1, got ", x.dim(i));
              drop[i] = true;
            }
          }
          Shape shape;
          for (int i = 0; i < x.rank(); ++i)
            if (!drop[i]) shape.append(x.dim(i));
          call.out.push_back(x.view(shape));
        },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, reshape(c.dy(), c.shape(0))); },
    .jvp = [](RuleContext& c) { c.set(0, reshape(c.x_dot(0), c.y().shape())); },
    .copies_elements = true,
    .batch =
        [](BatchCall& c) {
          Ints axes;
          Shape row = c.row_shape(0);
          if (!c.params.has(squeeze_params.axis) || c.params[squeeze_params.axis].empty()) {
            for (int i = 0; i < row.rank(); ++i)
              if (row[i] == 1) axes.push_back(i + 1);
          } else {
            for (int64_t axis : c.params[squeeze_params.axis]) axes.push_back(c.batch_axis(axis, row.rank()));
          }
          if (!axes.empty()) return c.run_same({c.in[0]}, {Param(axes)});
          c.out.push_back(identity(c.in[0]));
          return true;
        },
    .elements = Elements::of_input,
    .names = {"squeeze"},
    .doc = R"(Dimensions of 1 taken out: all, or those in `axis`.

Args:
  input: The tensor.
  axis: The dimensions to remove, each of size 1; all of size 1 if None.

Returns: A tensor of fewer dimensions. It shares the memory of `input`.

Gradient: `dx` is `dy` in the shape of `input`.

>>> tf.squeeze([[1, 2]])
<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>)",
    .family = "movement",
});

constexpr struct : Keys {
  Key<DType> out_type = next("out_type");
} shape_params;
DType out_type(const Params& params) {
  return params.has(shape_params.out_type) ? params[shape_params.out_type] : DType::int32;
}
const Op& shape_op = define(Op{
    .name = "Shape",
    .arguments = {tensor("input", any_dtype), dtype_argument(shape_params.out_type)},
    .infer_staged = [](Call& call) { call.returns(out_type(call.params), {call.in[0].rank()}); },
    .kernel = [](Call& call) { call.out.push_back(int_tensor(call.in[0].shape().dims(), out_type(call.params))); },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .batch =
        [](BatchCall& c) {
          c.out.push_back(int_tensor(c.row_shape(0).dims(), out_type(c.params)));
          return c.same_for_all = true;
        },
    .elements = Elements::shape,
});

constexpr struct : Keys {
  Key<Ints> shape = next("shape");
} ensure_shape_params;

// The same tensor, if its shape is the given one; -1 stands for any dimension, None for any shape.
Shape ensured_shape(const Call& call, const Shape& x) {
  if (!call.params.has(ensure_shape_params.shape)) return x;
  Shape wanted = call.params.shape(ensure_shape_params.shape);
  bool fits = !x.known_rank() || x.rank() == wanted.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = x[i] < 0 || wanted[i] < 0 || x[i] == wanted[i];
  if (!fits)
    fail(ErrorKind::invalid_argument, "ensure_shape: Shape of tensor x ", x, " is not compatible with expected shape ",
         wanted, ".");
  for (int i = 0; i < x.rank(); ++i)
    if (wanted[i] < 0) wanted[i] = x[i];
  return wanted;
}
const Op& ensure_shape_op = define(Op{
    .name = "EnsureShape",
    .arguments = {tensor("input", any_dtype), axes(ensure_shape_params.shape)},
    .infer_staged = [](Call& call) { call.returns(call.in[0].dtype(), ensured_shape(call, call.in[0].shape())); },
    .kernel = [](Call& call) { call.out.push_back(call.in[0].view(ensured_shape(call, call.in[0].shape()))); },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, c.dy()); },
    .jvp = [](RuleContext& c) { c.set(0, c.x_dot(0)); },
    .batch =
        [](BatchCall& c) {
          if (c.params.has(ensure_shape_params.shape))
            return c.run_same({c.in[0]}, {Param(prepended(-1, c.params[ensure_shape_params.shape]))});
          c.out.push_back(identity(c.in[0]));
          return true;
        },
});

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : run(reshape_op, {x}, {Param(shape)});
}
Tensor shape_tensor(const Tensor& x, DType dtype) { return run(shape_op, {x}, {Param(dtype)}); }

}  // namespace tapeflow
