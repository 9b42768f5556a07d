/* Random inputs: element i of a tensor is a function of a seed and i alone, one definition for host and device, so that any part
 * of any input can be made again. SplitMix64's finalizer over a counter; normals by Box-Muller in fp32. Host and device agree
 * in distribution, not in the last bit (their logarithms differ).
 *
 * verify/place.h does the filling; softmax fills are finished there, row by row. */
#ifndef KI_VERIFY_DRAW_H
#define KI_VERIFY_DRAW_H

#include "kernels/kernel.h"

/* How a tensor is drawn: its contract's fill, with the numbers of its case. */
struct draw {
    enum ki_fill fill;
    float mean, deviation;
    int64_t range;   /* INDEX: values in [0, range) */
    int64_t columns; /* SOFTMAX, LOG_SOFTMAX: elements a row */
    uint64_t seed;
};

static inline KI_HD uint64_t draw_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline KI_HD uint64_t draw_bits(uint64_t seed, uint64_t i)
{
    return draw_mix(seed + (i + 1) * 0x9e3779b97f4a7c15u);
}

static inline KI_HD float draw_normal(uint64_t bits)
{
    float u = ((float)(uint32_t)(bits >> 32) + 1.0f) * 0x1p-32f, angle = (float)(uint32_t)bits * (6.2831853f * 0x1p-32f);
    return sqrtf(-2.0f * logf(u < 1.0f ? u : 1.0f)) * cosf(angle);
}

/* Element i before any softmax; an INDEX value is exact below 2^53. */
static inline KI_HD double draw_element(const struct draw *d, int64_t i)
{
    uint64_t bits = draw_bits(d->seed, (uint64_t)i);
    switch (d->fill) {
    case KI_FILL_INDEX:
        return (double)(bits % (uint64_t)d->range);
    case KI_FILL_UNIFORM:
        return (double)(d->mean + d->deviation * ((float)(bits >> 40) * 0x1p-23f - 1.0f));
    default:
        return (double)(d->mean + d->deviation * draw_normal(bits));
    }
}

static inline KI_HD bool draw_is_softmax(const struct draw *d)
{
    return d->fill == KI_FILL_SOFTMAX || d->fill == KI_FILL_LOG_SOFTMAX;
}

#endif
