/* RMSNorm in Megatron's [seq, batch, hidden] layout: rms_norm with rows = seq * batch, and its kernels, compiled there.
 * The upstream gradient is dense, as for every operation here; what upstream timed used a broadcast 1.
 * reference rms_norm_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "rms_norm_ref.h"
enum { X, WEIGHT, Y, DY, DX, DWEIGHT };
enum { SEQ, BATCH, HIDDEN };
enum { PARTS_LIMIT = 1024 }; /* partial sums of dweight, rows */

#include "ref.h"

#ifndef __CUDACC__

static size_t workspace_bytes(const struct ki_case *c, enum ki_pass pass)
{
    int64_t rows = c->axis[SEQ] * c->axis[BATCH], parts = rows < PARTS_LIMIT ? rows : PARTS_LIMIT;
    return pass == KI_BACKWARD || pass == KI_FULL ? (size_t)(parts * c->axis[HIDDEN]) * sizeof(float) : 0;
}

static int derive(struct ki_case *c, const char **reason)
{
    if (c->axis[HIDDEN] <= INT32_MAX && c->axis[SEQ] <= INT32_MAX && c->axis[BATCH] <= INT32_MAX)
        return 0;
    *reason = "an axis is too large";
    return -1;
}

/* operations.md 1.1, R = S * B: 2RHs + Hs, 3RHs + 2Hs; full 4RHs + 2Hs. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double row = (double)c->axis[HIDDEN] * (double)ki_dtype_bytes(c->dtype);
    double all = (double)c->axis[SEQ] * (double)c->axis[BATCH] * row;
    double bytes = pass == KI_BACKWARD ? 3 * all + 2 * row : pass == KI_FULL ? 4 * all + 2 * row : 2 * all + row;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(megatron_rms_norm);

#define ROW_SHAPE { KI_AXIS(SEQ), KI_AXIS(BATCH), KI_AXIS(HIDDEN) }

extern const struct ki_operation megatron_rms_norm_operation;
const struct ki_operation megatron_rms_norm_operation = {
    .name = "megatron_rms_norm",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 3,
    .axis = { "seq", "batch", "hidden" },
    .scalar = { { "eps", 1e-6 } },
    .tensor = {
        [X] = { "x", KI_INPUT, .shape = ROW_SHAPE },
        [WEIGHT] = { "weight", KI_PARAM, .shape = { KI_AXIS(HIDDEN) }, .mean = 1, .deviation = 0.5 },
        [Y] = { "y", KI_OUTPUT, .shape = ROW_SHAPE },
        [DY] = { "dy", KI_UPSTREAM, .shape = ROW_SHAPE, .of = { "y" } },
        [DX] = { "dx", KI_GRADIENT, .shape = ROW_SHAPE, .of = { "x" } },
        [DWEIGHT] = { "dweight", KI_GRADIENT, .shape = { KI_AXIS(HIDDEN) }, .of = { "weight" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(megatron_rms_norm),
};

#else

#include "rms_norm.cuh"

static int launch(const struct ki_call *c)
{
    return ki_rms_norm_pass(c, c->work.axis[SEQ] * c->work.axis[BATCH], c->work.axis[HIDDEN]);
}

KI_DEFINE_DEVICE(megatron_rms_norm, NULL, launch)

#endif
