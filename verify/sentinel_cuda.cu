#include "verify/sentinel.h"

#include <cuda_runtime.h>
#include <math.h>

#include "kernels/gemm.h"
#include "verify/stats.h"

namespace {

enum { SAMPLES = 9 };
constexpr size_t copy_bytes = (size_t)1 << 30;
constexpr int64_t side = 8192; /* of the matrix product */

/* A copy's speed depends on where its two buffers happen to lie: 3.81 or 4.25 TB/s on an H200, from one allocation to the next. The
 * best of several pairs is what the memory can do. */
constexpr int buffers = 4;

struct work {
    void *buffer[buffers]; /* copy: from the first to each other; product: a, b, c */
    int to;
    double spin_ns;
    bool gemm;
};

__global__ void nothing()
{
}

int enqueue_empty(void *, void *stream)
{
    nothing<<<1, 1, 0, (cudaStream_t)stream>>>();
    return (int)cudaGetLastError();
}

int enqueue_copy(void *at, void *stream)
{
    work *w = (work *)at;
    return bench_copy(stream, w->buffer[w->to], w->buffer[0], copy_bytes);
}

int enqueue_spin(void *at, void *stream)
{
    return bench_spin(stream, ((work *)at)->spin_ns);
}

int enqueue_product(void *at, void *stream)
{
    work *w = (work *)at;
    ki_gemm g = {};
    g.m = g.n = g.k = side;
    g.a = w->buffer[0];
    g.b = w->buffer[1];
    g.c = w->buffer[2];
    g.alpha = 1;
    g.dtype = KI_F16;
    return ki_gemm_launch(&g, stream);
}

/* Median window of one kind of call, after two that do not count; the clock beside the last. The very first call is made with the
 * stream free, because a library may wait for the device while it sets itself up. */
int median_ns(struct bench *b, const char *what, int (*enqueue)(void *, void *), work *w, double *out, double *mhz, struct err *e)
{
    bench_call call = { NULL, enqueue, NULL, NULL, w };
    bench_sample s = {};
    double ns[SAMPLES];
    int first = enqueue(w, bench_stream(b));
    if (first == 0)
        first = (int)cudaStreamSynchronize((cudaStream_t)bench_stream(b));
    if (first != 0)
        return err_set(e, ERR_IO, "sentinel %s: %s", what, cudaGetErrorString((cudaError_t)first));
    for (int i = -2; i < SAMPLES; i++) {
        int rc = bench_one(b, &call, (uint64_t)(i + 2), &s, e);
        if (rc == 1)
            err_set(e, ERR_IO, "sentinel %s: %s", what, bench_refused(b) ? bench_refused(b) : "refused");
        if (rc != 0)
            return -1;
        if (i >= 0)
            ns[i] = s.ns;
    }
    *out = stats_quantile(ns, SAMPLES, 0.5);
    *mhz = s.clock_mhz;
    return 0;
}

/* Least-squares slope of the windows on the lengths. */
double slope_of(const double *length, const double *window, int n)
{
    double mean_l = 0, mean_w = 0, above = 0, below = 0;
    for (int i = 0; i < n; i++) {
        mean_l += length[i] / n;
        mean_w += window[i] / n;
    }
    for (int i = 0; i < n; i++) {
        above += (length[i] - mean_l) * (window[i] - mean_w);
        below += (length[i] - mean_l) * (length[i] - mean_l);
    }
    return above / below;
}

int read_all(struct bench *b, work *w, double stretch, sentinels *s, struct err *e)
{
    const double known[WIRE_SPINS] = { 10e3, 50e3, 200e3, 1000e3 };
    double ns = 0, mhz = 0;
    if (median_ns(b, "empty launch", enqueue_empty, w, &s->empty_ns, &mhz, e) != 0)
        return -1;
    for (int i = 0; i < WIRE_SPINS; i++) {
        w->spin_ns = known[i] * stretch;
        if (median_ns(b, "spin", enqueue_spin, w, &s->spin_ns[i], &mhz, e) != 0)
            return -1;
    }
    s->slope = slope_of(known, s->spin_ns, WIRE_SPINS);
    s->copy_gbps = 0;
    for (w->to = 1; w->to < buffers; w->to++) {
        if (median_ns(b, "copy", enqueue_copy, w, &ns, &s->clock_mhz, e) != 0)
            return -1;
        s->copy_gbps = fmax(s->copy_gbps, 2 * (double)copy_bytes / ns);
    }
    s->matmul_tflops = NAN;
    if (w->gemm) {
        if (median_ns(b, "matrix product", enqueue_product, w, &ns, &mhz, e) != 0)
            return -1;
        s->matmul_tflops = 2.0 * side * side * side / ns * 1e-3;
    }
    return 0;
}

/* fp16 bits of small numbers of both signs: 2^-3 times 1 to 2. */
__global__ void fill_half(uint16_t *at, int64_t n)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        uint32_t r = (uint32_t)i * 2654435761u;
        at[i] = (uint16_t)((r >> 16 & 0x83ffu) | 0x3000u);
    }
}

}

extern "C" int sentinels_read(struct bench *b, double stretch, struct sentinels *s, struct err *e)
{
    work w = {};
    const char *reason;
    int rc = 0;
    for (int i = 0; i < buffers && rc == 0; i++) {
        rc = (int)cudaMalloc(&w.buffer[i], copy_bytes);
        if (rc == 0)
            fill_half<<<1024, 256, 0, (cudaStream_t)bench_stream(b)>>>((uint16_t *)w.buffer[i], (int64_t)(copy_bytes / 2));
    }
    w.gemm = rc == 0 && ki_gemm_open(&reason) == 0;
    if (rc != 0)
        err_set(e, rc == cudaErrorMemoryAllocation ? ERR_TEMP : ERR_IO, "sentinels: %s", cudaGetErrorString((cudaError_t)rc));
    else
        rc = read_all(b, &w, stretch, s, e);
    for (int i = 0; i < buffers; i++)
        cudaFree(w.buffer[i]);
    return rc == 0 ? 0 : -1;
}
