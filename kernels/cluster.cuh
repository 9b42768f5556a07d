/* N floats from each block of a cluster to every block of it: once a launch (meet, swap), or once a row without a fence (mail).
 *
 * A cluster barrier waits until the stores before it are done, which a kernel that streams its results cannot afford once a row.
 * There a block sends with st.async, which counts its bytes on a transaction barrier of the receiver, and nothing else waits.
 * Needs sm_90; without it only clusters of one.
 *
 * Mail: open(); then for each row every thread calls exchange() with row number 0, 1, 2 … of the block, and a __syncthreads()
 * lies between two calls. All blocks of a cluster take the same number of rows.
 */
#ifndef KI_CLUSTER_CUH
#define KI_CLUSTER_CUH

#include <cooperative_groups.h>

#include "common.cuh"

namespace ki {

/* In shared memory. Two rows alternate: who sends row n + 2 has seen everyone's row n + 1, sent after they read row n. N is even. */
template <int N> struct cluster_mail {
    unsigned long long barrier[2];
    float slot[2][8][N]; /* by parity of the row, rank of the sender */
};

__device__ inline unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

#if __CUDA_ARCH__ >= 900

__device__ inline void barrier_init(unsigned barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

/* Expect `bytes` more in this phase, and arrive. */
__device__ inline void barrier_expect(unsigned barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* Wait for the end of the phase of that parity. */
__device__ inline void barrier_wait(unsigned barrier, int parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}

/* By all threads of all blocks of the cluster. */
template <int N> __device__ inline void open(cluster_mail<N> &m)
{
    if (threadIdx.x == 0)
        for (int p = 0; p < 2; p++)
            barrier_init(shared_address(&m.barrier[p]));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cooperative_groups::this_cluster().sync();
}

/* Send v (the same in all threads) to every block, and wait until slot[row % 2] holds what all sent; returns it. */
template <int N> __device__ inline const float (*exchange(cluster_mail<N> &m, int row, int rank, int cluster, const float (&v)[N]))[N]
{
    int parity = row & 1, phase = row >> 1 & 1;
    unsigned barrier = shared_address(&m.barrier[parity]), slot = shared_address(&m.slot[parity][rank]);
    if (threadIdx.x == 0)
        barrier_expect(barrier, 4 * N * cluster);
    if ((int)threadIdx.x < cluster)
        for (int n = 0; n < N; n += 2)
            asm volatile("{ .reg .b32 to, at;\n"
                         "mapa.shared::cluster.u32 to, %0, %2;\n"
                         "mapa.shared::cluster.u32 at, %1, %2;\n"
                         "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [to], %3, [at]; }" ::"r"(slot + 4 * n), "r"(barrier),
                         "r"(threadIdx.x), "l"((unsigned long long)__float_as_uint(v[n + 1]) << 32 | __float_as_uint(v[n]))
                         : "memory");
    barrier_wait(barrier, phase);
    return m.slot[parity];
}

#endif

/* Elements of a row in slice `rank`; 0 past the end. */
__device__ inline int slice_count(int length, int rank, int width)
{
    int left = length - rank * width;
    return left < 0 ? 0 : left < width ? left : width;
}

/* First thing in a kernel that calls swap(): peers' shared memory exists only once they run. */
__device__ inline void meet(int cluster)
{
#if __CUDA_ARCH__ >= 900
    if (cluster > 1)
        cooperative_groups::this_cluster().barrier_arrive();
#endif
}

/* Once a launch: v (the same in all threads) of every block, by rank. `slots` is shared memory. */
template <int N> __device__ inline void swap(float (&slots)[8][N], int rank, int cluster, const float (&v)[N])
{
#if __CUDA_ARCH__ >= 900
    auto group = cooperative_groups::this_cluster();
    group.barrier_wait();
    if ((int)threadIdx.x < cluster)
        for (int n = 0; n < N; n++)
            group.map_shared_rank(&slots[0][0], threadIdx.x)[rank * N + n] = v[n];
    group.sync();
#endif
}

}

#endif
