// Functions of matrices: square root, logarithm, exponential.
#include "op/cost.h"
#include "ops/linalg/matrices.h"

namespace tapeflow {
using namespace linalg;
namespace {

// ---- functions of matrices. Their derivative at A in the direction E is the upper right block of f([[A, E], [0, A]]).

Tensor derivative_of_function(const Op& f, const Tensor& a, const Tensor& direction) {
  const int64_t n = a.shape().back();
  Tensor top[] = {a, direction}, bottom[] = {zeros_like(a), a};
  Tensor rows[] = {concat(top, a.rank() - 1), concat(bottom, a.rank() - 1)};
  return part(run(f, {concat(rows, a.rank() - 2)}), 0, n, n, n);
}
void function_vjp(RuleContext& c) { c.set(0, derivative_of_function(c.op, adjoint(c.x(0)), c.dy())); }
void function_jvp(RuleContext& c) { c.set(0, derivative_of_function(c.op, c.x(0), c.x_dot(0))); }
void infer_function(Call& call) {
  square_matrices(call.name(), call.in[0].shape());
  call.returns(call.in[0].dtype(), call.in[0].shape());
}

// By way of complex<double>; a real matrix without a real result gives NaN.
template <class T, class F> void complex_function(F function, const Tensor& x, const Tensor& y) {
  const int64_t n = x.shape().back(), size = n * n;
  for_matrices(size ? x.size() / size : 0, 40 * cube(n), [&](int64_t i) {
    const T* from = x.data<T>() + i * size;
    T* to = y.mutable_data<T>() + i * size;
    if (has_nan_or_infinity(from, size)) return fill_nan(to, size);
    BlockVector<std::complex<double>> a(from, from + size);
    if (!function(n, a.data())) return fill_nan(to, size);
    if constexpr (is_complex<T>) {
      std::transform(a.begin(), a.end(), to, [](std::complex<double> z) { return T(z); });
    } else {
      double largest = 0, imaginary = 0;
      for (const auto& z : a)
        largest = std::max(largest, std::abs(z)), imaginary = std::max(imaginary, std::abs(z.imag()));
      if (imaginary > 1e-6 * largest) return fill_nan(to, size);
      std::transform(a.begin(), a.end(), to, [](std::complex<double> z) { return T(z.real()); });
    }
  });
}
const Op& square_root_op = define(Op{
    .name = "MatrixSquareRoot",
    .planning = {.cost = {cost::matrices, 8}},
    .arguments = {tensor("input", accepted)},
    .infer = infer_function,
    .kernel = widened<[](Call& call) {
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        complex_function<Pointee<decltype(p)>>(square_root, call.in[0], call.out[0]);
      });
    }>,
    .vjp = function_vjp,
    .jvp = function_jvp,
    .keep = keep_input(0),
    .batch = batch_leading,
    .names = {"linalg.sqrtm", "matrix_square_root"},
    .doc = R"(The principal square root: `Y` with `Y Y = input`.

Args:
  input: A batch of square matrices, `[..., n, n]`.

Returns: A tensor of the shape and dtype of `input`.

Gradient: The solution of a Sylvester equation.

>>> tf.linalg.sqrtm([[4., 0.], [0., 9.]])
<tf.Tensor: shape=(2, 2), dtype=float32, numpy=
array([[2., 0.],
       [0., 3.]], dtype=float32)>)",
});
const Op& logarithm_op = define(Op{
    .name = "MatrixLogarithm",
    .planning = {.cost = {cost::matrices, 13}},
    .arguments = {tensor("input", complexes)},
    .infer = infer_function,
    .kernel =
        [](Call& call) {
          visit<complexes.bits>(call.in[0].dtype(), [&](auto* p) {
            complex_function<Pointee<decltype(p)>>(logarithm, call.in[0], call.out[0]);
          });
        },
    .vjp = function_vjp,
    .jvp = function_jvp,
    .keep = keep_input(0),
    .batch = batch_leading,
    .names = {"linalg.logm"},
    .doc = R"(The principal logarithm of complex matrices: `Y` with `expm(Y) = input`.

Args:
  input: A batch of complex square matrices, `[..., n, n]`.

Returns: A tensor of the shape and dtype of `input`.

Gradient: The Fréchet derivative of the logarithm, by a block matrix.

>>> tf.math.real(tf.linalg.logm(tf.eye(2, dtype=tf.complex64)))
<tf.Tensor: shape=(2, 2), dtype=float32, numpy=
array([[0., 0.],
       [0., 0.]], dtype=float32)>)",
});
const Op& exponential_op = define(Op{
    .name = "MatrixExponential",
    .planning = {.cost = {cost::matrices, 0.28}},
    .arguments = {tensor("input", accepted)},
    .infer = infer_function,
    .kernel = widened<[](Call& call) {
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        using T = Pointee<decltype(p)>;
        const int64_t n = call.in[0].shape().back();
        copy<T>(call.in[0], call.out[0]);
        for_matrices(n ? call.in[0].size() / (n * n) : 0, 30 * cube(n),
                     [&](int64_t i) { exponential(n, call.out[0].mutable_data<T>() + i * n * n); });
      });
    }>,
    .vjp = function_vjp,
    .jvp = function_jvp,
    .keep = keep_input(0),
    .batch = batch_leading,
    .names = {"linalg.expm"},
    .doc = R"(The exponential of matrices, `1 + A + A^2/2 + ...`.

Args:
  input: A batch of square matrices, `[..., n, n]`.

Returns: A tensor of the shape and dtype of `input`.

Gradient: The Fréchet derivative of the exponential, by a block matrix.

>>> tf.linalg.expm([[0., 1.], [0., 0.]])
<tf.Tensor: shape=(2, 2), dtype=float32, numpy=
array([[1., 1.],
       [0., 1.]], dtype=float32)>)",
});

}  // namespace

}  // namespace tapeflow
