// Fourier transforms over the last dimensions. Lengths and axes are brought into this form by
// tapeflow/_src/ops/signal/spectral.py.
#include "kernels/fourier.h"

#include "ops/family.h"

namespace tapeflow {
namespace {

constexpr DTypes real_floats = DTypes(DType::float32) | DType::float64;

int checked_rank(const Call& call, int64_t rank) {
  if (call.in[0].rank() < rank)
    fail(ErrorKind::invalid_argument, call.name(), ": Input must have rank of at least ", rank,
         " but got: ", call.in[0].shape());
  return int(rank);
}

double scale_of(const Shape& shape, int rank) {
  return 1.0 / double(shape.elements(shape.rank() - rank, shape.rank()));
}

// Complex transforms over `rank` dimensions, the last `skip` of them left out.
template <class T>
void complex_axes(const void* x, void* y, const Shape& shape, int rank, int skip, bool inverse, double scale) {
  auto from = static_cast<const std::complex<T>*>(x);
  auto to = static_cast<std::complex<T>*>(y);
  int last = shape.rank() - 1 - skip, first = shape.rank() - rank;
  for (int axis = last; axis >= first; --axis) {
    fourier<T>(from, to, shape.elements(0, axis), shape[axis], shape.elements(axis + 1, shape.rank()), inverse,
               axis == last ? scale : 1.0);
    from = to;
  }
}

// The transform is linear and, but for the scale, equal to its transpose: the adjoint is the other direction.
Tensor complex_transform(const Tensor& x, int64_t rank, bool inverse);

constexpr struct : Keys {
  Key<int64_t> rank = next("rank");
  Key<bool> inverse = next("inverse");
} fourier_params;
const Op& fourier_op = define(Op{
    .name = "Fourier",
    .arguments = {tensor("input", complexes), integer(fourier_params.rank), flag(fourier_params.inverse)},
    .infer =
        [](Call& call) {
          checked_rank(call, call.params[fourier_params.rank]);
          call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          int rank = int(call.params[fourier_params.rank]);
          bool inverse = call.params[fourier_params.inverse];
          if (x.size() == 0) return;
          double scale = inverse ? scale_of(x.shape(), rank) : 1.0;
          if (x.dtype() == DType::complex64)
            complex_axes<float>(x.raw(), y.mutable_raw(), x.shape(), rank, 0, inverse, scale);
          else
            complex_axes<double>(x.raw(), y.mutable_raw(), x.shape(), rank, 0, inverse, scale);
        },
    .vjp =
        [](RuleContext& c) {
          int64_t rank = c.params[fourier_params.rank];
          bool inverse = c.params[fourier_params.inverse];
          const Shape& shape = c.shape(0);
          double n = double(shape.elements(shape.rank() - int(rank), shape.rank()));
          c.set(0, scaled(complex_transform(c.dy(), rank, !inverse), inverse ? 1.0 / n : n));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .batch = batch_leading,
});
Tensor complex_transform(const Tensor& x, int64_t rank, bool inverse) {
  return run(fourier_op, {x}, {Param(rank), Param(inverse)});
}

Tensor real_transform(const Tensor& x, int64_t rank);
Tensor transform_to_real(const Tensor& x, int64_t rank, int64_t length);

// How often a value of the half spectrum stands in the whole one: twice, but for the first and, at even lengths, the
// last.
Tensor multiplicity(DType dtype, int64_t length, bool reciprocal) {
  int64_t kept = length / 2 + 1;
  Tensor weights = Tensor::allocate(DType::float64, {kept});
  for (int64_t k = 0; k < kept; ++k) {
    double times = k == 0 || (length % 2 == 0 && k == kept - 1) ? 1.0 : 2.0;
    weights.mutable_data<double>()[k] = reciprocal ? 1.0 / times : times;
  }
  return cast(weights, dtype);
}

constexpr struct : Keys {
  Key<int64_t> rank = next("rank");
} real_fourier_params;
const Op& real_fourier_op = define(Op{
    .name = "RealFourier",
    .arguments = {tensor("input", real_floats), integer(real_fourier_params.rank)},
    .infer =
        [](Call& call) {
          int rank = checked_rank(call, call.params[real_fourier_params.rank]);
          Shape shape = call.in[0].shape();
          int last = shape.rank() - 1;
          if (rank > 0 && last >= 0 && shape[last] > 0) shape[last] = shape[last] / 2 + 1;
          call.returns(call.in[0].dtype() == DType::float32 ? DType::complex64 : DType::complex128, shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (x.size() == 0) return;
          int rank = int(call.params[real_fourier_params.rank]);
          int64_t n = x.shape().back(), rows = x.size() / n;
          visit<real_floats.bits>(x.dtype(), [&]<class T>(T*) {
            fourier_of_real<T>(x.data<T>(), y.mutable_data<std::complex<T>>(), rows, n);
            complex_axes<T>(y.raw(), y.mutable_raw(), y.shape(), rank, 1, false, 1.0);
          });
        },
    .vjp =
        [](RuleContext& c) {
          const Shape& shape = c.shape(0);
          int64_t rank = c.params[real_fourier_params.rank], length = shape.back();
          if (shape.elements() == 0) return c.set(0, zeros(c.dtype(0), shape));
          double n = double(shape.elements(shape.rank() - int(rank), shape.rank()));
          Tensor halved = multiply(c.dy(), multiplicity(c.output_spec(0).dtype, length, true));
          c.set(0, scaled(transform_to_real(halved, rank, length), n));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .batch = batch_leading,
});

constexpr struct : Keys {
  Key<int64_t> rank = next("rank"), length = next("length");
} to_real_params;
const Op& to_real_op = define(Op{
    .name = "FourierToReal",
    .arguments = {tensor("input", complexes), integer(to_real_params.rank), integer(to_real_params.length)},
    .infer =
        [](Call& call) {
          checked_rank(call, call.params[to_real_params.rank]);
          Shape shape = call.in[0].shape();
          int64_t length = call.params[to_real_params.length];
          int last = shape.rank() - 1;
          if (length < 0 || (length > 0 && shape[last] != length / 2 + 1))
            fail(ErrorKind::invalid_argument, call.name(), ": Input dimension ", last, " must have length of at least ",
                 length / 2 + 1, " but got: ", shape[last]);
          shape[last] = length;
          call.returns(call.in[0].dtype() == DType::complex64 ? DType::float32 : DType::float64, shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (y.size() == 0) return;
          int rank = int(call.params[to_real_params.rank]);
          int64_t n = y.shape().back(), rows = y.size() / n;
          visit<real_floats.bits>(y.dtype(), [&]<class T>(T*) {
            double scale = scale_of(y.shape(), rank);
            if (rank == 1) return fourier_to_real<T>(x.data<std::complex<T>>(), y.mutable_data<T>(), rows, n, scale);
            Tensor middle = Tensor::allocate(x.dtype(), x.shape());
            complex_axes<T>(x.raw(), middle.mutable_raw(), x.shape(), rank, 1, true, 1.0);
            fourier_to_real<T>(middle.data<std::complex<T>>(), y.mutable_data<T>(), rows, n, scale);
          });
        },
    .vjp =
        [](RuleContext& c) {
          const Shape shape = c.output_spec(0).shape;
          int64_t rank = c.params[to_real_params.rank], length = c.params[to_real_params.length];
          if (shape.elements() == 0) return c.set(0, zeros(c.dtype(0), c.shape(0)));
          Tensor doubled = multiply(real_transform(c.dy(), rank), multiplicity(c.dtype(0), length, false));
          c.set(0, scaled(doubled, scale_of(shape, int(rank))));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .batch = batch_leading,
});
Tensor real_transform(const Tensor& x, int64_t rank) { return run(real_fourier_op, {x}, {Param(rank)}); }
Tensor transform_to_real(const Tensor& x, int64_t rank, int64_t length) {
  return run(to_real_op, {x}, {Param(rank), Param(length)});
}

}  // namespace
}  // namespace tapeflow
