// Owns the instructions of AMX. Four tiles hold the sums, two the rows of A and two the columns of B; each is 16 rows
// of 64 bytes.
#include "kernels/linalg/gemm_tiles.h"

#include <bit>
#include <cstdlib>
#include <cstring>

#include "base/instruction_set.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tapeflow {
namespace {

#if defined(__x86_64__)

constexpr int64_t kTileBytes = 64, kTileRows = 16;

#define TAPEFLOW_AMX [[gnu::target("amx-tile,amx-bf16")]]

struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_a_row[16];
  uint8_t rows[16];
};
constexpr TileConfiguration configuration{.bytes_of_a_row = {64, 64, 64, 64, 64, 64, 64, 64},
                                          .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
static_assert(sizeof configuration == 64);

TAPEFLOW_AMX void configure() { _tile_loadconfig(&configuration); }
TAPEFLOW_AMX void release() { _tile_release(); }

TAPEFLOW_AMX void multiply(const char* a, int64_t a_row, const uint32_t* b, int64_t b_row, int64_t steps, float* y) {
  const int64_t b_bytes = b_row * int64_t{sizeof *b};
  __asm__ volatile("" ::: "memory");  // the loads of tiles do not tell the compiler what they read
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (; steps > 0; --steps, a += kTileBytes, b += kTileWords * b_row) {
    _tile_loadd(4, a, a_row);
    _tile_loadd(6, b, b_bytes);
    _tile_loadd(7, b + kTileWords, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + kTileRows * a_row, a_row);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  constexpr int64_t y_row = kTileBlock * sizeof *y;
  _tile_stored(0, y, y_row);
  _tile_stored(1, y + kTileRows, y_row);
  _tile_stored(2, y + kTileRows * kTileBlock, y_row);
  _tile_stored(3, y + kTileRows * kTileBlock + kTileRows, y_row);
}

constexpr TileKernel kernel{configure, release, multiply};

#endif

float element(const char* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

void multiply_emulated(const char* a, int64_t a_row, const uint32_t* b, int64_t b_row, int64_t steps, float* y) {
  for (int64_t i = 0; i < kTileBlock; ++i)
    for (int64_t j = 0; j < kTileBlock; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < steps * kTileWords; ++p) {
        const char *left = a + i * a_row + p * 4, *right = reinterpret_cast<const char*>(b + p * b_row + j);
        sum += element(left) * element(right) + element(left + 2) * element(right + 2);
      }
      y[i * kTileBlock + j] = sum;
    }
}

constexpr TileKernel emulated_kernel{[] {}, [] {}, multiply_emulated};

const TileKernel* choose() {
  const char* wish = std::getenv("TAPEFLOW_AMX");
  if (wish && !std::strcmp(wish, "emulated")) return &emulated_kernel;
#if defined(__x86_64__)
  if (has_amx_bf16()) return &kernel;
#endif
  return nullptr;
}

}  // namespace

const TileKernel* tile_kernel() {
  static const TileKernel* const chosen = choose();
  return chosen;
}

}  // namespace tapeflow
