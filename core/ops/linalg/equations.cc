// Inverses, determinants and the solutions of linear equations.
#include "op/cost.h"
#include "ops/linalg/matrices.h"

namespace tapeflow {
using namespace linalg;
namespace {

template <class T> void invert_batches(const char* who, bool adjoint, const Tensor& x, const Tensor& y) {
  const int64_t n = x.shape().back();
  copy<T>(x, y);
  for_matrices(n ? x.size() / (n * n) : 0, 2 * cube(n), [&](int64_t i) {
    T* a = y.mutable_data<T>() + i * n * n;
    BlockVector<int> pivots(static_cast<size_t>(n));
    if (!factor_lu(n, a, pivots.data())) fail_singular(who, x.shape());
    invert(n, a, pivots.data());
    if (!adjoint) return;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t k = 0; k < r; ++k) std::swap(a[r * n + k], a[k * n + r]);
    if constexpr (is_complex<T>) std::transform(a, a + n * n, a, [](T z) { return std::conj(z); });
  });
}
constexpr struct : Keys {
  Key<bool> adjoint = next("adjoint");
} inverse_params;
const Op& inverse_op = define(Op{
    .name = "MatrixInverse",
    .planning = {.cost = {cost::matrices, 0.1}},
    .arguments = {tensor("input", accepted), flag(inverse_params.adjoint)},
    .infer =
        [](Call& call) {
          square_matrices(call.name(), call.in[0].shape());
          call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .kernel = widened<[](Call& call) {
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        invert_batches<Pointee<decltype(p)>>(call.name(), call.params[inverse_params.adjoint], call.in[0], call.out[0]);
      });
    }>,
    .vjp =
        [](RuleContext& c) {
          const Tensor& y = c.y();
          if (c.params[inverse_params.adjoint])
            c.set(0, negative(matmul(matmul(y, c.dy(), false, false, false, true), y, false, false)));
          else
            c.set(0, negative(matmul(matmul(y, c.dy(), false, false, true), y, false, false, false, true)));
        },
    .keep = keep_output(0),
    .batch = batch_leading,
    .names = {"linalg.inv", "compat.v1.matrix_inverse"},
    .doc = R"(The inverse of square matrices, or with `adjoint` its conjugate transpose.

Args:
  input: A batch of invertible matrices, `[..., n, n]`.
  adjoint: Whether to give the conjugate transpose of the inverse.

Returns: A tensor of the shape and dtype of `input`.

Gradient: `dx = -y^H dy y^H`.

>>> tf.linalg.inv([[2., 0.], [0., 4.]])
<tf.Tensor: shape=(2, 2), dtype=float32, numpy=
array([[ 0.5 ,  0.  ],
       [-0.  ,  0.25]], dtype=float32)>)",
});

template <class T> void determinant_batches(const Tensor& x, const Tensor& sign, const Tensor& size, bool logarithm) {
  const Matrices m = matrices("", x.shape());
  const int64_t n = m.rows;
  for_matrices(m.batch, cube(n), [&](int64_t i) {
    BlockVector<T> a(x.data<T>() + i * n * n, x.data<T>() + (i + 1) * n * n);
    BlockVector<int> pivots(static_cast<size_t>(n));
    factor_lu(n, a.data(), pivots.data());
    if (!logarithm) {
      T product(1);
      for (int64_t k = 0; k < n; ++k) {
        product *= a[size_t(k * n + k)];
        if (pivots[size_t(k)] != k + 1) product = -product;
      }
      sign.mutable_data<T>()[i] = product;
      return;
    }
    RealOf<T> sum(0);
    for (int64_t k = 0; k < n; ++k) sum += std::log(std::abs(a[size_t(k * n + k)]));
    sign.mutable_data<T>()[i] = std::isnan(sum) ? T(sum) : determinant_sign(n, a.data(), pivots.data());
    size.mutable_data<T>()[i] = T(sum);
  });
}
Tensor inverse_adjoint(const Tensor& x) { return run(inverse_op, {x}, {Param(true)}); }

const Op& determinant_op = define(Op{
    .name = "MatrixDeterminant",
    .planning = {.cost = {cost::matrices, 0.045}},
    .arguments = {tensor("input", accepted)},
    .infer =
        [](Call& call) { call.returns(call.in[0].dtype(), square_matrices(call.name(), call.in[0].shape()).prefix); },
    .kernel = widened<[](Call& call) {
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        determinant_batches<Pointee<decltype(p)>>(call.in[0], call.out[0], Tensor(), false);
      });
    }>,
    .vjp =
        [](RuleContext& c) {
          c.set(0, multiply(broadcast_scalar(multiply(c.dy(), conj(c.y()))), inverse_adjoint(c.x(0))));
        },
    .keep = keep_input(0) | keep_output(0),
    .batch = batch_leading,
    .names = {"linalg.det", "compat.v1.matrix_determinant"},
    .doc = R"(The determinant of square matrices.

Args:
  input: A batch of square matrices, `[..., n, n]`.

Returns: A tensor of shape `[...]`.

Gradient: `dx = dy * y * inv(x)^H`.

>>> tf.linalg.det([[1., 2.], [3., 4.]])
<tf.Tensor: shape=(), dtype=float32, numpy=-2.0>)",
});

const Op& log_determinant_op = define(Op{
    .name = "LogMatrixDeterminant",
    .planning = {.cost = {cost::matrices, 0.045}},
    .arguments = {tensor("input", accepted)},
    .infer =
        [](Call& call) {
          Shape batch = square_matrices("linalg.slogdet", call.in[0].shape()).prefix;
          call.returns(call.in[0].dtype(), batch);
          call.returns(call.in[0].dtype(), batch);
        },
    .kernel = widened<[](Call& call) {
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        determinant_batches<Pointee<decltype(p)>>(call.in[0], call.out[0], call.out[1], true);
      });
    }>,
    // d log det = tr(A^-1 dA); its real part moves the logarithm, its imaginary part turns the sign.
    .vjp =
        [](RuleContext& c) {
          Tensor weight = c.dy(1);
          if (complexes.has(weight.dtype()))
            weight = complex_number(real_part(weight), imaginary_part(multiply(c.dy(0), conj(c.y(0)))));
          else if (!c.has_dy(1))
            return c.set(0, zeros(c.dtype(0), c.shape(0)));  // the sign alone is constant
          c.set(0, multiply(broadcast_scalar(weight), inverse_adjoint(c.x(0))));
        },
    .keep = keep_input(0) | keep_output(0),
    .batch = batch_leading,
    .returns_list = true,
});

// The batch of A and the batch of B agree; for MatrixSolve exactly, for the triangular one by broadcasting.
template <class T>
void solve_batches(const char* who, bool adjoint, const Tensor& a, const Tensor& b, const Tensor& y) {
  const Matrices m = matrices(who, a.shape());
  const int64_t n = m.rows, k = b.shape().back();
  copy<T>(b, y);
  for_matrices(m.batch, cube(n) + n * n * k, [&](int64_t i) {
    BlockVector<T> factors(a.data<T>() + i * n * n, a.data<T>() + (i + 1) * n * n);
    BlockVector<int> pivots(static_cast<size_t>(n));
    if (!factor_lu(n, factors.data(), pivots.data()))
      fail(ErrorKind::invalid_argument, who, ": Input matrix is not invertible. Its shape is ", a.shape(), ".");
    solve_lu(adjoint, n, k, factors.data(), pivots.data(), y.mutable_data<T>() + i * n * k);
  });
}
constexpr struct : Keys {
  Key<bool> adjoint = next("adjoint");
} solve_params;
const Op& solve_op = define(Op{
    .name = "MatrixSolve",
    .planning = {.cost = {cost::matrices, 0.1}},
    .arguments = {tensor("matrix", accepted), tensor("rhs", accepted), flag(solve_params.adjoint)},
    .infer =
        [](Call& call) {
          const Shape &a = call.in[0].shape(), &b = call.in[1].shape();
          if (call.in[0].dtype() != call.in[1].dtype()) family::fail_dtypes(call);
          Matrices ma = matrices(call.name(), a), mb = matrices(call.name(), b, 1);
          if (a.rank() != b.rank())
            fail(ErrorKind::invalid_argument, call.name(), ": All input tensors must have the same rank; got ", a,
                 " and ", b);
          if (!(ma.prefix == mb.prefix))
            fail(ErrorKind::invalid_argument, call.name(),
                 ": All input tensors must have the same outer dimensions; got ", a, " and ", b);
          if (ma.rows != ma.columns)
            fail(ErrorKind::invalid_argument, call.name(), ": First input (lhs) must be a square matrix; got shape ",
                 a);
          if (ma.columns != mb.rows)
            fail(ErrorKind::invalid_argument, call.name(), ": Input matrix and rhs are incompatible; got ", a, " and ",
                 b);
          call.returns(call.in[1].dtype(), b);
        },
    .kernel = widened<[](Call& call) {
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        solve_batches<Pointee<decltype(p)>>(call.name(), call.params[solve_params.adjoint], call.in[0], call.in[1],
                                            call.out[0]);
      });
    }>,
    .vjp =
        [](RuleContext& c) {
          const bool adjoint = c.params[solve_params.adjoint];
          Tensor db = run(c.op, {c.x(0), c.dy()}, {Param(!adjoint)});
          if (c.wants(1)) c.set(1, db);
          if (!c.wants(0)) return;
          Tensor da =
              adjoint ? matmul(c.y(), db, false, false, false, true) : matmul(db, c.y(), false, false, false, true);
          c.set(0, negative(da));
        },
    .keep = keep_input(0) | keep_output(0),
    .batch = batch_leading_matrices,
    .names = {"linalg.solve", "compat.v1.matrix_solve"},
    .doc = R"(`X` in `matrix X = rhs` (or `matrix^H X = rhs` with `adjoint`).

Args:
  matrix: A batch of invertible matrices, `[..., n, n]`.
  rhs: The right-hand sides, `[..., n, k]`.
  adjoint: Whether to solve with the conjugate transpose of `matrix`.

Returns: A tensor of shape `[..., n, k]`.

Gradient: `d_rhs = solve(matrix^H, dy)`, `d_matrix = -d_rhs y^H`.

>>> tf.linalg.solve([[2., 0.], [0., 4.]], [[2.], [2.]])
<tf.Tensor: shape=(2, 1), dtype=float32, numpy=
array([[1. ],
       [0.5]], dtype=float32)>)",
});

template <class T>
void triangular_batches(bool lower, bool adjoint, const Tensor& a, const Tensor& b, const Tensor& y, int64_t batch_a) {
  const Matrices m = matrices("", y.shape());
  const int64_t n = m.rows, k = m.columns;
  copy<T>(b, y);
  for_matrices(m.batch, n * n * k, [&](int64_t i) {
    solve_triangular(lower, adjoint, n, k, a.data<T>() + (batch_a == 1 ? 0 : i) * n * n,
                     y.mutable_data<T>() + i * n * k);
  });
}
constexpr struct : Keys {
  Key<bool> lower = next("lower"), adjoint = next("adjoint");
} triangular_solve_params;
const Op& triangular_solve_op = define(Op{
    .name = "MatrixTriangularSolve",
    .planning = {.cost = {cost::matrices, 0.035}},
    .arguments = {tensor("matrix", accepted | DType::bfloat16), tensor("rhs", accepted | DType::bfloat16),
                  flag(triangular_solve_params.lower, true), flag(triangular_solve_params.adjoint)},
    .infer =
        [](Call& call) {
          const Shape &a = call.in[0].shape(), &b = call.in[1].shape();
          if (call.in[0].dtype() != call.in[1].dtype()) family::fail_dtypes(call);
          Matrices ma = matrices(call.name(), a), mb = matrices(call.name(), b, 1);
          if (ma.rows != ma.columns)
            fail(ErrorKind::invalid_argument, call.name(), ": In[0] matrices in the last dimensions must be square (",
                 ma.columns, " =/= ", ma.rows, ")");
          if (ma.columns != mb.rows)
            fail(ErrorKind::invalid_argument, call.name(), ": In[0] mismatch In[1] shape: ", ma.columns, " vs. ",
                 mb.rows, ": ", a, " ", b);
          Shape batch;
          if (!broadcast(ma.prefix, mb.prefix, &batch))
            fail(ErrorKind::invalid_argument, call.name(),
                 ": In[0] and In[1] must have compatible batch dimensions: ", a, " vs. ", b);
          batch.append(mb.rows), batch.append(mb.columns);
          call.returns(call.in[1].dtype(), batch);
        },
    .kernel = widened<[](Call& call) {
      PauseRecording paused;
      Tensor a = call.in[0];
      const Tensor& y = call.out[0];
      const Tensor b = broadcast_to(call.in[1], y.shape());
      int64_t batch_a = a.shape().elements(0, a.rank() - 2), batch = y.shape().elements(0, y.rank() - 2);
      if (batch_a != 1 && batch_a != batch) {
        Shape full = y.shape();
        full[full.rank() - 1] = full.back(2);
        a = broadcast_to(a, full);
        batch_a = batch;
      }
      visit<computed.bits>(a.dtype(), [&](auto* p) {
        triangular_batches<Pointee<decltype(p)>>(call.params[triangular_solve_params.lower],
                                                 call.params[triangular_solve_params.adjoint], a, b, y, batch_a);
      });
    }>,
    .vjp =
        [](RuleContext& c) {
          const bool lower = c.params[triangular_solve_params.lower],
                     adjoint = c.params[triangular_solve_params.adjoint];
          Tensor db = triangular_solve(c.x(0), c.dy(), lower, !adjoint);
          if (c.wants(1)) c.set(1, unbroadcast(db, c.shape(1)));
          if (!c.wants(0)) return;
          Tensor da =
              adjoint ? matmul(c.y(), db, false, false, false, true) : matmul(db, c.y(), false, false, false, true);
          c.set(0, unbroadcast(negative(band_part(da, lower ? -1 : 0, lower ? 0 : -1)), c.shape(0)));
        },
    .keep = keep_input(0) | keep_output(0),
    .batch = batch_leading_matrices,
    .names = {"linalg.triangular_solve", "compat.v1.matrix_triangular_solve"},
    .doc = R"(`X` in `matrix X = rhs` where only the lower (or upper) triangle of `matrix` is read.

Args:
  matrix: A batch of triangular matrices, `[..., n, n]`.
  rhs: The right-hand sides, `[..., n, k]`.
  lower: Whether `matrix` is lower triangular; its other triangle is not read.
  adjoint: Whether to solve with the conjugate transpose of `matrix`.

Returns: A tensor of shape `[..., n, k]`.

Gradient: `d_rhs = triangular_solve(matrix^H, dy)`, `d_matrix` is the triangle of `-d_rhs y^H`.

>>> tf.linalg.triangular_solve([[2., 9.], [1., 1.]], [[2.], [3.]])
<tf.Tensor: shape=(2, 1), dtype=float32, numpy=
array([[1.],
       [2.]], dtype=float32)>)",
});

// ---- tridiagonal equations. Diagonals lie as (..., 3, n): above, main, below.

template <class T> void tridiagonal_batches(bool pivoting, const Tensor& diagonals, const Tensor& b, const Tensor& y) {
  const Matrices m = matrices("", b.shape());
  const int64_t n = m.rows, k = m.columns;
  copy<T>(b, y);
  for_matrices(m.batch, 8 * n * k, [&](int64_t i) {
    const T* d = diagonals.data<T>() + i * 3 * n;
    T* x = y.mutable_data<T>() + i * n * k;
    if (!solve_tridiagonal(pivoting, n, k, d, d + n, d + 2 * n, x)) fill_nan(x, n * k);
  });
}
// Row r of the diagonals moved by one place (+1 right, -1 left), 0 where nothing comes.
Tensor moved_row(const Tensor& diagonals, int64_t r, int by) {
  const int64_t n = diagonals.shape().back();
  Tensor row = part(diagonals, r, 1, by > 0 ? 0 : 1, std::max<int64_t>(n - 1, 0));
  Ints paddings;
  for (int i = 0; i + 1 < row.rank(); ++i) paddings.push_back(0), paddings.push_back(0);
  paddings.push_back(by > 0 ? 1 : 0), paddings.push_back(by > 0 ? 0 : 1);
  return pad(row, paddings);
}
constexpr struct : Keys {
  Key<bool> partial_pivoting = next("partial_pivoting"), perturb_singular = next("perturb_singular");
} tridiagonal_params;
const Op& tridiagonal_op = define(Op{
    .name = "TridiagonalSolve",
    .arguments = {tensor("diagonals", computed), tensor("rhs", computed),
                  flag(tridiagonal_params.partial_pivoting, true), flag(tridiagonal_params.perturb_singular)},
    .infer =
        [](Call& call) {
          const Shape &d = call.in[0].shape(), &b = call.in[1].shape();
          if (call.in[0].dtype() != call.in[1].dtype()) family::fail_dtypes(call);
          Matrices md = matrices("linalg.tridiagonal_solve", d), mb = matrices("linalg.tridiagonal_solve", b, 1);
          if (md.rows != 3 || md.columns != mb.rows || !(md.prefix == mb.prefix))
            fail(ErrorKind::invalid_argument,
                 "linalg.tridiagonal_solve: diagonals of shape [...,3,n] and a right side of shape [...,n,k] are "
                 "expected; got ",
                 d, " and ", b);
          call.returns(call.in[1].dtype(), b);
        },
    .kernel =
        [](Call& call) {
          visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
            tridiagonal_batches<Pointee<decltype(p)>>(call.params[tridiagonal_params.partial_pivoting], call.in[0],
                                                      call.in[1], call.out[0]);
          });
        },
    .vjp =
        [](RuleContext& c) {
          const Tensor& d = c.x(0);
          const int64_t n = d.shape().back();
          const int axis = d.rank() - 2;
          Tensor turned[] = {moved_row(d, 2, -1), part(d, 1, 1, 0, n), moved_row(d, 0, 1)};
          Tensor db = run(c.op, {conj(concat(turned, axis)), c.dy()}, c.params);
          if (c.wants(1)) c.set(1, db);
          if (!c.wants(0)) return;
          // dA_ij = -db_i conj(y_j), on the three diagonals.
          const Tensor y = conj(c.y());
          auto along = [&](const Tensor& left, const Tensor& right) {
            return reduce_sum(multiply(left, right), Ints{left.rank() - 1}, false);
          };
          const int64_t k = y.shape().back(), m = std::max<int64_t>(n - 1, 0);
          auto rows = [&](const Tensor& t, int64_t from) { return part(t, from, m, 0, k); };
          auto padded = [&](const Tensor& t, int before) {
            Ints paddings;
            for (int i = 0; i + 1 < t.rank(); ++i) paddings.push_back(0), paddings.push_back(0);
            paddings.push_back(before), paddings.push_back(n - m - before);
            return pad(t, paddings);
          };
          const int64_t next = std::min<int64_t>(1, n);
          Tensor parts[] = {padded(along(rows(db, 0), rows(y, next)), 0), along(db, y),
                            padded(along(rows(db, next), rows(y, 0)), n > 0 ? 1 : 0)};
          c.set(0, negative(stack(parts, axis)));
        },
    .keep = keep_input(0) | keep_output(0),
    .batch = batch_leading,
});

}  // namespace

Tensor linalg::solve(const Tensor& a, const Tensor& b) { return run(solve_op, {a, b}, {Param(false)}); }
Tensor triangular_solve(const Tensor& a, const Tensor& b, bool lower, bool adjoint) {
  return run(triangular_solve_op, {a, b}, {Param(lower), Param(adjoint)});
}

}  // namespace tapeflow
