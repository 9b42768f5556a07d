/* Neighborhood attention with its projections: q, k, v = x W^T + b; each head attends to the positions at multiples of `dilation`
 * within (kernel_size / 2) steps, the window cut at the borders, not shifted; heads side by side; y = o Wo^T + bo.
 * hidden_states, y [batch, seq, hidden], weights [hidden, hidden] (out, in), biases [hidden]; heads of hidden / heads elements.
 * forward   three products, attention, bias, one product          4 x 4096 x 768 fp32: 77 GFLOP
 * backward  eight products, attention, bias sums                  155 GFLOP
 * full      forward, then backward
 * Products are cuBLAS's (gemm.h), fp32 in TF32; attention in fp32: neighborhood.cuh. The key bias shifts all scores of a query
 * alike, so its gradient is 0, and is written as 0.
 * reference fused_neighborhood_attention_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "fused_neighborhood_attention_ref.h"
enum { X, Q_WEIGHT, K_WEIGHT, V_WEIGHT, OUT_WEIGHT, Q_BIAS, K_BIAS, V_BIAS, OUT_BIAS, Y, Q, K, V, O, TOP, INVERSE, DY,
    DX, DQ_WEIGHT, DK_WEIGHT, DV_WEIGHT, DOUT_WEIGHT, DQ_BIAS, DK_BIAS, DV_BIAS, DOUT_BIAS };
enum { BATCH, SEQ, HIDDEN, HEADS, KERNEL_SIZE, DILATION, HEAD_DIM };
enum { PARTS = 64 }; /* partial sums of a bias gradient */

#include "ref.h"

#ifndef __CUDACC__

static int derive(struct ki_case *c, const char **reason)
{
    int64_t *a = c->axis;
    if (a[HIDDEN] % a[HEADS] != 0 || a[KERNEL_SIZE] % 2 == 0) {
        *reason = "hidden must be a multiple of heads, and kernel_size odd";
        return -1;
    }
    a[HEAD_DIM] = a[HIDDEN] / a[HEADS];
    if (a[HEAD_DIM] > 256 || a[HIDDEN] > 1 << 20 || a[SEQ] > 1 << 24 || a[KERNEL_SIZE] > 1 << 24 || a[DILATION] > 1 << 24
        || a[BATCH] > INT32_MAX / a[SEQ] || a[BATCH] > INT32_MAX / a[HEADS]) {
        *reason = "head_dim is above 256, or an axis is too large";
        return -1;
    }
    return 0;
}

/* No-grad: q, k, v, o, which the other passes save. Backward: do, dq, dk, dv, and partial sums of three bias gradients. */
static size_t workspace_bytes(const struct ki_case *c, enum ki_pass pass)
{
    size_t hidden = (size_t)c->axis[HIDDEN], four = 4 * (size_t)(c->axis[BATCH] * c->axis[SEQ]) * hidden * (size_t)ki_dtype_bytes(c->dtype);
    bool gradients = pass == KI_BACKWARD || pass == KI_FULL;
    return gradients ? four + 3 * PARTS * hidden * sizeof(float) : pass == KI_NO_GRAD ? four : 0;
}

/* Pairs of one head of one sequence: for each distance m, the positions that have a neighbour there. */
static double pairs(const struct ki_case *c)
{
    double sum = (double)c->axis[SEQ];
    for (int64_t m = c->axis[DILATION]; m <= c->axis[KERNEL_SIZE] / 2 * c->axis[DILATION] && m < c->axis[SEQ]; m += c->axis[DILATION])
        sum += 2 * (double)(c->axis[SEQ] - m);
    return sum;
}

/* operations.md 1.1, N = batch seq: (2Nh + 4h^2 + 4h)s, 8Nh^2 + 4BPh flops; backward (3Nh + 8h^2 + 4h)s, twice the flops; full shares x and
 * the weights: (4Nh + 8h^2 + 8h)s. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double batch = (double)c->axis[BATCH], h = (double)c->axis[HIDDEN], tokens = batch * (double)c->axis[SEQ] * h;
    double elements = pass == KI_BACKWARD ? 3 * tokens + 8 * h * h + 4 * h : pass == KI_FULL ? 4 * tokens + 8 * h * h + 8 * h : 2 * tokens + 4 * h * h + 4 * h;
    double forward = 8 * tokens * h + 4 * batch * pairs(c) * h, bytes = elements * (double)ki_dtype_bytes(c->dtype);
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes,
        .flops = pass == KI_BACKWARD ? 2 * forward : pass == KI_FULL ? 3 * forward : forward,
        .math = c->dtype == KI_F32 ? KI_MATH_TF32 : KI_MATH_BF16, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(fused_neighborhood_attention);

#define TOKENS_SHAPE { KI_AXIS(BATCH), KI_AXIS(SEQ), KI_AXIS(HIDDEN) }
#define STATS_SHAPE { KI_AXIS(BATCH), KI_AXIS(SEQ), KI_AXIS(HEADS) }
#define WEIGHT_OF(name) { name, KI_PARAM, .shape = { KI_AXIS(HIDDEN), KI_AXIS(HIDDEN) }, .fill = KI_FILL_UNIFORM, .deviation = 0.06 }
#define BIAS_OF(name) { name, KI_PARAM, .shape = { KI_AXIS(HIDDEN) }, .fill = KI_FILL_UNIFORM, .deviation = 0.5 }
#define DWEIGHT_OF(name) { "d" name, KI_GRADIENT, .shape = { KI_AXIS(HIDDEN), KI_AXIS(HIDDEN) }, .of = { name } }
#define DBIAS_OF(name) { "d" name, KI_GRADIENT, .shape = { KI_AXIS(HIDDEN) }, .of = { name } }

extern const struct ki_operation fused_neighborhood_attention_operation;
const struct ki_operation fused_neighborhood_attention_operation = {
    .name = "fused_neighborhood_attention",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 6,
    .axis = { "batch", "seq", "hidden", "heads", "kernel_size", "dilation", "head_dim" },
    .tensor = {
        [X] = { "hidden_states", KI_INPUT, .shape = TOKENS_SHAPE },
        [Q_WEIGHT] = WEIGHT_OF("q_weight"), [K_WEIGHT] = WEIGHT_OF("k_weight"),
        [V_WEIGHT] = WEIGHT_OF("v_weight"), [OUT_WEIGHT] = WEIGHT_OF("out_weight"),
        [Q_BIAS] = BIAS_OF("q_bias"), [K_BIAS] = BIAS_OF("k_bias"), [V_BIAS] = BIAS_OF("v_bias"), [OUT_BIAS] = BIAS_OF("out_bias"),
        [Y] = { "y", KI_OUTPUT, .shape = TOKENS_SHAPE },
        [Q] = { "q", KI_SAVED, .shape = TOKENS_SHAPE },
        [K] = { "k", KI_SAVED, .shape = TOKENS_SHAPE },
        [V] = { "v", KI_SAVED, .shape = TOKENS_SHAPE },
        [O] = { "o", KI_SAVED, .shape = TOKENS_SHAPE },
        [TOP] = { "score_top", KI_SAVED, KI_F32, STATS_SHAPE },
        [INVERSE] = { "score_inverse_sum", KI_SAVED, KI_F32, STATS_SHAPE },
        [DY] = { "dy", KI_UPSTREAM, .shape = TOKENS_SHAPE, .of = { "y" } },
        [DX] = { "dhidden_states", KI_GRADIENT, .shape = TOKENS_SHAPE, .of = { "hidden_states" } },
        [DQ_WEIGHT] = DWEIGHT_OF("q_weight"), [DK_WEIGHT] = DWEIGHT_OF("k_weight"),
        [DV_WEIGHT] = DWEIGHT_OF("v_weight"), [DOUT_WEIGHT] = DWEIGHT_OF("out_weight"),
        [DQ_BIAS] = DBIAS_OF("q_bias"), [DK_BIAS] = DBIAS_OF("k_bias"), [DV_BIAS] = DBIAS_OF("v_bias"), [DOUT_BIAS] = DBIAS_OF("out_bias"),
    },
    .tolerance = "tf32_products",
    .derive = derive,
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(fused_neighborhood_attention),
};

#else

#include "gemm.h"
#include "neighborhood.cuh"

namespace {

/* Where the intermediate tensors of a call are: q, k, v, o saved or in the workspace; gradients of them in the workspace. */
template <typename T> struct places {
    T *q, *k, *v, *o, *d_o, *dq, *dk, *dv;
    float *partial;
};

template <typename T> places<T> places_of(const ki_call *c)
{
    int64_t n = c->tensor[X].count;
    T *w = (T *)c->workspace;
    if (c->pass == KI_NO_GRAD)
        return { .q = w, .k = w + n, .v = w + 2 * n, .o = w + 3 * n };
    return { ki::data<T>(c, Q), ki::data<T>(c, K), ki::data<T>(c, V), ki::data<T>(c, O), w, w + n, w + 2 * n, w + 3 * n, (float *)(w + 4 * n) };
}

/* Products over [tokens, hidden] and [hidden, hidden]: the three kinds that a linear layer has. */
struct linear {
    const ki_call *c;
    int error;

    void product(ki_gemm g)
    {
        g.alpha = 1;
        g.dtype = c->work.dtype;
        g.tf32 = true;
        if (error == 0)
            error = ki_gemm_launch(&g, c->stream);
    }
    int64_t tokens() const { return c->work.axis[BATCH] * c->work.axis[SEQ]; }
    int64_t hidden() const { return c->work.axis[HIDDEN]; }
    /* out (+)= x W^T */
    void forward(const void *x, int weight, void *out, bool add)
    {
        product({ .m = tokens(), .n = hidden(), .k = hidden(), .a = x, .b = c->tensor[weight].data, .c = out, .transpose_b = true, .beta = add ? 1.0f : 0.0f });
    }
    /* dx (+)= dout W */
    void input(const void *dout, int weight, void *dx, bool add)
    {
        product({ .m = tokens(), .n = hidden(), .k = hidden(), .a = dout, .b = c->tensor[weight].data, .c = dx, .beta = add ? 1.0f : 0.0f });
    }
    /* dW = dout^T x */
    void weight(const void *dout, const void *x, int dweight)
    {
        product({ .m = hidden(), .n = hidden(), .k = tokens(), .a = dout, .b = x, .c = c->tensor[dweight].data, .transpose_a = true });
    }
};

template <typename T> ki::neighborhood_args<T> attention_of(const ki_call *c, const places<T> &p)
{
    const int64_t *axis = c->work.axis;
    return { .q = p.q, .k = p.k, .v = p.v, .q_bias = ki::data<T>(c, Q_BIAS), .v_bias = ki::data<T>(c, V_BIAS), .o = p.o,
        .top = ki::data<float>(c, TOP), .inverse = ki::data<float>(c, INVERSE), .d_o = p.d_o, .dq = p.dq, .dk = p.dk, .dv = p.dv,
        .batch = (int)axis[BATCH], .seq = (int)axis[SEQ], .heads = (int)axis[HEADS], .head_dim = (int)axis[HEAD_DIM],
        .radius = (int)axis[KERNEL_SIZE] / 2, .dilation = (int)axis[DILATION], .scale = (float)(1 / sqrt((double)axis[HEAD_DIM])) };
}

template <typename T> int forward(const ki_call *c, const places<T> &p)
{
    cudaStream_t stream = (cudaStream_t)c->stream;
    linear l = { c, 0 };
    T *const to[] = { p.q, p.k, p.v };
    for (int i = 0; i < 3; i++)
        l.forward(c->tensor[X].data, Q_WEIGHT + i, to[i], false);
    if (l.error == 0)
        l.error = (int)ki::neighborhood_attention(attention_of(c, p), false, stream);
    if (l.error == 0)
        l.error = (int)ki::fill_rows_launch(ki::data<T>(c, Y), ki::data<T>(c, OUT_BIAS), l.tokens(), (int)l.hidden(), stream);
    l.forward(p.o, OUT_WEIGHT, c->tensor[Y].data, true);
    return l.error;
}

template <typename T> int bias_gradients(const ki_call *c, const places<T> &p)
{
    cudaStream_t stream = (cudaStream_t)c->stream;
    ki::bias_args<T> a = {
        .from = { p.dq, p.dv, ki::data<T>(c, DY) }, .to = { ki::data<T>(c, DQ_BIAS), ki::data<T>(c, DV_BIAS), ki::data<T>(c, DOUT_BIAS) },
        .partial = p.partial, .rows = c->work.axis[BATCH] * c->work.axis[SEQ], .columns = (int)c->work.axis[HIDDEN],
    };
    int64_t runs = (a.rows + 31) / 32;
    int parts = runs < PARTS ? (int)runs : PARTS;
    unsigned columns = (unsigned)a.columns;
    ki::bias_partials<T><<<dim3((columns + 31) / 32, (unsigned)parts, ki::BIAS_TENSORS), dim3(32, 8), 0, stream>>>(a);
    ki::bias_totals<T><<<dim3((columns + 255) / 256, ki::BIAS_TENSORS), 256, 0, stream>>>(a, parts);
    cudaError_t e = cudaMemsetAsync(c->tensor[DK_BIAS].data, 0, columns * sizeof(T), stream);
    return (int)(e != cudaSuccess ? e : cudaGetLastError());
}

template <typename T> int backward(const ki_call *c, const places<T> &p)
{
    linear l = { c, 0 };
    const void *dy = c->tensor[DY].data, *x = c->tensor[X].data;
    l.input(dy, OUT_WEIGHT, p.d_o, false);
    l.weight(dy, p.o, DOUT_WEIGHT);
    if (l.error == 0)
        l.error = (int)ki::neighborhood_attention(attention_of(c, p), true, (cudaStream_t)c->stream);
    const T *const from[] = { p.dq, p.dk, p.dv };
    for (int i = 0; i < 3; i++) {
        l.input(from[i], Q_WEIGHT + i, c->tensor[DX].data, i > 0);
        l.weight(from[i], x, DQ_WEIGHT + i);
    }
    return l.error ? l.error : bias_gradients(c, p);
}

int setup(const ki_case *, const char **reason)
{
    return ki_gemm_open(reason);
}

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        places<T> p = places_of<T>(c);
        int e = c->pass == KI_BACKWARD ? 0 : forward(c, p);
        return e || c->pass == KI_FORWARD || c->pass == KI_NO_GRAD ? e : backward(c, p);
    });
}

KI_DEFINE_DEVICE(fused_neighborhood_attention, setup, launch)

#endif
