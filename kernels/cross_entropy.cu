/* Cross entropy of logits against integer targets, mean over the tokens that count: log sum_v exp x_v - x_target.
 * A target outside the vocabulary, such as -100, is ignored; with no other target the loss is 0 / 0, as upstream's.
 * logits, dlogits [tokens, vocab], target [tokens], loss, dloss [1]. Kernels and their layout: cross_entropy.cuh
 * forward   one read, the running maximum and sum of a row; these two numbers are saved   16384 x 65536 fp32: 4.29 GB
 * no-grad   the same, nothing saved
 * backward  dlogits = (softmax - onehot) dloss / tokens that count, one read and one write: 8.59 GB
 * full      a cluster keeps a row in shared memory: one read and one write, 8.59 GB
 * reference cross_entropy_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "cross_entropy_ref.h"
#define MEAN_LOSS 1
enum { LOGITS, TARGET, LOSS, TOP, SUM, VALID, DLOSS, DLOGITS };
enum { TOKENS, VOCAB };

#include "ref.h"

#ifndef __CUDACC__

static int derive(struct ki_case *c, const char **reason)
{
    if (c->axis[VOCAB] <= 1 << 30 && c->axis[TOKENS] <= INT32_MAX)
        return 0;
    *reason = "tokens or vocab are too large";
    return -1;
}

/* The loss of each row. */
static size_t workspace_bytes(const struct ki_case *c, enum ki_pass pass)
{
    return pass == KI_BACKWARD ? 0 : (size_t)c->axis[TOKENS] * sizeof(double);
}

/* operations.md 1.1: TVs + 8T, 2TVs + 8T; full 2TVs, and the targets. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double tokens = (double)c->axis[TOKENS], all = tokens * (double)c->axis[VOCAB] * (double)ki_dtype_bytes(c->dtype);
    double bytes = (pass == KI_BACKWARD || pass == KI_FULL ? 2 * all : all) + 8 * tokens;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = pass != KI_BACKWARD };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(cross_entropy);

extern const struct ki_operation cross_entropy_operation;
const struct ki_operation cross_entropy_operation = {
    .name = "cross_entropy",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "tokens", "vocab" },
    .tensor = {
        [LOGITS] = { "logits", KI_INPUT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) } },
        [TARGET] = { "target", KI_INPUT, KI_I64, { KI_AXIS(TOKENS) }, .fill = KI_FILL_INDEX, .range = VOCAB },
        [LOSS] = { "loss", KI_OUTPUT, .shape = { KI_ONE } },
        [TOP] = { "row_top", KI_SAVED, KI_F32, { KI_AXIS(TOKENS) } },
        [SUM] = { "row_sum", KI_SAVED, KI_F32, { KI_AXIS(TOKENS) } },
        [VALID] = { "valid", KI_SAVED, KI_F32, { KI_ONE } },
        [DLOSS] = { "dloss", KI_UPSTREAM, .shape = { KI_ONE }, .of = { "loss" } },
        [DLOGITS] = { "dlogits", KI_GRADIENT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) }, .of = { "logits" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(cross_entropy),
};

#else

#include "cross_entropy.cuh"

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        ki::cross_entropy_args<T> a = {
            .logits = ki::data<T>(c, LOGITS), .target = ki::data<int64_t>(c, TARGET), .dlogits = ki::data<T>(c, DLOGITS),
            .top = ki::data<float>(c, TOP), .sum = ki::data<float>(c, SUM), .valid = ki::data<float>(c, VALID),
            .row_loss = (double *)c->workspace, .loss = ki::data<T>(c, LOSS), .dloss = ki::data<T>(c, DLOSS),
            .rows = c->work.axis[TOKENS], .vocab = (int)c->work.axis[VOCAB],
        };
        return ki::cross_entropy_pass<T, true>(c->pass, a, (cudaStream_t)c->stream);
    });
}

KI_DEFINE_DEVICE(cross_entropy, NULL, launch)

#endif
