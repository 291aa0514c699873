// Stockham's self-sorting transform in passes of radix 4, 2, 3, 5 and small primes; Bluestein's convolution for
// lengths with a large prime factor. Real and imaginary parts are apart, and several transforms lie side by side
// ("lanes"), so that every inner loop runs over neighbours.
//
// One pass of radix r over data of length n with s neighbours takes x[s (p + m j) + q], j < r, m = n / r, to
// y[s (r p + k) + q] = w^(p k) sum over j of x_j exp(-2 pi i jk / r), w = exp(-2 pi i / n), and leaves r-fold
// neighbours.
#include "kernels/fourier.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/blocks.h"
#include "base/parallel.h"
#include "kernels/simd/butterfly.h"
#include "kernels/simd/spectrum.h"

namespace tapeflow {
namespace {

constexpr int kMaxRadix = 31;

// cos and sin of -2 pi k / n, exact at multiples of a quarter turn.
template <class T> std::pair<T, T> root_of_unity(int64_t k, int64_t n) {
  k %= n;
  int64_t eighths = 8 * k / n;  // the octant
  auto part = [&](int64_t numerator) { return 2 * M_PI * double(numerator) / (8 * double(n)); };
  double c, s;  // of the angle +2 pi k / n
  switch (eighths) {
    case 0: c = std::cos(part(8 * k)), s = std::sin(part(8 * k)); break;
    case 1: c = std::sin(part(2 * n - 8 * k)), s = std::cos(part(2 * n - 8 * k)); break;
    case 2: c = -std::sin(part(8 * k - 2 * n)), s = std::cos(part(8 * k - 2 * n)); break;
    case 3: c = -std::cos(part(4 * n - 8 * k)), s = std::sin(part(4 * n - 8 * k)); break;
    case 4: c = -std::cos(part(8 * k - 4 * n)), s = -std::sin(part(8 * k - 4 * n)); break;
    case 5: c = -std::sin(part(6 * n - 8 * k)), s = -std::cos(part(6 * n - 8 * k)); break;
    case 6: c = std::sin(part(8 * k - 6 * n)), s = -std::cos(part(8 * k - 6 * n)); break;
    default: c = std::cos(part(8 * n - 8 * k)), s = -std::sin(part(8 * n - 8 * k)); break;
  }
  return {T(c), T(-s)};
}

template <class T> struct Plan {
  int64_t n;
  std::vector<int> radices;                        // empty: Bluestein, or n = 1
  std::vector<T> twiddle_re, twiddle_im;           // pass after pass: w^(p k) at p (r - 1) + k - 1
  std::vector<std::vector<T>> small_re, small_im;  // per pass of another radix than 2 to 5: exp(-2 pi i j / r)
  std::shared_ptr<const Plan> convolution;         // Bluestein: of length m >= 2 n - 1
  std::vector<T> chirp_re, chirp_im, kernel_re, kernel_im;

  int64_t scratch() const { return convolution ? 4 * convolution->n : 0; }  // numbers per lane besides the four arrays
};

template <class T> std::shared_ptr<const Plan<T>> plan_of(int64_t n);

// All passes, from x over y; true if the result is in y.
template <class T> bool passes(const Plan<T>& plan, int64_t s, T* xr, T* xi, T* yr, T* yi) {
  static const Butterfly<T> butterfly = butterfly_of_this_machine<T>();
  int64_t n = plan.n, at = 0;
  bool in_y = false;
  for (size_t i = 0; i < plan.radices.size(); ++i) {
    int r = plan.radices[i];
    int64_t m = n / r;
    butterfly(r, plan.small_re[i].data(), plan.small_im[i].data(), m, s, xr, xi, yr, yi, plan.twiddle_re.data() + at,
              plan.twiddle_im.data() + at);
    at += m * (r - 1);
    n = m;
    s *= r;
    std::swap(xr, yr);
    std::swap(xi, yi);
    in_y = !in_y;
  }
  return in_y;
}

// The transform of s lanes in (xr, xi), each array n s long; true if the result is in (yr, yi).
// Bluestein: jk = (j² + k² - (k - j)²) / 2 makes a convolution with a chirp of it.
template <class T> bool transform(const Plan<T>& plan, int64_t s, T* xr, T* xi, T* yr, T* yi, T* scratch) {
  if (!plan.convolution) return passes(plan, s, xr, xi, yr, yi);
  const Plan<T>& inner = *plan.convolution;
  int64_t n = plan.n, m = inner.n;
  T *ar = scratch, *ai = ar + m * s, *br = ai + m * s, *bi = br + m * s;
  for (int64_t k = 0; k < n; ++k) {
    const T c = plan.chirp_re[size_t(k)], d = plan.chirp_im[size_t(k)];
    for (int64_t q = k * s; q < (k + 1) * s; ++q) ar[q] = xr[q] * c - xi[q] * d, ai[q] = xr[q] * d + xi[q] * c;
  }
  std::fill(ar + n * s, ar + m * s, T(0));
  std::fill(ai + n * s, ai + m * s, T(0));
  if (passes(inner, s, ar, ai, br, bi)) std::swap(ar, br), std::swap(ai, bi);
  for (int64_t k = 0; k < m; ++k) {
    const T c = plan.kernel_re[size_t(k)], d = plan.kernel_im[size_t(k)];
    for (int64_t q = k * s; q < (k + 1) * s; ++q) {
      T re = ar[q] * c - ai[q] * d;
      ai[q] = ar[q] * d + ai[q] * c;
      ar[q] = re;
    }
  }
  if (passes(inner, s, ai, ar, bi, br)) std::swap(ar, br), std::swap(ai, bi);  // re and im exchanged: the inverse
  for (int64_t k = 0; k < n; ++k) {
    const T c = plan.chirp_re[size_t(k)], d = plan.chirp_im[size_t(k)];
    for (int64_t q = k * s; q < (k + 1) * s; ++q) xr[q] = ar[q] * c - ai[q] * d, xi[q] = ar[q] * d + ai[q] * c;
  }
  return false;
}

template <class T> std::shared_ptr<const Plan<T>> make_plan(int64_t n) {
  auto plan = std::make_shared<Plan<T>>();
  plan->n = n;
  int64_t rest = n;
  auto take = [&](int r) {
    while (rest % r == 0) plan->radices.push_back(r), rest /= r;
  };
  for (int r : {4, 2, 3, 5}) take(r);
  for (int r = 7; r <= kMaxRadix; r += 2) take(r);
  if (rest > 1) {
    plan->radices.clear();
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    plan->convolution = plan_of<T>(m);
    auto size = size_t(n);
    plan->chirp_re.resize(size), plan->chirp_im.resize(size);
    std::vector<T> ar(static_cast<size_t>(m)), ai(ar), br(ar), bi(ar);
    for (int64_t k = 0; k < n; ++k) {
      auto [c, d] = root_of_unity<T>(int64_t((unsigned __int128)(k)*uint64_t(k) % uint64_t(2 * n)), 2 * n);
      plan->chirp_re[size_t(k)] = c, plan->chirp_im[size_t(k)] = d;
      for (int64_t at : {k, (m - k) % m}) ar[size_t(at)] = c, ai[size_t(at)] = -d;
    }
    if (passes(*plan->convolution, 1, ar.data(), ai.data(), br.data(), bi.data())) std::swap(ar, br), std::swap(ai, bi);
    for (T& v : ar) v /= T(m);
    for (T& v : ai) v /= T(m);
    plan->kernel_re = std::move(ar), plan->kernel_im = std::move(ai);
    return plan;
  }
  int64_t length = n;
  for (int r : plan->radices) {
    int64_t m = length / r;
    for (int64_t p = 0; p < m; ++p)
      for (int k = 1; k < r; ++k) {
        auto [c, s] = root_of_unity<T>(p * k, length);
        plan->twiddle_re.push_back(c), plan->twiddle_im.push_back(s);
      }
    plan->small_re.emplace_back(), plan->small_im.emplace_back();
    for (int j = 0; r > 5 && j < r; ++j) {
      auto [c, s] = root_of_unity<T>(j, r);
      plan->small_re.back().push_back(c), plan->small_im.back().push_back(s);
    }
    length = m;
  }
  return plan;
}

// Keeps what `make` makes of a length: a program uses few lengths, over and over.
template <class Made, class Make> std::shared_ptr<const Made> kept(int64_t n, Make make) {
  static std::mutex guard;
  static std::map<int64_t, std::shared_ptr<const Made>> made_by_length;
  {
    std::lock_guard<std::mutex> lock(guard);
    if (auto found = made_by_length.find(n); found != made_by_length.end()) return found->second;
  }
  std::shared_ptr<const Made> made = make(n);
  std::lock_guard<std::mutex> lock(guard);
  if (made_by_length.size() >= 64) made_by_length.clear();
  made_by_length[n] = made;
  return made;
}
template <class T> std::shared_ptr<const Plan<T>> plan_of(int64_t n) { return kept<Plan<T>>(n, make_plan<T>); }

// For real rows of even length n: exp(-2 pi i k / n), k <= n / 2.
template <class T> struct Turns {
  std::vector<T> re, im;
};
template <class T> std::shared_ptr<const Turns<T>> turns_of(int64_t n) {
  return kept<Turns<T>>(n, [](int64_t length) {
    auto turns = std::make_shared<Turns<T>>();
    for (int64_t k = 0; length % 2 == 0 && k <= length / 2; ++k) {
      auto [c, s] = root_of_unity<T>(k, length);
      turns->re.push_back(c), turns->im.push_back(s);
    }
    return turns;
  });
}

// Transforms side by side: as many as stay in the cache, a whole vector of them, or one.
template <class T> int64_t lanes_for(const Plan<T>& plan, int64_t available) {
  int64_t bytes = (4 * plan.n + plan.scratch()) * int64_t(sizeof(T));
  int64_t lanes = 64 / int64_t(sizeof(T));
  while (lanes > 8 && lanes * bytes > (1 << 18)) lanes /= 2;
  while (lanes >= 4 && lanes * bytes > (1 << 19)) lanes /= 2;
  return lanes < 4 ? 1 : std::min(lanes, available);
}

// The working arrays of one thread, each with room for one element more than the transform has.
template <class T> struct Workspace {
  BlockVector<T> memory;
  T *xr, *xi, *yr, *yi, *scratch;
  Workspace(const Plan<T>& plan, int64_t lanes) : memory(size_t((4 * (plan.n + 1) + plan.scratch()) * lanes)) {
    int64_t size = (plan.n + 1) * lanes;
    xr = memory.data(), xi = xr + size, yr = xi + size, yi = yr + size, scratch = yi + size;
  }
  // The forward transform of what is in (re, im); afterwards (re, im) is the result.
  void forward(const Plan<T>& plan, int64_t lanes) {
    if (transform(plan, lanes, xr, xi, yr, yi, scratch)) std::swap(xr, yr), std::swap(xi, yi);
  }
};

// Visits all (k, q), k < n, q < lanes, in blocks of few k: both row by row and lane by lane the memory stays near.
template <class Visit> void in_blocks(int64_t n, int64_t lanes, Visit visit) {
  constexpr int64_t block = 16;
  for (int64_t begin = 0; begin < n; begin += block)
    for (int64_t q = 0, end = std::min(n, begin + block); q < lanes; ++q)
      for (int64_t k = begin; k < end; ++k) visit(k, q);
}

// Runs body(workspace, first row, rows) over all rows, `lanes` at a time.
template <class T, class Body> void over_rows(const Plan<T>& plan, int64_t rows, int64_t lanes, Body body) {
  int64_t tiles = (rows + lanes - 1) / lanes, work = plan.n * lanes;
  parallel_for(tiles, std::max<int64_t>(1, 16384 / work), [&](int64_t begin, int64_t end) {
    Workspace<T> space(plan, lanes);
    for (int64_t t = begin; t < end; ++t) body(space, t * lanes, std::min(lanes, rows - t * lanes));
  });
}

}  // namespace

template <class T> void fourier(const std::complex<T>* x, std::complex<T>* y, int64_t outer, int64_t n, int64_t inner,
                                bool inverse, double scale) {
  if (outer * n * inner == 0) return;
  auto plan = plan_of<T>(n);
  const T factor = T(scale);
  const T* from = reinterpret_cast<const T*>(x);
  T* to = reinterpret_cast<T*>(y);
  // Neighbours in memory are lanes where there are enough of them, else whole rows are.
  bool along = inner >= 4 || outer == 1;
  int64_t lanes = lanes_for(*plan, along ? inner : outer);
  auto run = [&](Workspace<T>& space, int64_t start, int64_t stride, int64_t lane_stride, int64_t count) {
    if (stride == 1 && lane_stride >= n) {
      const SpectrumKernels<T>& rows = spectrum_kernels<T>();
      rows.load(from + 2 * start, 2 * lane_stride, n, count, inverse ? space.xi : space.xr,
                inverse ? space.xr : space.xi);
      space.forward(*plan, count);
      rows.store(inverse ? space.xi : space.xr, inverse ? space.xr : space.xi, n, count, factor, to + 2 * start,
                 2 * lane_stride);
      return;
    }
    auto exchange = [&](auto move) {
      if (lane_stride <= stride)
        for (int64_t k = 0; k < n; ++k)
          for (int64_t q = 0; q < count; ++q) move(2 * (start + k * stride + q * lane_stride), k * count + q);
      else
        in_blocks(n, count,
                  [&](int64_t k, int64_t q) { move(2 * (start + k * stride + q * lane_stride), k * count + q); });
    };
    if (inverse)
      exchange([&](int64_t there, int64_t here) { space.xi[here] = from[there], space.xr[here] = from[there + 1]; });
    else
      exchange([&](int64_t there, int64_t here) { space.xr[here] = from[there], space.xi[here] = from[there + 1]; });
    space.forward(*plan, count);
    const T* re = inverse ? space.xi : space.xr;
    const T* im = inverse ? space.xr : space.xi;
    exchange([&](int64_t there, int64_t here) { to[there] = factor * re[here], to[there + 1] = factor * im[here]; });
  };
  if (along) {
    int64_t tiles = (inner + lanes - 1) / lanes;
    parallel_for(outer * tiles, std::max<int64_t>(1, 16384 / (n * lanes)), [&](int64_t begin, int64_t end) {
      Workspace<T> space(*plan, lanes);
      for (int64_t t = begin; t < end; ++t) {
        int64_t first = t % tiles * lanes;
        run(space, t / tiles * n * inner + first, inner, 1, std::min(lanes, inner - first));
      }
    });
  } else {
    for (int64_t i = 0; i < inner; ++i)
      over_rows(*plan, outer, lanes, [&](Workspace<T>& space, int64_t row, int64_t count) {
        run(space, row * n * inner + i, inner, n * inner, count);
      });
  }
}

// For even n the real row is taken as n / 2 complex numbers, whose transform gives that of the row (SpectrumKernels).
template <class T> void fourier_of_real(const T* x, std::complex<T>* y, int64_t rows, int64_t n) {
  if (rows * n == 0) return;
  const int64_t half = n / 2 + 1, length = n % 2 == 0 ? n / 2 : n;
  auto plan = plan_of<T>(length);
  auto turns = turns_of<T>(n);
  const SpectrumKernels<T>& kernels = spectrum_kernels<T>();
  over_rows(*plan, rows, lanes_for(*plan, rows), [&](Workspace<T>& space, int64_t row, int64_t count) {
    if (n % 2 == 0) {
      kernels.load(x + row * n, n, length, count, space.xr, space.xi);
      space.forward(*plan, count);
      kernels.split(length, count, space.xr, space.xi, turns->re.data(), turns->im.data(), space.yr, space.yi);
      kernels.store(space.yr, space.yi, half, count, T(1), reinterpret_cast<T*>(y + row * half), 2 * half);
      return;
    }
    in_blocks(n, count, [&](int64_t k, int64_t q) { space.xr[k * count + q] = x[(row + q) * n + k]; });
    std::fill(space.xi, space.xi + n * count, T(0));
    space.forward(*plan, count);
    std::fill(space.xi, space.xi + count, T(0));
    kernels.store(space.xr, space.xi, half, count, T(1), reinterpret_cast<T*>(y + row * half), 2 * half);
  });
}

template <class T> void fourier_to_real(const std::complex<T>* x, T* y, int64_t rows, int64_t n, double scale) {
  if (rows * n == 0) return;
  const int64_t half = n / 2 + 1, length = n % 2 == 0 ? n / 2 : n;
  auto plan = plan_of<T>(length);
  const T factor = T(scale);
  auto turns = turns_of<T>(n);
  const SpectrumKernels<T>& kernels = spectrum_kernels<T>();
  // Real and imaginary parts are exchanged: the forward transform gives the inverse.
  over_rows(*plan, rows, lanes_for(*plan, rows), [&](Workspace<T>& space, int64_t row, int64_t count) {
    if (n % 2 == 0) {
      kernels.load(reinterpret_cast<const T*>(x + row * half), 2 * half, half, count, space.yr, space.yi);
      kernels.merge(length, count, space.yr, space.yi, turns->re.data(), turns->im.data(), space.xi, space.xr);
      space.forward(*plan, count);
      kernels.store(space.xi, space.xr, length, count, factor, y + row * n, n);
      return;
    }
    in_blocks(n, count, [&](int64_t k, int64_t q) {
      const std::complex<T>* from = x + (row + q) * half;
      const std::complex<T> a = k < half ? from[k] : std::conj(from[n - k]);
      space.xi[k * count + q] = a.real();
      space.xr[k * count + q] = k == 0 ? T(0) : a.imag();
    });
    space.forward(*plan, count);
    in_blocks(n, count, [&](int64_t k, int64_t q) { y[(row + q) * n + k] = factor * space.xi[k * count + q]; });
  });
}

template void fourier<float>(const std::complex<float>*, std::complex<float>*, int64_t, int64_t, int64_t, bool, double);
template void fourier<double>(const std::complex<double>*, std::complex<double>*, int64_t, int64_t, int64_t, bool,
                              double);
template void fourier_of_real<float>(const float*, std::complex<float>*, int64_t, int64_t);
template void fourier_of_real<double>(const double*, std::complex<double>*, int64_t, int64_t);
template void fourier_to_real<float>(const std::complex<float>*, float*, int64_t, int64_t, double);
template void fourier_to_real<double>(const std::complex<double>*, double*, int64_t, int64_t, double);

}  // namespace tapeflow
