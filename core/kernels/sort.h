// Ordering one line of elements: order-preserving integer keys, stable sorting, the first k of an order.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/dtype.h"

namespace tapeflow {

struct SortItem {
  uint64_t key;
  int64_t index;
  friend bool operator<(const SortItem& a, const SortItem& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; }
};

template <class Bits> uint64_t float_key(Bits bits) {
  constexpr Bits sign = Bits(Bits(1) << (sizeof(Bits) * 8 - 1));
  if (bits == sign) bits = 0;  // -0 equals 0
  return uint64_t(Bits(bits & sign ? ~bits : bits | sign));
}

// A number that grows with x, in the low `sizeof(T)` bytes.
template <class T> uint64_t order_key(T x) {
  if constexpr (is_small_float<T>) return float_key<uint16_t>(x.bits);
  else if constexpr (std::is_same_v<T, float>) return float_key(std::bit_cast<uint32_t>(x));
  else if constexpr (std::is_same_v<T, double>) return float_key(std::bit_cast<uint64_t>(x));
  else if constexpr (std::is_same_v<T, bool>) return uint64_t(x);
  else if constexpr (std::is_signed_v<T>) {
    using U = std::make_unsigned_t<T>;
    return uint64_t(U(U(x) ^ U(U(1) << (sizeof(T) * 8 - 1))));
  } else return uint64_t(x);
}
template <class T> bool is_not_a_number(T x) {
  if constexpr (std::is_integral_v<T>) return false;
  else return !(x == x);
}
template <class T> constexpr uint64_t key_mask = sizeof(T) == 8 ? ~uint64_t(0) : (uint64_t(1) << (sizeof(T) * 8 % 64)) - 1;

// Keys in the wanted direction; NaN comes last in both.
template <class T> uint64_t directed_key(T x, bool descending) {
  if (is_not_a_number(x)) return key_mask<T>;
  uint64_t key = order_key(x);
  return descending ? ~key & key_mask<T> : key;
}

// Stable: a counting sort by bytes, lowest first, if the line is long; bytes that are equal everywhere are skipped.
inline void sort_items(std::vector<SortItem>& items, int key_bytes) {
  if (items.size() < 512) return std::sort(items.begin(), items.end());
  std::vector<SortItem> other(items.size());
  for (int shift = 0; shift < key_bytes * 8; shift += 8) {
    size_t count[257] = {};
    for (const SortItem& item : items) ++count[((item.key >> shift) & 255u) + 1];
    if (std::find(count + 1, count + 257, items.size()) != count + 257) continue;
    for (int i = 0; i < 256; ++i) count[i + 1] += count[i];
    for (const SortItem& item : items) other[count[(item.key >> shift) & 255u]++] = item;
    items.swap(other);
  }
}

// The first k places of the order of x[0..n), as positions in x.
template <class T> void first_of_order(const T* x, int64_t n, int64_t k, bool descending, std::vector<SortItem>& items) {
  items.resize(size_t(n));
  for (int64_t i = 0; i < n; ++i) items[size_t(i)] = {directed_key(x[i], descending), i};
  if (k == n) return sort_items(items, int(sizeof(T)));
  std::nth_element(items.begin(), items.begin() + k, items.end());
  std::sort(items.begin(), items.begin() + k);
}

}  // namespace tapeflow
