/* Proves the host reference of an operation: every gradient it delivers against central differences of its own forward pass,
 * in fp64. Included by the tests of references, one for each operation.
 *
 * The function differentiated is L = sum over outputs of <upstream, output>, so that the gradient of each input is what the
 * backward pass must deliver. Inputs are drawn as the contract says, from a fixed seed.
 */
#ifndef FINITE_DIFFERENCE_H
#define FINITE_DIFFERENCE_H

#include "kernels/kernel.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct fd {
    struct ki_case work;
    struct ki_tensor tensor[KI_MAX_TENSORS]; /* all of them, whatever the pass */
    int tensors;
    uint64_t seed;
};

/* Uniform in [0, 1), SplitMix64. */
static inline double fd_uniform(struct fd *f)
{
    uint64_t z = f->seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static inline double fd_normal(struct fd *f)
{
    double u = 1 - fd_uniform(f);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * fd_uniform(f));
}

/* Turn rows of N(0,1) into their softmax, or its logarithm. */
static inline void fd_softmax(const struct ki_tensor *t, int64_t columns, bool logarithm)
{
    for (int64_t row = 0; row < t->count; row += columns) {
        double sum = 0;
        for (int64_t i = row; i < row + columns; i++)
            sum += exp(ki_get(t, i));
        for (int64_t i = row; i < row + columns; i++)
            ki_put(t, i, logarithm ? ki_get(t, i) - log(sum) : exp(ki_get(t, i)) / sum);
    }
}

static inline void fd_fill(struct fd *f, int at)
{
    const struct ki_tensor_spec *spec = &f->work.operation->tensor[at];
    const struct ki_tensor *t = &f->tensor[at];
    double deviation = spec->deviation == 0 ? 1 : spec->deviation;
    int64_t shape[KI_MAX_RANK];
    int rank = ki_tensor_shape(&f->work, at, shape);
    for (int64_t i = 0; i < t->count; i++)
        if (spec->fill == KI_FILL_INDEX)
            ki_put(t, i, floor(fd_uniform(f) * (double)f->work.axis[spec->range]));
        else if (spec->fill == KI_FILL_UNIFORM)
            ki_put(t, i, spec->mean + deviation * (2 * fd_uniform(f) - 1));
        else
            ki_put(t, i, spec->mean + deviation * fd_normal(f));
    if (spec->fill == KI_FILL_SOFTMAX || spec->fill == KI_FILL_LOG_SOFTMAX)
        fd_softmax(t, shape[rank - 1], spec->fill == KI_FILL_LOG_SOFTMAX);
}

/* A case with all its tensors, inputs and upstream gradients drawn. Float tensors all take `dtype`, whatever the contract. */
static inline void fd_init(struct fd *f, const struct ki_operation *op, enum ki_dtype dtype, const struct ki_axis_value *axes, size_t n)
{
    const char *reason = "";
    *f = (struct fd){ .seed = 1 };
    if (ki_case_set(&f->work, op, dtype, axes, n, NULL, 0, &reason) != 0) {
        fprintf(stderr, "%s: %s\n", op->name, reason);
        abort();
    }
    f->tensors = ki_tensor_total(op);
    for (int i = 0; i < f->tensors; i++) {
        enum ki_dtype own = ki_tensor_dtype(&f->work, i);
        f->tensor[i] = (struct ki_tensor){ .count = ki_tensor_count(&f->work, i), .dtype = own == KI_I64 ? own : dtype };
        f->tensor[i].data = calloc((size_t)f->tensor[i].count, 8);
        assert(f->tensor[i].data);
        enum ki_role role = op->tensor[i].role;
        if (role == KI_INPUT || role == KI_PARAM || role == KI_UPSTREAM)
            fd_fill(f, i);
    }
}

static inline void fd_fini(struct fd *f)
{
    for (int i = 0; i < f->tensors; i++)
        free(f->tensor[i].data);
}

/* Every element of `tensor` after a pass, in fp64 or as the fp32 baseline has it, unrounded. The caller frees. */
static inline double *fd_values(const struct fd *f, enum ki_pass pass, enum ki_precision p, int tensor)
{
    const struct ki_reference *reference = f->work.operation->reference;
    struct ki_call c = { .work = f->work, .pass = pass };
    for (int i = 0; i < f->tensors; i++) {
        c.tensor[i] = f->tensor[i];
        if (ki_tensor_use(f->work.operation, pass, i) == KI_UNUSED)
            c.tensor[i].data = NULL;
    }
    int64_t count = f->tensor[tensor].count, scratch = reference->scratch_count(&c);
    double *out = calloc((size_t)count, sizeof *out);
    c.scratch = calloc((size_t)scratch + 1, sizeof *c.scratch);
    assert(out && c.scratch);
    int rc = reference->prepare(&c, p) | reference->values(&c, p, tensor, 0, count, out);
    free(c.scratch);
    if (rc != 0)
        abort();
    return out;
}

/* Give a tensor, by name, these elements. */
static inline void fd_put(const struct fd *f, const char *tensor, const double *v)
{
    const struct ki_tensor *t = &f->tensor[ki_tensor_find(f->work.operation, tensor)];
    for (int64_t i = 0; i < t->count; i++)
        ki_put(t, i, v[i]);
}

/* Whether every element of a tensor after a pass is within `margin` of a literal one; margin 0 asks for equality. */
static inline bool fd_gives(const struct fd *f, enum ki_pass pass, const char *tensor, const double *v, double margin)
{
    int at = ki_tensor_find(f->work.operation, tensor);
    double *got = fd_values(f, pass, KI_EXACT, at);
    bool near = true;
    for (int64_t i = 0; i < f->tensor[at].count; i++)
        near = near && (got[i] == v[i] || fabs(got[i] - v[i]) < margin);
    free(got);
    return near;
}

/* Let the outputs that backward reads hold what forward gives. */
static inline void fd_keep(const struct fd *f)
{
    for (int i = 0; i < f->tensors; i++)
        if (f->work.operation->tensor[i].kept) {
            double *v = fd_values(f, KI_FORWARD, KI_EXACT, i);
            for (int64_t j = 0; j < f->tensor[i].count; j++)
                ki_put(&f->tensor[i], j, v[j]);
            free(v);
        }
}

static inline double fd_loss(const struct fd *f)
{
    const struct ki_operation *op = f->work.operation;
    double sum = 0;
    for (int i = 0; i < f->tensors; i++) {
        if (op->tensor[i].role != KI_UPSTREAM)
            continue;
        int output = ki_tensor_find(op, op->tensor[i].of[0]);
        double *v = fd_values(f, KI_FORWARD, KI_EXACT, output);
        for (int64_t j = 0; j < f->tensor[output].count; j++)
            sum += v[j] * ki_get(&f->tensor[i], j);
        free(v);
    }
    return sum;
}

/* Largest |gradient - difference| of a gradient tensor over all elements of `input`, relative to the largest gradient. */
static inline double fd_compare(const struct fd *f, const double *gradient, int input)
{
    const struct ki_tensor *t = &f->tensor[input];
    double worst = 0, largest = 1e-30;
    for (int64_t i = 0; i < t->count; i++) {
        double x = ki_get(t, i), h = 1e-5 * fmax(1, fabs(x));
        ki_put(t, i, x + h);
        double above = fd_loss(f);
        ki_put(t, i, x - h);
        double below = fd_loss(f);
        ki_put(t, i, x);
        worst = fmax(worst, fabs((above - below) / (2 * h) - gradient[i]));
        largest = fmax(largest, fabs(gradient[i]));
    }
    return worst / largest;
}

/* The worst relative error of all gradients of the operation at these axes, as backward and as full deliver them; 1 if a
 * contract names a tensor that is not there, or a float input has no gradient and `all` is set. */
static inline double fd_worst(const struct ki_operation *op, const struct ki_axis_value *axes, size_t n)
{
    struct fd f;
    double worst = 0;
    int gradients = 0;
    fd_init(&f, op, KI_F64, axes, n);
    fd_keep(&f);
    for (int i = 0; i < f.tensors; i++) {
        if (op->tensor[i].role != KI_GRADIENT)
            continue;
        gradients++;
        double *backward = fd_values(&f, KI_BACKWARD, KI_EXACT, i), *full = fd_values(&f, KI_FULL, KI_EXACT, i);
        for (int64_t j = 0; j < f.tensor[i].count; j++)
            worst = fmax(worst, fabs(backward[j] - full[j]));
        for (int k = 0; k < 2 && op->tensor[i].of[k]; k++) {
            int input = ki_tensor_find(op, op->tensor[i].of[k]);
            worst = fmax(worst, input < 0 ? 1 : fd_compare(&f, backward, input));
        }
        free(backward);
        free(full);
    }
    fd_fini(&f);
    return gradients ? worst : 1;
}

/* How far the fp32 baseline is from fp64 over all tensors that `pass` writes, relative to the largest value of each, inputs and
 * kept outputs rounded to `dtype`. */
static inline double fd_baseline(const struct ki_operation *op, enum ki_dtype dtype, enum ki_pass pass, const struct ki_axis_value *axes, size_t n)
{
    struct fd f;
    double worst = 0;
    fd_init(&f, op, dtype, axes, n);
    fd_keep(&f);
    for (int i = 0; i < f.tensors; i++) {
        enum ki_role role = op->tensor[i].role;
        if (ki_tensor_use(op, pass, i) != KI_WRITE || role == KI_SAVED)
            continue;
        double *exact = fd_values(&f, pass, KI_EXACT, i), *baseline = fd_values(&f, pass, KI_BASELINE, i);
        double error = 0, largest = 1e-30;
        for (int64_t j = 0; j < f.tensor[i].count; j++) {
            error = fmax(error, fabs(exact[j] - baseline[j]));
            largest = fmax(largest, fabs(exact[j]));
        }
        worst = fmax(worst, error / largest);
        free(exact);
        free(baseline);
    }
    fd_fini(&f);
    return worst;
}

#endif
