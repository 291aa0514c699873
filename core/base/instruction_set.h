// Which of the instruction sets that some kernels are compiled for is used.
#pragma once

namespace tapeflow {

enum class InstructionSet { baseline, avx2, avx512 };

// The best one of this machine, or the one that the environment variable TAPEFLOW_ISA names if the machine has it.
InstructionSet instruction_set();

}  // namespace tapeflow
