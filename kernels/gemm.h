/* Matrix products by cuBLAS, which belongs to the GPU host and is looked for at run time (libcublas.so.13, then .12).
 *
 * One handle and one workspace a process, made by ki_gemm_open() and kept until the process ends, so that products can be
 * captured in a graph. Used from one thread.
 */
#ifndef KI_GEMM_H
#define KI_GEMM_H

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* C[m,n] = alpha op(A)[m,k] op(B)[k,n] + beta C, row-major and dense, sums in fp32; op is the transpose where asked: A is then
 * stored [k,m], B [n,k]. */
struct ki_gemm {
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    bool transpose_a, transpose_b;
    float alpha, beta;
    enum ki_dtype dtype; /* of A, B and C */
    bool tf32;           /* fp32 operands may be rounded to TF32 */
};

/* Load the library; may be called again. -1 with a reason. */
int ki_gemm_open(const char **reason);
/* Enqueue a product. 0 or a cudaError_t. */
int ki_gemm_launch(const struct ki_gemm *, void *stream);

#ifdef __cplusplus
}
#endif

#endif
