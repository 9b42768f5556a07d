/* What device code of every operation shares: 16-byte packs of elements, conversion to fp32, block reductions, type dispatch.
 *
 * Arithmetic is fp32: `load` widens exactly, `store` rounds to nearest even once. A pack needs a 16-byte aligned address;
 * launches check that row lengths allow it and fall back to a scalar kernel where they do not.
 */
#ifndef KI_COMMON_CUH
#define KI_COMMON_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "kernel.h"

namespace ki {

constexpr int warp = 32;

__device__ inline float widen(float v) { return v; }
__device__ inline float widen(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ inline float widen(__half v) { return __half2float(v); }

template <typename T> __device__ inline T narrow(float v);
template <> __device__ inline float narrow<float>(float v) { return v; }
template <> __device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float v) { return __float2bfloat16_rn(v); }
template <> __device__ inline __half narrow<__half>(float v) { return __float2half_rn(v); }

/* 16 bytes of elements: 4 fp32 or 8 of 16 bits. */
template <typename T> struct alignas(16) pack {
    static constexpr int size = 16 / (int)sizeof(T);
    T element[size];
    __device__ float operator[](int i) const { return widen(element[i]); }
    __device__ void set(int i, float v) { element[i] = narrow<T>(v); }
};

/* Read or written once: keep out of L1 and mark for early eviction from L2. */
template <typename T> __device__ inline pack<T> load_once(const T *at)
{
    union { uint4 raw; pack<T> value; } u = { __ldcs((const uint4 *)at) };
    return u.value;
}

/* Read by many blocks. */
template <typename T> __device__ inline pack<T> load_shared(const T *at)
{
    union { uint4 raw; pack<T> value; } u = { __ldg((const uint4 *)at) };
    return u.value;
}

template <typename T> __device__ inline void store_once(T *at, const pack<T> &p)
{
    union { pack<T> value; uint4 raw; } u = { p };
    __stcs((uint4 *)at, u.raw);
}

__device__ inline float warp_sum(float v)
{
    for (int d = warp / 2; d > 0; d /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

__device__ inline float warp_max(float v)
{
    for (int d = warp / 2; d > 0; d /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
}

/* Sums of N values over the block, in every thread. `room` is shared memory of N * 32 floats; calls that follow one another
 * without a barrier in between must alternate between two rooms. Threads must be a multiple of 32. */
template <int N> __device__ inline void block_sum(float (&v)[N], float *room)
{
    int lane = threadIdx.x % warp, at = threadIdx.x / warp, warps = blockDim.x / warp;
    for (int n = 0; n < N; n++) {
        v[n] = warp_sum(v[n]);
        if (lane == 0)
            room[n * warp + at] = v[n];
    }
    __syncthreads();
    for (int n = 0; n < N; n++)
        v[n] = warp_sum(lane < warps ? room[n * warp + lane] : 0.0f);
}

/* The maximum over the block, in every thread; as block_sum. */
__device__ inline float block_max(float v, float *room)
{
    int lane = threadIdx.x % warp, at = threadIdx.x / warp, warps = blockDim.x / warp;
    v = warp_max(v);
    if (lane == 0)
        room[at] = v;
    __syncthreads();
    return warp_max(lane < warps ? room[lane] : -INFINITY);
}

/* Column sums of partial results: out[c] = sum over p < parts of partial[p, c], fp32 in, T out.
 * grid (columns / 32)  block (32, 32): a thread takes every 32nd part of its column; the 32 threads of a column add up through
 * shared memory. bytes 4 parts columns. Deterministic. */
template <typename T> __global__ void column_sums(const float *partial, int parts, int64_t columns, T *out)
{
    __shared__ float room[32][33];
    int64_t column = (int64_t)blockIdx.x * 32 + threadIdx.x;
    float v = 0;
    if (column < columns)
#pragma unroll 4
        for (int p = threadIdx.y; p < parts; p += 32)
            v += partial[p * columns + column];
    room[threadIdx.y][threadIdx.x] = v;
    __syncthreads();
    v = warp_sum(room[threadIdx.x][threadIdx.y]);
    column = (int64_t)blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x == 0 && column < columns)
        out[column] = narrow<T>(v);
}

template <typename T> inline cudaError_t launch_column_sums(const float *partial, int parts, int64_t columns, T *out, cudaStream_t s)
{
    column_sums<T><<<(unsigned)((columns + 31) / 32), dim3(32, 32), 0, s>>>(partial, parts, columns, out);
    return cudaGetLastError();
}

/* An attribute of the current device. */
inline int device_attribute(cudaDeviceAttr attribute)
{
    int device = 0, value = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&value, attribute, device);
    return value;
}

/* Multiprocessors of the current device; asked once a thread. */
inline int multiprocessors()
{
    static thread_local int count = device_attribute(cudaDevAttrMultiProcessorCount);
    return count;
}

/* f.template operator()<T>() with the element type of d. */
template <typename F> inline int with_type(enum ki_dtype d, F &&f)
{
    switch (d) {
    case KI_F32:
        return (int)f.template operator()<float>();
    case KI_BF16:
        return (int)f.template operator()<__nv_bfloat16>();
    case KI_F16:
        return (int)f.template operator()<__half>();
    default:
        return (int)cudaErrorInvalidValue;
    }
}

/* Data of a tensor of a call. */
template <typename T> inline T *data(const struct ki_call *c, int tensor)
{
    return (T *)c->tensor[tensor].data;
}

}

#endif
