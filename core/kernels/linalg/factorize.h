// Owns factorisations and functions of one matrix on plain row-major memory, on the calling thread. LAPACK does the
// work; without a library every function here throws. Knows no batches.
#pragma once

#include <complex>
#include <cstdint>

namespace tapeflow {

template <class T> struct RealOfNumber {
  using type = T;
};
template <class T> struct RealOfNumber<std::complex<T>> {
  using type = T;
};
template <class T> using RealOf = typename RealOfNumber<T>::type;
template <class T> using ComplexOf = std::complex<RealOf<T>>;

// T below: float, double and their complex types. A result of false means that there is no such factorisation: the
// matrix is singular, not positive definite, or the iteration did not converge.

// Reads the lower triangle of the n x n matrix and puts L there, A = L L^H.
template <class T> bool factor_cholesky(int64_t n, T* a);

// The factors of A^T, in a form that the functions below read; n pivots.
template <class T> bool factor_lu(int64_t n, T* a, int* pivots);
template <class T> T determinant_sign(int64_t n, const T* factors, const int* pivots);  // the determinant over its size
template <class T> void invert(int64_t n, T* factors, const int* pivots);               // puts the inverse of A there
template <class T>
void solve_lu(bool adjoint, int64_t n, int64_t k, const T* factors, const int* pivots, T* b);  // b: n x k

// The packed factors of A in place, and the order of its rows: L U = A[permutation].
template <class T> bool factor_lu_rows(int64_t n, T* a, int* permutation);

// A X = B or A^H X = B with a triangle of A; b (n x k) becomes X.
template <class T> void solve_triangular(bool lower, bool adjoint, int64_t n, int64_t k, const T* a, T* b);

// A (m x n) = Q R with k columns in Q: min(m, n) or m.
template <class T> void factor_qr(int64_t m, int64_t n, int64_t k, const T* a, T* q, T* r);

// A (m x n) = U diag(s) V^H. Without u and v (null) only s. `full`: u is m x m and v n x n.
template <class T> bool factor_svd(int64_t m, int64_t n, bool full, const T* a, RealOf<T>* s, T* u, T* v);

// Reads the lower triangle of a Hermitian matrix; eigenvalues go up, eigenvectors are the columns of v (may be null).
template <class T> bool factor_eigen_hermitian(int64_t n, const T* a, RealOf<T>* e, T* v);
template <class T> bool factor_eigen(int64_t n, const T* a, ComplexOf<T>* e, ComplexOf<T>* v);

// Functions of a matrix, in place.
template <class T> void exponential(int64_t n, T* a);
bool square_root(int64_t n, std::complex<double>* a);
bool logarithm(int64_t n, std::complex<double>* a);

// The three diagonals of a tridiagonal matrix (each n long; the last of `upper` and the first of `lower` are not read)
// times X = B; b (n x k) becomes X. Rows are exchanged where `pivoting`, for accuracy.
template <class T>
bool solve_tridiagonal(bool pivoting, int64_t n, int64_t k, const T* upper, const T* middle, const T* lower, T* b);

}  // namespace tapeflow
