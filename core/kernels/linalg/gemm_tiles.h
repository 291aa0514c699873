// Products of bfloat16 in the tile registers of AMX: blocks of 32 x 32 sums in float32.
#pragma once
#include <cstdint>

namespace tapeflow {

constexpr int64_t kTileBlock = 32;  // rows and columns of a block of sums
constexpr int64_t kTileWords = 16;  // words, which are two neighbours along k, that a step adds

struct TileKernel {
  void (*configure)();  // on the thread that multiplies, before; and after it
  void (*release)();
  // y = A B for 32 rows of A and 32 columns of B, over 16 * `steps` words along k. Rows of A are `a_row` bytes apart;
  // row p of B holds word p of each column, and rows are `b_row` words apart.
  void (*multiply)(const char* a, int64_t a_row, const uint32_t* b, int64_t b_row, int64_t steps, float* y);
};

// Null if the processor has no tiles, or the system does not let the process use them. With TAPEFLOW_AMX=emulated, for
// tests, it is the same in loops.
const TileKernel* tile_kernel();

}  // namespace tapeflow
