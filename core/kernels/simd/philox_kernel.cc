// Philox in vectors of counters and the loops around it, compiled once per instruction set.
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/simd/philox.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u, kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
constexpr int kLanes = kPhiloxLanes;

// 16 consecutive blocks, lane by lane in every line, so that the compiler makes vectors of it. The low word of the
// counter must not overflow within them.
[[gnu::always_inline]] inline void sixteen_blocks(const Philox& p, uint32_t first, uint32_t* __restrict words) {
  alignas(64) uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    c0[l] = first + uint32_t(l);
    c1[l] = uint32_t(p.low >> 32);
    c2[l] = uint32_t(p.high);
    c3[l] = uint32_t(p.high >> 32);
  }
  uint32_t key0 = uint32_t(p.key), key1 = uint32_t(p.key >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < kLanes; ++l) {
      uint64_t a = uint64_t(kMultiplier0) * c0[l], b = uint64_t(kMultiplier1) * c2[l];
      uint32_t n0 = uint32_t(b >> 32) ^ c1[l] ^ key0, n2 = uint32_t(a >> 32) ^ c3[l] ^ key1;
      c0[l] = n0;
      c1[l] = uint32_t(b);
      c2[l] = n2;
      c3[l] = uint32_t(a);
    }
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  for (int l = 0; l < kLanes; ++l) {
    words[4 * l] = c0[l];
    words[4 * l + 1] = c1[l];
    words[4 * l + 2] = c2[l];
    words[4 * l + 3] = c3[l];
  }
}

void many_blocks(const Philox& p, int64_t sixteens, uint32_t* words) {
  for (int64_t i = 0; i < sixteens; ++i)
    sixteen_blocks(p, uint32_t(p.low) + uint32_t(i * kLanes), words + i * kLanes * 4);
}

void to_floats(uint32_t* words, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float f = std::bit_cast<float>((words[i] & 0x7fffffu) | 0x3f800000u) - 1.0f;
    std::memcpy(words + i, &f, sizeof f);
  }
}

// The first half of Box and Muller's transform, up to the functions: u and an angle of each pair of words. The smallest
// u is not 0, whose logarithm is infinite.
void to_polar(const uint32_t* __restrict words, int64_t pairs, float* __restrict u, float* __restrict angle) {
  for (int64_t i = 0; i < pairs; ++i) {
    float a = std::bit_cast<float>((words[2 * i] & 0x7fffffu) | 0x3f800000u) - 1.0f;
    float b = std::bit_cast<float>((words[2 * i + 1] & 0x7fffffu) | 0x3f800000u) - 1.0f;
    u[i] = a > 1.0e-7f ? a : 1.0e-7f;
    angle[i] = float(2.0 * M_PI * double(b));
  }
}
// The second half: from the logarithm of u, the sine and the cosine.
void from_polar(const float* __restrict log, const float* __restrict sine, const float* __restrict cosine,
                int64_t pairs, float* __restrict y) {
  for (int64_t i = 0; i < pairs; ++i) {
    float radius = std::sqrt(-2.0f * log[i]);
    y[2 * i] = sine[i] * radius;
    y[2 * i + 1] = cosine[i] * radius;
  }
}

}  // namespace

extern const PhiloxKernels philox_kernels;
const PhiloxKernels philox_kernels = {many_blocks, to_floats, to_polar, from_polar};

}  // namespace tapeflow::TAPEFLOW_ISA
