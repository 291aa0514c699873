// Names and sizes of the element types.
#include "base/dtype.h"

namespace tapeflow {
namespace {
struct Row {
  const char* name;
  const char* legacy_name;
  size_t size;
};
constexpr Row rows[kDTypeLimit] = {
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
};
}  // namespace

size_t size_of(DType d) { return rows[int(d)].size; }
const char* name_of(DType d) { return rows[int(d)].name; }
const char* legacy_name_of(DType d) { return rows[int(d)].legacy_name; }
DType real_dtype(DType d) {
  if (d == DType::complex64) return DType::float32;
  if (d == DType::complex128) return DType::float64;
  return d;
}

}  // namespace tapeflow
