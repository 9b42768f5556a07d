/* Device code of operations that take sums over rows (norm backward) or whose rows are too long for the registers of a short block
 * (norm forward): persistent blocks, rows ahead in shared memory.
 *
 * A block is GROUPS groups of THREADS threads, each with its own rows and its own ring of STAGES rows, VECS 16-byte packs a thread
 * and input; or one group, in a cluster where a row is longer. On sm_90 one thread asks for a whole row of each input with
 * cp.async.bulk, which completes on a transaction barrier of the stage; before, each thread copies its own packs with cp.async. The
 * barrier of a row's sums says that all threads are done with the row before: its stage is refilled then.
 * Needs row lengths that divide into packs and 16-byte aligned tensors.
 */
#ifndef KI_ROW_RING_CUH
#define KI_ROW_RING_CUH

#include "cluster.cuh"
#include "resident.cuh"

namespace ki {

constexpr int ring_threads = 512, ring_bytes = 192 << 10; /* of a block (1024 where a group is that); a multiprocessor holds one */

/* Threads of one group, in group `of`, wait for one another. */
template <int THREADS> __device__ inline void group_wait(int of)
{
    if constexpr (THREADS == warp)
        __syncwarp();
    else if constexpr (THREADS >= ring_threads)
        __syncthreads();
    else
        asm volatile("bar.sync %0, %1;" ::"r"(of + 1), "n"(THREADS) : "memory");
}

/* Sums over a group, in every thread. `room` is N * THREADS / 32 floats of the group; calls alternate between two rooms. */
template <int THREADS, int N> __device__ inline void group_sum(float (&v)[N], float *room, int of)
{
    constexpr int warps = THREADS / warp;
    int lane = threadIdx.x % warp, at = threadIdx.x % THREADS / warp;
    for (int n = 0; n < N; n++) {
        v[n] = warp_sum(v[n]);
        if (warps > 1 && lane == 0)
            room[n * warps + at] = v[n];
    }
    group_wait<THREADS>(of);
    if constexpr (warps > 1)
        for (int n = 0; n < N; n++) {
            v[n] = room[n * warps + lane % warps];
            for (int d = warps / 2; d > 0; d /= 2)
                v[n] += __shfl_xor_sync(0xffffffffu, v[n], d);
        }
}

/* S, M2 and, with N 4, Q and QD of each warp become those of the group: the sum of x, its squares about the mean, the sum of q, and
 * that of q (x - mean); S becomes the mean. On entry M2 and QD are about the warp's own mean. `count` is the number of elements of the
 * warp, `counts` [warps] those of all, `all` of the group; `room` as group_sum wants it. One barrier. */
template <int THREADS, int N>
__device__ inline void group_moments(float (&v)[N], float count, const float *counts, float all, float *room, int of)
{
    constexpr int warps = THREADS / warp;
    int lane = threadIdx.x % warp, at = threadIdx.x % THREADS / warp;
    if constexpr (warps > 1) {
        if (lane == 0)
            for (int n = 0; n < N; n++)
                room[n * warps + at] = v[n];
    }
    group_wait<THREADS>(of);
    if constexpr (warps > 1) {
        count = counts[lane % warps];
        for (int n = 0; n < N; n++)
            v[n] = room[n * warps + lane % warps];
    }
    auto sum = [&](float x) {
        for (int d = warps / 2; d > 0; d /= 2)
            x += __shfl_xor_sync(0xffffffffu, x, d);
        return x;
    };
    float own = count > 0 ? v[0] / count : 0.0f, mean = all > 0 ? sum(v[0]) / all : 0.0f, shift = count > 0 ? own - mean : 0.0f;
    v[0] = mean;
    v[1] = sum(v[1] + count * shift * shift);
    if constexpr (N == 4) {
        v[3] = sum(v[3] + v[2] * shift);
        v[2] = sum(v[2]);
    }
}

template <typename T, int THREADS, int VECS, int INPUTS> struct row_ring {
    static constexpr int size = pack<T>::size, groups = THREADS < ring_threads ? ring_threads / THREADS : 1;
    static constexpr int width = THREADS * VECS * size; /* elements of a row, or of its slice, that a group can take */
    static constexpr int stage_bytes = INPUTS * groups * THREADS * VECS * 16;
    static constexpr int stages = ring_bytes / stage_bytes < 6 ? ring_bytes / stage_bytes : 6;
    static constexpr size_t shared_bytes = (size_t)stages * stage_bytes;
    static_assert(stages >= 2, "a row at hand and one ahead");

    const T *source[INPUTS];
    int64_t rows, row, step; /* row: the one at hand */
    int length, start;       /* of a row; where the slice starts in it */
    int group, member;       /* which group this thread is in, and where */
    int stage, phase;
    pack<T> *ring;           /* [stages][INPUTS][VECS][THREADS] */
    unsigned barrier;        /* [stages] */

    /* Where pack v of this thread starts in the row. */
    __device__ int at(int v) const { return start + (v * THREADS + member) * size; }
    __device__ bool has(int v) const { return at(v) < length; }
    __device__ int64_t offset(int v) const { return row * length + at(0) + v * THREADS * size; }
    /* Elements of the row in a block of the cluster. */
    __device__ float count(int rank) const { return (float)slice_count(length, rank, width); }

    __device__ void fetch(int64_t of, int to)
    {
        pack<T> *at_stage = ring + to * INPUTS * VECS * THREADS;
#if __CUDA_ARCH__ >= 900
        if (member != 0 || of >= rows)
            return;
        int bytes = slice_count(length, start / width, width) * (int)sizeof(T);
        barrier_expect(barrier + 8 * to, INPUTS * bytes);
#pragma unroll
        for (int n = 0; n < INPUTS && bytes > 0; n++)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                             shared_address(at_stage + n * VECS * THREADS)), "l"(source[n] + of * length + start), "r"(bytes),
                         "r"(barrier + 8 * to)
                         : "memory");
#else
        if (of < rows)
#pragma unroll
            for (int n = 0; n < INPUTS; n++)
#pragma unroll
                for (int v = 0; v < VECS; v++)
                    if (has(v))
                        __pipeline_memcpy_async(at_stage + (n * VECS + v) * THREADS + member, source[n] + of * length + at(v), 16);
        __pipeline_commit();
#endif
    }

    /* By all threads of the block: start at this group's first row. `barriers` is shared memory, [groups * stages]; `first` of
     * `count` blocks or clusters; `rank` in the cluster. */
    __device__ void begin(unsigned char *shared, unsigned long long *barriers, int64_t first, int64_t count, int rank)
    {
        group = threadIdx.x / THREADS;
        member = threadIdx.x % THREADS;
        start = rank * width;
        row = first * groups + group;
        step = count * groups;
        stage = phase = 0;
        ring = (pack<T> *)shared + group * stages * INPUTS * VECS * THREADS;
        barrier = shared_address(barriers + group * stages);
#if __CUDA_ARCH__ >= 900
        if (member == 0)
            for (int s = 0; s < stages; s++)
                barrier_init(barrier + 8 * s);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        __syncthreads();
#endif
        for (int v = 0; v < VECS; v++)
            for (int p = 0; p < stages * INPUTS && !has(v); p++)
                ring[(p * VECS + v) * THREADS + member] = pack<T>{}; /* stays: nothing is copied there */
        for (int s = 0; s < stages; s++)
            fetch(row + s * step, s);
    }

    /* Until the row at hand is there. */
    __device__ void wait() const
    {
#if __CUDA_ARCH__ >= 900
        barrier_wait(barrier + 8 * stage, phase);
#else
        asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory");
#endif
    }
    /* Pack v of input n of the row at hand; zeros past the end. */
    __device__ pack<T> get(int n, int v) const
    {
        return ring[((stage * INPUTS + n) * VECS + v) * THREADS + member];
    }
    /* Once a row, when all threads of the group are done with the row before: its stage takes another. */
    __device__ void refill(bool first)
    {
        fetch(first ? rows : row + (stages - 1) * step, stage == 0 ? stages - 1 : stage - 1);
    }
    __device__ void next()
    {
        row += step;
        phase ^= stage == stages - 1;
        stage = stage == stages - 1 ? 0 : stage + 1;
    }
    /* After the last row: a group that took one row less than the block's first passes its own barrier once more. Nothing waits for
     * that; but compute-sanitizer's racecheck takes threads that passed different numbers of barriers for unordered at the next
     * __syncthreads(). */
    __device__ void end() const
    {
        if (groups > 1 && row - group < rows)
            group_wait<THREADS>(group);
    }
};

/* Sums of columns that the groups of a block hold, `held`(v, i) for element i of pack v, to one row `to` [length] for the block or,
 * in a cluster, to its slice. `shared` [groups * width] floats, of a ring that has run dry. */
template <typename R, int VECS, typename F> __device__ inline void put_columns(const R &s, float *shared, float *to, F &&held)
{
    if constexpr (R::groups == 1) {
#pragma unroll
        for (int v = 0; v < VECS; v++)
            if (s.has(v))
                for (int i = 0; i < R::size; i += 4)
                    *(float4 *)(to + s.at(v) + i) = make_float4(held(v, i), held(v, i + 1), held(v, i + 2), held(v, i + 3));
    } else {
        __syncthreads();
#pragma unroll
        for (int v = 0; v < VECS; v++)
            for (int i = 0; i < R::size; i += 4)
                *(float4 *)(shared + s.group * R::width + s.at(v) + i)
                    = make_float4(held(v, i), held(v, i + 1), held(v, i + 2), held(v, i + 3));
        __syncthreads();
        for (int c = threadIdx.x; c < s.length; c += ring_threads) {
            float sum = 0;
            for (int g = 0; g < R::groups; g++)
                sum += shared[g * R::width + c];
            to[c] = sum;
        }
    }
}

/* f.template operator()<THREADS>(cluster) with the smallest group for a row of `packs`, VECS a thread, true; false where none does. */
template <int VECS, typename F> inline bool with_row_ring(int64_t packs, F &&f)
{
    int cluster = cluster_of(packs, ring_threads * VECS);
    if (packs <= 32 * VECS)
        f.template operator()<32>(1);
    else if (packs <= 64 * VECS)
        f.template operator()<64>(1);
    else if (packs <= 128 * VECS)
        f.template operator()<128>(1);
    else if (packs <= 256 * VECS)
        f.template operator()<256>(1);
    else if (cluster > 0)
        f.template operator()<512>(cluster);
    else
        return false;
    return true;
}

}

#endif
