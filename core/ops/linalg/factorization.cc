// Factorizations of matrices: Cholesky, LU, QR, singular values; and the pseudo-inverse.
#include "op/cost.h"
#include "ops/linalg/matrices.h"

namespace tapeflow {
using namespace linalg;
namespace {

template <class T> void cholesky_batches(const Tensor& x, const Tensor& y) {
  const Matrices m = matrices("", x.shape());
  const int64_t n = m.rows;
  copy<T>(x, y);
  for_matrices(m.batch, cube(n) / 3, [&](int64_t i) {
    T* a = y.mutable_data<T>() + i * n * n;
    const bool positive = factor_cholesky(n, a);
    for (int64_t r = 0; r < n; ++r) {
      if (!positive) fill_nan(a + r * n, r + 1);
      std::fill(a + r * n + r + 1, a + (r + 1) * n, T(0));
    }
  });
}
const Op& cholesky_op = define(Op{
    .name = "Cholesky",
    .planning = {.cost = {cost::matrices, 0.03}, .cannot_fail = true},
    .arguments = {tensor("input", accepted)},
    .infer =
        [](Call& call) {
          square_matrices(call.name(), call.in[0].shape());
          call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .kernel = widened<[](Call& call) {
      visit<computed.bits>(call.in[0].dtype(),
                           [&](auto* p) { cholesky_batches<Pointee<decltype(p)>>(call.in[0], call.out[0]); });
    }>,
    // dA = L^-H S L^-1, made Hermitian, with S the lower half of L^H dL.
    .vjp =
        [](RuleContext& c) {
          const Tensor& l = c.y();
          Tensor s = lower_half(matmul(l, c.dy(), false, false, true));
          Tensor left = triangular_solve(l, s, true, true);
          Tensor dx = triangular_solve(l, adjoint(left), true, true);
          c.set(0, scaled(add(dx, adjoint(dx)), 0.5));
        },
    .keep = keep_output(0),
    .batch = batch_leading,
    .names = {"linalg.cholesky", "compat.v1.cholesky"},
    .doc =
        R"(The lower triangular `L` with `L L^H = input`, for Hermitian positive definite matrices; NaN for others.

Args:
  input: A batch of Hermitian positive definite matrices, `[..., n, n]`; only the lower triangle is read.

Returns: A tensor of the shape and dtype of `input`.

Gradient: By the rule of Murray (2016), a symmetric matrix.

>>> tf.linalg.cholesky([[4., 2.], [2., 5.]])
<tf.Tensor: shape=(2, 2), dtype=float32, numpy=
array([[2., 0.],
       [1., 2.]], dtype=float32)>)",
});

template <class T> void lu_batches(const char* who, const Tensor& x, const Tensor& y, const Tensor& permutation) {
  const int64_t n = x.shape().back();
  copy<T>(x, y);
  for_matrices(n ? x.size() / (n * n) : 0, cube(n), [&](int64_t i) {
    BlockVector<int> order(static_cast<size_t>(n));
    if (!factor_lu_rows(n, y.mutable_data<T>() + i * n * n, order.data())) fail_singular(who, x.shape());
    for (int64_t k = 0; k < n; ++k) {
      if (permutation.dtype() == DType::int32)
        permutation.mutable_data<int32_t>()[i * n + k] = order[size_t(k)];
      else
        permutation.mutable_data<int64_t>()[i * n + k] = order[size_t(k)];
    }
  });
}
constexpr struct : Keys {
  Key<DType> output_idx_type = next("output_idx_type");
} lu_params;
const Op& lu_op = define(Op{
    .name = "Lu",
    .planning = {.cost = {cost::matrices, 0.06}},
    .arguments = {tensor("input", accepted), dtype_argument(lu_params.output_idx_type)},
    .infer =
        [](Call& call) {
          Matrices m = square_matrices("linalg.lu", call.in[0].shape());
          call.returns(call.in[0].dtype(), call.in[0].shape());
          const Param& index = call.params.value(lu_params.output_idx_type);
          DType dtype = index.is_none() ? DType::int32 : index.dtype;
          if (dtype != DType::int32 && dtype != DType::int64)
            fail(ErrorKind::invalid_argument, "linalg.lu: output_idx_type must be int32 or int64; got ",
                 name_of(dtype));
          call.returns(dtype, m.shape(m.rows));
        },
    .kernel = widened<[](Call& call) {
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        lu_batches<Pointee<decltype(p)>>("linalg.lu", call.in[0], call.out[0], call.out[1]);
      });
    }>,
    .gradient = Gradient::missing,
    .batch = batch_leading,
    .returns_list = true,
});

template <class T> void qr_batches(const Tensor& x, const Tensor& q, const Tensor& r) {
  const Matrices m = matrices("", x.shape());
  const int64_t k = q.shape().back();
  for_matrices(m.batch, 2 * m.rows * m.columns * k, [&](int64_t i) {
    factor_qr(m.rows, m.columns, k, x.data<T>() + i * m.rows * m.columns, q.mutable_data<T>() + i * m.rows * k,
              r.mutable_data<T>() + i * k * m.columns);
  });
}
// A = Q R with R square: dA = (dQ + Q (H + H^H)) R^-H, where H is the upper half of dR R^H - Q^H dQ.
Tensor qr_cotangent(const Tensor& q, const Tensor& r, const Tensor& dq, const Tensor& dr) {
  Tensor h = upper_half(subtract(matmul(dr, r, false, false, false, true), matmul(q, dq, false, false, true)));
  Tensor left = add(dq, matmul(q, add(h, adjoint(h)), false, false));
  return adjoint(triangular_solve(r, adjoint(left), false, false));
}
constexpr struct : Keys {
  Key<bool> full_matrices = next("full_matrices");
} qr_params;
const Op& qr_op = define(Op{
    .name = "Qr",
    .planning = {.cost = {cost::matrices, 0.17}},
    .arguments = {tensor("input", accepted), flag(qr_params.full_matrices)},
    .infer =
        [](Call& call) {
          Matrices m = matrices("linalg.qr", call.in[0].shape());
          int64_t k = call.params[qr_params.full_matrices] ? m.rows : std::min(m.rows, m.columns);
          call.returns(call.in[0].dtype(), m.shape(m.rows, k));
          call.returns(call.in[0].dtype(), m.shape(k, m.columns));
        },
    .kernel = widened<[](Call& call) {
      visit<computed.bits>(call.in[0].dtype(),
                           [&](auto* p) { qr_batches<Pointee<decltype(p)>>(call.in[0], call.out[0], call.out[1]); });
    }>,
    .vjp =
        [](RuleContext& c) {
          const Tensor &x = c.x(0), &q = c.y(0), &r = c.y(1);
          int64_t m = x.shape().back(2), n = x.shape().back(1);
          if (m > n && c.params[qr_params.full_matrices])
            fail(ErrorKind::unimplemented,
                 "linalg.qr: QrGrad not implemented when nrows > ncols and full_matrices is true; got shape ",
                 x.shape(), ". The added columns of q are not determined by the input; use full_matrices=False.");
          Tensor dq = c.dy(0), dr = c.dy(1);
          if (m >= n) return c.set(0, qr_cotangent(q, r, dq, dr));
          // Wide: the first m columns determine Q, the others are Q times their part of R.
          Tensor dr_rest = columns(dr, m, n - m);
          dq = add(dq, matmul(columns(x, m, n - m), dr_rest, false, false, false, true));
          Tensor parts[] = {qr_cotangent(q, columns(r, 0, m), dq, columns(dr, 0, m)), matmul(q, dr_rest, false, false)};
          c.set(0, concat(parts, x.rank() - 1));
        },
    .keep = keep_input(0) | keep_output(0) | keep_output(1),
    .batch = batch_leading,
    .returns_list = true,
});

// ---- singular values

template <class T>
void svd_batches(bool vectors, bool full, const Tensor& x, const Tensor& s, const Tensor& u, const Tensor& v) {
  using Real = RealOf<T>;
  const Matrices m = matrices("", x.shape());
  const int64_t size = m.rows * m.columns, k = std::min(m.rows, m.columns);
  const int64_t u_size = full ? m.rows * m.rows : m.rows * k, v_size = full ? m.columns * m.columns : m.columns * k;
  for_matrices(m.batch, 10 * size * k, [&](int64_t i) {
    const T* a = x.data<T>() + i * size;
    T *left = vectors ? u.mutable_data<T>() + i * u_size : nullptr,
      *right = vectors ? v.mutable_data<T>() + i * v_size : nullptr;
    Real* values = s.mutable_data<Real>() + i * k;
    const bool lost = has_nan_or_infinity(a, size);
    if (!lost && factor_svd(m.rows, m.columns, full, a, values, left, right)) return;
    if (!lost)
      fail(ErrorKind::invalid_argument,
           "linalg.svd: the decomposition did not converge. The input might not be valid.");
    fill_nan(values, k);
    if (vectors) fill_nan(left, u_size), fill_nan(right, v_size);
  });
}
extern const Op& svd_op;

// A column space completed to the full space: the cotangent of the added columns, which turn with the first ones.
Tensor folded_cotangent(const Tensor& full, const Tensor& d_full, int64_t k) {
  int64_t n = full.shape().back();
  Tensor first = columns(full, 0, k), d_first = columns(d_full, 0, k);
  if (n == k) return d_first;
  Tensor inner = matmul(columns(d_full, k, n - k), first, false, false, true);
  return subtract(d_first, matmul(columns(full, k, n - k), inner, false, false));
}
// (1 - w w^H) x
Tensor outside(const Tensor& w, const Tensor& x) {
  return subtract(x, matmul(w, matmul(w, x, false, false, true), false, false));
}

constexpr struct : Keys {
  Key<bool> compute_uv = next("compute_uv"), full_matrices = next("full_matrices");
} svd_params;

void svd_vjp(RuleContext& c) {
  const DType dtype = c.dtype(0);
  if (!c.params[svd_params.compute_uv]) {
    auto y = run_all(svd_op, std::span(&c.x(0), 1), {Param(true), Param(false)});
    return c.set(0, matmul(multiply(y[1], with_row(cast(c.dy(0), dtype))), y[2], false, false, false, true));
  }
  const int64_t m = c.shape(0).back(2), n = c.shape(0).back(1), k = std::min(m, n);
  const Tensor& s_real = c.y(0);
  Tensor s = cast(s_real, dtype), u = columns(c.y(1), 0, k), v = columns(c.y(2), 0, k);
  Tensor ds = cast(c.dy(0), dtype);
  if (!c.has_dy(1) && !c.has_dy(2)) return c.set(0, matmul(multiply(u, with_row(ds)), v, false, false, false, true));
  Tensor du = folded_cotangent(c.y(1), c.dy(1), k), dv = folded_cotangent(c.y(2), c.dy(2), k);
  Tensor f = cast(reciprocal_gaps(multiply(s_real, s_real)), dtype);
  Tensor u_du = matmul(u, du, false, false, true), v_dv = matmul(v, dv, false, false, true);
  Tensor fu = multiply(f, u_du), fv = multiply(f, v_dv), s_inverse = safe_reciprocal(s);
  Tensor inner = matrix_diag(ds);
  inner = add(inner, multiply(add(fu, adjoint(fu)), with_row(s)));
  inner = add(inner, multiply(with_column(s), add(fv, adjoint(fv))));
  if (complexes.has(dtype)) {  // a common phase of a pair of vectors is free; the longer side's cotangent decides
    Tensor turn = imaginary_part(matrix_diag_part(m > n ? u_du : v_dv, Ints{0}, "RIGHT_LEFT"));
    if (m <= n) turn = negative(turn);
    inner = add(inner, matrix_diag(multiply(complex_number(zeros_like(turn), turn), s_inverse)));
  }
  Tensor dx = matmul(matmul(u, inner, false, false), v, false, false, false, true);
  if (m > k) dx = add(dx, matmul(multiply(outside(u, du), with_row(s_inverse)), v, false, false, false, true));
  if (n > k) dx = add(dx, matmul(multiply(u, with_row(s_inverse)), outside(v, dv), false, false, false, true));
  c.set(0, dx);
}
const Op& svd_op = define(Op{
    .name = "Svd",
    .planning = {.cost = {cost::matrices, 0.7}},
    .arguments = {tensor("input", accepted), flag(svd_params.compute_uv, true), flag(svd_params.full_matrices)},
    .infer =
        [](Call& call) {
          Matrices m = matrices("linalg.svd", call.in[0].shape());
          const DType dtype = call.in[0].dtype();
          const int64_t k = std::min(m.rows, m.columns);
          const bool full = call.params[svd_params.full_matrices];
          call.returns(real_dtype(dtype), m.shape(k));
          if (!call.params[svd_params.compute_uv]) return;
          call.returns(dtype, m.shape(m.rows, full ? m.rows : k));
          call.returns(dtype, m.shape(m.columns, full ? m.columns : k));
        },
    .kernel = widened<[](Call& call) {
      const bool vectors = call.params[svd_params.compute_uv];
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        svd_batches<Pointee<decltype(p)>>(vectors, call.params[svd_params.full_matrices], call.in[0], call.out[0],
                                          vectors ? call.out[1] : Tensor(), vectors ? call.out[2] : Tensor());
      });
    }>,
    .vjp = svd_vjp,
    .keep = keep_input(0) | keep_output(0) | keep_output(1) | keep_output(2),
    .batch = batch_leading,
    .returns_list = true,
});

// ---- pseudo-inverse; a primitive because the derivative of its singular vectors does not exist where values are equal

template <class T> void pinv_batches(const Tensor& x, const Tensor& rcond, const Tensor& y) {
  using Real = RealOf<T>;
  const Matrices m = matrices("", x.shape());
  const int64_t size = m.rows * m.columns, k = std::min(m.rows, m.columns);
  for_matrices(m.batch, 10 * size * k, [&](int64_t i) {
    const T* a = x.data<T>() + i * size;
    T* to = y.mutable_data<T>() + i * size;
    BlockVector<Real> s(static_cast<size_t>(k));
    BlockVector<T> u(size_t(m.rows * k)), v(size_t(m.columns * k));
    const bool lost = has_nan_or_infinity(a, size);
    if (lost) return fill_nan(to, size);
    if (!factor_svd(m.rows, m.columns, false, a, s.data(), u.data(), v.data()))
      fail(ErrorKind::invalid_argument,
           "linalg.pinv: the decomposition did not converge. The input might not be valid.");
    const Real cutoff = rcond.data<Real>()[rcond.size() == 1 ? 0 : i] * (k ? s[0] : Real(0));
    for (int64_t r = 0; r < m.columns; ++r)
      for (int64_t q = 0; q < m.rows; ++q) {
        T sum(0);
        for (int64_t j = 0; j < k && s[size_t(j)] > cutoff; ++j) {
          T right = u[size_t(q * k + j)];
          if constexpr (is_complex<T>) right = std::conj(right);
          sum += v[size_t(r * k + j)] / s[size_t(j)] * right;
        }
        to[r * m.rows + q] = sum;
      }
  });
}
const Op& pinv_op = define(Op{
    .name = "MatrixPseudoInverse",
    .planning = {.cost = {cost::matrices, 0.7}},
    .arguments = {tensor("a", computed), tensor("rcond", floating, -1)},
    .infer =
        [](Call& call) {
          Matrices m = matrices("linalg.pinv", call.in[0].shape());
          const Tensor& rcond = call.in[1];
          if (rcond.dtype() != real_dtype(call.in[0].dtype())) family::fail_dtypes(call);
          if (rcond.size() != 1 && rcond.size() != m.batch)
            fail(ErrorKind::invalid_argument,
                 "linalg.pinv: rcond must be one number or one for each matrix; got shape ", rcond.shape(), " for ",
                 call.in[0].shape());
          call.returns(call.in[0].dtype(), m.shape(m.columns, m.rows));
        },
    .kernel =
        [](Call& call) {
          visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
            pinv_batches<Pointee<decltype(p)>>(call.in[0], call.in[1], call.out[0]);
          });
        },
    // With P the result: dA = -P^H dP P^H + (1 - A P) dP^H P P^H + P^H P dP^H (1 - P A).
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(0)) return;
          const Tensor &a = c.x(0), &p = c.y();
          Tensor dp = c.dy(), p_adjoint = adjoint(p), dp_adjoint = adjoint(dp);
          auto times = [](const Tensor& l, const Tensor& r) { return matmul(l, r, false, false); };
          Tensor dx = negative(times(times(p_adjoint, dp), p_adjoint));
          Tensor left = times(times(dp_adjoint, p), p_adjoint);
          Tensor right = times(times(p_adjoint, p), dp_adjoint);
          dx = add(dx, subtract(left, times(a, times(p, left))));
          c.set(0, add(dx, subtract(right, times(times(right, p), a))));
        },
    .keep = keep_input(0) | keep_output(0),
});

}  // namespace

}  // namespace tapeflow
