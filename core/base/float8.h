// The float types of 8 bits: decoding to float, which is exact, and encoding with one rounding (nearest, ties to even).
#pragma once
#include "base/dtype.h"

namespace tapeflow {

float float_from_float8(DType, uint8_t bits);
// What is too large becomes infinity where the type has one (e5m2), otherwise NaN.
uint8_t float8_from_double(DType, double value);

}  // namespace tapeflow
