// What a Fourier transform does besides its passes: complex rows become lanes with their real and imaginary parts
// apart, and back; the transform of n / 2 complex numbers becomes that of n real ones, and back.
#pragma once
#include <cstdint>

namespace tapeflow {

// Element k of lane q is at k * lanes + q, for rows that begin `pitch` numbers after each other.
template <class T> struct SpectrumKernels {
  // re and im of rows of n complex numbers.
  void (*load)(const T* x, int64_t pitch, int64_t n, int64_t lanes, T* re, T* im);
  // The same back, times a factor.
  void (*store)(const T* re, const T* im, int64_t n, int64_t lanes, T factor, T* y, int64_t pitch);
  // X_k = (Z_k + conj Z_(h-k)) / 2 - i/2 w^k (Z_k - conj Z_(h-k)), k <= h, with Z_h = Z_0, w^k = c_k + i s_k.
  void (*split)(int64_t h, int64_t lanes, const T* zr, const T* zi, const T* c, const T* s, T* xr, T* xi);
  // Z_k = (X_k + conj X_(h-k)) + i conj(w^k) (X_k - conj X_(h-k)), k < h. X_0 and X_h count as real.
  void (*merge)(int64_t h, int64_t lanes, const T* xr, const T* xi, const T* c, const T* s, T* zr, T* zi);
};

template <class T> const SpectrumKernels<T>& spectrum_kernels();  // T = float, double
template <> const SpectrumKernels<float>& spectrum_kernels<float>();
template <> const SpectrumKernels<double>& spectrum_kernels<double>();

}  // namespace tapeflow
