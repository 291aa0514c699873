// Matrix products of bfloat16 by the processor's own dot products of pairs (AVX512_BF16): sums in float32, rounded
// once.
#pragma once
#include "base/dtype.h"
#include "kernels/linalg/gemm.h"

namespace tapeflow {

// Whether this machine has them; the products below need it.
bool multiplies_bfloat16();

// As the others of gemm.h, without accumulation and epilogue.
template <> bool gemm<bfloat16>(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const bfloat16* a,
                                int64_t lda, const bfloat16* b, int64_t ldb, bfloat16* c, int64_t ldc, bool accumulate,
                                const Epilogue* epilogue);
template <> bool gemm_batched<bfloat16>(int64_t batch, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                                        int64_t k, const bfloat16* a, int64_t lda, int64_t stride_a, const bfloat16* b,
                                        int64_t ldb, int64_t stride_b, bfloat16* c, int64_t ldc, int64_t stride_c,
                                        const Epilogue* epilogue);

}  // namespace tapeflow
