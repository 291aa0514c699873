// Running a large kernel while the program's other threads run.
#pragma once
#include "op/op.h"

namespace tapeflow {

// Whether the kernel takes long and touches nothing but its tensors.
bool worth_unlocking(const Call&);
// Runs it without the interpreter lock. It gets bodies and buffers of its own for its inputs, since the counts of their
// holders belong to the thread that holds the lock.
void run_unlocked(Call&);

}  // namespace tapeflow
