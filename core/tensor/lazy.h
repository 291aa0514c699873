// Values that are not computed yet: large elementwise results stay a small expression until somebody reads their
// elements, so that a chain of operations becomes one pass over memory. The elements come from the same loops as
// without waiting, so they are the same to the last bit.
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
  int64_t row_length;  // of the whole expression
  int operations;      // in the whole expression; one that is used twice counts twice
  size_t held;         // bytes of computed operands that the last operation holds
  int place = -1;      // its place in the program, while that is made
  bool dying = false;  // its holders outside of expressions let go without reading it

  ~Lazy();
};

// Fewest elements that are worth waiting.
constexpr int64_t kLazyElements = 1 << 14;

// A float32 tensor whose elements are not computed; false if lazy tensors hold too much memory already.
bool make_lazy(const Shape&, ElementwiseOperation, Tensor* result);

// Says of a lazy tensor that only other lazy tensors will read it.
void let_die(const Tensor&);

}  // namespace tapeflow
