/* Residual add and RMSNorm of the sum, both delivered: s = x + residual (rounded to the case's type), y = w s / rms(s).
 * x, residual, y, residual_out and their gradients [rows, hidden], weight, dweight [hidden], row-major. dx is also the gradient
 * of residual: one buffer. Kernels and their layout: rms_norm.cuh with ADD.
 * forward   one block a row                         2048 x 16384 fp32: 537 MB
 * backward  persistent clusters, partial dw, sums   2048 x 16384 fp32: 537 MB
 * full      the backward kernel, which forms s and also writes y and s
 * reference fused_add_rms_norm_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "fused_add_rms_norm_ref.h"
enum { X, RESIDUAL, WEIGHT, Y, RESIDUAL_OUT, DY, DRESIDUAL_OUT, DX, DWEIGHT };
enum { ROWS, HIDDEN };
enum { PARTS_LIMIT = 1024 }; /* partial sums of dweight, rows */

#include "ref.h"

#ifndef __CUDACC__

static size_t workspace_bytes(const struct ki_case *c, enum ki_pass pass)
{
    int64_t parts = c->axis[ROWS] < PARTS_LIMIT ? c->axis[ROWS] : PARTS_LIMIT;
    return pass == KI_BACKWARD || pass == KI_FULL ? (size_t)(parts * c->axis[HIDDEN]) * sizeof(float) : 0;
}

static int derive(struct ki_case *c, const char **reason)
{
    if (c->axis[HIDDEN] <= INT32_MAX)
        return 0;
    *reason = "hidden is too large";
    return -1;
}

/* operations.md 1.1: 4RHs + Hs, 4RHs + 2Hs; full 7RHs + 2Hs. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double s = (double)ki_dtype_bytes(c->dtype), row = (double)c->axis[HIDDEN] * s, all = (double)c->axis[ROWS] * row;
    double bytes = pass == KI_BACKWARD ? 4 * all + 2 * row : pass == KI_FULL ? 7 * all + 2 * row : 4 * all + row;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(fused_add_rms_norm);

#define ROW_SHAPE { KI_AXIS(ROWS), KI_AXIS(HIDDEN) }

extern const struct ki_operation fused_add_rms_norm_operation;
const struct ki_operation fused_add_rms_norm_operation = {
    .name = "fused_add_rms_norm",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "rows", "hidden" },
    .scalar = { { "eps", 1e-6 } },
    .tensor = {
        [X] = { "x", KI_INPUT, .shape = ROW_SHAPE },
        [RESIDUAL] = { "residual", KI_INPUT, .shape = ROW_SHAPE },
        [WEIGHT] = { "weight", KI_PARAM, .shape = { KI_AXIS(HIDDEN) }, .mean = 1, .deviation = 0.5 },
        [Y] = { "y", KI_OUTPUT, .shape = ROW_SHAPE },
        [RESIDUAL_OUT] = { "residual_out", KI_OUTPUT, .shape = ROW_SHAPE, .kept = true },
        [DY] = { "dy", KI_UPSTREAM, .shape = ROW_SHAPE, .of = { "y" } },
        [DRESIDUAL_OUT] = { "dresidual_out", KI_UPSTREAM, .shape = ROW_SHAPE, .of = { "residual_out" } },
        [DX] = { "dx", KI_GRADIENT, .shape = ROW_SHAPE, .of = { "x", "residual" } },
        [DWEIGHT] = { "dweight", KI_GRADIENT, .shape = { KI_AXIS(HIDDEN) }, .of = { "weight" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(fused_add_rms_norm),
};

#else

#include "rms_norm.cuh"

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        ki::rms_norm_args<T> a = {
            .x = ki::data<T>(c, X), .residual = ki::data<T>(c, RESIDUAL), .weight = ki::data<T>(c, WEIGHT),
            .s = ki::data<T>(c, RESIDUAL_OUT), .dy = ki::data<T>(c, DY), .ds = ki::data<T>(c, DRESIDUAL_OUT),
            .y = ki::data<T>(c, Y), .sum = ki::data<T>(c, RESIDUAL_OUT), .dx = ki::data<T>(c, DX),
            .dweight = ki::data<T>(c, DWEIGHT), .partial = (float *)c->workspace,
            .rows = c->work.axis[ROWS], .hidden = (int)c->work.axis[HIDDEN], .eps = (float)c->work.scalar[0],
        };
        return ki::rms_norm_pass<T, true>(c->pass, a, PARTS_LIMIT, (cudaStream_t)c->stream);
    });
}

KI_DEFINE_DEVICE(fused_add_rms_norm, NULL, launch)

#endif
