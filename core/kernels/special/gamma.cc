// The gamma function and what is built on it: derivatives of its logarithm, the zeta function, incomplete gamma and
// beta functions.
#include <math.h>

#include <array>
#include <cmath>
#include <numbers>

#include "kernels/special/coefficients.h"
#include "kernels/special/functions.h"
#include "kernels/special/series.h"

namespace tapeflow::special {
namespace {

// A number with its first derivative, and with the second one if Bends.
template <bool Bends> struct Jet {
  double value, derivative = 0, second = 0;
  explicit Jet(double v, double s = 0, double b = 0) : value(v), derivative(s), second(b) {}
};
template <bool N> Jet<N> operator+(Jet<N> a, Jet<N> b) {
  return Jet<N>(a.value + b.value, a.derivative + b.derivative, N ? a.second + b.second : 0);
}
template <bool N> Jet<N> operator-(Jet<N> a, Jet<N> b) {
  return Jet<N>(a.value - b.value, a.derivative - b.derivative, N ? a.second - b.second : 0);
}
template <bool N> Jet<N> operator*(Jet<N> a, Jet<N> b) {
  return Jet<N>(a.value * b.value, a.derivative * b.value + a.value * b.derivative,
                N ? a.second * b.value + 2 * a.derivative * b.derivative + a.value * b.second : 0);
}
template <bool N> Jet<N> operator/(Jet<N> a, Jet<N> b) {
  double inverse = 1 / b.value, value = a.value * inverse, derivative = (a.derivative - value * b.derivative) * inverse;
  return Jet<N>(value, derivative, N ? (a.second - 2 * derivative * b.derivative - value * b.second) * inverse : 0);
}
template <bool N> Jet<N> exp_of(Jet<N> a) {
  double e = std::exp(a.value);
  return Jet<N>(e, e * a.derivative, N ? e * (a.derivative * a.derivative + a.second) : 0);
}
bool negligible(double term, double total, double tolerance) { return std::abs(term) <= tolerance * std::abs(total); }
template <bool N> bool negligible(Jet<N> term, Jet<N> total, double tolerance) {
  return negligible(term.value, total.value, tolerance) && negligible(term.derivative, total.derivative, tolerance) &&
         (!N || negligible(term.second, total.second, tolerance));
}
double value_of(double a) { return a; }
template <bool N> double value_of(Jet<N> a) { return a.value; }

// (x - log(1 + x)) / x^2 and x - log(1 + x), exact near 0.
double log_gap_ratio(double x) {
  // With r = x / (2 + x): log(1 + x) = 2 (r + r^3/3 + r^5/5 + ...).
  double r = x / (2 + x), square = r * r, sum = 0, power = 1;
  for (int k = 3; k < 60 && power > 1e-20; k += 2, power *= square) sum += power / k;
  return (1 - 2 * r * sum / (2 + x)) / (2 + x);
}
double log_gap(double x) { return std::abs(x) < 0.4 ? x * x * log_gap_ratio(x) : x - std::log1p(x); }

// log Gamma(x) minus Stirling's (x - 1/2) log x - x + log(2 pi) / 2.
double stirling_rest(double x) {
  if (x < 10) return log_gamma(x) - ((x - 0.5) * std::log(x) - x + 0.5 * std::log(2 * kPi));
  double s = 1 / (x * x);
  return (1.0 / 12 -
          s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * (691.0 / 360360 - s / 156)))))) /
         x;
}

// log Gamma(1 + x), exact near 0.
double log_gamma_1p(double x) { return std::abs(x) < 0.15 ? x * polynomial(kLogGamma1p, x) : log_gamma(1 + x); }

// digamma(x) - log(x) for x >= 10.
double digamma_rest(double x) {
  double s = 1 / (x * x);
  return -0.5 / x -
         s * (1.0 / 12 -
              s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12))))));
}

double hurwitz(double s, double q) {  // Euler and Maclaurin, for s > 1 and q > 0
  // 1 / (B_2k / (2k)!)
  constexpr double divisors[] = {12.0,
                                 -720.0,
                                 30240.0,
                                 -1209600.0,
                                 47900160.0,
                                 -1.8924375803183791606e9,
                                 7.47242496e10,
                                 -2.950130727918164224e12,
                                 1.1646782814350067249e14,
                                 -4.5979787224074726105e15,
                                 1.8152105401943546773e17,
                                 -7.1661652561756670113e18};
  double sum = std::pow(q, -s), at = q, term = sum;
  for (int k = 0; k < 9 || at <= 9; ++k) {
    at += 1;
    term = std::pow(at, -s);
    sum += term;
    if (term < 0.5 * kEpsilon * sum) return sum;
  }
  sum += term * at / (s - 1) - 0.5 * term;
  double factor = 1;
  for (int k = 0; const double divisor : divisors) {
    factor *= s + k++;
    term /= at;
    double step = factor * term / divisor;
    sum += step;
    if (std::abs(step) < 0.5 * kEpsilon * std::abs(sum)) break;
    factor *= s + k++;
    term /= at;
  }
  return sum;
}

bool whole(double x) { return x == std::floor(x); }

}  // namespace

// ---- gamma

// std::lgamma also sets the global `signgam`, a race between threads; lgamma_r does not, but it is not standard.
double log_gamma(double x) {
#ifdef __GLIBC__
  int sign;
  return lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

double digamma(double x) {
  if (std::isnan(x) || x == -kInfinity || (x <= 0 && whole(x))) return kNaN;
  if (x == kInfinity) return x;
  if (x < 0) {
    double part = x - std::floor(x);  // tan has period pi, and the part is exact
    return digamma(1 - x) - kPi / std::tan(kPi * part);
  }
  if (x >= 10) return std::log(x) + digamma_rest(x);
  double shift = 0;
  for (; x < 1; x += 1) shift -= 1 / x;
  for (; x > 2; shift += 1 / x) x -= 1;
  constexpr double root = 1.4616321449683622, root_rest = 9.549995429965697e-17;
  return ((x - root) - root_rest) * chebyshev(kDigammaRoot, 2 * x - 3) + shift;
}

// The derivative of digamma for x > 0: Euler and Maclaurin's series from 10 on, and the recurrence up to there.
static double trigamma(double x) {
  double sum = 0;
  for (; x < 10; x += 1) sum += 1 / (x * x);
  const double r = 1 / x, s = r * r;
  return sum + r +
         s * (0.5 +
              r * (1.0 / 6 -
                   s * (1.0 / 30 -
                        s * (1.0 / 42 - s * (1.0 / 30 - s * (5.0 / 66 - s * (691.0 / 2730 -
                                                                             s * (7.0 / 6 - s * (3617.0 / 510)))))))));
}

double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q)) return kNaN;
  if (s == 1) return kInfinity;
  if (s < 1) return kNaN;
  if (q == kInfinity) return 0;
  if (q <= 0) {
    if (q == 0 && !whole(s)) return kInfinity;
    if (!whole(s) || s == kInfinity) return kNaN;
    if (whole(q)) return std::fmod(s, 2) == 0 ? kInfinity : kNaN;
    // The sum over all integers, less the part below q; (q + k)^-s is odd or even.
    double part = q - std::floor(q), sign = std::fmod(s, 2) == 0 ? 1 : -1;
    return hurwitz(s, part) + sign * (hurwitz(s, 1 - part) - hurwitz(s, 1 - q));
  }
  if (s == kInfinity) return q < 1 ? kInfinity : q == 1 ? 1 : 0;
  if (q > 1e8) return (1 / (s - 1) + 1 / (2 * q)) * std::pow(q, 1 - s);
  return hurwitz(s, q);
}

double polygamma(double n, double x) {
  if (std::isnan(n) || std::isnan(x) || n < 0 || !whole(n) || n == kInfinity) return kNaN;
  if (n == 0) return digamma(x);
  if (n == 1 && x > 0) return trigamma(x);
  double size = zeta(n + 1, x), sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return n > 169 && size > 0 ? sign * std::exp(log_gamma(n + 1) + std::log(size)) : sign * std::tgamma(n + 1) * size;
}

// ---- incomplete gamma: T is double, or Jet for the derivatives by a

namespace {

double variable(double a, double*) { return a; }
template <bool N> Jet<N> variable(double a, Jet<N>*) { return Jet<N>(a, 1, 0); }

// x^a exp(-x) / Gamma(a + 1).
double gamma_weight(double a, double x, double*) {
  if (a < 10) {
    double direct = x < 600 ? std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1) : 0;
    return direct > 1e-290 ? direct : std::exp(a * std::log(x) - x - log_gamma_1p(a));
  }
  double mu = (x - a) / a, gap = std::abs(mu) < 0.4 ? log_gap(mu) : mu - std::log(x / a);
  return std::exp(-a * gap - stirling_rest(a)) / std::sqrt(2 * kPi * a);
}
template <bool N> Jet<N> gamma_weight(double a, double x, Jet<N>*) {
  double value = gamma_weight(a, x, static_cast<double*>(nullptr));
  double log_ratio =
      a < 10 ? std::log(x) - digamma(a + 1)
             : (std::abs(x - a) < 0.5 * a ? std::log1p((x - a) / a) : std::log(x / a)) - digamma_rest(a) - 1 / a;
  return Jet<N>(value, value * log_ratio, N ? value * (log_ratio * log_ratio - zeta(2, a + 1)) : 0);
}

// P = weight (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...)
template <class T> T gamma_series(double a, double x, double tolerance) {
  T at = variable(a, static_cast<T*>(nullptr)), term = T(1), sum = T(1);
  for (int k = 0; k < 2'000'000; ++k) {
    at = at + T(1);
    term = term * (T(x) / at);
    sum = sum + term;
    if (x < value_of(at) && negligible(term, sum, tolerance)) break;
  }
  return gamma_weight(a, x, static_cast<T*>(nullptr)) * sum;
}

// Q = weight a / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)), by Lentz's method.
template <class T> T gamma_fraction(double a, double x, double tolerance) {
  T at = variable(a, static_cast<T*>(nullptr)), b = T(x + 1) - at, c = T(1e300), d = T(1) / b, value = d;
  for (int k = 1; k < 2'000'000; ++k) {
    T numerator = T(k) * (at - T(k));
    b = b + T(2);
    d = numerator * d + b;
    if (value_of(d) == 0) d = T(1e-300);
    c = b + numerator / c;
    if (value_of(c) == 0) c = T(1e-300);
    d = T(1) / d;
    T factor = c * d, next = value * factor;
    T step = next - value;
    value = next;
    if (negligible(step, value, tolerance)) break;
  }
  return gamma_weight(a, x, static_cast<T*>(nullptr)) * at * value;
}

// 1 - P for small a and x, where the series would cancel: 1 - x^a / Gamma(1 + a) is taken apart from the rest.
double gamma_small(double a, double x) {
  double term = 1, sum = 0;
  for (int k = 1; k < 100; ++k) {
    term *= -x / k;
    double step = term / (a + k);
    sum += step;
    if (std::abs(step) < 0.25 * kEpsilon * std::abs(sum)) break;
  }
  double power = a * std::log(x) - log_gamma_1p(a);
  return -std::expm1(power) - std::exp(power) * a * sum;
}

// Temme's uniform expansion for large a and x near it: Q = erfc(eta sqrt(a/2)) / 2 + rest, eta^2 / 2 = mu - log(1 +
// mu), mu = x/a - 1.
constexpr double kUniformFrom = 10000;
bool uniform(double a, double x) { return a > kUniformFrom && std::abs(x - a) < 0.3 * a; }

using Bent = Jet<true>;
Bent uniform_eta(double a, double x) {
  double mu = (x - a) / a, ratio = 1 / std::sqrt(2 * log_gap_ratio(mu)), eta = mu / ratio;
  double turn = std::abs(eta) < 1e-3 ? -1.0 / 3 - eta / 6 : (ratio * ratio - 1 - mu) / eta;
  return Bent(eta, -ratio / a, (ratio - turn) / (a * a));
}
double uniform_rest(double a, double eta) {
  double sum = polynomial(kTemme0, eta) +
               (polynomial(kTemme1, eta) + (polynomial(kTemme2, eta) + polynomial(kTemme3, eta) / a) / a) / a;
  return std::exp(-0.5 * a * eta * eta) / std::sqrt(2 * kPi * a) * sum;
}
Bent uniform_upper(double a, double x) {
  Bent eta = uniform_eta(a, x), at(a, 1, 0);
  double root = std::sqrt(a / 2);
  Bent scaled = eta * Bent(root, root / (2 * a), -root / (4 * a * a));
  double density = -2 * std::numbers::inv_sqrtpi * std::exp(-scaled.value * scaled.value);
  Bent tail(std::erfc(scaled.value), density * scaled.derivative,
            density * (scaled.second - 2 * scaled.value * scaled.derivative * scaled.derivative));
  Bent inverse = Bent(1) / at;
  Bent sum =
      polynomial(kTemme0, eta) +
      (polynomial(kTemme1, eta) + (polynomial(kTemme2, eta) + polynomial(kTemme3, eta) * inverse) * inverse) * inverse;
  double size = 1 / std::sqrt(2 * kPi * a);
  Bent front = exp_of(Bent(0) - scaled * scaled) * Bent(size, -size / (2 * a), 0.75 * size / (a * a));
  return Bent(0.5) * tail + front * sum;
}

// Where both are finite and inside the domain, or the limits.
bool gamma_limit(double a, double x, double* lower) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0)
    *lower = kNaN;
  else if (x == 0)
    *lower = 0;
  else if (a == kInfinity)
    *lower = x == kInfinity ? kNaN : 0;
  else if (x == kInfinity)
    *lower = 1;
  else
    return false;
  return true;
}

template <class T> T lower_jet(double a, double x, double tolerance) {
  if (uniform(a, x)) {
    Bent upper = uniform_upper(a, x);
    return T(1 - upper.value, -upper.derivative, -upper.second);
  }
  return x <= 1 || x <= a ? gamma_series<T>(a, x, tolerance) : T(1) - gamma_fraction<T>(a, x, tolerance);
}

}  // namespace

double igamma(double a, double x, double tolerance) {
  double limit;
  if (gamma_limit(a, x, &limit)) return limit;
  if (uniform(a, x)) {
    double eta = uniform_eta(a, x).value;
    return 0.5 * std::erfc(-eta * std::sqrt(a / 2)) - uniform_rest(a, eta);
  }
  return x <= 1 || x <= a ? gamma_series<double>(a, x, tolerance) : 1 - gamma_fraction<double>(a, x, tolerance);
}

double igammac(double a, double x, double tolerance) {
  double limit;
  if (gamma_limit(a, x, &limit)) return 1 - limit;
  if (uniform(a, x)) {
    double eta = uniform_eta(a, x).value;
    return 0.5 * std::erfc(eta * std::sqrt(a / 2)) + uniform_rest(a, eta);
  }
  if (x <= 1 && a <= 1) return gamma_small(a, x);
  return x <= 1 || x <= a ? 1 - gamma_series<double>(a, x, tolerance) : gamma_fraction<double>(a, x, tolerance);
}

double igamma_grad_a(double a, double x, double tolerance) {
  double limit;
  if (gamma_limit(a, x, &limit)) return std::isnan(limit) ? kNaN : 0;
  return lower_jet<Jet<false>>(a, x, tolerance).derivative;
}

double igamma_bend(double a, double x, double tolerance) {
  double limit;
  if (gamma_limit(a, x, &limit)) return std::isnan(limit) ? kNaN : 0;
  return lower_jet<Jet<true>>(a, x, tolerance).second;
}

// ---- incomplete beta

namespace {

// x^a y^b / (a B(a, b)) with y = 1 - x, without the cancellation of large logarithms.
double beta_weight(double a, double b, double x, double y) {
  double n = a + b, shift = n * x - a;
  double e = shift / a, f = -shift / b;
  double gap = a * (std::abs(e) < 0.4 ? log_gap(e) : e - std::log(n * x / a)) +
               b * (std::abs(f) < 0.4 ? log_gap(f) : f - std::log(n * y / b));
  return std::exp(stirling_rest(n) - stirling_rest(a) - stirling_rest(b) - gap) * std::sqrt(b / (2 * kPi * a * n));
}

double beta_fraction(double a, double b, double x, double tolerance) {
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (d == 0 ? 1e-300 : d);
  double value = d;
  for (int k = 1; k < 2'000'000; ++k) {
    auto advance = [&](double numerator) {
      d = 1 + numerator * d;
      d = 1 / (d == 0 ? 1e-300 : d);
      c = 1 + numerator / c;
      if (c == 0) c = 1e-300;
      value *= c * d;
    };
    advance(k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)));
    advance(-(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)));
    if (std::abs(c * d - 1) <= tolerance) break;
  }
  return value;
}

}  // namespace

double betainc(double a, double b, double x, double tolerance) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || std::isinf(a) || std::isinf(b)) return kNaN;
  if (x == 0 || x == 1) return x;
  double y = 1 - x;
  if (x < (a + 1) / (a + b + 2)) return beta_weight(a, b, x, y) * beta_fraction(a, b, x, tolerance);
  return 1 - beta_weight(b, a, y, x) * beta_fraction(b, a, y, tolerance);
}

}  // namespace tapeflow::special
