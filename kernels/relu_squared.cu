/* Squared ReLU, element by element, arithmetic in fp32 with one rounding at the end.
 * x, y, dy, dx [rows, hidden], row-major; only the number of elements matters.
 * forward   reads x, writes y                 4096 x 16384 bf16: 268 MB
 * backward  reads x and dy, writes dx         4096 x 16384 bf16: 403 MB
 * full      reads x and dy, writes y and dx   4096 x 16384 bf16: 537 MB
 * reference relu_squared_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "relu_squared_ref.h"
enum { X, Y, DY, DX };
enum { ROWS, HIDDEN };

#include "ref.h"

#ifndef __CUDACC__

/* operations.md 1.1: 2RHs, 3RHs; full 4RHs. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double all = (double)c->axis[ROWS] * (double)c->axis[HIDDEN] * (double)ki_dtype_bytes(c->dtype);
    double bytes = (pass == KI_BACKWARD ? 3 : pass == KI_FULL ? 4 : 2) * all;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(relu_squared);

#define ROW_SHAPE { KI_AXIS(ROWS), KI_AXIS(HIDDEN) }

extern const struct ki_operation relu_squared_operation;
const struct ki_operation relu_squared_operation = {
    .name = "relu_squared",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "rows", "hidden" },
    .tensor = {
        [X] = { "x", KI_INPUT, .shape = ROW_SHAPE },
        [Y] = { "y", KI_OUTPUT, .shape = ROW_SHAPE },
        [DY] = { "dy", KI_UPSTREAM, .shape = ROW_SHAPE, .of = { "y" } },
        [DX] = { "dx", KI_GRADIENT, .shape = ROW_SHAPE, .of = { "x" } },
    },
    .tolerance = "fp32_accumulate",
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(relu_squared),
};

#else

#include "common.cuh"

namespace {

using namespace ki;

/* Tensors of one call. Those that a pass does not use are NULL. */
template <typename T> struct args {
    const T *x, *dy;
    T *y, *dx;
    int64_t count;
};

/* max(x, 0); NaN stays NaN. */
__device__ inline float positive(float x)
{
    return x < 0.0f ? 0.0f : x;
}

/* Squared ReLU with FORWARD, its gradient with BACKWARD: m = max(x, 0), y = m^2, dx = 2 m dy
 * x, y, dy, dx [count]
 * grid (count / (256 * VECS * pack))  block (256): VECS 16-byte packs a thread and tensor, all asked for before any is used;
 * the last block takes the elements that fill no pack one by one
 * bytes 2 count s (BACKWARD 3, both 4) */
template <typename T, int VECS, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(256) relu_squared_packs(const __grid_constant__ args<T> a)
{
    constexpr int size = pack<T>::size;
    int64_t first = (int64_t)blockIdx.x * 256 * VECS + threadIdx.x, packs = a.count / size;
    pack<T> x[VECS], dy[VECS];
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        int64_t at = first + v * 256;
        if (at < packs)
            x[v] = load_once(a.x + at * size);
        if (BACKWARD && at < packs)
            dy[v] = load_once(a.dy + at * size);
    }
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        int64_t at = first + v * 256;
        if (at >= packs)
            continue;
        unpacked<T> y, dx;
#pragma unroll
        for (int i = 0; i < size; i++) {
            float m = positive(x[v][i]);
            y.set(i, m * m);
            if (BACKWARD)
                dx.set(i, 2.0f * m * dy[v][i]);
        }
        if (FORWARD)
            store_once(a.y + at * size, y);
        if (BACKWARD)
            store_once(a.dx + at * size, dx);
    }
    int64_t left = packs * size + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && left < a.count) {
        float m = positive(widen(a.x[left]));
        if (FORWARD)
            a.y[left] = narrow<T>(m * m);
        if (BACKWARD)
            a.dx[left] = narrow<T>(2.0f * m * widen(a.dy[left]));
    }
}

template <typename T, bool FORWARD, bool BACKWARD> cudaError_t launch_pass(const args<T> &a, cudaStream_t stream)
{
    int64_t packs = a.count / pack<T>::size + 1; /* at least one block, also for no pack */
    relu_squared_packs<T, 1, FORWARD, BACKWARD><<<(unsigned)((packs + 255) / 256), 256, 0, stream>>>(a);
    return cudaGetLastError();
}

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        args<T> a = {
            .x = data<T>(c, X), .dy = data<T>(c, DY), .y = data<T>(c, Y), .dx = data<T>(c, DX), .count = c->tensor[X].count,
        };
        auto stream = (cudaStream_t)c->stream;
        return c->pass == KI_BACKWARD ? launch_pass<T, false, true>(a, stream)
            : c->pass == KI_FULL      ? launch_pass<T, true, true>(a, stream)
                                      : launch_pass<T, true, false>(a, stream);
    });
}

KI_DEFINE_DEVICE(relu_squared, NULL, launch)

#endif
