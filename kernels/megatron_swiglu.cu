/* SwiGLU activation in Megatron's [seq, batch, 2 ffn] layout: the first ffn columns gate the last ffn; one rounding at the end.
 * y, dy [seq, batch, 2 ffn], out, dout [seq, batch, ffn], row-major. The input is called y, as upstream calls it. The upstream
 * gradient is dense, as for every operation here; what upstream timed used a broadcast 1.
 * forward   reads y, writes out                 16384 x 14336 bf16: 1409 MB
 * backward  reads y and dout, writes dy         16384 x 14336 bf16: 2349 MB
 * full      reads y and dout, writes out and dy 16384 x 14336 bf16: 2819 MB
 * reference megatron_swiglu_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "megatron_swiglu_ref.h"
enum { IN, OUT, DOUT, DIN };
enum { SEQ, BATCH, FFN, FFN_DOUBLE };

#include "ref.h"

#ifndef __CUDACC__

static int derive(struct ki_case *c, const char **reason)
{
    if (c->axis[FFN] > INT32_MAX / 2 || c->axis[SEQ] > INT32_MAX || c->axis[BATCH] > INT32_MAX) {
        *reason = "an axis is too large";
        return -1;
    }
    c->axis[FFN_DOUBLE] = 2 * c->axis[FFN];
    return 0;
}

/* operations.md 1.1 with a dense gradient, N = S * B: 3NFs, 5NFs; full 6NFs. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double rows = (double)c->axis[SEQ] * (double)c->axis[BATCH];
    double all = rows * (double)c->axis[FFN] * (double)ki_dtype_bytes(c->dtype);
    double bytes = (pass == KI_BACKWARD ? 5 : pass == KI_FULL ? 6 : 3) * all;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(megatron_swiglu);

#define IN_SHAPE { KI_AXIS(SEQ), KI_AXIS(BATCH), KI_AXIS(FFN_DOUBLE) }
#define OUT_SHAPE { KI_AXIS(SEQ), KI_AXIS(BATCH), KI_AXIS(FFN) }

extern const struct ki_operation megatron_swiglu_operation;
const struct ki_operation megatron_swiglu_operation = {
    .name = "megatron_swiglu",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 3,
    .axis = { "seq", "batch", "ffn", "ffn_double" },
    .tensor = {
        [IN] = { "y", KI_INPUT, .shape = IN_SHAPE },
        [OUT] = { "out", KI_OUTPUT, .shape = OUT_SHAPE },
        [DOUT] = { "dout", KI_UPSTREAM, .shape = OUT_SHAPE, .of = { "out" } },
        [DIN] = { "dy", KI_GRADIENT, .shape = IN_SHAPE, .of = { "y" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(megatron_swiglu),
};

#else

#include "common.cuh"

namespace {

using namespace ki;

enum { THREADS = 256, VECS = 1 };

/* Tensors of one call. Those that a pass does not use are NULL. */
template <typename T> struct args {
    const T *in, *dout;
    T *out, *din;
    int64_t rows;
    int ffn;
};

struct swiglu {
    float out, dgate, dup;
};

/* One element. 16-bit results do not show what the fast exponential and division lose; fp32 would. */
template <typename T> __device__ inline swiglu swiglu_at(float g, float u, float dout)
{
    float s = sizeof(T) == 4 ? 1.0f / (1.0f + expf(-g)) : __fdividef(1.0f, 1.0f + __expf(-g)), silu = g * s;
    return { silu * u, dout * u * (s + silu * (1.0f - s)), dout * silu };
}

/* SwiGLU with FORWARD, its gradients with BACKWARD: y = [g, u], s = sigma(g), out = g s u, dg = dout u s (1 + g (1 - s)), du = dout g s
 * y, dy [rows, 2 ffn]   out, dout [rows, ffn]
 * grid (rows ffn / (256 * VECS * pack))  block (256): a block takes THREADS * VECS packs of out that follow one another, VECS a
 * thread; a thread asks for all its packs before it uses one; needs ffn % pack == 0
 * bytes 3 rows ffn s (BACKWARD 5, both 6) */
template <typename T, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(THREADS) swiglu_packs(const __grid_constant__ args<T> a)
{
    constexpr int size = pack<T>::size;
    unsigned packs = (unsigned)a.ffn / size; /* a row */
    int64_t base = (int64_t)blockIdx.x * THREADS * VECS, first = base / packs;
    unsigned within = (unsigned)(base - first * packs) + threadIdx.x;
    pack<T> g[VECS], u[VECS], d[VECS];
    int64_t gate[VECS], single[VECS];
    bool has[VECS];
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        unsigned n = within + v * THREADS, down = n / packs;
        int64_t row = first + down, column = (int64_t)(n - down * packs) * size;
        has[v] = row < a.rows;
        gate[v] = row * 2 * a.ffn + column;
        single[v] = row * a.ffn + column;
        if (!has[v])
            continue;
        g[v] = load_once(a.in + gate[v]);
        u[v] = load_once(a.in + gate[v] + a.ffn);
        if (BACKWARD)
            d[v] = load_once(a.dout + single[v]);
    }
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        if (!has[v])
            continue;
        unpacked<T> out, dg, du;
#pragma unroll
        for (int i = 0; i < size; i++) {
            swiglu e = swiglu_at<T>(g[v][i], u[v][i], BACKWARD ? d[v][i] : 0.0f);
            out.set(i, e.out);
            dg.set(i, e.dgate);
            du.set(i, e.dup);
        }
        if (FORWARD)
            store_once(a.out + single[v], out);
        if (BACKWARD) {
            store_once(a.din + gate[v], dg);
            store_once(a.din + gate[v] + a.ffn, du);
        }
    }
}

/* Any ffn, an element of out a thread. grid (blocks)  block (256): steps through the tensor. */
template <typename T, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(THREADS) swiglu_any(const __grid_constant__ args<T> a)
{
    int64_t count = a.rows * a.ffn, step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        int64_t gate = i + i / a.ffn * a.ffn;
        swiglu e = swiglu_at<T>(widen(a.in[gate]), widen(a.in[gate + a.ffn]), BACKWARD ? widen(a.dout[i]) : 0.0f);
        if (FORWARD)
            a.out[i] = narrow<T>(e.out);
        if (BACKWARD) {
            a.din[gate] = narrow<T>(e.dgate);
            a.din[gate + a.ffn] = narrow<T>(e.dup);
        }
    }
}

template <typename T, bool FORWARD, bool BACKWARD> cudaError_t launch_pass(const args<T> &a, cudaStream_t stream)
{
    int64_t blocks = (a.rows * (a.ffn / pack<T>::size) + THREADS * VECS - 1) / (THREADS * VECS);
    if (a.ffn % pack<T>::size == 0 && blocks <= 0x7fffffff)
        swiglu_packs<T, FORWARD, BACKWARD><<<(unsigned)blocks, THREADS, 0, stream>>>(a);
    else
        swiglu_any<T, FORWARD, BACKWARD><<<(unsigned)(8 * multiprocessors()), THREADS, 0, stream>>>(a);
    return cudaGetLastError();
}

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        args<T> a = {
            .in = data<T>(c, IN), .dout = data<T>(c, DOUT), .out = data<T>(c, OUT), .din = data<T>(c, DIN),
            .rows = c->work.axis[SEQ] * c->work.axis[BATCH], .ffn = (int)c->work.axis[FFN],
        };
        auto stream = (cudaStream_t)c->stream;
        return c->pass == KI_BACKWARD ? launch_pass<T, false, true>(a, stream)
            : c->pass == KI_FULL      ? launch_pass<T, true, true>(a, stream)
                                      : launch_pass<T, true, false>(a, stream);
    });
}

KI_DEFINE_DEVICE(megatron_swiglu, NULL, launch)

#endif
