// Which of the instruction sets that some kernels are compiled for is used.
#pragma once

namespace tapeflow {

enum class InstructionSet { baseline, avx2, avx512 };

// The best one of this machine, or the one that the environment variable TAPEFLOW_ISA names if the machine has it.
InstructionSet instruction_set();
bool has_avx512_bf16();  // beside avx512, if that is in use
bool has_amx_bf16();     // beside those; asks the system for the process's permission to use tiles

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
