// Ordering one line of elements: order-preserving integer keys, stable sorting, the first k of an order.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "base/blocks.h"
#include "base/dtype.h"

namespace tapeflow {

// A key and the position it came from; ordered by both, so that equal keys keep their order.
class WideItem {
 public:
  WideItem() = default;
  WideItem(uint64_t key, int64_t index) : key_(key), index_(index) {}
  uint64_t key() const { return key_; }
  int64_t index() const { return index_; }
  friend bool operator<(const WideItem& a, const WideItem& b) {
    return a.key_ != b.key_ ? a.key_ < b.key_ : a.index_ < b.index_;
  }

 private:
  uint64_t key_;
  int64_t index_;
};

// The same in one word: for keys and positions of 32 bits.
class NarrowItem {
 public:
  NarrowItem() = default;
  NarrowItem(uint64_t key, int64_t index) : bits_(key << 32 | uint64_t(index)) {}
  uint64_t key() const { return bits_ >> 32; }
  int64_t index() const { return int64_t(bits_ & 0xffffffffu); }
  friend bool operator<(const NarrowItem& a, const NarrowItem& b) { return a.bits_ < b.bits_; }

 private:
  uint64_t bits_;
};

template <class Bits> uint64_t float_key(Bits bits) {
  constexpr Bits sign = Bits(Bits(1) << (sizeof(Bits) * 8 - 1));
  if (bits == sign) bits = 0;  // -0 equals 0
  return uint64_t(Bits(bits & sign ? ~bits : bits | sign));
}

// A number that grows with x, in the low `sizeof(T)` bytes.
template <class T> uint64_t order_key(T x) {
  if constexpr (is_small_float<T>)
    return float_key<uint16_t>(x.bits);
  else if constexpr (std::is_same_v<T, float>)
    return float_key(std::bit_cast<uint32_t>(x));
  else if constexpr (std::is_same_v<T, double>)
    return float_key(std::bit_cast<uint64_t>(x));
  else if constexpr (std::is_same_v<T, bool>)
    return uint64_t(x);
  else if constexpr (std::is_signed_v<T>) {
    using U = std::make_unsigned_t<T>;
    return uint64_t(U(U(x) ^ U(U(1) << (sizeof(T) * 8 - 1))));
  } else
    return uint64_t(x);
}
template <class T> bool is_not_a_number(T x) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return !(x == x);
}
template <class T> constexpr uint64_t key_mask =
    sizeof(T) == 8 ? ~uint64_t(0) : (uint64_t(1) << (sizeof(T) * 8 % 64)) - 1;

// Keys in the wanted direction; NaN comes last in both.
template <class T> uint64_t directed_key(T x, bool descending) {
  if (is_not_a_number(x)) return key_mask<T>;
  uint64_t key = order_key(x);
  return descending ? ~key & key_mask<T> : key;
}

// Room for the items of a line, kept from one line to the next.
template <class Item> struct SortSpace {
  BlockVector<Item> items, other;
};

// A counting sort by digits of the key, lowest first; digits that are equal everywhere are skipped. The items come in
// the order of their positions.
template <int digit_bits, class Item> void sort_by_digits(SortSpace<Item>& space, int key_bits) {
  constexpr size_t digits = size_t(1) << digit_bits;
  constexpr int most_passes = (64 + digit_bits - 1) / digit_bits;
  auto& [items, other] = space;
  auto digit = [](const Item& item, int pass) { return (item.key() >> (pass * digit_bits)) % digits; };
  const int passes = (key_bits + digit_bits - 1) / digit_bits;
  size_t counts[most_passes][digits];
  std::memset(counts, 0, size_t(passes) * sizeof counts[0]);
  for (const Item& item : items)
    for (int pass = 0; pass < passes; ++pass) ++counts[pass][digit(item, pass)];
  other.resize(items.size());
  for (int pass = 0; pass < passes; ++pass) {
    size_t* begin = counts[pass];
    if (begin[digit(items[0], pass)] == items.size()) continue;
    for (size_t d = 0, sum = 0; d < digits; ++d) sum += std::exchange(begin[d], sum);
    for (const Item& item : items) other[begin[digit(item, pass)]++] = item;
    items.swap(other);
  }
}
template <class Item> void sort_items(SortSpace<Item>& space, int key_bits) {
  const size_t n = space.items.size();
  if (n < 48)
    std::sort(space.items.begin(), space.items.end());
  else if (n < 8192)
    sort_by_digits<8>(space, key_bits);
  else
    sort_by_digits<11>(space, key_bits);
}

// Whether one of the next `kSkip` elements may come before `limit`; the loop has no jumps.
constexpr int64_t kSkip = 32;
template <class T> bool any_before(const T* x, T limit, bool descending) {
  unsigned found = 0;
  if (is_not_a_number(limit)) return true;
  if (descending)
    for (int64_t i = 0; i < kSkip; ++i) found |= unsigned(x[i] > limit);
  else
    for (int64_t i = 0; i < kSkip; ++i) found |= unsigned(x[i] < limit);
  return found != 0;
}

// The first k of the order of x[0..n), k < n, for few: they are kept in order, and stretches without a better one are
// passed over.
constexpr int64_t kFew = 32;
template <class Item, class T>
void pick_few(const T* x, int64_t n, int64_t k, bool descending, BlockVector<Item>& items) {
  items.clear();
  for (int64_t i = 0; i < k; ++i) items.push_back({directed_key(x[i], descending), i});
  std::sort(items.begin(), items.end());
  for (int64_t i = k; i < n; ++i) {
    if constexpr (std::is_arithmetic_v<T>) {
      const T limit = x[items.back().index()];
      while (i + kSkip <= n && !any_before(x + i, limit, descending)) i += kSkip;
      if (i == n) break;
    }
    Item item(directed_key(x[i], descending), i);
    if (!(item < items.back())) continue;
    auto place = items.end() - 1;
    for (; place != items.begin() && item < *(place - 1); --place) *place = *(place - 1);
    *place = item;
  }
}

// The same for many: candidates better than the worst of the best k so far are collected, and thinned out when there
// are many.
template <class Item, class T>
void pick_many(const T* x, int64_t n, int64_t k, bool descending, BlockVector<Item>& items) {
  const size_t room = size_t(2 * k);
  uint64_t worst = 0;
  bool thinned = false;
  items.clear();
  for (int64_t i = 0; i < n; ++i) {
    uint64_t key = directed_key(x[i], descending);
    if (thinned && key >= worst) continue;
    items.push_back({key, i});
    if (items.size() < room) continue;
    std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
    worst = items[size_t(k) - 1].key();
    thinned = true;
    items.resize(size_t(k));
  }
  std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
  std::sort(items.begin(), items.begin() + k);
}

// Calls use(place, position) for the first k places of the order of x[0..n), 1 <= k <= n.
template <class Item, class T, class Use>
void first_of_order(const T* x, int64_t n, int64_t k, bool descending, SortSpace<Item>& space, Use use) {
  if (k < n && k <= kFew) {
    pick_few(x, n, k, descending, space.items);
  } else if (k < n) {
    pick_many(x, n, k, descending, space.items);
  } else {
    space.items.resize(size_t(n));
    for (int64_t i = 0; i < n; ++i) space.items[size_t(i)] = {directed_key(x[i], descending), i};
    sort_items(space, int(sizeof(T)) * 8);
  }
  for (int64_t i = 0; i < k; ++i) use(i, space.items[size_t(i)].index());
}

}  // namespace tapeflow
