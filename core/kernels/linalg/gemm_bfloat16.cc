// Owns the matrix product of bfloat16 in AVX512_BF16, whose instruction multiplies pairs along k and adds both products
// to a float32. So both operands are read as words of two neighbours along k: op(A) by single words, op(B) by vectors
// of 16 columns. B is copied into panels of that order; A only where it is transposed or k is odd.
#include "kernels/linalg/gemm_bfloat16.h"

#include <algorithm>
#include <cstring>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "base/scratch.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TAPEFLOW_BF16 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]]

namespace tapeflow {
namespace {

static_assert(sizeof(bfloat16) == 2);
constexpr int64_t kLanes = 16, kPanel = 64;  // columns of a vector and of a panel

// Word (i, p) of op(A) is at data + i * row + p * step, in bytes.
struct Words {
  const char* data;
  int64_t row, step;
};

// y[j] = low[j], high[j] as one word; a row that is missing is null.
TAPEFLOW_BF16 void interleave(const uint16_t* low, const uint16_t* high, uint32_t* y, int64_t n) {
  for (int64_t j = 0; j < n; j += kLanes) {
    const auto mask = __mmask16(n - j < kLanes ? (1u << (n - j)) - 1 : 0xffffu);
    __m512i word = _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, low + j));
    if (high) {
      const __m512i upper = _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, high + j));
      word = _mm512_or_si512(word, _mm512_maskz_slli_epi32(mask, upper, 16));
    }
    _mm512_mask_storeu_epi32(y + j, mask, word);
  }
}

uint32_t pair(const uint16_t* x, int64_t left) {
  uint32_t word = 0;
  std::memcpy(&word, x, size_t(std::min<int64_t>(left, 2)) * sizeof *x);
  return word;
}

// y[p * kPanel + j] = word p of row j of x, for up to 16 rows and as many words, which hold up to `left` elements.
TAPEFLOW_BF16 void transpose_words(const uint16_t* x, int64_t ldx, int64_t rows, int64_t left, uint32_t* y) {
  const auto mask = __mmask32(left >= 2 * kLanes ? ~0u : (1u << left) - 1);
  const __m512i lower = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i upper = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  __m512i a[kLanes], b[kLanes];
  for (int64_t i = 0; i < kLanes; ++i)
    a[i] = i < rows ? _mm512_maskz_loadu_epi16(mask, x + i * ldx) : _mm512_setzero_si512();
  // Four times: vectors that are 8 apart are interleaved.
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = _mm512_permutex2var_epi32(a[i], lower, a[i + 8]);
      b[2 * i + 1] = _mm512_permutex2var_epi32(a[i], upper, a[i + 8]);
    }
    for (int i = 0; i < kLanes; ++i) a[i] = b[i];
  }
  for (int64_t p = 0; p < kLanes && 2 * p < left; ++p) _mm512_storeu_si512(y + p * kPanel, a[p]);
}

// The panel of columns [first, first + columns) of op(B): `pairs` rows of kPanel words, zeros at the end.
void pack_panel(const uint16_t* b, int64_t ldb, bool transposed, int64_t k, int64_t first, int64_t columns,
                uint32_t* y) {
  const int64_t pairs = (k + 1) / 2;
  if (columns < kPanel) std::fill_n(y, pairs * kPanel, 0u);
  if (!transposed) {
    for (int64_t p = 0; p < pairs; ++p) {
      const uint16_t* low = b + 2 * p * ldb + first;
      interleave(low, 2 * p + 1 < k ? low + ldb : nullptr, y + p * kPanel, columns);
    }
    return;
  }
  for (int64_t j = 0; j < columns; j += kLanes)
    for (int64_t p = 0; p < pairs; p += kLanes)
      transpose_words(b + (first + j) * ldb + 2 * p, ldb, std::min(kLanes, columns - j), k - 2 * p, y + p * kPanel + j);
}

TAPEFLOW_BF16 inline void store_rounded(uint16_t* y, __m512 x, int64_t columns) {
  const auto mask = __mmask16(columns >= kLanes ? 0xffffu : (1u << columns) - 1);
  _mm256_mask_storeu_epi16(y, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
}

template <int rows, int vectors>
TAPEFLOW_BF16 void multiply_tile(int64_t pairs, Words a, const uint32_t* b, uint16_t* c, int64_t ldc, int64_t columns) {
  __m512 sum[rows][vectors];
  for (auto& row : sum)
    for (auto& s : row) s = _mm512_setzero_ps();
  for (int64_t p = 0; p < pairs; ++p, a.data += a.step, b += kPanel) {
    __m512bh right[vectors];
    for (int v = 0; v < vectors; ++v) right[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + v * kLanes));
    for (int r = 0; r < rows; ++r) {
      int word;
      std::memcpy(&word, a.data + r * a.row, sizeof word);
      const auto left = reinterpret_cast<__m512bh>(_mm512_set1_epi32(word));
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], left, right[v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      if (columns > v * kLanes) store_rounded(c + r * ldc + v * kLanes, sum[r][v], columns - v * kLanes);
}

using Tile = void (*)(int64_t, Words, const uint32_t*, uint16_t*, int64_t, int64_t);
template <int vectors>
void multiply_rows(int64_t m, int64_t pairs, Words a, const uint32_t* b, uint16_t* c, int64_t ldc, int64_t columns) {
  static constexpr std::pair<int64_t, Tile> tiles[] = {{6, multiply_tile<6, vectors>},
                                                       {4, multiply_tile<4, vectors>},
                                                       {2, multiply_tile<2, vectors>},
                                                       {1, multiply_tile<1, vectors>}};
  for (const auto& [rows, tile] : tiles)
    for (; m >= rows; m -= rows, a.data += rows * a.row, c += rows * ldc) tile(pairs, a, b, c, ldc, columns);
}

}  // namespace

bool multiplies_bfloat16() {
  static const bool has = has_avx512_bf16();
  return has;
}

template <> bool gemm<bfloat16>(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const bfloat16* a,
                                int64_t lda, const bfloat16* b, int64_t ldb, bfloat16* c, int64_t ldc, bool,
                                const Epilogue*) {
  if (m == 0 || n == 0) return false;
  const auto *left = reinterpret_cast<const uint16_t*>(a), *right = reinterpret_cast<const uint16_t*>(b);
  auto* result = reinterpret_cast<uint16_t*>(c);
  const int64_t pairs = (k + 1) / 2, panels = (n + kPanel - 1) / kPanel;
  constexpr int64_t kGrain = 1 << 16;  // words
  Scratch<uint32_t> packed_b(panels * pairs * kPanel);
  parallel_for(panels, std::max<int64_t>(1, kGrain / (pairs * kPanel + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      pack_panel(right, ldb, transpose_b, k, p * kPanel, std::min(kPanel, n - p * kPanel),
                 packed_b.data() + p * pairs * kPanel);
  });
  Words words{reinterpret_cast<const char*>(left), lda * 2, 4};
  const bool copied = transpose_a || k % 2 != 0;
  Scratch<uint32_t> packed_a(copied ? m * pairs : 0);
  if (transpose_a) {
    for (int64_t p = 0; p < pairs; ++p)
      interleave(left + 2 * p * lda, 2 * p + 1 < k ? left + (2 * p + 1) * lda : nullptr, packed_a.data() + p * m, m);
    words = {reinterpret_cast<const char*>(packed_a.data()), 4, 4 * m};
  } else if (copied) {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < pairs; ++p) packed_a.data()[i * pairs + p] = pair(left + i * lda + 2 * p, k - 2 * p);
    words = {reinterpret_cast<const char*>(packed_a.data()), 4 * pairs, 4};
  }
  // Chunks of rows, so that those of A stay in the second-level cache while the panels of B pass.
  constexpr int64_t kRows = 96;
  const int64_t chunks = (m + kRows - 1) / kRows;
  const int64_t cost = std::min(kRows, m) * pairs * kPanel;
  parallel_for(chunks * panels, std::max<int64_t>(1, (1 << 18) / (cost + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item / panels * kRows, panel = item % panels,
                    columns = std::min(kPanel, n - panel * kPanel);
      const auto run = columns > 32 ? multiply_rows<4> : columns > kLanes ? multiply_rows<2> : multiply_rows<1>;
      run(std::min(kRows, m - first), pairs, {words.data + first * words.row, words.row, words.step},
          packed_b.data() + panel * pairs * kPanel, result + first * ldc + panel * kPanel, ldc, columns);
    }
  });
  return false;
}

#else

namespace tapeflow {

bool multiplies_bfloat16() { return false; }

template <> bool gemm<bfloat16>(bool, bool, int64_t, int64_t, int64_t, const bfloat16*, int64_t, const bfloat16*,
                                int64_t, bfloat16*, int64_t, bool, const Epilogue*) {
  return false;
}

#endif

template <> bool gemm_batched<bfloat16>(int64_t batch, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                                        int64_t k, const bfloat16* a, int64_t lda, int64_t stride_a, const bfloat16* b,
                                        int64_t ldb, int64_t stride_b, bfloat16* c, int64_t ldc, int64_t stride_c,
                                        const Epilogue*) {
  const int64_t work = m * n * k;
  parallel_for(work > (1 << 20) ? 1 : batch, std::max<int64_t>(1, (1 << 18) / (work + 1)),
               [&](int64_t begin, int64_t end) {
                 if (work > (1 << 20)) begin = 0, end = batch;
                 for (int64_t i = begin; i < end; ++i)
                   gemm<bfloat16>(transpose_a, transpose_b, m, n, k, a + i * stride_a, lda, b + i * stride_b, ldb,
                                  c + i * stride_c, ldc, false, nullptr);
               });
  return false;
}

}  // namespace tapeflow
