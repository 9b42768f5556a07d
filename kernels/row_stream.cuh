/* Device code of operations on rows (layer_norm, softmax, sparsemax): rows pass through shared memory, each read once.
 *
 * A group of THREADS threads takes every step-th row, VECS 16-byte packs a thread. A ring of SLOTS packs a thread and input is
 * kept full by cp.async, so that the next rows are on their way while this one is worked on. A thread copies, and reads, only
 * its own packs: the ring needs no barrier. Groups are blocks, or, when THREADS is 32, the four warps of a block.
 * Needs row lengths that divide into packs and 16-byte aligned tensors.
 */
#ifndef KI_ROW_STREAM_CUH
#define KI_ROW_STREAM_CUH

#include <cooperative_groups.h>

#include "common.cuh"

namespace ki {

/* Slots that suit a shape: two rows, or one and a half where two would leave room for only one block. */
constexpr int row_slots(int vecs, int inputs)
{
    return vecs == 8 || (vecs == 4 && inputs == 2) ? vecs * 3 / 2 : 2 * vecs;
}

template <typename T, int THREADS, int VECS, int INPUTS, int SLOTS> struct row_stream {
    static constexpr int size = pack<T>::size;
    static constexpr int groups = THREADS == warp ? 4 : 1, threads = THREADS * groups;
    static constexpr int width = THREADS * VECS * size; /* elements of a row, or of its slice, that a group can take */
    static constexpr size_t shared_bytes = (size_t)INPUTS * SLOTS * threads * 16;
    static_assert(SLOTS >= VECS, "a row must fit");

    const T *source[INPUTS];
    int64_t rows, row, step; /* row: the one at hand */
    int length, start;       /* of a row; where the slice starts in it */
    int slot;                /* of the first pack at hand */
    pack<T> *ring;           /* [INPUTS][SLOTS][threads], at this thread */

    /* Where pack v of this thread starts in the row. */
    __device__ int at(int v) const { return start + (v * THREADS + (int)threadIdx.x % THREADS) * size; }
    __device__ bool has(int v) const { return at(v) < length; }
    __device__ int64_t offset(int v) const { return row * length + at(v); }
    __device__ int wrapped(int n) const { return n >= SLOTS ? n - SLOTS : n; }

    __device__ void fetch(int64_t of, int v, int to)
    {
        if (of < rows && has(v))
#pragma unroll
            for (int n = 0; n < INPUTS; n++)
                __pipeline_memcpy_async(&ring[(n * SLOTS + to) * threads], source[n] + of * length + at(v), 16);
        __pipeline_commit();
    }

    /* Start at this group's first row: `first` of `count` blocks, or clusters of blocks. */
    __device__ void begin(unsigned char *shared, int64_t first, int64_t count)
    {
        ring = (pack<T> *)shared + threadIdx.x;
        row = first * groups + threadIdx.x / THREADS;
        step = count * groups;
        slot = 0;
#pragma unroll
        for (int k = 0; k < SLOTS; k++)
            fetch(row + k / VECS * step, k % VECS, k);
    }

    /* Until the row at hand is there. (__pipeline_wait_prior counts no further than 8.) */
    __device__ void wait() const { asm volatile("cp.async.wait_group %0;" ::"n"(SLOTS - VECS) : "memory"); }
    /* Pack v of input n of the row at hand. */
    __device__ pack<T> get(int n, int v) const { return ring[(n * SLOTS + wrapped(slot + v)) * threads]; }
    /* Pack v is done with: its slot takes the next pack. Once for each v, in order. */
    __device__ void release(int v) { fetch(row + (v + SLOTS) / VECS * step, (v + SLOTS) % VECS, wrapped(slot + v)); }
    __device__ void next()
    {
        slot = wrapped(slot + VECS);
        row += step;
    }
};

/* A pack that stays in registers as it is: without this the compiler widens it once for all rows, in twice the registers. */
template <typename T> __device__ inline pack<T> unpack(uint4 &held)
{
    asm volatile("" : "+r"(held.x), "+r"(held.y), "+r"(held.z), "+r"(held.w));
    union { uint4 raw; pack<T> value; } u = { held };
    return u.value;
}

/* Sums and maximum over a group; `room` as block_sum wants it. */
template <int THREADS, int N> __device__ inline void row_sum(float (&v)[N], float *room)
{
    if constexpr (THREADS == warp) {
        for (int n = 0; n < N; n++)
            v[n] = warp_sum(v[n]);
    } else {
        block_sum(v, room);
    }
}

template <int THREADS> __device__ inline float row_max(float v, float *room)
{
    if constexpr (THREADS == warp)
        return warp_max(v);
    else
        return block_max(v, room);
}

/* Sums that are the same in every thread of a block become sums over its cluster. `peers` is [N][8] in every block; calls
 * alternate between two. */
template <int N> __device__ inline void cluster_sum(float (&v)[N], float *peers, int rank, int cluster)
{
#if __CUDA_ARCH__ >= 900
    auto group = cooperative_groups::this_cluster();
    if ((int)threadIdx.x < cluster)
        for (int n = 0; n < N; n++)
            group.map_shared_rank(peers, threadIdx.x)[n * 8 + rank] = v[n];
    group.sync();
    for (int n = 0; n < N; n++) {
        v[n] = 0;
        for (int p = 0; p < cluster; p++)
            v[n] += peers[n * 8 + p];
    }
#endif
}

/* Column sums of two gradients: partial [parts, 2, columns] fp32; dweight from the first, dbias from the second of each part.
 * grid (columns / 32, 2)  block (32, 32), as column_sums. bytes 8 parts columns. Deterministic. */
template <typename T> __global__ void affine_sums(const float *partial, int parts, int64_t columns, T *dweight, T *dbias)
{
    __shared__ float room[32][33];
    int64_t column = (int64_t)blockIdx.x * 32 + threadIdx.x, which = blockIdx.y;
    float v = 0;
    if (column < columns)
#pragma unroll 4
        for (int p = threadIdx.y; p < parts; p += 32)
            v += partial[(2 * p + which) * columns + column];
    room[threadIdx.y][threadIdx.x] = v;
    __syncthreads();
    v = warp_sum(room[threadIdx.x][threadIdx.y]);
    column = (int64_t)blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x == 0 && column < columns)
        (which ? dbias : dweight)[column] = narrow<T>(v);
}

template <typename T>
inline cudaError_t launch_affine_sums(const float *partial, int parts, int64_t columns, T *dweight, T *dbias, cudaStream_t s)
{
    affine_sums<T><<<dim3((unsigned)((columns + 31) / 32), 2), dim3(32, 32), 0, s>>>(partial, parts, columns, dweight, dbias);
    return cudaGetLastError();
}

/* How many blocks of KERNEL the device holds at once; 0 if it does not fit. Asked once a thread. */
template <auto KERNEL> inline int resident_blocks(int threads, size_t shared_bytes)
{
    static thread_local int known = -1;
    if (known >= 0)
        return known;
    int count = 0;
    if ((int)shared_bytes + 2048 <= device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)
        && cudaFuncSetAttribute(KERNEL, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes) == cudaSuccess)
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, KERNEL, threads, shared_bytes);
    return known = count * multiprocessors();
}

/* The same for clusters of 2, 4 or 8 blocks; 0 before sm_90. */
template <auto KERNEL> inline int resident_clusters(int cluster, int threads, size_t shared_bytes)
{
    static thread_local int known[9]; /* by cluster size; one more than the answer */
    if (known[cluster])
        return known[cluster] - 1;
    int count = 0;
    if (device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9 && resident_blocks<KERNEL>(threads, shared_bytes) > 0) {
        cudaLaunchAttribute size = { .id = cudaLaunchAttributeClusterDimension };
        size.val.clusterDim = { (unsigned)cluster, 1, 1 };
        cudaLaunchConfig_t config = { .gridDim = dim3((unsigned)cluster), .blockDim = dim3((unsigned)threads),
            .dynamicSmemBytes = shared_bytes, .attrs = &size, .numAttrs = 1 };
        cudaOccupancyMaxActiveClusters(&count, KERNEL, &config);
    }
    known[cluster] = count + 1;
    return count;
}

/* Blocks for `rows` rows, `groups` a block, of which `resident` run at once. */
inline unsigned row_blocks(int64_t rows, int groups, int resident)
{
    int64_t blocks = (rows + groups - 1) / groups;
    return (unsigned)(blocks < resident ? blocks : resident);
}

/* f.template operator()<THREADS, VECS>() with the smallest shape that takes a row of `packs`, MOST (4096 or 8192) or fewer. */
template <int MOST, typename F> inline cudaError_t with_row_shape(int64_t packs, F &&f)
{
    constexpr int longest = MOST > 4096 ? 1024 : 512;
    return packs <= 32   ? f.template operator()<32, 1>()
        : packs <= 64    ? f.template operator()<32, 2>()
        : packs <= 128   ? f.template operator()<32, 4>()
        : packs <= 256   ? f.template operator()<32, 8>()
        : packs <= 512   ? f.template operator()<128, 4>()
        : packs <= 1024  ? f.template operator()<256, 4>()
        : packs <= 2048  ? f.template operator()<512, 4>()
        : packs <= 4096  ? f.template operator()<512, 8>()
                         : f.template operator()<longest, 8>();
}

}

#endif
