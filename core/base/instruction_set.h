// Which of the instruction sets that some kernels are compiled for is used.
#pragma once

namespace tapeflow {

enum class InstructionSet { baseline, avx2, avx512 };

// The best one of this machine, or the one that the environment variable TAPEFLOW_ISA names if the machine has it.
InstructionSet instruction_set();
bool has_avx512_bf16();  // beside avx512, if that is in use
bool has_amx_bf16();     // beside those; asks the system for the process's permission to use tiles

// Runs a loop that the compiler turns into vectors by itself, with vectors of 32 bytes where the machine has them. For
// loops of exact results, such as those of integers: a loop is compiled twice where it stands, and `loop` must be
// inlined (TAPEFLOW_LOOP) to belong to both. AVX2 lacks many instructions for integers of 64 bits: loops over them may
// ask for AVX-512, too.
enum class Widest { avx2, avx512 };
#if defined(__x86_64__)
#if defined(__clang__)  // which ignores the whole attribute if it does not know a word of it
#define TAPEFLOW_AVX512 [[gnu::target("avx2,avx512f,avx512bw,avx512dq,avx512vl")]]
#else
#define TAPEFLOW_AVX512 [[gnu::target("avx2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#endif
template <class Loop> [[gnu::target("avx2")]] void run_with_avx2(Loop loop) { loop(); }
template <class Loop> TAPEFLOW_AVX512 void run_with_avx512(Loop loop) { loop(); }
#undef TAPEFLOW_AVX512
template <Widest widest = Widest::avx2, class Loop> inline void run_vectorized(Loop loop) {
  const InstructionSet set = instruction_set();
  if constexpr (widest == Widest::avx512)
    if (set == InstructionSet::avx512) return run_with_avx512(loop);
  if (set != InstructionSet::baseline) return run_with_avx2(loop);
  loop();
}
#else
template <Widest widest = Widest::avx2, class Loop> inline void run_vectorized(Loop loop) { loop(); }
#endif
#define TAPEFLOW_LOOP __attribute__((always_inline))  // after the captures and parameters of such a loop

// Files that are compiled once per set keep what they make in a namespace of its name. The first declares it in each of
// them; the second is the one for this machine: an object, or a function to be called.
#if defined(__x86_64__)
#define TAPEFLOW_DECLARE_PER_SET(declarations) \
  namespace baseline {                         \
  declarations                                 \
  }                                            \
  namespace avx2 {                             \
  declarations                                 \
  }                                            \
  namespace avx512 {                           \
  declarations                                 \
  }
#define TAPEFLOW_OF_THIS_MACHINE(name)                        \
  (instruction_set() == InstructionSet::avx512 ? avx512::name \
   : instruction_set() == InstructionSet::avx2 ? avx2::name   \
                                               : baseline::name)
#else
#define TAPEFLOW_DECLARE_PER_SET(declarations) \
  namespace baseline {                         \
  declarations                                 \
  }
#define TAPEFLOW_OF_THIS_MACHINE(name) (baseline::name)
#endif

}  // namespace tapeflow
