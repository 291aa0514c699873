// Owns copies of many short runs of bytes, for which a call of memcpy each would cost more than the copy.
#pragma once

#include <cstdint>

namespace tapeflow {

// Copies `rows` runs of `bytes` bytes, whose starts are from_step and to_step bytes apart. Nothing may overlap.
using CopyRuns = void (*)(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t bytes, int64_t rows);
void copy_runs(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t bytes, int64_t rows);

}  // namespace tapeflow
