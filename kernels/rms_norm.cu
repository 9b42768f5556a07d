/* RMSNorm of rows, Llama style: eps inside the root, weight applied last, one rounding at the end.
 * x, y, dy, dx [rows, hidden], weight, dweight [hidden], row-major. Kernels and their layout: rms_norm.cuh.
 * forward   one block a row                         2048 x 16384 bf16: 134 MB
 * backward  persistent clusters, partial dw, sums   2048 x 16384 bf16: 201 MB
 * full      the backward kernel, which also writes y; reads x once
 * reference rms_norm_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "rms_norm_ref.h"
enum { X, WEIGHT, Y, DY, DX, DWEIGHT };
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

/* operations.md 1.1: 2RHs + Hs, 3RHs + 2Hs; full 4RHs + 2Hs. */
static struct ki_floor least(const struct ki_case *c, enum ki_pass pass)
{
    double s = (double)ki_dtype_bytes(c->dtype), row = (double)c->axis[HIDDEN] * s, all = (double)c->axis[ROWS] * row;
    double bytes = pass == KI_BACKWARD ? 3 * all + 2 * row : pass == KI_FULL ? 4 * all + 2 * row : 2 * all + row;
    return (struct ki_floor){ .bytes = bytes, .dense_bytes = bytes, .hard = true };
}

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(rms_norm);

extern const struct ki_operation rms_norm_operation;
const struct ki_operation rms_norm_operation = {
    .name = "rms_norm",
    .passes = KI_ALL_PASSES,
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "rows", "hidden" },
    .scalar = { { "eps", 1e-6 } },
    .tensor = {
        [X] = { "x", KI_INPUT, .shape = { KI_AXIS(ROWS), KI_AXIS(HIDDEN) } },
        [WEIGHT] = { "weight", KI_PARAM, .shape = { KI_AXIS(HIDDEN) }, .mean = 1, .deviation = 0.5 },
        [Y] = { "y", KI_OUTPUT, .shape = { KI_AXIS(ROWS), KI_AXIS(HIDDEN) } },
        [DY] = { "dy", KI_UPSTREAM, .shape = { KI_AXIS(ROWS), KI_AXIS(HIDDEN) }, .of = { "y" } },
        [DX] = { "dx", KI_GRADIENT, .shape = { KI_AXIS(ROWS), KI_AXIS(HIDDEN) }, .of = { "x" } },
        [DWEIGHT] = { "dweight", KI_GRADIENT, .shape = { KI_AXIS(HIDDEN) }, .of = { "weight" } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .workspace_bytes = workspace_bytes,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(rms_norm),
};

#else

#include "rms_norm.cuh"

int ki_rms_norm_pass(const struct ki_call *c, int64_t rows, int64_t hidden)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        ki::rms_norm_args<T> a = {
            .x = ki::data<T>(c, X), .weight = ki::data<T>(c, WEIGHT), .dy = ki::data<T>(c, DY),
            .y = ki::data<T>(c, Y), .dx = ki::data<T>(c, DX), .dweight = ki::data<T>(c, DWEIGHT),
            .partial = (float *)c->workspace,
            .rows = rows, .hidden = (int)hidden, .eps = (float)c->work.scalar[0],
        };
        return ki::rms_norm_pass<T, false>(c->pass, a, PARTS_LIMIT, (cudaStream_t)c->stream);
    });
}

static int launch(const struct ki_call *c)
{
    return ki_rms_norm_pass(c, c->work.axis[ROWS], c->work.axis[HIDDEN]);
}

KI_DEFINE_DEVICE(rms_norm, NULL, launch)

#endif
