// Owns factorisations and functions of one matrix. Row-major memory is, for LAPACK, the transposed matrix: where that
// serves as well it is used as it stands, elsewhere the matrix is copied.
#include "kernels/linalg/factorize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/blocks.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/linalg/blas.h"
#include "kernels/linalg/gemm.h"

namespace tapeflow {
namespace {

template <class T> constexpr char prefix = std::is_same_v<T, float>                 ? 's'
                                           : std::is_same_v<T, double>              ? 'd'
                                           : std::is_same_v<T, std::complex<float>> ? 'c'
                                                                                    : 'z';

template <class T> void* routine(const char* name) {
  void* found = blas_lookup((prefix<T> + std::string(name)).c_str());
  if (!found)
    fail(ErrorKind::unimplemented, "linear algebra needs a LAPACK library with ", name,
         "; none was found. Install the package scipy-openblas32.");
  return found;
}

// Fortran takes pointers; the lengths of character arguments follow as numbers.
template <class... Args> void call(void* function, Args... args) {
  reinterpret_cast<void (*)(Args...)>(function)(args...);
}
constexpr size_t one = 1;

template <class T> T conjugate(T x) {
  if constexpr (is_complex<T>) return std::conj(x);
  return x;
}
template <class T> void transpose_into(int64_t rows, int64_t columns, const T* from, T* to) {
  constexpr int64_t block = 16;
  for (int64_t i0 = 0; i0 < rows; i0 += block)
    for (int64_t j0 = 0; j0 < columns; j0 += block)
      for (int64_t i = i0; i < std::min(rows, i0 + block); ++i)
        for (int64_t j = j0; j < std::min(columns, j0 + block); ++j) to[j * rows + i] = from[i * columns + j];
}
template <class T> BlockVector<T> transposed(int64_t rows, int64_t columns, const T* from) {
  BlockVector<T> to(size_t(rows * columns));
  transpose_into(rows, columns, from, to.data());
  return to;
}

template <class T> void triangular(const char* side, const char* triangle, const char* transpose, const char* diagonal,
                                   int m, int n, const T* a, int lda, T* b, int ldb) {
  static void* const trsm = routine<T>("trsm");
  const T unit(1);
  call(trsm, side, triangle, transpose, diagonal, &m, &n, &unit, a, &lda, b, &ldb, one, one, one, one);
}
template <class T> void triangular(const char* side, const char* triangle, const char* transpose, const char* diagonal,
                                   int m, int n, const T* a, T* b) {
  triangular(side, triangle, transpose, diagonal, m, n, a, *side == 'R' ? n : m, b, m);
}

// Which triangle of a matrix is meant, as stored in rows, and whether its adjoint is.
struct Triangle {
  bool lower, adjoint, unit_diagonal;
};

// Solves for k columns of b, whose rows are ldb apart. Large matrices are cut in two: most of the work is a product
// then.
template <class T>
void solve_columns(Triangle which, int64_t n, int64_t k, const T* a, int64_t lda, T* b, int64_t ldb) {
  constexpr int64_t small = 64;
  const auto [lower, adjoint, unit_diagonal] = which;
  if (is_complex<T> || n <= small || k < 8) {
    triangular("R", lower ? "U" : "L", adjoint ? "C" : "N", unit_diagonal ? "U" : "N", int(k), int(n), a, int(lda), b,
               int(ldb));
    return;
  }
  const int64_t half = (n / 2 + 15) / 16 * 16, rest = n - half;
  const T *corner = lower ? a + half * lda : a + half, *last = a + half * lda + half;
  const int64_t rows = lower ? rest : half, columns = lower ? half : rest;  // of the corner
  Scratch<T> negative(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) negative[size_t(i * columns + j)] = -corner[i * lda + j];
  T* const below = b + half * ldb;
  if (lower != adjoint) {
    solve_columns(which, half, k, a, lda, b, ldb);
    gemm(adjoint, false, rest, k, half, negative.data(), columns, b, ldb, below, ldb, true);
    solve_columns(which, rest, k, last, lda, below, ldb);
  } else {
    solve_columns(which, rest, k, last, lda, below, ldb);
    gemm(adjoint, false, half, k, rest, negative.data(), columns, below, ldb, b, ldb, true);
    solve_columns(which, half, k, a, lda, b, ldb);
  }
}

template <class T> void solve_triangle(Triangle which, int64_t n, int64_t k, const T* a, T* b) {
  constexpr int64_t worth_a_thread = 1 << 18;
  const int64_t share = (k + thread_count() - 1) / thread_count();  // each one reads the whole matrix
  parallel_for(k, std::max({int64_t(16), worth_a_thread / (n * n), share}),
               [&](int64_t begin, int64_t end) { solve_columns(which, n, end - begin, a, n, b + begin, k); });
}

template <class T> void swap_rows(int64_t k, int64_t i, int64_t j, T* b) {
  if (i != j) std::swap_ranges(b + i * k, b + (i + 1) * k, b + j * k);
}

}  // namespace

template <class T> bool factor_cholesky(int64_t n, T* a) {
  static void* const potrf = routine<T>("potrf");
  const int order = int(n);
  int info = 0;
  if (n > 0) call(potrf, "U", &order, a, &order, &info, one);
  return info == 0;
}

template <class T> bool factor_lu(int64_t n, T* a, int* pivots) {
  static void* const getrf = routine<T>("getrf");
  const int order = int(n);
  int info = 0;
  if (n > 0) call(getrf, &order, &order, a, &order, pivots, &info);
  return info == 0;
}

template <class T> T determinant_sign(int64_t n, const T* factors, const int* pivots) {
  T sign(1);
  for (int64_t i = 0; i < n; ++i) {
    const T x = factors[i * n + i];
    const RealOf<T> size = std::abs(x);
    if (size == RealOf<T>(0)) return T(0);
    if constexpr (std::is_same_v<T, RealOf<T>>)
      sign *= std::isinf(size) ? std::copysign(T(1), x) : x / size;
    else
      sign *= x / size;
    if (pivots[i] != i + 1) sign = -sign;
  }
  return sign;
}

// With A^T = P L U, A X = B reads X^T P L U = B^T, and B^T is what LAPACK sees in b.
template <class T> void solve_lu(bool adjoint, int64_t n, int64_t k, const T* factors, const int* pivots, T* b) {
  if (n == 0 || k == 0) return;
  if (!adjoint) {
    solve_triangle({true, false, false}, n, k, factors, b);
    solve_triangle({false, false, true}, n, k, factors, b);
    for (int64_t i = n - 1; i >= 0; --i) swap_rows(k, i, pivots[i] - 1, b);
  } else {
    for (int64_t i = 0; i < n; ++i) swap_rows(k, i, pivots[i] - 1, b);
    solve_triangle({false, true, true}, n, k, factors, b);
    solve_triangle({true, true, false}, n, k, factors, b);
  }
}

template <class T> void invert(int64_t n, T* factors, const int* pivots) {
  static void* const getri = routine<T>("getri");
  if (n == 0) return;
  constexpr int64_t large = 128;  // from here on the equations with a unit matrix are solved sooner, in parallel
  if (!is_complex<T> && n >= large) {
    Scratch<T> inverse(n * n);
    std::fill(inverse.begin(), inverse.end(), T(0));
    for (int64_t i = 0; i < n; ++i) inverse[size_t(i * n + i)] = T(1);
    solve_lu(false, n, n, factors, pivots, inverse.data());
    std::copy(inverse.begin(), inverse.end(), factors);
    return;
  }
  const int order = int(n), length = int(n * 32);
  int info = 0;
  BlockVector<T> work(size_t(n * 32));
  call(getri, &order, factors, &order, pivots, work.data(), &length, &info);
}

template <class T> bool factor_lu_rows(int64_t n, T* a, int* permutation) {
  if (n == 0) return true;
  BlockVector<T> copy = transposed(n, n, a);
  BlockVector<int> pivots(static_cast<size_t>(n));
  const bool regular = factor_lu(n, copy.data(), pivots.data());
  transpose_into(n, n, copy.data(), a);
  for (int64_t i = 0; i < n; ++i) permutation[i] = int(i);
  for (int64_t i = 0; i < n; ++i) std::swap(permutation[i], permutation[pivots[size_t(i)] - 1]);
  return regular;
}

template <class T> void solve_triangular(bool lower, bool adjoint, int64_t n, int64_t k, const T* a, T* b) {
  if (n == 0 || k == 0) return;
  solve_triangle({lower, adjoint, false}, n, k, a, b);
}

template <class T> void factor_qr(int64_t m, int64_t n, int64_t k, const T* a, T* q, T* r) {
  static void* const geqrf = routine<T>("geqrf");
  static void* const orgqr = routine<T>(is_complex<T> ? "ungqr" : "orgqr");
  const int64_t least = std::min(m, n);
  const int rows = int(m), columns = int(n), wanted = int(k), reflections = int(least);
  const int length = int(32 * std::max<int64_t>(1, std::max(n, k)));
  BlockVector<T> copy(size_t(m * std::max(n, k))), tau(size_t(std::max<int64_t>(1, least))),
      work(static_cast<size_t>(length));
  transpose_into(m, n, a, copy.data());
  int info = 0;
  if (least > 0) call(geqrf, &rows, &columns, copy.data(), &rows, tau.data(), work.data(), &length, &info);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) r[i * n + j] = j >= i ? copy[size_t(j * m + i)] : T(0);
  if (k > 0) call(orgqr, &rows, &wanted, &reflections, copy.data(), &rows, tau.data(), work.data(), &length, &info);
  transpose_into(k, m, copy.data(), q);
}

// LAPACK sees A^T = conj(V) S U^T, so its right factor is U as we store it, and its left one is V to be transposed.
template <class T> bool factor_svd(int64_t m, int64_t n, bool full, const T* a, RealOf<T>* s, T* u, T* v) {
  static void* const gesdd = routine<T>("gesdd");
  using Real = RealOf<T>;
  const int64_t least = std::min(m, n), most = std::max(m, n);
  if (least == 0) {
    if (u && full) {
      std::fill(u, u + m * m, T(0)), std::fill(v, v + n * n, T(0));
      for (int64_t i = 0; i < m; ++i) u[i * m + i] = T(1);
      for (int64_t i = 0; i < n; ++i) v[i * n + i] = T(1);
    }
    return true;
  }
  const int64_t u_columns = full ? m : least, v_columns = full ? n : least;
  BlockVector<T> copy(a, a + m * n), left(u ? size_t(n * v_columns) : 1);
  T none;
  const int rows = int(n), columns = int(m), left_stride = int(n), right_stride = u ? int(u_columns) : 1;
  BlockVector<int> integers(size_t(8 * least));
  BlockVector<Real> reals(is_complex<T> ? size_t(least * std::max(5 * least + 7, 2 * most + 2 * least + 1) + 7 * least)
                                        : 1);
  int info = 0, length = -1;
  T best(0);
  auto run = [&](T* work) {
    const char* job = !u ? "N" : full ? "A" : "S";
    T* right = u ? u : &none;
    if constexpr (is_complex<T>)
      call(gesdd, job, &rows, &columns, copy.data(), &rows, s, left.data(), &left_stride, right, &right_stride, work,
           &length, reals.data(), integers.data(), &info, one);
    else
      call(gesdd, job, &rows, &columns, copy.data(), &rows, s, left.data(), &left_stride, right, &right_stride, work,
           &length, integers.data(), &info, one);
  };
  run(&best);
  length = int(std::real(best) * Real(1.001)) + 16;
  BlockVector<T> work(static_cast<size_t>(length));
  run(work.data());
  if (info != 0) return false;
  if (u) {
    for (T& x : left) x = conjugate(x);
    transpose_into(v_columns, n, left.data(), v);
  }
  return true;
}

// LAPACK sees conj(A): the rows it leaves are the conjugated eigenvectors.
template <class T> bool factor_eigen_hermitian(int64_t n, const T* a, RealOf<T>* e, T* v) {
  static void* const evd = routine<T>(is_complex<T> ? "heevd" : "syevd");
  using Real = RealOf<T>;
  if (n == 0) return true;
  BlockVector<T> copy(a, a + n * n);
  const int order = int(n);
  int info = 0, length = -1, real_length = -1, integer_length = -1, integer_best = 0;
  T best(0);
  Real real_best(0);
  auto run = [&](T* work, Real* reals, int* integers) {
    const char* job = v ? "V" : "N";
    if constexpr (is_complex<T>)
      call(evd, job, "U", &order, copy.data(), &order, e, work, &length, reals, &real_length, integers, &integer_length,
           &info, one, one);
    else
      call(evd, job, "U", &order, copy.data(), &order, e, work, &length, integers, &integer_length, &info, one, one);
  };
  run(&best, &real_best, &integer_best);
  length = int(std::real(best) * Real(1.001)) + 16;
  real_length = int(real_best * Real(1.001)) + 16;
  integer_length = integer_best;
  BlockVector<T> work(static_cast<size_t>(length));
  BlockVector<Real> reals(static_cast<size_t>(real_length));
  BlockVector<int> integers(size_t(integer_length + 1));
  run(work.data(), reals.data(), integers.data());
  if (info != 0) return false;
  if (v) {
    for (T& x : copy) x = conjugate(x);
    transpose_into(n, n, copy.data(), v);
  }
  return true;
}

template <class T> bool factor_eigen(int64_t n, const T* a, ComplexOf<T>* e, ComplexOf<T>* v) {
  static void* const geev = routine<T>("geev");
  using Real = RealOf<T>;
  if (n == 0) return true;
  BlockVector<T> copy = transposed(n, n, a), vectors(v ? size_t(n * n) : 1), unused(1);
  BlockVector<Real> reals(size_t(2 * n));
  const int order = int(n), stride = v ? order : 1, single = 1;
  int info = 0, length = -1;
  T best(0);
  auto run = [&](T* work) {
    const char* job = v ? "V" : "N";
    if constexpr (is_complex<T>)
      call(geev, "N", job, &order, copy.data(), &order, e, unused.data(), &single, vectors.data(), &stride, work,
           &length, reals.data(), &info, one, one);
    else
      call(geev, "N", job, &order, copy.data(), &order, reals.data(), reals.data() + n, unused.data(), &single,
           vectors.data(), &stride, work, &length, &info, one, one);
  };
  run(&best);
  length = int(std::real(best) * Real(1.001)) + 16;
  BlockVector<T> work(static_cast<size_t>(length));
  run(work.data());
  if (info != 0) return false;
  if constexpr (is_complex<T>) {
    if (v) transpose_into(n, n, vectors.data(), v);
  } else {
    for (int64_t i = 0; i < n; ++i) e[i] = {reals[size_t(i)], reals[size_t(n + i)]};
    // A conjugate pair shares two columns: its real and its imaginary part.
    for (int64_t j = 0; v && j < n; ++j) {
      const bool pair = std::imag(e[j]) != 0 && j + 1 < n;
      for (int64_t i = 0; i < n; ++i) {
        const Real re = vectors[size_t(j * n + i)], im = pair ? vectors[size_t((j + 1) * n + i)] : Real(0);
        v[i * n + j] = {re, im};
        if (pair) v[i * n + j + 1] = {re, -im};
      }
      if (pair) ++j;
    }
  }
  return true;
}

// ---- functions of a matrix

// Scaling and squaring with the diagonal Padé approximant of degree 13 (N. J. Higham, 2005).
template <class T> void exponential(int64_t n, T* a) {
  using Real = RealOf<T>;
  if (n == 0) return;
  const size_t size = size_t(n * n);
  double norm = 0;
  for (int64_t j = 0; j < n; ++j) {
    double column = 0;
    for (int64_t i = 0; i < n; ++i) column += double(std::abs(a[i * n + j]));
    norm = std::max(norm, column);
  }
  if (!std::isfinite(norm)) return std::fill(a, a + size, T(std::numeric_limits<Real>::quiet_NaN()));
  int squarings = 0;
  if (norm > 5.371920351148152) std::frexp(norm / 5.371920351148152, &squarings);
  const Real scale = std::ldexp(Real(1), -squarings);
  for (size_t i = 0; i < size; ++i) a[i] *= scale;

  // Coefficients of the numerator over the first one.
  Real c[14] = {1};
  for (int i = 1; i <= 13; ++i) c[i] = c[i - 1] * Real(14 - i) / (Real(i) * Real(27 - i));
  auto product = [&](const BlockVector<T>& x, const BlockVector<T>& y) {
    BlockVector<T> z(size);
    gemm<T>(false, false, n, n, n, x.data(), n, y.data(), n, z.data(), n, false);
    return z;
  };
  const BlockVector<T> a1(a, a + size), a2 = product(a1, a1), a4 = product(a2, a2), a6 = product(a4, a2);
  auto combine = [&](Real k6, Real k4, Real k2, Real k0) {
    BlockVector<T> z(size);
    for (size_t i = 0; i < size; ++i) z[i] = k6 * a6[i] + k4 * a4[i] + k2 * a2[i];
    for (int64_t i = 0; i < n; ++i) z[size_t(i * n + i)] += k0;
    return z;
  };
  auto sum = [&](BlockVector<T> x, const BlockVector<T>& y) {
    for (size_t i = 0; i < size; ++i) x[i] += y[i];
    return x;
  };
  const BlockVector<T> odd =
      product(a1, sum(product(a6, combine(c[13], c[11], c[9], 0)), combine(c[7], c[5], c[3], c[1])));
  BlockVector<T> even = sum(product(a6, combine(c[12], c[10], c[8], 0)), combine(c[6], c[4], c[2], c[0]));
  BlockVector<T> result = sum(even, odd);
  for (size_t i = 0; i < size; ++i) even[i] -= odd[i];
  BlockVector<int> pivots(static_cast<size_t>(n));
  factor_lu(n, even.data(), pivots.data());
  solve_lu(false, n, n, even.data(), pivots.data(), result.data());
  for (int i = 0; i < squarings; ++i) result = product(result, result);
  std::copy(result.begin(), result.end(), a);
}

namespace {

using Complex = std::complex<double>;

// A = Q T Q^H with T upper triangular; all three column-major (A comes row-major).
struct Schur {
  int64_t n;
  BlockVector<Complex> t, q;
  bool found = false;

  Schur(int64_t order, const Complex* a) : n(order), t(transposed(order, order, a)), q(size_t(order * order)) {
    static void* const gees = routine<Complex>("gees");
    const int size = int(n);
    int info = 0, length = -1, sorted = 0;
    BlockVector<Complex> values(static_cast<size_t>(n));
    BlockVector<double> reals(static_cast<size_t>(n));
    Complex best(0);
    const void* no_choice = nullptr;
    auto run = [&](Complex* work) {
      call(gees, "V", "N", no_choice, &size, t.data(), &size, &sorted, values.data(), q.data(), &size, work, &length,
           reals.data(), static_cast<int*>(nullptr), &info, one, one);
    };
    run(&best);
    length = int(best.real()) + 16;
    BlockVector<Complex> work(static_cast<size_t>(length));
    run(work.data());
    found = info == 0;
  }

  // a (row-major) = Q f Q^H for a column-major f.
  void put_back(const BlockVector<Complex>& f, Complex* a) const {
    const BlockVector<Complex> rows = transposed(n, n, f.data()), left = transposed(n, n, q.data());
    BlockVector<Complex> half(size_t(n * n)), right(q);
    for (Complex& x : right) x = std::conj(x);  // column-major conj(Q) is row-major Q^H
    gemm<Complex>(false, false, n, n, n, left.data(), n, rows.data(), n, half.data(), n, false);
    gemm<Complex>(false, false, n, n, n, half.data(), n, right.data(), n, a, n, false);
  }
};

// The upper triangular square root of an upper triangular matrix, column by column (Björck and Hammarling).
BlockVector<Complex> triangular_square_root(int64_t n, const BlockVector<Complex>& t) {
  BlockVector<Complex> r(size_t(n * n));
  for (int64_t j = 0; j < n; ++j) {
    r[size_t(j * n + j)] = std::sqrt(t[size_t(j * n + j)]);
    for (int64_t i = j - 1; i >= 0; --i) {
      Complex rest = t[size_t(j * n + i)];
      for (int64_t k = i + 1; k < j; ++k) rest -= r[size_t(k * n + i)] * r[size_t(j * n + k)];
      const Complex sum = r[size_t(i * n + i)] + r[size_t(j * n + j)];
      r[size_t(j * n + i)] = rest == 0. ? Complex(0) : rest / sum;
    }
  }
  return r;
}

}  // namespace

bool square_root(int64_t n, Complex* a) {
  if (n == 0) return true;
  const Schur schur(n, a);
  if (schur.found) schur.put_back(triangular_square_root(n, schur.t), a);
  return schur.found;
}

// Inverse scaling and squaring on the Schur form: square roots until the matrix is near 1, then the Padé approximant of
// degree 7 of log(1 + x), as its partial fractions (Gauss-Legendre nodes on [0, 1]).
bool logarithm(int64_t n, Complex* a) {
  if (n == 0) return true;
  const Schur schur(n, a);
  if (!schur.found) return false;
  constexpr double node[7] = {0.025446043828620757, 0.12923440720030278, 0.29707742431130141, 0.5,
                              0.70292257568869854,  0.87076559279969723, 0.97455395617137924};
  constexpr double weight[7] = {0.064742483084434851, 0.13985269574463833, 0.19091502525255946, 0.20897959183673469,
                                0.19091502525255946,  0.13985269574463833, 0.064742483084434851};
  BlockVector<Complex> t = schur.t;
  int roots = 0;
  for (; roots < 100; ++roots) {
    double norm = 0;
    for (int64_t j = 0; j < n; ++j) {
      double column = 0;
      for (int64_t i = 0; i <= j; ++i) column += std::abs(t[size_t(j * n + i)] - Complex(i == j ? 1 : 0));
      norm = std::max(norm, column);
    }
    if (!(norm > 0.25)) break;
    t = triangular_square_root(n, t);
  }
  for (int64_t i = 0; i < n; ++i) t[size_t(i * n + i)] -= 1.;
  BlockVector<Complex> sum(size_t(n * n));
  for (int p = 0; p < 7; ++p) {
    BlockVector<Complex> left(size_t(n * n)), right(t);
    for (size_t i = 0; i < left.size(); ++i) left[i] = node[p] * t[i];
    for (int64_t i = 0; i < n; ++i) left[size_t(i * n + i)] += 1.;
    triangular("L", "U", "N", "N", int(n), int(n), left.data(), right.data());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight[p] * right[i];
  }
  const double scale = std::ldexp(1., roots);
  for (Complex& x : sum) x *= scale;
  for (int64_t i = 0; i < n; ++i) sum[size_t(i * n + i)] = std::log(schur.t[size_t(i * n + i)]);
  schur.put_back(sum, a);
  return true;
}

// Gaussian elimination. With row exchanges the factor has a second diagonal above.
template <class T>
bool solve_tridiagonal(bool pivoting, int64_t n, int64_t k, const T* upper, const T* middle, const T* lower, T* b) {
  BlockVector<T> u(upper, upper + n), d(middle, middle + n), second(static_cast<size_t>(n));
  for (int64_t i = 0; i + 1 < n; ++i) {
    const size_t at = size_t(i);
    T below = lower[i + 1];
    if (pivoting && std::abs(below) > std::abs(d[at])) {
      std::swap(d[at], below);
      std::swap(u[at], d[at + 1]);
      if (i + 2 < n) std::swap(second[at], u[at + 1]);
      swap_rows(k, i, i + 1, b);
    }
    if (d[at] == T(0)) return false;
    const T factor = below / d[at];
    d[at + 1] -= factor * u[at];
    if (i + 2 < n) u[at + 1] -= factor * second[at];
    for (int64_t c = 0; c < k; ++c) b[(i + 1) * k + c] -= factor * b[i * k + c];
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    const size_t at = size_t(i);
    if (d[at] == T(0)) return false;
    for (int64_t c = 0; c < k; ++c) {
      T rest = b[i * k + c];
      if (i + 1 < n) rest -= u[at] * b[(i + 1) * k + c];
      if (i + 2 < n) rest -= second[at] * b[(i + 2) * k + c];
      b[i * k + c] = rest / d[at];
    }
  }
  return true;
}

#define TAPEFLOW_INSTANTIATE(T)                                                      \
  template bool factor_cholesky<T>(int64_t, T*);                                     \
  template bool factor_lu<T>(int64_t, T*, int*);                                     \
  template T determinant_sign<T>(int64_t, const T*, const int*);                     \
  template void invert<T>(int64_t, T*, const int*);                                  \
  template void solve_lu<T>(bool, int64_t, int64_t, const T*, const int*, T*);       \
  template bool factor_lu_rows<T>(int64_t, T*, int*);                                \
  template void solve_triangular<T>(bool, bool, int64_t, int64_t, const T*, T*);     \
  template void factor_qr<T>(int64_t, int64_t, int64_t, const T*, T*, T*);           \
  template bool factor_svd<T>(int64_t, int64_t, bool, const T*, RealOf<T>*, T*, T*); \
  template bool factor_eigen_hermitian<T>(int64_t, const T*, RealOf<T>*, T*);        \
  template bool factor_eigen<T>(int64_t, const T*, ComplexOf<T>*, ComplexOf<T>*);    \
  template void exponential<T>(int64_t, T*);                                         \
  template bool solve_tridiagonal<T>(bool, int64_t, int64_t, const T*, const T*, const T*, T*);
TAPEFLOW_INSTANTIATE(float)
TAPEFLOW_INSTANTIATE(double)
TAPEFLOW_INSTANTIATE(std::complex<float>)
TAPEFLOW_INSTANTIATE(std::complex<double>)
#undef TAPEFLOW_INSTANTIATE

}  // namespace tapeflow
