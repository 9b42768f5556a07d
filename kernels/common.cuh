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
#include <stdint.h>

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

/* 16 bytes of elements, 4 fp32 or 8 of 16 bits, as they lie in memory. Words, not elements, so that bf16 widens in one operation. */
template <typename T> struct alignas(16) pack {
    static constexpr int size = 16 / (int)sizeof(T);
    uint32_t word[4];
    __device__ float operator[](int i) const
    {
        if constexpr (sizeof(T) == 4)
            return __uint_as_float(word[i]);
        else if constexpr (__is_same(T, __nv_bfloat16))
            return __uint_as_float(i % 2 ? word[i / 2] & 0xffff0000u : word[i / 2] << 16);
        else
            return __half2float(__ushort_as_half((unsigned short)(i % 2 ? word[i / 2] >> 16 : word[i / 2] & 0xffffu)));
    }
    /* The same by another instruction, for a second pass: ptxas would keep what the first widened, in twice the registers. */
    __device__ float again(int i) const
    {
        if constexpr (__is_same(T, __nv_bfloat16))
            return __uint_as_float(__byte_perm(word[i / 2], 0, i % 2 ? 0x3244 : 0x1044));
        else
            return (*this)[i];
    }
};

/* A pack that is being made: rounded two elements at a time, when it is stored. */
template <typename T> struct unpacked {
    static constexpr int size = pack<T>::size;
    float element[size];
    __device__ float operator[](int i) const { return element[i]; }
    __device__ void set(int i, float v) { element[i] = v; }
    __device__ pack<T> packed() const
    {
        pack<T> p;
        for (int w = 0; w < 4; w++) {
            if constexpr (sizeof(T) == 4) {
                p.word[w] = __float_as_uint(element[w]);
            } else if constexpr (__is_same(T, __nv_bfloat16)) {
                union { __nv_bfloat162 two; uint32_t word; } u = { __floats2bfloat162_rn(element[2 * w], element[2 * w + 1]) };
                p.word[w] = u.word;
            } else {
                union { __half2 two; uint32_t word; } u = { __floats2half2_rn(element[2 * w], element[2 * w + 1]) };
                p.word[w] = u.word;
            }
        }
        return p;
    }
};

/* Read or written once: keep out of L1. Loads marked for early eviction (.cs, L1::no_allocate) stream 5 to 10% slower on GH100. */
template <typename T> __device__ inline pack<T> load_once(const T *at)
{
    uint4 raw = __ldcg((const uint4 *)at);
    return { { raw.x, raw.y, raw.z, raw.w } };
}

/* As load_once, but by way of L1. */
template <typename T> __device__ inline pack<T> load_plain(const T *at)
{
    uint4 raw = *(const uint4 *)at;
    return { { raw.x, raw.y, raw.z, raw.w } };
}

/* Read by many blocks. */
template <typename T> __device__ inline pack<T> load_shared(const T *at)
{
    uint4 raw = __ldg((const uint4 *)at);
    return { { raw.x, raw.y, raw.z, raw.w } };
}

template <typename T> __device__ inline void store_once(T *at, const pack<T> &p)
{
    __stcg((uint4 *)at, make_uint4(p.word[0], p.word[1], p.word[2], p.word[3]));
}

template <typename T> __device__ inline void store_once(T *at, const unpacked<T> &v)
{
    store_once(at, v.packed());
}

/* Written once, and the first to leave L2. */
template <typename T> __device__ inline void store_streamed(T *at, const unpacked<T> &v)
{
    pack<T> p = v.packed();
    __stcs((uint4 *)at, make_uint4(p.word[0], p.word[1], p.word[2], p.word[3]));
}

/* Keep a pack as it is in registers: without this the compiler widens it once for all uses, in twice the registers. */
template <typename T> __device__ inline void pin(pack<T> &p)
{
    asm volatile("" : "+r"(p.word[0]), "+r"(p.word[1]), "+r"(p.word[2]), "+r"(p.word[3]));
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

/* 1 / sqrt(sum / count + eps), off by little more than its last rounding: a factor that a whole row shares must not bring an error of its
 * own, which no average over the row's elements would hide. The mean is kept in two floats; one Newton step. Not for an infinite sum. */
__device__ inline float inverse_root_mean(float sum, float count, float eps)
{
    float part = 1.0f / count, mean = sum * part, m = mean + eps;
    float low = fmaf(fmaf(-mean, count, sum), part, mean - m + eps), r = rsqrtf(m), root = m * r;
    float root_low = fmaf(low, r, fmaf(m, r, -root)), rest = fmaf(-root_low, r, fmaf(-root, r, 1.0f));
    return fmaf(0.5f * r, rest, r);
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

/* Whether the current device has clusters and dependent launches (sm_90); asked once a thread. */
inline bool has_clusters()
{
    static thread_local int major = device_attribute(cudaDevAttrComputeCapabilityMajor);
    return major >= 9;
}

/* A kernel whose launch need not wait for the end of the one before it in the stream: launch_after() starts it when all blocks of
 * that one have called let_next_start() or ended; wait_for_previous() then waits for that one's results. */
__device__ inline void let_next_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ inline void wait_for_previous()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <typename... P, typename... A>
inline cudaError_t launch_after(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream, A... a)
{
    cudaLaunchAttribute early = { .id = cudaLaunchAttributeProgrammaticStreamSerialization };
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = { .gridDim = grid, .blockDim = block, .stream = stream, .attrs = &early,
        .numAttrs = has_clusters() ? 1u : 0u };
    return cudaLaunchKernelEx(&config, kernel, P(a)...);
}

/* Sums of columns of partial results [parts, OUTS, columns], fp32 in, T out: out[n][c] = sum over p < parts of partial[p, n, c].
 * grid (columns / 32, OUTS)  block (32 / W, 32): a thread takes every 32nd part of W columns; the 32 threads of a column add up
 * through shared memory. bytes 4 OUTS parts columns. Deterministic. */
template <typename T> struct column_sums_args {
    const float *partial;
    int parts;
    int64_t columns;
    T *out[2];
};

template <typename T, int W> __global__ void __launch_bounds__(1024 / W) column_sums(const __grid_constant__ column_sums_args<T> a)
{
    constexpr int lanes = 32 / W; /* that add up a column in the end */
    __shared__ float room[32][33];
    int64_t column = (int64_t)blockIdx.x * 32 + threadIdx.x * W, outs = gridDim.y;
    float v[W] = {};
    wait_for_previous();
    if (column < a.columns)
#pragma unroll 8
        for (int p = threadIdx.y; p < a.parts; p += 32) {
            const float *from = a.partial + (p * outs + blockIdx.y) * a.columns + column;
            if constexpr (W == 4) {
                float4 f = __ldcg((const float4 *)from);
                v[0] += f.x;
                v[1] += f.y;
                v[2] += f.z;
                v[3] += f.w;
            } else {
                v[0] += __ldcg(from);
            }
        }
    for (int i = 0; i < W; i++)
        room[threadIdx.y][threadIdx.x * W + i] = v[i];
    __syncthreads();
    int thread = threadIdx.y * lanes + threadIdx.x, own = thread / lanes, lane = thread % lanes;
    float sum = 0;
    for (int k = 0; k < W; k++)
        sum += room[lane + lanes * k][own];
    for (int d = lanes / 2; d > 0; d /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, d);
    column = (int64_t)blockIdx.x * 32 + own;
    if (lane == 0 && column < a.columns)
        a.out[blockIdx.y][column] = narrow<T>(sum);
}

/* One result, or two where `second` is there. Right behind the kernel that made `partial`. */
template <typename T>
inline cudaError_t launch_column_sums(const float *partial, int parts, int64_t columns, T *first, T *second, cudaStream_t s)
{
    column_sums_args<T> a = { partial, parts, columns, { first, second } };
    dim3 grid((unsigned)((columns + 31) / 32), second ? 2 : 1);
    return columns % 4 == 0 ? launch_after(column_sums<T, 4>, grid, dim3(8, 32), s, a)
                            : launch_after(column_sums<T, 1>, grid, dim3(32, 32), s, a);
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
