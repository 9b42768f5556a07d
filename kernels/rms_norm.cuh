/* Device code of rms_norm, megatron_rms_norm and fused_add_rms_norm: x is [rows, hidden], row-major. ADD forms s = x + residual first
 * and delivers it; without ADD, s below is x.
 */
#ifndef KI_RMS_NORM_CUH
#define KI_RMS_NORM_CUH

#include "row_ring.cuh"
#include "row_slice.cuh"

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
    unpacked<T> s;
    for (int i = 0; i < s.size; i++)
        s.set(i, a[i] + b[i]);
    return s.packed();
}

/* RMSNorm forward: y[r,h] = s[r,h] * w[h] / sqrt(mean_h(s[r,h]^2) + eps), s = x + residual with ADD
 * x, residual, y, sum [rows, hidden]   weight [hidden]   sums in fp32
 * grid (rows / groups * cluster)  block (THREADS, or four rows of 32): row_slice.cuh
 * needs hidden % pack == 0
 * bytes 2 rows hidden s + hidden s; ADD 4 rows hidden s + hidden s */
template <typename T, int THREADS, int VECS, bool ADD>
__global__ void __launch_bounds__(row_slice<T, THREADS, VECS>::threads, row_slice<T, THREADS, VECS>::blocks(ADD || THREADS == warp ? 2 : 1))
    rms_norm_forward(const __grid_constant__ rms_norm_args<T> a, int cluster)
{
    __shared__ float room[warp];
    __shared__ float slots[8][1];
    row_slice<T, THREADS, VECS> s(a.hidden, cluster);
    if (s.row >= a.rows)
        return; /* whole warps */
    constexpr bool early = VECS <= 2 || THREADS == warp; /* read the weight while the row is on its way, where registers allow */
    pack<T> x[VECS], added[ADD ? VECS : 1], w[VECS];
    float squares[1] = { 0 };
    s.load(a.x, x);
    if constexpr (ADD)
        s.load(a.residual, added);
#pragma unroll
    for (int v = 0; v < VECS; v++)
        if (early && s.has(v))
            w[v] = load_shared(a.weight + s.at(v));
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        if constexpr (ADD)
            x[v] = add(x[v], added[v]);
        pin(x[v]);
        for (int i = 0; i < s.size; i++)
            squares[0] += x[v][i] * x[v][i];
    }
    row_sum<THREADS>(squares, room);
    slice_sum(squares, s, slots);
    float r = inverse_root_mean(squares[0], (float)a.hidden, a.eps);
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        if (!s.has(v))
            continue;
        unpacked<T> y;
        pin(x[v]);
        if (!early)
            w[v] = load_shared(a.weight + s.at(v));
        for (int i = 0; i < s.size; i++)
            y.set(i, x[v][i] * r * w[v][i]);
        store_once(a.y + s.offset(v), y);
        if (ADD)
            store_once(a.sum + s.offset(v), x[v]);
    }
}

/* RMSNorm with FORWARD, its gradients with BACKWARD, both at once with both (FULL):
 * m = dy w, dx = ds + r m - s r^3 / hidden * sum_h(m s), dw = sum_r dy s r (ds with ADD only)
 * x or s, residual, dy, ds, y, sum, dx [rows, hidden]   weight [hidden]   partial [clusters, hidden] fp32: sums of dw
 * grid (clusters * blocks a cluster)  block (512): row_ring.cuh; the sums of a row cross the cluster as cluster.cuh has it;
 * weight and dw stay in registers from row to row; column_sums adds up the clusters
 * needs hidden % pack == 0; clusters of more than one block need sm_90
 * bytes 3 rows hidden s + 2 hidden s (ADD 4; FULL 4; ADD and FULL 7) + 8 clusters hidden for the partial sums */
template <bool ADD, bool FORWARD, bool BACKWARD> struct rms_norm_ring {
    static constexpr int inputs = (BACKWARD ? 2 : 1) + (ADD ? 1 : 0) + (ADD && FORWARD && BACKWARD ? 1 : 0), vecs = ADD && BACKWARD ? 2 : ADD || BACKWARD ? 4 : 8;
    template <typename T, int THREADS> using of = row_ring<T, THREADS, vecs, inputs>;
};

template <typename T, int THREADS, bool ADD, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(ring_threads, 1) rms_norm_rows(const __grid_constant__ rms_norm_args<T> a, int cluster)
{
    using shape = rms_norm_ring<ADD, FORWARD, BACKWARD>;
    using ring = typename shape::template of<T, THREADS>;
    constexpr int size = pack<T>::size, VECS = shape::vecs;
    constexpr int dy_at = BACKWARD ? 1 : 0, ds_at = ADD && BACKWARD ? 2 : 0, residual_at = shape::inputs - 1;
    extern __shared__ __align__(128) unsigned char raw[];
    __shared__ unsigned long long barriers[ring::groups * ring::stages];
    __shared__ float rooms[2][ring::groups][2 * THREADS / warp];
    [[maybe_unused]] __shared__ cluster_mail<2> mail;
    int rank = blockIdx.x % cluster, first = blockIdx.x / cluster;
    ring s;
    s.source[residual_at] = a.residual;
    s.source[ds_at] = a.ds;
    s.source[dy_at] = a.dy;
    s.source[0] = FORWARD || !ADD ? a.x : a.s;
    s.rows = a.rows;
    s.length = a.hidden;
    s.begin(raw, barriers, first, gridDim.x / cluster, rank);

    pack<T> w[VECS];
    [[maybe_unused]] float dw[VECS][size] = {};
#pragma unroll
    for (int v = 0; v < VECS; v++)
        w[v] = s.has(v) ? load_shared(a.weight + s.at(v)) : pack<T>{};
#if __CUDA_ARCH__ >= 900
    if (cluster > 1)
        open(mail);
#endif
    auto summed = [&](int v) {
        if constexpr (ADD && FORWARD)
            return add(s.get(0, v), s.get(residual_at, v));
        else
            return s.get(0, v);
    };
    float part = 1.0f / (float)a.hidden;
    for (int turn = 0; s.row < a.rows; s.next(), turn++) {
        float sums[2] = { 0, 0 };
        s.wait();
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pack<T> x = summed(v), dy = s.get(dy_at, v);
            pin(w[v]);
#pragma unroll
            for (int i = 0; i < size; i++) {
                sums[0] += x[i] * x[i];
                if (BACKWARD)
                    sums[1] += x[i] * (dy[i] * w[v][i]);
            }
        }
        group_sum<THREADS>(sums, rooms[turn & 1][s.group], s.group);
        s.refill(turn == 0);
#if __CUDA_ARCH__ >= 900
        if (cluster > 1) {
            auto all = exchange(mail, turn, rank, cluster, sums);
            sums[0] = sums[1] = 0;
            for (int p = 0; p < cluster; p++) {
                sums[0] += all[p][0];
                sums[1] += all[p][1];
            }
        }
#endif
        float r = inverse_root_mean(sums[0], (float)a.hidden, a.eps), c = r * r * r * part * sums[1];
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pack<T> x = summed(v), dy = s.get(dy_at, v), ds = s.get(ds_at, v);
            unpacked<T> dx, y;
            pin(w[v]);
#pragma unroll
            for (int i = 0; i < size; i++) {
                float normal = x[i] * r;
                if (BACKWARD)
                    dw[v][i] += dy[i] * normal;
                dx.set(i, (ADD ? ds[i] : 0.0f) + (r * (dy[i] * w[v][i]) - c * x[i]));
                y.set(i, normal * w[v][i]);
            }
            if (!s.has(v))
                continue;
            if (BACKWARD)
                store_once(a.dx + s.offset(v), dx);
            if (FORWARD)
                store_once(a.y + s.offset(v), y);
            if (FORWARD && ADD)
                store_once(a.sum + s.offset(v), x);
        }
    }
    s.end();
    let_next_start();
    if constexpr (BACKWARD)
        put_columns<ring, VECS>(s, (float *)raw, a.partial + (int64_t)first * a.hidden, [&](int v, int i) { return dw[v][i]; });
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
        float r = inverse_root_mean(sums[0], (float)a.hidden, a.eps), c = r * r * r / (float)a.hidden * sums[1];
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

/* In a ring, where the row fits; `parts` gets the rows of `partial` written, `limit` at most. */
template <typename T, bool ADD, bool FORWARD, bool BACKWARD>
inline bool rms_norm_rows_launch(const rms_norm_args<T> &a, int *parts, int limit, cudaStream_t stream, cudaError_t *error)
{
    using shape = rms_norm_ring<ADD, FORWARD, BACKWARD>;
    bool done = false;
    if (a.hidden % pack<T>::size == 0)
        with_row_ring<shape::vecs>(a.hidden / pack<T>::size, [&]<int THREADS>(int cluster) {
            if constexpr (BACKWARD || THREADS == ring_threads) { /* forward, only rows too long for row_slice come here */
                using ring = typename shape::template of<T, THREADS>;
                constexpr auto kernel = rms_norm_rows<T, THREADS, ADD, FORWARD, BACKWARD>;
                int fit = resident_clusters<kernel>(cluster, ring_threads, ring::shared_bytes);
                if (fit == 0)
                    return;
                done = true;
                *parts = (int)row_blocks(a.rows, ring::groups, BACKWARD && fit > limit ? limit : fit);
                cluster_launch l(*parts, cluster, ring_threads, ring::shared_bytes, stream);
                *error = cudaLaunchKernelEx(&l.config, kernel, a, cluster);
            }
        });
    return done;
}

/* Rows that registers hold one by one; longer ones in a ring; `parts` blocks where neither takes them. */
template <typename T, bool ADD>
inline cudaError_t rms_norm_forward_call(const rms_norm_args<T> &a, int parts, int limit, cudaStream_t stream)
{
    cudaError_t e = cudaSuccess;
    int64_t packs = a.hidden / pack<T>::size;
    if (a.hidden % pack<T>::size == 0 && a.rows < 0x0fffffff && packs <= 2048) {
        with_row_slice(packs, [&]<int THREADS, int VECS>(int cluster) {
            e = launch_slices<rms_norm_forward<T, THREADS, VECS, ADD>, row_slice<T, THREADS, VECS>>(a, a.rows, cluster, stream);
        });
        return e;
    }
    if (rms_norm_rows_launch<T, ADD, true, false>(a, &parts, limit, stream, &e))
        return e;
    rms_norm_any<T, ADD, true, false><<<(unsigned)parts, 512, 0, stream>>>(a);
    return cudaGetLastError();
}

/* The ring kernel where it fits, else the plain one with `parts` blocks. */
template <typename T, bool ADD, bool FORWARD>
inline cudaError_t rms_norm_backward_call(const rms_norm_args<T> &a, int parts, int limit, cudaStream_t stream)
{
    cudaError_t e = cudaSuccess;
    if (!rms_norm_rows_launch<T, ADD, FORWARD, true>(a, &parts, limit, stream, &e)) {
        rms_norm_any<T, ADD, FORWARD, true><<<(unsigned)parts, 512, 0, stream>>>(a);
        e = cudaGetLastError();
    }
    return e != cudaSuccess ? e : launch_column_sums(a.partial, parts, a.hidden, a.dweight, (T *)nullptr, stream);
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
    return rms_norm_forward_call<T, ADD>(a, any, limit, stream);
}

}

/* rms_norm.cu, for megatron_rms_norm too, whose tensors stand in the same order: one pass over any number of rows. */
int ki_rms_norm_pass(const struct ki_call *c, int64_t rows, int64_t hidden);

#endif
