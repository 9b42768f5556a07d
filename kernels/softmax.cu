/* Softmax over the last axis; exponentials and sums in fp32, one rounding at the end.
 * x, y, dy, dx [rows, hidden], row-major. A row stays in registers: row_slice.cuh.
 * forward   reads x, writes y                 2048 x 16384 bf16: 134 MB
 * backward  reads y and dy, writes dx         2048 x 16384 bf16: 201 MB
 * full      reads x and dy, writes y and dx   2048 x 16384 bf16: 268 MB
 * reference softmax_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "softmax_ref.h"
enum { X, Y, DY, DX };
enum { ROWS, HIDDEN };

#include "ref.h"

#ifndef __CUDACC__

static int derive(struct ki_case *c, const char **reason)
{
    if (c->axis[HIDDEN] <= INT32_MAX / 2)
        return 0;
    *reason = "hidden is too large";
    return -1;
}

/* operations.md 1.1: 2RHs, 3RHs; full 4RHs. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double all = (double)c->axis[ROWS] * (double)c->axis[HIDDEN] * (double)ki_dtype_bytes(c->dtype);
    double bytes = (pass == KI_BACKWARD ? 3 : pass == KI_FULL ? 4 : 2) * all;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(softmax);

#define ROW_SHAPE { KI_AXIS(ROWS), KI_AXIS(HIDDEN) }

extern const struct ki_operation softmax_operation;
const struct ki_operation softmax_operation = {
    .name = "softmax",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "rows", "hidden" },
    .tensor = {
        [X] = { "x", KI_INPUT, .shape = ROW_SHAPE },
        [Y] = { "y", KI_OUTPUT, .shape = ROW_SHAPE, .kept = true },
        [DY] = { "dy", KI_UPSTREAM, .shape = ROW_SHAPE, .of = { "y" } },
        [DX] = { "dx", KI_GRADIENT, .shape = ROW_SHAPE, .of = { "x" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(softmax),
};

#else

#include "row_slice.cuh"

namespace {

using namespace ki;

/* Tensors of one call. Backward reads y in the place of x. */
template <typename T> struct args {
    const T *from, *dy;
    T *y, *dx;
    int64_t rows;
    int hidden;
};

/* exp(v), as exact as the type can show. */
template <typename T> __device__ inline float exponential(float v)
{
    return sizeof(T) == 4 ? expf(v) : __expf(v);
}

/* Softmax forward, full with FULL: y = exp(x - max) / sum exp(x - max), dx = y (dy - sum(y dy))
 * x, y, dy, dx [rows, hidden]   sums in fp32
 * grid (rows / groups * cluster)  block (THREADS, or four rows of 32): row_slice.cuh; blocks of a cluster sum relative to their own
 * maximum and agree on one when they meet
 * needs hidden % pack == 0       bytes 2 rows hidden s; FULL 4 */
template <typename T, int THREADS, int VECS, bool FULL>
__global__ void __launch_bounds__(row_slice<T, THREADS, VECS>::threads, row_slice<T, THREADS, VECS>::blocks(FULL ? 2 : 1))
    softmax_rows(const __grid_constant__ args<T> a, int cluster)
{
    constexpr int sums = FULL ? 2 : 1;
    __shared__ float room[2][2 * warp], slots[8][3];
    row_slice<T, THREADS, VECS> s(a.hidden, cluster);
    if (s.row >= a.rows)
        return; /* whole warps */
    pack<T> x[VECS], dy[FULL ? VECS : 1];
    s.load(a.from, x);
    if constexpr (FULL)
        s.load(a.dy, dy);
    float most = -INFINITY, sum[sums] = {};
#pragma unroll
    for (int v = 0; v < VECS; v++)
        if (s.has(v))
#pragma unroll
            for (int i = 0; i < s.size; i++)
                most = fmaxf(most, x[v][i]);
    most = row_max<THREADS>(most, room[0]);
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        pin(x[v]);
        if (!s.has(v))
            continue;
#pragma unroll
        for (int i = 0; i < s.size; i++) {
            float e = exponential<T>(x[v][i] - most);
            if constexpr (sizeof(T) == 4)
                x[v].word[i] = __float_as_uint(e); /* 16-bit types make it again */
            sum[0] += e;
            if constexpr (FULL)
                sum[1] += e * dy[v][i];
        }
    }
    row_sum<THREADS>(sum, room[1]);
    float scale = 1, top = most;
    if (cluster > 1) {
        float own[3] = { most, sum[0], FULL ? sum[sums - 1] : 0.0f };
        swap(slots, s.rank, cluster, own);
        for (int p = 0; p < cluster; p++)
            top = fmaxf(top, slots[p][0]);
        sum[0] = sum[sums - 1] = 0;
        for (int p = 0; p < cluster; p++) {
            float shrunk = expf(slots[p][0] - top);
            sum[0] += slots[p][1] * shrunk;
            if constexpr (FULL)
                sum[1] += slots[p][2] * shrunk;
        }
        scale = expf(most - top);
    }
    scale = (sizeof(T) == 4 ? scale : 1.0f) / sum[0];
    float dot = FULL ? sum[sums - 1] / sum[0] : 0.0f;
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        unpacked<T> y, dx;
        if (!s.has(v))
            continue;
        pin(x[v]);
        if constexpr (FULL)
            pin(dy[v]);
#pragma unroll
        for (int i = 0; i < s.size; i++) {
            float p = (sizeof(T) == 4 ? x[v][i] : exponential<T>(x[v][i] - top)) * scale;
            y.set(i, p);
            if constexpr (FULL)
                dx.set(i, p * (dy[v][i] - dot));
        }
        store_once(a.y + s.offset(v), y);
        if (FULL)
            store_once(a.dx + s.offset(v), dx);
    }
}

/* Softmax backward: dx = y (dy - sum(y dy))
 * y, dy, dx [rows, hidden]   sums in fp32
 * grid (rows / groups * cluster)  block (THREADS, or four rows of 32): row_slice.cuh, WHOLE too: 0.1 to 0.3 us of 52 at 2048 x 16384 bf16
 * needs hidden % pack == 0       bytes 3 rows hidden s */
template <typename T, int THREADS, int VECS, bool WHOLE>
__global__ void __launch_bounds__(row_slice<T, THREADS, VECS>::threads, row_slice<T, THREADS, VECS>::blocks(2))
    softmax_gradient(const __grid_constant__ args<T> a, int cluster)
{
    __shared__ float room[warp], slots[8][1];
    row_slice<T, THREADS, VECS, WHOLE> s(a.hidden, cluster);
    if (s.row >= a.rows)
        return; /* whole warps */
    pack<T> y[VECS], dy[VECS];
    float dot[1] = { 0 };
    s.template load<true>(a.from, y);
    s.template load<true>(a.dy, dy);
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        pin(y[v]);
        pin(dy[v]);
#pragma unroll
        for (int i = 0; i < s.size; i++)
            dot[0] += y[v][i] * dy[v][i];
    }
    row_sum<THREADS>(dot, room);
    slice_sum(dot, s, slots);
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        unpacked<T> dx;
        if (!s.has(v))
            continue;
        pin(y[v]);
        pin(dy[v]);
#pragma unroll
        for (int i = 0; i < s.size; i++)
            dx.set(i, y[v].again(i) * (dy[v].again(i) - dot[0]));
        store_streamed(a.dx + s.offset(v), dx);
    }
}

/* Any hidden, element by element, for rows that do not divide into packs or are too long for the kernels above.
 * grid (blocks)  block (512): a block takes every blocks-th row and reads it up to three times (again from L2). */
template <typename T, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(512) softmax_any(const __grid_constant__ args<T> a)
{
    __shared__ float room[2][2 * warp];
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const int64_t from = row * a.hidden;
        float most = FORWARD ? -INFINITY : 0.0f, sums[2] = { 0, 0 };
        for (int h = threadIdx.x; FORWARD && h < a.hidden; h += blockDim.x)
            most = fmaxf(most, widen(a.from[from + h]));
        most = block_max(most, room[0]);
        for (int h = threadIdx.x; h < a.hidden; h += blockDim.x) {
            float e = widen(a.from[from + h]);
            e = FORWARD ? expf(e - most) : e;
            sums[0] += e;
            sums[1] += BACKWARD ? e * widen(a.dy[from + h]) : 0.0f;
        }
        block_sum(sums, room[1]);
        float scale = FORWARD ? 1.0f / sums[0] : 1.0f, dot = sums[1] * scale;
        for (int h = threadIdx.x; h < a.hidden; h += blockDim.x) {
            float p = widen(a.from[from + h]);
            p = FORWARD ? expf(p - most) * scale : p;
            if (FORWARD)
                a.y[from + h] = narrow<T>(p);
            if (BACKWARD)
                a.dx[from + h] = narrow<T>(p * (widen(a.dy[from + h]) - dot));
        }
    }
}

template <typename T, bool FORWARD, bool BACKWARD> cudaError_t launch_pass(const args<T> &a, cudaStream_t stream)
{
    cudaError_t e = cudaSuccess;
    bool done = a.hidden % pack<T>::size == 0 && a.rows < 0x0fffffff
        && with_row_slice(a.hidden / pack<T>::size, [&]<int THREADS, int VECS>(int cluster) {
               using shape = row_slice<T, THREADS, VECS>;
               if constexpr (FORWARD)
                   e = launch_slices<softmax_rows<T, THREADS, VECS, BACKWARD>, shape>(a, a.rows, cluster, stream);
               else if (a.hidden == shape::width)
                   e = launch_slices<softmax_gradient<T, THREADS, VECS, true>, shape>(a, a.rows, 1, stream);
               else
                   e = launch_slices<softmax_gradient<T, THREADS, VECS, false>, shape>(a, a.rows, cluster, stream);
           });
    if (done)
        return e;
    softmax_any<T, FORWARD, BACKWARD><<<row_blocks(a.rows, 1, 4 * multiprocessors()), 512, 0, stream>>>(a);
    return cudaGetLastError();
}

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        args<T> a = {
            .from = data<T>(c, c->pass == KI_BACKWARD ? Y : X), .dy = data<T>(c, DY), .y = data<T>(c, Y), .dx = data<T>(c, DX),
            .rows = c->work.axis[ROWS], .hidden = (int)c->work.axis[HIDDEN],
        };
        auto stream = (cudaStream_t)c->stream;
        return c->pass == KI_BACKWARD ? launch_pass<T, false, true>(a, stream)
            : c->pass == KI_FULL      ? launch_pass<T, true, true>(a, stream)
                                      : launch_pass<T, true, false>(a, stream);
    });
}

KI_DEFINE_DEVICE(softmax, NULL, launch)

#endif
