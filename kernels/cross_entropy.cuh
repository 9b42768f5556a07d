/* Device code of cross_entropy and megatron_cross_entropy: logits x [rows, vocab], row-major, int64 targets. A target outside the
 * vocabulary, such as -100, is ignored: loss 0, gradient 0, not counted. MEAN: one loss, the mean over rows that count; without
 * MEAN a loss for each row.
 *
 * Row statistics are kept in units of log 2, so that a term costs one multiply-add and one exponential:
 *     top = max_v x_v log2(e)      sum = sum_v 2^(x_v log2(e) - top)      log sum_v exp x_v = top log(2) + log(sum)
 */
#ifndef KI_CROSS_ENTROPY_CUH
#define KI_CROSS_ENTROPY_CUH

#include "loss.cuh"
#include "row_stream.cuh"

namespace ki {

/* Tensors of one call. Those that a pass does not use are NULL. */
template <typename T> struct cross_entropy_args {
    const T *logits;
    const int64_t *target;
    T *dlogits;
    float *top, *sum;         /* [rows] row statistics, saved by forward for backward */
    float *valid;             /* [1] MEAN: rows that count */
    double *row_loss;         /* [rows] MEAN: scratch */
    T *loss;                  /* [1] MEAN */
    float *token_loss;        /* [rows] without MEAN */
    const T *dloss;           /* [1] MEAN */
    const float *dtoken_loss; /* [rows] without MEAN */
    int64_t rows;
    int vocab;
};

struct softmax_stats {
    float top = -3e38f, sum = 0; /* of no element; finite, so that differences are numbers */
};

__device__ inline void join(softmax_stats &s, float top, float sum)
{
    float t = fmaxf(s.top, top);
    s.sum = s.sum * exp2_of(s.top - t) + sum * exp2_of(top - t);
    s.top = t;
}

/* Take in U * W logits: one rescaling for all. */
template <int U, int W> __device__ inline void take(softmax_stats &s, const float (&x)[U][W])
{
    float most = x[0][0], sum = 0;
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
        for (int i = 0; i < W; i++)
            most = fmaxf(most, x[u][i]);
    float top = fmaxf(s.top, most * log2_e);
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
        for (int i = 0; i < W; i++)
            sum += exp2_of(fmaf(x[u][i], log2_e, -top));
    s.sum = s.sum * exp2_of(s.top - top) + sum;
    s.top = top;
}

__device__ inline void join_warp(softmax_stats &s)
{
    float top = warp_max(s.top);
    s.sum = warp_sum(s.sum * exp2_of(s.top - top));
    s.top = top;
}

/* Over the block, in every thread; `room` is 2 * 32 floats, and calls alternate between two rooms as those of block_sum do. */
__device__ inline void join_block(softmax_stats &s, float (&room)[2][warp])
{
    int lane = threadIdx.x % warp, at = threadIdx.x / warp, warps = blockDim.x / warp;
    join_warp(s);
    if (lane == 0) {
        room[0][at] = s.top;
        room[1][at] = s.sum;
    }
    __syncthreads();
    s.top = lane < warps ? room[0][lane] : -3e38f;
    s.sum = lane < warps ? room[1][lane] : 0.0f;
    join_warp(s);
}

/* The target of a row, -1 where it is ignored. */
template <typename T> __device__ inline int target_of(const cross_entropy_args<T> &a, int64_t row)
{
    int64_t target = a.target[row];
    return target >= 0 && target < a.vocab ? (int)target : -1;
}

/* One thread a row: the loss, from the target's logit. fp64, so that the difference of large numbers is rounded once. */
template <typename T, bool MEAN>
__device__ inline void put_loss(const cross_entropy_args<T> &a, int64_t row, const softmax_stats &s, int target, float logit)
{
    double loss = target >= 0 ? (double)s.top * 0.6931471805599453 + log((double)s.sum) - (double)logit : 0.0;
    if (MEAN)
        a.row_loss[row] = loss;
    else
        a.token_loss[row] = (float)loss;
}

/* One thread a row: the statistics, where they are kept. */
template <typename T> __device__ inline void put_stats(const cross_entropy_args<T> &a, int64_t row, const softmax_stats &s)
{
    if (!a.top)
        return;
    a.top[row] = s.top;
    a.sum[row] = s.sum;
}

/* Forward, one read: the statistics of each row while it streams by.
 * logits [rows, vocab]   target, top, sum, row_loss or token_loss [rows]   sums in fp32
 * grid (rows / teams a block)  block (max(TEAM, 128)): TEAM threads a row; a thread has UNROLL loads of W elements in flight
 * bytes rows vocab s + 16 rows      16384 x 65536 fp32: 4.29 GB */
template <typename T, int TEAM, int W, bool MEAN>
__global__ void __launch_bounds__(TEAM < 128 ? 128 : TEAM) cross_entropy_forward(const __grid_constant__ cross_entropy_args<T> a)
{
    constexpr int unroll = W == 8 ? 2 : 4, teams = TEAM < 128 ? 128 / TEAM : 1;
    __shared__ float room[2][warp];
    int64_t row = (int64_t)blockIdx.x * teams + threadIdx.x / TEAM;
    if (row >= a.rows)
        return; /* whole warps: TEAM is 32, or the block */
    int lane = threadIdx.x % TEAM;
    const T *logits = a.logits + row * a.vocab;
    softmax_stats s;
    int from = lane * W;
    for (; from + (unroll - 1) * TEAM * W < a.vocab; from += unroll * TEAM * W) {
        float x[unroll][W];
#pragma unroll
        for (int u = 0; u < unroll; u++)
            read_once<W>(logits + from + u * TEAM * W, x[u]);
        take(s, x);
    }
    for (; from < a.vocab; from += TEAM * W) {
        float x[1][W];
        read_once<W>(logits + from, x[0]);
        take(s, x);
    }
    if (TEAM == warp)
        join_warp(s);
    else
        join_block(s, room);
    if (lane != 0)
        return;
    int target = target_of(a, row);
    put_loss<T, MEAN>(a, row, s, target, target >= 0 ? widen(a.logits[row * a.vocab + target]) : 0.0f);
    put_stats(a, row, s);
}

/* Gradient of one element, from its logit. */
__device__ inline float cross_entropy_gradient(float x, float top, float inverse, bool hit, float g)
{
    return (exp2_of(fmaf(x, log2_e, -top)) * inverse - (hit ? 1.0f : 0.0f)) * g;
}

/* What the gradient of a row is multiplied by; 0 where the target is ignored. */
template <typename T, bool MEAN> __device__ inline float row_scale(const cross_entropy_args<T> &a, int64_t row, int target)
{
    return target < 0 ? 0.0f : MEAN ? widen(*a.dloss) / *a.valid : a.dtoken_loss[row];
}

/* Backward: dlogits = (softmax - onehot) g, g = dloss / valid or dloss of the row; 0 for ignored rows
 * logits, dlogits [rows, vocab]   target, top, sum [rows]
 * grid (rows * pieces)  block (256): a block takes 256 * UNROLL groups of W elements of one row; all its loads are in flight at once
 * bytes 2 rows vocab s + 16 rows    16384 x 65536 fp32: 8.59 GB */
enum { CROSS_ENTROPY_THREADS = 256 };

template <int W> constexpr int cross_entropy_unroll = W == 8 ? 2 : 4;

template <typename T, int W, bool MEAN>
__global__ void __launch_bounds__(CROSS_ENTROPY_THREADS) cross_entropy_backward(const __grid_constant__ cross_entropy_args<T> a, int pieces)
{
    constexpr int unroll = cross_entropy_unroll<W>, stride = CROSS_ENTROPY_THREADS * W;
    for (int64_t unit = blockIdx.x; unit < a.rows * pieces; unit += gridDim.x) {
        int64_t row = unit <= UINT32_MAX ? (unsigned)unit / (unsigned)pieces : unit / pieces; /* the short division where it will do */
        int from = (int)(unit - row * pieces) * unroll * stride + (int)threadIdx.x * W;
        float x[unroll][W];
#pragma unroll
        for (int u = 0; u < unroll; u++)
            if (from + u * stride < a.vocab)
                read_once<W>(a.logits + row * a.vocab + from + u * stride, x[u]);
        int target = target_of(a, row);
        float g = row_scale<T, MEAN>(a, row, target), top = a.top[row], inverse = 1.0f / a.sum[row];
#pragma unroll
        for (int u = 0; u < unroll; u++) {
            int column = from + u * stride;
            if (column >= a.vocab)
                continue;
#pragma unroll
            for (int i = 0; i < W; i++)
                x[u][i] = cross_entropy_gradient(x[u][i], top, inverse, column + i == target, g);
            write_once<W>(a.dlogits + row * a.vocab + column, x[u]);
        }
    }
}

/* Full, one read: a cluster holds a row in registers, takes the statistics, and writes the gradient. As a pack is read from shared
 * memory, that of the next row takes its place, so that a whole row is always on its way.
 * logits, dlogits [rows, vocab]   target, top, sum, row_loss or token_loss [rows]
 * grid (clusters * blocks a cluster)  block (1024): row_stream.cuh, VECS packs a thread; statistics cross the cluster as cluster.cuh
 * has it. Exponentials are relative to a thread's own maximum. fp32 keeps them, and one factor a row and thread makes them gradients;
 * of 16 bits there are too many, so the logits stay packed and exponentials are made twice.
 * needs vocab % pack == 0; clusters of more than one block need sm_90
 * bytes 2 rows vocab s + 20 rows    16384 x 65536 fp32: 8.59 GB */
enum { CROSS_ENTROPY_FULL_THREADS = 1024 };

template <typename T, int VECS, bool MEAN>
__global__ void __launch_bounds__(CROSS_ENTROPY_FULL_THREADS, 1)
    cross_entropy_full(const __grid_constant__ cross_entropy_args<T> a, int cluster)
{
    constexpr int size = pack<T>::size;
    extern __shared__ __align__(128) unsigned char raw[];
    __shared__ float room[2][2][warp];
    [[maybe_unused]] __shared__ cluster_mail<2> mail;
    int rank = blockIdx.x % cluster, first = blockIdx.x / cluster;
    row_stream<T, CROSS_ENTROPY_FULL_THREADS, VECS, 1, VECS> r;
    r.source[0] = a.logits;
    r.rows = a.rows;
    r.length = a.vocab;
    r.start = rank * r.width;
    r.begin(raw, first, gridDim.x / cluster);
#if __CUDA_ARCH__ >= 900
    if (cluster > 1)
        open(mail);
#endif
    wait_for_previous(); /* for valid */
    float mean_scale = MEAN ? row_scale<T, MEAN>(a, 0, 0) : 0.0f;
    int target_next = r.row < a.rows ? target_of(a, r.row) : -1;
    for (int turn = 0; r.row < a.rows; r.next(), turn++) {
        int target = target_next;
        float g = target < 0 ? 0.0f : MEAN ? mean_scale : row_scale<T, MEAN>(a, r.row, target);
        float logit = target >= 0 ? widen(a.logits[r.row * a.vocab + target]) : 0.0f;
        target_next = r.row + r.step < a.rows ? target_of(a, r.row + r.step) : -1;
        softmax_stats s;
        pack<T> x[VECS];
        float top = -3e38f;
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            r.wait_one();
            x[v] = r.get(0, v);
            r.release(v);
            if (r.has(v))
#pragma unroll
                for (int i = 0; i < size; i++)
                    top = fmaxf(top, x[v][i]);
        }
        s.top = top = r.has(0) ? top * log2_e : top;
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pin(x[v]);
            if (!r.has(v))
                continue;
#pragma unroll
            for (int i = 0; i < size; i++) {
                float e = exp2_of(fmaf(x[v][i], log2_e, -top));
                if constexpr (sizeof(T) == 4)
                    x[v].word[i] = __float_as_uint(e);
                s.sum += e;
            }
        }
        join_block(s, room[turn & 1]);
#if __CUDA_ARCH__ >= 900
        if (cluster > 1) {
            float send[2] = { s.top, s.sum };
            auto all = exchange(mail, turn, rank, cluster, send);
            s = softmax_stats();
#pragma unroll 1
            for (int p = 0; p < cluster; p++)
                join(s, all[p][0], all[p][1]);
        }
#endif
        float factor = g / s.sum * (sizeof(T) == 4 ? exp2_of(top - s.top) : 1.0f);
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pin(x[v]);
            if (!r.has(v))
                continue;
            unpacked<T> d;
#pragma unroll
            for (int i = 0; i < size; i++)
                d.set(i, (sizeof(T) == 4 ? x[v][i] : exp2_of(fmaf(x[v].again(i), log2_e, -s.top))) * factor);
            store_once(a.dlogits + r.offset(v), d);
        }
        int column = target - r.start;
        if (target >= 0 && column >= 0 && column < r.width && column / size % CROSS_ENTROPY_FULL_THREADS == (int)threadIdx.x) {
            /* the thread that wrote the target's gradient writes it again, less g */
            a.dlogits[r.row * a.vocab + target] = narrow<T>(cross_entropy_gradient(logit, s.top, 1.0f / s.sum, true, g));
        }
        if (rank == turn % cluster && threadIdx.x == 0) {
            put_stats(a, r.row, s);
            put_loss<T, MEAN>(a, r.row, s, target, logit);
        }
    }
}

/* MEAN: valid = rows whose target lies in the vocabulary; with ALL also loss = sum of row_loss / valid (0 / 0 where none does).
 * target, row_loss [rows]   grid (1)  block (1024)   bytes 16 rows. Deterministic. */
template <typename T, bool ALL> __global__ void __launch_bounds__(1024) cross_entropy_mean(const __grid_constant__ cross_entropy_args<T> a)
{
    double sum = 0, valid = 0;
    if (ALL)
        wait_for_previous();
    else
        let_next_start();
#pragma unroll 4
    for (int64_t row = threadIdx.x; row < a.rows; row += 1024) {
        valid += target_of(a, row) >= 0 ? 1.0 : 0.0;
        if (ALL)
            sum += a.row_loss[row];
    }
    valid = block_total(valid);
    __syncthreads(); /* block_total has one room */
    if (ALL)
        sum = block_total(sum);
    if (threadIdx.x != 0)
        return;
    if (a.valid)
        *a.valid = (float)valid;
    if (ALL)
        *a.loss = narrow<T>((float)(sum / valid));
}

template <typename T, int TEAM, int W, bool MEAN> inline cudaError_t cross_entropy_forward_launch(const cross_entropy_args<T> &a, cudaStream_t stream)
{
    constexpr int threads = TEAM < 128 ? 128 : TEAM, teams = threads / TEAM;
    cross_entropy_forward<T, TEAM, W, MEAN><<<(unsigned)((a.rows + teams - 1) / teams), threads, 0, stream>>>(a);
    return cudaGetLastError();
}

template <typename T, int W, bool MEAN> inline cudaError_t cross_entropy_forward_call(const cross_entropy_args<T> &a, cudaStream_t stream)
{
    int groups = a.vocab / W;
    return groups <= 1024 ? cross_entropy_forward_launch<T, 32, W, MEAN>(a, stream)
        : groups <= 4096  ? cross_entropy_forward_launch<T, 128, W, MEAN>(a, stream)
                          : cross_entropy_forward_launch<T, 512, W, MEAN>(a, stream);
}

template <typename T, int W, bool MEAN> inline cudaError_t cross_entropy_backward_call(const cross_entropy_args<T> &a, cudaStream_t stream)
{
    int tile = CROSS_ENTROPY_THREADS * cross_entropy_unroll<W> * W, pieces = (a.vocab + tile - 1) / tile;
    int64_t units = a.rows * pieces, blocks = units < 0x7fffffff ? units : 0x7fffffff;
    cross_entropy_backward<T, W, MEAN><<<(unsigned)blocks, CROSS_ENTROPY_THREADS, 0, stream>>>(a, pieces);
    return cudaGetLastError();
}

/* False if the row does not fit. */
template <typename T, int VECS, bool MEAN>
inline bool cross_entropy_full_launch(const cross_entropy_args<T> &a, cudaStream_t stream, cudaError_t *error)
{
    using shape = row_stream<T, CROSS_ENTROPY_FULL_THREADS, VECS, 1, VECS>;
    constexpr auto kernel = cross_entropy_full<T, VECS, MEAN>;
    int cluster = cluster_of(a.vocab, shape::width), fit = 0;
    if (cluster > 0)
        fit = resident_clusters<kernel>(cluster, CROSS_ENTROPY_FULL_THREADS, shape::shared_bytes);
    if (fit == 0)
        return false;
    cluster_launch l(a.rows < fit ? a.rows : fit, cluster, CROSS_ENTROPY_FULL_THREADS, shape::shared_bytes, stream);
    if (MEAN)
        l.early(); /* behind cross_entropy_mean */
    *error = cudaLaunchKernelEx(&l.config, kernel, a, cluster);
    return true;
}

/* The rows of a full pass: in one read where a row fits a cluster, else forward, then backward. */
template <typename T, bool MEAN> inline cudaError_t cross_entropy_full_call(const cross_entropy_args<T> &a, cudaStream_t stream)
{
    cudaError_t e = cudaSuccess;
    if (a.vocab % pack<T>::size != 0) {
        e = cross_entropy_forward_call<T, 1, MEAN>(a, stream);
        return e != cudaSuccess ? e : cross_entropy_backward_call<T, 1, MEAN>(a, stream);
    }
    int packs = a.vocab / pack<T>::size;
    if (packs <= 1024 ? cross_entropy_full_launch<T, 1, MEAN>(a, stream, &e)
        : packs <= 4096 ? cross_entropy_full_launch<T, 4, MEAN>(a, stream, &e) : cross_entropy_full_launch<T, 8, MEAN>(a, stream, &e))
        return e;
    e = cross_entropy_forward_call<T, pack<T>::size, MEAN>(a, stream);
    return e != cudaSuccess ? e : cross_entropy_backward_call<T, pack<T>::size, MEAN>(a, stream);
}

/* One pass. */
template <typename T, bool MEAN> inline cudaError_t cross_entropy_pass(enum ki_pass pass, const cross_entropy_args<T> &a, cudaStream_t stream)
{
    bool packed = a.vocab % pack<T>::size == 0;
    if (pass == KI_BACKWARD)
        return packed ? cross_entropy_backward_call<T, pack<T>::size, MEAN>(a, stream) : cross_entropy_backward_call<T, 1, MEAN>(a, stream);
    if (MEAN && pass == KI_FULL)
        cross_entropy_mean<T, false><<<1, 1024, 0, stream>>>(a);
    cudaError_t e = pass == KI_FULL ? cross_entropy_full_call<T, MEAN>(a, stream)
        : packed ? cross_entropy_forward_call<T, pack<T>::size, MEAN>(a, stream) : cross_entropy_forward_call<T, 1, MEAN>(a, stream);
    return e != cudaSuccess || !MEAN ? e : launch_after(cross_entropy_mean<T, true>, dim3(1), dim3(1024), stream, a);
}

}

#endif
