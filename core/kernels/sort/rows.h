// Rows of numbers in order, with or without the positions that the elements came from: keys by the vector kernels,
// then what keys do not tell, which is NaN and the sign of zeros. Equal elements keep their order.
#pragma once
#include <algorithm>
#include <bit>

#include "base/scratch.h"
#include "kernels/sort/order.h"
#include "kernels/sort/vector_sort.h"

namespace tapeflow {

// What has a vector kernel for its keys.
template <class T> constexpr bool has_vector_keys = std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

// How many rows go through the kernels together.
inline int64_t rows_at_a_time(int64_t rows, int64_t n) {
  return std::min(rows, std::max<int64_t>(1, 2048 / std::max<int64_t>(n, 1)));
}

// y holds x in order, NaN and the signs of zeros aside.
template <class T> void restore_special(const T* x, T* y, int64_t n) {
  int64_t rest = n, zeros = 0;
  for (int64_t i = 0; i < n; ++i) rest -= x[i] != x[i], zeros += x[i] == T(0);
  T* nan = y + rest;
  T* zero = zeros ? std::find(y, y + rest, T(0)) : nullptr;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) *nan++ = x[i];
    if (x[i] == T(0)) *zero++ = x[i];
  }
}

template <class T> void sort_rows(const T* x, T* y, int64_t rows, int64_t n, bool descending) {
  static_assert(has_vector_keys<T>);
  const SortKernels& kernels = sort_kernels();
  const KeyKernels<T>& convert = kernels.keys_of<T>();
  const int64_t together = rows_at_a_time(rows, n);
  Scratch<SortKey<T>> room(n + kSortRoom);
  for (int64_t row = 0; row < rows; row += together) {
    const int64_t count = std::min(together, rows - row);
    const T* from = x + row * n;
    T* to = y + row * n;
    auto* keys = static_cast<SortKey<T>*>(static_cast<void*>(to));
    const KeyFacts facts = convert.keys(from, keys, count * n, descending);
    kernels.sort(keys, count, n, room.data());
    convert.elements(keys, to, count * n, descending);
    if (facts.not_a_number || facts.negative_zero)
      for (int64_t i = 0; i < count; ++i) restore_special(from + i * n, to + i * n, n);
  }
}

// Positions in the order of keys of 64 bits, n < 2^31, in the low halves of `words`. The keys are taken relative to the
// least of them; if they need more than 31 bits, by their upper bits first, then by the whole keys among equal ones.
// Returns whether the keys have been put in order, too.
inline bool order_by_wide_keys(int64_t* keys, int64_t* words, int64_t n, int64_t* room) {
  int64_t least = keys[0], greatest = keys[0];
  for (int64_t i = 0; i < n; ++i) least = std::min(least, keys[i]), greatest = std::max(greatest, keys[i]);
  const uint64_t low = uint64_t(least);
  const int shift = std::max(0, int(std::bit_width(uint64_t(greatest) - low)) - 31);
  for (int64_t i = 0; i < n; ++i) words[i] = int64_t((uint64_t(keys[i]) - low) >> shift << 32 | uint64_t(i));
  sort_kernels().sort(words, 1, n, room);
  if (shift == 0) {
    for (int64_t i = 0; i < n; ++i) keys[i] = int64_t(low + uint64_t(words[i] >> 32));
    return true;
  }
  const auto position = [](int64_t word) { return int64_t(uint32_t(word)); };
  for (int64_t begin = 0, end; begin < n; begin = end) {
    for (end = begin + 1; end < n && words[end] >> 32 == words[begin] >> 32;) ++end;
    const int64_t count = end - begin;
    if (count == 1) continue;
    if (count < 32) {
      std::sort(words + begin, words + end, [&](int64_t a, int64_t b) {
        const int64_t p = keys[position(a)], q = keys[position(b)];
        return p != q ? p < q : a < b;
      });
      continue;
    }
    Scratch<int64_t> some(count), places(count), order(count), more(count + kSortRoom);
    for (int64_t i = 0; i < count; ++i) {
      places[size_t(i)] = words[begin + i];
      some[size_t(i)] = keys[position(words[begin + i])];
    }
    order_by_wide_keys(some.data(), order.data(), count, more.data());
    for (int64_t i = 0; i < count; ++i) words[begin + i] = places[size_t(position(order[size_t(i)]))];
  }
  return false;
}

// The first k elements of the order of each row and their positions, n < 2^31.
template <class T, class Index>
void order_rows(const T* x, T* values, Index* positions, int64_t rows, int64_t n, int64_t k, bool descending) {
  const SortKernels& kernels = sort_kernels();
  const int64_t together = sizeof(T) == 8 ? 1 : rows_at_a_time(rows, n);
  using Key = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  Scratch<Key> keys(together * n);
  Scratch<int64_t> words(together * n), room(n + kSortRoom);
  for (int64_t row = 0; row < rows; row += together) {
    const int64_t count = std::min(together, rows - row);
    const T* from = x + row * n;
    KeyFacts facts{true, true};
    if constexpr (has_vector_keys<T>)
      facts = kernels.keys_of<T>().keys(from, keys.data(), count * n, descending);
    else
      for (int64_t i = 0; i < count * n; ++i) keys[size_t(i)] = Key(directed_key(from[i], descending));
    const bool wants_keys = has_vector_keys<T> && k == n && !facts.not_a_number && !facts.negative_zero;
    bool has_keys = wants_keys;
    if constexpr (sizeof(T) == 8) {
      has_keys &= order_by_wide_keys(keys.data(), words.data(), n, room.data());
    } else {
      kernels.packed.pack(keys.data(), words.data(), count, n);
      kernels.sort(words.data(), count, n, room.data());
      if (wants_keys) kernels.packed.keys(words.data(), keys.data(), count * n);
    }
    if constexpr (has_vector_keys<T>)
      if (has_keys) {
        kernels.keys_of<T>().elements(keys.data(), values + row * n, count * n, descending);
        for (int64_t i = 0; i < count * n; ++i) positions[row * n + i] = Index(uint32_t(words[size_t(i)]));
        continue;
      }
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < k; ++i) {
        const int64_t position = int64_t(uint32_t(words[size_t(r * n + i)]));
        positions[(row + r) * k + i] = Index(position);
        values[(row + r) * k + i] = from[r * n + position];
      }
  }
}

}  // namespace tapeflow
