// Constants, and sums of series by their coefficients.
#pragma once
#include <cstddef>
#include <limits>
#include <numbers>
#include <utility>

namespace tapeflow::special {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kPi = std::numbers::pi, kEuler = std::numbers::egamma;

// The sum of c[k] T_k(t), by Clenshaw's recurrence.
template <size_t N> double chebyshev(const double (&c)[N], double t) {
  double next = 0, after = 0;
  for (size_t k = N - 1; k > 0; --k) after = std::exchange(next, c[k] + 2 * t * next - after);
  return c[0] + t * next - after;
}
template <size_t N, class T> T polynomial(const double (&c)[N], T x) {
  T value = T(c[N - 1]);
  for (size_t k = N - 1; k > 0; --k) value = value * x + T(c[k - 1]);
  return value;
}

}  // namespace tapeflow::special
