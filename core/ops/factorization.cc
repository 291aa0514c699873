// Factorisations, solutions of linear equations and functions of matrices, with batches; LAPACK does the work.
#include "base/blocks.h"
#include "kernels/linalg/factorize.h"

#include <algorithm>
#include <limits>

#include "base/parallel.h"
#include "ops/family.h"

namespace tapeflow {
namespace {

constexpr DTypes computed = DTypes(DType::float32) | DType::float64 | complexes;
constexpr DTypes accepted = computed | DType::float16;

// ---- batches of matrices

struct Matrices {
  int64_t batch, rows, columns;
  Shape prefix;  // the batch dimensions

  Shape shape(int64_t m, int64_t n) const {
    Shape s = prefix;
    s.append(m), s.append(n);
    return s;
  }
  Shape shape(int64_t n) const {
    Shape s = prefix;
    s.append(n);
    return s;
  }
};

Matrices matrices(const char* who, const Shape& x, int position = 0) {
  if (x.rank() < 2)
    fail(ErrorKind::invalid_argument, who, ": Input tensor ", position, " must have rank >= 2, got ", x.rank(),
         "; its shape is ", x);
  return {x.elements(0, x.rank() - 2), x.back(2), x.back(1), x.slice(0, x.rank() - 2)};
}
Matrices square_matrices(const char* who, const Shape& x) {
  Matrices m = matrices(who, x);
  if (m.rows != m.columns) fail(ErrorKind::invalid_argument, who, ": Input matrix must be square; got shape ", x);
  return m;
}

// body(i) for each matrix of a batch; `work` is the rough number of operations for one.
template <class Body> void for_matrices(int64_t batch, int64_t work, Body body) {
  parallel_for(batch, std::max<int64_t>(1, 100000 / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}
int64_t cube(int64_t n) { return n * n * n; }

// The small float types are computed in float32 and rounded once.
template <KernelFunction Kernel> void widened(Call& call) {
  if (!small_floating.has(call.in[0].dtype())) return Kernel(call);
  PauseRecording paused;
  SmallVector<Tensor, 4> in;
  for (const Tensor& t : call.in) in.push_back(cast(t, DType::float32));
  Call wide(call.op, std::span<const Tensor>(in.begin(), in.size()), call.params);
  for (const Tensor& t : call.out)
    wide.out.push_back(small_floating.has(t.dtype()) ? Tensor::allocate(DType::float32, t.shape()) : t);
  Kernel(wide);
  for (size_t i = 0; i < call.out.size(); ++i) call.out[i] = cast(wide.out[i], call.out[i].dtype());
}

template <class T> void copy(const Tensor& from, const Tensor& to) {
  std::copy_n(from.data<T>(), from.size(), to.mutable_data<T>());
}
template <class T> void fill_nan(T* x, int64_t n) { std::fill_n(x, n, T(std::numeric_limits<RealOf<T>>::quiet_NaN())); }
// LAPACK's iterations may never end on NaN or infinity.
template <class T> bool has_nan_or_infinity(const T* x, int64_t n) {
  return std::any_of(x, x + n, [](T v) { return v - v != T(0); });
}

// ---- words of the rules

Ints swapped_ends(int rank) {
  Ints permutation;
  for (int i = 0; i < rank; ++i) permutation.push_back(i);
  std::swap(permutation[size_t(rank - 1)], permutation[size_t(rank - 2)]);
  return permutation;
}
Tensor adjoint(const Tensor& x) { return conj(transpose(x, swapped_ends(x.rank()))); }
Tensor with_row(const Tensor& x) {  // (..., n) as (..., 1, n): one number per column
  Shape s = x.shape();
  s.insert(s.rank() - 1, 1);
  return reshape(x, s);
}
Tensor with_column(const Tensor& x) {
  Shape s = x.shape();
  s.append(1);
  return reshape(x, s);
}
Tensor spread_scalar(const Tensor& x) { return with_column(with_column(x)); }
Tensor part(const Tensor& x, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  Ints begin, size;
  for (int i = 0; i + 2 < x.rank(); ++i) begin.push_back(0), size.push_back(x.dim(i));
  begin.push_back(row), begin.push_back(column), size.push_back(rows), size.push_back(columns);
  return slice(x, begin, size);
}
Tensor columns(const Tensor& x, int64_t from, int64_t count) { return part(x, 0, x.shape().back(2), from, count); }

// x / (x^2 + 1e-20): the reciprocal, and 0 where x is 0; so equal eigenvalues give finite (if arbitrary) gradients.
Tensor safe_reciprocal(const Tensor& x) { return divide(x, shifted(multiply(x, x), 1e-20)); }
// 1 / (e_j - e_i) off the diagonal, 0 on it.
Tensor reciprocal_gaps(const Tensor& e) {
  Tensor f = safe_reciprocal(subtract(with_row(e), with_column(e)));
  return matrix_set_diag(f, zeros_like(e), Ints{0}, "RIGHT_LEFT");
}
// The part above the diagonal and half of the diagonal.
Tensor upper_half(const Tensor& x) {
  Tensor d = scaled(matrix_diag_part(x, Ints{0}, "RIGHT_LEFT"), 0.5);
  return matrix_set_diag(band_part(x, 0, -1), d, Ints{0}, "RIGHT_LEFT");
}
Tensor lower_half(const Tensor& x) {
  Tensor d = scaled(matrix_diag_part(x, Ints{0}, "RIGHT_LEFT"), 0.5);
  return matrix_set_diag(band_part(x, -1, 0), d, Ints{0}, "RIGHT_LEFT");
}

// ---- Cholesky

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
    .names = {"linalg.cholesky", "compat.v1.cholesky"},
    .doc =
        "The lower triangular `L` with `L L^H = input`, for Hermitian positive definite matrices; NaN for others.\n\n"
        ">>> tf.linalg.cholesky([[4., 2.], [2., 5.]])\n[[2., 0.], [1., 2.]]",
});

// ---- LU: inverse, determinant, equations

[[noreturn]] void fail_singular(const char* who, const Shape& s) {
  fail(ErrorKind::invalid_argument, who, ": Input is not invertible. Its shape is ", s, ".");
}

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
const Op& inverse_op = define(Op{
    .name = "MatrixInverse",
    .arguments = {tensor("input", accepted), flag("adjoint")},
    .infer =
        [](Call& call) {
          square_matrices(call.name(), call.in[0].shape());
          call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .kernel = widened<[](Call& call) {
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        invert_batches<Pointee<decltype(p)>>(call.name(), call.params.flag(0), call.in[0], call.out[0]);
      });
    }>,
    .vjp =
        [](RuleContext& c) {
          const Tensor& y = c.y();
          if (c.params.flag(0))
            c.set(0, negative(matmul(matmul(y, c.dy(), false, false, false, true), y, false, false)));
          else
            c.set(0, negative(matmul(matmul(y, c.dy(), false, false, true), y, false, false, false, true)));
        },
    .keep = keep_output(0),
    .names = {"linalg.inv", "compat.v1.matrix_inverse"},
    .doc = "The inverse of square matrices, or with `adjoint` its conjugate transpose.\n\n"
           ">>> tf.linalg.inv([[2., 0.], [0., 4.]])\n[[0.5, 0.], [0., 0.25]]",
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
    sign.mutable_data<T>()[i] = determinant_sign(n, a.data(), pivots.data());
    size.mutable_data<T>()[i] = T(sum);
  });
}
Tensor inverse_adjoint(const Tensor& x) { return run(inverse_op, {x}, {Param(true)}); }

const Op& determinant_op = define(Op{
    .name = "MatrixDeterminant",
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
          c.set(0, multiply(spread_scalar(multiply(c.dy(), conj(c.y()))), inverse_adjoint(c.x(0))));
        },
    .keep = keep_input(0) | keep_output(0),
    .names = {"linalg.det", "compat.v1.matrix_determinant"},
    .doc = "The determinant of square matrices.\n\n>>> tf.linalg.det([[1., 2.], [3., 4.]])\n-2.0",
});

const Op& log_determinant_op = define(Op{
    .name = "LogMatrixDeterminant",
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
          c.set(0, multiply(spread_scalar(weight), inverse_adjoint(c.x(0))));
        },
    .keep = keep_input(0) | keep_output(0),
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
const Op& solve_op = define(Op{
    .name = "MatrixSolve",
    .arguments = {tensor("matrix", accepted), tensor("rhs", accepted), flag("adjoint")},
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
        solve_batches<Pointee<decltype(p)>>(call.name(), call.params.flag(0), call.in[0], call.in[1], call.out[0]);
      });
    }>,
    .vjp =
        [](RuleContext& c) {
          const bool adjoint = c.params.flag(0);
          Tensor db = run(c.op, {c.x(0), c.dy()}, {Param(!adjoint)});
          if (c.wants(1)) c.set(1, db);
          if (!c.wants(0)) return;
          Tensor da =
              adjoint ? matmul(c.y(), db, false, false, false, true) : matmul(db, c.y(), false, false, false, true);
          c.set(0, negative(da));
        },
    .keep = keep_input(0) | keep_output(0),
    .names = {"linalg.solve", "compat.v1.matrix_solve"},
    .doc = "`X` in `matrix X = rhs` (or `matrix^H X = rhs` with `adjoint`).\n\n"
           ">>> tf.linalg.solve([[2., 0.], [0., 4.]], [[2.], [2.]])\n[[1.], [0.5]]",
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
const Op& triangular_solve_op = define(Op{
    .name = "MatrixTriangularSolve",
    .arguments = {tensor("matrix", accepted | DType::bfloat16), tensor("rhs", accepted | DType::bfloat16),
                  flag("lower", true), flag("adjoint")},
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
        triangular_batches<Pointee<decltype(p)>>(call.params.flag(0), call.params.flag(1), a, b, y, batch_a);
      });
    }>,
    .vjp =
        [](RuleContext& c) {
          const bool lower = c.params.flag(0), adjoint = c.params.flag(1);
          Tensor db = triangular_solve(c.x(0), c.dy(), lower, !adjoint);
          if (c.wants(1)) c.set(1, unbroadcast(db, c.shape(1)));
          if (!c.wants(0)) return;
          Tensor da =
              adjoint ? matmul(c.y(), db, false, false, false, true) : matmul(db, c.y(), false, false, false, true);
          c.set(0, unbroadcast(negative(band_part(da, lower ? -1 : 0, lower ? 0 : -1)), c.shape(0)));
        },
    .keep = keep_input(0) | keep_output(0),
    .names = {"linalg.triangular_solve", "compat.v1.matrix_triangular_solve"},
    .doc = "`X` in `matrix X = rhs` where only the lower (or upper) triangle of `matrix` is read.\n\n"
           ">>> tf.linalg.triangular_solve([[2., 9.], [1., 1.]], [[2.], [3.]])\n[[1.], [2.]]",
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
const Op& lu_op = define(Op{
    .name = "Lu",
    .arguments = {tensor("input", accepted), dtype_argument("output_idx_type")},
    .infer =
        [](Call& call) {
          Matrices m = square_matrices("linalg.lu", call.in[0].shape());
          call.returns(call.in[0].dtype(), call.in[0].shape());
          const Param& index = call.params[0];
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
    .returns_list = true,
});

// ---- QR

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
const Op& qr_op = define(Op{
    .name = "Qr",
    .arguments = {tensor("input", accepted), flag("full_matrices")},
    .infer =
        [](Call& call) {
          Matrices m = matrices("linalg.qr", call.in[0].shape());
          int64_t k = call.params.flag(0) ? m.rows : std::min(m.rows, m.columns);
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
          if (m > n && c.params.flag(0))
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

void svd_vjp(RuleContext& c) {
  const DType dtype = c.dtype(0);
  if (!c.params.flag(0)) {
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
    .arguments = {tensor("input", accepted), flag("compute_uv", true), flag("full_matrices")},
    .infer =
        [](Call& call) {
          Matrices m = matrices("linalg.svd", call.in[0].shape());
          const DType dtype = call.in[0].dtype();
          const int64_t k = std::min(m.rows, m.columns);
          const bool full = call.params.flag(1);
          call.returns(real_dtype(dtype), m.shape(k));
          if (!call.params.flag(0)) return;
          call.returns(dtype, m.shape(m.rows, full ? m.rows : k));
          call.returns(dtype, m.shape(m.columns, full ? m.columns : k));
        },
    .kernel = widened<[](Call& call) {
      const bool vectors = call.params.flag(0);
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        svd_batches<Pointee<decltype(p)>>(vectors, call.params.flag(1), call.in[0], call.out[0],
                                          vectors ? call.out[1] : Tensor(), vectors ? call.out[2] : Tensor());
      });
    }>,
    .vjp = svd_vjp,
    .keep = keep_input(0) | keep_output(0) | keep_output(1) | keep_output(2),
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

// ---- eigenvalues

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
const Op& eigh_op = define(Op{
    .name = "SelfAdjointEigV2",
    .arguments = {tensor("input", accepted), flag("compute_v", true)},
    .infer =
        [](Call& call) {
          Matrices m = square_matrices("linalg.eigh", call.in[0].shape());
          call.returns(call.in[0].dtype(), m.shape(m.rows));
          if (call.params.flag(0)) call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .kernel = widened<[](Call& call) {
      const bool vectors = call.params.flag(0);
      visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
        eigh_batches<Pointee<decltype(p)>>(vectors, call.in[0], call.out[0], vectors ? call.out[1] : Tensor());
      });
    }>,
    // Only the lower triangle is read, so it takes the whole gradient.
    .vjp =
        [](RuleContext& c) {
          Tensor dx;
          if (!c.params.flag(0) || !c.has_dy(1)) {
            Tensor v = c.params.flag(0) ? c.y(1) : run_all(eigh_op, std::span(&c.x(0), 1), {Param(true)})[1];
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
const Op& eig_op = define(Op{
    .name = "Eig",
    .arguments = {tensor("input", computed), flag("compute_v", true)},
    .infer =
        [](Call& call) {
          Matrices m = square_matrices("linalg.eig", call.in[0].shape());
          DType dtype = complex_dtype(call.in[0].dtype());
          call.returns(dtype, m.shape(m.rows));
          if (call.params.flag(0)) call.returns(dtype, call.in[0].shape());
        },
    .kernel =
        [](Call& call) {
          const bool vectors = call.params.flag(0);
          visit<computed.bits>(call.in[0].dtype(), [&](auto* p) {
            eig_batches<Pointee<decltype(p)>>(vectors, call.in[0], call.out[0], vectors ? call.out[1] : Tensor());
          });
        },
    // The vectors have norm 1, which takes their own direction's real part out of the cotangent.
    .vjp =
        [](RuleContext& c) {
          Tensor v = c.params.flag(0) ? c.y(1) : run_all(eig_op, std::span(&c.x(0), 1), {Param(true)})[1];
          Tensor inner = matrix_diag(c.dy(0));
          if (c.params.flag(0) && c.has_dy(1)) {
            Tensor v_dv = matmul(v, c.dy(1), false, false, true);
            Tensor along = cast(real_part(matrix_diag_part(v_dv, Ints{0}, "RIGHT_LEFT")), v.dtype());
            Tensor across = subtract(v_dv, multiply(matmul(v, v, false, false, true), with_row(along)));
            inner = add(inner, multiply(conj(reciprocal_gaps(c.y(0))), across));
          }
          Tensor v_adjoint = adjoint(v);
          Tensor dx = run(solve_op, {v_adjoint, matmul(inner, v_adjoint, false, false)}, {Param(false)});
          c.set(0, complexes.has(c.dtype(0)) ? dx : real_part(dx));
        },
    .keep = keep_input(0) | keep_output(0) | keep_output(1),
    .returns_list = true,
});

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
    .names = {"linalg.sqrtm", "matrix_square_root"},
    .doc = "The principal square root: `Y` with `Y Y = input`.\n\n>>> tf.linalg.sqrtm([[4., 0.], [0., 9.]])\n[[2., "
           "0.], [0., 3.]]",
});
const Op& logarithm_op = define(Op{
    .name = "MatrixLogarithm",
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
    .names = {"linalg.logm"},
    .doc = "The principal logarithm of complex matrices: `Y` with `expm(Y) = input`.\n\n"
           ">>> tf.math.real(tf.linalg.logm(tf.eye(2, dtype=tf.complex64)))\n[[0., 0.], [0., 0.]]",
});
const Op& exponential_op = define(Op{
    .name = "MatrixExponential",
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
    .names = {"linalg.expm"},
    .doc = "The exponential of matrices, `1 + A + A^2/2 + ...`.\n\n>>> tf.linalg.expm([[0., 1.], [0., 0.]])\n[[1., "
           "1.], [0., 1.]]",
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
const Op& tridiagonal_op = define(Op{
    .name = "TridiagonalSolve",
    .arguments = {tensor("diagonals", computed), tensor("rhs", computed), flag("partial_pivoting", true),
                  flag("perturb_singular")},
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
            tridiagonal_batches<Pointee<decltype(p)>>(call.params.flag(0), call.in[0], call.in[1], call.out[0]);
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
});

}  // namespace

Tensor triangular_solve(const Tensor& a, const Tensor& b, bool lower, bool adjoint) {
  return run(triangular_solve_op, {a, b}, {Param(lower), Param(adjoint)});
}

}  // namespace tapeflow
