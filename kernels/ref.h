/* Makes the reference of one operation, in fp64 and in fp32, for the host and for the device, out of one text.
 *
 * An operation's .cu file says
 *     #define KI_REF_FILE "rms_norm_ref.h"
 *     #include "ref.h"
 * and gets `ki_reference_here`: in the half that the C compiler reads, a reference that runs on the host; in the half that
 * nvcc reads, one that runs on the device. KI_REF_FILE is read twice, with `real` double (the reference proper) and float
 * (the plain fp32 baseline whose error sets the tolerance), so it has no include guard. It defines three functions:
 *
 *   int64_t REF(tasks)(const struct ki_call *c, int step)
 *       how many tasks step 0, 1, 2 … has; 0 past the last.
 *   void REF(task)(const struct ki_call *c, int step, int64_t i)
 *       one task: reads inputs and what earlier steps left in c->scratch, writes its own part of c->scratch. Tasks of a step
 *       run in any order and at once: one task a thread on the device, a loop on the host. A row is a good task.
 *   real REF(value)(const struct ki_call *c, int tensor, int64_t i)
 *       element i of an output or gradient, from inputs and scratch.
 *
 * and, once for both, REF_SCRATCH(c): how many doubles of scratch they need (a macro defined by the file).
 * They are written from the maths, plainly; no library and no other kernel of this project is called.
 * Use real literals ((real)1), the r… functions below, and struct REF(sum) for long sums.
 */
#include "kernel.h"

#ifndef KI_REF_FILE
#error "define KI_REF_FILE first"
#endif

/* x as a tensor core reads it when fp32 products run in TF32: 10 bits of mantissa, to nearest, ties away. Only the baseline of an
 * operation with tolerance "tf32_products" rounds. */
static inline KI_HD float ki_round_tf32(float x)
{
    return ki_bits_float((ki_float_bits(x) + 0x1000u) & 0xffffe000u);
}

#define real double
#define REF(name) name##_f64
#define rexp exp
#define rlog log
#define rroot sqrt
#define rtanh tanh
#define rabs fabs
#define rmax fmax
#define rpow pow
#define rcos cos
#define rsin sin
#define rtf32(x) (x)
#include "ref_sum.h"
#include KI_REF_FILE
#undef real
#undef REF
#undef REF_SCRATCH
#undef rexp
#undef rlog
#undef rroot
#undef rtanh
#undef rabs
#undef rmax
#undef rpow
#undef rcos
#undef rsin
#undef rtf32

#define real float
#define REF(name) name##_f32
#define rexp expf
#define rlog logf
#define rroot sqrtf
#define rtanh tanhf
#define rabs fabsf
#define rmax fmaxf
#define rpow powf
#define rcos cosf
#define rsin sinf
#define rtf32 ki_round_tf32
#include "ref_sum.h"
#include KI_REF_FILE
#undef real
#undef REF
#undef rexp
#undef rlog
#undef rroot
#undef rtanh
#undef rabs
#undef rmax
#undef rpow
#undef rcos
#undef rsin
#undef rtf32

#ifdef __CUDACC__

template <bool exact>
static __global__ void ki_ref_step(const __grid_constant__ ki_call c, int step, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if constexpr (exact)
        task_f64(&c, step, i);
    else
        task_f32(&c, step, i);
}

template <bool exact>
static __global__ void ki_ref_values(const __grid_constant__ ki_call c, int tensor, int64_t first, int64_t n, double *out)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = exact ? value_f64(&c, tensor, first + i) : (double)value_f32(&c, tensor, first + i);
}

static int ki_ref_prepare(const struct ki_call *c, enum ki_precision p)
{
    int64_t n;
    for (int step = 0; (n = p == KI_EXACT ? tasks_f64(c, step) : tasks_f32(c, step)) > 0; step++) {
        unsigned blocks = (unsigned)((n + 63) / 64);
        if (p == KI_EXACT)
            ki_ref_step<true><<<blocks, 64, 0, (cudaStream_t)c->stream>>>(*c, step, n);
        else
            ki_ref_step<false><<<blocks, 64, 0, (cudaStream_t)c->stream>>>(*c, step, n);
    }
    return (int)cudaGetLastError();
}

static int ki_ref_range(const struct ki_call *c, enum ki_precision p, int tensor, int64_t first, int64_t n, double *out)
{
    unsigned blocks = (unsigned)((n + 127) / 128);
    if (p == KI_EXACT)
        ki_ref_values<true><<<blocks, 128, 0, (cudaStream_t)c->stream>>>(*c, tensor, first, n, out);
    else
        ki_ref_values<false><<<blocks, 128, 0, (cudaStream_t)c->stream>>>(*c, tensor, first, n, out);
    return (int)cudaGetLastError();
}

#else

static int ki_ref_prepare(const struct ki_call *c, enum ki_precision p)
{
    int64_t n;
    for (int step = 0; (n = p == KI_EXACT ? tasks_f64(c, step) : tasks_f32(c, step)) > 0; step++)
        for (int64_t i = 0; i < n; i++)
            if (p == KI_EXACT)
                task_f64(c, step, i);
            else
                task_f32(c, step, i);
    return 0;
}

static int ki_ref_range(const struct ki_call *c, enum ki_precision p, int tensor, int64_t first, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = p == KI_EXACT ? value_f64(c, tensor, first + i) : (double)value_f32(c, tensor, first + i);
    return 0;
}

#endif

static int64_t ki_ref_scratch(const struct ki_call *c)
{
    (void)c;
    return REF_SCRATCH(c);
}

#define ki_reference_here { ki_ref_scratch, ki_ref_prepare, ki_ref_range }

/* KI_DEFINE_DEVICE(name, setup, launch) ends the nvcc half of name.cu. The C half says KI_DECLARE_DEVICE(name) and
 * `.device = KI_DEVICE_OF(name)`: NULL in a program that is linked without the nvcc half. */
#ifdef __CUDACC__
#define KI_DEFINE_DEVICE(name, setup, launch) \
    extern "C" { \
    extern const struct ki_device name##_device; \
    const struct ki_device name##_device = { setup, launch, ki_reference_here }; \
    }
#else
#define KI_DECLARE_DEVICE(name) extern const struct ki_device name##_device __attribute__((weak))
#define KI_DEVICE_OF(name) &name##_device
#endif
