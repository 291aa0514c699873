// Functions of quotients for one instruction set: compiled once per set, with TAPEFLOW_ISA as the namespace.
#include "kernels/simd/fmod_atan2.h"

#include <cmath>

#include "kernels/simd/vector_binary.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

template <class Mask> TAPEFLOW_INLINE bool all_of(Mask mask) {
  uint64_t words[sizeof mask / sizeof(uint64_t)], all = ~uint64_t(0);
  std::memcpy(words, &mask, sizeof mask);
  for (uint64_t word : words) all &= word;
  return all == ~uint64_t(0);
}

inline float library_remainder(float a, float b) { return __builtin_fmodf(a, b); }
inline double library_remainder(double a, double b) { return __builtin_fmod(a, b); }

template <class T>
[[gnu::noinline]] void correct(const Vector<T>& a, const Vector<T>& b, Vector<T>& r, const decltype(a < b)& right) {
  for (int i = 0; i < lanes<Vector<T>>; ++i)
    if (!right[i]) r[i] = library_remainder(a[i], b[i]);
}

// a - trunc(a/b) b. While the quotient is small enough to be told from its neighbours, the rounded one is at most one
// too large, and the difference is exact; other elements, and all of them where products and sums are not fused, go
// through the library.
template <class T> TAPEFLOW_INLINE Vector<T> remainder(Vector<T> a, Vector<T> b) {
  using V = Vector<T>;
  const V size = abs(a), divisor = abs(b), ratio = size / divisor;
  V r{};
  if constexpr (fused) {
    r = fma(-floor(ratio), divisor, size);
    r = copysign(r < T(0) ? r + divisor : r, a);
  }
  auto right = (ratio < Constants<T>::integer / 4) & (divisor < Constants<T>::infinity);
  if constexpr (!fused) right = right & 0;
  if (!all_of(right)) correct<T>(a, b, r, right);
  return r;
}

template <class T> TAPEFLOW_INLINE Vector<T> floor_mod(Vector<T> a, Vector<T> b) {
  const Vector<T> r = remainder<T>(a, b);
  return (r != T(0)) & ((r < T(0)) ^ (b < T(0))) ? r + b : r;
}

// The angle of the point (b, a), by the one in the first eighth of the circle.
template <class T> TAPEFLOW_INLINE Vector<T> atan2(Vector<T> a, Vector<T> b) {
  using V = Vector<T>;
  const V y = abs(a), x = abs(b);
  const auto steep = y > x;
  const V low = steep ? x : y, high = steep ? y : x;
  V ratio = high == T(0) ? V{} : low / high;
  ratio = low == Constants<T>::infinity ? splat<V>(1) : ratio;
  const V angle = atan(ratio);
  const auto& half_pi = Constants<T>::half_pi;
  V result = steep ? half_pi[0] - (angle - half_pi[1]) : angle;
  const auto left = (decltype(steep))((bits(b) & sign_bit<V>) != 0);
  result = left ? 2 * half_pi[0] - (result - 2 * half_pi[1]) : result;
  return (a == a) & (b == b) ? copysign(result, a) : a + b;
}

template <class T> constexpr QuotientKernels<T> make_kernels() {
  return {binary<T, floor_mod<T>>, binary<T, remainder<T>>, binary<T, atan2<T>>};
}

}  // namespace

extern const QuotientKernels<float> float_quotients;
extern const QuotientKernels<double> double_quotients;
constinit const QuotientKernels<float> float_quotients = make_kernels<float>();
constinit const QuotientKernels<double> double_quotients = make_kernels<double>();

}  // namespace tapeflow::TAPEFLOW_ISA
