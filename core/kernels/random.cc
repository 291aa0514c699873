// Philox in vectors of counters, and the distributions.
#include "kernels/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/simd/philox.h"
#include "kernels/simd/vector.h"

namespace tapeflow {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u, kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
constexpr int64_t kChunkBlocks = 256;  // 4 KB of words at a time

// Hands out the words of the elements [begin, end) in chunks: use(words, first element, elements).
template <int PerBlock, class Use> void by_chunks(const Philox& p, int64_t begin, int64_t end, Use use) {
  alignas(64) uint32_t words[kChunkBlocks * 4];
  for (int64_t at = begin; at < end; at += kChunkBlocks * PerBlock) {
    int64_t count = std::min(end - at, kChunkBlocks * PerBlock);
    philox_blocks(p.skipped(uint64_t(at / PerBlock)), (count + PerBlock - 1) / PerBlock, words);
    use(words, at, count);
  }
}

float uniform_float(uint32_t word) { return std::bit_cast<float>((word & 0x7fffffu) | 0x3f800000u) - 1.0f; }

// Box and Muller's transform of 2 n words, in place; one pair alone goes the same way as many.
void to_normals(uint32_t* words, int64_t pairs) {
  alignas(64) float u[kChunkBlocks * 2], angle[kChunkBlocks * 2], cosine[kChunkBlocks * 2];
  const VectorKernels<float>& vector = vector_kernels<float>();
  philox_kernels().to_polar(words, pairs, u, angle);
  vector.log(u, u, pairs);
  vector.cos(angle, cosine, pairs);
  vector.sin(angle, angle, pairs);
  philox_kernels().from_polar(u, angle, cosine, pairs, reinterpret_cast<float*>(words));
}
void normal_pair(uint32_t a, uint32_t b, float* y) {
  uint32_t words[2] = {a, b};
  to_normals(words, 1);
  std::memcpy(y, words, sizeof words);
}
void normal_pair(const uint32_t* words, double* y) {
  double radius = std::sqrt(-2.0 * std::log(std::max(PhiloxWords::uniform_double(words[0], words[1]), 1.0e-7)));
  double angle = 2.0 * M_PI * PhiloxWords::uniform_double(words[2], words[3]);
  y[0] = std::sin(angle) * radius;
  y[1] = std::cos(angle) * radius;
}

template <class T> T from_words(const uint32_t* w) {
  if constexpr (sizeof(T) == 8)
    return T(uint64_t(w[0]) | uint64_t(w[1]) << 32);
  else
    return T(w[0]);
}

}  // namespace

void Philox::block(uint32_t* words) const {
  uint32_t c0 = uint32_t(low), c1 = uint32_t(low >> 32), c2 = uint32_t(high), c3 = uint32_t(high >> 32);
  uint32_t key0 = uint32_t(key), key1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(kMultiplier0) * c0, b = uint64_t(kMultiplier1) * c2;
    c0 = uint32_t(b >> 32) ^ c1 ^ key0;
    c1 = uint32_t(b);
    c2 = uint32_t(a >> 32) ^ c3 ^ key1;
    c3 = uint32_t(a);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
}

void philox_blocks(const Philox& start, int64_t n, uint32_t* words) {
  int64_t done = 0;
  uint64_t room = 0x100000000u - uint64_t(uint32_t(start.low));  // blocks before the low word overflows
  int64_t sixteens = std::min(n, int64_t(room)) / kPhiloxLanes;
  if (sixteens) philox_kernels().blocks(start, sixteens, words), done = sixteens * kPhiloxLanes;
  for (; done < n; ++done) start.skipped(uint64_t(done)).block(words + 4 * done);
}

double PhiloxPairs::uniform() {
  if (uniforms_left_ == 0) {
    uint32_t words[4];
    next_.block(words);
    next_ = next_.skipped(1);
    uniforms_[0] = PhiloxWords::uniform_double(words[0], words[1]);
    uniforms_[1] = PhiloxWords::uniform_double(words[2], words[3]);
    uniforms_left_ = 2;
  }
  return uniforms_[--uniforms_left_];
}
double PhiloxPairs::normal() {
  if (normals_left_ == 0) {
    uint32_t words[4];
    next_.block(words);
    next_ = next_.skipped(1);
    normal_pair(words, normals_);
    normals_left_ = 2;
  }
  return normals_[--normals_left_];
}

template <class T> void fill_uniform(const Philox& p, int64_t begin, int64_t end, T* y) {
  if constexpr (std::is_same_v<T, double>) {
    by_chunks<2>(p, begin, end, [&](const uint32_t* w, int64_t at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) y[at + i] = PhiloxWords::uniform_double(w[2 * i], w[2 * i + 1]);
    });
  } else {
    if constexpr (std::is_same_v<T, float>) {  // the words are drawn where the numbers go
      int64_t whole = begin + (end - begin) / 4 * 4;
      for (; begin < whole; begin += kChunkBlocks * 4) {
        int64_t count = std::min(whole - begin, kChunkBlocks * 4);
        auto words = reinterpret_cast<uint32_t*>(y + begin);
        philox_blocks(p.skipped(uint64_t(begin / 4)), count / 4, words);
        philox_kernels().floats(words, count);
      }
      begin = whole;
    }
    by_chunks<4>(p, begin, end, [&](const uint32_t* w, int64_t at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        if constexpr (std::is_same_v<T, float>) {
          y[at + i] = uniform_float(w[i]);
        } else {
          T one;
          one.bits = std::is_same_v<T, half> ? uint16_t((w[i] & 0x3ffu) | 0x3c00u) : uint16_t((w[i] & 0x7fu) | 0x3f80u);
          y[at + i] = T(float(one) - 1.0f);
        }
      }
    });
  }
}

template <class T> void fill_normal(const Philox& p, int64_t begin, int64_t end, T* y) {
  if constexpr (std::is_same_v<T, double>) {
    by_chunks<2>(p, begin, end, [&](const uint32_t* w, int64_t at, int64_t n) {
      double pair[2];
      for (int64_t i = 0; i < n; i += 2) {
        normal_pair(w + 2 * i, pair);
        y[at + i] = pair[0];
        if (i + 1 < n) y[at + i + 1] = pair[1];
      }
    });
  } else {
    by_chunks<4>(p, begin, end, [&](uint32_t* w, int64_t at, int64_t n) {
      to_normals(w, (n + 1) / 2);
      const float* numbers = reinterpret_cast<const float*>(w);
      if constexpr (std::is_same_v<T, float>)
        std::memcpy(y + at, numbers, size_t(n) * sizeof(float));
      else
        std::transform(numbers, numbers + n, y + at, [](float v) { return T(v); });
    });
  }
}

// A group of numbers from its own counter: as many pairs as it takes until all are within (-2, 2).
template <class T> void truncated_normal_group(const Philox& start, int count, T* y) {
  PhiloxWords next(start);
  for (int filled = 0; filled < count;) {
    Compute<T> pair[2];
    if constexpr (std::is_same_v<T, double>) {
      uint32_t words[4] = {next(), next(), next(), next()};
      normal_pair(words, pair);
    } else {
      uint32_t a = next(), b = next();
      normal_pair(a, b, pair);
    }
    for (int i = 0; i < 2 && filled < count; ++i)
      if (std::abs(Compute<T>(T(pair[i]))) < 2) y[filled++] = T(pair[i]);
  }
}

template <class T> void fill_truncated_normal(const Philox& p, int64_t begin, int64_t end, T* y) {
  constexpr int group = std::is_same_v<T, double> ? 2 : 4;
  auto start = [&](int64_t at) { return p.skipped(uint64_t(at) * (kBlocksPerSample / 4)); };
  if constexpr (group == 4) {  // most groups need one block: those of many groups are transformed together
    constexpr int64_t groups = 64;
    alignas(64) uint32_t words[groups * group];
    for (; begin + groups * group <= end; begin += groups * group) {
      for (int64_t g = 0; g < groups; ++g) start(begin + g * group).block(words + g * group);
      to_normals(words, groups * group / 2);
      for (int64_t g = 0; g < groups; ++g) {
        T* to = y + begin + g * group;
        bool within = true;
        for (int i = 0; i < group; ++i) {
          to[i] = T(std::bit_cast<float>(words[g * group + i]));
          within &= std::abs(float(to[i])) < 2;
        }
        if (!within) truncated_normal_group(start(begin + g * group), group, to);
      }
    }
  }
  for (; begin < end; begin += group)
    truncated_normal_group(start(begin), int(std::min<int64_t>(group, end - begin)), y + begin);
}

template <class T> void fill_bits(const Philox& p, int64_t begin, int64_t end, T* y) {
  constexpr int words_each = sizeof(T) / 4;
  by_chunks<4 / words_each>(p, begin, end, [&](const uint32_t* w, int64_t at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[at + i] = from_words<T>(w + i * words_each);
  });
}

template <class T> void fill_integers(const Philox& p, T low, uint64_t range, int64_t begin, int64_t end, T* y) {
  using U = std::make_unsigned_t<T>;
  constexpr int words_each = sizeof(T) / 4;
  by_chunks<4 / words_each>(p, begin, end, [&](const uint32_t* w, int64_t at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[at + i] = T(U(low) + U(from_words<U>(w + i * words_each) % U(range)));
  });
}

template void fill_uniform<half>(const Philox&, int64_t, int64_t, half*);
template void fill_uniform<bfloat16>(const Philox&, int64_t, int64_t, bfloat16*);
template void fill_uniform<float>(const Philox&, int64_t, int64_t, float*);
template void fill_uniform<double>(const Philox&, int64_t, int64_t, double*);
template void fill_normal<half>(const Philox&, int64_t, int64_t, half*);
template void fill_normal<bfloat16>(const Philox&, int64_t, int64_t, bfloat16*);
template void fill_normal<float>(const Philox&, int64_t, int64_t, float*);
template void fill_normal<double>(const Philox&, int64_t, int64_t, double*);
template void fill_truncated_normal<half>(const Philox&, int64_t, int64_t, half*);
template void fill_truncated_normal<bfloat16>(const Philox&, int64_t, int64_t, bfloat16*);
template void fill_truncated_normal<float>(const Philox&, int64_t, int64_t, float*);
template void fill_truncated_normal<double>(const Philox&, int64_t, int64_t, double*);
template void fill_bits<int32_t>(const Philox&, int64_t, int64_t, int32_t*);
template void fill_bits<int64_t>(const Philox&, int64_t, int64_t, int64_t*);
template void fill_bits<uint32_t>(const Philox&, int64_t, int64_t, uint32_t*);
template void fill_bits<uint64_t>(const Philox&, int64_t, int64_t, uint64_t*);
template void fill_integers<int32_t>(const Philox&, int32_t, uint64_t, int64_t, int64_t, int32_t*);
template void fill_integers<int64_t>(const Philox&, int64_t, uint64_t, int64_t, int64_t, int64_t*);

// Marsaglia and Tsang's method: d (1 + c x)^3 for a normal x, accepted with a uniform u. Below 1, alpha + 1 is drawn
// and the sample shrunk by a power of a uniform number.
double gamma_sample(double alpha, PhiloxPairs next) {
  if (alpha == 1.0) return -std::log1p(-next.uniform());
  bool below_one = alpha < 1;
  double d = alpha + (below_one ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / std::sqrt(d);
  for (;;) {
    double x = next.normal(), v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    double u = next.uniform();
    if (!(u < 1 - 0.0331 * (x * x) * (x * x)) && !(std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v)))) {
      if (std::isnan(d)) return d;
      continue;
    }
    double y = d * v;
    return below_one ? y * std::pow(next.uniform(), 1 / alpha) : y;
  }
}

// Below a rate of 10, Knuth's product of uniforms; above, Hormann's transformed rejection (1993).
double poisson_sample(double rate, double limit, PhiloxPairs next) {
  if (!(rate >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(rate)) return rate;
  if (rate >= limit) return limit;
  if (rate < 10) {
    double product = 1, least = std::exp(-rate);
    for (double x = 0;; x += 1) {
      product *= next.uniform();
      if (product <= least && x <= limit) return x;
    }
  }
  double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    double u = next.uniform() - 0.5, v = next.uniform(), shifted = 0.5 - std::abs(u);
    double k = std::floor((2 * a / shifted + b) * u + rate + 0.43);
    if (k > limit) continue;
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
    double s = std::log(v * inverse_alpha / (a / (shifted * shifted) + b));
    if (s <= -rate + k * log_rate - std::lgamma(k + 1)) return k;
  }
}

namespace {

// log(k!) minus Stirling's formula for it.
double stirling_tail(double k) {
  static const double first[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                 0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return first[int(k)];
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

}  // namespace

// Few expected successes: waiting times between them. Many: Hormann's transformed rejection, BTRS (1993).
double binomial_sample(double count, double probability, const Philox& start, uint64_t index) {
  if (std::isnan(count) || std::isnan(probability)) return std::numeric_limits<double>::quiet_NaN();
  if (count <= 0 || probability <= 0) return 0;
  if (probability >= 1) return count;
  bool many = probability > 0.5;
  double p = many ? 1 - probability : probability;
  auto answer = [&](double k) { return many ? count - k : k; };
  constexpr uint64_t kBlocksPerFew = 42;
  PhiloxPairs next(start.skipped(index * (count * p < 10 ? kBlocksPerFew : kBlocksPerSample)));
  if (count * p < 10) {
    double waited = 0;
    for (double successes = 0;; successes += 1) {
      waited += std::ceil(std::log(next.uniform()) / std::log1p(-p));
      if (!(waited <= count)) return answer(successes);
    }
  }
  double deviation = std::sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  double c = count * p + 0.5, v_r = 0.92 - 4.2 / b, r = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
  double m = std::floor((count + 1) * p);
  for (;;) {
    double u = next.uniform() - 0.5, v = next.uniform(), shifted = 0.5 - std::abs(u);
    double k = std::floor((2 * a / shifted + b) * u + c);
    if (shifted >= 0.07 && v <= v_r) return answer(k);
    if (k < 0 || k > count) continue;
    double bound = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                   (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                   (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(count - m) -
                   stirling_tail(k) - stirling_tail(count - k);
    if (std::log(v * alpha / (a / (shifted * shifted) + b)) <= bound) return answer(k);
  }
}

namespace {

double digamma(double x) {
  double shift = 0;
  for (; x < 10; x += 1) shift -= 1 / x;
  double r = 1 / (x * x);
  double series =
      r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * 691.0 / 32760)))));
  return shift + std::log(x) - 0.5 / x - series;
}

}  // namespace

// dx/da = -(dP/da) / (dP/dx) for the distribution function P(a, x). Left of the mean from the power series of P, right
// of it from Legendre's continued fraction of 1 - P, both differentiated term by term; for very large a by the
// approximation of Wilson and Hilferty, whose error falls with a.
double gamma_sample_derivative(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || !(a > 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  constexpr double precision = 1e-16;
  if (a > 1e5) {
    double root = std::sqrt(a), cube = std::cbrt(x / a), z = (cube - 1 + 1 / (9 * a)) * 3 * root;
    return x / a + 3 * a * cube * cube * (1 / (9 * a * a) - z / (6 * a * root));
  }
  if (x <= 1 || x <= a) {
    double term = 1, sum = 1, d_term = 0, d_sum = 0;
    for (double n = a + 1; term > precision * sum || std::abs(d_term) > precision * std::abs(d_sum); n += 1) {
      d_term = (d_term - term / n) * (x / n);
      term *= x / n;
      sum += term;
      d_sum += d_term;
    }
    return -(x / a) * (sum * (std::log(x) - digamma(a + 1)) + d_sum);
  }
  double p0 = 0, p1 = 1, q0 = 1, q1 = x + 1 - a, dp0 = 0, dp1 = 0, dq0 = 0, dq1 = -1;
  double fraction = p1 / q1, d_fraction = (dp1 - fraction * dq1) / q1;
  for (double k = 1; k < 100000; k += 1) {
    double b = x + 2 * k + 1 - a, c = -k * (k - a);
    double p2 = b * p1 + c * p0, q2 = b * q1 + c * q0;
    double dp2 = b * dp1 - p1 + c * dp0 + k * p0, dq2 = b * dq1 - q1 + c * dq0 + k * q0;
    p0 = p1, p1 = p2, q0 = q1, q1 = q2, dp0 = dp1, dp1 = dp2, dq0 = dq1, dq1 = dq2;
    double next = p1 / q1, d_next = (dp1 - next * dq1) / q1;
    bool done = std::abs(next - fraction) <= precision * std::abs(next) &&
                std::abs(d_next - d_fraction) <= 4 * precision * std::abs(d_next);
    fraction = next, d_fraction = d_next;
    if (done) break;
    if (std::abs(q1) > 1e100)
      for (double* v : {&p0, &p1, &q0, &q1, &dp0, &dp1, &dq0, &dq1}) *v *= 1e-100;
  }
  return x * (fraction * (std::log(x) - digamma(a)) + d_fraction);
}

// Where the bounds leave much of the density, normal numbers are tried; in a narrow window, uniform ones; in a tail, an
// exponential that starts at the near bound (Robert 1995). Every step rounds to T.
template <class T> bool fill_bounded_normal(Philox& next, T mean_in, T deviation_in, T low_in, T high_in,
                                            int64_t samples, T* y, int64_t stride) {
  using C = Compute<T>;
  auto round = [](C v) { return C(T(v)); };
  C mean = mean_in, deviation = deviation_in, low = low_in, high = high_in;
  if (!(deviation > 0) || !(low < high) || (std::isinf(low) && std::isinf(high))) return false;
  if ((std::isinf(low) && low < 0) || high < mean) {
    std::swap(low, high);
    deviation = -deviation;
  }
  const C near = round(round(low - mean) / deviation), far = round(round(high - mean) / deviation);
  const C root = round(std::sqrt(round(round(near * near) + C(4)))), width = round(far - near);
  const C exponent = round(C(0.5) + round(round(near * round(near - root)) / C(4)));
  const C cutoff = round(round(C(2) * round(std::exp(exponent))) / round(near + root));
  const C inside = round(C(1.3));
  constexpr int group = std::is_same_v<T, double> ? 2 : 4, limit = 1000;
  int refused = 0;
  int64_t done = 0;
  auto accept = [&](C z) {
    y[done++ * stride] = T(round(z * deviation) + mean);
    refused = 0;
  };
  auto uniforms = [&](T* u) {
    fill_uniform(next, 0, group, u);
    next = next.skipped(1);
  };
  if ((near < -inside && far >= 0) || (far > inside && near <= 0)) {
    T z[group];
    while (done < samples) {
      fill_normal(next, 0, group, z);
      next = next.skipped(1);
      for (int i = 0; i < group && done < samples; ++i) {
        if (C(z[i]) >= near && C(z[i]) <= far)
          accept(z[i]);
        else if (++refused > limit)
          return false;
      }
    }
  } else if (width < cutoff) {
    const C plus = near < 0 ? C(0) : round(near * near);
    T place[group], u[group];
    while (done < samples) {
      uniforms(place);
      uniforms(u);
      for (int i = 0; i < group && done < samples; ++i) {
        C z = round(round(C(place[i]) * width) + near), g = round(round(plus - round(z * z)) / C(2));
        if (C(u[i]) <= round(std::exp(g)))
          accept(z);
        else if (++refused >= limit)
          return false;
      }
    }
  } else {
    const C alpha = round(round(near + root) / C(2));
    T u[group];
    while (done < samples) {
      uniforms(u);
      for (int i = 0; i < group && done < samples; i += 2) {
        C z = round(round(-round(std::log(C(u[i]))) / alpha) + near);
        C x = near < alpha ? round(alpha - z) : round(near - alpha);
        if (C(u[i + 1]) <= round(std::exp(round(round(-x * x) / C(2)))) && z < far)
          accept(z);
        else if (++refused >= limit)
          return false;
      }
    }
  }
  return true;
}
template bool fill_bounded_normal<half>(Philox&, half, half, half, half, int64_t, half*, int64_t);
template bool fill_bounded_normal<float>(Philox&, float, float, float, float, int64_t, float*, int64_t);
template bool fill_bounded_normal<double>(Philox&, double, double, double, double, int64_t, double*, int64_t);

uint64_t shuffled_index(uint64_t index, const uint32_t* key, uint64_t last, int rounds) {
  if (last == 0) return 0;
  int bits = int(std::ceil(std::log2(double(last))));
  const int width = std::clamp(bits + bits % 2, 16, 64) / 2;
  const uint64_t mask = (uint64_t(1) << width) - 1;
  auto left = [&](uint64_t x, int r) { return ((x << r) | (x >> (width - r))) & mask; };
  auto right = [&](uint64_t x, int r) { return ((x >> r) | (x << (width - r))) & mask; };
  auto mix = [&](uint64_t x) { return (left(x, 1) & left(x, 8)) ^ left(x, 2); };
  std::vector<uint64_t> keys = {key[0] & mask, key[1] & mask, key[2] & mask};
  uint64_t z = 0x7369f885192c0ef5u & mask;
  for (int i = 3; i < rounds; ++i, z >>= 1) {
    uint64_t before = keys[size_t(i) - 1];
    keys.push_back((0xfffffffcu & mask) ^ (z & 1) ^ keys[size_t(i) - 3] ^ right(before, 3) ^ right(before, 4));
  }
  do {
    uint64_t a = (index >> width) & mask, b = index & mask;
    for (size_t i = 0; i + 1 < keys.size(); i += 2) {
      a ^= mix(b) ^ keys[i];
      b ^= mix(a) ^ keys[i + 1];
    }
    index = (a << width) | b;
  } while (index > last);
  return index;
}

}  // namespace tapeflow
