// One pass of a Fourier transform of mixed radix.
#pragma once
#include <cstdint>

namespace tapeflow {

// From x to y, whose real and imaginary parts are arrays of their own: m times s groups of `radix` elements. rc and rs
// are the roots of unity of the radix, wr and wi the twiddle factors.
template <class T> using Butterfly = void (*)(int radix, const T* rc, const T* rs, int64_t m, int64_t s, const T* xr,
                                              const T* xi, T* yr, T* yi, const T* wr, const T* wi);

template <class T> Butterfly<T> butterfly_of_this_machine();  // T = float, double
template <> Butterfly<float> butterfly_of_this_machine<float>();
template <> Butterfly<double> butterfly_of_this_machine<double>();

}  // namespace tapeflow
