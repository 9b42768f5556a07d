/* Element types of tensors: their names, sizes and exact conversions, one definition for host and device.
 *
 * bf16 and fp16 are kept as 16 bits; reading is exact, writing rounds to nearest, ties to even. KI_F64 never occurs in a
 * benchmark: tests use it to prove references by finite differences.
 */
#ifndef KI_NUMBER_H
#define KI_NUMBER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define KI_HD __host__ __device__
#else
#define KI_HD
#endif

enum ki_dtype { KI_CASE_DTYPE, KI_F32, KI_BF16, KI_F16, KI_F64, KI_I64 };

/* A tensor as a kernel sees it: dense, in the physical order its operation documents. Owns nothing. */
struct ki_tensor {
    void *data;
    int64_t count; /* elements */
    enum ki_dtype dtype;
};

static inline KI_HD int64_t ki_dtype_bytes(enum ki_dtype d)
{
    return d == KI_F32 ? 4 : d == KI_BF16 || d == KI_F16 ? 2 : 8;
}

static inline KI_HD uint32_t ki_float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline KI_HD float ki_bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline KI_HD float ki_bf16_float(uint16_t b)
{
    return ki_bits_float((uint32_t)b << 16);
}

static inline KI_HD uint16_t ki_float_bf16(float f)
{
    uint32_t u = ki_float_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u); /* NaN stays NaN */
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline KI_HD float ki_f16_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu;
    if (e == 31u)
        return ki_bits_float(sign | 0x7f800000u | m << 13);
    if (e)
        return ki_bits_float(sign | (e + 112u) << 23 | m << 13);
    float f = (float)m * 5.9604644775390625e-8f; /* 2^-24 */
    return sign ? -f : f;
}

static inline KI_HD uint16_t ki_float_f16(float f)
{
    uint32_t u = ki_float_bits(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (a >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (a >= 0x38800000u) /* normal: drop 13 bits */
        return (uint16_t)(sign | ((a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13));
    /* subnormal: adding 0.5 leaves the value in units of 2^-24, rounded to even, in the low bits */
    return (uint16_t)(sign | (ki_float_bits(ki_bits_float(a) + 0.5f) - 0x3f000000u));
}

/* Element i of a float tensor, exactly. */
static inline KI_HD double ki_get(const struct ki_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case KI_F32:
        return (double)((const float *)t->data)[i];
    case KI_BF16:
        return (double)ki_bf16_float(((const uint16_t *)t->data)[i]);
    case KI_F16:
        return (double)ki_f16_float(((const uint16_t *)t->data)[i]);
    default:
        return ((const double *)t->data)[i];
    }
}

/* Element i of an index tensor. */
static inline KI_HD int64_t ki_index(const struct ki_tensor *t, int64_t i)
{
    return ((const int64_t *)t->data)[i];
}

/* Store v as element i, rounded to the tensor's type (16-bit types by way of fp32, as a kernel does). */
static inline KI_HD void ki_put(const struct ki_tensor *t, int64_t i, double v)
{
    switch (t->dtype) {
    case KI_F32:
        ((float *)t->data)[i] = (float)v;
        break;
    case KI_BF16:
        ((uint16_t *)t->data)[i] = ki_float_bf16((float)v);
        break;
    case KI_F16:
        ((uint16_t *)t->data)[i] = ki_float_f16((float)v);
        break;
    case KI_I64:
        ((int64_t *)t->data)[i] = (int64_t)v;
        break;
    default:
        ((double *)t->data)[i] = v;
    }
}

/* v as the type can hold it. */
static inline KI_HD double ki_round(enum ki_dtype d, double v)
{
    switch (d) {
    case KI_F32:
        return (double)(float)v;
    case KI_BF16:
        return (double)ki_bf16_float(ki_float_bf16((float)v));
    case KI_F16:
        return (double)ki_f16_float(ki_float_f16((float)v));
    default:
        return v;
    }
}

/* Distance between neighbours of the type at v. */
static inline KI_HD double ki_ulp(enum ki_dtype d, double v)
{
    int bits = d == KI_BF16 ? 8 : d == KI_F16 ? 11 : d == KI_F32 ? 24 : 53;
    int least = d == KI_F16 ? -24 : d == KI_F64 ? -1074 : d == KI_BF16 ? -133 : -149;
    int e = 0;
    frexp(v, &e);
    return ldexp(1.0, v == 0 || e - bits < least ? least : e - bits);
}

#endif
