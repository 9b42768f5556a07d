/* Device code of kl_div, jsd and tvd: losses summed over pairs of elements (a, b) of two tensors [tokens, vocab], with a gradient
 * to the first. Rows play no part, so tensors are taken as flat runs of elements.
 *
 * A loss is a type L with
 *     struct L { float g, …; __device__ void pair(float a, float b, float &loss, float &grad) const; }
 * where `loss` gets the term and `grad` its derivative by a times g; factor is what the sum is multiplied by (with 1/tokens),
 * reads_first whether the derivative needs a, reading_threads the threads of a block that only reads: 512, or 256 where a term takes so
 * much arithmetic that large blocks would leave memory idle (measured: jsd forward 3% slower with 512, the others 0.4% faster).
 */
#ifndef KI_PAIR_LOSS_CUH
#define KI_PAIR_LOSS_CUH

#include "loss.cuh"

namespace ki {

/* Threads that a multiprocessor must have registers for, and those of a block. */
constexpr int pair_resident = 1024;
template <typename L, bool GRAD> constexpr int pair_threads = GRAD ? 512 : L::reading_threads;

/* Packs of each tensor that a thread has in flight; a pack of 16-bit elements takes more registers once it is unpacked. */
template <typename T> constexpr int pair_unroll = sizeof(T) == 4 ? 4 : 2;

template <typename T> struct pair_loss_args {
    const T *first, *second, *dloss; /* dloss [1] */
    T *grad;
    double *partial; /* [blocks] */
    int64_t count;   /* elements */
    int64_t chunk;   /* packs of a block, whole tiles */
    float divisor;   /* of the gradient: tokens / factor, so that it is rounded once */
};

/* loss = factor / tokens * sum over pairs, dfirst = dloss * its derivative
 * first, second, grad [count]   partial [grid] fp64: the sum of each block; sums in fp32 over a tile, then fp64
 * grid (packs / chunk)  block (512, or reading_threads): a block takes tiles that follow one another, 4 packs of 16 bytes a thread and
 * tensor (16-bit types: 2), all loads of a tile in flight; as few tiles as the room for partial sums allows; the elements that do not fill
 * a pack go to the first block
 * bytes LOSS 2 count s, GRAD 3 count s (2 where the derivative does not read the first), both 3 count s
 * 8192 x 65536 fp32: 4.29, 6.44, 6.44 GB */
template <typename T, typename L, bool LOSS, bool GRAD>
__global__ void __launch_bounds__(pair_threads<L, GRAD>, pair_resident / pair_threads<L, GRAD>)
    pair_loss(const __grid_constant__ pair_loss_args<T> a, L of)
{
    constexpr int size = pack<T>::size, unroll = pair_unroll<T>, threads = pair_threads<L, GRAD>;
    constexpr bool first = LOSS || L::reads_first;
    if (GRAD)
        of.g = widen(*a.dloss) / a.divisor;
    double total = 0;
    int64_t packs = a.count / size, end = (blockIdx.x + 1) * a.chunk;
    end = end < packs ? end : packs;
    for (int64_t base = blockIdx.x * a.chunk; base < end; base += threads * unroll) {
        pack<T> x[unroll], y[unroll];
        int left = (int)(end - base < threads * unroll ? end - base : threads * unroll);
        const T *from_x = a.first + base * size, *from_y = a.second + base * size;
        T *to = GRAD ? a.grad + base * size : nullptr;
#pragma unroll
        for (int u = 0; u < unroll; u++) {
            int p = u * threads + (int)threadIdx.x;
            if (p >= left)
                continue;
            if (first)
                x[u] = load_once(from_x + p * size);
            y[u] = load_once(from_y + p * size);
        }
        float sum = 0;
#pragma unroll
        for (int u = 0; u < unroll; u++) {
            int p = u * threads + (int)threadIdx.x;
            if (p >= left)
                continue;
            unpacked<T> d;
#pragma unroll
            for (int i = 0; i < size; i++) {
                float loss, grad;
                of.pair(first ? x[u][i] : 0.0f, y[u][i], loss, grad);
                if (LOSS)
                    sum += loss;
                if (GRAD)
                    d.set(i, grad);
            }
            if (GRAD)
                store_once(to + p * size, d);
        }
        if (LOSS)
            total += (double)sum;
    }
    int64_t rest = packs * size + threadIdx.x;
    if (blockIdx.x == 0 && rest < a.count) {
        float loss, grad;
        of.pair(first ? widen(a.first[rest]) : 0.0f, widen(a.second[rest]), loss, grad);
        total += (double)loss;
        if (GRAD)
            a.grad[rest] = narrow<T>(grad);
    }
    if (LOSS) {
        total = block_total(total);
        if (threadIdx.x == 0)
            a.partial[blockIdx.x] = total;
    }
}

/* One launch; `limit` is the number of partial sums that the workspace holds. `grid` gets the blocks. */
template <bool LOSS, bool GRAD, typename T, typename L>
inline cudaError_t pair_loss_launch(pair_loss_args<T> a, L of, int64_t limit, unsigned *grid, cudaStream_t stream)
{
    constexpr int threads = pair_threads<L, GRAD>;
    int64_t tile = (int64_t)threads * pair_unroll<T>, tiles = (a.count / pack<T>::size + tile - 1) / tile;
    int64_t each = (tiles + limit - 1) / limit, blocks;
    each = each > 1 ? each : 1;
    blocks = (tiles + each - 1) / each;
    *grid = (unsigned)(blocks > 1 ? blocks : 1);
    a.chunk = each * tile;
    pair_loss<T, L, LOSS, GRAD><<<*grid, threads, 0, stream>>>(a, of);
    return cudaGetLastError();
}

/* One pass of a loss. */
template <typename T, typename L>
inline cudaError_t pair_loss_pass(enum ki_pass pass, pair_loss_args<T> a, int64_t tokens, T *loss, L of, int limit, cudaStream_t stream)
{
    unsigned grid = 0;
    a.divisor = (float)((double)tokens / L::factor);
    if (pass == KI_BACKWARD)
        return pair_loss_launch<false, true>(a, of, 0x7fffffff, &grid, stream);
    cudaError_t e = pass == KI_FULL ? pair_loss_launch<true, true>(a, of, limit, &grid, stream)
                                    : pair_loss_launch<true, false>(a, of, limit, &grid, stream);
    return e != cudaSuccess ? e
        : launch_after(loss_total<T>, dim3(1), dim3(1024), stream, a.partial, (int)grid, L::factor / (double)tokens, loss);
}

}

#endif
