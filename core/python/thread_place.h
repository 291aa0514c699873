// Where a thread computes, in the words of programs: the logical processor that its tensors name, and the replica of a
// strategy. Kernels do not read it: all logical processors are the same machine.
#pragma once
#include <cstdint>

namespace tapeflow::python {

struct ThreadPlace {
  uint8_t device = 0;   // one more than the number of the logical processor; 0 if the program names none
  uint8_t replica = 0;  // the replica's number in this process: it chooses among the copies of a mirrored variable
  bool among_several = false;  // functions are traced into their caller, once for each replica
};

extern constinit thread_local ThreadPlace thread_place __attribute__((tls_model("initial-exec")));

}  // namespace tapeflow::python
