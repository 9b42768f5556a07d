#include "gemm.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

namespace {

struct library {
    decltype(&cublasCreate_v2) create;
    decltype(&cublasSetStream_v2) set_stream;
    decltype(&cublasSetWorkspace_v2) set_workspace;
    cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const void *alpha,
        const void *a, cudaDataType, int lda, const void *b, cudaDataType, int ldb, const void *beta, void *c, cudaDataType,
        int ldc, cublasComputeType_t, cublasGemmAlgo_t);
    cublasHandle_t handle;
    void *workspace;
};

constexpr size_t workspace_bytes = (size_t)64 << 20;
library blas; /* the process's one, see gemm.h */

void *open_library()
{
    const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so" };
    for (const char *name : names)
        if (void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL))
            return so;
    return NULL;
}

template <typename F> bool find(void *so, const char *name, F *f)
{
    *f = (F)dlsym(so, name);
    return *f != NULL;
}

cudaDataType_t type_of(enum ki_dtype d)
{
    return d == KI_BF16 ? CUDA_R_16BF : d == KI_F16 ? CUDA_R_16F : CUDA_R_32F;
}

}

int ki_gemm_open(const char **reason)
{
    if (blas.handle)
        return 0;
    library l = {};
    void *so = open_library();
    if (!so) {
        *reason = "cuBLAS is not installed here";
        return -1;
    }
    if (!find(so, "cublasCreate_v2", &l.create) || !find(so, "cublasSetStream_v2", &l.set_stream)
        || !find(so, "cublasSetWorkspace_v2", &l.set_workspace) || !find(so, "cublasGemmEx", &l.gemm)) {
        *reason = "cuBLAS lacks a function";
        return -1;
    }
    if (cudaMalloc(&l.workspace, workspace_bytes) != cudaSuccess || l.create(&l.handle) != CUBLAS_STATUS_SUCCESS) {
        *reason = "cuBLAS cannot start";
        return -1;
    }
    blas = l;
    return 0;
}

/* cuBLAS is column-major: it is asked for C^T = op(B)^T op(A)^T. */
int ki_gemm_launch(const struct ki_gemm *g, void *stream)
{
    cudaDataType_t type = type_of(g->dtype);
    cublasComputeType_t compute = g->tf32 && g->dtype == KI_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    int lda = (int)(g->transpose_a ? g->m : g->k), ldb = (int)(g->transpose_b ? g->k : g->n);
    if (!blas.handle || blas.set_stream(blas.handle, (cudaStream_t)stream) != CUBLAS_STATUS_SUCCESS
        || blas.set_workspace(blas.handle, blas.workspace, workspace_bytes) != CUBLAS_STATUS_SUCCESS)
        return (int)cudaErrorInitializationError;
    cublasStatus_t status = blas.gemm(blas.handle, g->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, g->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
        (int)g->n, (int)g->m, (int)g->k, &g->alpha, g->b, type, ldb, g->a, type, lda, &g->beta, g->c, type, (int)g->n, compute,
        CUBLAS_GEMM_DEFAULT);
    return (int)(status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown);
}
