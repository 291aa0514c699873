// Updating variables in place where that is safe.
#include "tensor/variable.h"

#include <cstring>

#include "base/error.h"

namespace tapeflow {
namespace {
bool fits(const Shape& declared, const Shape& given) {
  if (!declared.known_rank()) return true;
  if (declared.rank() != given.rank()) return false;
  for (int i = 0; i < given.rank(); ++i)
    if (declared[i] >= 0 && declared[i] != given[i]) return false;
  return true;
}
}  // namespace

void check_assignable(const VariableBody& v, const Tensor& value, const char* who) {
  if (value.dtype() != v.dtype)
    fail(ErrorKind::value, who, ": the value must have the variable's dtype; got ", name_of(value.dtype()),
         ", expected ", name_of(v.dtype));
  if (fits(v.shape, value.shape())) return;
  if (std::strcmp(who, "assign") != 0 && std::strcmp(who, "Variable") != 0)
    fail(ErrorKind::invalid_argument, who, ": Cannot update variable '", v.name, "' with shape ", PythonShape{v.shape},
         " using a Tensor with shape ", PythonShape{value.shape()}, ", shapes must be equal.");
  fail(ErrorKind::value, who, ": Cannot assign value to variable '", v.name, "': Shape mismatch. The variable shape ",
       PythonShape{v.shape}, ", and the assigned value shape ", PythonShape{value.shape()}, " are incompatible.");
}

Tensor copy_of(const Tensor& t) {
  if (t.dtype() == DType::variant) return t.view(t.shape());  // it carries something that never changes
  Tensor copy = Tensor::allocate(t.dtype(), t.shape());
  if (t.dtype() == DType::string) {
    for (int64_t i = 0; i < t.size(); ++i) copy.mutable_data<std::string>()[i] = t.data<std::string>()[i];
  } else {
    std::memcpy(copy.mutable_raw(), t.raw(), t.bytes());
  }
  return copy;
}

Tensor writable_value(VariableBody& v) {
  v.value.raw();
  if (!v.value.unique()) v.value = copy_of(v.value);
  return v.value;
}

}  // namespace tapeflow
