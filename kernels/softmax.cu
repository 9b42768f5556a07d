/* Softmax over the last axis; exponentials and sums in fp32, one rounding at the end.
 * x, y, dy, dx [rows, hidden], row-major. Rows pass through the ring of row_stream.cuh.
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

#include "row_stream.cuh"

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
 * grid (resident blocks)  block (THREADS, or four rows of 32): row_stream.cuh; a thread's exponentials stay in registers
 * needs hidden % pack == 0 and hidden <= THREADS * VECS * pack
 * bytes 2 rows hidden s; FULL 4 */
template <typename T, int THREADS, int VECS, int SLOTS, bool FULL>
__global__ void __launch_bounds__(THREADS == warp ? 128 : THREADS) softmax_rows(const __grid_constant__ args<T> a)
{
    constexpr int size = pack<T>::size;
    extern __shared__ __align__(16) unsigned char raw[];
    __shared__ float room[2][2 * warp];
    row_stream<T, THREADS, VECS, FULL ? 2 : 1, SLOTS> s;
    s.source[0] = a.from;
    if constexpr (FULL)
        s.source[1] = a.dy;
    s.rows = a.rows;
    s.length = a.hidden;
    s.start = 0;
    s.begin(raw, blockIdx.x, gridDim.x);
    for (; s.row < a.rows; s.next()) {
        float most = -INFINITY, sums[FULL ? 2 : 1] = {}, e[VECS][size];
        s.wait();
#pragma unroll
        for (int v = 0; v < VECS; v++)
            if (s.has(v)) {
                pack<T> x = s.get(0, v);
#pragma unroll
                for (int i = 0; i < size; i++)
                    most = fmaxf(most, x[i]);
            }
        most = row_max<THREADS>(most, room[0]);
#pragma unroll
        for (int v = 0; v < VECS; v++)
            if (s.has(v)) {
                pack<T> x = s.get(0, v), dy = s.get(FULL ? 1 : 0, v);
#pragma unroll
                for (int i = 0; i < size; i++) {
                    e[v][i] = exponential<T>(x[i] - most);
                    sums[0] += e[v][i];
                    if constexpr (FULL)
                        sums[1] += e[v][i] * dy[i];
                }
            }
        row_sum<THREADS>(sums, room[1]);
        float scale = 1.0f / sums[0], dot = FULL ? sums[FULL ? 1 : 0] * scale : 0.0f;
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pack<T> dy = s.get(FULL ? 1 : 0, v), y, dx;
            s.release(v);
            if (!s.has(v))
                continue;
#pragma unroll
            for (int i = 0; i < size; i++) {
                float p = e[v][i] * scale;
                y.set(i, p);
                dx.set(i, p * (dy[i] - dot));
            }
            store_once(a.y + s.offset(v), y);
            if (FULL)
                store_once(a.dx + s.offset(v), dx);
        }
    }
}

/* Softmax backward: dx = y (dy - sum(y dy))
 * y, dy, dx [rows, hidden]   sums in fp32
 * grid (resident blocks)  block (THREADS, or four rows of 32): row_stream.cuh
 * needs hidden % pack == 0 and hidden <= THREADS * VECS * pack       bytes 3 rows hidden s */
template <typename T, int THREADS, int VECS, int SLOTS>
__global__ void __launch_bounds__(THREADS == warp ? 128 : THREADS) softmax_gradient(const __grid_constant__ args<T> a)
{
    constexpr int size = pack<T>::size;
    extern __shared__ __align__(16) unsigned char raw[];
    __shared__ float room[2][warp];
    row_stream<T, THREADS, VECS, 2, SLOTS> s;
    s.source[0] = a.from;
    s.source[1] = a.dy;
    s.rows = a.rows;
    s.length = a.hidden;
    s.start = 0;
    s.begin(raw, blockIdx.x, gridDim.x);
    for (int turn = 0; s.row < a.rows; s.next(), turn ^= 1) {
        float dot[1] = { 0 };
        s.wait();
#pragma unroll
        for (int v = 0; v < VECS; v++)
            if (s.has(v)) {
                pack<T> y = s.get(0, v), dy = s.get(1, v);
#pragma unroll
                for (int i = 0; i < size; i++)
                    dot[0] += y[i] * dy[i];
            }
        row_sum<THREADS>(dot, room[turn]);
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pack<T> y = s.get(0, v), dy = s.get(1, v), dx;
            s.release(v);
            if (!s.has(v))
                continue;
#pragma unroll
            for (int i = 0; i < size; i++)
                dx.set(i, y[i] * (dy[i] - dot[0]));
            store_once(a.dx + s.offset(v), dx);
        }
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
    constexpr int inputs = BACKWARD ? 2 : 1;
    int64_t packs = a.hidden / pack<T>::size;
    if (a.hidden % pack<T>::size == 0 && packs <= 4096)
        return with_row_shape<4096>(packs, [&]<int THREADS, int VECS>() {
            constexpr int slots = row_slots(VECS, inputs);
            using shape = row_stream<T, THREADS, VECS, inputs, slots>;
            auto start = [&]<auto KERNEL>() {
                int fit = resident_blocks<KERNEL>(shape::threads, shape::shared_bytes);
                if (fit > 0)
                    KERNEL<<<row_blocks(a.rows, shape::groups, fit), shape::threads, shape::shared_bytes, stream>>>(a);
                else
                    softmax_any<T, FORWARD, BACKWARD><<<row_blocks(a.rows, 1, 4 * multiprocessors()), 512, 0, stream>>>(a);
                return cudaGetLastError();
            };
            if constexpr (FORWARD)
                return start.template operator()<softmax_rows<T, THREADS, VECS, slots, BACKWARD>>();
            else
                return start.template operator()<softmax_gradient<T, THREADS, VECS, slots>>();
        });
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
