// Batches of matrices: their shapes and loops, and the matrix expressions that derivative rules share.
#pragma once
#include <algorithm>
#include <limits>

#include "base/blocks.h"
#include "base/parallel.h"
#include "kernels/linalg/factorize.h"
#include "ops/family.h"

namespace tapeflow::linalg {

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

inline Matrices matrices(const char* who, const Shape& x, int position = 0) {
  if (x.rank() < 2)
    fail(ErrorKind::invalid_argument, who, ": Input tensor ", position, " must have rank >= 2, got ", x.rank(),
         "; its shape is ", x);
  return {x.elements(0, x.rank() - 2), x.back(2), x.back(1), x.slice(0, x.rank() - 2)};
}
inline Matrices square_matrices(const char* who, const Shape& x) {
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
inline int64_t cube(int64_t n) { return n * n * n; }

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

inline Ints swapped_ends(int rank) {
  Ints permutation;
  for (int i = 0; i < rank; ++i) permutation.push_back(i);
  std::swap(permutation[size_t(rank - 1)], permutation[size_t(rank - 2)]);
  return permutation;
}
inline Tensor adjoint(const Tensor& x) { return conj(transpose(x, swapped_ends(x.rank()))); }
inline Tensor with_row(const Tensor& x) {  // (..., n) as (..., 1, n): one number per column
  Shape s = x.shape();
  s.insert(s.rank() - 1, 1);
  return reshape(x, s);
}
inline Tensor with_column(const Tensor& x) {
  Shape s = x.shape();
  s.append(1);
  return reshape(x, s);
}
inline Tensor broadcast_scalar(const Tensor& x) { return with_column(with_column(x)); }
inline Tensor part(const Tensor& x, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  Ints begin, size;
  for (int i = 0; i + 2 < x.rank(); ++i) begin.push_back(0), size.push_back(x.dim(i));
  begin.push_back(row), begin.push_back(column), size.push_back(rows), size.push_back(columns);
  return slice(x, begin, size);
}
inline Tensor columns(const Tensor& x, int64_t from, int64_t count) {
  return part(x, 0, x.shape().back(2), from, count);
}

// x / (x^2 + 1e-20): the reciprocal, and 0 where x is 0; so equal eigenvalues give finite (if arbitrary) gradients.
inline Tensor safe_reciprocal(const Tensor& x) { return divide(x, shifted(multiply(x, x), 1e-20)); }
// 1 / (e_j - e_i) off the diagonal, 0 on it.
inline Tensor reciprocal_gaps(const Tensor& e) {
  Tensor f = safe_reciprocal(subtract(with_row(e), with_column(e)));
  return matrix_set_diag(f, zeros_like(e), Ints{0}, "RIGHT_LEFT");
}
// The part above the diagonal and half of the diagonal.
inline Tensor upper_half(const Tensor& x) {
  Tensor d = scaled(matrix_diag_part(x, Ints{0}, "RIGHT_LEFT"), 0.5);
  return matrix_set_diag(band_part(x, 0, -1), d, Ints{0}, "RIGHT_LEFT");
}
inline Tensor lower_half(const Tensor& x) {
  Tensor d = scaled(matrix_diag_part(x, Ints{0}, "RIGHT_LEFT"), 0.5);
  return matrix_set_diag(band_part(x, -1, 0), d, Ints{0}, "RIGHT_LEFT");
}

[[noreturn]] inline void fail_singular(const char* who, const Shape& s) {
  fail(ErrorKind::invalid_argument, who, ": Input is not invertible. Its shape is ", s, ".");
}

Tensor solve(const Tensor& a, const Tensor& b);  // X in a X = b

}  // namespace tapeflow::linalg
