// Owns the choice and loading of the BLAS and LAPACK library; nothing is loaded before the first use.
#pragma once

#include <complex>

namespace tapeflow {

// Directories to search for the library, separated by ':'. Has effect until the first use of the library.
void set_blas_library_path(const char* directories);

// The Fortran routine of this name ("dpotrf", without prefix or underscore), or null when there is no library. Integers
// are 32 bits wide; each character argument needs its length as a trailing size_t.
void* blas_lookup(const char* routine);

// "openblas", "mkl" or "none". The environment variable TAPEFLOW_BLAS asks for one of them; openblas is the default.
const char* blas_provider();

// Whether the library uses the widest vectors of this machine. OpenBLAS takes the kernels of AVX2 for processors with
// AVX-512 that it does not know.
bool blas_has_wide_kernels();

// Fortran ?gemm, column-major. Null when there is no library.
template <class T> using BlasGemm = void (*)(const char* transpose_a, const char* transpose_b, const int* m,
                                             const int* n, const int* k, const T* alpha, const T* a, const int* lda,
                                             const T* b, const int* ldb, const T* beta, T* c, const int* ldc);
template <class T> BlasGemm<T> blas_gemm();  // T: float, double and their complex types

}  // namespace tapeflow
