#include "collectives/sum_of_parts.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "kernels/simd/vector.h"

namespace tapeflow {
namespace {

constexpr int64_t kBlock = 1024;  // elements: blocks stay in the first cache

template <class T> void add_in_blocks(std::span<const void* const> parts, T* sum, int64_t n) {
  alignas(64) T total[kBlock];  // the sums may lie where a part is
  const auto& kernels = vector_kernels<T>();
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    auto part = [&](size_t r) { return static_cast<const T*>(parts[r]) + begin; };
    kernels.add.vv(part(0), part(1), total, count);
    for (size_t r = 2; r < parts.size(); ++r) kernels.accumulate(part(r), total, count);
    std::memcpy(sum + begin, total, size_t(count) * sizeof(T));
  }
}

template <class T> void add(std::span<const void* const> parts, void* y, int64_t n) {
  auto* sum = static_cast<T*>(y);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (parts.size() > 2) return add_in_blocks(parts, sum, n);
    vector_kernels<T>().add.vv(static_cast<const T*>(parts[0]), static_cast<const T*>(parts[1]), sum, n);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      T total = static_cast<const T*>(parts[0])[i];
      for (const void* part : parts.subspan(1)) {
        T x = static_cast<const T*>(part)[i];
        if constexpr (std::is_same_v<T, bool>)
          total = total || x;
        else
          total = T(total + x);
      }
      sum[i] = total;
    }
  }
}

// In blocks: the elements as float, their sum, and the result rounded once.
void add_small_floats(std::span<const void* const> parts, DType part_dtype, void* y, DType y_dtype, int64_t n) {
  alignas(64) float total[kBlock], term[kBlock];
  const ConversionKernels& convert = conversion_kernels();
  auto* to_float = part_dtype == DType::bfloat16 ? convert.bfloat16_to_float : convert.half_to_float;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    float* sum = y_dtype == DType::float32 ? static_cast<float*>(y) + begin : total;
    to_float(static_cast<const uint16_t*>(parts[0]) + begin, sum, count);
    for (const void* part : parts.subspan(1)) {
      to_float(static_cast<const uint16_t*>(part) + begin, term, count);
      vector_kernels<float>().accumulate(term, sum, count);
    }
    auto* rounded = static_cast<uint16_t*>(y) + begin;
    if (y_dtype == DType::bfloat16) convert.float_to_bfloat16(total, rounded, count);
    if (y_dtype == DType::float16) convert.float_to_half(total, rounded, count);
  }
}

// Copies bytes past the caches where the machine can.
void stream(const void* x, void* y, size_t bytes) {
#if defined(__x86_64__)
  constexpr size_t kLine = 64;
  auto* from = static_cast<const char*>(x);
  auto* to = static_cast<char*>(y);
  const size_t head = std::min(bytes, size_t(-reinterpret_cast<intptr_t>(to) & intptr_t(kLine - 1)));
  std::memcpy(to, from, head);
  size_t i = head;
  for (; i + kLine <= bytes; i += kLine)
    for (size_t j = i; j < i + kLine; j += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + j), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + j)));
  std::memcpy(to + i, from + i, bytes - i);
#else
  std::memcpy(y, x, bytes);
#endif
}

}  // namespace

void sum_of_parts(std::span<const void* const> parts, DType part_dtype, void* y, DType y_dtype, int64_t n) {
  if (small_floating.has(part_dtype)) return add_small_floats(parts, part_dtype, y, y_dtype, n);
  visit<fixed_size.bits>(part_dtype, [&]<class T>(T*) {
    if constexpr (!is_small_float<T>) add<T>(parts, y, n);
  });
}

void convert_elements(const void* x, DType x_dtype, void* y, DType y_dtype, int64_t n, bool past_caches) {
  if (past_caches && x_dtype != y_dtype) {
    alignas(64) uint16_t block[kBlock];
    for (int64_t begin = 0; begin < n; begin += kBlock) {
      const int64_t count = std::min(kBlock, n - begin);
      convert_elements(static_cast<const float*>(x) + begin, x_dtype, block, y_dtype, count);
      stream(block, static_cast<uint16_t*>(y) + begin, size_t(count) * sizeof(uint16_t));
    }
  } else if (past_caches) {
    stream(x, y, size_t(n) * size_of(x_dtype));
  } else if (x_dtype == y_dtype) {
    std::memcpy(y, x, size_t(n) * size_of(x_dtype));
  } else if (y_dtype == DType::bfloat16) {
    conversion_kernels().float_to_bfloat16(static_cast<const float*>(x), static_cast<uint16_t*>(y), n);
  } else {
    conversion_kernels().bfloat16_to_float(static_cast<const uint16_t*>(x), static_cast<float*>(y), n);
  }
}

void fence_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace tapeflow
