// Sorting of lines of numbers by vectors, one table of kernels per instruction set: keys as signed integers, which are
// put in order in place. Owns no threads and no Tensor.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tapeflow {

template <class T> using SortKey = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

constexpr int64_t kSortRoom = 64;  // elements that the second array of a sort has beyond those of the line

struct KeyFacts {
  bool not_a_number = false, negative_zero = false;
};

// Keys of elements: they grow with x, or fall if `descending`; a NaN has the greatest key in both, and -0 that of 0.
template <class T> struct KeyKernels {
  KeyFacts (*keys)(const T* x, SortKey<T>* keys, int64_t n, bool descending);
  void (*elements)(const SortKey<T>* keys, T* x, int64_t n, bool descending);  // the elements again, but for NaN and
                                                                               // -0; x may be the memory of the keys
};

// Key and position in its row in one word, for keys of 32 bits.
struct PackedKeys {
  void (*pack)(const int32_t* keys, int64_t* words, int64_t rows, int64_t n);
  void (*keys)(const int64_t* words, int32_t* keys, int64_t n);
};

// Sorts each row of n elements; `room` has space for n + kSortRoom.
template <class Key> using SortRows = void (*)(Key* x, int64_t rows, int64_t n, Key* room);

struct SortKernels {
  SortRows<int32_t> rows32;
  SortRows<int64_t> rows64;
  KeyKernels<float> float32;
  KeyKernels<double> float64;
  KeyKernels<int32_t> int32;
  KeyKernels<int64_t> int64;
  KeyKernels<uint32_t> uint32;
  KeyKernels<uint64_t> uint64;
  PackedKeys packed;

  template <class T> const KeyKernels<T>& keys_of() const {
    if constexpr (std::is_same_v<T, float>)
      return float32;
    else if constexpr (std::is_same_v<T, double>)
      return float64;
    else if constexpr (std::is_same_v<T, int32_t>)
      return int32;
    else if constexpr (std::is_same_v<T, int64_t>)
      return int64;
    else if constexpr (std::is_same_v<T, uint32_t>)
      return uint32;
    else
      return uint64;
  }
  void sort(int32_t* x, int64_t rows, int64_t n, int32_t* room) const { rows32(x, rows, n, room); }
  void sort(int64_t* x, int64_t rows, int64_t n, int64_t* room) const { rows64(x, rows, n, room); }
};

const SortKernels& sort_kernels();  // for this machine

}  // namespace tapeflow
