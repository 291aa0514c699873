// Loops that do two or three arithmetic operations in one pass: y = outer(left(a, b), right(c, d)), element by element.
// Each operation is rounded by itself, so the results are those of one loop after the other.
#pragma once
#include <cstdint>

#include "base/arithmetic.h"

namespace tapeflow {

// The functions that can be combined are the first ones of all.
constexpr int kArithmetics = int(Arithmetic::square_root) + 1;

// A loop over whole vectors of the operands a, b, c, d, whose steps are 1, or 0 for a vector that is read again and
// again.
using CombinationLoop = void (*)(const void* const* operands, const int64_t* steps, void* y, int64_t n);

struct Combination {
  // Runs the loop over any number of elements. Of operands that are single there is one element. `y` may be an operand.
  void (*run)(CombinationLoop, const void* const* operands, const bool* single, void* y, int64_t n) = nullptr;
  CombinationLoop loop = nullptr;  // null: there is none
};

struct CombinationTable {
  CombinationLoop loops[kArithmetics][kArithmetics][kArithmetics];
};

// The one for floats or doubles. `outer` is one of the four basic operations; if it commutes, the right function is not
// a later one than the left.
Combination find_combination(bool doubles, Arithmetic outer, Arithmetic left, Arithmetic right);

}  // namespace tapeflow
