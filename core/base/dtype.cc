// Names of the element types.
#include "base/dtype.h"

namespace tapeflow {
namespace {
struct Row {
  const char* name;
  const char* legacy_name;
};
constexpr Row rows[kDTypeLimit] = {
    {"invalid", "invalid"},
    {"float32", "float"},
    {"float64", "double"},
    {"int32", "int32"},
    {"uint8", "uint8"},
    {"int16", "int16"},
    {"int8", "int8"},
    {"string", "string"},
    {"complex64", "complex64"},
    {"int64", "int64"},
    {"bool", "bool"},
    {"qint8", "qint8"},
    {"quint8", "quint8"},
    {"qint32", "qint32"},
    {"bfloat16", "bfloat16"},
    {"qint16", "qint16"},
    {"quint16", "quint16"},
    {"uint16", "uint16"},
    {"complex128", "complex128"},
    {"float16", "half"},
    {"resource", "resource"},
    {"variant", "variant"},
    {"uint32", "uint32"},
    {"uint64", "uint64"},
};
}  // namespace

const char* name_of(DType d) { return rows[int(d)].name; }
const char* legacy_name_of(DType d) { return rows[int(d)].legacy_name; }
DType real_dtype(DType d) {
  if (d == DType::complex64) return DType::float32;
  if (d == DType::complex128) return DType::float64;
  return d;
}

}  // namespace tapeflow
