// Random numbers from counters: Philox 4x32-10 and the distributions TensorFlow draws from it, on pointers. The numbers
// of one element depend on the key, the counter and the element's index alone, never on threads or instruction set.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace tapeflow {

// A key and a 128-bit counter; every counter value gives a block of four 32-bit words.
struct Philox {
  uint64_t key = 0, low = 0, high = 0;

  Philox skipped(uint64_t blocks) const {
    Philox next = *this;
    next.low += blocks;
    next.high += next.low < blocks;
    return next;
  }
  void block(uint32_t* words) const;  // the four words at the counter
};

// The blocks at the counter and the n - 1 after it.
void philox_blocks(const Philox&, int64_t n, uint32_t* words);

// Words one by one.
class PhiloxWords {
 public:
  explicit PhiloxWords(const Philox& start) : next_(start) {}
  uint32_t operator()() {
    if (used_ == 4) {
      next_.block(words_);
      next_ = next_.skipped(1);
      used_ = 0;
    }
    return words_[used_++];
  }
  double uniform() {  // in [0, 1), of two words
    uint32_t high = (*this)(), low = (*this)();
    return uniform_double(high, low);
  }
  static double uniform_double(uint32_t high, uint32_t low) {
    return std::bit_cast<double>(uint64_t(1023) << 52 | uint64_t(high & 0xfffffu) << 32 | low) - 1.0;
  }

 private:
  Philox next_;
  uint32_t words_[4] = {};
  int used_ = 4;
};

// Doubles in pairs, a block per pair; a pair is used from its end. Uniform and normal pairs share one counter.
class PhiloxPairs {
 public:
  explicit PhiloxPairs(const Philox& start) : next_(start) {}
  double uniform();
  double normal();

 private:
  Philox next_;
  double uniforms_[2] = {}, normals_[2] = {};
  int uniforms_left_ = 0, normals_left_ = 0;
};

// Elements [begin, end) of a long row of numbers; `y` is the row's start. Both ends but the last are multiples of 4.
// T is half, bfloat16, float or double; the integers are int32, int64, uint32 and uint64.
template <class T> void fill_uniform(const Philox&, int64_t begin, int64_t end, T* y);
template <class T> void fill_normal(const Philox&, int64_t begin, int64_t end, T* y);
template <class T> void fill_truncated_normal(const Philox&, int64_t begin, int64_t end, T* y);  // within (-2, 2)
template <class T> void fill_bits(const Philox&, int64_t begin, int64_t end, T* y);
template <class T> void fill_integers(const Philox&, T low, uint64_t range, int64_t begin, int64_t end, T* y);

// One sample each; the generator stands at the sample's own counter, which for a binomial sample of few expected
// successes is nearer to the one before.
double gamma_sample(double alpha, PhiloxPairs);                 // scale 1
double poisson_sample(double rate, double limit, PhiloxPairs);  // at most `limit`; NaN for a rate that is not one
double binomial_sample(double count, double probability, const Philox&, uint64_t index);

// Normal numbers between two bounds, `samples` of them, `stride` apart in y; false where the bounds make no sense or
// where too many numbers in a row are refused. Moves `next` on. T is half, float or double.
template <class T>
bool fill_bounded_normal(Philox& next, T mean, T deviation, T low, T high, int64_t samples, T* y, int64_t stride);

// A permutation of 0..last, evaluated at one index: the Simon cipher of few rounds, applied until it stays in range.
uint64_t shuffled_index(uint64_t index, const uint32_t* key, uint64_t last, int rounds);

// The derivative by alpha of a gamma sample x at a fixed value of its distribution function.
double gamma_sample_derivative(double alpha, double x);

// Blocks between the counters of two samples of the distributions that may need many numbers.
constexpr uint64_t kBlocksPerSample = 256;

}  // namespace tapeflow
