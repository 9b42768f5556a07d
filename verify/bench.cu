#include "verify/bench.h"

#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "verify/stats.h"

extern "C" const struct bench_limits bench_defaults = {
    .least_samples = 200, .least_gpu_ns = 0.25e9, .cap_ns = 2e9, .wall_ns = 20e9, .precision = 0.005, .warm_ns = 0.1e9,
};

namespace {

constexpr size_t source_flush_bytes = (size_t)256 << 20;
constexpr unsigned long long deadline_ns = 2ull * 1000 * 1000 * 1000;
constexpr double probe_ns = 20e3;
constexpr int host_samples = 20; /* the first ones: later the queue is full, and the host waits for the device */

__device__ unsigned long long device_ns()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

/* What host and device share, in mapped host memory. */
struct shared_words {
    volatile uint32_t ticket;  /* host: samples up to this one may go */
    volatile uint32_t expired; /* device: the blocking kernel gave up */
    volatile unsigned long long probe_cycles, probe_ns;
};

/* Hold the stream until the host raises the ticket. One thread; reads host memory about every microsecond. */
__global__ void hold(shared_words *s, uint32_t ticket)
{
    unsigned long long start = device_ns();
    while ((int32_t)(s->ticket - ticket) < 0) {
        if (device_ns() - start > deadline_ns) {
            s->expired = 1;
            return;
        }
        __nanosleep(200);
    }
}

/* Cycles and nanoseconds between two edges of the nanosecond timer, about probe_ns apart. */
__global__ void probe_clock(shared_words *s, unsigned long long ns)
{
    unsigned long long edge = device_ns(), t, from_ns, from_cycles;
    while ((from_ns = device_ns()) == edge)
        ;
    from_cycles = clock64();
    while ((t = device_ns()) < from_ns + ns)
        ;
    s->probe_cycles = clock64() - from_cycles;
    s->probe_ns = t - from_ns;
}

__global__ void spin(unsigned long long ns)
{
    unsigned long long start = device_ns();
    while (device_ns() - start < ns)
        ;
}

constexpr int wide = 256;

/* grid (n / wide)  block (wide): a 16-byte word a thread, read and written once, no hints: the fastest of 40 variants, as fast as
 * the driver's own copy. bytes 32 n      2 GiB each way: 4.28 TB/s on an H200 */
__global__ void copy(uint4 *to, const uint4 *from, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * wide + threadIdx.x;
    if (i < n)
        to[i] = from[i];
}

/* As copy, writing one value. bytes 16 n */
__global__ void flush_words(uint4 *to, int64_t n, uint32_t value)
{
    int64_t i = (int64_t)blockIdx.x * wide + threadIdx.x;
    if (i < n)
        to[i] = make_uint4(value, value, value, value);
}

unsigned tiles(size_t size_bytes)
{
    return (unsigned)((size_bytes / 16 + wide - 1) / wide);
}

double wall_ns()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int fail(struct err *e, int rc, const char *what)
{
    if (rc == 0)
        return 0;
    return err_set(e, rc == cudaErrorMemoryAllocation ? ERR_TEMP : ERR_IO, "%s: %s", what, cudaGetErrorString((cudaError_t)rc));
}

}

struct bench {
    cudaStream_t stream;
    cudaEvent_t start, stop;
    void *flush;
    size_t flush_bytes, l2_bytes;
    shared_words *host, *device;
    uint32_t ticket;
    uint32_t (*throttle)(void *);
    void *throttle_state;
    size_t carve_out_floor; /* what the limit reads after it was set to zero */
    const char *refused;
};

static int open_parts(struct bench *b)
{
    int device = 0, l2 = 0;
    cudaError_t rc = cudaGetDevice(&device);
    if (rc == cudaSuccess)
        rc = cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device);
    b->l2_bytes = (size_t)l2;
    b->flush_bytes = 2 * b->l2_bytes > source_flush_bytes ? 2 * b->l2_bytes : source_flush_bytes;
    if (rc == cudaSuccess)
        rc = cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking);
    if (rc == cudaSuccess)
        rc = cudaEventCreate(&b->start);
    if (rc == cudaSuccess)
        rc = cudaEventCreate(&b->stop);
    if (rc == cudaSuccess)
        rc = cudaMalloc(&b->flush, b->flush_bytes);
    if (rc == cudaSuccess)
        rc = cudaHostAlloc((void **)&b->host, sizeof *b->host, cudaHostAllocMapped);
    if (rc == cudaSuccess)
        rc = cudaHostGetDevicePointer((void **)&b->device, b->host, 0);
    return (int)rc;
}

/* No part of L2 may be set aside for lines that survive the flush. A device without the feature says so and has no carve-out. */
static int clear_carve_out(struct bench *b)
{
    cudaStreamAttrValue window = {};
    if (cudaStreamSetAttribute(b->stream, cudaStreamAttributeAccessPolicyWindow, &window) != cudaSuccess)
        cudaGetLastError();
    cudaError_t rc = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
    if (rc == cudaErrorUnsupportedLimit || rc == cudaErrorNotSupported || rc == cudaErrorInvalidValue) {
        cudaGetLastError();
        return 0;
    }
    if (rc == cudaSuccess)
        rc = cudaCtxResetPersistingL2Cache();
    return (int)rc;
}

struct bench *bench_open(uint32_t (*throttle)(void *), void *state, struct err *e)
{
    struct bench *b = (struct bench *)calloc(1, sizeof *b);
    if (!b) {
        err_set(e, ERR_TEMP, "out of memory");
        return NULL;
    }
    b->throttle = throttle;
    b->throttle_state = state;
    if (fail(e, open_parts(b), "opening the timer") != 0) {
        bench_close(b);
        return NULL;
    }
    b->host->ticket = 0;
    b->host->expired = 0;
    if (fail(e, clear_carve_out(b), "clearing the L2 carve-out") != 0) {
        bench_close(b);
        return NULL;
    }
    if (cudaDeviceGetLimit(&b->carve_out_floor, cudaLimitPersistingL2CacheSize) != cudaSuccess)
        cudaGetLastError();
    return b;
}

const char *bench_refused(const struct bench *b)
{
    return b->refused;
}

void bench_close(struct bench *b)
{
    if (!b)
        return;
    if (b->stream)
        cudaStreamDestroy(b->stream);
    if (b->start)
        cudaEventDestroy(b->start);
    if (b->stop)
        cudaEventDestroy(b->stop);
    cudaFree(b->flush);
    if (b->host)
        cudaFreeHost((void *)b->host);
    free(b);
}

void *bench_stream(const struct bench *b)
{
    return b->stream;
}

int64_t bench_l2_bytes(const struct bench *b)
{
    return (int64_t)b->l2_bytes;
}

int bench_spin(void *stream, double ns)
{
    spin<<<1, 1, 0, (cudaStream_t)stream>>>((unsigned long long)ns);
    return (int)cudaGetLastError();
}

int bench_copy(void *stream, void *to, const void *from, size_t size_bytes)
{
    copy<<<tiles(size_bytes), wide, 0, (cudaStream_t)stream>>>((uint4 *)to, (const uint4 *)from, (int64_t)(size_bytes / 16));
    return (int)cudaGetLastError();
}

/* Write `size_bytes` of the flush buffer. */
static int queue_flush(struct bench *b, size_t size_bytes, uint32_t value)
{
    flush_words<<<tiles(size_bytes), wide, 0, b->stream>>>((uint4 *)b->flush, (int64_t)(size_bytes / 16), value);
    return (int)cudaGetLastError();
}

static int queue_hold(struct bench *b)
{
    hold<<<1, 1, 0, b->stream>>>(b->device, ++b->ticket);
    return (int)cudaGetLastError();
}

/* Queue the clock probe; read_probe() gives its answer once the stream is done. */
static int queue_probe(struct bench *b)
{
    probe_clock<<<1, 1, 0, b->stream>>>(b->device, (unsigned long long)probe_ns);
    return (int)cudaGetLastError();
}

static double read_probe_mhz(const struct bench *b)
{
    return b->host->probe_ns ? (double)b->host->probe_cycles * 1e3 / (double)b->host->probe_ns : 0;
}

/* Whether the call set L2 aside for itself: a limit above the zero it found, or a window on the stream it was given. */
static bool look_for_carve_out(struct bench *b)
{
    size_t limit = 0;
    cudaStreamAttrValue window = {};
    bool set = cudaDeviceGetLimit(&limit, cudaLimitPersistingL2CacheSize) == cudaSuccess && limit > b->carve_out_floor;
    if (cudaStreamGetAttribute(b->stream, cudaStreamAttributeAccessPolicyWindow, &window) == cudaSuccess)
        set = set || window.accessPolicyWindow.num_bytes > 0;
    if (set) {
        b->refused = "set a part of L2 aside";
        clear_carve_out(b);
    }
    cudaGetLastError();
    return set;
}

/* All that comes before the window. `settled`: wait for the preparation, so that whoever looks on while the stream is held sees what
 * the call will find, however long that took to make. */
static int queue_before(struct bench *b, const struct bench_call *c, uint64_t number, bool settled)
{
    b->refused = NULL; /* what an earlier call did is not this one's */
    int rc = clear_carve_out(b);
    if (rc == 0 && c->prepare)
        rc = c->prepare(c->state, b->stream, number);
    if (rc == 0 && settled)
        rc = (int)cudaStreamSynchronize(b->stream);
    if (rc == 0)
        rc = queue_hold(b);
    return rc ? rc : queue_flush(b, 2 * b->l2_bytes, (uint32_t)number);
}

/* Wait for the stream and read the window; the call's own verdict comes last. */
static int finish(struct bench *b, const struct bench_call *c, int rc, uint64_t number, struct bench_sample *out, struct err *e)
{
    float ms = 0;
    b->host->ticket = b->ticket; /* let go even when queueing failed, or the stream never ends */
    int waited = (int)cudaStreamSynchronize(b->stream);
    if (fail(e, rc, "queueing a sample") != 0 || fail(e, waited, "a sample") != 0)
        return -1;
    if (b->host->expired) {
        b->host->expired = 0;
        b->refused = "waited for the device while its stream was held";
        return 1;
    }
    if (!c->remote && fail(e, (int)cudaEventElapsedTime(&ms, b->start, b->stop), "reading the events") != 0)
        return -1;
    if (!c->remote)
        out->ns = (double)ms * 1e6;
    out->clock_mhz = (float)read_probe_mhz(b);
    out->cycles = out->ns * (double)out->clock_mhz * 1e-3;
    out->throttle = b->throttle ? b->throttle(b->throttle_state) : 0;
    if (look_for_carve_out(b))
        return 1;
    int kept = c->accept ? c->accept(c->state, number) : 0;
    return kept < 0 ? err_set(e, ERR_IO, "checking what a call left failed") : kept;
}

/* The flush and the clock reading are this process's own, made while the other one holds; then nothing of this process runs. */
static int remote_window(struct bench *b, const struct bench_call *c, uint64_t number, bool empty, double *outer_ns)
{
    int rc = c->remote->queue(c->remote->state, empty);
    if (rc != 0)
        return rc;
    if (!empty)
        rc = c->renew(c->state, b->stream, number);
    if (rc == 0)
        rc = queue_probe(b);
    if (rc == 0)
        rc = queue_flush(b, 2 * b->l2_bytes, (uint32_t)number);
    int waited = (int)cudaStreamSynchronize(b->stream);
    int released = c->remote->release(c->remote->state, outer_ns); /* also when something failed: nothing stays held */
    return rc ? rc : waited ? waited : released;
}

static int one_remote(struct bench *b, const struct bench_call *c, uint64_t number, struct bench_sample *out, struct err *e)
{
    b->refused = NULL;
    int rc = clear_carve_out(b);
    if (rc == 0 && c->prepare)
        rc = c->prepare(c->state, b->stream, number);
    if (rc == 0)
        rc = (int)cudaStreamSynchronize(b->stream);
    if (rc == 0)
        rc = remote_window(b, c, number, false, &out->outer_ns);
    if (rc == 0 && c->after)
        rc = c->after(c->state, b->stream, number);
    if (rc == 0)
        rc = (int)cudaStreamSynchronize(b->stream); /* looked at, before the other process is asked anything more */
    if (rc == 0)
        rc = c->remote->times(c->remote->state, &out->ns);
    return finish(b, c, rc, number, out, e);
}

int bench_outer(struct bench *b, const struct bench_call *c, int n, double *ns, struct err *e)
{
    double *all = (double *)malloc((size_t)n * sizeof *all), inner_ns = 0;
    if (!all)
        return err_set(e, ERR_TEMP, "out of memory");
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        rc = remote_window(b, c, (uint64_t)i, true, &all[i]);
        if (rc == 0)
            rc = c->remote->times(c->remote->state, &inner_ns);
        all[i] -= inner_ns;
    }
    if (rc == 0)
        *ns = stats_quantile(all, n, 0.5);
    free(all);
    return fail(e, rc, "what is round a call");
}

int bench_one(struct bench *b, const struct bench_call *c, uint64_t number, struct bench_sample *out, struct err *e)
{
    if (c->remote)
        return one_remote(b, c, number, out, e);
    int rc = queue_before(b, c, number, false);
    if (rc == 0)
        rc = (int)cudaEventRecord(b->start, b->stream);
    if (rc == 0)
        rc = c->enqueue(c->state, b->stream);
    if (rc == 0)
        rc = (int)cudaEventRecord(b->stop, b->stream);
    if (rc == 0 && c->after)
        rc = c->after(c->state, b->stream, number);
    if (rc == 0)
        rc = queue_probe(b);
    return finish(b, c, rc, number, out, e);
}

/* The part of a held sample in which the host looks on. */
static int look_while_held(struct bench *b, const struct bench_call *c, double hold_ns, int (*look)(void *, void *, bool), int *refused)
{
    cudaStream_t other;
    cudaError_t rc = cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    if (rc != cudaSuccess)
        return (int)rc;
    for (double from = wall_ns(); wall_ns() - from < hold_ns;)
        ;
    *refused = look(c->state, other, false);
    b->host->ticket = b->ticket;
    rc = cudaDeviceSynchronize();
    if (rc == cudaSuccess && *refused == 0)
        *refused = look(c->state, other, true);
    cudaStreamDestroy(other);
    return (int)rc;
}

int bench_held(struct bench *b, const struct bench_call *c, double hold_ns, uint64_t number, int (*look)(void *, void *, bool), struct err *e)
{
    struct bench_sample ignored;
    int refused = 0, rc = queue_before(b, c, number, true);
    if (rc == 0)
        rc = (int)cudaEventRecord(b->start, b->stream);
    if (rc == 0)
        rc = c->enqueue(c->state, b->stream);
    if (rc == 0)
        rc = (int)cudaEventRecord(b->stop, b->stream);
    if (rc == 0 && c->after)
        rc = c->after(c->state, b->stream, number);
    if (rc == 0)
        rc = look_while_held(b, c, hold_ns, look, &refused);
    int finished = finish(b, c, rc, number, &ignored, e);
    return finished < 0 ? -1 : refused ? refused : finished;
}

/* A batch of calls of about 20 ms, then one clock reading. */
static int warm_once(struct bench *b, const struct bench_call *c, double *mhz, struct err *e)
{
    double from = wall_ns();
    int rc = 0;
    do {
        for (int i = 0; i < 4 && rc == 0; i++)
            rc = c->enqueue(c->state, b->stream);
        if (rc == 0)
            rc = (int)cudaStreamSynchronize(b->stream);
    } while (rc == 0 && wall_ns() - from < 20e6);
    if (rc == 0)
        rc = queue_probe(b);
    if (rc == 0)
        rc = (int)cudaStreamSynchronize(b->stream);
    *mhz = read_probe_mhz(b);
    return fail(e, rc, "warming up");
}

int bench_warm(struct bench *b, const struct bench_call *c, double ns, struct err *e)
{
    double from = wall_ns(), mhz = 0, before = 0;
    int flat = 0;
    if (c->prepare && fail(e, c->prepare(c->state, b->stream, 0), "preparing inputs") != 0)
        return -1;
    while (wall_ns() - from < ns || (flat < 2 && wall_ns() - from < ns + 1e9)) {
        if (warm_once(b, c, &mhz, e) != 0)
            return -1;
        flat = fabs(mhz - before) <= 0.005 * before ? flat + 1 : 0;
        before = mhz;
    }
    return 0;
}

static double block_half_width(const struct bench_block *block, double *room)
{
    for (int64_t i = 0; i < block->samples; i++)
        room[i] = block->sample[i].ns;
    return stats_median_half_width(room, block->samples);
}

/* Whether the block may end now: the least is reached, and it is precise or its time is up. */
static bool block_done(struct bench_block *block, const struct bench_limits *l, double gpu_ns, double elapsed_ns, double *room)
{
    bool least = block->samples >= l->least_samples || (gpu_ns >= l->least_gpu_ns && block->samples >= 5);
    if (!least || (block->samples % 20 != 0 && elapsed_ns < l->cap_ns && gpu_ns < l->least_gpu_ns))
        return false;
    block->half_width = block_half_width(block, room);
    return block->half_width <= l->precision || elapsed_ns >= l->cap_ns || block->samples == block->room;
}

int bench_block(struct bench *b, const struct bench_call *c, const struct bench_limits *l, uint64_t first, struct bench_block *block,
    struct err *e)
{
    double *room = (double *)malloc((size_t)block->room * sizeof *room), from = wall_ns(), gpu_ns = 0;
    if (!room)
        return err_set(e, ERR_TEMP, "out of memory");
    int rc = 0;
    block->samples = block->throttled = 0;
    block->complete = false;
    while (rc == 0 && !block->complete && wall_ns() - from < l->wall_ns && block->samples < block->room) {
        struct bench_sample s;
        rc = bench_one(b, c, first++, &s, e);
        if (rc != 0)
            break;
        if (s.throttle) {
            block->throttled++;
            continue;
        }
        block->sample[block->samples++] = s;
        gpu_ns += s.ns;
        block->complete = block_done(block, l, gpu_ns, wall_ns() - from, room);
    }
    if (block->samples)
        block->half_width = block_half_width(block, room);
    free(room);
    return rc;
}

/* Capture start node, call, end node. The call's own nodes are what is there beyond the two. */
static int capture(struct bench *b, const struct bench_call *c, cudaGraphExec_t *exec, int *nodes)
{
    cudaGraph_t graph = NULL;
    size_t n = 0;
    cudaError_t rc = cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal);
    if (rc != cudaSuccess)
        return (int)rc;
    rc = cudaEventRecordWithFlags(b->start, b->stream, cudaEventRecordExternal);
    if (rc == cudaSuccess)
        rc = (cudaError_t)c->enqueue(c->state, b->stream);
    if (rc == cudaSuccess)
        rc = cudaEventRecordWithFlags(b->stop, b->stream, cudaEventRecordExternal);
    cudaError_t ended = cudaStreamEndCapture(b->stream, &graph);
    rc = rc == cudaSuccess ? ended : rc;
    if (rc == cudaSuccess)
        rc = cudaGraphGetNodes(graph, NULL, &n);
    *nodes = (int)n - 2;
    if (rc == cudaSuccess)
        rc = cudaGraphInstantiate(exec, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    return (int)rc;
}

static int replay(struct bench *b, const struct bench_call *c, cudaGraphExec_t exec, uint64_t number, struct bench_sample *out,
    struct err *e)
{
    int rc = queue_before(b, c, number, false);
    if (rc == 0)
        rc = (int)cudaGraphLaunch(exec, b->stream);
    if (rc == 0 && c->after)
        rc = c->after(c->state, b->stream, number);
    if (rc == 0)
        rc = queue_probe(b);
    return finish(b, c, rc, number, out, e);
}

int bench_methods(struct bench *b, const struct bench_call *c, int n, uint64_t first, struct bench_methods *out, struct err *e)
{
    cudaGraphExec_t exec = NULL;
    double *ns = (double *)malloc(2 * (size_t)n * sizeof *ns);
    if (!ns)
        return err_set(e, ERR_TEMP, "out of memory");
    int rc = fail(e, capture(b, c, &exec, &out->nodes), "capturing the call");
    for (int i = -3; i < n && rc == 0; i++) { /* the first three warm the graph up */
        struct bench_sample by_graph, by_stream;
        uint64_t number = first + 2 * (uint64_t)(i + 3);
        rc = replay(b, c, exec, number, &by_graph, e);
        if (rc == 0)
            rc = bench_one(b, c, number + 1, &by_stream, e);
        if (rc == 0 && i >= 0) {
            ns[i] = by_graph.ns;
            ns[n + i] = by_stream.ns;
        }
    }
    if (rc == 0) {
        out->graph_ns = stats_quantile(ns, n, 0.5);
        out->stream_ns = stats_quantile(ns + n, n, 0.5);
    }
    if (exec)
        cudaGraphExecDestroy(exec);
    free(ns);
    return rc;
}

/* One iteration of the source's loop; events may be NULL. */
static int source_iteration(struct bench *b, const struct bench_call *c, cudaEvent_t start, cudaEvent_t stop)
{
    int rc = queue_flush(b, source_flush_bytes, 0);
    if (rc == 0 && start)
        rc = (int)cudaEventRecord(start, b->stream);
    if (rc == 0)
        rc = c->enqueue(c->state, b->stream);
    if (rc == 0 && stop)
        rc = (int)cudaEventRecord(stop, b->stream);
    return rc;
}

/* Mean time of `n` iterations (call NULL: of the write alone), in ns. */
static int source_estimate(struct bench *b, const struct bench_call *c, int n, double *ns)
{
    float ms = 0;
    int rc = (int)cudaEventRecord(b->start, b->stream);
    for (int i = 0; i < n && rc == 0; i++)
        rc = c ? source_iteration(b, c, NULL, NULL) : queue_flush(b, source_flush_bytes, 0);
    if (rc == 0)
        rc = (int)cudaEventRecord(b->stop, b->stream);
    if (rc == 0)
        rc = (int)cudaStreamSynchronize(b->stream);
    if (rc == 0)
        rc = (int)cudaEventElapsedTime(&ms, b->start, b->stop);
    *ns = (double)ms * 1e6 / n;
    return rc;
}

struct source_events {
    cudaEvent_t *start, *stop;
    double *host, *window;
    int n;
};

static int source_run(struct bench *b, const struct bench_call *c, struct source_events *s)
{
    int rc = 0;
    for (int i = 0; i < s->n && rc == 0; i++) {
        double from = wall_ns();
        rc = source_iteration(b, c, s->start[i], s->stop[i]);
        s->host[i] = wall_ns() - from;
    }
    if (rc == 0)
        rc = (int)cudaStreamSynchronize(b->stream);
    for (int i = 0; i < s->n && rc == 0; i++) {
        float ms = 0;
        rc = (int)cudaEventElapsedTime(&ms, s->start[i], s->stop[i]);
        s->window[i] = (double)ms * 1e6;
    }
    return rc;
}

static int source_events_init(struct source_events *s, int n)
{
    int rc = 0;
    s->n = n;
    s->start = (cudaEvent_t *)calloc((size_t)n, sizeof *s->start);
    s->stop = (cudaEvent_t *)calloc((size_t)n, sizeof *s->stop);
    s->host = (double *)calloc((size_t)n, sizeof *s->host);
    s->window = (double *)calloc((size_t)n, sizeof *s->window);
    if (!s->start || !s->stop || !s->host || !s->window)
        return (int)cudaErrorMemoryAllocation;
    for (int i = 0; i < n && rc == 0; i++) {
        rc = (int)cudaEventCreate(&s->start[i]);
        if (rc == 0)
            rc = (int)cudaEventCreate(&s->stop[i]);
    }
    return rc;
}

static void source_events_fini(struct source_events *s)
{
    for (int i = 0; i < s->n; i++) {
        if (s->start && s->start[i])
            cudaEventDestroy(s->start[i]);
        if (s->stop && s->stop[i])
            cudaEventDestroy(s->stop[i]);
    }
    free(s->start);
    free(s->stop);
    free(s->host);
    free(s->window);
}

/* Warm up for 25 ms of iterations, and say how long one takes. */
static int source_warm(struct bench *b, const struct bench_call *c, double *iteration_ns)
{
    int rc = c->prepare ? c->prepare(c->state, b->stream, 0) : 0;
    if (rc == 0)
        rc = source_estimate(b, c, 5, iteration_ns);
    for (double spent = 0; spent < 25e6 && rc == 0; spent += *iteration_ns)
        rc = source_iteration(b, c, NULL, NULL);
    return rc ? rc : (int)cudaStreamSynchronize(b->stream);
}

int bench_source(struct bench *b, const struct bench_call *c, double budget_ms, struct bench_source *out, struct err *e)
{
    struct source_events s = {};
    double iteration_ns = 0;
    int rc = source_warm(b, c, &iteration_ns);
    double fit = iteration_ns > 0 ? budget_ms * 1e6 / iteration_ns : 1;
    if (rc == 0)
        rc = source_events_init(&s, fit < 1 ? 1 : fit > 20000 ? 20000 : (int)fit);
    if (rc == 0)
        rc = source_run(b, c, &s);
    if (rc == 0)
        rc = source_estimate(b, NULL, 20, &out->flush_ns);
    if (rc == 0) {
        out->samples = s.n;
        out->median_ns = stats_quantile(s.window, s.n, 0.5);
        out->p20_ns = stats_quantile(s.window, s.n, 0.2);
        out->p80_ns = stats_quantile(s.window, s.n, 0.8);
        out->host_ns = stats_quantile(s.host, s.n < host_samples ? s.n : host_samples, 0.5);
    }
    source_events_fini(&s);
    return fail(e, rc, "the source's protocol");
}
