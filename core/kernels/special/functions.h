// Special functions of real numbers, in double precision. They know no Tensor; outside its domain a function is NaN.
// Where a function takes a tolerance, a larger one saves time.
#pragma once

namespace tapeflow::special {

double log_gamma(double x);            // log |Gamma(x)|
double digamma(double x);              // its derivative
double polygamma(double n, double x);  // the n-th derivative of digamma, for a whole n >= 0
double zeta(double s, double q);       // sum over k >= 0 of (q + k)^-s

constexpr double kFullTolerance = 5e-17, kFloatTolerance = 1e-10;

double igamma(double a, double x, double tolerance);         // the regularized lower incomplete gamma function P(a, x)
double igammac(double a, double x, double tolerance);        // 1 - P(a, x), exact where it is small
double igamma_grad_a(double a, double x, double tolerance);  // dP/da
double igamma_bend(double a, double x, double tolerance);    // d^2P/da^2
double betainc(double a, double b, double x, double tolerance);  // the regularized incomplete beta function I_x(a, b)

// Bessel functions; `e` marks the ones scaled by exp(-|x|) (I) or exp(x) (K).
double bessel_i0(double x);
double bessel_i0e(double x);
double bessel_i1(double x);
double bessel_i1e(double x);
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_k0(double x);
double bessel_k0e(double x);
double bessel_k1(double x);
double bessel_k1e(double x);
double bessel_y0(double x);
double bessel_y1(double x);

double dawson(double x);       // exp(-x^2) times the integral of exp(t^2) from 0 to x
double expint(double x);       // the integral of exp(t) / t from -infinity to x, as a principal value
double fresnel_cos(double x);  // the integral of cos(pi t^2 / 2) from 0 to x
double fresnel_sin(double x);
double spence(double x);  // the integral of log(t) / (1 - t) from 1 to x: Li2(1 - x)

}  // namespace tapeflow::special
