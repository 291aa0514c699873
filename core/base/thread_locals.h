// What a thread has of its own, in one struct: who owns a slot gives it a name and a meaning, and upper layers' types
// are only named here. It needs neither constructor nor destructor, so an access is one load from the thread pointer.
//
// Apart from it stand the objects that must be destroyed when their thread ends: the ThreadState behind `state`
// (op/thread_state.cc) and the two caches of memory in base (blocks.cc, scratch.cc), which nothing else looks into.
#pragma once
#include <cstdint>

namespace tapeflow {

struct ThreadState;
struct Origin;
class NumericsCheck;
class Replay;

// Where a thread computes, in the words of programs: the logical processor that its tensors name, and the replica of a
// strategy. Kernels do not read it: all logical processors are the same machine.
struct ThreadPlace {
  uint8_t device = 0;   // one more than the number of the logical processor; 0 if the program names none
  uint8_t replica = 0;  // the replica's number in this process: it chooses among the copies of a mirrored variable
  bool among_several = false;  // functions are traced into their caller, once for each replica
};

struct ThreadLocals {
  ThreadState* state = nullptr;            // op/thread_state.h: recorders and stage; null before the first use
  const Origin* origin = nullptr;          // autodiff/trace.h: the operation for whose sake others run
  NumericsCheck* numerics = nullptr;       // autodiff/numerics.h: the innermost check that is open
  Replay* replay = nullptr;                // graph/replay.h: the innermost second run of a graph
  int64_t last_turn = 0;                   // python/stage.cc: when a loop last let other threads run, in nanoseconds
  int composition_depth = 0;               // python/composition.cc: how many compositions run inside of each other
  int packing_depth = 0;                   // python/convert.cc: how deep in nested lists a conversion is
  ThreadPlace place;                       // python/stage.cc
  bool differentiating_iteration = false;  // control_flow/loop.cc: a gradient of one iteration is being built
  bool in_parallel_region = false;         // base/parallel.cc: further parallel loops run on this thread alone
};

extern constinit thread_local ThreadLocals thread_locals __attribute__((tls_model("initial-exec")));

}  // namespace tapeflow
