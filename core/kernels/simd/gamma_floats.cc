// log Gamma and its derivative for arrays of floats, computed in double, block by block: Stirling's series at x + 8,
// and the way back from there by Gamma(x + 1) = x Gamma(x). The few arguments for which this is not exact go one by
// one.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/simd/vector.h"
#include "kernels/special/functions.h"

namespace tapeflow::special {
namespace {

constexpr int64_t kBlock = 256;
constexpr double kMost = 1e30;  // the product of eight numbers like this one is finite

// The product x (x + 1) ... (x + 7).
double rising_product(double x) {
  const double a = x * (x + 7), b = a + 6, c = a + 10,
               d = a + 12;  // pairs from both ends: x (x + 7), (x + 1) (x + 6), ...
  return a * b * (c * d);
}

// Calls write(x, log(x + 8), log of the product, count, y) for blocks, then `exact` for each element that `needs` it.
template <class Write, class Needs>
void by_block(const float* x, float* y, int64_t n, double (*exact)(double), Needs needs, Write write) {
  const VectorKernels<double>& v = vector_kernels<double>();
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    float given[kBlock];
    double at[kBlock], far[kBlock];
    bool any = false;
    for (int64_t i = 0; i < count; ++i) {
      given[i] = x[begin + i];
      at[i] = double(given[i]);
      far[i] = at[i] + 8;
      any |= needs(at[i]);
    }
    v.log(far, far, count);
    write(at, far, count, y + begin);
    for (int64_t i = 0; any && i < count; ++i)
      if (needs(at[i])) y[begin + i] = float(exact(double(given[i])));
  }
}

}  // namespace

void log_gamma_floats(const float* x, float* y, int64_t n) {
  constexpr double near_root = 0x1p-6;
  auto needs = [](double t) {
    return !(t > 0 && t < kMost) | (std::abs(t - 1) < near_root) | (std::abs(t - 2) < near_root);
  };
  by_block(x, y, n, log_gamma, needs, [](const double* at, const double* log_far, int64_t count, float* to) {
    double product[kBlock];
    for (int64_t i = 0; i < count; ++i) product[i] = rising_product(at[i]);
    vector_kernels<double>().log(product, product, count);
    for (int64_t i = 0; i < count; ++i) {
      const double z = at[i] + 8, r = 1 / z, s = r * r;
      const double rest =
          r *
          (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * (691.0 / 360360))))));
      to[i] = float((z - 0.5) * log_far[i] - z + 0.5 * std::log(2 * std::numbers::pi) + rest - product[i]);
    }
  });
}

void digamma_floats(const float* x, float* y, int64_t n) {
  auto needs = [](double t) { return !(t > 0 && t < kMost); };
  by_block(x, y, n, digamma, needs, [](const double* at, const double* log_far, int64_t count, float* to) {
    for (int64_t i = 0; i < count; ++i) {
      const double t = at[i], z = t + 8, r = 1 / z, s = r * r;
      const double rest =
          s * (1.0 / 12 -
               s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12))))));
      // The sum of 1 / (t + k) for k < 8, in pairs from both ends: each is (2 t + 7) over the product of two.
      const double a = t * (t + 7), b = a + 6, c = a + 10, d = a + 12;
      const double sum = (2 * t + 7) * ((a + b) * (c * d) + (c + d) * (a * b)) / (a * b * (c * d));
      to[i] = float(log_far[i] - 0.5 * r - rest - sum);
    }
  });
}

}  // namespace tapeflow::special
