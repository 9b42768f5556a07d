/* Sparsemax over the last axis: the projection of a row on the simplex. No sort: only elements above max - 1 can be in the
 * support, usually a few dozen, and Newton's method on them gives tau in a few steps.
 * x, y, dy, dx [tokens, features], row-major. Rows pass through the ring of row_stream.cuh.
 * forward   reads x, writes y                                           2048 x 32768 fp32: 537 MB
 * backward  reads y, and dy where y > 0; writes dx                      2048 x 32768 fp32: 537 MB
 * full      reads x, and dy on the support; writes y and dx             2048 x 32768 fp32: 805 MB
 * Which elements are in the support decides on dx by jumps: differences from the maximum are held in units of 2^-40, so that
 * membership is that of exact arithmetic but for elements within 1e-12 of tau, and so that sums do not depend on order.
 * reference sparsemax_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "sparsemax_ref.h"
enum { X, Y, DY, DX };
enum { TOKENS, FEATURES };

#include "ref.h"

#ifndef __CUDACC__

static int derive(struct ki_case *c, const char **reason)
{
    if (c->axis[FEATURES] <= 1 << 22) /* their sum in units of 2^-40 must fit 63 bits */
        return 0;
    *reason = "features are too many";
    return -1;
}

/* operations.md 1.1 and 4.12: 2TFs; backward TFs, since only dx is dense (3TFs as usually done); full 3TFs (4TFs). */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double all = (double)c->axis[TOKENS] * (double)c->axis[FEATURES] * (double)ki_dtype_bytes(c->dtype);
    double strict = pass == KI_BACKWARD ? 1 : pass == KI_FULL ? 3 : 2, dense = pass == KI_BACKWARD ? 3 : pass == KI_FULL ? 4 : 2;
    return (struct ki_floor){ .bytes = strict * all, .dense_bytes = dense * all, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(sparsemax);

#define ROW_SHAPE { KI_AXIS(TOKENS), KI_AXIS(FEATURES) }

extern const struct ki_operation sparsemax_operation;
const struct ki_operation sparsemax_operation = {
    .name = "sparsemax",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "tokens", "features" },
    .tensor = {
        [X] = { "x", KI_INPUT, .shape = ROW_SHAPE },
        [Y] = { "y", KI_OUTPUT, .shape = ROW_SHAPE, .kept = true },
        [DY] = { "dy", KI_UPSTREAM, .shape = ROW_SHAPE, .of = { "y" } },
        [DX] = { "dx", KI_GRADIENT, .shape = ROW_SHAPE, .of = { "x" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(sparsemax),
};

#else

#include "row_stream.cuh"

namespace {

using namespace ki;

/* Tensors of one call. Backward reads y in the place of x. */
template <typename T> struct args {
    const T *from, *dy;
    T *y, *dx;
    int64_t rows;
    int features;
};

constexpr double unit = 1099511627776.0; /* 2^40 */

/* Sum, in units of 2^-40, and number of the elements of a set. */
struct tally {
    long long sum;
    int count;
};

__device__ inline tally warp_tally(tally t)
{
    for (int d = warp / 2; d > 0; d /= 2)
        t.sum += __shfl_xor_sync(0xffffffffu, t.sum, d);
    t.count = __reduce_add_sync(0xffffffffu, t.count);
    return t;
}

/* Tallies over a group, in every thread; `room` [32], used as that of block_sum. */
template <int THREADS> __device__ inline tally row_tally(tally t, tally *room)
{
    t = warp_tally(t);
    if constexpr (THREADS == warp)
        return t;
    int lane = threadIdx.x % warp, at = threadIdx.x / warp, warps = blockDim.x / warp;
    if (lane == 0)
        room[at] = t;
    __syncthreads();
    return warp_tally(lane < warps ? room[lane] : tally{ 0, 0 });
}

/* x - most in units of 2^-40. */
__device__ inline long long units(float x, float most)
{
    return __double2ll_rn(((double)x - (double)most) * unit);
}

/* tau - max in units. tally_above(t) gives the tally, over the whole row, of the elements above t. */
template <typename F> __device__ inline double newton(F &&tally_above)
{
    double tau = -unit;
    for (int before = -1;;) {
        tally t = tally_above(tau);
        if (t.count == before || t.count == 0)
            return tau;
        before = t.count;
        tau = ((double)t.sum - unit) / (double)t.count;
    }
}

/* tau - max in units, of a few elements, by one warp: an element is in the support if 1 + k x > s for the number k and the sum s of
 * those no smaller. Each lane tries two; `few` [64] is shared memory. */
__device__ inline double tau_of_few(const float *value, int count, float most, long long *few)
{
    constexpr long long one = 1ll << 40;
    int lane = threadIdx.x % warp, k[2] = { 0, 0 };
    long long own[2], sum[2] = { 0, 0 };
    for (int n = 0; n < 2; n++) {
        int i = lane + n * warp;
        own[n] = i < count ? units(value[i], most) : one; /* one: never below another, so k and s stay 0 */
        few[i] = own[n];
    }
    __syncwarp();
#pragma unroll 4
    for (int i = 0; i < count; i++) {
        long long x = few[i];
        for (int n = 0; n < 2; n++)
            if (x >= own[n]) {
                sum[n] += x;
                k[n]++;
            }
    }
    for (int n = 0; n < 2; n++)
        k[n] = one + k[n] * own[n] > sum[n] ? k[n] : 0;
    int both = k[1] > k[0] ? k[1] : k[0], all = __reduce_max_sync(0xffffffffu, both);
    long long s = k[1] > k[0] ? sum[1] : sum[0];
    s = __shfl_sync(0xffffffffu, s, __ffs(__ballot_sync(0xffffffffu, both == all)) - 1);
    return (double)(s - one) / (double)all;
}

template <int THREADS> __device__ inline void group_barrier()
{
    if constexpr (THREADS == warp)
        __syncwarp();
    else
        __syncthreads();
}

/* The float such that x > limit decides on membership: the largest that is not above max + tau. */
__device__ inline float limit_of(float most, double tau)
{
    return __double2float_rd((double)most + tau / unit);
}

__device__ inline float projected(float x, float most, double tau, float limit)
{
    return x > limit ? (float)((double)x - (double)most - tau / unit) : 0.0f;
}

/* Elements of a row that can be in the support; one list a group. */
template <int THREADS> struct candidates {
    static constexpr int room = THREADS == warp ? 128 : 512;
    float value[room];
    long long few[2 * warp];
    double tau;
    int count;
};

/* Sparsemax forward, full with FULL: y = max(x - tau, 0), dx = dy - mean of dy over {x > tau} there, else 0
 * x, y, dy, dx [rows, features]
 * grid (resident blocks)  block (THREADS, or four rows of 32): row_stream.cuh. A group finds the maximum, lists the elements
 * above max - 1 (in any order) and lets its first warp find tau; where they are more than the list holds, all threads do,
 * over the whole row. dy is read only on the support.
 * needs features % pack == 0 and features <= THREADS * VECS * pack
 * bytes 2 rows features s; FULL 3 */
template <typename T, int THREADS, int VECS, int SLOTS, bool FULL>
__global__ void __launch_bounds__(THREADS == warp ? 128 : THREADS, THREADS == 512 ? 2 : 1) sparsemax_rows(const __grid_constant__ args<T> a)
{
    constexpr int size = pack<T>::size;
    using list_type = candidates<THREADS>;
    extern __shared__ __align__(16) unsigned char raw[];
    __shared__ float room[2][2 * warp];
    __shared__ tally tallies[2][warp];
    __shared__ list_type lists[THREADS == warp ? 4 : 1];
    row_stream<T, THREADS, VECS, 1, SLOTS> s;
    list_type &list = lists[threadIdx.x / THREADS];
    const int member = threadIdx.x % THREADS;
    s.source[0] = a.from;
    s.rows = a.rows;
    s.length = a.features;
    s.start = 0;
    s.begin(raw, blockIdx.x, gridDim.x);
    if (member == 0)
        list.count = 0;
    group_barrier<THREADS>();
    float tops[VECS]; /* of the packs at hand: few hold anything that matters */
    auto each = [&](float above, auto &&f) { /* every element of the packs that reach above that */
#pragma unroll
        for (int v = 0; v < VECS; v++)
            if (tops[v] > above) {
                pack<T> x = s.get(0, v);
#pragma unroll
                for (int i = 0; i < size; i++)
                    f(x[i], v, i);
            }
    };
    for (; s.row < a.rows; s.next()) {
        float most = -INFINITY;
        s.wait();
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            tops[v] = -INFINITY;
            if (!s.has(v))
                continue;
            pack<T> x = s.get(0, v);
#pragma unroll
            for (int i = 0; i < size; i++)
                tops[v] = fmaxf(tops[v], x[i]);
            most = fmaxf(most, tops[v]);
        }
        most = row_max<THREADS>(most, room[0]);
        float low = __fsub_rd(most, 1.0f);
        each(low, [&](float x, int, int) {
            if (x > low) {
                int at = atomicAdd(&list.count, 1);
                if (at < list.room)
                    list.value[at] = x;
            }
        });
        group_barrier<THREADS>();
        int listed = list.count;
        if (member < warp && listed > 0 && listed <= 2 * warp)
            list.tau = tau_of_few(list.value, listed, most, list.few);
        else if (member < warp && listed <= list.room)
            list.tau = newton([&](double above) {
                tally t = { 0, 0 };
                for (int i = member; i < listed; i += warp) {
                    long long d = units(list.value[i], most);
                    t.sum += (double)d > above ? d : 0;
                    t.count += (double)d > above;
                }
                return warp_tally(t);
            });
        group_barrier<THREADS>();
        double tau = list.tau;
        if (member == 0)
            list.count = 0;
        if (listed > list.room) {
            int turn = 0;
            tau = newton([&](double above) {
                tally t = { 0, 0 };
                each(low, [&](float x, int, int) {
                    long long d = x > low ? units(x, most) : 0;
                    if (x > low && (double)d > above) {
                        t.sum += d;
                        t.count++;
                    }
                });
                return row_tally<THREADS>(t, tallies[turn ^= 1]);
            });
        }
        if constexpr (THREADS == warp)
            __syncwarp(); /* the list may be written again; in a block, once all have the next maximum */
        float limit = limit_of(most, tau), mean = 0;
        if constexpr (FULL) {
            float sums[2] = { 0, 0 };
            each(limit, [&](float x, int v, int i) {
                if (x > limit) {
                    sums[0] += widen(a.dy[s.offset(v) + i]);
                    sums[1] += 1.0f;
                }
            });
            row_sum<THREADS>(sums, room[1]);
            mean = sums[0] / sums[1];
        }
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pack<T> x = tops[v] > limit ? s.get(0, v) : pack<T>{};
            unpacked<T> y = {}, dx = {};
            s.release(v);
            if (!s.has(v))
                continue;
            if (tops[v] > limit) /* fp64 for every element would take longer than its bytes */
#pragma unroll
                for (int i = 0; i < size; i++) {
                    y.set(i, projected(x[i], most, tau, limit));
                    if (FULL)
                        dx.set(i, x[i] > limit ? widen(a.dy[s.offset(v) + i]) - mean : 0.0f);
                }
            store_once(a.y + s.offset(v), y);
            if (FULL)
                store_once(a.dx + s.offset(v), dx);
        }
    }
}

/* Sparsemax backward: dx = dy - mean of dy over {y > 0} there, else 0
 * y, dy, dx [rows, features]   sums in fp32
 * grid (resident blocks)  block (THREADS, or four rows of 32): row_stream.cuh; dy is read only where y > 0
 * needs features % pack == 0 and features <= THREADS * VECS * pack       bytes 2 rows features s */
template <typename T, int THREADS, int VECS, int SLOTS>
__global__ void __launch_bounds__(THREADS == warp ? 128 : THREADS, 1) sparsemax_gradient(const __grid_constant__ args<T> a)
{
    constexpr int size = pack<T>::size;
    extern __shared__ __align__(16) unsigned char raw[];
    __shared__ float room[2][2 * warp];
    row_stream<T, THREADS, VECS, 1, SLOTS> s;
    s.source[0] = a.from;
    s.rows = a.rows;
    s.length = a.features;
    s.start = 0;
    s.begin(raw, blockIdx.x, gridDim.x);
    for (int turn = 0; s.row < a.rows; s.next(), turn ^= 1) {
        float sums[2] = { 0, 0 };
        s.wait();
#pragma unroll
        for (int v = 0; v < VECS; v++)
            if (s.has(v)) {
                pack<T> y = s.get(0, v);
#pragma unroll
                for (int i = 0; i < size; i++)
                    if (y[i] > 0.0f) {
                        sums[0] += widen(a.dy[s.offset(v) + i]);
                        sums[1] += 1.0f;
                    }
            }
        row_sum<THREADS>(sums, room[turn]);
        float mean = sums[0] / sums[1];
#pragma unroll
        for (int v = 0; v < VECS; v++) {
            pack<T> y = s.get(0, v);
            unpacked<T> dx;
            s.release(v);
            if (!s.has(v))
                continue;
#pragma unroll
            for (int i = 0; i < size; i++)
                dx.set(i, y[i] > 0.0f ? widen(a.dy[s.offset(v) + i]) - mean : 0.0f);
            store_once(a.dx + s.offset(v), dx);
        }
    }
}

/* Any number of features, element by element, for rows that do not divide into packs or are too long for the kernels above.
 * grid (blocks)  block (512): a block takes every blocks-th row and reads it once a step of Newton's method (again from L2). */
template <typename T, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(512) sparsemax_any(const __grid_constant__ args<T> a)
{
    __shared__ float room[2][2 * warp];
    __shared__ tally tallies[2][warp];
    int turn = 0;
    for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const int64_t from = row * a.features;
        float most = FORWARD ? -INFINITY : 0.0f, limit = 0;
        double tau = 0;
        if (FORWARD) {
            for (int i = threadIdx.x; i < a.features; i += blockDim.x)
                most = fmaxf(most, widen(a.from[from + i]));
            most = block_max(most, room[0]);
            tau = newton([&](double above) {
                tally t = { 0, 0 };
                for (int i = threadIdx.x; i < a.features; i += blockDim.x) {
                    float x = widen(a.from[from + i]);
                    long long d = x > __fsub_rd(most, 1.0f) ? units(x, most) : 0;
                    if (x > __fsub_rd(most, 1.0f) && (double)d > above) {
                        t.sum += d;
                        t.count++;
                    }
                }
                return row_tally<512>(t, tallies[turn ^= 1]);
            });
            limit = limit_of(most, tau);
        }
        float sums[2] = { 0, 0 };
        for (int i = threadIdx.x; BACKWARD && i < a.features; i += blockDim.x)
            if (widen(a.from[from + i]) > limit) {
                sums[0] += widen(a.dy[from + i]);
                sums[1] += 1.0f;
            }
        block_sum(sums, room[1]);
        float mean = sums[0] / sums[1];
        for (int i = threadIdx.x; i < a.features; i += blockDim.x) {
            float x = widen(a.from[from + i]);
            if (BACKWARD)
                a.dx[from + i] = narrow<T>(x > limit ? widen(a.dy[from + i]) - mean : 0.0f);
            if (FORWARD)
                a.y[from + i] = narrow<T>(projected(x, most, tau, limit));
        }
        __syncthreads(); /* room may be written again */
    }
}

template <typename T, bool FORWARD, bool BACKWARD> cudaError_t launch_pass(const args<T> &a, cudaStream_t stream)
{
    int64_t packs = a.features / pack<T>::size;
    if (a.features % pack<T>::size == 0 && packs <= 8192)
        return with_row_shape<8192>(packs, [&]<int THREADS, int VECS>() {
            constexpr int slots = row_slots(VECS, 1);
            using shape = row_stream<T, THREADS, VECS, 1, slots>;
            auto start = [&]<auto KERNEL>() {
                int fit = resident_blocks<KERNEL>(shape::threads, shape::shared_bytes);
                if (fit > 0)
                    KERNEL<<<row_blocks(a.rows, shape::groups, fit), shape::threads, shape::shared_bytes, stream>>>(a);
                else
                    sparsemax_any<T, FORWARD, BACKWARD><<<row_blocks(a.rows, 1, 4 * multiprocessors()), 512, 0, stream>>>(a);
                return cudaGetLastError();
            };
            if constexpr (FORWARD)
                return start.template operator()<sparsemax_rows<T, THREADS, VECS, slots, BACKWARD>>();
            else
                return start.template operator()<sparsemax_gradient<T, THREADS, VECS, slots>>();
        });
    sparsemax_any<T, FORWARD, BACKWARD><<<row_blocks(a.rows, 1, 4 * multiprocessors()), 512, 0, stream>>>(a);
    return cudaGetLastError();
}

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        args<T> a = {
            .from = data<T>(c, c->pass == KI_BACKWARD ? Y : X), .dy = data<T>(c, DY), .y = data<T>(c, Y), .dx = data<T>(c, DX),
            .rows = c->work.axis[TOKENS], .features = (int)c->work.axis[FEATURES],
        };
        auto stream = (cudaStream_t)c->stream;
        return c->pass == KI_BACKWARD ? launch_pass<T, false, true>(a, stream)
            : c->pass == KI_FULL      ? launch_pass<T, true, true>(a, stream)
                                      : launch_pass<T, true, false>(a, stream);
    });
}

KI_DEFINE_DEVICE(sparsemax, NULL, launch)

#endif
