/* Cross entropy of each token, Megatron layout, the whole vocabulary in one place: log sum_v exp x_v - x_target, in fp32.
 * A target outside the vocabulary, such as -100, is ignored: loss 0, gradient 0.
 * logits, dlogits [seq, batch, vocab], target [seq, batch], loss, dloss [seq, batch] fp32. Kernels: cross_entropy.cuh
 * forward   one read; the maximum and sum of each row are saved   2048 x 4 x 65536 bf16: 1.07 GB
 * backward  dlogits = dloss (softmax - onehot), one read and one write: 2.15 GB
 * full      a cluster keeps a row in shared memory: one read and one write, 2.15 GB
 * reference cross_entropy_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "cross_entropy_ref.h"
#define MEAN_LOSS 0
enum { LOGITS, TARGET, LOSS, TOP, SUM, DLOSS, DLOGITS };
enum { SEQ, BATCH, VOCAB };

#include "ref.h"

#ifndef __CUDACC__

static int derive(struct ki_case *c, const char **reason)
{
    if (c->axis[VOCAB] <= 1 << 30 && c->axis[SEQ] <= INT32_MAX / c->axis[BATCH])
        return 0;
    *reason = "seq x batch or vocab are too large";
    return -1;
}

/* operations.md 4.19, N = seq batch: NVs + 12N; full 2NVs + 12N, as the gradient is made from dloss (4N more). 1.1: backward 2NVs + 8N. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double tokens = (double)c->axis[SEQ] * (double)c->axis[BATCH];
    double all = tokens * (double)c->axis[VOCAB] * (double)ki_dtype_bytes(c->dtype);
    double bytes = pass == KI_FULL ? 2 * all + 16 * tokens : pass == KI_BACKWARD ? 2 * all + 12 * tokens : all + 12 * tokens;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = pass != KI_BACKWARD };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(megatron_cross_entropy);

extern const struct ki_operation megatron_cross_entropy_operation;
const struct ki_operation megatron_cross_entropy_operation = {
    .name = "megatron_cross_entropy",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 3,
    .axis = { "seq", "batch", "vocab" },
    .tensor = {
        [LOGITS] = { "logits", KI_INPUT, .shape = { KI_AXIS(SEQ), KI_AXIS(BATCH), KI_AXIS(VOCAB) } },
        [TARGET] = { "target", KI_INPUT, KI_I64, { KI_AXIS(SEQ), KI_AXIS(BATCH) }, .fill = KI_FILL_INDEX, .range = VOCAB },
        [LOSS] = { "loss", KI_OUTPUT, KI_F32, { KI_AXIS(SEQ), KI_AXIS(BATCH) } },
        [TOP] = { "row_top", KI_SAVED, KI_F32, { KI_AXIS(SEQ), KI_AXIS(BATCH) } },
        [SUM] = { "row_sum", KI_SAVED, KI_F32, { KI_AXIS(SEQ), KI_AXIS(BATCH) } },
        [DLOSS] = { "dloss", KI_UPSTREAM, KI_F32, { KI_AXIS(SEQ), KI_AXIS(BATCH) }, .of = { "loss" } },
        [DLOGITS] = { "dlogits", KI_GRADIENT, .shape = { KI_AXIS(SEQ), KI_AXIS(BATCH), KI_AXIS(VOCAB) }, .of = { "logits" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(megatron_cross_entropy),
};

#else

#include "cross_entropy.cuh"

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        ki::cross_entropy_args<T> a = {
            .logits = ki::data<T>(c, LOGITS), .target = ki::data<int64_t>(c, TARGET), .dlogits = ki::data<T>(c, DLOGITS),
            .top = ki::data<float>(c, TOP), .sum = ki::data<float>(c, SUM),
            .token_loss = ki::data<float>(c, LOSS), .dtoken_loss = ki::data<float>(c, DLOSS),
            .rows = c->work.axis[SEQ] * c->work.axis[BATCH], .vocab = (int)c->work.axis[VOCAB],
        };
        return ki::cross_entropy_pass<T, false>(c->pass, a, (cudaStream_t)c->stream);
    });
}

KI_DEFINE_DEVICE(megatron_cross_entropy, NULL, launch)

#endif
