/* Device code of operations that hold a row in registers from its only read to its write (forward passes, softmax).
 *
 * A group of THREADS threads takes a row, VECS 16-byte packs a thread; groups are blocks, or, when THREADS is 32, the four warps
 * of a block. A row of more packs is spread over a cluster of blocks, which meet once. Short blocks that follow the rows' order keep
 * DRAM pages open: on GH100 they stream faster than blocks that stay and loop.
 * Needs row lengths that divide into packs and 16-byte aligned tensors.
 */
#ifndef KI_ROW_SLICE_CUH
#define KI_ROW_SLICE_CUH

#include "cluster.cuh"
#include "resident.cuh"

namespace ki {

/* WHOLE: rows of exactly THREADS * VECS packs, one group each; nothing is asked per pack. */
template <typename T, int THREADS, int VECS, bool WHOLE = false> struct row_slice {
    static constexpr int size = pack<T>::size;
    static constexpr int groups = THREADS == warp ? 4 : 1, threads = THREADS * groups;
    static constexpr int width = THREADS * VECS * size; /* elements that a group can take */
    /* Blocks a multiprocessor that registers must allow, by the packs that a thread holds. */
    static constexpr int blocks(int tensors) { return (VECS * tensors <= 4 ? 1536 : VECS * tensors <= 8 ? 1024 : 512) / threads; }

    int64_t row;
    int length, start, cluster, rank; /* of the row; where this slice of it starts; blocks a row, and which this is */

    __device__ row_slice(int row_length, int blocks_a_row) : length(WHOLE ? width : row_length), cluster(WHOLE ? 1 : blocks_a_row)
    {
        rank = cluster == 1 ? 0 : (int)(blockIdx.x % (unsigned)cluster);
        row = cluster == 1 ? (int64_t)blockIdx.x * groups + threadIdx.x / THREADS : (int64_t)(blockIdx.x / (unsigned)cluster);
        start = rank * width;
        meet(cluster);
    }
    /* Where pack v of this thread starts in the row. */
    __device__ int at(int v) const { return start + (v * THREADS + (int)threadIdx.x % THREADS) * size; }
    __device__ bool has(int v) const { return WHOLE || at(v) < length; }
    __device__ int64_t offset(int v) const { return row * length + at(0) + v * THREADS * size; }
    /* Elements of the row in this block and in another. */
    __device__ float count(int of_rank) const { return (float)slice_count(length, of_rank, width); }
    /* All packs at once; those past the end become zeros. */
    template <bool PLAIN = false> __device__ void load(const T *from, pack<T> (&x)[VECS]) const
    {
#pragma unroll
        for (int v = 0; v < VECS; v++)
            x[v] = has(v) ? PLAIN ? load_plain(from + offset(v)) : load_once(from + offset(v)) : pack<T>{};
    }
};

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

/* Sums over a row: of the group, then of the cluster. Once a launch. */
template <int N, typename S> __device__ inline void slice_sum(float (&v)[N], const S &s, float (&slots)[8][N])
{
    if (s.cluster == 1)
        return;
    swap(slots, s.rank, s.cluster, v);
    for (int n = 0; n < N; n++) {
        v[n] = 0;
        for (int p = 0; p < s.cluster; p++)
            v[n] += slots[p][n];
    }
}

/* f.template operator()<THREADS, VECS>(cluster) with the smallest shape for a row of `packs`, true; false where none takes it. */
template <typename F> inline bool with_row_slice(int64_t packs, F &&f)
{
    int cluster = cluster_of(packs, 2048);
    if (packs <= 64)
        f.template operator()<32, 2>(1);
    else if (packs <= 128)
        f.template operator()<32, 4>(1);
    else if (packs <= 256)
        f.template operator()<128, 2>(1);
    else if (packs <= 512)
        f.template operator()<128, 4>(1);
    else if (packs <= 1024)
        f.template operator()<256, 4>(1);
    else if (cluster > 0)
        f.template operator()<512, 4>(cluster);
    else if (packs <= 4096)
        f.template operator()<512, 8>(1);
    else
        return false;
    return true;
}

/* Start KERNEL for `rows` rows of a with the shape of S. */
template <auto KERNEL, typename S, typename A> inline cudaError_t launch_slices(const A &a, int64_t rows, int cluster, cudaStream_t stream)
{
    cluster_launch l((rows + S::groups - 1) / S::groups, cluster, S::threads, 0, stream);
    return cudaLaunchKernelEx(&l.config, KERNEL, a, cluster);
}

}

#endif
