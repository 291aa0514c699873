// Owns the serial matrix product in vector instructions; compiled once per instruction set, named by TAPEFLOW_ISA.
//
// C is made in tiles of a few rows and up to `panel_vectors` vectors of columns, held in registers while k runs: each
// step loads one row of B and broadcasts one element per row of A. So rows of B must be contiguous, while A may have
// any strides. B is copied, panel by panel, only where it is transposed or where its rows would lie too far apart to
// stay in the first-level cache. A product with a transposed B and few rows is made of dot products instead.
#include "kernels/linalg/gemm.h"

#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tapeflow::TAPEFLOW_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
constexpr int panel_vectors = 4;
constexpr int max_rows[] = {0, 12, 12, 8, 6};  // by number of vectors: as many as registers hold
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
constexpr int panel_vectors = 2;
constexpr int max_rows[] = {0, 12, 6};
#else
constexpr int vector_bytes = 16;
constexpr int panel_vectors = 2;
constexpr int max_rows[] = {0, 12, 6};
#endif

constexpr int64_t panel_depth = 256;
constexpr int64_t steps_ahead = 16;  // fetched early where A has long steps, which the processor does not foresee

template <class T> struct VectorOf {
  typedef T type __attribute__((vector_size(vector_bytes)));
};
template <class T> using Vector = typename VectorOf<T>::type;
template <class T> constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));
template <class T> constexpr int64_t panel_width = panel_vectors * lanes<T>;

constexpr int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
constexpr int64_t ceil_divide(int64_t x, int64_t y) { return (x + y - 1) / y; }

template <class T> Vector<T> load(const T* x) {
  Vector<T> v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}

template <class T> void store(T* x, Vector<T> v) { __builtin_memcpy(x, &v, sizeof v); }

// The first `count` lanes of a vector. Other lanes read as zero and are not written.
template <class T> class Part {
 public:
#if defined(__AVX512F__)
  explicit Part(int64_t count) : mask_((1u << count) - 1) {}

  Vector<T> load(const T* x) const {
    if constexpr (sizeof(T) == 4)
      return (Vector<T>)_mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask_), x);
    else
      return (Vector<T>)_mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask_), x);
  }
  void store(T* x, Vector<T> v) const {
    if constexpr (sizeof(T) == 4)
      _mm512_mask_storeu_epi32(x, static_cast<__mmask16>(mask_), (__m512i)v);
    else
      _mm512_mask_storeu_epi64(x, static_cast<__mmask8>(mask_), (__m512i)v);
  }

 private:
  uint32_t mask_;
#elif defined(__AVX2__)
  explicit Part(int64_t count) {
    if constexpr (sizeof(T) == 4) {
      mask_ = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    } else {
      mask_ = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
    }
  }

  Vector<T> load(const T* x) const {
    if constexpr (sizeof(T) == 4)
      return (Vector<T>)_mm256_maskload_epi32(reinterpret_cast<const int*>(x), mask_);
    else
      return (Vector<T>)_mm256_maskload_epi64(reinterpret_cast<const long long*>(x), mask_);
  }
  void store(T* x, Vector<T> v) const {
    if constexpr (sizeof(T) == 4)
      _mm256_maskstore_epi32(reinterpret_cast<int*>(x), mask_, (__m256i)v);
    else
      _mm256_maskstore_epi64(reinterpret_cast<long long*>(x), mask_, (__m256i)v);
  }

 private:
  __m256i mask_;
#else
  explicit Part(int64_t count) : count_(count) {}

  Vector<T> load(const T* x) const {
    if (count_ == lanes<T>) return TAPEFLOW_ISA::load(x);
    Vector<T> v{};
    for (int64_t i = 0; i < count_; ++i) v[i] = x[i];
    return v;
  }
  void store(T* x, Vector<T> v) const {
    if (count_ == lanes<T>) return TAPEFLOW_ISA::store(x, v);
    for (int64_t i = 0; i < count_; ++i) x[i] = v[i];
  }

 private:
  int64_t count_;
#endif
};

// Element (i, p) of A is at data[i * row + p * step].
template <class T> struct Strided {
  const T* data;
  int64_t row;
  int64_t step;
};

// What all tiles of one panel of C share. It is passed by reference: written once, it never makes a tile wait for the
// stores of the tile before it.
template <class T> struct Panel {
  int64_t k;
  int64_t a_row;
  int64_t a_step;
  const T* b;
  int64_t ldb;
  int64_t ldc;
  Part<T> last;  // the lanes of the last vector
  bool accumulate;
  T* copy;
  int64_t ahead;              // how far from the current element of A to fetch
  const T* next_b = nullptr;  // rows of B that the panel after this one needs, `ldb` apart, or null
  int64_t next_rows = 0, next_ldb = 0;
};

// One tile of C. With `Copy` the rows of B are also written to panel.copy, side by side.
template <class T, int Rows, int Vectors, bool Copy> void multiply_tile(const Panel<T>& panel, const T* a, T* c) {
  Vector<T> sums[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) sums[r][v] = Vector<T>{};
  }
  // Row r is at base[r / 3] + offset + r % 3 rows: few enough addresses for the integer registers.
  constexpr int groups = (Rows + 2) / 3;
  const int64_t a_row = panel.a_row;
  const T* base[groups];
#pragma GCC unroll 16
  for (int g = 0; g < groups; ++g) base[g] = a + 3 * g * a_row;
  const Part<T> last = panel.last;
  const int64_t a_step = panel.a_step;
  const int64_t ldb = panel.ldb;
  const T* b = panel.b;
  T* copy = panel.copy;
  int64_t offset = 0;
  const int64_t ahead = panel.ahead;
  for (int64_t p = panel.k; p > 0; --p) {
    __builtin_prefetch(a + offset + ahead);
    Vector<T> b_row[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v + 1 < Vectors; ++v) b_row[v] = load(b + v * lanes<T>);
    b_row[Vectors - 1] = last.load(b + (Vectors - 1) * lanes<T>);
    if constexpr (Copy) {
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) store(copy + v * lanes<T>, b_row[v]);
      copy += panel_width<T>;
    }
    const int64_t offsets[3] = {offset, offset + a_row, offset + 2 * a_row};
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const T x = base[r / 3][offsets[r % 3]];
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) sums[r][v] += b_row[v] * x;
    }
    offset += a_step;
    b += ldb;
  }
  const bool accumulate = panel.accumulate;
  const int64_t ldc = panel.ldc;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v + 1 < Vectors; ++v) {
      T* x = c + v * lanes<T>;
      store<T>(x, accumulate ? sums[r][v] + load(x) : sums[r][v]);
    }
    T* x = c + (Vectors - 1) * lanes<T>;
    last.store(x, accumulate ? sums[r][Vectors - 1] + last.load(x) : sums[r][Vectors - 1]);
    c += ldc;
  }
}

template <class T> using Tile = void (*)(const Panel<T>& panel, const T* a, T* c);

// Entry r is the tile of r + 1 rows.
template <class T, int Vectors, int... R> constexpr auto tiles_of(std::integer_sequence<int, R...>) {
  struct Table {
    Tile<T> by_rows[sizeof...(R)];
  };
  return Table{{multiply_tile<T, R + 1, Vectors, false>...}};
}
template <class T, int Vectors> constexpr auto tiles =
    tiles_of<T, Vectors>(std::make_integer_sequence<int, max_rows[Vectors]>());

// All rows of one panel of C, in tiles of nearly equal height; the first tile makes the copy of B if one is wanted.
template <class T, int Vectors> void multiply_rows(int64_t m, Panel<T>& panel, const T* a, T* c) {
  if (panel.copy) {
    constexpr int rows = max_rows[Vectors];
    multiply_tile<T, rows, Vectors, true>(panel, a, c);
    panel.b = panel.copy;
    panel.ldb = panel_width<T>;
    a += rows * panel.a_row;
    c += rows * panel.ldc;
    m -= rows;
  }
  const int64_t count = ceil_divide(m, max_rows[Vectors]);
  const int64_t height = m / count;
  const int64_t taller = m % count;  // so many tiles have one row more
  for (int64_t t = 0; t < count; ++t) {
    if (panel.next_b) {
      for (int64_t r = panel.next_rows * t / count; r < panel.next_rows * (t + 1) / count; ++r)
        for (int v = 0; v < Vectors; ++v) __builtin_prefetch(panel.next_b + r * panel.next_ldb + v * lanes<T>, 0, 2);
    }
    const int64_t rows = height + (t < taller);
    tiles<T, Vectors>.by_rows[rows - 1](panel, a, c);
    a += rows * panel.a_row;
    c += rows * panel.ldc;
  }
}

template <class T> void multiply_panel(int64_t m, int64_t width, int64_t k, Strided<T> a, const T* b, int64_t ldb, T* c,
                                       int64_t ldc, bool accumulate, T* copy, const T* next_b = nullptr,
                                       int64_t next_rows = 0) {
  const int64_t vectors = ceil_divide(width, lanes<T>);
  const Part<T> last(width - (vectors - 1) * lanes<T>);
  Panel<T> panel{k,      a.row,     a.step, b, ldb, ldc, last, accumulate, copy, a.row == 1 ? steps_ahead * a.step : 0,
                 next_b, next_rows, ldb};
  switch (vectors) {
    case 1: return multiply_rows<T, 1>(m, panel, a.data, c);
    case 2: return multiply_rows<T, 2>(m, panel, a.data, c);
    default:
      if constexpr (panel_vectors == 4) {
        if (vectors == 3) return multiply_rows<T, 3>(m, panel, a.data, c);
        return multiply_rows<T, 4>(m, panel, a.data, c);
      }
  }
}

// Lanes of x and y in turns: the lower or the upper half of them.
template <bool Upper, class T, int... I>
Vector<T> interleave(Vector<T> x, Vector<T> y, std::integer_sequence<int, I...>) {
  constexpr int width = lanes<T>;
  return __builtin_shufflevector(x, y, (I / 2 + I % 2 * width + Upper * width / 2)...);
}
template <bool Upper, class T> Vector<T> interleave(Vector<T> x, Vector<T> y) {
  return interleave<Upper, T>(x, y, std::make_integer_sequence<int, lanes<T>>());
}

// Interleaving the halves log2(lanes) times transposes a square of vectors.
template <class T> void transpose_square(Vector<T> (&x)[lanes<T>]) {
  constexpr int half = lanes<T> / 2;
  for (int step = 1; step < lanes<T>; step *= 2) {
    Vector<T> y[lanes<T>];
    for (int i = 0; i < half; ++i) {
      y[2 * i] = interleave<false, T>(x[i], x[i + half]);
      y[2 * i + 1] = interleave<true, T>(x[i], x[i + half]);
    }
    for (int i = 0; i < lanes<T>; ++i) x[i] = y[i];
  }
}

template <class T> void pack_columns(int64_t depth, int64_t width, const T* b, int64_t ldb, T* panel) {
  for (int64_t j = 0; j < width; j += lanes<T>) {
    const int64_t columns = least(lanes<T>, width - j);
    for (int64_t p = 0; p < depth; p += lanes<T>) {
      const int64_t rows = least(lanes<T>, depth - p);
      const Part<T> part(rows);
      const T* source = b + j * ldb + p;
      T* target = panel + p * panel_width<T> + j;
      Vector<T> square[lanes<T>];
      if (rows == lanes<T> && columns == lanes<T>) {
        for (int i = 0; i < lanes<T>; ++i) square[i] = load(source + i * ldb);
        transpose_square<T>(square);
        for (int i = 0; i < lanes<T>; ++i) store(target + i * panel_width<T>, square[i]);
      } else {
        for (int i = 0; i < lanes<T>; ++i) square[i] = i < columns ? part.load(source + i * ldb) : Vector<T>{};
        transpose_square<T>(square);
        for (int i = 0; i < rows; ++i) store(target + i * panel_width<T>, square[i]);
      }
    }
  }
}

template <class T> void multiply_direct(int64_t m, int64_t n, int64_t k, Strided<T> a, const T* b, int64_t ldb, T* c,
                                        int64_t ldc, bool accumulate) {
  for (int64_t j = 0; j < n; j += panel_width<T>) {
    multiply_panel(m, least(panel_width<T>, n - j), k, a, b + j, ldb, c + j, ldc, accumulate, static_cast<T*>(nullptr));
  }
}

template <class T> [[gnu::noinline]] void multiply_packed(bool transpose_b, int64_t m, int64_t n, int64_t k,
                                                          Strided<T> a, const T* b, int64_t ldb, T* c, int64_t ldc,
                                                          bool accumulate) {
  alignas(64) T panel[panel_depth * panel_width<T>];
  const int64_t blocks = ceil_divide(k, panel_depth);
  for (int64_t j = 0; j < n; j += panel_width<T>) {
    const int64_t width = least(panel_width<T>, n - j);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t p = k * block / blocks;
      const int64_t depth = k * (block + 1) / blocks - p;
      const Strided<T> a_block{a.data + p * a.step, a.row, a.step};
      const bool sum = accumulate || block > 0;
      if (transpose_b) {
        pack_columns(depth, width, b + j * ldb + p, ldb, panel);
        multiply_panel<T>(m, width, depth, a_block, panel, panel_width<T>, c + j, ldc, sum, nullptr);
      } else {
        const bool last_block = block + 1 == blocks;
        const T* next = last_block ? b + j + panel_width<T> : b + (p + depth) * ldb + j;
        if (last_block && j + 2 * panel_width<T> > n) next = nullptr;
        multiply_panel<T>(m, width, depth, a_block, b + p * ldb + j, ldb, c + j, ldc, sum, panel, next, depth);
      }
    }
  }
}

// Steps of so many bytes lead to few sets of the first-level cache: a line of A is gone before the next tile, which
// reads on in it, comes.
template <class T> bool steps_collide(int64_t step) { return step * static_cast<int64_t>(sizeof(T)) % 4096 == 0; }

// For a transposed A whose steps collide: blocks of it are copied, with an odd number of cache lines between steps.
template <class T> [[gnu::noinline]] void multiply_copied(bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
                                                          int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
                                                          bool accumulate) {
  constexpr int64_t block = 384 / sizeof(T), step = 448 / sizeof(T);
  static_assert(block >= 4 * max_rows[1], "each of nearly equal blocks has rows enough to copy B");
  alignas(64) T copy[panel_depth * step];
  const int64_t depths = ceil_divide(k, panel_depth), blocks = ceil_divide(m, block);
  for (int64_t piece = 0; piece < blocks; ++piece) {
    const int64_t i = m * piece / blocks;
    const int64_t rows = m * (piece + 1) / blocks - i;
    for (int64_t d = 0; d < depths; ++d) {
      const int64_t p = k * d / depths;
      const int64_t depth = k * (d + 1) / depths - p;
      for (int64_t q = 0; q < depth; ++q)
        __builtin_memcpy(copy + q * step, a + (p + q) * lda + i, static_cast<size_t>(rows) * sizeof(T));
      multiply_packed(transpose_b, rows, n, depth, Strided<T>{copy, 1, step}, b + p * (transpose_b ? 1 : ldb), ldb,
                      c + i * ldc, ldc, accumulate || d > 0);
    }
  }
}

// C = Xᵀ, or C += Xᵀ, for m x n elements of C; rows of X are `step` apart and may be read up to whole vectors.
template <class T>
void put_transposed(int64_t m, int64_t n, const T* x, int64_t step, T* c, int64_t ldc, bool accumulate) {
  for (int64_t j = 0; j < n; j += lanes<T>) {
    const int64_t columns = least(lanes<T>, n - j);
    const Part<T> part(columns);
    for (int64_t i = 0; i < m; i += lanes<T>) {
      Vector<T> square[lanes<T>];
      for (int r = 0; r < lanes<T>; ++r) square[r] = r < columns ? load(x + (j + r) * step + i) : Vector<T>{};
      transpose_square<T>(square);
      for (int64_t r = 0; r < least(lanes<T>, m - i); ++r) {
        T* target = c + (i + r) * ldc + j;
        part.store(target, accumulate ? square[r] + part.load(target) : square[r]);
      }
    }
  }
}

// For a transposed A and few columns: the rows of A fill the vectors instead, and blocks of C come out transposed.
template <class T> [[gnu::noinline]] void multiply_narrow(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                                                          Strided<T> b, T* c, int64_t ldc, bool accumulate) {
  constexpr int64_t block = 2 * lanes<T>;
  alignas(64) T transposed[lanes<T> * block];
  for (int64_t i = 0; i < m; i += block) {
    const int64_t rows = least(block, m - i);
    multiply_panel<T>(n, rows, k, b, a + i, lda, transposed, block, false, nullptr);
    put_transposed(rows, n, transposed, block, c + i * ldc, ldc, accumulate);
  }
}

// For a transposed B that is larger than A: A is packed instead, and blocks of C come out transposed.
template <class T> [[gnu::noinline]] void multiply_turned(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                                                          const T* b, int64_t ldb, T* c, int64_t ldc, bool accumulate) {
  constexpr int64_t block = 4 * lanes<T>;
  alignas(64) T panel[panel_depth * panel_width<T>];
  alignas(64) T transposed[block * panel_width<T>];
  const int64_t depths = ceil_divide(k, panel_depth);
  for (int64_t i = 0; i < m; i += panel_width<T>) {
    const int64_t rows = least(panel_width<T>, m - i);
    for (int64_t d = 0; d < depths; ++d) {
      const int64_t p = k * d / depths;
      const int64_t depth = k * (d + 1) / depths - p;
      pack_columns(depth, rows, a + i * lda + p, lda, panel);
      for (int64_t j = 0; j < n; j += block) {
        const int64_t columns = least(block, n - j);
        multiply_panel<T>(columns, rows, depth, {b + j * ldb + p, ldb, 1}, panel, panel_width<T>, transposed,
                          panel_width<T>, false, nullptr);
        put_transposed(rows, columns, transposed, panel_width<T>, c + i * ldc + j, ldc, accumulate || d > 0);
      }
    }
  }
}

// Lane i is the sum of all lanes of x[i]: interleaving and adding the halves log2(lanes) times.
template <class T> Vector<T> sum_each(Vector<T> (&x)[lanes<T>]) {
  for (int half = lanes<T> / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      x[i] = interleave<false, T>(x[i], x[i + half]) + interleave<true, T>(x[i], x[i + half]);
    }
  }
  return x[0];
}

template <class T> T sum_lanes(Vector<T> x) {
  for (int width = lanes<T>; width > 1; width /= 2) x = interleave<false, T>(x, x) + interleave<true, T>(x, x);
  return x[0];
}

template <class T> T dot(int64_t k, const T* a, const T* b) {
  constexpr int chains = 4;  // sums in flight, for the latency of an addition
  Vector<T> sums[chains] = {};
  int64_t p = 0;
  for (; p + chains * lanes<T> <= k; p += chains * lanes<T>) {
    for (int i = 0; i < chains; ++i) sums[i] += load(a + p + i * lanes<T>) * load(b + p + i * lanes<T>);
  }
  for (; p < k; p += lanes<T>) {
    const Part<T> part(least(lanes<T>, k - p));
    sums[0] += part.load(a + p) * part.load(b + p);
  }
  return sum_lanes<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// The dot products of `a` with as many rows of B as a vector has lanes.
template <class T> Vector<T> dots(int64_t k, const T* a, const T* b, int64_t ldb) {
  Vector<T> sums[lanes<T>];
#pragma GCC unroll 16
  for (int i = 0; i < lanes<T>; ++i) sums[i] = Vector<T>{};
  for (int64_t p = 0; p < k; p += lanes<T>) {
    const Part<T> part(least(lanes<T>, k - p));
    const Vector<T> x = part.load(a + p);
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i) sums[i] += x * part.load(b + i * ldb + p);
  }
  return sum_each<T>(sums);
}

// For rows of A that are contiguous and so few that a transposed B would not be worth packing.
template <class T> void multiply_by_dots(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
                                         int64_t ldb, T* c, int64_t ldc, bool accumulate) {
  int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) {
    for (int64_t i = 0; i < m; ++i) {
      T* x = c + i * ldc + j;
      const Vector<T> sums = dots(k, a + i * lda, b + j * ldb, ldb);
      store<T>(x, accumulate ? sums + load(x) : sums);
    }
  }
  for (; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      T& x = c[i * ldc + j];
      const T sum = dot(k, a + i * lda, b + j * ldb);
      x = accumulate ? x + sum : sum;
    }
  }
}

// Compares the methods of multiplying by a transposed B, in multiplications: whole vectors of columns or of rows are
// made, and transposing an element costs as much as a few multiplications.
template <class T> bool turning_pays(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t transposing = 2 * (lanes<T> >= 16 ? 4 : lanes<T> >= 8 ? 3 : lanes<T> >= 4 ? 2 : 1);
  const int64_t depths = ceil_divide(k, panel_depth);
  const int64_t packing_b = m * ceil_divide(n, lanes<T>) * lanes<T> * k + transposing * n * k;
  const int64_t packing_a = n * ceil_divide(m, lanes<T>) * lanes<T> * k + transposing * (m * k + m * n * depths);
  return packing_a < packing_b;
}

template <class T> void multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
                                 int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc, bool accumulate) {
  constexpr int64_t most_rows_by_dots = 4;
  constexpr int64_t first_level_cache = 32768;
  if (n == 1 && m > 1 && ldc == 1) {  // a column is a row of the transposed product
    return multiply(!transpose_b, !transpose_a, n, m, k, b, ldb, a, lda, c, m, accumulate);
  }
  if (k == 1 && ldb == 1) transpose_b = false;
  if (n == 1 && ldb == 1) transpose_b = true;
  if (transpose_a && n <= least(lanes<T>, max_rows[2]) && m >= 2 * lanes<T>) {
    const Strided<T> b_transposed{b, transpose_b ? ldb : 1, transpose_b ? 1 : ldb};
    return multiply_narrow(m, n, k, a, lda, b_transposed, c, ldc, accumulate);
  }
  const Strided<T> a_strided{a, transpose_a ? 1 : lda, transpose_a ? lda : 1};
  if (!transpose_b) {
    const bool direct = m < 2 * max_rows[1] || k * ldb * static_cast<int64_t>(sizeof(T)) <= first_level_cache;
    if (direct) return multiply_direct(m, n, k, a_strided, b, ldb, c, ldc, accumulate);
  } else if (m <= most_rows_by_dots && a_strided.step == 1) {
    return multiply_by_dots(m, n, k, a, a_strided.row, b, ldb, c, ldc, accumulate);
  }
  if (transpose_b && !transpose_a && turning_pays<T>(m, n, k)) {
    return multiply_turned(m, n, k, a, lda, b, ldb, c, ldc, accumulate);
  }
  constexpr int64_t least_steps = 24;  // fewer lines stay in the cache even so
  if (transpose_a && k >= least_steps && m >= 2 * max_rows[1] && steps_collide<T>(lda)) {
    return multiply_copied(transpose_b, m, n, k, a, lda, b, ldb, c, ldc, accumulate);
  }
  multiply_packed(transpose_b, m, n, k, a_strided, b, ldb, c, ldc, accumulate);
}

}  // namespace

template <> SerialGemm<float> serial_gemm() { return multiply<float>; }
template <> SerialGemm<double> serial_gemm() { return multiply<double>; }
template <> SerialGemm<uint32_t> serial_gemm() { return multiply<uint32_t>; }
template <> SerialGemm<uint64_t> serial_gemm() { return multiply<uint64_t>; }

}  // namespace tapeflow::TAPEFLOW_ISA
