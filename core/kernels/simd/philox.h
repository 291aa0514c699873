// The loops of random numbers over many counters.
#pragma once
#include "kernels/random.h"

namespace tapeflow {

constexpr int kPhiloxLanes = 16;

struct PhiloxKernels {
  void (*blocks)(const Philox&, int64_t sixteens, uint32_t* words);  // the low word of the counter must not overflow
  void (*floats)(uint32_t* words, int64_t n);                        // in [0, 1), in place
  void (*to_polar)(const uint32_t* words, int64_t pairs, float* u, float* angle);
  void (*from_polar)(const float* log, const float* sine, const float* cosine, int64_t pairs, float* y);
};
const PhiloxKernels& philox_kernels();

}  // namespace tapeflow
