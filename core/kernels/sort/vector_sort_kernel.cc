// Quicksort by vectors: a part is split around the median of a sample, and parts that fit into 16 vectors are sorted by
// a network. Compiled once per instruction set, with TAPEFLOW_ISA as the namespace.
//
// The network first sorts the columns of the vectors, one below the other; then columns are merged by twos, by fours
// and so on, so that the lines of the order run down the columns; at last the vectors are transposed.
#include "kernels/sort/vector_sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/simd/vector_memory.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

template <> struct VectorTraits<Vector<int32_t>> {
  using Element = int32_t;
};
template <> struct VectorTraits<Vector<int64_t>> {
  using Element = int64_t;
};

template <class V> TAPEFLOW_INLINE V lesser(V a, V b) { return a < b ? a : b; }
template <class V> TAPEFLOW_INLINE V greater(V a, V b) { return a < b ? b : a; }
template <class V> TAPEFLOW_INLINE void put_in_order(V& a, V& b) {
  const V low = lesser(a, b);
  b = greater(a, b);
  a = low;
}

// ---- The network ------------------------------------------------------------------------------------------------

// The comparisons of Batcher's odd-even merge sort of `rows` elements.
struct Comparators {
  int count = 0, first[64] = {}, second[64] = {};
};
template <int rows> constexpr Comparators comparators = [] {
  Comparators found;
  for (int p = 1; p < rows; p *= 2)
    for (int k = p; k >= 1; k /= 2)
      for (int j = k % p; j + k < rows; j += 2 * k)
        for (int i = 0; i < k && i + j + k < rows; ++i)
          if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) {
            found.first[found.count] = i + j;
            found.second[found.count++] = i + j + k;
          }
  return found;
}();

template <int rows, class V, int... I> TAPEFLOW_INLINE void sort_columns(V* r, std::integer_sequence<int, I...>) {
  (put_in_order(r[comparators<rows>.first[I]], r[comparators<rows>.second[I]]), ...);
}

// Lane i of the lower vector where `bit` of i is not set, of the upper one where it is.
template <int bit, class V> TAPEFLOW_INLINE V by_lane_bit(V without, V with) {
  return shuffle<[](int lane) { return lane & bit ? lanes<V> + lane : lane; }>(without, with);
}
// Each lane and its partner at `distance` put in order.
template <int distance, class V> TAPEFLOW_INLINE V order_lanes(V x) {
  const V other = shuffle<[](int lane) { return lane ^ distance; }>(x, x);
  return by_lane_bit<distance>(lesser(x, other), greater(x, other));
}
template <int distance, int rows, class V> TAPEFLOW_INLINE void order_lanes(V* r) {
  if constexpr (distance > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) r[i] = order_lanes<distance>(r[i]);
    order_lanes<distance / 2, rows>(r);
  }
}
template <int distance, int rows, class V> TAPEFLOW_INLINE void order_rows(V* r) {
  if constexpr (distance > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i)
      if (!(i & distance)) put_in_order(r[i], r[i + distance]);
    order_rows<distance / 2, rows>(r);
  }
}

// Merges sorted runs of `columns` columns by twos. The first comparison is with the mirror image.
template <int columns, int rows, class V> TAPEFLOW_INLINE void merge_columns(V* r) {
  if constexpr (columns < lanes<V>) {
    constexpr auto mirror = [](int lane) { return lane ^ (2 * columns - 1); };
    if constexpr (rows == 1) {
      const V other = shuffle<mirror>(r[0], r[0]);
      r[0] = by_lane_bit<columns>(lesser(r[0], other), greater(r[0], other));
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < rows / 2; ++i) {
        V &a = r[i], &b = r[rows - 1 - i];
        const V other = shuffle<mirror>(b, b), low = lesser(a, other), high = greater(a, other);
        a = by_lane_bit<columns>(low, high);
        const V rest = by_lane_bit<columns>(high, low);
        b = shuffle<mirror>(rest, rest);
      }
    }
    order_lanes<columns / 2, rows>(r);
    order_rows<rows / 2, rows>(r);
    merge_columns<2 * columns, rows>(r);
  }
}

// The lanes of both halves of the vectors in turns: after log2(rows) times the columns lie one behind the other.
template <int left, int rows, class V> TAPEFLOW_INLINE void transpose(V* r) {
  if constexpr (left > 1) {
    constexpr int width = lanes<V>;
    constexpr auto lower = [](int lane) { return lane / 2 + lane % 2 * width; };
    constexpr auto upper = [](int lane) { return width / 2 + lane / 2 + lane % 2 * width; };
    V turned[rows];
#pragma GCC unroll 8
    for (int i = 0; i < rows / 2; ++i) {
      turned[2 * i] = shuffle<lower>(r[i], r[i + rows / 2]);
      turned[2 * i + 1] = shuffle<upper>(r[i], r[i + rows / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) r[i] = turned[i];
    transpose<left / 2, rows>(r);
  }
}

template <class Key> constexpr Key most = std::numeric_limits<Key>::max();

// The first `count` lanes, or all; the others are greatest.
template <class Key> TAPEFLOW_INLINE Vector<Key> load_keys(const Key* x, int64_t count) {
  Vector<Key> found = most<Key> + Vector<Key>{};
  if (count >= lanes<Vector<Key>>) {
    std::memcpy(&found, x, sizeof found);
    return found;
  }
  if (count <= 0) return found;
#if defined(__AVX512F__)
  if constexpr (sizeof(Key) == 4)
    return (Vector<Key>)_mm512_mask_loadu_epi32((__m512i)found, first_lanes<float>(count), x);
  else
    return (Vector<Key>)_mm512_mask_loadu_epi64((__m512i)found, first_lanes<double>(count), x);
#elif defined(__AVX2__)
  const __m256i mask = first_lanes<Key>(count);
  __m256i some;
  if constexpr (sizeof(Key) == 4)
    some = _mm256_maskload_epi32(x, mask);
  else
    some = _mm256_maskload_epi64((const long long*)x, mask);
  return (Vector<Key>)_mm256_blendv_epi8((__m256i)found, some, mask);
#else
  for (int64_t i = 0; i < count; ++i) found[i] = x[i];
  return found;
#endif
}
template <class Key> TAPEFLOW_INLINE void store_keys(Key* x, Vector<Key> keys, int64_t count) {
  if (count >= lanes<Vector<Key>>) {
    std::memcpy(x, &keys, sizeof keys);
    return;
  }
  if (count <= 0) return;
#if defined(__AVX512F__)
  if constexpr (sizeof(Key) == 4)
    _mm512_mask_storeu_epi32(x, first_lanes<float>(count), (__m512i)keys);
  else
    _mm512_mask_storeu_epi64(x, first_lanes<double>(count), (__m512i)keys);
#elif defined(__AVX2__)
  if constexpr (sizeof(Key) == 4)
    _mm256_maskstore_epi32(x, first_lanes<Key>(count), (__m256i)keys);
  else
    _mm256_maskstore_epi64((long long*)x, first_lanes<Key>(count), (__m256i)keys);
#else
  for (int64_t i = 0; i < count; ++i) x[i] = keys[i];
#endif
}

// At most `rows` vectors of elements.
template <int rows, class Key> [[gnu::noinline]] void sort_by_network(Key* x, int64_t n) {
  using V = Vector<Key>;
  constexpr int64_t width = lanes<V>;
  V r[rows];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) r[i] = load_keys(x + i * width, n - i * width);
  if constexpr (rows > 1) sort_columns<rows>(r, std::make_integer_sequence<int, comparators<rows>.count>());
  merge_columns<1, rows>(r);
  transpose<rows, rows>(r);
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) store_keys(x + i * width, r[i], n - i * width);
}
constexpr int kMostRows = 16;
template <class Key> constexpr int64_t most_in_network = kMostRows * lanes<Vector<Key>>;

template <class Key> void sort_few(Key* x, int64_t n) {
  constexpr int64_t width = lanes<Vector<Key>>;
  if (n <= width)
    sort_by_network<1>(x, n);
  else if (n <= 2 * width)
    sort_by_network<2>(x, n);
  else if (n <= 4 * width)
    sort_by_network<4>(x, n);
  else if (n <= 8 * width)
    sort_by_network<8>(x, n);
  else
    sort_by_network<16>(x, n);
}

// ---- Splitting --------------------------------------------------------------------------------------------------

#if defined(__AVX512F__)
// The chosen lanes first.
TAPEFLOW_INLINE Vector<int32_t> gather_lanes(Vector<int32_t> x, unsigned chosen) {
  return (Vector<int32_t>)_mm512_maskz_compress_epi32(__mmask16(chosen), (__m512i)x);
}
TAPEFLOW_INLINE Vector<int64_t> gather_lanes(Vector<int64_t> x, unsigned chosen) {
  return (Vector<int64_t>)_mm512_maskz_compress_epi64(__mmask8(chosen), (__m512i)x);
}
template <bool or_equal> TAPEFLOW_INLINE unsigned lanes_below(Vector<int32_t> x, Vector<int32_t> limit) {
  return _mm512_cmp_epi32_mask((__m512i)x, (__m512i)limit, or_equal ? _MM_CMPINT_LE : _MM_CMPINT_LT);
}
template <bool or_equal> TAPEFLOW_INLINE unsigned lanes_below(Vector<int64_t> x, Vector<int64_t> limit) {
  return _mm512_cmp_epi64_mask((__m512i)x, (__m512i)limit, or_equal ? _MM_CMPINT_LE : _MM_CMPINT_LT);
}
#elif defined(__AVX2__)
// For each mask of `width` lanes the places of those that are set, four bits each, in parts of 8 / width.
template <int width> constexpr auto chosen_lanes = [] {
  constexpr int parts = 8 / width;
  std::array<uint32_t, 1 << width> found{};
  for (unsigned mask = 0; mask < found.size(); ++mask)
    for (int lane = 0, place = 0; lane < width; ++lane)
      if (mask >> lane & 1)
        for (int part = 0; part < parts; ++part) found[mask] |= unsigned(lane * parts + part) << (4 * place++);
  return found;
}();
template <class V> TAPEFLOW_INLINE V gather_lanes(V x, unsigned chosen) {
  const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  const __m256i places = _mm256_srlv_epi32(_mm256_set1_epi32(int(chosen_lanes<lanes<V>>[chosen])), shifts);
  return (V)_mm256_permutevar8x32_epi32((__m256i)x, places);  // by the low three bits of each
}
template <bool or_equal, class V> TAPEFLOW_INLINE unsigned lanes_below(V x, V limit) {
  const auto below = or_equal ? ~(x > limit) : x < limit;
  if constexpr (lanes<V> == 8)
    return unsigned(_mm256_movemask_ps((__m256)below));
  else
    return unsigned(_mm256_movemask_pd((__m256d)below));
}
#endif

// Elements below the limit (or equal to it) go to the front, the others behind them; returns the number of the former.
template <bool or_equal, class Key> int64_t split(Key* x, int64_t n, Key limit, Key* room) {
  int64_t front = 0, rest = 0, i = 0;
#if defined(__AVX2__)
  using V = Vector<Key>;
  constexpr int64_t width = lanes<V>;
  const V limits = limit + V{};
  for (; i <= n - width; i += width) {
    V some;
    std::memcpy(&some, x + i, sizeof some);
    const unsigned below = lanes_below<or_equal>(some, limits);
    const V low = gather_lanes(some, below), high = gather_lanes(some, ~below & ((1u << width) - 1));
    std::memcpy(x + front, &low, sizeof low);
    std::memcpy(room + rest, &high, sizeof high);
    const int64_t count = std::popcount(below);
    front += count;
    rest += width - count;
  }
#endif
  for (; i < n; ++i) {
    const Key some = x[i];
    const bool below = or_equal ? some <= limit : some < limit;
    x[front] = some;
    room[rest] = some;
    front += below;
    rest += !below;
  }
  std::memcpy(x + front, room, size_t(rest) * sizeof(Key));
  return front;
}

// The median of a sample, and whether all of the sample is equal.
template <class Key> struct Middle {
  Key key;
  bool all_equal;
};
template <class Key> Middle<Key> middle(const Key* x, int64_t n) {
  constexpr int64_t few = 16, many = 64;
  Key sample[many];
  const int64_t count = n < 4096 ? few : many, step = n / count;
  for (int64_t i = 0; i < count; ++i) sample[i] = x[i * step + step / 2];
  sort_few(sample, count);
  return {sample[count / 2], sample[0] == sample[count - 1]};
}

template <class Key> bool all_equal(const Key* x, int64_t n, Key key) {
  constexpr int64_t block = 512;
  for (int64_t begin = 0; begin < n; begin += block) {
    Key differs = 0;
    for (int64_t i = begin; i < std::min(n, begin + block); ++i) differs |= x[i] ^ key;
    if (differs) return false;
  }
  return true;
}

template <class Key> void sort_part(Key* x, int64_t n, Key* room, int depth) {
  while (n > most_in_network<Key>) {
    if (depth-- == 0) return std::sort(x, x + n);
    const auto [limit, no_other] = middle(x, n);
    if (no_other && all_equal(x, n, limit)) return;
    const int64_t below = split<false>(x, n, limit, room);
    if (below == 0) {  // the limit is the least
      const int64_t equal = split<true>(x, n, limit, room);
      x += equal;
      n -= equal;
    } else if (below < n - below) {
      sort_part(x, below, room, depth);
      x += below;
      n -= below;
    } else {
      sort_part(x + below, n - below, room, depth);
      n = below;
    }
  }
  sort_few(x, n);
}
template <class Key> void sort_line(Key* x, int64_t n, Key* room) {
  sort_part(x, n, room, 2 * int(std::bit_width(uint64_t(n))));
}

// ---- Short rows -------------------------------------------------------------------------------------------------

// As many rows as a vector has lanes side by side: vector k holds element k of each.
template <int size, class Key> void sort_short_rows(Key* x, int64_t rows, int64_t n) {
  using V = Vector<Key>;
  constexpr int64_t width = lanes<V>;
  Key block[size][width];
  std::fill(&block[0][0], &block[0][0] + size * width, most<Key>);
  for (; rows > 0; rows -= width, x += n * width) {
    const int64_t count = std::min(rows, width);
    for (int64_t row = 0; row < count; ++row)
      for (int64_t k = 0; k < n; ++k) block[k][row] = x[row * n + k];
    V r[size];
#pragma GCC unroll 16
    for (int k = 0; k < size; ++k) std::memcpy(&r[k], block[k], sizeof(V));
    sort_columns<size>(r, std::make_integer_sequence<int, comparators<size>.count>());
#pragma GCC unroll 16
    for (int k = 0; k < size; ++k) std::memcpy(block[k], &r[k], sizeof(V));
    for (int64_t row = 0; row < count; ++row)
      for (int64_t k = 0; k < n; ++k) x[row * n + k] = block[k][row];
  }
}

template <class Key> void sort_rows(Key* x, int64_t rows, int64_t n, Key* room) {
  if (rows == 1 || n > 16) {
    for (int64_t row = 0; row < rows; ++row) sort_line(x + row * n, n, room);
  } else if (n == 2) {
    sort_short_rows<2>(x, rows, n);
  } else if (n <= 4) {
    sort_short_rows<4>(x, rows, n);
  } else if (n <= 8) {
    sort_short_rows<8>(x, rows, n);
  } else {
    sort_short_rows<16>(x, rows, n);
  }
}

// ---- Keys -------------------------------------------------------------------------------------------------------

template <class T> KeyFacts keys_of(const T* __restrict x, SortKey<T>* __restrict keys, int64_t n, bool descending) {
  using Key = SortKey<T>;
  const Key turned = descending ? Key(-1) : Key(0);
  constexpr Key least = std::numeric_limits<Key>::min();
  Key not_numbers = 0, negative_zeros = 0;
  for (int64_t i = 0; i < n; ++i) {
    Key bits;
    std::memcpy(&bits, x + i, sizeof bits);
    if constexpr (std::is_floating_point_v<T>) {
      constexpr Key infinite = std::bit_cast<Key>(std::numeric_limits<T>::infinity());
      const Key not_number = -Key((bits & most<Key>) > infinite), negative_zero = -Key(bits == least);
      const Key key = (bits ^ ((bits >> (sizeof(Key) * 8 - 1)) & most<Key>)) & ~negative_zero;
      keys[i] = ((key ^ turned) & ~not_number) | (most<Key> & not_number);
      not_numbers |= not_number;
      negative_zeros |= negative_zero;
    } else {
      keys[i] = (std::is_unsigned_v<T> ? bits ^ least : bits) ^ turned;
    }
  }
  return {not_numbers != 0, negative_zeros != 0};
}
template <class T> void elements_of(const SortKey<T>* keys, T* x, int64_t n, bool descending) {
  using Key = SortKey<T>;
  const Key turned = descending ? Key(-1) : Key(0);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    Key bits = keys[i] ^ turned;
    if constexpr (std::is_floating_point_v<T>) bits ^= (bits >> (sizeof(Key) * 8 - 1)) & most<Key>;
    if constexpr (std::is_unsigned_v<T>) bits ^= std::numeric_limits<Key>::min();
    std::memcpy(x + i, &bits, sizeof bits);
  }
}
template <class T> constexpr KeyKernels<T> key_kernels = {keys_of<T>, elements_of<T>};

void pack(const int32_t* __restrict keys, int64_t* __restrict words, int64_t rows, int64_t n) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < n; ++i) words[row * n + i] = int64_t(keys[row * n + i]) << 32 | i;
}
void packed_keys(const int64_t* __restrict words, int32_t* __restrict keys, int64_t n) {
  for (int64_t i = 0; i < n; ++i) keys[i] = int32_t(words[i] >> 32);
}

}  // namespace

extern const SortKernels sort_kernels;
constinit const SortKernels sort_kernels = {
    .rows32 = sort_rows<int32_t>,
    .rows64 = sort_rows<int64_t>,
    .float32 = key_kernels<float>,
    .float64 = key_kernels<double>,
    .int32 = key_kernels<int32_t>,
    .int64 = key_kernels<int64_t>,
    .uint32 = key_kernels<uint32_t>,
    .uint64 = key_kernels<uint64_t>,
    .packed = {pack, packed_keys},
};

}  // namespace tapeflow::TAPEFLOW_ISA
