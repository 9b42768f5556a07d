/* The tensors of a case on the current CUDA device: verify/place.h with kernels. All of them are grid-stride loops over blocks of
 * 256 threads that read or write each byte once; nothing here is timed. */
#include "verify/place.h"

#include <cuda_runtime.h>

#include "verify/errors.h"

namespace {

constexpr int threads = 256;

unsigned blocks_for(int64_t work)
{
    int64_t blocks = (work + threads - 1) / threads;
    return (unsigned)(blocks < 1 ? 1 : blocks > 16384 ? 16384 : blocks);
}

int status()
{
    return (int)cudaGetLastError();
}

__device__ int64_t thread_index()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ int64_t thread_stride()
{
    return (int64_t)gridDim.x * blockDim.x;
}

__device__ uint64_t lane_sum(uint64_t v)
{
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

__device__ void add_to(uint64_t *slot, uint64_t v)
{
    v = lane_sum(v);
    if (threadIdx.x % 32 == 0 && v)
        atomicAdd((unsigned long long *)slot, (unsigned long long)v);
}

template <typename T> __global__ void fill_words(T *at, int64_t words, T word)
{
    for (int64_t i = thread_index(); i < words; i += thread_stride())
        at[i] = word;
}

__global__ void fill_tail(unsigned char *at, int n, uint32_t word)
{
    if ((int)threadIdx.x < n)
        at[threadIdx.x] = (unsigned char)(word >> 8 * threadIdx.x);
}

__global__ void draw_elements(const __grid_constant__ ki_tensor t, const __grid_constant__ draw d, int64_t first, int64_t n)
{
    for (int64_t i = thread_index(); i < n; i += thread_stride())
        ki_put(&t, first + i, draw_element(&d, first + i));
}

/* One row a block: sum of exp over the row, in fp64, then its values. */
__global__ void draw_rows(const __grid_constant__ ki_tensor t, const __grid_constant__ draw d, int64_t first, int64_t rows)
{
    __shared__ double part[threads];
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        int64_t at = first + row * d.columns;
        double sum = 0;
        for (int64_t i = threadIdx.x; i < d.columns; i += threads)
            sum += (double)expf((float)draw_element(&d, at + i));
        part[threadIdx.x] = sum;
        __syncthreads();
        for (int half = threads / 2; half > 0; half /= 2) {
            if ((int)threadIdx.x < half)
                part[threadIdx.x] += part[threadIdx.x + half];
            __syncthreads();
        }
        float logarithm = (float)log(part[0]);
        __syncthreads();
        for (int64_t i = threadIdx.x; i < d.columns; i += threads) {
            float v = (float)draw_element(&d, at + i) - logarithm;
            ki_put(&t, at + i, (double)(d.fill == KI_FILL_SOFTMAX ? expf(v) : v));
        }
    }
}

__global__ void hash_words(const unsigned char *at, size_t size_bytes, uint64_t *slot)
{
    uint64_t sum = 0;
    int64_t words = (int64_t)((size_bytes + 7) / 8), whole = (int64_t)(size_bytes / 8);
    for (int64_t i = thread_index(); i < whole; i += thread_stride())
        sum += draw_mix(((const uint64_t *)at)[i] ^ draw_mix((uint64_t)i + 0x632be59bd9b4e019u));
    if (whole < words && thread_index() == 0)
        sum += errors_hash_word(at, size_bytes, (size_t)whole);
    add_to(slot, sum);
}

__global__ void count_words(const unsigned char *at, int64_t n, int width, uint32_t word, bool differ, uint64_t *slot)
{
    uint64_t sum = 0;
    for (int64_t i = thread_index(); i < n; i += thread_stride()) {
        bool is = width == 2 ? ((const uint16_t *)at)[i] == (uint16_t)word
            : width == 4    ? ((const uint32_t *)at)[i] == word
                            : ((const uint64_t *)at)[i] == ((uint64_t)word << 32 | word);
        sum += is != differ;
    }
    add_to(slot, sum);
}

__device__ error_sums lane_merge(error_sums s)
{
    for (int d = 16; d > 0; d /= 2) {
        error_sums o;
        o.elements = __shfl_xor_sync(0xffffffffu, s.elements, d);
        o.nonfinite = __shfl_xor_sync(0xffffffffu, s.nonfinite, d);
        o.max_error = __shfl_xor_sync(0xffffffffu, s.max_error, d);
        o.max_beyond = __shfl_xor_sync(0xffffffffu, s.max_beyond, d);
        o.worst = __shfl_xor_sync(0xffffffffu, s.worst, d);
        o.baseline_max = __shfl_xor_sync(0xffffffffu, s.baseline_max, d);
        o.exact_max = __shfl_xor_sync(0xffffffffu, s.exact_max, d);
        o.squares = __shfl_xor_sync(0xffffffffu, s.squares, d);
        o.baseline_squares = __shfl_xor_sync(0xffffffffu, s.baseline_squares, d);
        o.exact_squares = __shfl_xor_sync(0xffffffffu, s.exact_squares, d);
        o.ulp_squares = __shfl_xor_sync(0xffffffffu, s.ulp_squares, d);
        errors_merge(&s, &o);
    }
    return s;
}

__device__ void raise_atomic(uint64_t *at, uint64_t v)
{
    atomicMax((unsigned long long *)at, (unsigned long long)v);
}

__global__ void measure_elements(const __grid_constant__ ki_tensor t, int64_t first, int64_t n, const double *exact,
    const double *baseline, double floor_ulps, error_sums *sums)
{
    error_sums s = {};
    for (int64_t i = thread_index(); i < n; i += thread_stride())
        errors_add(&s, t.dtype, ki_get(&t, first + i), exact[i], baseline[i], floor_ulps, first + i);
    s = lane_merge(s);
    if (threadIdx.x % 32 != 0)
        return;
    atomicAdd((unsigned long long *)&sums->elements, (unsigned long long)s.elements);
    atomicAdd((unsigned long long *)&sums->nonfinite, (unsigned long long)s.nonfinite);
    raise_atomic(&sums->max_error, s.max_error);
    raise_atomic(&sums->max_beyond, s.max_beyond);
    raise_atomic(&sums->worst, s.worst);
    raise_atomic(&sums->baseline_max, s.baseline_max);
    raise_atomic(&sums->exact_max, s.exact_max);
    atomicAdd(&sums->squares, s.squares);
    atomicAdd(&sums->baseline_squares, s.baseline_squares);
    atomicAdd(&sums->exact_squares, s.exact_squares);
    atomicAdd(&sums->ulp_squares, s.ulp_squares);
}

__global__ void convert_elements(const __grid_constant__ ki_tensor to, const __grid_constant__ ki_tensor from)
{
    for (int64_t i = thread_index(); i < to.count; i += thread_stride())
        ki_put(&to, i, ki_get(&from, i));
}

/* An allocation is the whole of what the driver maps, so that a handle to it shows nothing else. */
constexpr size_t own_block = (size_t)2 << 20;

int cuda_alloc(void **out, size_t size_bytes)
{
    cudaError_t rc = cudaMalloc(out, size_bytes < own_block ? own_block : (size_bytes + own_block - 1) / own_block * own_block);
    if (rc != cudaSuccess)
        *out = NULL;
    if (rc == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* not sticky: the next call may succeed */
        return 0;
    }
    return (int)rc;
}

int cuda_share(void *at, struct place_share *out)
{
    cudaIpcMemHandle_t handle;
    static_assert(sizeof handle == sizeof out->handle);
    cudaError_t rc = cudaIpcGetMemHandle(&handle, at);
    memcpy(out->handle, &handle, sizeof handle);
    out->offset = 0;
    return (int)rc;
}

void cuda_release(void *at)
{
    cudaFree(at);
}

const char *cuda_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

bool cuda_is_memory(int error)
{
    return error == (int)cudaErrorMemoryAllocation;
}

int cuda_fill(void *at, size_t size_bytes, uint32_t word, void *stream)
{
    int64_t words = (int64_t)(size_bytes / 4);
    if ((uintptr_t)at % 4 != 0) {
        fill_words<<<blocks_for(2 * words), threads, 0, (cudaStream_t)stream>>>((uint16_t *)at, (int64_t)(size_bytes / 2), (uint16_t)word);
        return status();
    }
    if (words)
        fill_words<<<blocks_for(words), threads, 0, (cudaStream_t)stream>>>((uint32_t *)at, words, word);
    if (size_bytes % 4)
        fill_tail<<<1, 32, 0, (cudaStream_t)stream>>>((unsigned char *)at + words * 4, (int)(size_bytes % 4), word);
    return status();
}

int cuda_draw(const struct ki_tensor *t, const struct draw *d, int64_t first, int64_t n, void *stream)
{
    if (!draw_is_softmax(d))
        draw_elements<<<blocks_for(n), threads, 0, (cudaStream_t)stream>>>(*t, *d, first, n);
    else if (first % d->columns != 0 || n % d->columns != 0)
        return (int)cudaErrorInvalidValue;
    else
        draw_rows<<<blocks_for(n / d->columns * threads), threads, 0, (cudaStream_t)stream>>>(*t, *d, first, n / d->columns);
    return status();
}

int cuda_hash(const void *at, size_t size_bytes, uint64_t *slot, void *stream)
{
    hash_words<<<blocks_for((int64_t)(size_bytes / 8)), threads, 0, (cudaStream_t)stream>>>((const unsigned char *)at, size_bytes, slot);
    return status();
}

int cuda_count(const void *at, size_t size_bytes, int width, uint32_t word, bool differ, uint64_t *slot, void *stream)
{
    int64_t n = (int64_t)(size_bytes / (size_t)width);
    count_words<<<blocks_for(n), threads, 0, (cudaStream_t)stream>>>((const unsigned char *)at, n, width, word, differ, slot);
    return status();
}

int cuda_measure(const struct ki_tensor *t, int64_t first, int64_t n, const double *exact, const double *baseline,
    double floor_ulps, struct error_sums *sums, void *stream)
{
    unsigned blocks = blocks_for(n);
    measure_elements<<<blocks > 1024 ? 1024 : blocks, threads, 0, (cudaStream_t)stream>>>(*t, first, n, exact, baseline, floor_ulps, sums);
    return status();
}

int cuda_read(void *to_host, const void *from, size_t size_bytes, void *stream)
{
    cudaError_t rc = cudaMemcpyAsync(to_host, from, size_bytes, cudaMemcpyDeviceToHost, (cudaStream_t)stream);
    return (int)(rc == cudaSuccess ? cudaStreamSynchronize((cudaStream_t)stream) : rc);
}

int cuda_copy(void *to, const void *from, size_t size_bytes, void *stream)
{
    return (int)cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDefault, (cudaStream_t)stream);
}

int cuda_convert(const struct ki_tensor *to, const struct ki_tensor *from, void *stream)
{
    convert_elements<<<blocks_for(to->count), threads, 0, (cudaStream_t)stream>>>(*to, *from);
    return status();
}

int cuda_alloc_host(void **out, size_t size_bytes)
{
    return (int)cudaMallocHost(out, size_bytes);
}

void cuda_release_host(void *at)
{
    cudaFreeHost(at);
}

int cuda_sync(void *stream)
{
    return (int)cudaStreamSynchronize((cudaStream_t)stream);
}

bool cuda_has(const struct ki_operation *op)
{
    return op->device != NULL;
}

int cuda_setup(const struct ki_case *c, const char **reason)
{
    return c->operation->device->setup ? c->operation->device->setup(c, reason) : 0;
}

int cuda_launch(const struct ki_call *c)
{
    return c->work.operation->device->launch(c);
}

const struct ki_reference *cuda_reference(const struct ki_operation *op)
{
    return &op->device->reference;
}

}

extern "C" const struct place place_cuda = {
    .name = "cuda",
    .alloc = cuda_alloc,
    .release = cuda_release,
    .share = cuda_share,
    .text = cuda_text,
    .is_memory = cuda_is_memory,
    .fill = cuda_fill,
    .draw = cuda_draw,
    .hash = cuda_hash,
    .count = cuda_count,
    .measure = cuda_measure,
    .read = cuda_read,
    .copy = cuda_copy,
    .convert = cuda_convert,
    .alloc_host = cuda_alloc_host,
    .release_host = cuda_release_host,
    .sync = cuda_sync,
    .has = cuda_has,
    .setup = cuda_setup,
    .launch = cuda_launch,
    .reference = cuda_reference,
};
