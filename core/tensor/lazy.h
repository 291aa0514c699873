// Values that are not computed yet: large elementwise results stay a small expression until somebody reads their
// elements, so that a chain of operations becomes one pass over memory. The elements come from the same loops as
// eagerly, so they are the same to the last bit.
#pragma once
#include "tensor/elementwise_program.h"

namespace tapeflow {

// y = unary(a), or y = binary(a, b) when `binary` is set.
struct ElementwiseOperation {
  Tensor a = {}, b = {};
  ElementwiseProgram::Unary unary = nullptr;
  ElementwiseProgram::Binary binary = nullptr;
  Placement placement = {};
  Arithmetic arithmetic = Arithmetic::none;
};

struct Lazy {
  ElementwiseOperation last;
  int64_t row_length;      // of the whole expression
  int operations;          // in the whole expression; one that is used twice counts twice
  size_t held;             // bytes of computed operands that the last operation holds
  int place = -1;          // its place in the program, while that is made
  bool temporary = false;  // its holders outside of expressions release it unread

  ~Lazy();
};

// Fewest elements for which laziness pays.
constexpr int64_t kLazyElements = 1 << 14;

// A float32 tensor whose elements are not computed; false if lazy tensors hold too much memory already.
bool make_lazy(const Shape&, ElementwiseOperation, Tensor* result);

// Marks a lazy tensor that only other lazy tensors will read.
void mark_temporary(const Tensor&);

}  // namespace tapeflow
