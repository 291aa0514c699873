// Elementwise loops that are compiled to machine code while the program runs: one pass over memory for any number of
// arithmetic operations and results, with what lies between in registers. Each operation is rounded by itself, as the
// loops of kernels/simd do it, so the results are the same to the last bit.
#pragma once
#include <cstdint>
#include <vector>

#include "base/arithmetic.h"

namespace tapeflow {

// A straight-line program over elements. Values are numbered: first the inputs, then the results of the operations.
struct LoopProgram {
  struct Operation {
    Arithmetic function;
    int a, b = -1;
  };
  bool doubles = false;      // else floats
  std::vector<bool> single;  // by input: one element for all
  std::vector<Operation> operations;
  std::vector<int> stored;  // values that are results of the loop
  bool streams = false;     // the results go past the caches; their memory is aligned to kStreamAlignment bytes
  bool short_run = false;   // of few elements: as many inputs and results as there may be
};

constexpr uintptr_t kStreamAlignment = 64;

// `memory` points to the inputs and then to the results of n elements; a result may be in the place of an input.
using CompiledLoop = void (*)(void* const* memory, int64_t n);

// Null if this machine, or the program's size, does not allow it. The code is kept for equal programs.
CompiledLoop compile_loop(const LoopProgram&);

// Whether this machine has such loops at all.
bool can_compile_loops();

}  // namespace tapeflow
