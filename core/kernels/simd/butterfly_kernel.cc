// The passes of the Fourier transform, compiled once per instruction set. The compiler makes vectors of the inner
// loops.
#include "kernels/simd/butterfly.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

// One pass; q runs over neighbours.
template <class T> void butterfly(int radix, const T* rc, const T* rs, int64_t m, int64_t s, const T* __restrict xr,
                                  const T* __restrict xi, T* __restrict yr, T* __restrict yi, const T* wr,
                                  const T* wi) {
  const int64_t ms = m * s;
  if (radix == 4) {
    for (int64_t p = 0; p < m; ++p) {
      const T w1r = wr[3 * p], w1i = wi[3 * p], w2r = wr[3 * p + 1], w2i = wi[3 * p + 1], w3r = wr[3 * p + 2],
              w3i = wi[3 * p + 2];
      const T *ar = xr + s * p, *ai = xi + s * p;
      T *br = yr + 4 * s * p, *bi = yi + 4 * s * p;
#pragma GCC ivdep
      for (int64_t q = 0; q < s; ++q) {
        T s0r = ar[q] + ar[q + 2 * ms], s0i = ai[q] + ai[q + 2 * ms], d0r = ar[q] - ar[q + 2 * ms],
          d0i = ai[q] - ai[q + 2 * ms];
        T s1r = ar[q + ms] + ar[q + 3 * ms], s1i = ai[q + ms] + ai[q + 3 * ms];
        T d1r = ar[q + ms] - ar[q + 3 * ms], d1i = ai[q + ms] - ai[q + 3 * ms];
        T v1r = d0r + d1i, v1i = d0i - d1r, v2r = s0r - s1r, v2i = s0i - s1i, v3r = d0r - d1i, v3i = d0i + d1r;
        br[q] = s0r + s1r, bi[q] = s0i + s1i;
        br[q + s] = v1r * w1r - v1i * w1i, bi[q + s] = v1r * w1i + v1i * w1r;
        br[q + 2 * s] = v2r * w2r - v2i * w2i, bi[q + 2 * s] = v2r * w2i + v2i * w2r;
        br[q + 3 * s] = v3r * w3r - v3i * w3i, bi[q + 3 * s] = v3r * w3i + v3i * w3r;
      }
    }
  } else if (radix == 2) {
    for (int64_t p = 0; p < m; ++p) {
      const T w1r = wr[p], w1i = wi[p];
      const T *ar = xr + s * p, *ai = xi + s * p;
      T *br = yr + 2 * s * p, *bi = yi + 2 * s * p;
#pragma GCC ivdep
      for (int64_t q = 0; q < s; ++q) {
        T dr = ar[q] - ar[q + ms], di = ai[q] - ai[q + ms];
        br[q] = ar[q] + ar[q + ms], bi[q] = ai[q] + ai[q + ms];
        br[q + s] = dr * w1r - di * w1i, bi[q + s] = dr * w1i + di * w1r;
      }
    }
  } else if (radix == 3) {
    const T c = T(-0.5), h = T(0.866025403784438646763723170752936183);
    for (int64_t p = 0; p < m; ++p) {
      const T w1r = wr[2 * p], w1i = wi[2 * p], w2r = wr[2 * p + 1], w2i = wi[2 * p + 1];
      const T *ar = xr + s * p, *ai = xi + s * p;
      T *br = yr + 3 * s * p, *bi = yi + 3 * s * p;
#pragma GCC ivdep
      for (int64_t q = 0; q < s; ++q) {
        T tr = ar[q + ms] + ar[q + 2 * ms], ti = ai[q + ms] + ai[q + 2 * ms];
        T er = h * (ar[q + ms] - ar[q + 2 * ms]), ei = h * (ai[q + ms] - ai[q + 2 * ms]);
        T mr = ar[q] + c * tr, mi = ai[q] + c * ti;
        T v1r = mr + ei, v1i = mi - er, v2r = mr - ei, v2i = mi + er;
        br[q] = ar[q] + tr, bi[q] = ai[q] + ti;
        br[q + s] = v1r * w1r - v1i * w1i, bi[q + s] = v1r * w1i + v1i * w1r;
        br[q + 2 * s] = v2r * w2r - v2i * w2i, bi[q + 2 * s] = v2r * w2i + v2i * w2r;
      }
    }
  } else if (radix == 5) {
    const T c1 = T(0.309016994374947424102293417182819059), c2 = T(-0.809016994374947424102293417182819059);
    const T s1 = T(0.951056516295153572116439333379382143), s2 = T(0.587785252292473129168705954639072769);
    for (int64_t p = 0; p < m; ++p) {
      const T *wp = wr + 4 * p, *wq = wi + 4 * p;
      const T *ar = xr + s * p, *ai = xi + s * p;
      T *br = yr + 5 * s * p, *bi = yi + 5 * s * p;
#pragma GCC ivdep
      for (int64_t q = 0; q < s; ++q) {
        T t1r = ar[q + ms] + ar[q + 4 * ms], t1i = ai[q + ms] + ai[q + 4 * ms];
        T t2r = ar[q + 2 * ms] + ar[q + 3 * ms], t2i = ai[q + 2 * ms] + ai[q + 3 * ms];
        T d1r = ar[q + ms] - ar[q + 4 * ms], d1i = ai[q + ms] - ai[q + 4 * ms];
        T d2r = ar[q + 2 * ms] - ar[q + 3 * ms], d2i = ai[q + 2 * ms] - ai[q + 3 * ms];
        T m1r = ar[q] + c1 * t1r + c2 * t2r, m1i = ai[q] + c1 * t1i + c2 * t2i;
        T m2r = ar[q] + c2 * t1r + c1 * t2r, m2i = ai[q] + c2 * t1i + c1 * t2i;
        T e1r = s1 * d1r + s2 * d2r, e1i = s1 * d1i + s2 * d2i, e2r = s2 * d1r - s1 * d2r, e2i = s2 * d1i - s1 * d2i;
        T v1r = m1r + e1i, v1i = m1i - e1r, v4r = m1r - e1i, v4i = m1i + e1r;
        T v2r = m2r + e2i, v2i = m2i - e2r, v3r = m2r - e2i, v3i = m2i + e2r;
        br[q] = ar[q] + t1r + t2r, bi[q] = ai[q] + t1i + t2i;
        br[q + s] = v1r * wp[0] - v1i * wq[0], bi[q + s] = v1r * wq[0] + v1i * wp[0];
        br[q + 2 * s] = v2r * wp[1] - v2i * wq[1], bi[q + 2 * s] = v2r * wq[1] + v2i * wp[1];
        br[q + 3 * s] = v3r * wp[2] - v3i * wq[2], bi[q + 3 * s] = v3r * wq[2] + v3i * wp[2];
        br[q + 4 * s] = v4r * wp[3] - v4i * wq[3], bi[q + 4 * s] = v4r * wq[3] + v4i * wp[3];
      }
    }
  } else {
    for (int64_t p = 0; p < m; ++p) {
      const T *ar = xr + s * p, *ai = xi + s * p;
      for (int k = 0; k < radix; ++k) {
        T *br = yr + s * (radix * p + k), *bi = yi + s * (radix * p + k);
        for (int64_t q = 0; q < s; ++q) br[q] = ar[q], bi[q] = ai[q];
        for (int j = 1; j < radix; ++j) {
          const T c = rc[j * k % radix], d = rs[j * k % radix], *ur = ar + j * ms, *ui = ai + j * ms;
#pragma GCC ivdep
          for (int64_t q = 0; q < s; ++q) {
            br[q] += ur[q] * c - ui[q] * d;
            bi[q] += ur[q] * d + ui[q] * c;
          }
        }
        if (k == 0 || p == 0) continue;
        const T c = wr[p * (radix - 1) + k - 1], d = wi[p * (radix - 1) + k - 1];
#pragma GCC ivdep
        for (int64_t q = 0; q < s; ++q) {
          T re = br[q] * c - bi[q] * d;
          bi[q] = br[q] * d + bi[q] * c;
          br[q] = re;
        }
      }
    }
  }
}

}  // namespace

extern const Butterfly<float> float_butterfly;
extern const Butterfly<double> double_butterfly;
const Butterfly<float> float_butterfly = butterfly<float>;
const Butterfly<double> double_butterfly = butterfly<double>;

}  // namespace tapeflow::TAPEFLOW_ISA
