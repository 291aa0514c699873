// Owns the choice among the methods for a matrix product: own kernel or library, one thread or several.
#include "kernels/linalg/gemm.h"

#include <algorithm>
#include <climits>
#include <complex>
#include <type_traits>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "base/worker_state.h"
#include "kernels/linalg/blas.h"

namespace tapeflow {
namespace {

// Integers are multiplied as unsigned ones, whose overflow is defined.
template <class T> struct KernelTypeOf {
  using type = T;
};
template <> struct KernelTypeOf<int32_t> {
  using type = uint32_t;
};
template <> struct KernelTypeOf<int64_t> {
  using type = uint64_t;
};

template <class T> constexpr bool is_complex = false;
template <class T> constexpr bool is_complex<std::complex<T>> = true;

template <class T> SerialGemm<T> choose_kernel() { return TAPEFLOW_OF_THIS_MACHINE(serial_gemm<T>()); }

template <class T> struct Product {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc;
  bool accumulate;

  Product block(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    Product part = *this;
    part.m = rows;
    part.n = columns;
    part.a += row * (transpose_a ? 1 : lda);
    part.b += column * (transpose_b ? ldb : 1);
    part.c += row * ldc + column;
    return part;
  }
};

template <class T> void multiply_own(const Product<T>& p) {
  using K = typename KernelTypeOf<T>::type;
  static const SerialGemm<K> kernel = choose_kernel<K>();
  kernel(p.transpose_a, p.transpose_b, p.m, p.n, p.k, reinterpret_cast<const K*>(p.a), p.lda,
         reinterpret_cast<const K*>(p.b), p.ldb, reinterpret_cast<K*>(p.c), p.ldc, p.accumulate);
}

// The library is column-major: it makes the transposed product of the transposed operands.
template <class T> void multiply_with_library(BlasGemm<T> library, const Product<T>& p) {
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const int lda = static_cast<int>(p.lda), ldb = static_cast<int>(p.ldb), ldc = static_cast<int>(p.ldc);
  const T one = 1, beta = p.accumulate ? T(1) : T(0);
  library(p.transpose_b ? "T" : "N", p.transpose_a ? "T" : "N", &n, &m, &k, &one, p.b, &ldb, p.a, &lda, &beta, p.c,
          &ldc);
}

// For complex numbers where there is no library. Written out: operator* of std::complex looks for infinities each time.
template <class T> void multiply_complex(const Product<std::complex<T>>& p) {
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      T real = 0, imaginary = 0;
      for (int64_t q = 0; q < p.k; ++q) {
        const std::complex<T> x = p.transpose_a ? p.a[q * p.lda + i] : p.a[i * p.lda + q];
        const std::complex<T> y = p.transpose_b ? p.b[j * p.ldb + q] : p.b[q * p.ldb + j];
        real += x.real() * y.real() - x.imag() * y.imag();
        imaginary += x.real() * y.imag() + x.imag() * y.real();
      }
      std::complex<T>& c = p.c[i * p.ldc + j];
      c = p.accumulate ? c + std::complex<T>(real, imaginary) : std::complex<T>(real, imaginary);
    }
  }
}

// Multiplications, with the memory that is touched counted at its price.
template <class T> int64_t cost(const Product<T>& p) {
  return p.m * p.n * p.k + 4 * (p.m * p.k + p.k * p.n + p.m * p.n);
}

constexpr int64_t cost_of_a_task = int64_t{1} << 18;  // about two microseconds

// Waking a sleeping thread costs about ten microseconds.
int64_t cost_worth_threads() { return (workers_awake() ? 3 : 8) * cost_of_a_task; }

int64_t ceil_divide(int64_t x, int64_t y) { return (x + y - 1) / y; }
int64_t round_up(int64_t x, int64_t unit) { return ceil_divide(x, unit) * unit; }

// Whole rows of C are there; the first one begins at element `first`.
template <class T> void run_epilogue_on_rows(const Product<T>& p, int64_t first, const Epilogue& epilogue) {
  if (p.ldc == p.n)
    epilogue(first, p.m * p.n, 1, 0);
  else
    epilogue(first, p.n, p.m, p.ldc);
}

// Where the blocks of rows begin. The caller takes blocks from the front and other threads from the back, so those in
// between, which are made last, are smaller: then no thread waits long for another.
class RowBlocks {
 public:
  RowBlocks(int64_t m, int64_t blocks) : m_(m), blocks_(blocks), threads_(thread_count()) {
    levels_ = threads_ > 1 && blocks % threads_ == 0 ? blocks / threads_ : 0;
    if (levels_ > most_levels) levels_ = 0;
    if (levels_ > 0 && m * weights[levels_][levels_ - 1] < least_rows * before(blocks)) levels_ = 0;
  }
  int64_t start(int64_t block) const {
    return block == blocks_ ? m_ : m_ * before(block) / before(blocks_) / row_unit * row_unit;
  }

 private:
  static constexpr int64_t most_levels = 4, least_rows = 36, row_unit = 6;  // tiles of the kernel have as many rows
  static constexpr int64_t weights[most_levels + 1][most_levels] = {{}, {1}, {3, 2}, {3, 2, 1}, {3, 3, 2, 1}};

  int64_t before(int64_t block) const {
    if (levels_ == 0) return block;
    int64_t sum = 0;
    for (int64_t i = 0; i < block; ++i) sum += weights[levels_][i < levels_ ? i : (blocks_ - 1 - i) / (threads_ - 1)];
    return sum;
  }

  int64_t m_, blocks_, threads_, levels_;
};

// Into how many blocks of rows a product is cut for what follows: as the threads need them, or, if C is larger than the
// caches, so that each block is still in the second level. A block has enough rows that copying B for it does not
// count.
template <class T> int64_t row_blocks_for_epilogue(const Product<T>& p) {
  constexpr int64_t last_level = 8 << 20, second_level = 256 << 10;
  const int64_t row_bytes = p.n * static_cast<int64_t>(sizeof(T)), threads = thread_count();
  const int64_t needed = threads > 1 ? 2 * threads : 1;
  return p.m * row_bytes <= last_level ? needed
                                       : std::max(needed, p.m / std::max<int64_t>(96, second_level / row_bytes));
}

// Whether to make C by blocks of whole rows, each of which is ready for what follows.
template <class T> bool epilogue_by_rows(const Product<T>& p, const Epilogue* epilogue) {
  return epilogue && p.m >= 128 * thread_count() && p.k * p.n * static_cast<int64_t>(sizeof(T)) <= (256 << 10);
}

// Cuts C into about `tasks` blocks and makes them in parallel. Threads share the smaller operand and each reads its own
// part of the larger one: neighbouring blocks, which go to one thread, differ in columns if A is larger, else in rows.
// The cut does not change the order in which any element is summed. True if it called `epilogue`.
template <class T, class Multiply>
bool multiply_blocks(const Product<T>& p, int64_t tasks, const Epilogue* epilogue, Multiply multiply) {
  constexpr int64_t panel = 256 / sizeof(T);
  // Each block of rows copies B, which must be worth it.
  const int64_t least_rows = p.transpose_b ? 128 : 96;
  const int64_t threads = thread_count(), panels = ceil_divide(p.n, panel);
  const bool a_is_larger = p.m >= p.n;
  int64_t row_blocks = 1, column_blocks = 1;
  if (epilogue_by_rows(p, epilogue)) {
    row_blocks = row_blocks_for_epilogue(p);
  } else if (a_is_larger) {
    for (const int64_t blocks : {threads, 2 * threads, 4 * threads})
      if (blocks <= tasks && p.m >= least_rows * blocks) row_blocks = blocks;
    column_blocks = std::min(panels, ceil_divide(tasks, row_blocks));
  } else {
    column_blocks = std::min(tasks, panels);
    row_blocks = std::min(std::max<int64_t>(1, p.m / least_rows), tasks / column_blocks);
  }
  const int64_t columns = round_up(ceil_divide(p.n, column_blocks), panel);
  column_blocks = std::max<int64_t>(1, (p.n + columns / 2) / columns);  // a narrow rest belongs to the last block
  const RowBlocks rows(p.m, row_blocks);
  const bool with_epilogue = epilogue && column_blocks == 1;
  parallel_for(row_blocks * column_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row_block = a_is_larger ? task / column_blocks : task % row_blocks;
      const int64_t column_block = a_is_larger ? task % column_blocks : task / row_blocks;
      const int64_t row = rows.start(row_block), column = column_block * columns;
      const int64_t width = column_block + 1 == column_blocks ? p.n - column : columns;
      const Product<T> block = p.block(row, rows.start(row_block + 1) - row, column, width);
      multiply(block);
      if (with_epilogue) run_epilogue_on_rows(block, row * p.ldc, *epilogue);
    }
  });
  return with_epilogue;
}

template <class T> bool fits_library(const Product<T>& p) {
  return std::max({p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) <= INT_MAX;
}

// The own kernel reads A again for each panel of B, without packing it: from this size on a library with vectors as
// wide is ahead.
template <class T> bool large(const Product<T>& p) {
  constexpr int64_t second_level_cache = 1 << 20;
  return std::min({p.m, p.n, p.k}) >= 256 && p.m * p.k * static_cast<int64_t>(sizeof(T)) > second_level_cache;
}

template <class T> bool multiply_complex_product(const Product<T>& p, const Epilogue* epilogue) {
  const int threads = cost(p) < cost_worth_threads() ? 1 : thread_count();
  if (const auto library = blas_gemm<T>(); library && fits_library(p)) {
    return multiply_blocks(p, threads, epilogue, [&](const Product<T>& part) { multiply_with_library(library, part); });
  }
  return multiply_blocks(p, threads, epilogue, [](const Product<T>& part) { multiply_complex(part); });
}

template <class T> bool multiply_product(const Product<T>& p, const Epilogue* epilogue) {
  if constexpr (is_complex<T>) {
    return multiply_complex_product(p, epilogue);
  } else {
    const int64_t work = cost(p);
    const int threads = work < cost_worth_threads() ? 1 : thread_count();
    if constexpr (std::is_floating_point_v<T>) {
      if (large(p) && fits_library(p) && blas_has_wide_kernels()) {
        if (const auto library = blas_gemm<T>()) {
          return multiply_blocks(p, threads, epilogue,
                                 [&](const Product<T>& part) { multiply_with_library(library, part); });
        }
      }
    }
    if (threads > 1 || (thread_count() == 1 && epilogue_by_rows(p, epilogue) && row_blocks_for_epilogue(p) > 1)) {
      return multiply_blocks(p, std::min<int64_t>(4 * threads, work / cost_of_a_task), epilogue, multiply_own<T>);
    }
    multiply_own(p);
    if (epilogue) run_epilogue_on_rows(p, 0, *epilogue);
    return epilogue;
  }
}

template <class T> void fill_zero(int64_t m, int64_t n, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T(0));
}

}  // namespace

template <class T> bool gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
                             int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc, bool accumulate,
                             const Epilogue* epilogue) {
  if (m == 0 || n == 0) return false;
  if (k == 0) {
    if (!accumulate) fill_zero(m, n, c, ldc);
    return false;
  }
  return multiply_product(Product<T>{transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, ldc, accumulate}, epilogue);
}

template <class T> bool gemm_batched(int64_t batch, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                                     const T* a, int64_t lda, int64_t stride_a, const T* b, int64_t ldb,
                                     int64_t stride_b, T* c, int64_t ldc, int64_t stride_c, const Epilogue* epilogue) {
  if (batch == 0) return false;
  const bool one_product = stride_b == 0 && !transpose_a && stride_a == m * lda && stride_c == m * ldc;
  if (batch == 1 || one_product) {
    return gemm(transpose_a, transpose_b, batch * m, n, k, a, lda, b, ldb, c, ldc, false, epilogue);
  }
  const int64_t work = std::max<int64_t>(1, m * n * k + 4 * (m * k + k * n + m * n));
  const bool small = m * n * k > 0 && work < cost_of_a_task;  // there is nothing to choose for each product
  auto multiply_one = [&](int64_t i) {
    const T *a_i = a + i * stride_a, *b_i = b + i * stride_b;
    if constexpr (!is_complex<T>)
      if (small)
        return multiply_own(
            Product<T>{transpose_a, transpose_b, m, n, k, a_i, lda, b_i, ldb, c + i * stride_c, ldc, false});
    gemm(transpose_a, transpose_b, m, n, k, a_i, lda, b_i, ldb, c + i * stride_c, ldc, false);
  };
  if (batch < thread_count()) {  // the products themselves may use the threads
    for (int64_t i = 0; i < batch; ++i) multiply_one(i);
    return false;
  }
  const bool with_epilogue = epilogue && ldc == n && stride_c == m * n;
  const int64_t grain = batch * work < cost_worth_threads() ? batch : std::max<int64_t>(1, cost_of_a_task / work);
  parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      multiply_one(i);
      if (with_epilogue) (*epilogue)(i* stride_c, m* n, 1, 0);
    }
  });
  return with_epilogue;
}

// Explicit instantiation of this struct instantiates both functions for T.
template <class T> struct Instances {
  static constexpr auto single = &gemm<T>;
  static constexpr auto batched = &gemm_batched<T>;
};
template struct Instances<float>;
template struct Instances<double>;
template struct Instances<std::complex<float>>;
template struct Instances<std::complex<double>>;
template struct Instances<int32_t>;
template struct Instances<int64_t>;

}  // namespace tapeflow
