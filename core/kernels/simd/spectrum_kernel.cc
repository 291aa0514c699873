// Rows to lanes, lanes to rows, and spectra of real rows, compiled once per instruction set.
#include "kernels/simd/spectrum.h"

#include <cstring>
#include <type_traits>

namespace tapeflow::TAPEFLOW_ISA {
namespace {

// ---- rows of float pairs, eight lanes and four pairs at a time

typedef float Floats __attribute__((vector_size(32)));
typedef double Pairs __attribute__((vector_size(32)));  // a pair of floats is moved as one double

inline void transpose(Pairs (&x)[4]) {
  const Pairs a = __builtin_shufflevector(x[0], x[1], 0, 4, 2, 6), b = __builtin_shufflevector(x[0], x[1], 1, 5, 3, 7);
  const Pairs c = __builtin_shufflevector(x[2], x[3], 0, 4, 2, 6), d = __builtin_shufflevector(x[2], x[3], 1, 5, 3, 7);
  x[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5), x[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  x[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7), x[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

inline void load_block(const float* x, int64_t pitch, int64_t lanes, float* re, float* im) {
  Pairs low[4], high[4];
  for (int q = 0; q < 4; ++q) {
    std::memcpy(&low[q], x + q * pitch, sizeof low[q]);
    std::memcpy(&high[q], x + (q + 4) * pitch, sizeof high[q]);
  }
  transpose(low), transpose(high);
  for (int k = 0; k < 4; ++k) {
    Floats a, b;
    std::memcpy(&a, &low[k], sizeof a);
    std::memcpy(&b, &high[k], sizeof b);
    const Floats even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    const Floats odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
    std::memcpy(re + k * lanes, &even, sizeof even);
    std::memcpy(im + k * lanes, &odd, sizeof odd);
  }
}

inline void store_block(const float* re, const float* im, int64_t lanes, float factor, float* y, int64_t pitch) {
  Pairs low[4], high[4];
  for (int k = 0; k < 4; ++k) {
    Floats r, i;
    std::memcpy(&r, re + k * lanes, sizeof r);
    std::memcpy(&i, im + k * lanes, sizeof i);
    r = factor * r, i = factor * i;
    const Floats a = __builtin_shufflevector(r, i, 0, 8, 1, 9, 2, 10, 3, 11);
    const Floats b = __builtin_shufflevector(r, i, 4, 12, 5, 13, 6, 14, 7, 15);
    std::memcpy(&low[k], &a, sizeof a);
    std::memcpy(&high[k], &b, sizeof b);
  }
  transpose(low), transpose(high);
  for (int q = 0; q < 4; ++q) {
    std::memcpy(y + q * pitch, &low[q], sizeof low[q]);
    std::memcpy(y + (q + 4) * pitch, &high[q], sizeof high[q]);
  }
}

// Visits all (k, q) in blocks of few k, so that the memory stays near row by row and lane by lane. Whole blocks of
// four k and eight q go to `block`.
template <class T, class Block, class Single> void in_blocks(int64_t n, int64_t lanes, Block block, Single single) {
  constexpr int64_t kRows = 16;
  for (int64_t begin = 0; begin < n; begin += kRows) {
    const int64_t end = begin + kRows < n ? begin + kRows : n;
    int64_t q = 0;
    if constexpr (std::is_same_v<T, float>)
      for (; q + 8 <= lanes; q += 8) {
        int64_t k = begin;
        for (; k + 4 <= end; k += 4) block(k, q);
        for (; k < end; ++k)
          for (int64_t lane = q; lane < q + 8; ++lane) single(k, lane);
      }
    for (; q < lanes; ++q)
      for (int64_t k = begin; k < end; ++k) single(k, q);
  }
}

template <class T> void load(const T* x, int64_t pitch, int64_t n, int64_t lanes, T* re, T* im) {
  in_blocks<T>(
      n, lanes,
      [&](int64_t k, int64_t q) {
        if constexpr (std::is_same_v<T, float>)
          load_block(x + q * pitch + 2 * k, pitch, lanes, re + k * lanes + q, im + k * lanes + q);
      },
      [&](int64_t k, int64_t q) {
        re[k * lanes + q] = x[q * pitch + 2 * k];
        im[k * lanes + q] = x[q * pitch + 2 * k + 1];
      });
}

template <class T> void store(const T* re, const T* im, int64_t n, int64_t lanes, T factor, T* y, int64_t pitch) {
  in_blocks<T>(
      n, lanes,
      [&](int64_t k, int64_t q) {
        if constexpr (std::is_same_v<T, float>)
          store_block(re + k * lanes + q, im + k * lanes + q, lanes, factor, y + q * pitch + 2 * k, pitch);
      },
      [&](int64_t k, int64_t q) {
        y[q * pitch + 2 * k] = factor * re[k * lanes + q];
        y[q * pitch + 2 * k + 1] = factor * im[k * lanes + q];
      });
}

// ---- spectra of real rows

template <class T> void split(int64_t h, int64_t lanes, const T* __restrict zr, const T* __restrict zi, const T* c,
                              const T* s, T* __restrict xr, T* __restrict xi) {
  for (int64_t k = 0; k <= h; ++k) {
    const int64_t a = (k == h ? 0 : k) * lanes, b = (k == 0 ? 0 : h - k) * lanes, to = k * lanes;
    const T ck = T(0.5) * c[k], sk = T(0.5) * s[k];
    const bool real = k == 0 || k == h;
    for (int64_t q = 0; q < lanes; ++q) {
      const T er = zr[a + q] + zr[b + q], ei = zi[a + q] - zi[b + q];
      const T dr = zr[a + q] - zr[b + q], di = zi[a + q] + zi[b + q];
      xr[to + q] = T(0.5) * er + (dr * sk + di * ck);
      xi[to + q] = T(0.5) * ei - (dr * ck - di * sk);
    }
    for (int64_t q = 0; real && q < lanes; ++q) xi[to + q] = 0;
  }
}

template <class T> void merge(int64_t h, int64_t lanes, const T* __restrict xr, const T* __restrict xi, const T* c,
                              const T* s, T* __restrict zr, T* __restrict zi) {
  for (int64_t q = 0; q < lanes; ++q) {
    const T a = xr[q], b = xr[h * lanes + q];
    zr[q] = a + b;
    zi[q] = a - b;
  }
  for (int64_t k = 1; k < h; ++k) {
    const int64_t a = k * lanes, b = (h - k) * lanes;
    const T ck = c[k], sk = s[k];
    for (int64_t q = 0; q < lanes; ++q) {
      const T er = xr[a + q] + xr[b + q], ei = xi[a + q] - xi[b + q];
      const T dr = xr[a + q] - xr[b + q], di = xi[a + q] + xi[b + q];
      zr[a + q] = er - (di * ck - dr * sk);
      zi[a + q] = ei + (dr * ck + di * sk);
    }
  }
}

}  // namespace

extern const SpectrumKernels<float> float_spectrum;
extern const SpectrumKernels<double> double_spectrum;
const SpectrumKernels<float> float_spectrum{load<float>, store<float>, split<float>, merge<float>};
const SpectrumKernels<double> double_spectrum{load<double>, store<double>, split<double>, merge<double>};

}  // namespace tapeflow::TAPEFLOW_ISA
