/* Device code that the losses share: exp2 and log, fast and exact enough; sums in fp64; the kernel that makes one number of partial
 * sums.
 *
 * A loss is one number summed over up to 2^31 terms, and a scalar is held to one ulp of its type: threads add up short runs in
 * fp32 and carry the total in fp64, which costs one conversion a run.
 */
#ifndef KI_LOSS_CUH
#define KI_LOSS_CUH

#include "wide.cuh"

namespace ki {

constexpr float log2_e = 1.4426950408889634f;

/* 2^x to 2 ulp; results below 2^-126 are 0. */
__device__ inline float exp2_of(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* log t to 1 ulp for positive normal t; finite, and so good for t log t, at 0 and for subnormal t. x = 2^e m with m in [2/3, 4/3);
 * log m = f + f^2 R(f), f = m - 1, R interpolated at Chebyshev points. */
__device__ inline float log_of(float t)
{
    int bits = __float_as_int(t), e = (bits - 0x3f2aaaab) & 0xff800000;
    float f = __int_as_float(bits - e) - 1.0f, r = 0.134257495f;
    r = fmaf(r, f, -0.150407642f);
    r = fmaf(r, f, 0.141183093f);
    r = fmaf(r, f, -0.164830178f);
    r = fmaf(r, f, 0.200037807f);
    r = fmaf(r, f, -0.250041455f);
    r = fmaf(r, f, 0.333333194f);
    r = fmaf(r, f, -0.499999851f);
    r = fmaf(r, f * f, f);
    float n = (float)e * 0x1p-23f;
    return fmaf(n, 0.693147182f, fmaf(n, -1.90465421e-9f, r)); /* log 2 in two parts: one alone is off by as much as sums show */
}

/* The sum of v over the block, in thread 0. Threads must be a multiple of 32. */
__device__ inline double block_total(double v)
{
    __shared__ double room[warp];
    int lane = threadIdx.x % warp, warps = blockDim.x / warp;
    for (int d = warp / 2; d > 0; d /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, d);
    if (lane == 0)
        room[threadIdx.x / warp] = v;
    __syncthreads();
    v = threadIdx.x < warps ? room[threadIdx.x] : 0.0;
    if (threadIdx.x < warp)
        for (int d = warp / 2; d > 0; d /= 2)
            v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

/* loss = factor * sum of partial[parts], fp64 in, T out.   grid (1)  block (1024)   bytes 8 parts. Deterministic. */
template <typename T> __global__ void __launch_bounds__(1024) loss_total(const double *partial, int parts, double factor, T *loss)
{
    double v = 0;
    wait_for_previous();
#pragma unroll 8
    for (int p = threadIdx.x; p < parts; p += 1024)
        v += partial[p];
    v = block_total(v);
    if (threadIdx.x == 0)
        *loss = narrow<T>((float)(v * factor));
}

}

#endif
