/* LayerNorm of rows: population variance from centred values, eps inside the root, one rounding at the end.
 * x, y, dy, dx [rows, hidden], weight, bias, dweight, dbias [hidden], row-major; mean, rstd [rows] fp32 are kept for backward.
 * forward   persistent blocks, weight and bias in registers         4096 x 16384 fp32: 537 MB
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

#include "row_stream.cuh"

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

/* LayerNorm with FORWARD, its gradients with BACKWARD, both at once with both:
 * n = (x - mu) rs, y = n w + b; q = dy w, dx = rs (q - n mean(q n) - mean q), dw = sum_r dy n, db = sum_r dy
 * x, y, dy, dx [rows, hidden]   weight, bias [hidden]   mean, rstd [rows]   partial [clusters, 2, hidden]   sums in fp32
 * grid (clusters * blocks a cluster)  block (THREADS): a cluster takes every clusters-th row, each of its blocks a slice of
 * THREADS * VECS packs of it, through a ring of SLOTS packs a thread (row_stream.cuh); sums of a row cross the cluster through
 * distributed shared memory. Weight (and bias, without BACKWARD), dw and db stay in registers from row to row.
 * needs hidden % pack == 0; clusters of more than one block need sm_90
 * bytes 2 rows hidden s (BACKWARD 3, both 4) + 16 clusters hidden for the partial sums */
template <typename T, int THREADS, int VECS, int SLOTS, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(THREADS, 1) layer_norm_rows(const __grid_constant__ args<T> a, int cluster)
{
    constexpr int size = pack<T>::size;
    extern __shared__ __align__(16) unsigned char raw[];
    __shared__ float room[2][3 * warp], peers[2][3 * 8];
    int rank = blockIdx.x % cluster, first = blockIdx.x / cluster, clusters = gridDim.x / cluster, turn = 0;
    row_stream<T, THREADS, VECS, BACKWARD ? 2 : 1, SLOTS> s;
    s.source[0] = a.x;
    if constexpr (BACKWARD)
        s.source[1] = a.dy;
    s.rows = a.rows;
    s.length = a.hidden;
    s.start = rank * s.width;
    s.begin(raw, first, clusters);

    uint4 w[VECS], b[BACKWARD ? 1 : VECS]; /* packed */
    [[maybe_unused]] float dw[VECS][size] = {}, db[VECS][size] = {};
#pragma unroll
    for (int v = 0; v < VECS; v++)
        if (s.has(v)) {
            w[v] = __ldg((const uint4 *)(a.weight + s.at(v)));
            if (!BACKWARD)
                b[BACKWARD ? 0 : v] = __ldg((const uint4 *)(a.bias + s.at(v)));
        }
    auto sum = [&]<int N>(float (&v)[N]) {
        block_sum(v, room[turn]);
        if (cluster > 1)
            cluster_sum(v, peers[turn], rank, cluster);
        turn ^= 1;
    };
    auto kept = [&](const float *of, int64_t row) { return !FORWARD && row < a.rows ? of[row] : 0.0f; };
    float mu_next = kept(a.mean, s.row), rs_next = kept(a.rstd, s.row);
#if __CUDA_ARCH__ >= 900
    if (cluster > 1)
        cooperative_groups::this_cluster().sync(); /* peers' shared memory exists only once they run */
#endif
    for (; s.row < a.rows; s.next()) {
        float mu = mu_next, rs = rs_next, part = 1.0f / (float)a.hidden;
        mu_next = kept(a.mean, s.row + s.step);
        rs_next = kept(a.rstd, s.row + s.step);
        s.wait();
        if (FORWARD) {
            float total[1] = { 0 };
#pragma unroll
            for (int v = 0; v < VECS; v++)
                if (s.has(v)) {
                    pack<T> x = s.get(0, v);
#pragma unroll
                    for (int i = 0; i < size; i++)
                        total[0] += x[i];
                }
            sum(total);
            mu = total[0] / (float)a.hidden;
        }
        float sums[BACKWARD ? FORWARD ? 3 : 2 : 1] = {}; /* q, q (x - mu); last (x - mu)^2 */
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            if (!s.has(v))
                continue;
            pack<T> x = s.get(0, v), dy = s.get(BACKWARD ? 1 : 0, v), weight = unpack<T>(w[v]);
#pragma unroll
            for (int i = 0; i < size; i++) {
                float centred = x[i] - mu;
                if (FORWARD)
                    sums[BACKWARD ? 2 : 0] += centred * centred;
                if constexpr (BACKWARD) {
                    float q = dy[i] * weight[i];
                    sums[0] += q;
                    sums[1] += q * centred;
                }
            }
        }
        sum(sums);
        if (FORWARD)
            rs = 1.0f / sqrtf(sums[BACKWARD ? 2 : 0] / (float)a.hidden + a.eps);
        if (FORWARD && a.mean && rank == 0 && threadIdx.x == 0) {
            a.mean[s.row] = mu;
            a.rstd[s.row] = rs;
        }
        float c1 = 0, c2 = 0;
        if constexpr (BACKWARD) {
            c1 = sums[1] * rs * part;
            c2 = sums[0] * part;
        }
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pack<T> x = s.get(0, v), dy = s.get(BACKWARD ? 1 : 0, v), y, dx;
            s.release(v);
            if (!s.has(v))
                continue;
            pack<T> weight = unpack<T>(w[v]), bias = FORWARD && BACKWARD ? load_shared(a.bias + s.at(v)) : unpack<T>(b[BACKWARD ? 0 : v]);
#pragma unroll
            for (int i = 0; i < size; i++) {
                float n = (x[i] - mu) * rs;
                if (FORWARD)
                    y.set(i, n * weight[i] + bias[i]);
                if (BACKWARD) {
                    dx.set(i, rs * (dy[i] * weight[i] - n * c1 - c2));
                    dw[v][i] += dy[i] * n;
                    db[v][i] += dy[i];
                }
            }
            if (FORWARD)
                store_once(a.y + s.offset(v), y);
            if (BACKWARD)
                store_once(a.dx + s.offset(v), dx);
        }
    }
    if constexpr (BACKWARD) {
        float *to = a.partial + (int64_t)first * 2 * a.hidden;
#pragma unroll
        for (int v = 0; v < VECS; v++)
            for (int i = 0; i < size; i++)
                if (s.has(v)) {
                    to[s.at(v) + i] = dw[v][i];
                    to[a.hidden + s.at(v) + i] = db[v][i];
                }
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
        float rs = 1.0f / sqrtf(sums[2] / (float)a.hidden + a.eps);
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

/* The streaming kernel where it fits, else the plain one; `parts` blocks at most, and gets the rows of `partial` written. */
template <typename T, int THREADS, int VECS, int SLOTS, bool FORWARD, bool BACKWARD>
cudaError_t launch_rows(const args<T> &a, int *parts, cudaStream_t stream)
{
    constexpr auto kernel = layer_norm_rows<T, THREADS, VECS, SLOTS, FORWARD, BACKWARD>;
    using shape = row_stream<T, THREADS, VECS, BACKWARD ? 2 : 1, SLOTS>;
    int cluster = 1, fit = 0;
    while (cluster < 8 && cluster * shape::width < a.hidden)
        cluster *= 2;
    if (cluster * shape::width >= a.hidden && a.hidden % pack<T>::size == 0)
        fit = cluster > 1 ? resident_clusters<kernel>(cluster, THREADS, shape::shared_bytes)
                          : resident_blocks<kernel>(THREADS, shape::shared_bytes);
    if (fit == 0) {
        layer_norm_any<T, FORWARD, BACKWARD><<<(unsigned)*parts, 512, 0, stream>>>(a);
        return cudaGetLastError();
    }
    int most = BACKWARD ? 3 * multiprocessors() : fit; /* partial sums cost traffic too */
    most = BACKWARD && most > PARTS_LIMIT ? PARTS_LIMIT : most;
    *parts = (int)row_blocks(a.rows, 1, fit < most ? fit : most);
    cudaLaunchAttribute size = { .id = cudaLaunchAttributeClusterDimension };
    size.val.clusterDim = { (unsigned)cluster, 1, 1 };
    cudaLaunchConfig_t config = { .gridDim = dim3((unsigned)(*parts * cluster)), .blockDim = dim3(THREADS),
        .dynamicSmemBytes = shape::shared_bytes, .stream = stream, .attrs = &size, .numAttrs = cluster > 1 ? 1u : 0u };
    return cudaLaunchKernelEx(&config, kernel, a, cluster);
}

template <typename T> cudaError_t forward(const args<T> &a, int parts, cudaStream_t stream)
{
    int packs = a.hidden / pack<T>::size;
    return packs <= 128 ? launch_rows<T, 128, 1, 3, true, false>(a, &parts, stream)
        : packs <= 256  ? launch_rows<T, 128, 2, 4, true, false>(a, &parts, stream)
        : packs <= 512  ? launch_rows<T, 128, 4, 8, true, false>(a, &parts, stream)
        : packs <= 1024 ? launch_rows<T, 256, 4, 8, true, false>(a, &parts, stream)
        : packs <= 2048 ? launch_rows<T, 512, 4, 12, true, false>(a, &parts, stream)
                        : launch_rows<T, 512, 8, 24, true, false>(a, &parts, stream);
}

template <typename T, bool FORWARD> cudaError_t backward(const args<T> &a, int parts, cudaStream_t stream)
{
    int packs = a.hidden / pack<T>::size;
    cudaError_t e = packs <= 128 ? launch_rows<T, 128, 1, 3, FORWARD, true>(a, &parts, stream)
        : packs <= 256  ? launch_rows<T, 256, 1, 3, FORWARD, true>(a, &parts, stream)
        : packs <= 512  ? launch_rows<T, 256, 2, 6, FORWARD, true>(a, &parts, stream)
        : packs <= 1024 ? launch_rows<T, 512, 2, 6, FORWARD, true>(a, &parts, stream)
                        : launch_rows<T, 512, 4, 12, FORWARD, true>(a, &parts, stream);
    return e != cudaSuccess ? e : launch_affine_sums(a.partial, parts, a.hidden, a.dweight, a.dbias, stream);
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
