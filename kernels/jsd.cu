/* Generalised Jensen-Shannon divergence of log-probabilities X (student) and Y (teacher), batch mean: with Q = exp X, P = exp Y and
 * M = beta P + (1 - beta) Q, the sum of beta P (Y - log M) + (1 - beta) Q (X - log M) over all elements by `tokens`.
 * student_log_probs, teacher_log_probs, dstudent_log_probs [tokens, vocab], loss, dloss [1]. Kernel and its layout: pair_loss.cuh
 * forward   reads both, 8192 x 65536 fp32: 4.29 GB
 * backward  dX = (1 - beta) Q (X - log M) dloss / tokens, made again from both inputs: 6.44 GB
 * full      one launch of both: 6.44 GB
 * reference jsd_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "jsd_ref.h"
enum { STUDENT, TEACHER, LOSS, DLOSS, DSTUDENT };
enum { TOKENS, VOCAB };
enum { PARTS_LIMIT = 16384 }; /* partial sums of the loss */

#include "ref.h"

#ifndef __CUDACC__

static int derive(struct ki_case *c, const char **reason)
{
    if (c->scalar[0] > 0 && c->scalar[0] < 1)
        return 0;
    *reason = "beta must lie between 0 and 1";
    return -1;
}

static size_t workspace_bytes(const struct ki_case *c, enum ki_pass pass)
{
    (void)c;
    return pass == KI_BACKWARD ? 0 : PARTS_LIMIT * sizeof(double);
}

/* operations.md 1.1: 2TVs, 2TVs when forward saved the gradient, which this one does not: 3TVs; full 3TVs. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double all = (double)c->axis[TOKENS] * (double)c->axis[VOCAB] * (double)ki_dtype_bytes(c->dtype);
    bool gradient = pass == KI_BACKWARD || pass == KI_FULL;
    return (struct ki_floor){ .bytes = pass == KI_FULL ? 3 * all : 2 * all, .dense_bytes = gradient ? 3 * all : 2 * all,
        .hard = pass != KI_BACKWARD };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(jsd);

extern const struct ki_operation jsd_operation;
const struct ki_operation jsd_operation = {
    .name = "jsd",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "tokens", "vocab" },
    .scalar = { { "beta", 0.5 } },
    .tensor = {
        [STUDENT] = { "student_log_probs", KI_INPUT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) }, .fill = KI_FILL_LOG_SOFTMAX },
        [TEACHER] = { "teacher_log_probs", KI_INPUT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) }, .fill = KI_FILL_LOG_SOFTMAX },
        [LOSS] = { "loss", KI_OUTPUT, .shape = { KI_ONE } },
        [DLOSS] = { "dloss", KI_UPSTREAM, .shape = { KI_ONE }, .of = { "loss" } },
        [DSTUDENT] = { "dstudent_log_probs", KI_GRADIENT, .shape = { KI_AXIS(TOKENS), KI_AXIS(VOCAB) }, .of = { "student_log_probs" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(jsd),
};

#else

#include "pair_loss.cuh"

namespace {

/* With m = max(X, Y), d = -|X - Y|, a the weight of the larger side and w = a + (1 - a) e^d, log M = m + log w: two exponentials and
 * one logarithm near 0, so that X - log M loses nothing where P is near Q. */
struct jsd_pair {
    static constexpr double factor = 1;
    static constexpr int reading_threads = 256;
    static constexpr bool reads_first = true;
    float g, beta;
    __device__ void pair(float x, float y, float &loss, float &grad) const
    {
        /* log2(e) in two parts: the error of one does not average out over a sum */
        float m = fmaxf(x, y), d = fminf(x, y) - m, e = ki::exp2_of(fmaf(d, ki::log2_e, d * 1.92596299e-8f)), top = expf(m);
        bool student = x >= y;
        float a = student ? 1.0f - beta : beta, small = (1.0f - a) * e, w = a + small, log_w = ki::log_of(w);
        loss = top * (small * d - w * log_w);
        grad = top * (student ? a * -log_w : small * (d - log_w)) * g;
    }
};

}

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        ki::pair_loss_args<T> a = {
            .first = ki::data<T>(c, STUDENT), .second = ki::data<T>(c, TEACHER), .dloss = ki::data<T>(c, DLOSS),
            .grad = ki::data<T>(c, DSTUDENT), .partial = (double *)c->workspace, .count = c->tensor[STUDENT].count,
        };
        jsd_pair of = { .beta = (float)c->work.scalar[0] };
        return ki::pair_loss_pass(c->pass, a, c->work.axis[TOKENS], ki::data<T>(c, LOSS), of, PARTS_LIMIT, (cudaStream_t)c->stream);
    });
}

KI_DEFINE_DEVICE(jsd, NULL, launch)

#endif
