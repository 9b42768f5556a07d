#include "verify/light.h"

#include <math.h>

static const double allowance = 1.05, l2_multiple = 4;

static double rate(const struct peak *p, enum ki_math math)
{
    switch (math) {
    case KI_MATH_FP32:
        return p->fp32_tflops;
    case KI_MATH_TF32:
        return p->tf32_tflops;
    case KI_MATH_BF16:
        return p->bf16_tflops;
    default:
        return 0;
    }
}

double light_ns(const struct ki_floor *f, const struct peak *p, double l2_bytes)
{
    double tflops = rate(p, f->math), memory = 0, math = 0;
    if (!f->hard)
        return 0;
    if (p->gbps > 0 && f->bytes >= l2_multiple * l2_bytes)
        memory = f->bytes / p->gbps; /* GB/s is bytes a nanosecond */
    if (tflops > 0)
        math = f->flops / tflops * 1e-3;
    return fmax(memory, math) / allowance;
}
