// Owns the matrix product of bfloat16 in AVX512_BF16, whose instruction multiplies pairs along k and adds both products
// to a float32. So both operands are read as words of two neighbours along k: op(A) by single words, op(B) by vectors
// of 16 columns. B is copied into panels of that order; A only where it is transposed or k is odd. Where the processor
// has tiles, they take the same panels, and blocks of rows of A.
#include "kernels/linalg/gemm_bfloat16.h"

#include <algorithm>
#include <cstring>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/linalg/gemm_tiles.h"

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

__mmask16 first_lanes(int64_t n) { return __mmask16(n < kLanes ? (1u << n) - 1 : 0xffffu); }

// low[j], high[j] as one word, where the mask is set; a row that is missing is null.
TAPEFLOW_BF16 inline __m512i interleaved(__mmask16 mask, const uint16_t* low, const uint16_t* high) {
  const __m512i word = _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, low));
  if (!high) return word;
  const __m512i upper = _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, high));
  return _mm512_or_si512(word, _mm512_maskz_slli_epi32(mask, upper, 16));
}

TAPEFLOW_BF16 void interleave(const uint16_t* low, const uint16_t* high, uint32_t* y, int64_t n) {
  for (int64_t j = 0; j < n; j += kLanes) {
    const __mmask16 mask = first_lanes(n - j);
    _mm512_mask_storeu_epi32(y + j, mask, interleaved(mask, low + j, high ? high + j : nullptr));
  }
}

uint32_t pair(const uint16_t* x, int64_t left) {
  uint32_t word = 0;
  std::memcpy(&word, x, size_t(std::min<int64_t>(left, 2)) * sizeof *x);
  return word;
}

// 16 vectors of words, transposed. Four times: vectors that are 8 apart are interleaved.
TAPEFLOW_BF16 inline void transpose(__m512i* a) {
  const __m512i lower = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i upper = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  __m512i b[kLanes];
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = _mm512_permutex2var_epi32(a[i], lower, a[i + 8]);
      b[2 * i + 1] = _mm512_permutex2var_epi32(a[i], upper, a[i + 8]);
    }
    for (int i = 0; i < kLanes; ++i) a[i] = b[i];
  }
}

// y[p * kPanel + j] = word p of row j of x, for up to 16 rows and as many words, which hold up to `left` elements.
TAPEFLOW_BF16 void transpose_words(const uint16_t* x, int64_t ldx, int64_t rows, int64_t left, uint32_t* y) {
  const auto mask = __mmask32(left >= 2 * kLanes ? ~0u : (1u << left) - 1);
  __m512i a[kLanes];
  for (int64_t i = 0; i < kLanes; ++i)
    a[i] = i < rows ? _mm512_maskz_loadu_epi16(mask, x + i * ldx) : _mm512_setzero_si512();
  transpose(a);
  for (int64_t p = 0; p < kLanes && 2 * p < left; ++p) _mm512_storeu_si512(y + p * kPanel, a[p]);
}

// The panel of columns [first, first + columns) of op(B): `rows` rows of kPanel words, zeros at the end of each and in
// those beyond k.
void pack_panel(const uint16_t* b, int64_t ldb, bool transposed, int64_t k, int64_t first, int64_t columns,
                int64_t rows, uint32_t* y) {
  const int64_t pairs = (k + 1) / 2;
  if (columns < kPanel) std::fill_n(y, pairs * kPanel, 0u);
  std::fill(y + pairs * kPanel, y + rows * kPanel, 0u);
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

// op(A) and the result of a product, and op(B) in panels of `rows` words.
struct Product {
  bool transpose_a;
  int64_t m, n, k;
  const uint16_t* a;
  int64_t lda;
  const uint32_t* panels;
  int64_t rows;
  uint16_t* c;
  int64_t ldc;

  const uint32_t* panel(int64_t i) const { return panels + i * rows * kPanel; }
  int64_t panel_count() const { return (n + kPanel - 1) / kPanel; }
};

// Calls work(first row, rows, panel) for all chunks of rows and panels. Rows of A stay in the second-level cache while
// the panels of B pass.
template <class Work> void for_each_chunk(const Product& p, int64_t rows, Work work) {
  const int64_t panels = p.panel_count(), chunks = (p.m + rows - 1) / rows;
  const int64_t cost = std::min(rows, p.m) * p.rows * kPanel;
  parallel_for(chunks * panels, std::max<int64_t>(1, (1 << 18) / (cost + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item / panels * rows;
      work(first, std::min(rows, p.m - first), item % panels);
    }
  });
}

void multiply_by_vectors(const Product& p) {
  Words words{reinterpret_cast<const char*>(p.a), p.lda * 2, 4};
  const int64_t pairs = p.rows;
  const bool copied = p.transpose_a || p.k % 2 != 0;
  Scratch<uint32_t> packed(copied ? p.m * pairs : 0);
  if (p.transpose_a) {
    for (int64_t q = 0; q < pairs; ++q)
      interleave(p.a + 2 * q * p.lda, 2 * q + 1 < p.k ? p.a + (2 * q + 1) * p.lda : nullptr, packed.data() + q * p.m,
                 p.m);
    words = {reinterpret_cast<const char*>(packed.data()), 4, 4 * p.m};
  } else if (copied) {
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t q = 0; q < pairs; ++q) packed.data()[i * pairs + q] = pair(p.a + i * p.lda + 2 * q, p.k - 2 * q);
    words = {reinterpret_cast<const char*>(packed.data()), 4 * pairs, 4};
  }
  for_each_chunk(p, 96, [&](int64_t first, int64_t rows, int64_t panel) {
    const int64_t columns = std::min(kPanel, p.n - panel * kPanel);
    const auto run = columns > 32 ? multiply_rows<4> : columns > kLanes ? multiply_rows<2> : multiply_rows<1>;
    run(rows, pairs, {words.data + first * words.row, words.row, words.step}, p.panel(panel),
        p.c + first * p.ldc + panel * kPanel, p.ldc, columns);
  });
}

// ---- Tiles

int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

// Below these sizes most of a block would be zeros. A step of a block takes 64 cycles however much of it is filled, the
// time of about four rows by vectors, and the copy of A comes to it.
bool fills_tiles(int64_t m, int64_t n, int64_t k) { return m > 8 && n > 8 && k >= 16; }

// Rows [first, first + 16) of op(A) as words, `pairs` in a row, zeros beyond m and k.
TAPEFLOW_BF16 void pack_rows(const Product& p, int64_t first, int64_t pairs, uint32_t* y) {
  const int64_t rows = std::clamp<int64_t>(p.m - first, 0, kLanes);
  if (rows < kLanes || !p.transpose_a) std::fill_n(y, kLanes * pairs, 0u);
  if (!p.transpose_a) {
    for (int64_t i = 0; i < rows; ++i) std::memcpy(y + i * pairs, p.a + (first + i) * p.lda, size_t(p.k) * 2);
    return;
  }
  const __mmask16 mask = first_lanes(rows);
  for (int64_t q = 0; q < pairs; q += kLanes) {
    __m512i words[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t row = 2 * (q + i);
      const uint16_t* low = p.a + row * p.lda + first;
      words[i] = row < p.k ? interleaved(mask, low, row + 1 < p.k ? low + p.lda : nullptr) : _mm512_setzero_si512();
    }
    transpose(words);
    for (int64_t i = 0; i < rows; ++i) _mm512_storeu_si512(y + i * pairs + q, words[i]);
  }
}

TAPEFLOW_BF16 void store_block(const float* sums, int64_t rows, int64_t columns, uint16_t* y, int64_t ldy) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; j += kLanes)
      store_rounded(y + i * ldy + j, _mm512_loadu_ps(sums + i * kTileBlock + j), columns - j);
}

void multiply_by_tiles(const Product& p, const TileKernel& tiles) {
  const int64_t pairs = p.rows, blocks = round_up(p.m, kTileBlock) / kLanes;
  const char* a = reinterpret_cast<const char*>(p.a);
  int64_t a_row = p.lda * 2;
  const bool copied = p.transpose_a || p.m % kTileBlock != 0 || p.k % (2 * kTileWords) != 0;
  Scratch<uint32_t> packed(copied ? blocks * kLanes * pairs : 0);
  if (copied) {
    a = reinterpret_cast<const char*>(packed.data()), a_row = 4 * pairs;
    parallel_for(blocks, std::max<int64_t>(1, (1 << 14) / (kLanes * pairs)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) pack_rows(p, i * kLanes, pairs, packed.data() + i * kLanes * pairs);
    });
  }
  for_each_chunk(p, 128, [&](int64_t first, int64_t rows, int64_t panel) {
    alignas(64) float sums[kTileBlock * kTileBlock];
    tiles.configure();
    for (int64_t j = 0; j < kPanel && panel * kPanel + j < p.n; j += kTileBlock)
      for (int64_t i = 0; i < rows; i += kTileBlock) {
        tiles.multiply(a + (first + i) * a_row, a_row, p.panel(panel) + j, kPanel, pairs / kTileWords, sums);
        const int64_t column = panel * kPanel + j;
        store_block(sums, std::min(kTileBlock, rows - i), std::min(kTileBlock, p.n - column),
                    p.c + (first + i) * p.ldc + column, p.ldc);
      }
    tiles.release();
  });
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
  const TileKernel* tiles = fills_tiles(m, n, k) ? tile_kernel() : nullptr;
  const int64_t pairs = (k + 1) / 2, rows = tiles ? round_up(pairs, kTileWords) : pairs;
  const int64_t panels = (n + kPanel - 1) / kPanel;
  constexpr int64_t kGrain = 1 << 16;  // words
  Scratch<uint32_t> packed(panels * rows * kPanel);
  parallel_for(panels, std::max<int64_t>(1, kGrain / (rows * kPanel + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      pack_panel(reinterpret_cast<const uint16_t*>(b), ldb, transpose_b, k, p * kPanel,
                 std::min(kPanel, n - p * kPanel), rows, packed.data() + p * rows * kPanel);
  });
  const Product product{transpose_a,
                        m,
                        n,
                        k,
                        reinterpret_cast<const uint16_t*>(a),
                        lda,
                        packed.data(),
                        rows,
                        reinterpret_cast<uint16_t*>(c),
                        ldc};
  if (tiles)
    multiply_by_tiles(product, *tiles);
  else
    multiply_by_vectors(product);
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
