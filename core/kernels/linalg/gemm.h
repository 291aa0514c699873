// Owns matrix products on plain row-major memory: op(A) is m x k, op(B) is k x n, C is m x n.
#pragma once

#include <cstdint>

#include "kernels/epilogue.h"

namespace tapeflow {

// C = op(A) op(B), or C += op(A) op(B). `transpose_a` says that A is stored k x m, `transpose_b` that B is stored n x
// k; complex numbers are not conjugated. Leading dimensions are elements between stored rows. Every size may be 0. T:
// float, double, their complex types, int32_t and int64_t, which wrap. True if it called `epilogue`, which counts
// elements from c on: only where whole rows are made, since what follows is slow on short runs.
template <class T> bool gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
                             int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc, bool accumulate,
                             const Epilogue* epilogue = nullptr);

// `batch` products of equal shape; strides are elements between successive matrices, 0 for a shared operand.
template <class T> bool gemm_batched(int64_t batch, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                                     const T* a, int64_t lda, int64_t stride_a, const T* b, int64_t ldb,
                                     int64_t stride_b, T* c, int64_t ldc, int64_t stride_c,
                                     const Epilogue* epilogue = nullptr);

// One product on the calling thread. gemm_kernel.cc defines one per instruction set, in namespaces of these names, for
// float, double, uint32_t and uint64_t; gemm.cc chooses. No size may be 0.
template <class T> using SerialGemm = void (*)(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                                               const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
                                               bool accumulate);

namespace baseline {
template <class T> SerialGemm<T> serial_gemm();
}
namespace avx2 {
template <class T> SerialGemm<T> serial_gemm();
}
namespace avx512 {
template <class T> SerialGemm<T> serial_gemm();
}

}  // namespace tapeflow
