/* Total variation distance of distributions p and q, batch mean: the sum of |p - q| / 2 over all elements by `tokens`.
 * p, q, dp [tokens, vocab], loss, dloss [1]. Kernel and its layout: pair_loss.cuh
 * forward   reads both, 16384 x 65536 fp32: 8.59 GB
 * backward  dp = sign(p - q) dloss / (2 tokens), 0 where p = q, made again from both inputs: 12.9 GB
 * full      one launch of both: 12.9 GB
 * reference tvd_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "tvd_ref.h"
enum { P, Q, LOSS, DLOSS, DP };
enum { TOKENS, VOCAB };
enum { PARTS_LIMIT = 16384 }; /* partial sums of the loss */

#include "ref.h"

#ifndef __CUDACC__

static size_t workspace_bytes(const struct ki_case *c, enum ki_pass pass)
{
    (void)c;
    return pass == KI_BACKWARD ? 0 : PARTS_LIMIT * sizeof(double);
}

/* operations.md 1.1: 2TVs; backward TVs when forward kept the signs, 3TVs when not, as here; full 3TVs. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double all = (double)c->axis[TOKENS] * (double)c->axis[VOCAB] * (double)ki_dtype_bytes(c->dtype);
    double dense = pass == KI_BACKWARD || pass == KI_FULL ? 3 * all : 2 * all;
    return (struct ki_floor){ .bytes = pass == KI_BACKWARD ? all : dense, .dense_bytes = dense, .hard = pass != KI_BACKWARD };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(tvd);

extern const struct ki_operation tvd_operation;
const struct ki_operation tvd_operation = {
    .name = "tvd",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "tokens", "vocab" },
    .tensor = {
        [P] = { "p", KI_INPUT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) }, .fill = KI_FILL_SOFTMAX },
        [Q] = { "q", KI_INPUT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) }, .fill = KI_FILL_SOFTMAX },
        [LOSS] = { "loss", KI_OUTPUT, .shape = { KI_ONE } },
        [DLOSS] = { "dloss", KI_UPSTREAM, .shape = { KI_ONE }, .of = { "loss" } },
        [DP] = { "dp", KI_GRADIENT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) }, .of = { "p" } },
    },
    .tolerance = "fp32_accumulate",
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(tvd),
};

#else

#include "pair_loss.cuh"

namespace {

struct tvd_pair {
    static constexpr double factor = 0.5;
    static constexpr int reading_threads = 512;
    static constexpr bool reads_first = true;
    float g;
    __device__ void pair(float p, float q, float &loss, float &grad) const
    {
        loss = fabsf(p - q);
        grad = p > q ? g : p < q ? -g : 0.0f;
    }
};

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        ki::pair_loss_args<T> a = {
            .first = ki::data<T>(c, P), .second = ki::data<T>(c, Q), .dloss = ki::data<T>(c, DLOSS), .grad = ki::data<T>(c, DP),
            .partial = (double *)c->workspace, .count = c->tensor[P].count,
        };
        return ki::pair_loss_pass(c->pass, a, c->work.axis[TOKENS], ki::data<T>(c, LOSS), tvd_pair{}, PARTS_LIMIT, (cudaStream_t)c->stream);
    });
}

KI_DEFINE_DEVICE(tvd, NULL, launch)

#endif
