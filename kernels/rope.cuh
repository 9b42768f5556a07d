/* Device code of rope and llama4_rope: turn the pairs of every head by an angle that grows with the position.
 * ADJACENT pairs elements (2i, 2i + 1); otherwise (i, i + D/2).
 */
#ifndef KI_ROPE_CUH
#define KI_ROPE_CUH

#include "common.cuh"

namespace ki {

constexpr int rope_pairs = 256; /* pairs a head at most: head_dim 512 */
constexpr int rope_threads = 128; /* a block */

/* theta^(-2i/D) / (2 pi), turns a position, as the sum of two floats: their product with a position below 2^24 is known to
 * 1e-7 of a turn, where one float would be off by 1e-4 at position 16384. Made on the host for each launch. */
struct alignas(16) rope_turns {
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
    int q_heads, k_heads, half, blocks; /* blocks a position */
};

inline void rope_fill_turns(struct rope_turns *t, double theta, int half)
{
    double ratio = pow(theta, -1.0 / half), f = 0.15915494309189533577;
    for (int i = 0; i < half; i++, f *= ratio) {
        t->high[i] = (float)f;
        t->low[i] = (float)(f - (double)t->high[i]);
    }
}

/* N values of a kernel's parameter by ordinary loads: threads that read different constants would wait for one another. */
template <int N> __device__ inline void parameters(const float *p, float (&v)[N])
{
    static_assert(N == 1 || N == 2 || N % 4 == 0);
    if constexpr (N == 1)
        asm("ld.f32 %0, [%1];" : "=f"(v[0]) : "l"(p));
    else if constexpr (N == 2)
        asm("ld.v2.f32 {%0, %1}, [%2];" : "=f"(v[0]), "=f"(v[1]) : "l"(p));
    else
        for (int i = 0; i < N; i += 4)
            asm("ld.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[i]), "=f"(v[i + 1]), "=f"(v[i + 2]), "=f"(v[i + 3]) : "l"(p + i));
}

/* Cosine and sine of an angle of high + low turns a position, to fp32; for 16-bit types by the fast instructions, off by 5e-7 at most. */
template <typename T> __device__ inline float2 rope_turn(float high, float low, int position)
{
    float s = (float)position, p = s * high, rest = fmaf(s, high, -p) + s * low, turn = p - rintf(p) + rest, sine, cosine;
    if constexpr (sizeof(T) == 4)
        sincospif(2.0f * turn, &sine, &cosine);
    else
        __sincosf(6.28318531f * turn, &sine, &cosine);
    return make_float2(cosine, sine);
}

/* Pairs that a thread turns. */
template <typename T, bool ADJACENT> constexpr int rope_unit = ADJACENT ? pack<T>::size / 2 : pack<T>::size;

/* RoPE: a' = a cos - sign b sin, b' = b cos + sign a sin for the pairs (a, b) of every head
 * q [seq, q_heads, D]   k [seq, k_heads, D], row-major   angles from two-float turns
 * grid (seq * blocks a position, parts)  block (128): a thread turns UNITS units, a block apart, each two 16-byte packs (those of both
 * halves) or one (adjacent). While they are on their way each thread makes OWN of its unit's angles and takes the others from the lanes
 * that turn the same pairs of other heads: no shared memory, no barrier. Needs packs to divide a half; for OWN below the pairs of a unit,
 * a warp of whole heads; for more than one unit, a block of whole heads, so that all of a thread's units have the same angles
 * bytes 4 seq (q_heads + k_heads) D s for one part      2048 x 8192, 32 + 8 heads, bf16: 83.9 MB in 24.9 us, 3.37 TB/s */
template <typename T, bool ADJACENT, int OWN, int UNITS>
__global__ void __launch_bounds__(rope_threads, UNITS > 1 ? 8 : 10) rope_rotate(const __grid_constant__ rope_args<T> a)
{
    constexpr int size = pack<T>::size, packs = ADJACENT ? 1 : 2, pairs = rope_unit<T, ADJACENT>;
    const rope_part<T> &part = a.part[blockIdx.y];
    unsigned position = blockIdx.x / (unsigned)a.blocks;
    unsigned unit = (blockIdx.x - position * (unsigned)a.blocks) * (rope_threads * UNITS) + threadIdx.x;
    unsigned a_head = (unsigned)(a.half / pairs), head = unit / a_head, at = unit - head * a_head;
    unsigned heads_on = rope_threads / a_head; /* from one unit of a thread to the next */
    pack<T> held[UNITS][packs];
    bool query[UNITS], valid[UNITS];
    int64_t offset[UNITS];
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        unsigned of = head + (unsigned)u * heads_on;
        query[u] = of < (unsigned)a.q_heads;
        valid[u] = of < (unsigned)(a.q_heads + a.k_heads);
        unsigned own = query[u] ? of : of - (unsigned)a.q_heads, heads = (unsigned)(query[u] ? a.q_heads : a.k_heads);
        offset[u] = ((int64_t)position * heads + own) * (2 * a.half) + at * size;
        const T *from = (query[u] ? part.q : part.k) + offset[u];
        if (valid[u])
            for (int p = 0; p < packs; p++)
                held[u][p] = load_once(from + p * a.half);
    }

    float high[OWN], low[OWN], c[pairs], s[pairs], cosine[OWN], sine[OWN];
    unsigned first = at * pairs + head % (pairs / OWN) * OWN; /* of the angles of this thread */
    parameters(&a.turns.high[first], high);
    parameters(&a.turns.low[first], low);
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        float2 turn = rope_turn<T>(high[i], low[i], (int)position);
        cosine[i] = turn.x;
        sine[i] = turn.y * part.sign;
    }
#pragma unroll
    for (int i = 0; i < pairs; i++) {
        c[i] = OWN == pairs ? cosine[i % OWN] : __shfl_sync(0xffffffffu, cosine[i % OWN], (int)(at + a_head * (i / OWN)));
        s[i] = OWN == pairs ? sine[i % OWN] : __shfl_sync(0xffffffffu, sine[i % OWN], (int)(at + a_head * (i / OWN)));
    }
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        if (!valid[u])
            continue;
        T *to = (query[u] ? part.q_to : part.k_to) + offset[u];
        unpacked<T> turned[packs];
#pragma unroll
        for (int i = 0; i < pairs; i++) {
            int left = ADJACENT ? 2 * i : i, right = ADJACENT ? left + 1 : left, other = packs - 1;
            float x = held[u][0][left], y = held[u][other][right];
            turned[0].set(left, x * c[i] - y * s[i]);
            turned[other].set(right, y * c[i] + x * s[i]);
        }
        for (int p = 0; p < packs; p++)
            store_once(to + p * a.half, turned[p]);
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
        float high[1], low[1];
        parameters(&a.turns.high[i], high);
        parameters(&a.turns.low[i], low);
        float2 turn = rope_turn<T>(high[0], low[0], (int)blockIdx.x);
        float x = widen(from[left]), y = widen(from[right]), s = turn.y * part.sign;
        to[left] = narrow<T>(x * turn.x - y * s);
        to[right] = narrow<T>(y * turn.x + x * s);
    }
}

/* f.template operator()<OWN>() with as few angles a thread as `share` lanes of the same pairs allow. */
template <int PAIRS, int OWN = 1, typename F> inline void with_own_angles(int share, F &&f)
{
    if constexpr (OWN == PAIRS)
        f.template operator()<PAIRS>();
    else if (share * OWN >= PAIRS)
        f.template operator()<OWN>();
    else
        with_own_angles<PAIRS, 2 * OWN>(share, f);
}

/* Rotate `parts` parts of a. */
template <typename T, bool ADJACENT>
inline cudaError_t rope_launch(rope_args<T> &a, int64_t seq, int parts, double theta, cudaStream_t stream)
{
    rope_fill_turns(&a.turns, theta, a.half);
    dim3 grid((unsigned)seq, (unsigned)parts);
    constexpr int pairs = rope_unit<T, ADJACENT>;
    if (a.half % pairs != 0) {
        rope_rotate_any<T, ADJACENT><<<grid, 256, 0, stream>>>(a);
        return cudaGetLastError();
    }
    int a_head = a.half / pairs, units = (a.q_heads + a.k_heads) * a_head;
    with_own_angles<pairs>(warp % a_head == 0 ? warp / a_head : 1, [&]<int OWN>() {
        auto start = [&]<int UNITS>() {
            a.blocks = (units + rope_threads * UNITS - 1) / (rope_threads * UNITS);
            grid.x *= (unsigned)a.blocks; /* below 2^31: a block takes 1 KB of q and k on the average, or a position has one */
            rope_rotate<T, ADJACENT, OWN, UNITS><<<grid, rope_threads, 0, stream>>>(a);
        };
        if constexpr (ADJACENT && OWN == pairs)
            if (rope_threads % a_head == 0)
                return start.template operator()<2>(); /* half the angles */
        start.template operator()<1>();
    });
    return cudaGetLastError();
}

}

#endif
