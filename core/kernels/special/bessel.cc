// Bessel functions of order 0 and 1.
#include <math.h>

#include <array>
#include <cmath>
#include <numbers>

#include "kernels/special/coefficients.h"
#include "kernels/special/functions.h"
#include "kernels/special/series.h"

namespace tapeflow::special {

namespace {

// The coefficients 1 / (k! (k + n)!) of the power series in x^2/4.
template <int N> struct PowerSeries {
  double c[27] = {};
  constexpr PowerSeries() {
    c[0] = 1;
    for (int k = 1; k < 27; ++k) c[k] = c[k - 1] / (double(k) * (k + N));
  }
};
constexpr PowerSeries<0> kI0Series;
constexpr PowerSeries<1> kI1Series;
// I0(x), and I1(x) / (x/2), for |x| <= 8.
double i0_series(double x) { return polynomial(kI0Series.c, 0.25 * x * x); }
double i1_series(double x) { return polynomial(kI1Series.c, 0.25 * x * x); }

// For 0 < x <= 2: K0 = -(log(x/2) + gamma) I0 + sum of H_k s^k / k!^2, and its like for K1; s = x^2/4.
struct HarmonicSeries {
  double k0[20] = {}, k1[20] = {};
  constexpr HarmonicSeries() {
    double term0 = 1, term1 = 1, harmonic = 0;
    k1[0] = 1 - 2 * kEuler;
    for (int k = 1; k < 20; ++k) {
      term0 /= double(k) * k;
      term1 /= double(k) * (k + 1);
      harmonic += 1.0 / k;
      k0[k] = term0 * harmonic;
      k1[k] = term1 * (2 * harmonic + 1.0 / (k + 1) - 2 * kEuler);
    }
  }
};
constexpr HarmonicSeries kHarmonicSeries;
double k0_series(double x) {
  return polynomial(kHarmonicSeries.k0, 0.25 * x * x) - (std::log(0.5 * x) + kEuler) * i0_series(x);
}
double k1_series(double x) {
  return 1 / x + 0.5 * x * (std::log(0.5 * x) * i1_series(x) - 0.5 * polynomial(kHarmonicSeries.k1, 0.25 * x * x));
}

}  // namespace

double bessel_i0e(double x) {
  x = std::abs(x);
  return x <= 8 ? i0_series(x) * std::exp(-x) : chebyshev(kI0Large, 16 / x - 1) / std::sqrt(x);
}
double bessel_i1e(double x) {
  double size = std::abs(x);
  if (size <= 8) return 0.5 * x * i1_series(x) * std::exp(-size);
  return std::copysign(chebyshev(kI1Large, 16 / size - 1) / std::sqrt(size), x);
}
double bessel_i0(double x) {
  x = std::abs(x);
  if (x <= 8) return i0_series(x);
  double half = std::exp(0.5 * x);  // in two steps: exp(x) overflows before I0 does
  return x == kInfinity ? x : half * bessel_i0e(x) * half;
}
double bessel_i1(double x) {
  if (std::abs(x) <= 8) return 0.5 * x * i1_series(x);
  double half = std::exp(0.5 * std::abs(x));
  return std::isinf(x) ? x : half * bessel_i1e(x) * half;
}

double bessel_k0e(double x) {
  if (!(x >= 0)) return kNaN;
  if (x == 0) return kInfinity;
  return x <= 2 ? k0_series(x) * std::exp(x) : chebyshev(kK0Large, 4 / x - 1) / std::sqrt(x);
}
double bessel_k1e(double x) {
  if (!(x >= 0)) return kNaN;
  if (x == 0) return kInfinity;
  return x <= 2 ? k1_series(x) * std::exp(x) : chebyshev(kK1Large, 4 / x - 1) / std::sqrt(x);
}
double bessel_k0(double x) { return x > 0 && x <= 2 ? k0_series(x) : bessel_k0e(x) * std::exp(-x); }
double bessel_k1(double x) { return x > 0 && x <= 2 ? k1_series(x) : bessel_k1e(x) * std::exp(-x); }

double bessel_j0(double x) { return ::j0(x); }
double bessel_j1(double x) { return ::j1(x); }
double bessel_y0(double x) { return x < 0 ? kNaN : ::y0(x); }
double bessel_y1(double x) { return x < 0 ? kNaN : ::y1(x); }

}  // namespace tapeflow::special
