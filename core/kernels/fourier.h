// Discrete Fourier transforms of any length, on pointers. No result is scaled but where `scale` says so.
#pragma once
#include <complex>
#include <cstdint>

namespace tapeflow {

// y[o, k, i] = scale * sum over j of x[o, j, i] exp(-+2 pi i jk / n); + when `inverse`. `y` may be `x`. T is float or
// double.
template <class T> void fourier(const std::complex<T>* x, std::complex<T>* y, int64_t outer, int64_t n, int64_t inner,
                                bool inverse, double scale);

// The first n / 2 + 1 values of the transform of each real row of length n.
template <class T> void fourier_of_real(const T* x, std::complex<T>* y, int64_t rows, int64_t n);
// Real rows of length n from the first n / 2 + 1 values of their transforms; imaginary parts that cannot be are left
// out.
template <class T> void fourier_to_real(const std::complex<T>* x, T* y, int64_t rows, int64_t n, double scale);

}  // namespace tapeflow
