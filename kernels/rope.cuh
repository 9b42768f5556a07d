/* Device code of rope and llama4_rope: turn the pairs of every head by an angle that grows with the position.
 * ADJACENT pairs elements (2i, 2i + 1); otherwise (i, i + D/2).
 */
#ifndef KI_ROPE_CUH
#define KI_ROPE_CUH

#include "common.cuh"

namespace ki {

constexpr int rope_pairs = 256; /* pairs a head at most: head_dim 512 */
constexpr int rope_threads = 320; /* a block at most; 32 query and 8 key heads of 256 elements in one round */

/* theta^(-2i/D) / (2 pi), turns a position, as the sum of two floats: their product with a position below 2^24 is known to
 * 1e-7 of a turn, where one float would be off by 1e-4 at position 16384. Made on the host for each launch. */
struct rope_turns {
    float high[rope_pairs], low[rope_pairs];
};

/* One rotation of q and k: forward with sign 1, backward with sign -1. */
template <typename T> struct rope_part {
    const T *q, *k;
    T *q_to, *k_to;
    float sign;
};

template <typename T> struct rope_args {
    rope_part<T> part[2]; /* by blockIdx.y */
    rope_turns turns;
    int q_heads, k_heads, half;
};

inline void rope_fill_turns(struct rope_turns *t, double theta, int half)
{
    double ratio = pow(theta, -1.0 / half), f = 0.15915494309189533577;
    for (int i = 0; i < half; i++, f *= ratio) {
        t->high[i] = (float)f;
        t->low[i] = (float)(f - (double)t->high[i]);
    }
}

/* A kernel's parameter by an ordinary load: threads that read different constants would wait for one another. */
__device__ inline float parameter(const float *p)
{
    float v;
    asm("ld.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}

__device__ inline float2 rope_turn(const rope_turns &t, int position, int i)
{
    float high = parameter(&t.high[i]), low = parameter(&t.low[i]), sine, cosine;
    float s = (float)position, p = s * high, rest = fmaf(s, high, -p) + s * low;
    sincospif(2.0f * (p - rintf(p) + rest), &sine, &cosine);
    return make_float2(cosine, sine);
}

/* RoPE: a' = a cos - sign b sin, b' = b cos + sign a sin for the pairs (a, b) of every head
 * q [seq, q_heads, D]   k [seq, k_heads, D], row-major   angles fp32 from two-float turns
 * grid (seq, parts)  block (threads): one block a position; its D/2 cosines and sines lie in shared memory and serve all heads;
 * a thread takes two units at a time, each two 16-byte packs (halves) or one (adjacent); needs packs to divide a half
 * bytes 4 seq (q_heads + k_heads) D s for one part */
template <typename T, bool ADJACENT>
__global__ void rope_rotate(const __grid_constant__ rope_args<T> a)
{
    constexpr int size = pack<T>::size, ahead = 2, packs = ADJACENT ? 1 : 2;
    __shared__ float cosine[rope_pairs], sine[rope_pairs];
    const rope_part<T> &part = a.part[blockIdx.y];
    int position = blockIdx.x, dim = 2 * a.half;
    int a_head = (ADJACENT ? dim : a.half) / size, q_units = a.q_heads * a_head, units = q_units + a.k_heads * a_head;
    bool ready = false;

    for (int base = threadIdx.x; base - (int)threadIdx.x < units; base += ahead * blockDim.x) {
        pack<T> held[ahead][packs];
        int64_t offset[ahead];
#pragma unroll
        for (int n = 0; n < ahead; n++) {
            int unit = base + n * blockDim.x, own = unit < q_units ? unit : unit - q_units;
            int heads = unit < q_units ? a.q_heads : a.k_heads;
            const T *from = unit < q_units ? part.q : part.k;
            offset[n] = ((int64_t)position * heads + own / a_head) * dim + own % a_head * size;
            if (unit < units)
                for (int p = 0; p < packs; p++)
                    held[n][p] = load_once(from + offset[n] + p * a.half);
        }
        if (!ready) { /* the first loads are on their way while the angles are made */
            for (int i = threadIdx.x; i < a.half; i += blockDim.x) {
                float2 turn = rope_turn(a.turns, position, i);
                cosine[i] = turn.x;
                sine[i] = turn.y * part.sign;
            }
            __syncthreads();
            ready = true;
        }
#pragma unroll
        for (int n = 0; n < ahead; n++) {
            int unit = base + n * blockDim.x, first = unit % a_head * size;
            if (unit >= units)
                continue;
            T *to = (unit < q_units ? part.q_to : part.k_to) + offset[n];
            unpacked<T> turned[packs];
            if constexpr (ADJACENT) {
                for (int i = 0; i < size; i += 2) {
                    float x = held[n][0][i], y = held[n][0][i + 1], c = cosine[(first + i) / 2], s = sine[(first + i) / 2];
                    turned[0].set(i, x * c - y * s);
                    turned[0].set(i + 1, y * c + x * s);
                }
            } else {
                for (int i = 0; i < size; i++) {
                    float x = held[n][0][i], y = held[n][1][i], c = cosine[first + i], s = sine[first + i];
                    turned[0].set(i, x * c - y * s);
                    turned[1].set(i, y * c + x * s);
                }
            }
            for (int p = 0; p < packs; p++)
                store_once(to + p * a.half, turned[p]);
        }
    }
}

/* As above for any even D up to 512, a pair a thread. grid (seq, parts)  block (256) */
template <typename T, bool ADJACENT>
__global__ void rope_rotate_any(const __grid_constant__ rope_args<T> a)
{
    const rope_part<T> &part = a.part[blockIdx.y];
    int q_units = a.q_heads * a.half, units = q_units + a.k_heads * a.half;
    for (int unit = threadIdx.x; unit < units; unit += blockDim.x) {
        bool query = unit < q_units;
        int own = query ? unit : unit - q_units, i = own % a.half, heads = query ? a.q_heads : a.k_heads;
        int64_t head = ((int64_t)blockIdx.x * heads + own / a.half) * 2 * a.half;
        int64_t left = head + (ADJACENT ? 2 * i : i), right = left + (ADJACENT ? 1 : a.half);
        const T *from = query ? part.q : part.k;
        T *to = query ? part.q_to : part.k_to;
        float2 turn = rope_turn(a.turns, blockIdx.x, i);
        float x = widen(from[left]), y = widen(from[right]), s = turn.y * part.sign;
        to[left] = narrow<T>(x * turn.x - y * s);
        to[right] = narrow<T>(y * turn.x + x * s);
    }
}

/* Rotate `parts` parts of a. */
template <typename T, bool ADJACENT>
inline cudaError_t rope_launch(rope_args<T> &a, int64_t seq, int parts, double theta, cudaStream_t stream)
{
    rope_fill_turns(&a.turns, theta, a.half);
    dim3 grid((unsigned)seq, (unsigned)parts);
    if ((ADJACENT ? 2 * a.half : a.half) % pack<T>::size != 0) {
        rope_rotate_any<T, ADJACENT><<<grid, 256, 0, stream>>>(a);
        return cudaGetLastError();
    }
    int units = (a.q_heads + a.k_heads) * (ADJACENT ? 2 * a.half : a.half) / pack<T>::size;
    int rounds = (units + 2 * rope_threads - 1) / (2 * rope_threads), each = 2 * rounds * warp; /* two units a thread and round, the same number of rounds for all */
    int threads = (units + each - 1) / each * warp;
    rope_rotate<T, ADJACENT><<<grid, (unsigned)threads, 0, stream>>>(a);
    return cudaGetLastError();
}

}

#endif
