/* Kullback-Leibler divergence of log-probabilities lp from target probabilities t, batch mean: the sum of t (log t - lp) over all
 * elements by `tokens`; a term with t = 0 is 0.
 * log_probs, target_probs, dlog_probs [tokens, vocab], loss, dloss [1]. Kernel and its layout: pair_loss.cuh
 * forward   reads both, 8192 x 65536 fp32: 4.29 GB
 * backward  dlog_probs = -t dloss / tokens, reads target_probs only: 4.29 GB
 * full      one launch of both: 6.44 GB
 * reference kl_div_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "kl_div_ref.h"
enum { LOG_PROBS, TARGET_PROBS, LOSS, DLOSS, DLOG_PROBS };
enum { TOKENS, VOCAB };
enum { PARTS_LIMIT = 16384 }; /* partial sums of the loss */

#include "ref.h"

#ifndef __CUDACC__

static size_t workspace_bytes(const struct ki_case *c, enum ki_pass pass)
{
    (void)c;
    return pass == KI_BACKWARD ? 0 : PARTS_LIMIT * sizeof(double);
}

/* operations.md 1.1: 2TVs, 2TVs; full 3TVs. 1.2: what is saved for a backward pass is free, so that its floor is not hard. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double all = (double)c->axis[TOKENS] * (double)c->axis[VOCAB] * (double)ki_dtype_bytes(c->dtype);
    double bytes = pass == KI_FULL ? 3 * all : 2 * all;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = pass != KI_BACKWARD };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(kl_div);

extern const struct ki_operation kl_div_operation;
const struct ki_operation kl_div_operation = {
    .name = "kl_div",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "tokens", "vocab" },
    .tensor = {
        [LOG_PROBS] = { "log_probs", KI_INPUT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) }, .fill = KI_FILL_LOG_SOFTMAX },
        [TARGET_PROBS] = { "target_probs", KI_INPUT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) }, .fill = KI_FILL_SOFTMAX },
        [LOSS] = { "loss", KI_OUTPUT, .shape = { KI_ONE } },
        [DLOSS] = { "dloss", KI_UPSTREAM, .shape = { KI_ONE }, .of = { "loss" } },
        [DLOG_PROBS] = { "dlog_probs", KI_GRADIENT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) }, .of = { "log_probs" } },
    },
    .tolerance = "fp32_accumulate",
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(kl_div),
};

#else

#include "pair_loss.cuh"

namespace {

struct kl_pair {
    static constexpr double factor = 1;
    static constexpr int reading_threads = 512;
    static constexpr bool reads_first = false;
    float g;
    __device__ void pair(float lp, float t, float &loss, float &grad) const
    {
        loss = t * (ki::log_of(t) - lp);
        grad = -t * g;
    }
};

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        ki::pair_loss_args<T> a = {
            .first = ki::data<T>(c, LOG_PROBS), .second = ki::data<T>(c, TARGET_PROBS), .dloss = ki::data<T>(c, DLOSS),
            .grad = ki::data<T>(c, DLOG_PROBS), .partial = (double *)c->workspace, .count = c->tensor[LOG_PROBS].count,
        };
        return ki::pair_loss_pass(c->pass, a, c->work.axis[TOKENS], ki::data<T>(c, LOSS), kl_pair{}, PARTS_LIMIT, (cudaStream_t)c->stream);
    });
}

KI_DEFINE_DEVICE(kl_div, NULL, launch)

#endif
