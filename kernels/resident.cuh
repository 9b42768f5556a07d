/* How many blocks or clusters of a kernel run at once, and how to start them.
 */
#ifndef KI_RESIDENT_CUH
#define KI_RESIDENT_CUH

#include "common.cuh"

namespace ki {

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

/* Blocks of a launch in clusters of 1, 2, 4 or 8, which it owns. */
struct cluster_launch {
    cudaLaunchAttribute attribute[2] = { { .id = cudaLaunchAttributeClusterDimension } };
    cudaLaunchConfig_t config = {};

    cluster_launch(int64_t clusters, int cluster, int threads, size_t shared_bytes, cudaStream_t stream)
    {
        attribute[0].val.clusterDim = { (unsigned)cluster, 1, 1 };
        config.gridDim = dim3((unsigned)(clusters * cluster));
        config.blockDim = dim3((unsigned)threads);
        config.dynamicSmemBytes = shared_bytes;
        config.stream = stream;
        config.attrs = attribute;
        config.numAttrs = cluster > 1 ? 1u : 0u;
    }
    cluster_launch(const cluster_launch &) = delete;
    /* See launch_after(). */
    void early()
    {
        if (!has_clusters())
            return;
        attribute[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
};

/* How many clusters of 1, 2, 4 or 8 blocks of KERNEL the device holds at once; 0 if it cannot. */
template <auto KERNEL> inline int resident_clusters(int cluster, int threads, size_t shared_bytes)
{
    static thread_local int known[9]; /* by cluster size; one more than the answer */
    if (cluster == 1)
        return resident_blocks<KERNEL>(threads, shared_bytes);
    if (known[cluster])
        return known[cluster] - 1;
    int count = 0;
    if (has_clusters() && resident_blocks<KERNEL>(threads, shared_bytes) > 0) {
        cluster_launch l(1, cluster, threads, shared_bytes, nullptr);
        cudaOccupancyMaxActiveClusters(&count, KERNEL, &l.config);
    }
    known[cluster] = count + 1;
    return count;
}

/* The smallest cluster of 1, 2, 4 or 8 slices that takes a row; 0 if none does. */
inline int cluster_of(int64_t length, int64_t slice)
{
    for (int cluster = 1; cluster <= 8; cluster *= 2)
        if (length <= cluster * slice)
            return cluster == 1 || has_clusters() ? cluster : 0;
    return 0;
}

/* Blocks for `rows` rows, `groups` a block, of which `resident` run at once. */
inline unsigned row_blocks(int64_t rows, int groups, int resident)
{
    int64_t blocks = (rows + groups - 1) / groups;
    return (unsigned)(blocks < resident ? blocks : resident);
}

}

#endif
