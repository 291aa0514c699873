// Eigenvalues and eigenvectors.
#include "op/cost.h"
#include "ops/linalg/matrices.h"

namespace tapeflow {
using namespace linalg;
namespace {

template <class T> void eigh_batches(bool vectors, const Tensor& x, const Tensor& e, const Tensor& v) {
  const int64_t n = x.shape().back();
  for_matrices(n ? x.size() / (n * n) : 0, 10 * cube(n), [&](int64_t i) {
    const T* a = x.data<T>() + i * n * n;
    BlockVector<RealOf<T>> values(static_cast<size_t>(n));
    if (has_nan_or_infinity(a, n * n) ||
        !factor_eigen_hermitian(n, a, values.data(), vectors ? v.mutable_data<T>() + i * n * n : nullptr))
      fail(ErrorKind::invalid_argument,
           "linalg.eigh: Self-adjoint eigen decomposition was not successful. The input might not be valid.");
    std::copy(values.begin(), values.end(), e.mutable_data<T>() + i * n);
  });
}
constexpr struct : Keys {
  Key<bool> compute_v = next("compute_v");
} eigh_params;
const Op& eigh_op = define(Op{
    .name = "SelfAdjointEigV2",
    .planning = {.cost = {cost::matrices, 0.5}},
    .arguments = {tensor("input", accepted), flag(eigh_params.compute_v, true)},
    .infer =
        [](Call& call) {
          Matrices m = square_matrices("linalg.eigh", call.in[0].shape());
          call.returns(call.in[0].dtype(), m.shape(m.rows));
          if (call.params[eigh_params.compute_v]) call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .kernel = widened<[](Call& call) {
      const bool vectors = call.params[eigh_params.compute_v];
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        eigh_batches<Pointee<decltype(p)>>(vectors, call.in[0], call.out[0], vectors ? call.out[1] : Tensor());
      });
    }>,
    // Only the lower triangle is read, so it takes the whole gradient.
    .vjp =
        [](RuleContext& c) {
          Tensor dx;
          if (!c.params[eigh_params.compute_v] || !c.has_dy(1)) {
            Tensor v =
                c.params[eigh_params.compute_v] ? c.y(1) : run_all(eigh_op, std::span(&c.x(0), 1), {Param(true)})[1];
            dx = matmul(multiply(v, with_row(c.dy(0))), v, false, false, false, true);
          } else {
            const Tensor& v = c.y(1);
            Tensor inner = multiply(reciprocal_gaps(c.y(0)), matmul(v, c.dy(1), false, false, true));
            if (c.has_dy(0)) inner = add(matrix_diag(c.dy(0)), inner);
            dx = matmul(v, matmul(inner, v, false, false, false, true), false, false);
          }
          c.set(0, lower_half(add(dx, adjoint(dx))));
        },
    .keep = keep_input(0) | keep_output(0) | keep_output(1),
    .batch = batch_leading,
    .returns_list = true,
});

template <class T> void eig_batches(bool vectors, const Tensor& x, const Tensor& e, const Tensor& v) {
  using C = ComplexOf<T>;
  const int64_t n = x.shape().back();
  for_matrices(n ? x.size() / (n * n) : 0, 25 * cube(n), [&](int64_t i) {
    const T* a = x.data<T>() + i * n * n;
    if (has_nan_or_infinity(a, n * n) ||
        !factor_eigen(n, a, e.mutable_data<C>() + i * n, vectors ? v.mutable_data<C>() + i * n * n : nullptr))
      fail(ErrorKind::invalid_argument,
           "linalg.eig: Eigen decomposition was not successful. The input might not be valid.");
  });
}
DType complex_dtype(DType d) {
  return d == DType::float64 || d == DType::complex128 ? DType::complex128 : DType::complex64;
}
constexpr struct : Keys {
  Key<bool> compute_v = next("compute_v");
} eig_params;
const Op& eig_op = define(Op{
    .name = "Eig",
    .planning = {.cost = {cost::matrices, 3.5}},
    .arguments = {tensor("input", computed), flag(eig_params.compute_v, true)},
    .infer =
        [](Call& call) {
          Matrices m = square_matrices("linalg.eig", call.in[0].shape());
          DType dtype = complex_dtype(call.in[0].dtype());
          call.returns(dtype, m.shape(m.rows));
          if (call.params[eig_params.compute_v]) call.returns(dtype, call.in[0].shape());
        },
    .kernel =
        [](Call& call) {
          const bool vectors = call.params[eig_params.compute_v];
          visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
            eig_batches<Pointee<decltype(p)>>(vectors, call.in[0], call.out[0], vectors ? call.out[1] : Tensor());
          });
        },
    // The vectors have norm 1, which takes their own direction's real part out of the cotangent.
    .vjp =
        [](RuleContext& c) {
          Tensor v = c.params[eig_params.compute_v] ? c.y(1) : run_all(eig_op, std::span(&c.x(0), 1), {Param(true)})[1];
          Tensor inner = matrix_diag(c.dy(0));
          if (c.params[eig_params.compute_v] && c.has_dy(1)) {
            Tensor v_dv = matmul(v, c.dy(1), false, false, true);
            Tensor along = cast(real_part(matrix_diag_part(v_dv, Ints{0}, "RIGHT_LEFT")), v.dtype());
            Tensor across = subtract(v_dv, multiply(matmul(v, v, false, false, true), with_row(along)));
            inner = add(inner, multiply(conj(reciprocal_gaps(c.y(0))), across));
          }
          Tensor v_adjoint = adjoint(v);
          Tensor dx = solve(v_adjoint, matmul(inner, v_adjoint, false, false));
          c.set(0, complexes.has(c.dtype(0)) ? dx : real_part(dx));
        },
    .keep = keep_input(0) | keep_output(0) | keep_output(1),
    .batch = batch_leading,
    .returns_list = true,
});

}  // namespace

}  // namespace tapeflow
