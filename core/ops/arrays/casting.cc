// Changing the element type.
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/float8.h"
#include "ops/family.h"

namespace tapeflow {
namespace {

// Floats become integers by truncation; what does not fit becomes the least number of 32 or 64 bits, cut to size, as
// the conversion instructions of x86-64 have it and TensorFlow with them.
template <class To, class From> To converted(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (is_complex<To>) {
    if constexpr (is_complex<From>)
      return To(x);
    else
      return To(typename To::value_type(x));
  } else if constexpr (is_complex<From>) {
    return converted<To>(x.real());
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) < 4 || std::is_same_v<To, int32_t>)
      return To(x > From(-2147483649.0) && x < From(2147483648.0) ? int32_t(x) : std::numeric_limits<int32_t>::min());
    if (x >= From(9223372036854775808.0) && x < From(18446744073709551616.0)) return To(uint64_t(x));
    return To(x >= From(-9223372036854775808.0) && x < From(9223372036854775808.0)
                  ? int64_t(x)
                  : std::numeric_limits<int64_t>::min());
  } else {
    return To(x);
  }
}

// Converts elements by the instruction that `converted` is true to, and says how many.
template <class From, class To> int64_t whole_vectors(const From* x, To* y, int64_t n) {
  int64_t i = 0;
#if defined(__x86_64__)
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, int32_t>)
    for (; i + 4 <= n; i += 4)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm_cvttps_epi32(_mm_loadu_ps(x + i)));
#endif
  return i;
}

template <class From, class To> void cast_loop(const void* x, void* y, int64_t n) {
  const From* from = static_cast<const From*>(x);
  To* to = static_cast<To*>(y);
  const ConversionKernels& kernels = conversion_kernels();
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, double>)
    return kernels.float_to_double(from, to, n);
  else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>)
    return kernels.double_to_float(from, to, n);
  else if constexpr (std::is_same_v<From, int32_t> && std::is_same_v<To, float>)
    return kernels.int32_to_float(from, to, n);
  else if constexpr (std::is_same_v<From, bool> && std::is_same_v<To, float>)
    return kernels.bool_to_float(static_cast<const uint8_t*>(x), to, n);
  else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, half>)
    return kernels.float_to_half(from, &to->bits, n);
  else if constexpr (std::is_same_v<From, half> && std::is_same_v<To, float>)
    return kernels.half_to_float(&from->bits, to, n);
  else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>)
    return kernels.float_to_bfloat16(from, &to->bits, n);
  else if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, float>)
    return kernels.bfloat16_to_float(&from->bits, to, n);
  else if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To>)
    run_vectorized<sizeof(From) == 8 || sizeof(To) == 8 ? Widest::avx512 : Widest::avx2>([from, to, n]() TAPEFLOW_LOOP {
      for (int64_t i = whole_vectors<From, To>(from, to, n); i < n; ++i) to[i] = converted<To>(from[i]);
    });
  else
    for (int64_t i = 0; i < n; ++i) store(to + i, converted<Compute<To>>(load(from + i)));
}

// Elements of a float8 type by way of float or double, a block at a time.
constexpr int64_t kBlock = 256;

void cast_from_float8(const Tensor& x, const Tensor& y) {
  const uint8_t* from = static_cast<const uint8_t*>(x.raw());
  visit<fixed_size.bits>(storage_dtype(y.dtype()), [&](auto* q) {
    using To = Pointee<decltype(q)>;
    To* to = static_cast<To*>(y.mutable_raw());
    parallel_for(x.size(), kCheapGrain, [&](int64_t begin, int64_t end) {
      float block[kBlock];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t n = std::min(kBlock, end - i);
        for (int64_t k = 0; k < n; ++k) block[k] = float_from_float8(x.dtype(), from[i + k]);
        cast_loop<float, To>(block, to + i, n);
      }
    });
  });
}

void cast_to_float8(const Tensor& x, const Tensor& y) {
  uint8_t* to = static_cast<uint8_t*>(y.mutable_raw());
  auto encode = [&](auto&& load_block) {
    parallel_for(x.size(), kCheapGrain, [&](int64_t begin, int64_t end) {
      double block[kBlock];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t n = std::min(kBlock, end - i);
        load_block(i, block, n);
        for (int64_t k = 0; k < n; ++k) to[i + k] = float8_from_double(y.dtype(), block[k]);
      }
    });
  };
  if (float8s.has(x.dtype())) {
    const uint8_t* from = static_cast<const uint8_t*>(x.raw());
    return encode([&](int64_t i, double* block, int64_t n) {
      for (int64_t k = 0; k < n; ++k) block[k] = double(float_from_float8(x.dtype(), from[i + k]));
    });
  }
  visit<fixed_size.bits>(storage_dtype(x.dtype()), [&](auto* p) {
    using From = Pointee<decltype(p)>;
    const From* from = static_cast<const From*>(x.raw());
    encode([&](int64_t i, double* block, int64_t n) { cast_loop<From, double>(from + i, block, n); });
  });
}

constexpr struct : Keys {
  Key<DType> dtype = next("dtype");
} cast_params;
const Op& cast_op = define(Op{
    .name = "Cast",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("x", sized), required_dtype(cast_params.dtype)},
    .infer =
        [](Call& call) {
          DType to = call.params[cast_params.dtype];
          if (!sized.has(to))
            fail(ErrorKind::unimplemented, "cast: Cast ", legacy_name_of(call.in[0].dtype()), " to ",
                 legacy_name_of(to), " is not supported");
          call.returns(to, call.in[0].shape());
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (float8s.has(y.dtype())) return cast_to_float8(x, y);
          if (float8s.has(x.dtype())) return cast_from_float8(x, y);
          visit<fixed_size.bits>(storage_dtype(x.dtype()), [&](auto* p) {
            visit<fixed_size.bits>(storage_dtype(y.dtype()), [&](auto* q) {
              using From = Pointee<decltype(p)>;
              using To = Pointee<decltype(q)>;
              loop_unary(cast_loop<From, To>, x.raw(), sizeof(From), y.mutable_raw(), sizeof(To), x.size(),
                         kCheapGrain);
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (differentiable.has(c.dtype(0))) c.set(0, cast(c.dy(), c.dtype(0)));
        },
    .jvp = [](RuleContext& c) { c.set(0, cast(c.x_dot(0), c.y().dtype())); },
    .element_loops =
        [](DType operand, DType result) {
          ElementLoops loops;
          visit<family::joining.bits>(operand, [&](auto* p) {
            visit<family::joining.bits>(
                result, [&](auto* q) { loops.unary = cast_loop<Pointee<decltype(p)>, Pointee<decltype(q)>>; });
          });
          return loops;
        },
    .elementwise = true,
    .keeps_sparse = true,
    .batch = batch_leading,
    .elements = Elements::of_input,
    .advice = "Integers and bools have no gradient: stay with floating point.",
    .non_finite = {"The value does not fit the dtype: scale it (loss scaling), or stay in float32."},
});

}  // namespace

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (!sized.has(x.dtype()) || !sized.has(dtype))
    fail(ErrorKind::unimplemented, "cast: Cast ", legacy_name_of(x.dtype()), " to ", legacy_name_of(dtype),
         " is not supported");
  return run(cast_op, {x}, {dtype});
}

}  // namespace tapeflow
