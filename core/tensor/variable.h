// Variables: a changeable cell holding a tensor. Reading gives the tensor; assigning writes in place if nobody else
// holds it, and otherwise puts a new tensor in the cell, so that a value read earlier never changes.
#pragma once
#include <string>

#include "tensor/tensor.h"

namespace tapeflow {

struct VariableBody {
  int64_t references = 1;
  Tensor value;  // empty until initialised
  DType dtype = DType::invalid;
  Shape shape;       // the declared shape; may have unknown dimensions
  std::string name;  // for messages
  bool trainable = true;
  Marks marks;
  void* wrapper = nullptr;  // the Python object; borrowed

  void retain() { ++references; }
  void drop() {
    if (--references == 0) delete this;
  }
};

// Throws if dtype or shape of `value` do not fit. `who` is the public name for messages.
void check_assignable(const VariableBody&, const Tensor& value, const char* who);

// The variable's value for writing: itself if nobody else holds it, else a copy that is put in the cell.
Tensor writable_value(VariableBody&);

Tensor copy_of(const Tensor&);

}  // namespace tapeflow
