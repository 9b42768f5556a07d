/* Device code of rms_norm, megatron_rms_norm and fused_add_rms_norm: x is [rows, hidden], row-major. ADD forms s = x + residual first
 * and delivers it; without ADD, s below is x.
 */
#ifndef KI_RMS_NORM_CUH
#define KI_RMS_NORM_CUH

#include <cooperative_groups.h>

#include "common.cuh"

namespace ki {

/* Tensors of one call. Those that a pass does not use are NULL. */
template <typename T> struct rms_norm_args {
    const T *x, *residual, *weight, *s, *dy, *ds;
    T *y, *sum, *dx, *dweight;
    float *partial; /* [parts, hidden] */
    int64_t rows;
    int hidden;
    float eps;
};

template <typename T> __device__ inline pack<T> add(const pack<T> &a, const pack<T> &b)
{
    pack<T> s;
    for (int i = 0; i < pack<T>::size; i++)
        s.set(i, a[i] + b[i]);
    return s;
}

/* RMSNorm forward: y[r,h] = s[r,h] * w[h] / sqrt(mean_h(s[r,h]^2) + eps), s = x + residual with ADD
 * x, residual, y, sum [rows, hidden]   weight [hidden]   sums in fp32
 * grid (rows)  block (THREADS): one block a row, which it keeps in registers; VECS 16-byte packs a thread;
 * needs hidden % pack == 0 and hidden <= THREADS * VECS * pack
 * bytes 2 rows hidden s + hidden s; ADD 4 rows hidden s + hidden s */
template <typename T, int THREADS, int VECS, bool ADD>
__global__ void __launch_bounds__(THREADS) rms_norm_forward(const __grid_constant__ rms_norm_args<T> a)
{
    constexpr int size = pack<T>::size;
    __shared__ float room[warp];
    int64_t row = (int64_t)blockIdx.x * a.hidden;
    pack<T> s[VECS];
    float squares[1] = { 0 };
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        int h = (v * THREADS + threadIdx.x) * size;
        if (h < a.hidden)
            s[v] = load_once(a.x + row + h);
        if (ADD && h < a.hidden)
            s[v] = add(s[v], load_once(a.residual + row + h));
    }
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        int h = (v * THREADS + threadIdx.x) * size;
        if (h >= a.hidden)
            continue;
        if (ADD)
            store_once(a.sum + row + h, s[v]);
        for (int i = 0; i < size; i++)
            squares[0] += s[v][i] * s[v][i];
    }
    block_sum(squares, room);
    float r = 1.0f / sqrtf(squares[0] / (float)a.hidden + a.eps);
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        int h = (v * THREADS + threadIdx.x) * size;
        if (h >= a.hidden)
            continue;
        pack<T> w = load_shared(a.weight + h), y;
        for (int i = 0; i < size; i++)
            y.set(i, s[v][i] * r * w[i]);
        store_once(a.y + row + h, y);
    }
}

/* RMSNorm backward, and full when FULL: m = dy w, dx = ds + r m - s r^3 / hidden * sum_h(m s), dw = sum_r dy s r (ds with ADD only)
 * x or s, residual, dy, ds, y, sum, dx [rows, hidden]   weight [hidden]   partial [clusters, hidden] fp32: sums of dw
 * grid (clusters * CTAs a cluster)  block (THREADS): a cluster takes every clusters-th row, each of its blocks a slice of
 * THREADS * VECS packs of it; the two sums of a row cross the cluster through distributed shared memory. Two stages of rows
 * are in flight by cp.async; a thread copies, and reads, only its own packs, so that stages need no barrier. dw stays in
 * registers until the end; column_sums adds up the clusters.
 * needs hidden % pack == 0; clusters of more than one block need sm_90
 * bytes 3 rows hidden s + 2 hidden s (ADD 4; FULL 4; ADD and FULL 7) + 8 clusters hidden for the partial sums */
template <typename T, int THREADS, int VECS, bool ADD, bool FULL> struct rms_norm_backward_shape {
    static constexpr int inputs = 2 + (ADD ? 1 : 0) + (ADD && FULL ? 1 : 0), stages = 2;
    static constexpr int slice = THREADS * VECS * pack<T>::size;
    static constexpr size_t shared_bytes = (size_t)stages * inputs * THREADS * VECS * 16;
};

template <typename T, int THREADS, int VECS, bool ADD, bool FULL>
__global__ void __launch_bounds__(THREADS) rms_norm_backward(const __grid_constant__ rms_norm_args<T> a, int cluster)
{
    using shape = rms_norm_backward_shape<T, THREADS, VECS, ADD, FULL>;
    constexpr int size = pack<T>::size;
    extern __shared__ __align__(16) unsigned char raw[];
    __shared__ float room[2][2 * warp];
    [[maybe_unused]] __shared__ float peers[2][2][8]; /* by parity, sum, block of the cluster */
    auto stage = (pack<T>(*)[shape::inputs][VECS][THREADS])raw;
    int rank = blockIdx.x % cluster, first = blockIdx.x / cluster, step = gridDim.x / cluster, start = rank * shape::slice;
    const T *source[4] = { FULL || !ADD ? a.x : a.s, a.dy, a.ds, a.residual };
    float dw[VECS][size] = {};

    auto at = [&](int v) { return start + (v * THREADS + (int)threadIdx.x) * size; };
    auto fetch = [&](int64_t row, int to) {
        if (row < a.rows)
#pragma unroll
            for (int n = 0; n < shape::inputs; n++)
#pragma unroll
                for (int v = 0; v < VECS; v++)
                    if (at(v) < a.hidden)
                        __pipeline_memcpy_async(&stage[to][n][v][threadIdx.x], source[n] + row * a.hidden + at(v), 16);
        __pipeline_commit();
    };
    auto summed = [&](int from, int v) {
        pack<T> s = stage[from][0][v][threadIdx.x];
        return ADD && FULL ? add(s, stage[from][shape::inputs - 1][v][threadIdx.x]) : s;
    };

    fetch(first, 0);
    fetch((int64_t)first + step, 1);
#if __CUDA_ARCH__ >= 900
    if (cluster > 1)
        cooperative_groups::this_cluster().sync(); /* peers' shared memory exists only once they run */
#endif
    int now = 0;
    for (int64_t row = first; row < a.rows; row += step, now ^= 1) {
        float sums[2] = { 0, 0 };
        __pipeline_wait_prior(1);
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            if (at(v) >= a.hidden)
                continue;
            pack<T> s = summed(now, v), dy = stage[now][1][v][threadIdx.x], w = load_shared(a.weight + at(v));
            for (int i = 0; i < size; i++) {
                sums[0] += s[i] * s[i];
                sums[1] += s[i] * dy[i] * w[i];
            }
        }
        block_sum(sums, room[now]);
#if __CUDA_ARCH__ >= 900
        if (cluster > 1) {
            auto group = cooperative_groups::this_cluster();
            if ((int)threadIdx.x < 2 * cluster)
                group.map_shared_rank(&peers[now][threadIdx.x % 2][0], threadIdx.x / 2)[rank] = threadIdx.x % 2 ? sums[1] : sums[0];
            group.sync();
            sums[0] = sums[1] = 0;
            for (int p = 0; p < cluster; p++) {
                sums[0] += peers[now][0][p];
                sums[1] += peers[now][1][p];
            }
        }
#endif
        float r = 1.0f / sqrtf(sums[0] / (float)a.hidden + a.eps), c = r * r * r / (float)a.hidden * sums[1];
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            if (at(v) >= a.hidden)
                continue;
            int64_t here = row * a.hidden + at(v);
            pack<T> s = summed(now, v), dy = stage[now][1][v][threadIdx.x], w = load_shared(a.weight + at(v)), dx, y;
            pack<T> ds = stage[now][ADD ? 2 : 0][v][threadIdx.x];
            for (int i = 0; i < size; i++) {
                float normal = s[i] * r;
                dw[v][i] += dy[i] * normal;
                dx.set(i, (ADD ? ds[i] : 0.0f) + r * w[i] * dy[i] - c * s[i]);
                y.set(i, normal * w[i]);
            }
            store_once(a.dx + here, dx);
            if (FULL)
                store_once(a.y + here, y);
            if (FULL && ADD)
                store_once(a.sum + here, s);
        }
        fetch(row + 2 * (int64_t)step, now);
    }
#pragma unroll
    for (int v = 0; v < VECS; v++)
        for (int i = 0; i < size; i++)
            if (at(v) < a.hidden)
                a.partial[(int64_t)first * a.hidden + at(v) + i] = dw[v][i];
}

/* Any hidden, element by element, for rows that do not divide into packs or are too long for the kernels above.
 * grid (parts)  block (512): a block takes every parts-th row, reads it twice (again from L2) and keeps dw in its own row of
 * `partial`. FORWARD and BACKWARD say which outputs are wanted. */
template <typename T, bool ADD, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(512) rms_norm_any(const __grid_constant__ rms_norm_args<T> a)
{
    __shared__ float room[2][2 * warp];
    int turn = 0;
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x, turn ^= 1) {
        const int64_t from = row * a.hidden;
        auto s_at = [&](int h) {
            if (!ADD)
                return widen(a.x[from + h]);
            return widen(FORWARD ? narrow<T>(widen(a.x[from + h]) + widen(a.residual[from + h])) : a.s[from + h]);
        };
        float sums[2] = { 0, 0 };
        for (int h = threadIdx.x; h < a.hidden; h += blockDim.x) {
            float s = s_at(h);
            sums[0] += s * s;
            if (BACKWARD)
                sums[1] += s * widen(a.dy[from + h]) * widen(a.weight[h]);
        }
        block_sum(sums, room[turn]);
        float r = 1.0f / sqrtf(sums[0] / (float)a.hidden + a.eps), c = r * r * r / (float)a.hidden * sums[1];
        for (int h = threadIdx.x; h < a.hidden; h += blockDim.x) {
            float s = s_at(h), w = widen(a.weight[h]);
            if (FORWARD)
                a.y[from + h] = narrow<T>(s * r * w);
            if (FORWARD && ADD)
                a.sum[from + h] = narrow<T>(s);
            if (BACKWARD) {
                float dy = widen(a.dy[from + h]), *dw = &a.partial[(int64_t)blockIdx.x * a.hidden + h];
                *dw = (row == blockIdx.x ? 0.0f : *dw) + dy * s * r;
                a.dx[from + h] = narrow<T>((ADD ? widen(a.ds[from + h]) : 0.0f) + r * w * dy - c * s);
            }
        }
    }
}

template <typename T, int THREADS, int VECS, bool ADD>
inline cudaError_t rms_norm_forward_launch(const rms_norm_args<T> &a, cudaStream_t stream)
{
    rms_norm_forward<T, THREADS, VECS, ADD><<<(unsigned)a.rows, THREADS, 0, stream>>>(a);
    return cudaGetLastError();
}

template <typename T, bool ADD> inline cudaError_t rms_norm_forward_call(const rms_norm_args<T> &a, int parts, cudaStream_t stream)
{
    int packs = a.hidden / pack<T>::size;
    if (a.hidden % pack<T>::size != 0 || packs > 8192 || a.rows > 0x7fffffff) {
        rms_norm_any<T, ADD, true, false><<<parts, 512, 0, stream>>>(a);
        return cudaGetLastError();
    }
    return packs <= 128 ? rms_norm_forward_launch<T, 128, 1, ADD>(a, stream)
        : packs <= 256  ? rms_norm_forward_launch<T, 128, 2, ADD>(a, stream)
        : packs <= 512  ? rms_norm_forward_launch<T, 128, 4, ADD>(a, stream)
        : packs <= 1024 ? rms_norm_forward_launch<T, 256, 4, ADD>(a, stream)
        : packs <= 2048 ? rms_norm_forward_launch<T, 512, 4, ADD>(a, stream)
        : packs <= 4096 ? rms_norm_forward_launch<T, 512, 8, ADD>(a, stream)
                        : rms_norm_forward_launch<T, 1024, 8, ADD>(a, stream);
}

/* How many clusters of this kernel run at once; 0 if it does not fit the device. Asked once a thread and cluster size. */
template <typename T, int THREADS, int VECS, bool ADD, bool FULL>
inline int rms_norm_clusters(int cluster)
{
    using shape = rms_norm_backward_shape<T, THREADS, VECS, ADD, FULL>;
    auto kernel = rms_norm_backward<T, THREADS, VECS, ADD, FULL>;
    static thread_local int known[9]; /* by cluster size; one more than the answer */
    if (known[cluster])
        return known[cluster] - 1;
    int count = 0;
    if ((int)shape::shared_bytes + 1024 <= device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)
        && cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shape::shared_bytes) == cudaSuccess) {
        if (cluster == 1) {
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, THREADS, shape::shared_bytes);
            count *= multiprocessors();
        } else if (device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9) {
            cudaLaunchAttribute size = { .id = cudaLaunchAttributeClusterDimension };
            size.val.clusterDim = { (unsigned)cluster, 1, 1 };
            cudaLaunchConfig_t config = { .gridDim = dim3((unsigned)cluster), .blockDim = dim3(THREADS),
                .dynamicSmemBytes = shape::shared_bytes, .attrs = &size, .numAttrs = 1 };
            cudaOccupancyMaxActiveClusters(&count, kernel, &config);
        }
    }
    known[cluster] = count + 1;
    return count;
}

/* The pipelined kernel where it fits, else the plain one; `parts` gets the rows of `partial` written. */
template <typename T, int THREADS, int VECS, bool ADD, bool FULL>
inline cudaError_t rms_norm_backward_launch(const rms_norm_args<T> &a, int limit, int *parts, cudaStream_t stream)
{
    using shape = rms_norm_backward_shape<T, THREADS, VECS, ADD, FULL>;
    int cluster = 1;
    while (cluster < 8 && cluster * shape::slice < a.hidden)
        cluster *= 2;
    int fit = cluster * shape::slice < a.hidden || a.hidden % pack<T>::size ? 0 : rms_norm_clusters<T, THREADS, VECS, ADD, FULL>(cluster);
    if (fit == 0) {
        rms_norm_any<T, ADD, FULL, true><<<*parts, 512, 0, stream>>>(a);
        return cudaGetLastError();
    }
    fit = fit < limit ? fit : limit;
    *parts = a.rows < fit ? (int)a.rows : fit;
    cudaLaunchAttribute size = { .id = cudaLaunchAttributeClusterDimension };
    size.val.clusterDim = { (unsigned)cluster, 1, 1 };
    cudaLaunchConfig_t config = { .gridDim = dim3((unsigned)(*parts * cluster)), .blockDim = dim3(THREADS),
        .dynamicSmemBytes = shape::shared_bytes, .stream = stream, .attrs = &size, .numAttrs = cluster > 1 ? 1u : 0u };
    return cudaLaunchKernelEx(&config, rms_norm_backward<T, THREADS, VECS, ADD, FULL>, a, cluster);
}

template <typename T, bool ADD, bool FULL>
inline cudaError_t rms_norm_backward_call(const rms_norm_args<T> &a, int parts, int limit, cudaStream_t stream)
{
    int packs = a.hidden / pack<T>::size;
    constexpr int most = ADD && FULL ? 2 : 4; /* four inputs: half the slice, so that two stages fit */
    cudaError_t e = packs <= 128 ? rms_norm_backward_launch<T, 128, 1, ADD, FULL>(a, limit, &parts, stream)
        : packs <= 256 ? rms_norm_backward_launch<T, 256, 1, ADD, FULL>(a, limit, &parts, stream)
        : packs <= 512 ? rms_norm_backward_launch<T, 256, 2, ADD, FULL>(a, limit, &parts, stream)
        : packs <= 1024 ? rms_norm_backward_launch<T, 512, 2, ADD, FULL>(a, limit, &parts, stream)
                        : rms_norm_backward_launch<T, 512, most, ADD, FULL>(a, limit, &parts, stream);
    return e != cudaSuccess ? e : launch_column_sums(a.partial, parts, a.hidden, a.dweight, stream);
}

/* One pass. `limit` is the number of partial rows that the workspace holds. */
template <typename T, bool ADD>
inline cudaError_t rms_norm_pass(enum ki_pass pass, const rms_norm_args<T> &a, int limit, cudaStream_t stream)
{
    int blocks = 2 * multiprocessors();
    int any = blocks < limit ? blocks : limit; /* blocks of the plain kernel */
    any = a.rows < any ? (int)a.rows : any;
    if (pass == KI_BACKWARD)
        return rms_norm_backward_call<T, ADD, false>(a, any, limit, stream);
    if (pass == KI_FULL)
        return rms_norm_backward_call<T, ADD, true>(a, any, limit, stream);
    return rms_norm_forward_call<T, ADD>(a, any, stream);
}

}

/* rms_norm.cu, for megatron_rms_norm too, whose tensors stand in the same order: one pass over any number of rows. */
int ki_rms_norm_pass(const struct ki_call *c, int64_t rows, int64_t hidden);

#endif
