/* Rotary position embedding of queries and keys, Llama 4 style: adjacent elements (2i, 2i + 1) form a pair.
 * q, q_out and gradients [1, seq, q_heads, head_dim], k likewise with kv_heads, row-major.
 * forward, backward one launch; full one launch of both   2048 x 8192, 32 + 8 heads, bf16: 83.9 MB
 * Out of place; angles are made in the kernel, to fp32 (16-bit types: to 5e-7). Kernels: rope.cuh
 * reference rope_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "rope_ref.h"
enum { Q, K, Q_OUT, K_OUT, DQ_OUT, DK_OUT, DQ, DK };
enum { SEQ, HIDDEN, Q_HEADS, KV_HEADS, HEAD_DIM };
#define PAIR_LEFT(d, half) ((d) % 2 == 0)
#define PAIR_INDEX(d, half) ((d) / 2)
#define PAIR_STRIDE(half) 1

#include "ref.h"

#ifndef __CUDACC__

#include "rope.h"

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(llama4_rope);

#define Q_SHAPE { KI_ONE, KI_AXIS(SEQ), KI_AXIS(Q_HEADS), KI_AXIS(HEAD_DIM) }
#define K_SHAPE { KI_ONE, KI_AXIS(SEQ), KI_AXIS(KV_HEADS), KI_AXIS(HEAD_DIM) }

extern const struct ki_operation llama4_rope_operation;
const struct ki_operation llama4_rope_operation = {
    .name = "llama4_rope",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 4,
    .axis = { "seq", "hidden", "q_heads", "kv_heads", "head_dim" },
    .scalar = { { "theta", 10000 } },
    .tensor = {
        [Q] = { "q", KI_INPUT, .shape = Q_SHAPE },
        [K] = { "k", KI_INPUT, .shape = K_SHAPE },
        [Q_OUT] = { "q_out", KI_OUTPUT, .shape = Q_SHAPE },
        [K_OUT] = { "k_out", KI_OUTPUT, .shape = K_SHAPE },
        [DQ_OUT] = { "dq_out", KI_UPSTREAM, .shape = Q_SHAPE, .of = { "q_out" } },
        [DK_OUT] = { "dk_out", KI_UPSTREAM, .shape = K_SHAPE, .of = { "k_out" } },
        [DQ] = { "dq", KI_GRADIENT, .shape = Q_SHAPE, .of = { "q" } },
        [DK] = { "dk", KI_GRADIENT, .shape = K_SHAPE, .of = { "k" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(llama4_rope),
};

#else

#include "rope.cuh"

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        ki::rope_part<T> forward = { ki::data<T>(c, Q), ki::data<T>(c, K), ki::data<T>(c, Q_OUT), ki::data<T>(c, K_OUT), 1 };
        ki::rope_part<T> backward = { ki::data<T>(c, DQ_OUT), ki::data<T>(c, DK_OUT), ki::data<T>(c, DQ), ki::data<T>(c, DK), -1 };
        ki::rope_args<T> a = {
            .part = { c->pass == KI_BACKWARD ? backward : forward, backward },
            .q_heads = (int)c->work.axis[Q_HEADS], .k_heads = (int)c->work.axis[KV_HEADS],
            .half = (int)c->work.axis[HEAD_DIM] / 2,
        };
        int parts = c->pass == KI_FULL ? 2 : 1;
        return ki::rope_launch<T, true>(a, c->work.axis[SEQ], parts, c->work.scalar[0], (cudaStream_t)c->stream);
    });
}

KI_DEFINE_DEVICE(llama4_rope, NULL, launch)

#endif
