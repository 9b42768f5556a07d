/* Device code of operations on rows (sparsemax, cross_entropy full): rows pass through shared memory, each read once.
 *
 * A group of THREADS threads takes every step-th row, VECS 16-byte packs a thread. A ring of SLOTS packs a thread and input is
 * kept full by cp.async, so that the next rows are on their way while this one is worked on. A thread copies, and reads, only
 * its own packs: the ring needs no barrier. Groups are blocks, or, when THREADS is 32, the four warps of a block.
 * Needs row lengths that divide into packs and 16-byte aligned tensors.
 */
#ifndef KI_ROW_STREAM_CUH
#define KI_ROW_STREAM_CUH

#include "row_slice.cuh"

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
    /* Until the next pack of the row at hand is there, where a slot is released as soon as it is read. */
    __device__ void wait_one() const { asm volatile("cp.async.wait_group %0;" ::"n"(SLOTS - 1) : "memory"); }
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
