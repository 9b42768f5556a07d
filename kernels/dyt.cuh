/* DyT forward, for the operations with and without beta. */
#ifndef KI_DYT_CUH
#define KI_DYT_CUH

#include "common.cuh"

namespace ki {

/* Tensors of one call; beta is NULL without one. */
template <typename T> struct dyt_args {
    const T *x;
    const float *alpha, *gamma, *beta;
    T *y;
    int hidden;
};

__device__ inline float dyt_of(float x, float alpha, float gamma, float beta)
{
    return gamma * tanhf(alpha * x) + beta;
}

/* y = gamma tanh(alpha x) + beta
 * x, y [rows, hidden]   alpha [1], gamma, beta [hidden] fp32
 * grid (rows)  block (256): one row a block, 16-byte packs; a row that does not divide into packs goes element by element
 * bytes 2 rows hidden s + 8 hidden      4096 x 16384 bf16: 269 MB */
template <typename T> __global__ void __launch_bounds__(256) dyt_rows(const __grid_constant__ dyt_args<T> a)
{
    constexpr int size = pack<T>::size;
    const float alpha = *a.alpha;
    const T *x = a.x + (int64_t)blockIdx.x * a.hidden;
    T *y = a.y + (int64_t)blockIdx.x * a.hidden;
    int packed = a.hidden % size == 0 ? a.hidden : 0;
    for (int h = (int)threadIdx.x * size; h < packed; h += 256 * size) {
        pack<T> in = load_once(x + h);
        unpacked<T> out;
#pragma unroll
        for (int i = 0; i < size; i++)
            out.set(i, dyt_of(in[i], alpha, a.gamma[h + i], a.beta ? a.beta[h + i] : 0.0f));
        store_once(y + h, out);
    }
    for (int h = packed + (int)threadIdx.x; h < a.hidden; h += 256)
        y[h] = narrow<T>(dyt_of(widen(x[h]), alpha, a.gamma[h], a.beta ? a.beta[h] : 0.0f));
}

template <typename T> cudaError_t dyt_forward(const dyt_args<T> &a, int64_t rows, cudaStream_t stream)
{
    dyt_rows<T><<<(unsigned)rows, 256, 0, stream>>>(a);
    return cudaGetLastError();
}

}

#endif
