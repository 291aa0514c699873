// Functions defined by integrals.
#include <math.h>

#include <array>
#include <cmath>
#include <numbers>

#include "kernels/special/coefficients.h"
#include "kernels/special/functions.h"
#include "kernels/special/series.h"

namespace tapeflow::special {

double dawson(double x) {
  double size = std::abs(x), square = x * x;
  if (size < 0.5) {
    double term = x, sum = x;
    for (int k = 1; k < 40 && std::abs(term) > 0.25 * kEpsilon * std::abs(sum); ++k)
      sum += term *= -2 * square / (2 * k + 1);
    return sum;
  }
  if (size > 12) {
    double term = 0.5 / x, sum = term;
    for (int k = 0; k < 12; ++k) sum += term *= (2 * k + 1) / (2 * square);
    return sum;
  }
  // Rybicki: the trapezoidal rule with step h is exact to exp(-(pi / 2h)^2); the grid is moved by the nearest even n0.
  constexpr double h = 0.2;
  static const auto weights = [] {
    std::array<double, 17> w;
    for (size_t k = 0; k < w.size(); ++k) w[k] = std::exp(-std::pow((2 * double(k) + 1) * h, 2));
    return w;
  }();
  double n0 = 2 * std::floor(size / (2 * h) + 0.5), rest = size - n0 * h;
  double grow = std::exp(2 * rest * h), fade = 1 / grow, grow_square = grow * grow, fade_square = fade * fade, sum = 0;
  for (size_t k = 0; k < weights.size(); ++k, grow *= grow_square, fade *= fade_square) {
    double n = 2 * double(k) + 1;
    sum += weights[k] * (grow * (n0 - n) + fade * (n0 + n)) / (n0 * n0 - n * n);
  }
  return std::copysign(std::numbers::inv_sqrtpi * std::exp(-rest * rest) * sum, x);
}

double expint(double x) {
  if (std::isnan(x)) return x;
  if (x == 0) return -kInfinity;
  if (std::isinf(x)) return x > 0 ? x : -0.0;
  if (x < -1) {  // -E1(-x), by the continued fraction of Lentz
    double z = -x, b = z + 1, c = 1e300, d = 1 / b, value = d;
    for (int k = 1; k < 1000; ++k) {
      double numerator = -double(k) * k;
      b += 2;
      d = 1 / (numerator * d + b);
      c = b + numerator / c;
      value *= c * d;
      if (std::abs(c * d - 1) <= 0.5 * kEpsilon) break;
    }
    return -value * std::exp(x);
  }
  if (x >= 40) {
    double term = 1, sum = 1;
    for (int k = 1; k < x && term > 0.25 * kEpsilon; ++k) sum += term *= k / x;
    double half = std::exp(0.5 * x);
    return half * (half / x * sum);
  }
  constexpr double root = 0.3725074107813666, root_rest = 1.3140183414386028e-17;
  if (std::abs(x - root) < 0.2) {
    // The series minus its value at the root: x^k - r^k = x (x^(k-1) - r^(k-1)) + r^(k-1) (x - r).
    double delta = (x - root) - root_rest, difference = delta, power = root, factorial = 1,
           sum = std::log1p(delta / root) + delta;
    for (int k = 2; k < 30; ++k, power *= root) {
      difference = x * difference + power * delta;
      factorial *= k;
      sum += difference / (k * factorial);
    }
    return sum;
  }
  double term = 1, sum = 0;
  for (int k = 1; k < 200; ++k) {
    term *= x / k;
    sum += term / k;
    if (std::abs(term) < 0.25 * kEpsilon * std::abs(sum)) break;
  }
  return kEuler + std::log(std::abs(x)) + sum;
}

namespace {

// The power series of both integrals: S is odd in (pi/2) x^2, C is even.
double fresnel_series(double x, bool sine) {
  double u = 0.5 * kPi * x * x, square = u * u, term = sine ? x * u : x, sum = 0;
  for (int k = 0; k < 40; ++k) {
    double step = term / (4 * k + (sine ? 3 : 1));
    sum += step;
    if (std::abs(step) <= 0.25 * kEpsilon * std::abs(sum)) break;
    double n = 2 * k + (sine ? 2 : 1);
    term *= -square / (n * (n + 1));
  }
  return sum;
}

// 1/2 + f sin - g cos (C) or 1/2 - f cos - g sin (S); the angle is (pi/2) x^2 with x^2 reduced by 4 before rounding.
double fresnel_large(double x, bool sine) {
  double t = 4.5 / (x * x) - 1;
  double f = chebyshev(kFresnelF, t) / (kPi * x), g = chebyshev(kFresnelG, t) / (kPi * kPi * x * x * x);
  double square = x * x, rest = std::fma(x, x, -square), angle = 0.5 * kPi * (std::fmod(square, 4) + rest);
  double s = std::sin(angle), c = std::cos(angle);
  return sine ? 0.5 - f * c - g * s : 0.5 + f * s - g * c;
}

double fresnel(double x, bool sine) {
  double size = std::abs(x);
  if (std::isnan(x)) return x;
  double value = size < 1.5 ? fresnel_series(size, sine) : size > 1e150 ? 0.5 : fresnel_large(size, sine);
  return std::copysign(value, x);
}

}  // namespace

double fresnel_cos(double x) { return fresnel(x, false); }
double fresnel_sin(double x) { return fresnel(x, true); }

double spence(double x) {
  if (!(x >= 0)) return kNaN;
  if (x == kInfinity) return -x;
  constexpr double sixth = kPi * kPi / 6;
  if (x == 0) return sixth;
  if (x > 2) return -0.5 * std::log(x) * std::log(x) - spence(1 / x);
  if (x < 0.5) return sixth - std::log(x) * std::log1p(-x) - spence(1 - x);
  // With l = -log x: Li2(1 - x) = l - l^2/4 + sum of B_2k l^(2k+1) / (2k+1)!.
  constexpr double bernoulli[] = {1.0 / 36,           -1.0 / 3600,     1.0 / 211680,
                                  -1.0 / 10886400,    1.0 / 526901760, -691.0 / 16999766784000,
                                  1.0 / 1120863744000};
  double l = -std::log1p(x - 1), square = l * l;
  return l * (1 - 0.25 * l + square * polynomial(bernoulli, square));
}

}  // namespace tapeflow::special
