/* Embedding lookup: y[b,s,:] = weight[ids[b,s],:]. An id outside the table gives zeros, and no gradient.
 * input_ids [batch, seq] int64, weight, dweight [vocab, hidden], y, dy [batch, seq, hidden], row-major.
 * forward   a gather                                                 8 x 2048 ids of 4096 fp32, vocab 131072: 0.5 GB
 * backward  dweight[v,:] = sum of dy over the places of v, zero where v does not occur; dense. Places are sorted into a bucket
 *           an id, and the owner of a row of dweight adds up its places in order: one read of dy, one write of dweight, no
 *           floating-point atomics, the same result each time                                         2.4 GB
 * full      both
 * reference embedding_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "embedding_ref.h"
enum { IDS, WEIGHT, Y, DY, DWEIGHT };
enum { BATCH, SEQ, HIDDEN, VOCAB };

#include "ref.h"

/* Places that a bucket holds: three times what uniform ids need, and some. A fuller bucket costs time, not correctness. */
enum { BUCKET_LIMIT = 256 };
static inline int bucket_size(int64_t places, int64_t vocab)
{
    int64_t size = (3 * places / vocab + 63) / 32 * 32;
    return size < BUCKET_LIMIT ? (int)size : BUCKET_LIMIT;
}

#ifndef __CUDACC__

static int derive(struct ki_case *c, const char **reason)
{
    bool fits = c->axis[SEQ] <= (1 << 30) / c->axis[BATCH] && c->axis[VOCAB] <= INT32_MAX && c->axis[HIDDEN] <= 1 << 20;
    if (fits)
        return 0;
    *reason = "batch x seq, vocab or hidden are too large";
    return -1;
}

/* How many places each id has, and its bucket of places. */
static size_t workspace_bytes(const struct ki_case *c, enum ki_pass pass)
{
    int64_t vocab = c->axis[VOCAB], size = bucket_size(c->axis[BATCH] * c->axis[SEQ], vocab);
    return pass == KI_BACKWARD || pass == KI_FULL ? (size_t)(vocab * (size + 1)) * sizeof(int) : 0;
}

/* operations.md 1.1, N = batch seq, U distinct ids as expected of uniform ones: 8N + (U+N)Hs, 8N + (N+V)Hs; full 8N + (U+2N+V)Hs. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double places = (double)c->axis[BATCH] * (double)c->axis[SEQ], vocab = (double)c->axis[VOCAB];
    double row = (double)c->axis[HIDDEN] * (double)ki_dtype_bytes(c->dtype), distinct = vocab * (1 - pow(1 - 1 / vocab, places));
    double rows = pass == KI_BACKWARD ? places + vocab : pass == KI_FULL ? distinct + 2 * places + vocab : distinct + places;
    double dense = pass == KI_BACKWARD ? places + vocab : pass == KI_FULL ? 3 * places + vocab : 2 * places;
    return (struct ki_floor){ .bytes = 8 * places + rows * row, .dense_bytes = 8 * places + dense * row, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(embedding);

extern const struct ki_operation embedding_operation;
const struct ki_operation embedding_operation = {
    .name = "embedding",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 4,
    .axis = { "batch", "seq", "hidden", "vocab" },
    .tensor = {
        [IDS] = { "input_ids", KI_INPUT, KI_I64, { KI_AXIS(BATCH), KI_AXIS(SEQ) }, .fill = KI_FILL_INDEX, .range = VOCAB },
        [WEIGHT] = { "weight", KI_PARAM, .shape = { KI_AXIS(VOCAB), KI_AXIS(HIDDEN) } },
        [Y] = { "y", KI_OUTPUT, .shape = { KI_AXIS(BATCH), KI_AXIS(SEQ), KI_AXIS(HIDDEN) } },
        [DY] = { "dy", KI_UPSTREAM, .shape = { KI_AXIS(BATCH), KI_AXIS(SEQ), KI_AXIS(HIDDEN) }, .of = { "y" } },
        [DWEIGHT] = { "dweight", KI_GRADIENT, .shape = { KI_AXIS(VOCAB), KI_AXIS(HIDDEN) }, .of = { "weight" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(embedding),
};

#else

#include "wide.cuh"

namespace ki {

enum { EMBEDDING_WARPS = 8 };

template <typename T> struct embedding_args {
    const int64_t *ids;
    const T *weight, *dy;
    T *y, *dweight;
    int *count, *bucket; /* [vocab], [vocab, size] */
    int places, vocab, hidden, size;
};

/* Forward: a copy of one row of the table a place
 * ids [places]   weight [vocab, hidden]   y [places, hidden]
 * grid (chunks of a row, places / 8)  block (256): a warp takes one chunk of one place, P groups of W elements a thread
 * bytes (distinct + places) hidden s + 8 places */
template <typename T, int W, int P> __global__ void __launch_bounds__(256) embedding_forward(const __grid_constant__ embedding_args<T> a)
{
    int from = ((int)blockIdx.x * P * warp + (int)threadIdx.x % warp) * W;
    int64_t place = (int64_t)blockIdx.y * EMBEDDING_WARPS + threadIdx.x / warp, step = (int64_t)gridDim.y * EMBEDDING_WARPS;
    for (; place < a.places; place += step) {
        int64_t id = a.ids[place];
        bool known = id >= 0 && id < a.vocab;
        decltype(take_shared<W>(a.weight)) x[P] = {};
#pragma unroll
        for (int p = 0; p < P; p++)
            if (known && from + p * warp * W < a.hidden)
                x[p] = take_shared<W>(a.weight + id * a.hidden + from + p * warp * W);
#pragma unroll
        for (int p = 0; p < P; p++)
            if (from + p * warp * W < a.hidden)
                put_once(a.y + place * a.hidden + from + p * warp * W, x[p]);
    }
}

/* Put each place into the bucket of its id, in any order, while there is room.   grid (places / 256)  block (256) */
template <typename T> __global__ void __launch_bounds__(256) embedding_index(const __grid_constant__ embedding_args<T> a)
{
    int place = (int)(blockIdx.x * 256 + threadIdx.x);
    int64_t id = place < a.places ? a.ids[place] : -1;
    if (id < 0 || id >= a.vocab)
        return;
    int at = atomicAdd(&a.count[id], 1);
    if (at < a.size)
        a.bucket[id * a.size + at] = place;
}

/* Backward: dweight[v,:] = sum of dy[place,:] over the places of v, in ascending order
 * count, bucket of embedding_index   dy [places, hidden]   dweight [vocab, hidden]   sums in fp32
 * grid (chunks of a row, vocab / 8)  block (256): a warp takes one chunk of one row of dweight, P groups of W elements a thread;
 * it sorts its places in shared memory first. Where the bucket was too small it looks through all ids instead.
 * bytes (places + vocab) hidden s + 8 places */
template <typename T, int W, int P> __global__ void __launch_bounds__(256) embedding_backward(const __grid_constant__ embedding_args<T> a)
{
    __shared__ int lists[EMBEDDING_WARPS][BUCKET_LIMIT];
    int lane = threadIdx.x % warp, from = ((int)blockIdx.x * P * warp + lane) * W, *list = lists[threadIdx.x / warp];
    int64_t v = (int64_t)blockIdx.y * EMBEDDING_WARPS + threadIdx.x / warp, step = (int64_t)gridDim.y * EMBEDDING_WARPS;
    int column[P]; /* beyond the row the last group is read again, so that no load hangs on a condition */
    for (int p = 0; p < P; p++)
        column[p] = from + p * warp * W < a.hidden ? from + p * warp * W : a.hidden - W;
    for (; v < a.vocab; v += step) {
        float sum[P][W] = {};
        auto add = [&](int64_t place) {
            float x[P][W];
#pragma unroll
            for (int p = 0; p < P; p++)
                read_once<W>(a.dy + place * a.hidden + column[p], x[p]);
#pragma unroll
            for (int p = 0; p < P; p++)
                for (int i = 0; i < W; i++)
                    sum[p][i] += x[p][i];
        };
        int count = a.count[v];
        if (count > a.size) {
            for (int base = 0; base < a.places; base += warp) {
                unsigned hits = __ballot_sync(0xffffffffu, base + lane < a.places && a.ids[base + lane] == v);
                for (; hits; hits &= hits - 1)
                    add(base + __ffs((int)hits) - 1);
            }
        } else if (count > 0) {
            const int *bucket = a.bucket + v * a.size;
            for (int j = lane; j < count; j += warp) {
                int place = bucket[j], rank = 0;
                for (int k = 0; k < count; k++)
                    rank += bucket[k] < place;
                list[rank] = place;
            }
            __syncwarp();
#pragma unroll(8 / P)
            for (int j = 0; j < count; j++)
                add(list[j]);
            __syncwarp();
        }
#pragma unroll
        for (int p = 0; p < P; p++)
            if (from + p * warp * W < a.hidden)
                write_once<W>(a.dweight + v * a.hidden + from + p * warp * W, sum[p]);
    }
}

template <typename T, int W, int P> inline cudaError_t embedding_launch(enum ki_pass pass, const embedding_args<T> &a, cudaStream_t stream)
{
    unsigned chunks = (unsigned)((a.hidden + P * warp * W - 1) / (P * warp * W));
    auto groups = [](int rows) { return (unsigned)((rows - 1) / EMBEDDING_WARPS + 1 < 65535 ? (rows - 1) / EMBEDDING_WARPS + 1 : 65535); };
    if (pass != KI_BACKWARD)
        embedding_forward<T, W, P><<<dim3(chunks, groups(a.places)), 256, 0, stream>>>(a);
    if (pass == KI_FORWARD || pass == KI_NO_GRAD)
        return cudaGetLastError();
    cudaError_t e = cudaMemsetAsync(a.count, 0, (size_t)a.vocab * sizeof(int), stream);
    if (e != cudaSuccess)
        return e;
    embedding_index<T><<<(unsigned)((a.places - 1) / 256 + 1), 256, 0, stream>>>(a);
    embedding_backward<T, W, P><<<dim3(chunks, groups(a.vocab)), 256, 0, stream>>>(a);
    return cudaGetLastError();
}

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        constexpr int size = ki::pack<T>::size, most = sizeof(T) == 4 ? 4 : 2; /* groups a thread, as registers allow */
        int64_t places = c->work.axis[BATCH] * c->work.axis[SEQ], vocab = c->work.axis[VOCAB], hidden = c->work.axis[HIDDEN];
        int *workspace = (int *)c->workspace;
        ki::embedding_args<T> a = {
            .ids = ki::data<int64_t>(c, IDS), .weight = ki::data<T>(c, WEIGHT), .dy = ki::data<T>(c, DY),
            .y = ki::data<T>(c, Y), .dweight = ki::data<T>(c, DWEIGHT),
            .count = workspace, .bucket = workspace ? workspace + vocab : nullptr,
            .places = (int)places, .vocab = (int)vocab, .hidden = (int)hidden, .size = bucket_size(places, vocab),
        };
        cudaStream_t stream = (cudaStream_t)c->stream;
        return hidden % size != 0 ? ki::embedding_launch<T, 1, 4>(c->pass, a, stream)
            : hidden < 2048       ? ki::embedding_launch<T, size, 2>(c->pass, a, stream)
                                  : ki::embedding_launch<T, size, most>(c->pass, a, stream);
    });
}

KI_DEFINE_DEVICE(embedding, NULL, launch)

#endif
