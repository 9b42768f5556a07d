/* How one element of a result adds to an error_sums: one definition for host and device. */
#ifndef KI_VERIFY_ERRORS_H
#define KI_VERIFY_ERRORS_H

#include "verify/place.h"

static inline KI_HD uint64_t errors_bits(double magnitude)
{
    uint64_t u;
    memcpy(&u, &magnitude, sizeof u);
    return u;
}

static inline double errors_value(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline KI_HD bool errors_finite(double v)
{
    return fabs(v) <= 1.7976931348623157e308;
}

static inline KI_HD void errors_raise(uint64_t *at, uint64_t v)
{
    if (v > *at)
        *at = v;
}

/* Where the reference is not finite, the result must be the same value (or any NaN for a NaN). */
static inline KI_HD void errors_add(struct error_sums *s, enum ki_dtype dtype, double got, double exact, double baseline,
    double floor_ulps, int64_t index)
{
    s->elements++;
    if (!errors_finite(got) || !errors_finite(exact)) {
        bool same = got == ki_round(dtype, exact) || (got != got && exact != exact);
        s->nonfinite += !same;
        return;
    }
    double error = fabs(got - exact), ulp = ki_ulp(dtype, exact), base = fabs(ki_round(dtype, baseline) - exact);
    errors_raise(&s->max_error, errors_bits(error));
    if (error > floor_ulps * ulp)
        errors_raise(&s->max_beyond, errors_bits(error));
    errors_raise(&s->worst, (uint64_t)ki_float_bits((float)error) << 32 | (uint64_t)(uint32_t)index);
    if (errors_finite(base))
        errors_raise(&s->baseline_max, errors_bits(base));
    errors_raise(&s->exact_max, errors_bits(fabs(exact)));
    s->squares += error * error;
    s->baseline_squares += base * base;
    s->exact_squares += exact * exact;
    s->ulp_squares += ulp * ulp;
}

/* Fold the sums of one part into another's. */
static inline KI_HD void errors_merge(struct error_sums *to, const struct error_sums *from)
{
    to->elements += from->elements;
    to->nonfinite += from->nonfinite;
    errors_raise(&to->max_error, from->max_error);
    errors_raise(&to->max_beyond, from->max_beyond);
    errors_raise(&to->worst, from->worst);
    errors_raise(&to->baseline_max, from->baseline_max);
    errors_raise(&to->exact_max, from->exact_max);
    to->squares += from->squares;
    to->baseline_squares += from->baseline_squares;
    to->exact_squares += from->exact_squares;
    to->ulp_squares += from->ulp_squares;
}

/* The words that hash() and count() see: little-endian 8-byte words, the last one filled up with zeros. */
static inline KI_HD uint64_t errors_hash_word(const unsigned char *at, size_t size_bytes, size_t word)
{
    uint64_t v = 0;
    size_t from = word * 8, n = size_bytes - from < 8 ? size_bytes - from : 8;
    memcpy(&v, at + from, n);
    return draw_mix(v ^ draw_mix((uint64_t)word + 0x632be59bd9b4e019u));
}

static inline KI_HD bool errors_is_word(const unsigned char *at, int width, uint32_t word)
{
    uint64_t v = 0, wide = (uint64_t)word << 32 | word;
    memcpy(&v, at, (size_t)width);
    return v == (width == 8 ? wide : width == 4 ? (uint64_t)word : (uint64_t)(word & 0xffffu));
}

#endif
