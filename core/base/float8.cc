#include "base/float8.h"

#include <array>
#include <cmath>
#include <limits>

namespace tapeflow {
namespace {

// A value is `sign * mantissa * 2^exponent`. The codes of non-negative values ascend with them.
struct Format {
  int mantissa_bits, bias;
  uint8_t largest;       // code of the largest finite value
  uint8_t overflow;      // what larger values become: infinity or NaN
  uint8_t nan;           // without its sign
  bool has_signed_zero;  // otherwise the code of -0 is NaN, the only one
};

const Format& format_of(DType d) {
  static constexpr Format e5m2{2, 15, 0x7b, 0x7c, 0x7e, true}, e4m3fn{3, 7, 0x7e, 0x7f, 0x7f, true},
      e4m3fnuz{3, 8, 0x7f, 0x80, 0x80, false}, e4m3b11fnuz{3, 11, 0x7f, 0x80, 0x80, false},
      e5m2fnuz{2, 16, 0x7f, 0x80, 0x80, false};
  switch (d) {
    case DType::float8_e4m3fn: return e4m3fn;
    case DType::float8_e4m3fnuz: return e4m3fnuz;
    case DType::float8_e4m3b11fnuz: return e4m3b11fnuz;
    case DType::float8_e5m2fnuz: return e5m2fnuz;
    default: return e5m2;
  }
}

float decoded(const Format& f, uint8_t bits) {
  if (!f.has_signed_zero && bits == f.nan) return std::numeric_limits<float>::quiet_NaN();
  const int code = bits & 0x7f, exponent = code >> f.mantissa_bits, unit = 1 << f.mantissa_bits,
            mantissa = code & (unit - 1);
  float magnitude = exponent == 0 ? std::ldexp(float(mantissa), 1 - f.bias - f.mantissa_bits)
                                  : std::ldexp(float(unit + mantissa), exponent - f.bias - f.mantissa_bits);
  if (code > f.largest)
    magnitude = code == f.overflow && f.overflow != f.nan ? std::numeric_limits<float>::infinity()
                                                          : std::numeric_limits<float>::quiet_NaN();
  return bits & 0x80 ? -magnitude : magnitude;
}

std::array<float, 256> decoding_table(DType d) {
  std::array<float, 256> table;
  for (int i = 0; i < 256; ++i) table[size_t(i)] = decoded(format_of(d), uint8_t(i));
  return table;
}

}  // namespace

float float_from_float8(DType d, uint8_t bits) {
  static const std::array<std::array<float, 256>, 5> tables{
      decoding_table(DType::float8_e5m2), decoding_table(DType::float8_e4m3fn), decoding_table(DType::float8_e4m3fnuz),
      decoding_table(DType::float8_e4m3b11fnuz), decoding_table(DType::float8_e5m2fnuz)};
  return tables[size_t(d) - size_t(DType::float8_e5m2)][bits];
}

uint8_t float8_from_double(DType d, double value) {
  const Format& f = format_of(d);
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return uint8_t(f.nan | sign);
  const double magnitude = std::abs(value);
  if (std::isinf(value)) return uint8_t(f.overflow | sign);
  const int least = 1 - f.bias, exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  const double digits = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  // A carry out of the mantissa is a step of the exponent, and a subnormal value has the code of its mantissa.
  const double code = std::ldexp(double(exponent + f.bias - 1), f.mantissa_bits) + digits;
  if (code > f.largest) return uint8_t(f.overflow | sign);
  if (code == 0 && !f.has_signed_zero) return 0;
  return uint8_t(int(code) | sign);
}

}  // namespace tapeflow
