/* Device code of fused_neighborhood_attention: attention of each position over the positions at multiples of `dilation` within
 * `radius` steps, cut at the borders, and what surrounds it. Tensors are [batch, seq, heads, head_dim]: what projections give.
 *
 * Biases stay out of the products and of the loops. With q, k, v the bare projections:
 *     key bias      shifts all scores of a query alike: softmax, and so every gradient, ignores it; its own gradient is 0
 *     query bias    is added to q once; of (q_j + b) k_t only b k_t is left, one number for each key
 *     value bias    is added to the output once
 */
#ifndef KI_NEIGHBORHOOD_CUH
#define KI_NEIGHBORHOOD_CUH

#include "loss.cuh"

namespace ki {

/* top, inverse [batch, seq, heads]: of scores log2(e), the maximum, and 1 / sum of 2^(score - maximum); NULL where nothing is saved. */
template <typename T> struct neighborhood_args {
    const T *q, *k, *v, *q_bias, *v_bias;
    T *o;
    float *top, *inverse;
    const T *d_o;
    T *dq, *dk, *dv;
    int batch, seq, heads, head_dim, radius, dilation;
    float scale; /* head_dim^(-1/2) */
};

enum { NEIGHBORHOOD_THREADS = 256 };

/* How a vector of head_dim elements lies over LANES threads: VECS groups of W elements a thread. */
template <typename T, int W, int LANES, int VECS> struct head_vector {
    float e[VECS][W];

    __device__ void read(const T *at, int lane, int head_dim)
    {
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            int d = (v * LANES + lane) * W;
            for (int i = 0; i < W; i++)
                e[v][i] = 0;
            if (d < head_dim)
                read_shared<W>(at + d, e[v]);
        }
    }
    __device__ void write(T *at, int lane, int head_dim) const
    {
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            int d = (v * LANES + lane) * W;
            if (d < head_dim)
                write_cached<W>(at + d, e[v]);
        }
    }
    /* this += f * b */
    __device__ void add(float f, const head_vector &b)
    {
#pragma unroll
        for (int v = 0; v < VECS; v++)
            for (int i = 0; i < W; i++)
                e[v][i] = fmaf(f, b.e[v][i], e[v][i]);
    }
    __device__ void scale(float f)
    {
#pragma unroll
        for (int v = 0; v < VECS; v++)
            for (int i = 0; i < W; i++)
                e[v][i] *= f;
    }
    /* this thread's part of a . (b - c) */
    __device__ static float dot_difference(const head_vector &a, const head_vector &b, const head_vector &c)
    {
        float s = 0;
#pragma unroll
        for (int v = 0; v < VECS; v++)
            for (int i = 0; i < W; i++)
                s = fmaf(a.e[v][i], b.e[v][i] - c.e[v][i], s);
        return s;
    }
    __device__ static float dot(const head_vector &a, const head_vector &b)
    {
        float s = 0;
#pragma unroll
        for (int v = 0; v < VECS; v++)
            for (int i = 0; i < W; i++)
                s = fmaf(a.e[v][i], b.e[v][i], s);
        return s;
    }
};

/* Sums over LANES neighbouring threads, in all of them. All threads of the warp take part. */
template <int LANES, int N> __device__ inline void lanes_sum(float (&v)[N])
{
#pragma unroll
    for (int d = LANES / 2; d > 0; d /= 2)
#pragma unroll
        for (int n = 0; n < N; n++)
            v[n] += __shfl_xor_sync(0xffffffffu, v[n], d);
}

/* Attention forward: o_i = sum_j p_ij v_j + value bias, p = softmax over the neighbours j of (q_i + query bias) . k_j scale
 * q, k, v, o [batch, seq, heads, head_dim]   top, inverse [batch, seq, heads]   fp32
 * grid (seq / groups of a block, batch heads)  block (256): LANES threads a query and head, neighbouring queries side by side, so
 * that keys and values come from L1 after their first use; maximum and sum run along as neighbours are taken in
 * needs head_dim <= LANES * VECS * W
 * bytes 4 batch seq hidden s      4 x 4096 x 768 fp32: 201 MB */
template <typename T, int W, int LANES, int VECS>
__global__ void __launch_bounds__(NEIGHBORHOOD_THREADS, W > 1 && VECS * W <= 8 ? 4 : 1) neighborhood_forward(const __grid_constant__ neighborhood_args<T> a)
{
    using vector = head_vector<T, W, LANES, VECS>;
    int lane = threadIdx.x % LANES, i = (int)(blockIdx.x * NEIGHBORHOOD_THREADS + threadIdx.x) / LANES;
    bool mine = i < a.seq; /* the others take part in shuffles */
    i = mine ? i : a.seq - 1;
    for (int unit = blockIdx.y; unit < a.batch * a.heads; unit += gridDim.y) {
        int head = unit % a.heads;
        int64_t first = (int64_t)(unit / a.heads) * a.seq; /* position 0 of the sequence */
        auto at = [&](int position) { return ((first + position) * a.heads + head) * a.head_dim; };
        vector q, o = {}, other;
        q.read(a.q + at(i), lane, a.head_dim);
        other.read(a.q_bias + head * a.head_dim, lane, a.head_dim);
        q.add(1, other);
        q.scale(a.scale * log2_e);
        float top = -3e38f, sum = 0;
#pragma unroll 2
        for (int m = -a.radius; m <= a.radius; m++) {
            int64_t to = i + (int64_t)m * a.dilation;
            bool there = to >= 0 && to < a.seq;
            int j = there ? (int)to : i;
            vector k, v;
            k.read(a.k + at(j), lane, a.head_dim);
            v.read(a.v + at(j), lane, a.head_dim);
            float score[1] = { vector::dot(q, k) };
            lanes_sum<LANES>(score);
            score[0] = there ? score[0] : -INFINITY;
            float most = fmaxf(top, score[0]), p = exp2_of(score[0] - most), rest = exp2_of(top - most);
            sum = fmaf(sum, rest, p);
            o.scale(rest);
            o.add(p, v);
            top = most;
        }
        o.scale(1.0f / sum);
        other.read(a.v_bias + head * a.head_dim, lane, a.head_dim);
        o.add(1, other);
        if (!mine)
            continue;
        o.write(a.o + at(i), lane, a.head_dim);
        if (lane == 0 && a.top) {
            a.top[(first + i) * a.heads + head] = top;
            a.inverse[(first + i) * a.heads + head] = 1.0f / sum;
        }
    }
}

/* Attention backward. j is a neighbour of t just when t is one of j, so that the owner of t makes all of its gradients:
 *   ds_tj = p_tj do_t . (v_j + bias - o_t)      dq_t = scale sum_j ds_tj k_j      (t as a query)
 *   dk_t = scale sum_j ds_jt (q_j + bias)       dv_t = sum_j p_jt do_j            (t as a key)
 * q, k, v, o, d_o, dq, dk, dv [batch, seq, heads, head_dim]   top, inverse [batch, seq, heads]   fp32
 * grid, block, needs as neighborhood_forward   bytes 8 batch seq hidden s. Deterministic. */
template <typename T, int W, int LANES, int VECS>
__global__ void __launch_bounds__(NEIGHBORHOOD_THREADS, W > 1 && VECS * W <= 4 ? 3 : 1) neighborhood_backward(const __grid_constant__ neighborhood_args<T> a)
{
    using vector = head_vector<T, W, LANES, VECS>;
    int lane = threadIdx.x % LANES, t = (int)(blockIdx.x * NEIGHBORHOOD_THREADS + threadIdx.x) / LANES;
    bool mine = t < a.seq;
    t = mine ? t : a.seq - 1;
    float unit_score = a.scale * log2_e;
    for (int unit = blockIdx.y; unit < a.batch * a.heads; unit += gridDim.y) {
        int head = unit % a.heads;
        int64_t first = (int64_t)(unit / a.heads) * a.seq;
        auto row = [&](int position) { return (first + position) * a.heads + head; };
        vector bias, q, k, v, o, d_o, dq = {}, dk = {}, dv = {};
        q.read(a.q + row(t) * a.head_dim, lane, a.head_dim);
        k.read(a.k + row(t) * a.head_dim, lane, a.head_dim);
        v.read(a.v + row(t) * a.head_dim, lane, a.head_dim);
        o.read(a.o + row(t) * a.head_dim, lane, a.head_dim);
        d_o.read(a.d_o + row(t) * a.head_dim, lane, a.head_dim);
        bias.read(a.v_bias + head * a.head_dim, lane, a.head_dim);
        v.add(1, bias);
        o.add(-1, bias);
        bias.read(a.q_bias + head * a.head_dim, lane, a.head_dim);
        q.add(1, bias);
        float shift[1] = { vector::dot(bias, k) }, top = a.top[row(t)], inverse = a.inverse[row(t)], total = 0;
        lanes_sum<LANES>(shift);
        for (int m = -a.radius; m <= a.radius; m++) {
            int64_t to = t + (int64_t)m * a.dilation;
            bool there = to >= 0 && to < a.seq;
            int64_t j = row(there ? (int)to : t);
            vector other_q, other_k, other_v, other_o, other_do;
            other_q.read(a.q + j * a.head_dim, lane, a.head_dim);
            other_k.read(a.k + j * a.head_dim, lane, a.head_dim);
            other_v.read(a.v + j * a.head_dim, lane, a.head_dim);
            other_o.read(a.o + j * a.head_dim, lane, a.head_dim);
            other_do.read(a.d_o + j * a.head_dim, lane, a.head_dim);
            float s[4] = { vector::dot(q, other_k), vector::dot(other_q, k), vector::dot_difference(d_o, other_v, o),
                vector::dot_difference(other_do, v, other_o) };
            lanes_sum<LANES>(s);
            float p_query = there ? exp2_of(fmaf(s[0], unit_score, -top)) * inverse : 0.0f;
            float p_key = there ? exp2_of(fmaf(s[1] + shift[0], unit_score, -a.top[j])) * a.inverse[j] : 0.0f;
            float ds_query = p_query * s[2] * a.scale, ds_key = p_key * s[3] * a.scale;
            dq.add(ds_query, other_k);
            dk.add(ds_key, other_q);
            dv.add(p_key, other_do);
            total += ds_key;
        }
        dk.add(total, bias);
        if (!mine)
            continue;
        dq.write(a.dq + row(t) * a.head_dim, lane, a.head_dim);
        dk.write(a.dk + row(t) * a.head_dim, lane, a.head_dim);
        dv.write(a.dv + row(t) * a.head_dim, lane, a.head_dim);
    }
}

template <typename T, int W, int LANES, int VECS>
inline cudaError_t neighborhood_launch(const neighborhood_args<T> &a, bool backward, cudaStream_t stream)
{
    constexpr int groups = NEIGHBORHOOD_THREADS / LANES;
    int units = a.batch * a.heads;
    dim3 grid((unsigned)((a.seq - 1) / groups + 1), (unsigned)(units < 65535 ? units : 65535));
    if (backward)
        neighborhood_backward<T, W, LANES, VECS><<<grid, NEIGHBORHOOD_THREADS, 0, stream>>>(a);
    else
        neighborhood_forward<T, W, LANES, VECS><<<grid, NEIGHBORHOOD_THREADS, 0, stream>>>(a);
    return cudaGetLastError();
}

/* Forward or backward, by head_dim: at most 256. */
template <typename T> inline cudaError_t neighborhood_attention(const neighborhood_args<T> &a, bool backward, cudaStream_t stream)
{
    constexpr int size = pack<T>::size;
    if (a.head_dim % size != 0)
        return neighborhood_launch<T, 1, 32, 8>(a, backward, stream);
    int packs = a.head_dim / size;
    return packs <= 8 ? neighborhood_launch<T, size, 8, 1>(a, backward, stream)
        : packs <= 16 ? neighborhood_launch<T, size, 16, 1>(a, backward, stream)
        : packs <= 32 ? neighborhood_launch<T, size, 32, 1>(a, backward, stream)
                      : neighborhood_launch<T, size, 32, 256 / size / 32>(a, backward, stream);
}

/* y[n,:] = bias: what the last product is added to
 * y [rows, columns]   bias [columns]   grid (rows / 8)  block (256): a thread writes W elements of 8 rows   bytes rows columns s */
template <typename T, int W> __global__ void __launch_bounds__(256) fill_rows(T *y, const T *bias, int64_t rows, int columns)
{
    for (int column = (int)threadIdx.x * W; column < columns; column += 256 * W) {
        float b[W];
        read_shared<W>(bias + column, b);
#pragma unroll
        for (int u = 0; u < 8; u++)
            if ((int64_t)blockIdx.x * 8 + u < rows)
                write_cached<W>(y + ((int64_t)blockIdx.x * 8 + u) * columns + column, b);
    }
}

template <typename T> inline cudaError_t fill_rows_launch(T *y, const T *bias, int64_t rows, int columns, cudaStream_t stream)
{
    constexpr int size = pack<T>::size;
    unsigned blocks = (unsigned)((rows + 7) / 8);
    if (columns % size == 0)
        fill_rows<T, size><<<blocks, 256, 0, stream>>>(y, bias, rows, columns);
    else
        fill_rows<T, 1><<<blocks, 256, 0, stream>>>(y, bias, rows, columns);
    return cudaGetLastError();
}

/* Column sums of three tensors [rows, columns]: bias gradients. */
enum { BIAS_TENSORS = 3 };
template <typename T> struct bias_args {
    const T *from[BIAS_TENSORS];
    T *to[BIAS_TENSORS];
    float *partial; /* [BIAS_TENSORS, parts, columns] */
    int64_t rows;
    int columns;
};

/* partial[z, p, c] = sum over every parts-th run of 8 rows.   grid (columns / 32, parts, tensors)  block (32, 8): a thread takes every
 * 8th row of one column; coalesced over columns   bytes 3 rows columns s. Deterministic. */
template <typename T> __global__ void __launch_bounds__(256) bias_partials(const __grid_constant__ bias_args<T> a)
{
    __shared__ float room[8][33];
    int column = (int)(blockIdx.x * 32 + threadIdx.x);
    float sum = 0;
    if (column < a.columns)
#pragma unroll 8
        for (int64_t row = blockIdx.y * 8 + threadIdx.y; row < a.rows; row += 8 * gridDim.y)
            sum += widen(a.from[blockIdx.z][row * a.columns + column]);
    room[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= a.columns)
        return;
    for (int y = 1; y < 8; y++)
        sum += room[y][threadIdx.x];
    a.partial[((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * a.columns + column] = sum;
}

/* to[z, c] = sum over parts.   grid (columns / 256, tensors)  block (256)   bytes 12 parts columns. Deterministic. */
template <typename T> __global__ void __launch_bounds__(256) bias_totals(const __grid_constant__ bias_args<T> a, int parts)
{
    int column = (int)(blockIdx.x * 256 + threadIdx.x);
    if (column >= a.columns)
        return;
    float sum = 0;
#pragma unroll 8
    for (int p = 0; p < parts; p++)
        sum += a.partial[((int64_t)blockIdx.y * parts + p) * a.columns + column];
    a.to[blockIdx.y][column] = narrow<T>(sum);
}

}

#endif
