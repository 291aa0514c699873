// The inner loops of convolution for one instruction set: compiled once per set, with TAPEFLOW_ISA as the namespace.
// Only types of this file and ConvTile are used here, so that no shared inline function is compiled for the wrong
// machine.
#include "kernels/nn/convolve.h"

namespace tapeflow::TAPEFLOW_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64, fast_rows = 10;
#elif defined(__AVX__)
constexpr int vector_bytes = 32, fast_rows = 6;
#elif defined(__aarch64__)
constexpr int vector_bytes = 16, fast_rows = 10;
#else
constexpr int vector_bytes = 16, fast_rows = 6;
#endif

template <class T> struct VectorOf {
  typedef T type __attribute__((vector_size(vector_bytes)));
  typedef T loose __attribute__((vector_size(vector_bytes), aligned(sizeof(T)), may_alias));
};
template <class T> using Vector = typename VectorOf<T>::type;
template <class T> constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

template <class T> [[gnu::always_inline]] inline Vector<T> load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::loose*>(p);
}

template <class T> [[gnu::always_inline]] inline void store(T* p, Vector<T> v) {
  *reinterpret_cast<typename VectorOf<T>::loose*>(p) = v;
}

// Writes the first `columns` numbers of each row of sums.
template <class T, int rows, int vectors>
[[gnu::noinline]] void finish_part(const ConvTile<T>& tile, const T (*sum)[vectors * lanes<T>]) {
  for (int r = 0; r < rows; ++r) {
    T* c = tile.c[r] + tile.c_offset;
    for (int64_t n = 0; n < tile.columns; ++n) c[n] = tile.accumulate ? c[n] + sum[r][n] : sum[r][n];
  }
}

// The sums stay in registers: rows * vectors of them, and b's vectors beside. The rows have unrelated addresses but
// share the running index, so that one register moves them all.
template <class T, int rows, int vectors, bool lanewise> void run(const ConvTile<T>& tile) {
  if (tile.accumulate)
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) __builtin_prefetch(tile.c[r] + tile.c_offset + v * lanes<T>, 1);
  Vector<T> sum[rows][vectors] = {};
  const T* b = tile.b;
  const int64_t inner = tile.inner, a_step = tile.a_step, b_step = tile.b_step;
  for (int64_t i = 0; i < tile.outer; ++i) {
    const T* a[rows];
#pragma GCC unroll 10
    for (int r = 0; r < rows; ++r) a[r] = tile.a[r] + tile.offset[i];
    int64_t at = 0;
    for (int64_t j = inner; j > 0; --j) {
      Vector<T> right[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) right[v] = load<T>(b + v * lanes<T>);
#pragma GCC unroll 10
      for (int r = 0; r < rows; ++r) {
        const Vector<T> left = lanewise ? load<T>(a[r] + at) : a[r][at] - Vector<T>{};
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) sum[r][v] += left * right[v];
      }
      at += a_step;
      b += b_step;
    }
  }
  if (tile.columns < vectors * lanes<T>) {
    T part[rows][vectors * lanes<T>];
#pragma GCC unroll 10
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) store<T>(part[r] + v * lanes<T>, sum[r][v]);
    finish_part<T, rows, vectors>(tile, part);
    return;
  }
#pragma GCC unroll 10
  for (int r = 0; r < rows; ++r) {
    T* c = tile.c[r] + tile.c_offset;
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      store<T>(c + v * lanes<T>, tile.accumulate ? load<T>(c + v * lanes<T>) + sum[r][v] : sum[r][v]);
  }
}

// Loads into a register: left alone, the compiler loads a cell anew for each product.
template <class T> [[gnu::always_inline]] inline Vector<T> load_once(const T* p) {
  Vector<T> x = load<T>(p);
#if defined(__x86_64__)
  __asm__("" : "+v"(x));
#endif
  return x;
}

// Writes the first `columns` numbers of x.
template <class T> [[gnu::noinline]] void store_part(T* c, const Vector<T>& x, int64_t columns) {
  for (int64_t n = 0; n < columns; ++n) c[n] = x[n];
}

// Neighbouring points share cells: each cell that three taps meet is loaded once for the three.
template <class T, int points> void run_points(const ConvRow<T>& row, const T* a, T* c) {
  Vector<T> sum[points];
#pragma GCC unroll 8
  for (int k = 0; k < points; ++k) sum[k] = Vector<T>{};
  const T* b = row.b;
  const int64_t pixel = row.a_pixel, b_step = row.b_step;
  for (int64_t i = 0; i < row.outer; ++i) {
    const T* from = a + row.offset[i];
    int64_t taps = row.width;
    for (; taps >= 3; taps -= 3, b += 3 * b_step, from += 3 * pixel) {
      const Vector<T> first = load<T>(b), second = load<T>(b + b_step), third = load<T>(b + 2 * b_step);
      const T* cell = from;
#pragma GCC unroll 10
      for (int k = 0; k < points + 2; ++k, cell += pixel) {
        const Vector<T> x = load_once<T>(cell);
        if (k < points) sum[k] += x * first;
        if (k >= 1 && k <= points) sum[k - 1] += x * second;
        if (k >= 2) sum[k - 2] += x * third;
      }
    }
    for (; taps > 0; --taps, b += b_step, from += pixel) {
      const Vector<T> only = load<T>(b);
      const T* cell = from;
#pragma GCC unroll 8
      for (int k = 0; k < points; ++k, cell += pixel) sum[k] += load<T>(cell) * only;
    }
  }
#pragma GCC unroll 8
  for (int k = 0; k < points; ++k, c += row.c_pixel) {
    const Vector<T> y = sum[k];
    if (row.columns == lanes<T>)
      store<T>(c, y);
    else
      store_part<T>(c, y, row.columns);
  }
}

template <class T> void run_row(const ConvRow<T>& row) {
  const T* a = row.a;
  T* c = row.c;
  int64_t left = row.points;
  const auto step = [&](int64_t points) { a += points * row.a_pixel, c += points * row.c_pixel, left -= points; };
  for (; left >= 8; step(8)) run_points<T, 8>(row, a, c);
  if (left >= 4) run_points<T, 4>(row, a, c), step(4);
  if (left >= 2) run_points<T, 2>(row, a, c), step(2);
  if (left >= 1) run_points<T, 1>(row, a, c);
}

template <class T, int vectors, bool lanewise, int... r> void fill(typename ConvKernels<T>::Run* table) {
  int row = 0;
  ((table[row++] = run<T, r, vectors, lanewise>), ...);
}

template <class T> ConvKernels<T> all() {
  ConvKernels<T> kernels{};
  kernels.lanes = lanes<T>;
  kernels.rows = fast_rows;
  fill<T, 1, false, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10>(kernels.one_vector);
  fill<T, 2, false, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10>(kernels.two_vectors);
  fill<T, 1, true, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10>(kernels.lanewise);
  kernels.row = run_row<T>;
  return kernels;
}

}  // namespace

template <class T> const ConvKernels<T>& conv_kernels() {
  static const ConvKernels<T> kernels = all<T>();
  return kernels;
}
template const ConvKernels<float>& conv_kernels<float>();
template const ConvKernels<double>& conv_kernels<double>();

}  // namespace tapeflow::TAPEFLOW_ISA
