/* The negative controls that need a GPU: dishonest implementations of rms_norm forward in fp32 (verify/control.h has the list). */
#include "verify/control.h"

#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common.cuh"

namespace {

constexpr int threads = 256, fingerprint = 64;

/* What a cache remembers of the inputs at one address. */
struct entry {
    const void *address;
    float *outputs, *head;
    int *hit;
};

struct state {
    cudaStream_t side;
    cudaEvent_t reached;
    entry entries[4]; /* more than input sets rotate */
    bool limit_set;
};

float *input(const struct ki_call *c)
{
    return (float *)c->tensor[0].data;
}

struct ki_tensor output(const struct ki_call *c)
{
    return c->tensor[ki_tensor_find(c->work.operation, "y")];
}

int honest(const struct ki_call *c, cudaStream_t stream)
{
    struct ki_call copy = *c;
    copy.stream = stream;
    return place_cuda.launch(&copy);
}

/* RMSNorm, one block a row, plainly; with `bf16` its sums are rounded to bf16 at every step. If *hit, the cached answer instead. */
__global__ void rows(const float *x, const float *w, float *y, int hidden, float eps, bool bf16, const int *hit, const float *cache)
{
    __shared__ float room[32];
    int64_t row = (int64_t)blockIdx.x * hidden;
    if (hit && *hit) {
        for (int h = threadIdx.x; h < hidden; h += threads)
            y[row + h] = cache[row + h];
        return;
    }
    float sum[1] = { 0 };
    for (int h = threadIdx.x; h < hidden; h += threads) {
        sum[0] += x[row + h] * x[row + h];
        if (bf16)
            sum[0] = __bfloat162float(__float2bfloat16_rn(sum[0]));
    }
    ki::block_sum(sum, room);
    if (bf16)
        sum[0] = __bfloat162float(__float2bfloat16_rn(sum[0]));
    float r = rsqrtf(sum[0] / hidden + eps);
    for (int h = threadIdx.x; h < hidden; h += threads)
        y[row + h] = x[row + h] * r * w[h];
}

/* One block: has the head of x been seen? It has now. */
__global__ void look(const float *x, float *seen, int *hit)
{
    __shared__ int same;
    if (threadIdx.x == 0)
        same = 1;
    __syncthreads();
    if (x[threadIdx.x] != seen[threadIdx.x])
        same = 0;
    __syncthreads();
    seen[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x == 0)
        *hit = same;
}

__global__ void wait_ns(unsigned long long ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - start < ns);
}

int launch_rows(const struct ki_call *c, bool bf16, const int *hit, const float *cache)
{
    int hidden = (int)c->tensor[1].count;
    rows<<<(unsigned)(c->tensor[0].count / hidden), threads, 0, (cudaStream_t)c->stream>>>(input(c), (const float *)c->tensor[1].data,
        (float *)output(c).data, hidden, (float)c->work.scalar[0], bf16, hit, cache);
    return (int)cudaGetLastError();
}

int side_stream(void *at, const struct ki_call *c)
{
    return honest(c, ((state *)at)->side);
}

/* Starts when the stream gets there, and ends 200 us after everybody thinks so. */
int deferred(void *at, const struct ki_call *c)
{
    state *s = (state *)at;
    cudaError_t rc = cudaEventRecord(s->reached, (cudaStream_t)c->stream);
    if (rc == cudaSuccess)
        rc = cudaStreamWaitEvent(s->side, s->reached, 0);
    if (rc != cudaSuccess)
        return (int)rc;
    wait_ns<<<1, 1, 0, s->side>>>(200000);
    return honest(c, s->side);
}

int fill_entry(entry *e, const struct ki_call *c, size_t size_bytes)
{
    e->address = c->tensor[0].data;
    cudaError_t rc = cudaMalloc(&e->outputs, size_bytes);
    if (rc == cudaSuccess)
        rc = cudaMalloc(&e->head, fingerprint * sizeof(float));
    if (rc == cudaSuccess)
        rc = cudaMalloc(&e->hit, sizeof(int));
    if (rc == cudaSuccess)
        rc = cudaMemset(e->head, 0xff, fingerprint * sizeof(float));
    return (int)rc;
}

int fingerprint_cache(void *at, const struct ki_call *c)
{
    state *s = (state *)at;
    struct ki_tensor y = output(c);
    size_t size_bytes = (size_t)y.count * sizeof(float);
    entry *e = s->entries;
    while (e < s->entries + 4 && e->address && e->address != c->tensor[0].data)
        e++;
    if (e == s->entries + 4)
        return honest(c, (cudaStream_t)c->stream);
    int rc = e->address ? 0 : fill_entry(e, c, size_bytes);
    if (rc != 0)
        return rc;
    look<<<1, fingerprint, 0, (cudaStream_t)c->stream>>>(input(c), e->head, e->hit);
    rc = launch_rows(c, false, e->hit, e->outputs);
    return rc ? rc : (int)cudaMemcpyAsync(e->outputs, y.data, size_bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)c->stream);
}

int wrong_accumulation(void *, const struct ki_call *c)
{
    return launch_rows(c, true, NULL, NULL);
}

/* The limit at the first call, because setting it waits for the device; the window every time. */
int carve_out(void *at, const struct ki_call *c)
{
    state *s = (state *)at;
    cudaStreamAttrValue v = {};
    v.accessPolicyWindow.base_ptr = c->tensor[0].data;
    v.accessPolicyWindow.num_bytes = (size_t)1 << 20;
    v.accessPolicyWindow.hitRatio = 1.0f;
    v.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    v.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute((cudaStream_t)c->stream, cudaStreamAttributeAccessPolicyWindow, &v);
    if (!s->limit_set)
        cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, (size_t)8 << 20);
    s->limit_set = true;
    cudaGetLastError(); /* a device without the feature refuses, and there is nothing to set aside */
    return honest(c, (cudaStream_t)c->stream);
}

int empty_graph(void *, const struct ki_call *c)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing((cudaStream_t)c->stream, &status);
    return status == cudaStreamCaptureStatusNone ? honest(c, (cudaStream_t)c->stream) : 0;
}

void end(void *at)
{
    state *s = (state *)at;
    cudaDeviceSynchronize();
    if (s->limit_set) {
        cudaStreamAttrValue none = {};
        cudaStreamSetAttribute(NULL, cudaStreamAttributeAccessPolicyWindow, &none);
        cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
        cudaGetLastError();
    }
    if (s->side)
        cudaStreamDestroy(s->side);
    if (s->reached)
        cudaEventDestroy(s->reached);
    for (entry &e : s->entries) {
        cudaFree(e.outputs);
        cudaFree(e.head);
        cudaFree(e.hit);
    }
    free(s);
}

int begin(void **out)
{
    state *s = (state *)calloc(1, sizeof *s);
    if (!s)
        return (int)cudaErrorMemoryAllocation;
    cudaError_t rc = cudaStreamCreateWithFlags(&s->side, cudaStreamNonBlocking);
    if (rc == cudaSuccess)
        rc = cudaEventCreateWithFlags(&s->reached, cudaEventDisableTiming);
    if (rc != cudaSuccess) {
        end(s);
        return (int)rc;
    }
    *out = s;
    return 0;
}

const struct control_cuda known[] = {
    { "side_stream", begin, side_stream, end }, { "deferred", begin, deferred, end },
    { "fingerprint_cache", begin, fingerprint_cache, end }, { "wrong_accumulation", begin, wrong_accumulation, end },
    { "carve_out", begin, carve_out, end }, { "empty_graph", begin, empty_graph, end },
};

}

extern "C" const struct control_cuda *control_cuda_find(const char *name)
{
    for (const struct control_cuda &c : known)
        if (strcmp(c.name, name) == 0)
            return &c;
    return NULL;
}
