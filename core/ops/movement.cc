// Moving elements without changing them: shapes, transposes, joining, splitting, padding, repeating. Also constants.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "kernels/copy.h"
#include "ops/elements.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

template <class T> T* offset(T* p, int64_t elements, size_t size) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Byte*>(p) + size_t(elements) * size;
}

// Copies `rows` runs of `length` elements, whose starts are from_step and to_step elements apart.
template <class T>
void copy_lines(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t length, int64_t rows) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    constexpr int64_t size = sizeof(T);
    copy_runs(from, from_step * size, to, to_step * size, length * size, rows);
  } else {
    for (int64_t r = 0; r < rows; ++r) std::copy(from + r * from_step, from + r * from_step + length, to + r * to_step);
  }
}

// The same for any dtype, on several threads.
void copy_rows(DType d, const void* x, int64_t from_step, void* y, int64_t to_step, int64_t length, int64_t rows) {
  if (length == 0) return;
  by_size(d, [&]<class T>(T*) {
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (length >= 2 * kCopyGrain && rows < thread_count()) {
      for (int64_t r = 0; r < rows; ++r)
        parallel_for(length, kCopyGrain, [&](int64_t begin, int64_t end) {
          std::copy(from + r * from_step + begin, from + r * from_step + end, to + r * to_step + begin);
        });
      return;
    }
    parallel_for(rows, std::max<int64_t>(1, kCopyGrain / length), [&](int64_t begin, int64_t end) {
      if (length == 1) {
        for (int64_t r = begin; r < end; ++r) to[r * to_step] = from[r * from_step];
      } else {
        copy_lines(from + begin * from_step, from_step, to + begin * to_step, to_step, length, end - begin);
      }
    });
  });
}

// ---- identity and reshape: the buffer is shared

const Op& identity_op = define(Op{
    .name = "Identity",
    .arguments = {tensor("input", any_dtype)},
    .infer_staged = same_as_input,
    .kernel = [](Call& call) { call.out.push_back(call.in[0].view(call.in[0].shape())); },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, c.dy()); },
    .jvp = [](RuleContext& c) { c.set(0, c.x_dot(0)); },
    .passes_rows = true,
    .names = {"identity"},
    .doc = "A tensor with the same elements.\n\n>>> tf.identity([1., 2.])\n[1., 2.]",
    .family = "movement",
});

const Op& stop_gradient_op = define(Op{
    .name = "StopGradient",
    .arguments = {tensor("input", any_dtype)},
    .infer_staged = same_as_input,
    .kernel = [](Call& call) { call.out.push_back(call.in[0].view(call.in[0].shape())); },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .names = {"stop_gradient"},
    .doc = "The same elements, through which no gradient flows.\n\n>>> tf.stop_gradient([1., 2.])\n[1., 2.]",
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

const Op& check_numerics_op = define(Op{
    .name = "CheckNumerics",
    .arguments = {tensor("tensor", floating), text("message")},
    .infer_staged = same_as_input,
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          visit<floating.bits>(x.dtype(), [&](auto* p) {
            check_numbers(x.data<Pointee<decltype(p)>>(), x.size(), call.params.text(0));
          });
          call.out.push_back(x.view(x.shape()));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          std::string message = "Not a number (NaN) or infinity (Inf) values detected in gradient. " + c.params.text(0);
          c.set(0, run(c.op, {c.dy()}, {Param(message)}));
        },
    .jvp = [](RuleContext& c) { c.set(0, c.x_dot(0)); },
    .names = {"debugging.check_numerics"},
    .doc = "`tensor`, if it holds neither NaN nor infinity; an InvalidArgumentError with `message` otherwise.\n\n>>> "
           "tf.debugging.check_numerics([1., 2.], 'x')\n[1., 2.]",
});

void infer_bitcast(Call& call) {
  const Tensor& x = call.in[0];
  if (call.params[0].is_none()) fail(ErrorKind::type, "bitcast: type must be given");
  DType to = call.params.dtype(0);
  if (!fixed_size.has(to)) fail(ErrorKind::invalid_argument, "bitcast: Cannot bitcast to ", name_of(to));
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
    .arguments = {tensor("input", fixed_size), dtype_argument("type")},
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
    .names = {"bitcast"},
    .doc = "The same bytes read as another type, `type`.\n\n>>> tf.bitcast([1.0], tf.int32)\n[1065353216]",
});

int64_t product_without_zeros(const Shape& shape) {
  int64_t product = 1;
  for (int64_t d : shape)
    if (d > 0) product *= d;
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
      known *= shape[i];
    }
  }
  if (unknown >= 0) {
    if (known == 0 ? size != 0 : size % known != 0)
      fail(ErrorKind::invalid_argument, who, ": Input to reshape is a tensor with ", size,
           " values, but the requested shape requires a multiple of ", known);
    shape[unknown] = known ? size / known : product_without_zeros(from) / product_without_zeros(shape);
  } else if (known != size) {
    fail(ErrorKind::invalid_argument, who, ": Input to reshape is a tensor with ", size,
         " values, but the requested shape has ", known);
  }
  return shape;
}

void infer_reshape(Call& call) {
  const Tensor& x = call.in[0];
  const Param& wanted = call.params[0];
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
      known *= shape[i];
  }
  // One dimension that is left is what remains of the elements.
  if (open == 1 && x.size() >= 0 && known > 0 && x.size() % known == 0) shape[place] = x.size() / known;
  call.returns(x.dtype(), shape);
}

const Op& reshape_op = define(Op{
    .name = "Reshape",
    .arguments = {tensor("tensor", any_dtype), ints("shape")},
    .infer_staged = infer_reshape,
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          call.out.push_back(x.view(resolved_shape(call.name(), x.shape(), x.size(), call.params.ints(0))));
        },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, reshape(c.dy(), c.shape(0))); },
    .jvp = [](RuleContext& c) { c.set(0, reshape(c.x_dot(0), c.y().shape())); },
    .names = {"reshape"},
    .doc = "The same elements under another shape; one dimension may be -1.\n\n>>> tf.reshape([1, 2, 3, 4], [2, "
           "-1])\n[[1, 2], [3, 4]]",
    .family = "movement",
});

const Op& expand_dims_op = define(Op{
    .name = "ExpandDims",
    .arguments = {tensor("input", any_dtype), integer("axis")},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          int64_t axis = known_integer(call.params[0]);
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
          int64_t axis = call.params.integer(0);
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
    .names = {"expand_dims"},
    .doc = "A dimension of 1 put in at `axis`.\n\n>>> tf.expand_dims([1, 2], 0)\n[[1, 2]]",
    .family = "movement",
});

const Op& squeeze_op = define(Op{
    .name = "Squeeze",
    .arguments = {tensor("input", any_dtype), axes("axis")},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Param& axes = call.params[0];
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
          if (call.params[0].is_none() || call.params.ints(0).empty()) {
            for (int i = 0; i < x.rank(); ++i) drop[i] = x.dim(i) == 1;
          } else {
            for (int64_t axis : call.params.ints(0)) {
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
    .names = {"squeeze"},
    .doc = "Dimensions of 1 taken out: all, or those in `axis`.\n\n>>> tf.squeeze([[1, 2]])\n[1, 2]",
    .family = "movement",
});

// ---- transpose

// One line of y: x repeats, runs along, runs backwards or jumps.
template <class T> void copy_line(const T* from, int64_t step, T* to, int64_t n) {
  if (step == 1)
    std::copy(from, from + n, to);
  else if (step == 0)
    std::fill(to, to + n, *from);
  else if (step == -1)
    std::reverse_copy(from - (n - 1), from + 1, to);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
}

// A transposed block: to[r * to_step + c] = from[r + c * from_step]. Four by four words change places in registers.
template <class T>
void transpose_block(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows, int64_t columns) {
  int64_t r = 0;
  if constexpr (std::is_same_v<T, uint32_t>) {
    typedef uint32_t Four __attribute__((vector_size(16)));
    for (; r + 4 <= rows; r += 4) {
      int64_t c = 0;
      for (; c + 4 <= columns; c += 4) {
        Four in[4];
        for (int k = 0; k < 4; ++k) std::memcpy(&in[k], from + r + (c + k) * from_step, sizeof(Four));
        Four a = __builtin_shuffle(in[0], in[1], Four{0, 4, 1, 5}),
             b = __builtin_shuffle(in[2], in[3], Four{0, 4, 1, 5});
        Four d = __builtin_shuffle(in[0], in[1], Four{2, 6, 3, 7}),
             e = __builtin_shuffle(in[2], in[3], Four{2, 6, 3, 7});
        Four out[4] = {__builtin_shuffle(a, b, Four{0, 1, 4, 5}), __builtin_shuffle(a, b, Four{2, 3, 6, 7}),
                       __builtin_shuffle(d, e, Four{0, 1, 4, 5}), __builtin_shuffle(d, e, Four{2, 3, 6, 7})};
        for (int k = 0; k < 4; ++k) std::memcpy(to + (r + k) * to_step + c, &out[k], sizeof(Four));
      }
      for (int k = 0; k < 4; ++k)
        for (int64_t rest = c; rest < columns; ++rest) to[(r + k) * to_step + rest] = from[r + k + rest * from_step];
    }
  }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[r * to_step + c] = from[r + c * from_step];
}

// Copies y[i0, i1, ...] = x[strides . i], walking y in order. The two innermost dimensions are done in square blocks
// if x runs along the outer one of them, so that both sides touch whole cache lines.
template <class T> void gather_strided(const T* x, T* y, const Shape& y_shape, const int64_t* stride) {
  int rank = y_shape.rank();
  if (rank == 0) {
    *y = *x;
    return;
  }
  constexpr int64_t kBlock = 16;
  int64_t columns = y_shape[rank - 1], rows = rank > 1 ? y_shape[rank - 2] : 1;
  int64_t column_step = stride[rank - 1], row_step = rank > 1 ? stride[rank - 2] : 0;
  int64_t planes = y_shape.elements(0, std::max(0, rank - 2)), blocks = (rows + kBlock - 1) / kBlock;
  parallel_for(planes * blocks,
               std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, std::min(rows, kBlock) * columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t at = begin; at < end; ++at) {
                   int64_t p = at / blocks, rest = p, start = 0;
                   for (int d = rank - 3; d >= 0; --d) {
                     start += rest % y_shape[d] * stride[d];
                     rest /= y_shape[d];
                   }
                   int64_t r0 = at % blocks * kBlock, height = std::min(kBlock, rows - r0);
                   const T* from = x + start + r0 * row_step;
                   T* to = y + (p * rows + r0) * columns;
                   if (row_step == 1 && column_step != 1) {
                     for (int64_t c = 0; c < columns; c += kBlock)
                       transpose_block(from + c * column_step, column_step, to + c, columns, height,
                                       std::min(kBlock, columns - c));
                   } else if (column_step == 1) {
                     copy_lines(from, row_step, to, columns, columns, height);
                   } else {
                     for (int64_t r = 0; r < height; ++r)
                       copy_line(from + r * row_step, column_step, to + r * columns, columns);
                   }
                 }
               });
}

void strides_of(const Shape& shape, int64_t* stride) {
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    stride[i] = step;
    step *= shape[i];
  }
}

Ints resolved_permutation(const char* who, const Param& p, int rank) {
  Ints result;
  if (p.is_none()) {
    for (int i = rank - 1; i >= 0; --i) result.push_back(i);
    return result;
  }
  if (int(p.ints.size()) != rank)
    fail(ErrorKind::invalid_argument, who, ": transpose expects a vector of size ", rank,
         ". But input(1) is a vector of size ", p.ints.size());
  bool used[kMaxRank] = {};
  for (int64_t axis : p.ints) {
    int i = normalize_axis(who, axis, rank);
    used[i] = true;
    result.push_back(i);
  }
  for (int i = 0; i < rank; ++i)
    if (!used[i]) {
      std::string given;
      for (int64_t axis : p.ints) given += (given.empty() ? "" : ",") + std::to_string(axis);
      fail(ErrorKind::invalid_argument, who, ": ", i, " is missing from {", given, "}.");
    }
  return result;
}

Ints inverse_permutation(const Ints& p) {
  Ints result;
  result.resize(p.size());
  for (size_t i = 0; i < p.size(); ++i) result[size_t(p[i])] = int64_t(i);
  return result;
}

const Op& transpose_op = define(Op{
    .name = "Transpose",
    .arguments = {tensor("a", any_dtype), optional_ints("perm"), flag("conjugate")},
    .infer =
        [](Call& call) {
          const Shape& x = call.in[0].shape();
          Shape shape;
          for (int64_t i : resolved_permutation(call.name(), call.params[0], x.rank())) shape.append(x[int(i)]);
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Param& order = call.params[0];
          int rank = x.rank() < 0 && !order.is_none() && count_known(order) ? int(order.ints.size()) : x.rank();
          if (rank < 0) return call.returns(x.dtype(), Shape::unknown());
          if (x.rank() < 0 || !all_known(order)) return call.returns(x.dtype(), unknown_dims(rank));
          Shape shape;
          for (int64_t i : resolved_permutation(call.name(), order, rank)) shape.append(x.dim(int(i)));
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (x.size() == 0) return;
          // Dimensions that stay neighbours move as one.
          Ints permutation = resolved_permutation(call.name(), call.params[0], x.rank());
          int64_t x_stride[kMaxRank], stride[kMaxRank];
          strides_of(x.shape(), x_stride);
          Shape merged;
          for (size_t i = 0; i < permutation.size(); ++i) {
            int from = int(permutation[i]);
            if (i > 0 && from == permutation[i - 1] + 1) {
              merged[merged.rank() - 1] *= x.dim(from);
              stride[merged.rank() - 1] = x_stride[from];
            } else if (x.dim(from) != 1 || (i + 1 < permutation.size() && permutation[i + 1] == from + 1)) {
              merged.append(x.dim(from));
              stride[merged.rank() - 1] = x_stride[from];
            }
          }
          by_size(x.dtype(), [&]<class T>(T*) {
            gather_strided(static_cast<const T*>(x.raw()), y.mutable_data<T>(), merged, stride);
          });
          if (call.params.flag(1) && complexes.has(x.dtype())) {
            PauseRecording paused;
            call.out[0] = conj(y);
          }
        },
    .vjp =
        [](RuleContext& c) {
          Ints permutation = resolved_permutation("transpose", c.params[0], c.shape(0).rank());
          Tensor dx = transpose(c.dy(), inverse_permutation(permutation));
          c.set(0, c.params.flag(1) && complexes.has(dx.dtype()) ? conj(dx) : dx);
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .names = {"transpose"},
    .doc = "Dimensions in another order; reversed if `perm` is None.\n\n>>> tf.transpose([[1, 2], [3, 4]])\n[[1, 3], "
           "[2, 4]]",
    .family = "movement",
});

// ---- the shape itself

const Op& shape_op = define(Op{
    .name = "Shape",
    .arguments = {tensor("input", any_dtype), dtype_argument("out_type")},
    .infer_staged =
        [](Call& call) {
          DType type = call.params[0].is_none() ? DType::int32 : call.params.dtype(0);
          call.returns(type, {call.in[0].rank()});
        },
    .kernel =
        [](Call& call) {
          call.out.push_back(
              int_tensor(call.in[0].shape().dims(), call.params[0].is_none() ? DType::int32 : call.params.dtype(0)));
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
});

// The same tensor, if its shape is the given one; -1 stands for any dimension, None for any shape.
Shape ensured_shape(const Call& call, const Shape& x) {
  if (call.params[0].is_none()) return x;
  Shape wanted = call.params.shape(0);
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
    .arguments = {tensor("input", any_dtype), axes("shape")},
    .infer_staged = [](Call& call) { call.returns(call.in[0].dtype(), ensured_shape(call, call.in[0].shape())); },
    .kernel = [](Call& call) { call.out.push_back(call.in[0].view(ensured_shape(call, call.in[0].shape()))); },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, c.dy()); },
    .jvp = [](RuleContext& c) { c.set(0, c.x_dot(0)); },
});

// ---- broadcasting

const Op& broadcast_to_op = define(Op{
    .name = "BroadcastTo",
    .arguments = {tensor("input", any_dtype), ints("shape")},
    .infer =
        [](Call& call) {
          const Shape& x = call.in[0].shape();
          Shape shape = call.params.shape(0), both;
          // -1 keeps a dimension.
          for (int i = 0; i < shape.rank(); ++i)
            if (shape[i] == -1 && i >= shape.rank() - x.rank()) shape[i] = x[i - shape.rank() + x.rank()];
          if (!broadcast(x, shape, &both) || !(both == shape))
            fail(ErrorKind::invalid_argument, call.name(), ": Incompatible shapes: ", x, " vs. ", shape);
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          const Shape &x = call.in[0].shape(), shape = known_shape(call.params[0]);
          Shape both = shape;
          if (!shape.known_rank() || !x.known_rank()) return call.returns(call.in[0].dtype(), shape);
          for (int i = 0; i < shape.rank(); ++i)
            if (call.params.ints(0)[size_t(i)] == -1 && i >= shape.rank() - x.rank())
              both[i] = x[i - shape.rank() + x.rank()];
          Shape result;
          if (x.rank() > shape.rank() || !broadcast(x, both, &result))
            fail(ErrorKind::invalid_argument, call.name(), ": Incompatible shapes: ", x, " vs. ", shape);
          for (int i = 0; i < both.rank(); ++i)
            if (both[i] < 0 && result[i] > 1) both[i] = result[i];
          call.returns(call.in[0].dtype(), both);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (y.size() == 0) return;
          // Copies the part that is contiguous in x once, then doubles what is written along every repeated dimension.
          int skip = y.rank() - x.rank();
          int64_t stride[kMaxRank];
          int64_t x_stride[kMaxRank];
          strides_of(x.shape(), x_stride);
          for (int i = 0; i < y.rank(); ++i) stride[i] = i >= skip && x.dim(i - skip) != 1 ? x_stride[i - skip] : 0;
          if (x.size() == 1) {
            by_size(x.dtype(), [&]<class T>(T*) {
              const T& value = *static_cast<const T*>(x.raw());
              T* to = y.mutable_data<T>();
              parallel_for(y.size(), kCheapGrain,
                           [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, value); });
            });
            return;
          }
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            T* to = y.mutable_data<T>();
            // Leading repeats of one whole block.
            int first = 0;
            while (first < y.rank() && stride[first] == 0) ++first;
            Shape inner = y.shape().slice(first, y.rank());
            int64_t block = inner.elements();
            if (block == x.size())
              std::copy(from, from + block, to);
            else
              gather_strided(from, to, inner, stride + first);
            int64_t repeats = y.size() / block;
            parallel_for(repeats - 1, std::max<int64_t>(1, kCopyGrain / block), [&](int64_t begin, int64_t end) {
              for (int64_t r = begin + 1; r <= end; ++r) std::copy(to, to + block, to + r * block);
            });
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, unbroadcast(c.dy(), c.shape(0))); },
    .jvp = [](RuleContext& c) { c.set(0, broadcast_to(c.x_dot(0), c.y().shape())); },
    .names = {"broadcast_to"},
    .doc = "Repeated to a larger shape by the rules of broadcasting.\n\n>>> tf.broadcast_to([1, 2], [2, 2])\n[[1, 2], "
           "[1, 2]]",
    .family = "movement",
});

// ---- joining and splitting along one axis

[[noreturn]] void fail_list_dtypes(const Call& call) {
  if (thread_state().stage) {
    std::string dtypes;
    for (const Tensor& t : call.in) dtypes += (dtypes.empty() ? "" : ", ") + std::string(name_of(t.dtype()));
    fail(ErrorKind::type, call.name(), ": Tensors in list passed to '", call.op.arguments[0].name, "' of '",
         call.op.name, "' Op have types [", dtypes, "] that don't all match.");
  }
  size_t other = 1;
  while (call.in[other].dtype() == call.in[0].dtype()) ++other;
  fail(ErrorKind::invalid_argument, call.name(), ": cannot compute ", call.op.name, " as input #", other,
       "(zero-based) was expected to be a ", legacy_name_of(call.in[0].dtype()), " tensor but is a ",
       legacy_name_of(call.in[other].dtype()), " tensor; all values must have one dtype");
}

void infer_concat(Call& call) {
  if (call.in.empty()) fail(ErrorKind::value, call.name(), ": values must hold at least one tensor");
  const Shape& first = call.in[0].shape();
  if (first.rank() == 0)
    fail(ErrorKind::invalid_argument, call.name(), ": scalars cannot be joined; use tf.stack (got shape [])");
  int axis = normalize_axis(call.name(), call.params.integer(0), first.rank());
  Shape shape = first;
  for (size_t i = 1; i < call.in.size(); ++i) {
    const Shape& other = call.in[i].shape();
    if (call.in[i].dtype() != call.in[0].dtype()) fail_list_dtypes(call);
    bool same = other.rank() == first.rank();
    for (int d = 0; same && d < first.rank(); ++d) same = d == axis || other[d] == first[d];
    if (!same)
      fail(ErrorKind::invalid_argument, call.name(), ": Dimension ", axis,
           " aside, dimensions of inputs should match: shape[0] = ", first, " vs. shape[", i, "] = ", other);
    shape[axis] += other[axis];
  }
  call.returns(call.in[0].dtype(), shape);
}

// Dimensions that agree as far as they are known, and what is known of them together.
void merge_dims(const Call& call, Shape& into, const Shape& other, int but) {
  if (!other.known_rank()) return;
  if (!into.known_rank()) {
    into = other;
    return;
  }
  bool same = into.rank() == other.rank();
  for (int d = 0; same && d < into.rank(); ++d) {
    same = d == but || into[d] < 0 || other[d] < 0 || into[d] == other[d];
    if (d != but && into[d] < 0) into[d] = other[d];
  }
  if (!same)
    fail(ErrorKind::invalid_argument, call.name(),
         ": dimensions of inputs should match, Shapes of all inputs must match: ", into, " vs. ", other);
}

void infer_concat_staged(Call& call) {
  if (call.in.empty()) fail(ErrorKind::value, call.name(), ": values must hold at least one tensor");
  int rank = -1;
  for (const Tensor& t : call.in) rank = std::max(rank, t.rank());
  int64_t given = known_integer(call.params[0]);
  if (rank < 0) return call.returns(call.in[0].dtype(), Shape::unknown());
  if (given == kUnknownInt) return call.returns(call.in[0].dtype(), unknown_dims(rank));
  if (rank == 0)
    fail(ErrorKind::invalid_argument, call.name(), ": scalars cannot be joined; use tf.stack (got shape [])");
  int axis = normalize_axis(call.name(), given, rank);
  Shape shape = unknown_dims(rank);
  int64_t length = 0;
  for (const Tensor& t : call.in) {
    if (t.dtype() != call.in[0].dtype()) fail_list_dtypes(call);
    merge_dims(call, shape, t.shape(), axis);
    length = known_sum(length, t.rank() < 0 ? -1 : t.dim(axis));
  }
  shape[axis] = length;
  call.returns(call.in[0].dtype(), shape);
}

const Op& concat_op = define(Op{
    .name = "ConcatV2",
    .arguments = {tensors("values", any_dtype), integer("axis")},
    .infer = infer_concat,
    .infer_staged = infer_concat_staged,
    .kernel =
        [](Call& call) {
          const Tensor& y = call.out[0];
          int axis = normalize_axis(call.name(), call.params.integer(0), y.rank());
          int64_t outer = y.shape().elements(0, axis), row = y.shape().elements(axis, y.rank()), at = 0;
          size_t size = size_of(y.dtype());
          for (const Tensor& x : call.in) {
            int64_t length = x.shape().elements(axis, x.rank());
            copy_rows(y.dtype(), x.raw(), length, offset(y.mutable_raw(), at, size), row, length, outer);
            at += length;
          }
        },
    .vjp =
        [](RuleContext& c) {
          int axis = normalize_axis("concat", c.params.integer(0), c.shape(0).rank());
          Ints sizes;
          for (int i = 0; i < c.inputs(); ++i) sizes.push_back(c.shape(i)[axis]);
          auto parts = split(c.dy(), sizes, axis);
          for (int i = 0; i < c.inputs(); ++i) c.set(i, parts[size_t(i)]);
        },
    .names = {"concat"},
    .doc = "Tensors joined along `axis`.\n\n>>> tf.concat([[1, 2], [3]], 0)\n[1, 2, 3]",
});

void infer_split(Call& call) {
  const Tensor& x = call.in[0];
  const Param& sizes = call.params[0];
  int64_t axis = known_integer(call.params[1]);
  if (!count_known(sizes))
    fail(ErrorKind::value, call.name(),
         ": Cannot infer argument `num` from the sizes: their number must be known while tracing");
  bool placed = x.rank() >= 0 && axis != kUnknownInt;
  if (placed) axis = normalize_axis(call.name(), axis, x.rank());
  int64_t total = 0, rest = -1;
  int open = 0;
  for (int64_t n : sizes.ints) {
    if (n < 0 && n > kUnknownCount)
      fail(ErrorKind::invalid_argument, call.name(), ": Split size must be >= 0. Got: ", n);
    if (n < 0)
      ++open;
    else
      total += n;
  }
  int64_t length = placed ? x.dim(int(axis)) : -1;
  if (length >= 0 && (total > length || (open == 0 && total != length)))
    fail(ErrorKind::invalid_argument, call.name(), ": the sizes must add up to dimension ", axis, " of the input, ",
         length, "; got a sum of ", total);
  if (open == 1 && length >= 0) rest = length - total;
  for (int64_t n : sizes.ints) {
    Shape shape = placed ? x.shape() : x.rank() < 0 ? Shape::unknown() : unknown_dims(x.rank());
    if (placed) shape[int(axis)] = n < 0 ? rest : n;
    call.returns(x.dtype(), shape);
  }
}

const Op& split_op = define(Op{
    .name = "SplitV",
    .arguments = {tensor("value", any_dtype), ints("size_splits"), integer("axis", 0)},
    .infer_staged = infer_split,
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          int axis = normalize_axis(call.name(), call.params.integer(1), x.rank());
          int64_t outer = x.shape().elements(0, axis), row = x.shape().elements(axis, x.rank()), at = 0;
          int64_t inner = x.shape().elements(axis + 1, x.rank()), total = 0;
          size_t size = size_of(x.dtype());
          for (int64_t n : call.params.ints(0)) {
            if (n < 0) fail(ErrorKind::invalid_argument, call.name(), ": Split size must be >= 0. Got: ", n);
            total += n;
          }
          if (total != x.dim(axis))
            fail(ErrorKind::invalid_argument, call.name(), ": the sizes must add up to dimension ", axis,
                 " of the input, ", x.dim(axis), "; got a sum of ", total);
          for (int64_t n : call.params.ints(0)) {
            Shape shape = x.shape();
            shape[axis] = n;
            int64_t length = n * inner;
            if (outer == 1) {  // rows of x: the buffer is shared
              call.out.push_back(x.view(shape, at));
            } else {
              call.out.push_back(Tensor::allocate(x.dtype(), shape));
              const Tensor& y = call.out.back();
              copy_rows(x.dtype(), offset(x.raw(), at, size), row, y.mutable_raw(), length, length, outer);
            }
            at += length;
          }
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          SmallVector<Tensor, 8> parts;
          for (int i = 0; i < c.outputs(); ++i) parts.push_back(c.dy(i));
          c.set(0, concat(parts, c.params.integer(1)));
        },
    .returns_list = true,
});

const Op& pack_op = define(Op{
    .name = "Pack",
    .arguments = {tensors("values", any_dtype), integer("axis", 0)},
    .infer =
        [](Call& call) {
          if (call.in.empty()) fail(ErrorKind::value, call.name(), ": values must hold at least one tensor");
          const Shape& first = call.in[0].shape();
          for (size_t i = 1; i < call.in.size(); ++i) {
            if (call.in[i].dtype() != call.in[0].dtype()) fail_list_dtypes(call);
            if (!(call.in[i].shape() == first))
              fail(ErrorKind::invalid_argument, call.name(),
                   ": Shapes of all inputs must match: values[0].shape = ", first, " != values[", i,
                   "].shape = ", call.in[i].shape());
          }
          int64_t axis = call.params.integer(0);
          if (axis < -first.rank() - 1 || axis > first.rank())
            fail(ErrorKind::value, call.name(), ": axis = ", axis, " not in [", -first.rank() - 1, ", ",
                 first.rank() + 1, ")");
          Shape shape = first;
          shape.insert(int(axis < 0 ? axis + first.rank() + 1 : axis), int64_t(call.in.size()));
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          if (call.in.empty()) fail(ErrorKind::value, call.name(), ": values must hold at least one tensor");
          Shape shape = Shape::unknown();
          for (const Tensor& t : call.in) {
            if (t.dtype() != call.in[0].dtype()) fail_list_dtypes(call);
            merge_dims(call, shape, t.shape(), -1);
          }
          int64_t axis = known_integer(call.params[0]);
          if (!shape.known_rank()) return call.returns(call.in[0].dtype(), shape);
          if (axis == kUnknownInt) return call.returns(call.in[0].dtype(), unknown_dims(shape.rank() + 1));
          if (axis < -shape.rank() - 1 || axis > shape.rank())
            fail(ErrorKind::value, call.name(), ": axis = ", axis, " not in [", -shape.rank() - 1, ", ",
                 shape.rank() + 1, ")");
          shape.insert(int(axis < 0 ? axis + shape.rank() + 1 : axis), int64_t(call.in.size()));
          call.returns(call.in[0].dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &y = call.out[0], &first = call.in[0];
          int64_t axis = call.params.integer(0);
          if (axis < 0) axis += first.rank() + 1;
          int64_t outer = first.shape().elements(0, int(axis)),
                  length = first.shape().elements(int(axis), first.rank());
          size_t size = size_of(y.dtype());
          int64_t n = int64_t(call.in.size());
          for (int64_t i = 0; i < n; ++i)
            copy_rows(y.dtype(), call.in[size_t(i)].raw(), length, offset(y.mutable_raw(), i * length, size),
                      n * length, length, outer);
        },
    .vjp =
        [](RuleContext& c) {
          auto parts = unstack(c.dy(), c.params.integer(0));
          for (int i = 0; i < c.inputs(); ++i) c.set(i, parts[size_t(i)]);
        },
    .names = {"stack"},
    .doc = "Equally shaped tensors put side by side along a new dimension `axis`.\n\n>>> tf.stack([[1, 2], [3, "
           "4]])\n[[1, 2], [3, 4]]",
});

const Op& unpack_op = define(Op{
    .name = "Unpack",
    .arguments = {tensor("value", any_dtype), integer("num", -1), integer("axis", 0)},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          int64_t num = known_integer(call.params[0]), axis = known_integer(call.params[1]);
          Shape shape = x.shape();
          if (axis == kUnknownInt) {
            shape = x.rank() > 0 ? unknown_dims(x.rank() - 1) : Shape::unknown();
          } else if (x.rank() >= 0) {
            if (x.rank() == 0)
              fail(ErrorKind::value, "unstack: Argument `axis` = ", axis,
                   " not in range [0, 0): a scalar has no dimension to take apart");
            int place = normalize_axis(call.name(), axis, x.rank());
            if (x.dim(place) >= 0) num = x.dim(place);
            shape.remove(place);
          }
          if (num < 0)
            fail(ErrorKind::value, call.name(), ": Cannot infer argument `num` from shape ", PythonShape{x.shape()});
          for (int64_t i = 0; i < num; ++i) call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          if (x.rank() == 0)
            fail(ErrorKind::value, "unstack: Argument `axis` = ", call.params.integer(1),
                 " not in range [0, 0): a scalar has no dimension to take apart");
          int axis = normalize_axis(call.name(), call.params.integer(1), x.rank());
          int64_t outer = x.shape().elements(0, axis), n = x.dim(axis), length = x.shape().elements(axis + 1, x.rank());
          if (call.params.integer(0) >= 0 && call.params.integer(0) != n)
            fail(ErrorKind::invalid_argument, "unstack: num must be ", n, "; got ", call.params.integer(0),
                 " for shape ", x.shape());
          Shape shape = x.shape();
          shape.remove(axis);
          size_t size = size_of(x.dtype());
          for (int64_t i = 0; i < n; ++i) {
            if (outer == 1) {
              call.out.push_back(x.view(shape, i * length));
              continue;
            }
            call.out.push_back(Tensor::allocate(x.dtype(), shape));
            copy_rows(x.dtype(), offset(x.raw(), i * length, size), n * length, call.out.back().mutable_raw(), length,
                      length, outer);
          }
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          SmallVector<Tensor, 8> parts;
          for (int i = 0; i < c.outputs(); ++i) parts.push_back(c.dy(i));
          c.set(0, stack(parts, c.params.integer(1)));
        },
    .returns_list = true,
});

// ---- repeating, reversing, padding

const Op& tile_op = define(Op{
    .name = "Tile",
    .arguments = {tensor("input", any_dtype), ints("multiples")},
    .infer =
        [](Call& call) {
          Shape shape = call.in[0].shape();
          const Ints& m = call.params.ints(0);
          if (int(m.size()) != shape.rank())
            fail(ErrorKind::invalid_argument, call.name(), ": Expected multiples argument to be a vector of length ",
                 shape.rank(), " but got length ", m.size());
          for (int i = 0; i < shape.rank(); ++i) {
            if (m[size_t(i)] < 0)
              fail(ErrorKind::invalid_argument, call.name(), ": Expected multiples[", i, "] >= 0, but got ",
                   m[size_t(i)]);
            shape[i] *= m[size_t(i)];
          }
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Param& m = call.params[0];
          int64_t rank = x.rank() >= 0 ? x.rank() : count_known(m) ? int64_t(m.ints.size()) : -1;
          if (rank < 0) return call.returns(x.dtype(), Shape::unknown());
          if (x.rank() >= 0 && count_known(m) && int(m.ints.size()) != x.rank())
            fail(ErrorKind::invalid_argument, call.name(), ": Expected multiples argument to be a vector of length ",
                 x.rank(), " but got length ", m.ints.size());
          Shape shape = unknown_dims(rank);
          for (int i = 0; i < rank && count_known(m) && x.rank() >= 0; ++i)
            shape[i] = known_product(x.dim(i), std::max<int64_t>(m.ints[size_t(i)], -1));
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (y.size() == 0) return;
          // The result, seen as (m0, d0, m1, d1, ...), is x broadcast from (1, d0, 1, d1, ...).
          PauseRecording paused;
          Shape narrow, wide;
          bool simple = 2 * x.rank() <= kMaxRank;
          for (int i = 0; i < x.rank() && simple; ++i) {
            int64_t m = call.params.ints(0)[size_t(i)];
            narrow.append(1), narrow.append(x.dim(i));
            wide.append(m), wide.append(x.dim(i));
          }
          if (simple) {
            call.out[0] = broadcast_to(x.view(narrow), wide).view(y.shape());
            return;
          }
          Tensor t = x;
          for (int i = 0; i < x.rank(); ++i) {
            SmallVector<Tensor, 8> parts;
            for (int64_t m = 0; m < call.params.ints(0)[size_t(i)]; ++m) parts.push_back(t);
            t = concat(parts, i);
          }
          call.out[0] = t;
        },
    .vjp =
        [](RuleContext& c) {
          const Shape x = c.shape(0);
          if (2 * x.rank() > kMaxRank)
            fail(ErrorKind::unimplemented, "tile: its gradient takes at most ", kMaxRank / 2, " dimensions");
          Shape wide;
          Ints repeated;
          for (int i = 0; i < x.rank(); ++i) {
            repeated.push_back(wide.rank());
            wide.append(c.params.ints(0)[size_t(i)]), wide.append(x[i]);
          }
          c.set(0, reduce_sum(reshape(c.dy(), wide), repeated, false));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .names = {"tile"},
    .doc = "`input` repeated `multiples` times along each dimension.\n\n>>> tf.tile([1, 2], [2])\n[1, 2, 1, 2]",
});

const Op& reverse_op = define(Op{
    .name = "ReverseV2",
    .arguments = {tensor("tensor", any_dtype), ints("axis")},
    .infer =
        [](Call& call) {
          for (int64_t a : call.params.ints(0)) normalize_axis(call.name(), a, call.in[0].rank());
          call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .infer_staged = same_as_input,
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (x.size() == 0) return;
          int64_t stride[kMaxRank], start = 0;
          strides_of(x.shape(), stride);
          for (int64_t a : call.params.ints(0)) {
            int i = normalize_axis(call.name(), a, x.rank());
            start += stride[i] * (x.dim(i) - 1);
            stride[i] = -stride[i];
          }
          by_size(x.dtype(), [&]<class T>(T*) {
            gather_strided(static_cast<const T*>(x.raw()) + start, y.mutable_data<T>(), x.shape(), stride);
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, reverse(c.dy(), c.params.ints(0))); },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .names = {"reverse"},
    .doc = "Elements in reverse order along the dimensions `axis`.\n\n>>> tf.reverse([1, 2, 3], [0])\n[3, 2, 1]",
});

// Paddings are flat: before and after the first dimension, before and after the second, ...
const Op& pad_op = define(Op{
    .name = "PadV2",
    .arguments = {tensor("input", any_dtype), ints("paddings"), tensor("constant_values", any_dtype)},
    .infer =
        [](Call& call) {
          Shape shape = call.in[0].shape();
          const Ints& p = call.params.ints(0);
          if (int(p.size()) != 2 * shape.rank())
            fail(ErrorKind::invalid_argument, "pad: The first dimension of paddings must be the rank of inputs, ",
                 shape.rank(), "; got ", p.size() / 2);
          for (int i = 0; i < shape.rank(); ++i) {
            int64_t before = p[size_t(2 * i)], after = p[size_t(2 * i) + 1];
            if (before < 0 || after < 0)
              fail(ErrorKind::invalid_argument, "pad: Paddings must be non-negative: ", before, " ", after);
            shape[i] += before + after;
          }
          call.returns(call.in[0].dtype(), shape);
        },
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          const Param& p = call.params[0];
          int64_t rank = x.rank() >= 0 ? x.rank() : count_known(p) ? int64_t(p.ints.size() / 2) : -1;
          if (rank < 0) return call.returns(x.dtype(), Shape::unknown());
          if (count_known(p) && int64_t(p.ints.size()) != 2 * rank)
            fail(ErrorKind::invalid_argument, "pad: The first dimension of paddings must be the rank of inputs, ", rank,
                 "; got ", p.ints.size() / 2);
          Shape shape = unknown_dims(rank);
          for (int i = 0; i < rank && count_known(p) && x.rank() >= 0; ++i)
            shape[i] = known_sum(x.dim(i), known_sum(std::max<int64_t>(p.ints[size_t(2 * i)], -1),
                                                     std::max<int64_t>(p.ints[size_t(2 * i) + 1], -1)));
          call.returns(x.dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            T* to = y.mutable_data<T>();
            std::fill(to, to + y.size(), *static_cast<const T*>(call.in[1].raw()));
            if (x.size() == 0) return;
            int64_t y_stride[kMaxRank];
            strides_of(y.shape(), y_stride);
            int rank = x.rank();
            int64_t row = rank ? x.dim(rank - 1) : 1, rows = x.size() / row;
            for (int64_t r = 0; r < rows; ++r) {
              int64_t rest = r, at = rank ? call.params.ints(0)[size_t(2 * (rank - 1))] : 0;
              for (int d = rank - 2; d >= 0; --d) {
                at += (rest % x.dim(d) + call.params.ints(0)[size_t(2 * d)]) * y_stride[d];
                rest /= x.dim(d);
              }
              std::copy(from + r * row, from + (r + 1) * row, to + at);
            }
          });
        },
    .vjp =
        [](RuleContext& c) {
          const Shape x = c.shape(0);
          Ints begin, size;
          for (int i = 0; i < x.rank(); ++i) begin.push_back(c.params.ints(0)[size_t(2 * i)]), size.push_back(x[i]);
          if (c.wants(0)) c.set(0, slice(c.dy(), begin, size));
        },
});

}  // namespace

Tensor identity(const Tensor& x) { return run(identity_op, {x}); }
Tensor reshape(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : run(reshape_op, {x}, {Param(shape)});
}
Tensor transpose(const Tensor& x, Ints permutation) {
  return run(transpose_op, {x}, {Param(std::move(permutation)), Param(false)});
}
Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : run(broadcast_to_op, {x}, {Param(shape)});
}
Tensor concat(std::span<const Tensor> parts, int64_t axis) { return run(concat_op, parts, {Param(axis)}); }
Tensor stack(std::span<const Tensor> parts, int64_t axis) { return run(pack_op, parts, {Param(axis)}); }
Tensors split(const Tensor& x, const Ints& sizes, int64_t axis) {
  return run_all(split_op, std::span(&x, 1), {Param(sizes), Param(axis)});
}
Tensors unstack(const Tensor& x, int64_t axis) {
  return run_all(unpack_op, std::span(&x, 1), {Param(int64_t(-1)), Param(axis)});
}
Tensor pad(const Tensor& x, const Ints& paddings) {
  return run(pad_op, {x, Tensor::number(x.dtype(), 0)}, {Param(paddings)});
}
Tensor reverse(const Tensor& x, Ints axes) { return run(reverse_op, {x}, {Param(std::move(axes))}); }

Tensor unbroadcast(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (shape.rank() == 0) return sum_of_all(x);
  int skip = x.rank() - shape.rank();
  Ints repeated;
  for (int i = 0; i < x.rank(); ++i)
    if (i < skip || (shape[i - skip] == 1 && x.dim(i) != 1)) repeated.push_back(i);
  Tensor sum = repeated.empty() ? x : reduce_sum(x, std::move(repeated), false);
  return reshape(sum, shape);
}

// Elements can only be made of a shape that is known.
static void require_known(const Shape& shape) {
  if (!shape.fully_known())
    fail(ErrorKind::needs_value, "a tensor of shape ", shape,
         " cannot be made while tracing: its shape is not known yet");
}
Tensor zeros(DType dtype, const Shape& shape) {
  require_known(shape);
  Tensor t = Tensor::allocate(dtype, shape);
  if (dtype != DType::string) std::memset(t.mutable_raw(), 0, t.bytes());
  return t;
}
Tensor filled(DType dtype, const Shape& shape, double value) {
  Tensor one = Tensor::number(dtype, value);
  if (shape.rank() == 0) return one;
  require_known(shape);
  PauseRecording paused;
  return broadcast_to(one, shape);
}
Tensor filled_like(const Tensor& x, double value) {
  if (x.size() >= 0) return filled(x.dtype(), x.shape(), value);
  PauseRecording paused;
  Tensor shape = run(shape_op, {x}, {Param(DType::int64)});
  return run(broadcast_to_op, {Tensor::number(x.dtype(), value)}, {Param(shape, int(Argument::Kind::ints))});
}
Tensor int_tensor(std::span<const int64_t> values, DType dtype) {
  Tensor t = Tensor::allocate(dtype, {int64_t(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::int32)
      t.mutable_data<int32_t>()[i] = int32_t(values[i]);
    else
      t.mutable_data<int64_t>()[i] = values[i];
  }
  return t;
}
Scratch<int64_t> integers_in(const Tensor& t) {
  Scratch<int64_t> result(t.size());
  visit<integers.bits>(t.dtype(), [&](auto* p) {
    const auto* from = t.data<Pointee<decltype(p)>>();
    std::transform(from, from + t.size(), result.begin(), [](auto i) { return int64_t(i); });
  });
  return result;
}
Ints read_ints(const Tensor& t) {
  Ints result;
  for (int64_t i : integers_in(t)) result.push_back(i);
  return result;
}

}  // namespace tapeflow
