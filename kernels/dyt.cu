/* DyT: a learned tanh in the place of a norm, element by element, arithmetic in fp32 with one rounding at the end. Parameters are fp32 whatever
 * the type of x is, as in the published contract.
 * x, y [rows, hidden], row-major; alpha [1], gamma, beta [hidden]
 * forward   reads x, writes y                 4096 x 16384 bf16: 269 MB
 * alpha is drawn near 0.5, where upstream begins: the time of a tanh depends on its argument.
 * Forward only: backward and full have no kernel here. Kernel: dyt.cuh
 * reference dyt_ref.h; tolerance config/tolerances.json */
#define KI_REF_FILE "dyt_ref.h"
enum { X, ALPHA, GAMMA, BETA, Y };
enum { ROWS, HIDDEN };
#define DYT_BETA BETA

#include "ref.h"

#ifndef __CUDACC__

#include "dyt.h"

static const struct ki_reference reference = ki_reference_here;
KI_DECLARE_DEVICE(dyt);

extern const struct ki_operation dyt_operation;
const struct ki_operation dyt_operation = {
    .name = "dyt",
    .passes = KI_BIT(KI_FORWARD) | KI_BIT(KI_NO_GRAD),
    .dtypes = KI_FLOAT_DTYPES,
    .axes = 2,
    .axis = { "rows", "hidden" },
    .tensor = {
        [X] = { "x", KI_INPUT, .shape = { KI_AXIS(ROWS), KI_AXIS(HIDDEN) } },
        [ALPHA] = { "alpha", KI_PARAM, KI_F32, { KI_ONE }, .mean = 0.5, .deviation = 0.05 },
        [GAMMA] = { "gamma", KI_PARAM, KI_F32, { KI_AXIS(HIDDEN) }, .mean = 1, .deviation = 0.5 },
        [BETA] = { "beta", KI_PARAM, KI_F32, { KI_AXIS(HIDDEN) }, .mean = 1, .deviation = 0.5 },
        [Y] = { "y", KI_OUTPUT, .shape = { KI_AXIS(ROWS), KI_AXIS(HIDDEN) } },
    },
    .tolerance = "fp32_accumulate",
    .derive = derive,
    .floor = least,
    .reference = &reference,
    .device = KI_DEVICE_OF(dyt),
};

#else

#include "dyt.cuh"

static int launch(const struct ki_call *c)
{
    return ki::with_type(c->work.dtype, [&]<typename T>() {
        return ki::dyt_forward<T>({
            .x = ki::data<T>(c, X), .alpha = ki::data<float>(c, ALPHA), .gamma = ki::data<float>(c, GAMMA), .beta = ki::data<float>(c, BETA),
            .y = ki::data<T>(c, Y), .hidden = (int)c->work.axis[HIDDEN],
        }, c->work.axis[ROWS], (cudaStream_t)c->stream);
    });
}

KI_DEFINE_DEVICE(dyt, NULL, launch)

#endif
