/* LayerNorm of rows: population variance from centred values, eps inside the root, one rounding at the end.
 * x, y, dy, dx [rows, hidden], weight, bias, dweight, dbias [hidden], row-major; mean, rstd [rows] fp32 are kept for backward.
 * forward   a row in registers of a block or cluster                4096 x 16384 fp32: 537 MB
 * backward  persistent clusters, partial dweight and dbias, sums    4096 x 16384 fp32: 805 MB
 * full      the backward kernel, which also makes the statistics and y; reads x once
 * reference layer_norm_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "layer_norm_ref.h"
enum { X, WEIGHT, BIAS, Y, MEAN, RSTD, DY, DX, DWEIGHT, DBIAS };
enum { ROWS, HIDDEN };
enum { PARTS_LIMIT = 1024 }; /* partial sums of dweight and dbias, rows of each */

#include "ref.h"

#ifndef __CUDACC__

static size_t workspace_bytes(const struct ki_case *c, enum ki_pass pass)
{
    int64_t parts = c->axis[ROWS] < PARTS_LIMIT ? c->axis[ROWS] : PARTS_LIMIT;
    return pass == KI_BACKWARD || pass == KI_FULL ? (size_t)(2 * parts * c->axis[HIDDEN]) * sizeof(float) : 0;
}

static int derive(struct ki_case *c, const char **reason)
{
    if (c->axis[HIDDEN] <= INT32_MAX / 2)
        return 0;
    *reason = "hidden is too large";
    return -1;
}

/* operations.md 1.1: 2RHs + 2Hs, 3RHs + 3Hs; full 4RHs + 4Hs (weight and bias in, their gradients out). */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double s = (double)ki_dtype_bytes(c->dtype), row = (double)c->axis[HIDDEN] * s, all = (double)c->axis[ROWS] * row;
    double bytes = pass == KI_BACKWARD ? 3 * all + 3 * row : pass == KI_FULL ? 4 * all + 4 * row : 2 * all + 2 * row;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(layer_norm);

#define ROW_SHAPE { KI_AXIS(ROWS), KI_AXIS(HIDDEN) }

extern const struct ki_operation layer_norm_operation;
const struct ki_operation layer_norm_operation = {
    .name = "layer_norm",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "rows", "hidden" },
    .scalar = { { "eps", 1e-6 } },
    .tensor = {
        [X] = { "x", KI_INPUT, .shape = ROW_SHAPE },
        [WEIGHT] = { "weight", KI_PARAM, .shape = { KI_AXIS(HIDDEN) }, .mean = 1, .deviation = 0.5 },
        [BIAS] = { "bias", KI_PARAM, .shape = { KI_AXIS(HIDDEN) }, .mean = 1, .deviation = 0.5 },
        [Y] = { "y", KI_OUTPUT, .shape = ROW_SHAPE },
        [MEAN] = { "mean", KI_SAVED, KI_F32, .shape = { KI_AXIS(ROWS) } },
        [RSTD] = { "rstd", KI_SAVED, KI_F32, .shape = { KI_AXIS(ROWS) } },
        [DY] = { "dy", KI_UPSTREAM, .shape = ROW_SHAPE, .of = { "y" } },
        [DX] = { "dx", KI_GRADIENT, .shape = ROW_SHAPE, .of = { "x" } },
        [DWEIGHT] = { "dweight", KI_GRADIENT, .shape = { KI_AXIS(HIDDEN) }, .of = { "weight" } },
        [DBIAS] = { "dbias", KI_GRADIENT, .shape = { KI_AXIS(HIDDEN) }, .of = { "bias" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(layer_norm),
};

#else

#include "row_ring.cuh"
#include "row_slice.cuh"

namespace {

using namespace ki;

/* Tensors of one call. Those that a pass does not use are NULL. */
template <typename T> struct args {
    const T *x, *weight, *bias, *dy;
    T *y, *dx, *dweight, *dbias;
    float *mean, *rstd;
    float *partial; /* [parts, 2, hidden] */
    int64_t rows;
    int hidden;
    float eps;
};

/* The mean and the sum of squares about it, of blocks of a cluster each with its own: count, mean and squares of block p by of(p). */
struct moments {
    float mean, squares;
};

template <typename F> __device__ inline moments join(int blocks, float total, F &&of)
{
    moments all = { 0, 0 };
#pragma unroll 1
    for (int p = 0; p < blocks; p++) {
        float3 m = of(p);
        all.mean += m.x * m.y;
    }
    all.mean /= total;
#pragma unroll 1
    for (int p = 0; p < blocks; p++) {
        float3 m = of(p);
        all.squares += m.z + m.x * (m.y - all.mean) * (m.y - all.mean);
    }
    return all;
}

/* LayerNorm forward: n = (x - mu) rs, y = n w + b
 * x, y [rows, hidden]   weight, bias [hidden]   mean, rstd [rows]   sums in fp32, squares about the mean of the block
 * grid (rows / groups * cluster)  block (THREADS, or four rows of 32): row_slice.cuh
 * needs hidden % pack == 0       bytes 2 rows hidden s */
template <typename T, int THREADS, int VECS>
__global__ void __launch_bounds__(row_slice<T, THREADS, VECS>::threads, row_slice<T, THREADS, VECS>::blocks(1))
    layer_norm_forward(const __grid_constant__ args<T> a, int cluster)
{
    __shared__ float room[2][warp], slots[8][2];
    row_slice<T, THREADS, VECS> s(a.hidden, cluster);
    if (s.row >= a.rows)
        return; /* whole warps */
    pack<T> x[VECS];
    float total[1] = { 0 }, squares[1] = { 0 }, own = s.count(s.rank); /* 0 in a block past the end */
    s.load(a.x, x);
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        pin(x[v]);
#pragma unroll
        for (int i = 0; i < s.size; i++)
            total[0] += x[v][i];
    }
    row_sum<THREADS>(total, room[0]);
    float mu = total[0] / fmaxf(own, 1.0f);
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        pin(x[v]);
        if (s.has(v))
#pragma unroll
            for (int i = 0; i < s.size; i++)
                squares[0] += (x[v][i] - mu) * (x[v][i] - mu);
    }
    row_sum<THREADS>(squares, room[1]);
    if (cluster > 1) {
        float send[2] = { mu, squares[0] };
        swap(slots, s.rank, cluster, send);
        moments m = join(cluster, (float)a.hidden, [&](int p) { return make_float3(s.count(p), slots[p][0], slots[p][1]); });
        mu = m.mean;
        squares[0] = m.squares;
    }
    float rs = inverse_root_mean(squares[0], (float)a.hidden, a.eps);
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        if (!s.has(v))
            continue;
        pin(x[v]);
        pack<T> w = load_shared(a.weight + s.at(v)), b = load_shared(a.bias + s.at(v));
        unpacked<T> y;
#pragma unroll
        for (int i = 0; i < s.size; i++)
            y.set(i, (x[v][i] - mu) * rs * w[i] + b[i]);
        store_once(a.y + s.offset(v), y);
    }
    if (a.mean && s.rank == 0 && threadIdx.x % THREADS == 0) {
        a.mean[s.row] = mu;
        a.rstd[s.row] = rs;
    }
}

/* LayerNorm with FORWARD, its gradients with BACKWARD, both at once with both:
 * n = (x - mu) rs, y = n w + b; q = dy w, dx = rs (q - n mean(q n) - mean q), dw = sum_r dy n, db = sum_r dy
 * x, y, dy, dx [rows, hidden]   weight, bias [hidden]   mean, rstd [rows]   partial [clusters, 2, hidden]   sums in fp32
 * grid (clusters * blocks a cluster)  block (512): row_ring.cuh. FORWARD takes sums about the mean of the warp, then corrects them to
 * that of the block and of the row. Weight, dw and db stay in registers from row to row; column_sums adds up the clusters.
 * needs hidden % pack == 0; clusters of more than one block need sm_90
 * bytes 2 rows hidden s (BACKWARD 3, both 4) + 16 clusters hidden for the partial sums */
/* Backward holds two column sums an element in registers. */
template <typename T, bool BACKWARD> constexpr int ring_vecs = !BACKWARD ? 8 : sizeof(T) == 4 ? 4 : 2;

template <typename T, int THREADS, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(ring_threads, 1) layer_norm_rows(const __grid_constant__ args<T> a, int cluster)
{
    constexpr int size = pack<T>::size, VECS = ring_vecs<T, BACKWARD>, dy_at = BACKWARD ? 1 : 0;
    constexpr int sum_count = FORWARD && BACKWARD ? 4 : 2; /* of a row: [sum of x, squares], [sum of q, of q (x - mu)] */
    constexpr int squares = 1, q = BACKWARD && FORWARD ? 2 : 0, qx = q + 1;
    using ring = row_ring<T, THREADS, VECS, BACKWARD ? 2 : 1>;
    extern __shared__ __align__(128) unsigned char raw[];
    __shared__ unsigned long long barriers[ring::groups * ring::stages];
    __shared__ float rooms[2][ring::groups][sum_count * THREADS / warp], counts[ring::groups][THREADS / warp];
    [[maybe_unused]] __shared__ cluster_mail<sum_count> mail;
    int rank = blockIdx.x % cluster, first = blockIdx.x / cluster;
    ring s;
    s.source[dy_at] = a.dy;
    s.source[0] = a.x;
    s.rows = a.rows;
    s.length = a.hidden;
    s.begin(raw, barriers, first, gridDim.x / cluster, rank);

    pack<T> w[VECS], b[BACKWARD ? 1 : VECS];
    [[maybe_unused]] float dw[VECS][size] = {}, db[VECS][size] = {};
    int mine = 0;
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        mine += s.has(v) ? size : 0;
        w[v] = s.has(v) ? load_shared(a.weight + s.at(v)) : pack<T>{};
        if (!BACKWARD)
            b[BACKWARD ? 0 : v] = s.has(v) ? load_shared(a.bias + s.at(v)) : pack<T>{};
    }
    float count = (float)__reduce_add_sync(0xffffffffu, mine); /* of the warp */
    if (threadIdx.x % warp == 0)
        counts[s.group][s.member / warp] = count;
#if __CUDA_ARCH__ >= 900
    if (cluster > 1)
        open(mail);
#endif
    auto kept = [&](const float *of, int64_t row) { return !FORWARD && row < a.rows ? of[row] : 0.0f; };
    float mu_next = kept(a.mean, s.row), rs_next = kept(a.rstd, s.row), part = 1.0f / (float)a.hidden;
    for (int turn = 0; s.row < a.rows; s.next(), turn++) {
        float mu = mu_next, rs = rs_next, sums[sum_count] = {};
        mu_next = kept(a.mean, s.row + s.step);
        rs_next = kept(a.rstd, s.row + s.step);
        s.wait();
        if constexpr (FORWARD) {
#pragma unroll
            for (int v = 0; v < VECS; v++) {
                pack<T> x = s.get(0, v);
#pragma unroll
                for (int i = 0; i < size; i++)
                    sums[0] += x[i];
            }
            sums[0] = warp_sum(sums[0]);
            mu = count > 0 ? sums[0] / count : 0.0f; /* of the warp so far */
        }
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pack<T> x = s.get(0, v), dy = s.get(dy_at, v);
            pin(w[v]);
            if (!s.has(v))
                continue;
#pragma unroll
            for (int i = 0; i < size; i++) {
                float centred = x[i] - mu;
                if constexpr (BACKWARD) {
                    float g = dy[i] * w[v][i];
                    sums[q] += g;
                    sums[qx] += g * centred;
                }
                if constexpr (FORWARD)
                    sums[squares] += centred * centred;
            }
        }
        if constexpr (FORWARD) {
            for (int n = 1; n < sum_count; n++)
                sums[n] = warp_sum(sums[n]);
            group_moments<THREADS>(sums, count, counts[s.group], s.count(rank), rooms[turn & 1][s.group], s.group);
        } else {
            group_sum<THREADS>(sums, rooms[turn & 1][s.group], s.group);
        }
        s.refill(turn == 0);
#if __CUDA_ARCH__ >= 900
        if (cluster > 1) {
            auto all = exchange(mail, turn, rank, cluster, sums);
            if constexpr (FORWARD) {
                moments m = join(cluster, (float)a.hidden, [&](int p) { return make_float3(s.count(p), all[p][0], all[p][squares]); });
                sums[0] = m.mean;
                sums[squares] = m.squares;
            }
            if constexpr (BACKWARD) {
                sums[q] = sums[qx] = 0;
#pragma unroll 1
                for (int p = 0; p < cluster; p++) {
                    sums[q] += all[p][q];
                    sums[qx] += all[p][qx] + (FORWARD ? all[p][q] * (all[p][0] - sums[0]) : 0.0f);
                }
            }
        }
#endif
        if constexpr (FORWARD) {
            mu = sums[0];
            rs = inverse_root_mean(sums[squares], (float)a.hidden, a.eps);
            if (a.mean && rank == 0 && s.member == 0) {
                a.mean[s.row] = mu;
                a.rstd[s.row] = rs;
            }
        }
        float c1 = 0, c2 = 0;
        if constexpr (BACKWARD) {
            c1 = sums[qx] * rs * part;
            c2 = sums[q] * part;
        }
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pack<T> x = s.get(0, v), dy = s.get(dy_at, v), bias = {};
            if constexpr (!BACKWARD)
                bias = b[v];
            else if (FORWARD && s.has(v))
                bias = load_shared(a.bias + s.at(v));
            unpacked<T> y, dx;
            pin(w[v]);
#pragma unroll
            for (int i = 0; i < size; i++) {
                float n = (x[i] - mu) * rs;
                dx.set(i, rs * (dy[i] * w[v][i] - n * c1 - c2));
                if constexpr (BACKWARD) {
                    dw[v][i] += dy[i] * n;
                    db[v][i] += dy[i];
                }
                y.set(i, n * w[v][i] + bias[i]);
            }
            if (!s.has(v))
                continue;
            if (BACKWARD)
                store_once(a.dx + s.offset(v), dx);
            if (FORWARD)
                store_once(a.y + s.offset(v), y);
        }
    }
    s.end();
    let_next_start();
    if constexpr (BACKWARD) {
        float *to = a.partial + (int64_t)first * 2 * a.hidden;
        put_columns<ring, VECS>(s, (float *)raw, to, [&](int v, int i) { return dw[v][i]; });
        put_columns<ring, VECS>(s, (float *)raw, to + a.hidden, [&](int v, int i) { return db[v][i]; });
    }
}

/* Any hidden, element by element, for rows that do not divide into packs or are too long for the kernel above.
 * grid (parts)  block (512): a block takes every parts-th row, reads it two or three times (again from L2) and keeps dw and db
 * in its own two rows of `partial`. */
template <typename T, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(512) layer_norm_any(const __grid_constant__ args<T> a)
{
    __shared__ float room[2][3 * warp];
    float *dw = a.partial + (int64_t)blockIdx.x * 2 * a.hidden, *db = dw + a.hidden;
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const int64_t from = row * a.hidden;
        float total[1] = { 0 }, sums[3] = { 0, 0, 0 }; /* q, q (x - mu), (x - mu)^2 */
        for (int h = threadIdx.x; h < a.hidden; h += blockDim.x)
            total[0] += widen(a.x[from + h]);
        block_sum(total, room[0]);
        float mu = total[0] / (float)a.hidden;
        for (int h = threadIdx.x; h < a.hidden; h += blockDim.x) {
            float centred = widen(a.x[from + h]) - mu, q = BACKWARD ? widen(a.dy[from + h]) * widen(a.weight[h]) : 0.0f;
            sums[0] += q;
            sums[1] += q * centred;
            sums[2] += centred * centred;
        }
        block_sum(sums, room[1]);
        float rs = inverse_root_mean(sums[2], (float)a.hidden, a.eps);
        float c1 = sums[1] * rs / (float)a.hidden, c2 = sums[0] / (float)a.hidden;
        if (FORWARD && a.mean && threadIdx.x == 0) {
            a.mean[row] = mu;
            a.rstd[row] = rs;
        }
        for (int h = threadIdx.x; h < a.hidden; h += blockDim.x) {
            float n = (widen(a.x[from + h]) - mu) * rs, w = widen(a.weight[h]);
            if (FORWARD)
                a.y[from + h] = narrow<T>(n * w + widen(a.bias[h]));
            if (BACKWARD) {
                float dy = widen(a.dy[from + h]);
                dw[h] = (row == blockIdx.x ? 0.0f : dw[h]) + dy * n;
                db[h] = (row == blockIdx.x ? 0.0f : db[h]) + dy;
                a.dx[from + h] = narrow<T>(rs * (dy * w - n * c1 - c2));
            }
        }
    }
}

/* In a ring, where the row fits; `parts` gets the rows of `partial` written. */
template <typename T, bool FORWARD, bool BACKWARD> bool launch_rows(const args<T> &a, int *parts, cudaStream_t stream, cudaError_t *error)
{
    constexpr int vecs = ring_vecs<T, BACKWARD>;
    bool done = false;
    if (a.hidden % pack<T>::size == 0)
        with_row_ring<vecs>(a.hidden / pack<T>::size, [&]<int THREADS>(int cluster) {
            if constexpr (BACKWARD || THREADS == ring_threads) { /* forward, only rows too long for row_slice come here */
                using ring = row_ring<T, THREADS, vecs, BACKWARD ? 2 : 1>;
                constexpr auto kernel = layer_norm_rows<T, THREADS, FORWARD, BACKWARD>;
                int fit = resident_clusters<kernel>(cluster, ring_threads, ring::shared_bytes);
                if (fit == 0)
                    return;
                done = true;
                *parts = (int)row_blocks(a.rows, ring::groups, BACKWARD && fit > PARTS_LIMIT ? PARTS_LIMIT : fit);
                cluster_launch l(*parts, cluster, ring_threads, ring::shared_bytes, stream);
                *error = cudaLaunchKernelEx(&l.config, kernel, a, cluster);
            }
        });
    return done;
}

/* Rows that registers hold one by one; longer ones in a ring; `parts` blocks where neither takes them. */
template <typename T> cudaError_t forward(const args<T> &a, int parts, cudaStream_t stream)
{
    cudaError_t e = cudaSuccess;
    int64_t packs = a.hidden / pack<T>::size;
    if (a.hidden % pack<T>::size == 0 && a.rows < 0x0fffffff && packs <= 2048) {
        with_row_slice(packs, [&]<int THREADS, int VECS>(int cluster) {
            e = launch_slices<layer_norm_forward<T, THREADS, VECS>, row_slice<T, THREADS, VECS>>(a, a.rows, cluster, stream);
        });
        return e;
    }
    if (launch_rows<T, true, false>(a, &parts, stream, &e))
        return e;
    layer_norm_any<T, true, false><<<(unsigned)parts, 512, 0, stream>>>(a);
    return cudaGetLastError();
}

/* The ring kernel where it fits, else the plain one with `parts` blocks. */
template <typename T, bool FORWARD> cudaError_t backward(const args<T> &a, int parts, cudaStream_t stream)
{
    cudaError_t e = cudaSuccess;
    if (!launch_rows<T, FORWARD, true>(a, &parts, stream, &e)) {
        layer_norm_any<T, FORWARD, true><<<(unsigned)parts, 512, 0, stream>>>(a);
        e = cudaGetLastError();
    }
    return e != cudaSuccess ? e : launch_column_sums(a.partial, parts, a.hidden, a.dweight, a.dbias, stream);
}

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        args<T> a = {
            .x = data<T>(c, X), .weight = data<T>(c, WEIGHT), .bias = data<T>(c, BIAS), .dy = data<T>(c, DY),
            .y = data<T>(c, Y), .dx = data<T>(c, DX), .dweight = data<T>(c, DWEIGHT), .dbias = data<T>(c, DBIAS),
            .mean = data<float>(c, MEAN), .rstd = data<float>(c, RSTD), .partial = (float *)c->workspace,
            .rows = c->work.axis[ROWS], .hidden = (int)c->work.axis[HIDDEN], .eps = (float)c->work.scalar[0],
        };
        auto stream = (cudaStream_t)c->stream;
        int blocks = 2 * multiprocessors(), parts = (int)row_blocks(a.rows, 1, blocks < PARTS_LIMIT ? blocks : PARTS_LIMIT);
        return c->pass == KI_BACKWARD ? backward<T, false>(a, parts, stream)
            : c->pass == KI_FULL      ? backward<T, true>(a, parts, stream)
                                      : forward(a, parts, stream);
    });
}

KI_DEFINE_DEVICE(layer_norm, NULL, launch)

#endif
