/* GroupNorm: LayerNorm over groups of channels that follow one another, weight and bias by channel, one rounding at the end.
 * x, y, dy, dx [batch, channels, hidden], weight, bias, dweight, dbias [channels], row-major; mean, rstd [batch, groups] fp32
 * are kept for backward. A group is contiguous: channels_per_group * hidden elements.
 * forward   one block a group                                        128 x 1024 x 512 fp32: 537 MB
 * backward  one block a group, sums of a channel by sample, sums     128 x 1024 x 512 fp32: 805 MB
 * full      the backward kernel, which also makes the statistics and y; reads x once
 * reference group_norm_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "group_norm_ref.h"
enum { X, WEIGHT, BIAS, Y, MEAN, RSTD, DY, DX, DWEIGHT, DBIAS };
enum { BATCH, CHANNELS, HIDDEN, CHANNELS_PER_GROUP, GROUPS };

#include "ref.h"

#ifndef __CUDACC__

static size_t workspace_bytes(const struct ki_case *c, enum ki_pass pass)
{
    return pass == KI_BACKWARD || pass == KI_FULL ? (size_t)(2 * c->axis[BATCH] * c->axis[CHANNELS]) * sizeof(float) : 0;
}

static int derive(struct ki_case *c, const char **reason)
{
    int64_t each = c->axis[CHANNELS_PER_GROUP];
    if (c->axis[CHANNELS] % each != 0) {
        *reason = "channels do not divide into groups";
        return -1;
    }
    c->axis[GROUPS] = c->axis[CHANNELS] / each;
    bool large = c->axis[BATCH] > INT32_MAX || c->axis[CHANNELS] > INT32_MAX || c->axis[HIDDEN] > INT32_MAX;
    if (large || c->axis[BATCH] * c->axis[GROUPS] > INT32_MAX || each * c->axis[HIDDEN] > INT32_MAX / 2) {
        *reason = "an axis is too large";
        return -1;
    }
    return 0;
}

/* operations.md 1.1: 2BCLs + 2Cs, 3BCLs + 3Cs; full 4BCLs + 4Cs (weight and bias in, their gradients out). */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double row = (double)c->axis[CHANNELS] * (double)ki_dtype_bytes(c->dtype);
    double all = (double)c->axis[BATCH] * (double)c->axis[HIDDEN] * row;
    double bytes = pass == KI_BACKWARD ? 3 * all + 3 * row : pass == KI_FULL ? 4 * all + 4 * row : 2 * all + 2 * row;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(group_norm);

#define ROW_SHAPE { KI_AXIS(BATCH), KI_AXIS(CHANNELS), KI_AXIS(HIDDEN) }
#define GROUP_SHAPE { KI_AXIS(BATCH), KI_AXIS(GROUPS) }
#define CHANNEL_SHAPE { KI_AXIS(CHANNELS) }

extern const struct ki_operation group_norm_operation;
const struct ki_operation group_norm_operation = {
    .name = "group_norm",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 4,
    .axis = { "batch", "channels", "hidden", "channels_per_group", "groups" },
    .scalar = { { "eps", 1e-6 } },
    .tensor = {
        [X] = { "x", KI_INPUT, .shape = ROW_SHAPE },
        [WEIGHT] = { "weight", KI_PARAM, .shape = CHANNEL_SHAPE, .mean = 1, .deviation = 0.5 },
        [BIAS] = { "bias", KI_PARAM, .shape = CHANNEL_SHAPE, .mean = 1, .deviation = 0.5 },
        [Y] = { "y", KI_OUTPUT, .shape = ROW_SHAPE },
        [MEAN] = { "mean", KI_SAVED, KI_F32, .shape = GROUP_SHAPE },
        [RSTD] = { "rstd", KI_SAVED, KI_F32, .shape = GROUP_SHAPE },
        [DY] = { "dy", KI_UPSTREAM, .shape = ROW_SHAPE, .of = { "y" } },
        [DX] = { "dx", KI_GRADIENT, .shape = ROW_SHAPE, .of = { "x" } },
        [DWEIGHT] = { "dweight", KI_GRADIENT, .shape = CHANNEL_SHAPE, .of = { "weight" } },
        [DBIAS] = { "dbias", KI_GRADIENT, .shape = CHANNEL_SHAPE, .of = { "bias" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(group_norm),
};

#else

#include "common.cuh"

namespace {

using namespace ki;

/* Tensors of one call. Those that a pass does not use are NULL. */
template <typename T> struct args {
    const T *x, *weight, *bias, *dy;
    T *y, *dx, *dweight, *dbias;
    float *mean, *rstd;
    float *partial; /* [batch, 2, channels]: sums of dy n, sums of dy */
    int64_t batch;
    int groups, each, hidden; /* each: channels a group */
    float eps;
};

/* Where the sum of dy n of a channel of a group goes; the sum of dy is a row of channels further. */
template <typename T> __device__ inline float *part_of(const args<T> &a, int64_t group, int channel)
{
    return a.partial + group / a.groups * 2 * a.groups * a.each + channel;
}

/* A value that lane 0 of each warp holds, summed over the warps of the block; one barrier. `room` [32]. */
__device__ inline float sum_of_warps(float v, float *room)
{
    int lane = threadIdx.x % warp, warps = blockDim.x / warp;
    if (lane == 0)
        room[threadIdx.x / warp] = v;
    __syncthreads();
    return warp_sum(lane < warps ? room[lane] : 0.0f);
}

/* Threads a block at most, so that registers suffice. */
constexpr int group_threads(int vecs)
{
    return vecs == 8 ? 256 : vecs == 4 ? 512 : 1024;
}

/* GroupNorm with FORWARD, its gradients with BACKWARD, both at once with both:
 * n = (x - mu) rs, y = n w_c + b_c; q = dy w_c, dx = rs (q - n mean(q n) - mean q); sums of dy n and of dy by channel
 * x, y, dy, dx [batch, channels, hidden]   weight, bias [channels]   mean, rstd [batch, groups]   partial [batch, 2, channels]
 * grid (batch * groups)  block (32 * channels a group): one block a group, one warp a channel, VECS packs a thread and tensor,
 * kept in registers; needs hidden % pack == 0, hidden <= 32 * VECS * pack, at most group_threads(VECS) threads
 * bytes 2 batch channels hidden s (BACKWARD 3, both 4) + 16 batch channels for the partial sums */
template <typename T, int VECS, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(group_threads(VECS)) group_norm_groups(const __grid_constant__ args<T> a)
{
    constexpr int size = pack<T>::size;
    __shared__ float room[4][warp];
    int lane = threadIdx.x % warp, own = threadIdx.x / warp, channel = blockIdx.x % a.groups * a.each + own;
    int64_t from = ((int64_t)blockIdx.x * a.each + own) * a.hidden;
    float part = 1.0f / ((float)a.each * (float)a.hidden), mu = 0, rs = 0;
    auto at = [&](int v) { return (v * warp + lane) * size; };
    pack<T> x[VECS], dy[BACKWARD ? VECS : 1];
#pragma unroll
    for (int v = 0; v < VECS; v++)
        if (at(v) < a.hidden) {
            x[v] = load_once(a.x + from + at(v));
            if constexpr (BACKWARD)
                dy[v] = load_once(a.dy + from + at(v));
        }
    if (BACKWARD)
        let_next_start();
    if (!FORWARD) {
        mu = a.mean[blockIdx.x];
        rs = a.rstd[blockIdx.x];
    }
    float w = widen(a.weight[channel]), b = FORWARD ? widen(a.bias[channel]) : 0.0f, c1 = 0, c2 = 0;
    if (FORWARD) {
        float total = 0;
#pragma unroll
        for (int v = 0; v < VECS; v++)
            for (int i = 0; i < size; i++)
                total += at(v) < a.hidden ? x[v][i] : 0.0f;
        mu = sum_of_warps(warp_sum(total), room[0]) / ((float)a.each * (float)a.hidden);
    }
    float squares = 0, sum = 0, products = 0;
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        if (at(v) >= a.hidden)
            continue;
#pragma unroll
        for (int i = 0; i < size; i++) {
            float centred = x[v][i] - mu;
            squares += centred * centred;
            if constexpr (BACKWARD) {
                sum += dy[v][i];
                products += dy[v][i] * centred;
            }
        }
    }
    if constexpr (BACKWARD) { /* one barrier for all: sum_of_warps of rooms 1, 2 and 3 at once */
        sum = warp_sum(sum);
        products = warp_sum(products);
        if (lane == 0) {
            room[1][own] = w * sum;
            room[2][own] = w * products;
        }
    }
    if (FORWARD)
        rs = inverse_root_mean(sum_of_warps(warp_sum(squares), room[3]), (float)a.each * (float)a.hidden, a.eps);
    else
        __syncthreads();
    if constexpr (BACKWARD) {
        c2 = warp_sum(lane < a.each ? room[1][lane] : 0.0f) * part;
        c1 = warp_sum(lane < a.each ? room[2][lane] : 0.0f) * rs * part;
        if (lane == 0) {
            float *to = part_of(a, blockIdx.x, channel);
            to[0] = products * rs;
            to[(int64_t)a.groups * a.each] = sum;
        }
    }
    if (FORWARD && a.mean && threadIdx.x == 0) {
        a.mean[blockIdx.x] = mu;
        a.rstd[blockIdx.x] = rs;
    }
#pragma unroll
    for (int v = 0; v < VECS; v++) {
        if (at(v) >= a.hidden)
            continue;
        unpacked<T> y, dx;
#pragma unroll
        for (int i = 0; i < size; i++) {
            float n = (x[v][i] - mu) * rs;
            y.set(i, n * w + b);
            if constexpr (BACKWARD)
                dx.set(i, rs * (dy[v][i] * w - n * c1 - c2));
        }
        if (FORWARD)
            store_once(a.y + from + at(v), y);
        if (BACKWARD)
            store_once(a.dx + from + at(v), dx);
    }
}

/* Any hidden and number of channels, element by element. grid (batch * groups)  block (256): one block a group, which it reads
 * three or four times (again from L2), the gradients channel by channel. */
template <typename T, bool FORWARD, bool BACKWARD>
__global__ void __launch_bounds__(256) group_norm_any(const __grid_constant__ args<T> a)
{
    __shared__ float room[2][2 * warp];
    int count = a.each * a.hidden, first = blockIdx.x % a.groups * a.each;
    int64_t from = (int64_t)blockIdx.x * count;
    float total[1] = { 0 }, squares[1] = { 0 }, c1 = 0, c2 = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        total[0] += widen(a.x[from + i]);
    block_sum(total, room[0]);
    float mu = total[0] / (float)count;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        float centred = widen(a.x[from + i]) - mu;
        squares[0] += centred * centred;
    }
    block_sum(squares, room[1]);
    float rs = inverse_root_mean(squares[0], (float)count, a.eps);
    for (int c = 0; BACKWARD && c < a.each; c++) {
        float sums[2] = { 0, 0 }, w = widen(a.weight[first + c]); /* dy, dy (x - mu) */
        for (int h = threadIdx.x; h < a.hidden; h += blockDim.x) {
            int64_t i = from + (int64_t)c * a.hidden + h;
            float dy = widen(a.dy[i]);
            sums[0] += dy;
            sums[1] += dy * (widen(a.x[i]) - mu);
        }
        block_sum(sums, room[c % 2]);
        c2 += w * sums[0] / (float)count;
        c1 += w * sums[1] * rs / (float)count;
        if (threadIdx.x == 0) {
            float *to = part_of(a, blockIdx.x, first + c);
            to[0] = sums[1] * rs;
            to[(int64_t)a.groups * a.each] = sums[0];
        }
    }
    if (FORWARD && a.mean && threadIdx.x == 0) {
        a.mean[blockIdx.x] = mu;
        a.rstd[blockIdx.x] = rs;
    }
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        float n = (widen(a.x[from + i]) - mu) * rs, w = widen(a.weight[first + i / a.hidden]);
        if (FORWARD)
            a.y[from + i] = narrow<T>(n * w + widen(a.bias[first + i / a.hidden]));
        if (BACKWARD)
            a.dx[from + i] = narrow<T>(rs * (widen(a.dy[from + i]) * w - n * c1 - c2));
    }
}

template <typename T, bool FORWARD, bool BACKWARD> cudaError_t launch_pass(const args<T> &a, cudaStream_t stream)
{
    unsigned blocks = (unsigned)(a.batch * a.groups);
    int packs = a.hidden / pack<T>::size, vecs = packs <= warp ? 1 : packs <= 2 * warp ? 2 : packs <= 4 * warp ? 4 : 8;
    auto start = [&]<int VECS>() {
        group_norm_groups<T, VECS, FORWARD, BACKWARD><<<blocks, (unsigned)a.each * warp, 0, stream>>>(a);
    };
    if (a.hidden % pack<T>::size != 0 || packs > vecs * warp || a.each > group_threads(vecs) / warp)
        group_norm_any<T, FORWARD, BACKWARD><<<blocks, 256, 0, stream>>>(a);
    else if (vecs == 1)
        start.template operator()<1>();
    else if (vecs == 2)
        start.template operator()<2>();
    else if (vecs == 4)
        start.template operator()<4>();
    else
        start.template operator()<8>();
    cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess && BACKWARD)
        e = launch_column_sums(a.partial, (int)a.batch, (int64_t)a.groups * a.each, a.dweight, a.dbias, stream);
    return e;
}

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        args<T> a = {
            .x = data<T>(c, X), .weight = data<T>(c, WEIGHT), .bias = data<T>(c, BIAS), .dy = data<T>(c, DY),
            .y = data<T>(c, Y), .dx = data<T>(c, DX), .dweight = data<T>(c, DWEIGHT), .dbias = data<T>(c, DBIAS),
            .mean = data<float>(c, MEAN), .rstd = data<float>(c, RSTD), .partial = (float *)c->workspace,
            .batch = c->work.axis[BATCH], .groups = (int)c->work.axis[GROUPS], .each = (int)c->work.axis[CHANNELS_PER_GROUP],
            .hidden = (int)c->work.axis[HIDDEN], .eps = (float)c->work.scalar[0],
        };
        auto stream = (cudaStream_t)c->stream;
        return c->pass == KI_BACKWARD ? launch_pass<T, false, true>(a, stream)
            : c->pass == KI_FULL      ? launch_pass<T, true, true>(a, stream)
                                      : launch_pass<T, true, false>(a, stream);
    });
}

KI_DEFINE_DEVICE(group_norm, NULL, launch)

#endif
