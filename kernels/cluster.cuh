/* Two floats from each block of a cluster to every block of it, once a row, without a fence.
 *
 * A cluster barrier waits until the stores before it are done, which a kernel that streams its results cannot afford once a row.
 * Here a block sends with st.async, which counts its bytes on a transaction barrier of the receiver, and nothing else waits.
 *
 * Use: open(); then for each row every thread calls exchange() with row number 0, 1, 2 … of the block, and a __syncthreads()
 * lies between two calls. All blocks of a cluster take the same number of rows. Needs sm_90; without it only clusters of one.
 */
#ifndef KI_CLUSTER_CUH
#define KI_CLUSTER_CUH

#include <cooperative_groups.h>

#include "common.cuh"

namespace ki {

/* In shared memory. Two rows alternate: who sends row n + 2 has seen everyone's row n + 1, sent after they read row n. */
struct cluster_mail {
    unsigned long long barrier[2];
    float2 slot[2][8]; /* by parity of the row, rank of the sender */
};

#if __CUDA_ARCH__ >= 900

__device__ inline unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* By all threads of all blocks of the cluster. */
__device__ inline void open(cluster_mail &m)
{
    if (threadIdx.x == 0)
        for (int p = 0; p < 2; p++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&m.barrier[p])) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    cooperative_groups::this_cluster().sync();
}

/* Send v (the same in all threads) to every block, and wait until slot[row % 2] holds what all sent; returns it. */
__device__ inline const float2 *exchange(cluster_mail &m, int row, int rank, int cluster, float2 v)
{
    int parity = row & 1, phase = row >> 1 & 1;
    unsigned barrier = shared_address(&m.barrier[parity]), slot = shared_address(&m.slot[parity][rank]), done = 0;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(8 * cluster) : "memory");
    if ((int)threadIdx.x < cluster)
        asm volatile("{ .reg .b32 to, at;\n"
                     "mapa.shared::cluster.u32 to, %0, %2;\n"
                     "mapa.shared::cluster.u32 at, %1, %2;\n"
                     "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [to], %3, [at]; }" ::"r"(slot), "r"(barrier),
                     "r"(threadIdx.x), "l"((unsigned long long)__float_as_uint(v.y) << 32 | __float_as_uint(v.x))
                     : "memory");
    while (!done)
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier), "r"(phase) : "memory");
    return m.slot[parity];
}

#endif

}

#endif
