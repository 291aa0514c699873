// Element types: their numbers (TensorFlow's DataType), sizes, sets, and the small float types. Knows no tensors.
#pragma once
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace tapeflow {

enum class DType : uint8_t {
  invalid = 0,
  float32 = 1,
  float64 = 2,
  int32 = 3,
  uint8 = 4,
  int16 = 5,
  int8 = 6,
  string = 7,
  complex64 = 8,
  int64 = 9,
  boolean = 10,
  qint8 = 11,
  quint8 = 12,
  qint32 = 13,
  bfloat16 = 14,
  qint16 = 15,
  quint16 = 16,
  uint16 = 17,
  complex128 = 18,
  float16 = 19,
  resource = 20,
  variant = 21,
  uint32 = 22,
  uint64 = 23,
  float8_e5m2 = 24,
  float8_e4m3fn = 25,
  float8_e4m3fnuz = 26,
  float8_e4m3b11fnuz = 27,
  float8_e5m2fnuz = 28,
};
constexpr int kDTypeLimit = 29;

// IEEE binary16 and the upper half of binary32. Arithmetic is done in float and rounded once (nearest, ties to even).
inline float float_from_half(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  float magnitude = float(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}
inline uint16_t half_from_float(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f), sign = (x >> 16) & 0x8000u, magnitude = x & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return uint16_t(sign | 0x7c00u);
  if (magnitude < 0x38800000u)  // subnormal or zero: let the float adder do the rounding
    return uint16_t(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u));
  uint32_t odd = (magnitude >> 13) & 1u;
  return uint16_t(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}
inline float float_from_bfloat(uint16_t h) { return std::bit_cast<float>(uint32_t(h) << 16); }
inline uint16_t bfloat_from_float(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f);
  if ((x & 0x7fffffffu) > 0x7f800000u) return uint16_t((x >> 16) | 0x40u);
  return uint16_t((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

struct half {
  uint16_t bits;
  half() = default;
  explicit half(float f) : bits(half_from_float(f)) {}
  operator float() const { return float_from_half(bits); }
};
struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  explicit bfloat16(float f) : bits(bfloat_from_float(f)) {}
  operator float() const { return float_from_bfloat(bits); }
};

template <class T> struct DTypeOf;
template <> struct DTypeOf<float> {
  static constexpr DType value = DType::float32;
};
template <> struct DTypeOf<double> {
  static constexpr DType value = DType::float64;
};
template <> struct DTypeOf<int32_t> {
  static constexpr DType value = DType::int32;
};
template <> struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::uint8;
};
template <> struct DTypeOf<int16_t> {
  static constexpr DType value = DType::int16;
};
template <> struct DTypeOf<int8_t> {
  static constexpr DType value = DType::int8;
};
template <> struct DTypeOf<std::string> {
  static constexpr DType value = DType::string;
};
template <> struct DTypeOf<std::complex<float>> {
  static constexpr DType value = DType::complex64;
};
template <> struct DTypeOf<int64_t> {
  static constexpr DType value = DType::int64;
};
template <> struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <> struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::bfloat16;
};
template <> struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::uint16;
};
template <> struct DTypeOf<std::complex<double>> {
  static constexpr DType value = DType::complex128;
};
template <> struct DTypeOf<half> {
  static constexpr DType value = DType::float16;
};
template <> struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::uint32;
};
template <> struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::uint64;
};
template <class T> constexpr DType dtype_of = DTypeOf<T>::value;

// The type in which an element is computed: float for the small float types, itself otherwise.
template <class T> struct ComputeType {
  using type = T;
};
template <> struct ComputeType<half> {
  using type = float;
};
template <> struct ComputeType<bfloat16> {
  using type = float;
};
template <class T> using Compute = typename ComputeType<T>::type;

template <class T> struct IsComplex : std::false_type {};
template <class T> struct IsComplex<std::complex<T>> : std::true_type {};
template <class T> constexpr bool is_complex = IsComplex<T>::value;
template <class T> constexpr bool is_small_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

// A set of dtypes, as a bit mask.
struct DTypes {
  uint32_t bits = 0;
  constexpr DTypes() = default;
  constexpr DTypes(DType d) : bits(1u << int(d)) {}
  constexpr explicit DTypes(uint32_t b) : bits(b) {}
  constexpr bool has(DType d) const { return (bits >> int(d)) & 1u; }
  friend constexpr DTypes operator|(DTypes a, DTypes b) { return DTypes(a.bits | b.bits); }
};
constexpr DTypes small_floating = DTypes(DType::float16) | DType::bfloat16;
constexpr DTypes floating = small_floating | DType::float32 | DType::float64;
constexpr DTypes complexes = DTypes(DType::complex64) | DType::complex128;
constexpr DTypes signed_integers = DTypes(DType::int8) | DType::int16 | DType::int32 | DType::int64;
constexpr DTypes unsigned_integers = DTypes(DType::uint8) | DType::uint16 | DType::uint32 | DType::uint64;
constexpr DTypes integers = signed_integers | unsigned_integers;
constexpr DTypes real_numbers = floating | integers;
constexpr DTypes numbers = real_numbers | complexes;
constexpr DTypes booleans = DTypes(DType::boolean);
constexpr DTypes strings = DTypes(DType::string);
constexpr DTypes fixed_size = numbers | booleans;
// Types that are stored, moved and cast, but not computed with.
constexpr DTypes quantized = DTypes(DType::qint8) | DType::quint8 | DType::qint32 | DType::qint16 | DType::quint16;
constexpr DTypes float8s = DTypes(DType::float8_e5m2) | DType::float8_e4m3fn | DType::float8_e4m3fnuz |
                           DType::float8_e4m3b11fnuz | DType::float8_e5m2fnuz;
constexpr DTypes sized = fixed_size | quantized | float8s;
constexpr DTypes any_dtype = sized | strings;
constexpr DTypes differentiable = floating | complexes;
constexpr DTypes wide_floating = DTypes(DType::float32) | DType::float64;

struct DTypeFacts {
  const char* name;         // "float32", "bool"
  const char* legacy_name;  // "float", "double", "half": as in TensorFlow's messages
  uint8_t bytes;            // of an element
};
// By number.
constexpr DTypeFacts kDTypes[kDTypeLimit] = {
    {"invalid", "invalid", 0},
    {"float32", "float", 4},
    {"float64", "double", 8},
    {"int32", "int32", 4},
    {"uint8", "uint8", 1},
    {"int16", "int16", 2},
    {"int8", "int8", 1},
    {"string", "string", sizeof(std::string)},
    {"complex64", "complex64", 8},
    {"int64", "int64", 8},
    {"bool", "bool", 1},
    {"qint8", "qint8", 1},
    {"quint8", "quint8", 1},
    {"qint32", "qint32", 4},
    {"bfloat16", "bfloat16", 2},
    {"qint16", "qint16", 2},
    {"quint16", "quint16", 2},
    {"uint16", "uint16", 2},
    {"complex128", "complex128", 16},
    {"float16", "half", 2},
    {"resource", "resource", 8},
    {"variant", "variant", 8},
    {"uint32", "uint32", 4},
    {"uint64", "uint64", 8},
    {"float8_e5m2", "float8_e5m2", 1},
    {"float8_e4m3fn", "float8_e4m3fn", 1},
    {"float8_e4m3fnuz", "float8_e4m3fnuz", 1},
    {"float8_e4m3b11fnuz", "float8_e4m3b11fnuz", 1},
    {"float8_e5m2fnuz", "float8_e5m2fnuz", 1},
};
constexpr size_t size_of(DType d) { return kDTypes[int(d)].bytes; }
constexpr const char* name_of(DType d) { return kDTypes[int(d)].name; }
constexpr const char* legacy_name_of(DType d) { return kDTypes[int(d)].legacy_name; }
constexpr DType real_dtype(DType d) {  // complex64 -> float32, others unchanged
  return d == DType::complex64 ? DType::float32 : d == DType::complex128 ? DType::float64 : d;
}
constexpr DType storage_dtype(DType d) {  // the integers that stand for quantized numbers, others unchanged
  switch (d) {
    case DType::qint8: return DType::int8;
    case DType::quint8: return DType::uint8;
    case DType::qint32: return DType::int32;
    case DType::qint16: return DType::int16;
    case DType::quint16: return DType::uint16;
    default: return d;
  }
}

// Calls body(T{}) with the element type of `dtype`, restricted at compile time to `Set`; false if it is not in the set.
template <uint32_t Set, class Body> bool visit(DType dtype, Body&& body) {
  auto attempt = [&]<class T>(T*) {
    if constexpr ((Set >> int(dtype_of<T>)) & 1u) {
      body(static_cast<T*>(nullptr));
      return true;
    } else {
      return false;
    }
  };
  switch (dtype) {
    case DType::float32: return attempt(static_cast<float*>(nullptr));
    case DType::float64: return attempt(static_cast<double*>(nullptr));
    case DType::int32: return attempt(static_cast<int32_t*>(nullptr));
    case DType::uint8: return attempt(static_cast<uint8_t*>(nullptr));
    case DType::int16: return attempt(static_cast<int16_t*>(nullptr));
    case DType::int8: return attempt(static_cast<int8_t*>(nullptr));
    case DType::string: return attempt(static_cast<std::string*>(nullptr));
    case DType::complex64: return attempt(static_cast<std::complex<float>*>(nullptr));
    case DType::int64: return attempt(static_cast<int64_t*>(nullptr));
    case DType::boolean: return attempt(static_cast<bool*>(nullptr));
    case DType::bfloat16: return attempt(static_cast<bfloat16*>(nullptr));
    case DType::uint16: return attempt(static_cast<uint16_t*>(nullptr));
    case DType::complex128: return attempt(static_cast<std::complex<double>*>(nullptr));
    case DType::float16: return attempt(static_cast<half*>(nullptr));
    case DType::uint32: return attempt(static_cast<uint32_t*>(nullptr));
    case DType::uint64: return attempt(static_cast<uint64_t*>(nullptr));
    default: return false;
  }
}
template <class P> using Pointee = std::remove_pointer_t<P>;

}  // namespace tapeflow
