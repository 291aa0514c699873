// Values that are not computed yet: large elementwise results wait as a small expression until somebody reads their
// elements, so that a chain of operations becomes one pass over memory. The elements come from the same loops as
// without waiting, so they are the same to the last bit.
#pragma once
#include "tensor/tensor.h"

namespace tapeflow {

// Loops over n floats. An operand of one element (vs: the right one, sv: the left one) is read again and again.
using PendingUnary = void (*)(const void* x, void* y, int64_t n);
using PendingBinary = void (*)(const void* a, const void* b, void* y, int64_t n);

// y = unary(a), or y = binary(a, b) when `binary` is set. Operands have the size of the result, or one element.
struct Pending {
  Tensor a, b;
  PendingUnary unary = nullptr;
  PendingBinary binary = nullptr;
  int operations = 1;  // in the whole expression; one that is used twice counts twice
  size_t held = 0;     // bytes of computed operands that wait with this operation
  int place = -1;      // its place in the program, while that is made
  bool dying = false;  // its holders outside of expressions let go without reading it

  ~Pending();
};

// Fewest elements that are worth waiting.
constexpr int64_t kPendingElements = 1 << 14;

// A float32 tensor whose elements are not computed; false if too much memory waits already.
bool make_pending(const Shape&, Tensor a, Tensor b, PendingUnary, PendingBinary, Tensor* result);

// Says of a pending tensor that only other pending tensors will read it.
void let_die(const Tensor&);

}  // namespace tapeflow
