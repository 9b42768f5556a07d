#include "kernel.h"

static const int64_t count_limit = (int64_t)1 << 40;

static const char *const pass_names[] = { "forward", "backward", "full", "no-grad-forward" };
static const char *const dtype_names[] = { "", "fp32", "bf16", "fp16", "fp64", "int64" };

const char *ki_pass_name(enum ki_pass pass)
{
    return pass_names[pass];
}

int ki_pass_find(const char *name)
{
    for (int i = 0; i < KI_PASSES; i++)
        if (strcmp(pass_names[i], name) == 0)
            return i;
    return -1;
}

const char *ki_dtype_name(enum ki_dtype d)
{
    return dtype_names[d];
}

enum ki_dtype ki_dtype_find(const char *name)
{
    for (int i = KI_F32; i <= KI_I64; i++)
        if (strcmp(dtype_names[i], name) == 0)
            return (enum ki_dtype)i;
    return KI_CASE_DTYPE;
}

int ki_tensor_total(const struct ki_operation *op)
{
    int n = 0;
    while (n < KI_MAX_TENSORS && op->tensor[n].name)
        n++;
    return n;
}

int ki_tensor_find(const struct ki_operation *op, const char *name)
{
    for (int i = 0; i < KI_MAX_TENSORS && op->tensor[i].name; i++)
        if (strcmp(op->tensor[i].name, name) == 0)
            return i;
    return -1;
}

int ki_tensor_shape(const struct ki_case *c, int tensor, int64_t shape[KI_MAX_RANK])
{
    const int *s = c->operation->tensor[tensor].shape;
    int rank = 0;
    for (; rank < KI_MAX_RANK && s[rank]; rank++)
        shape[rank] = s[rank] == KI_ONE ? 1 : c->axis[s[rank] - 1];
    return rank;
}

/* -1 when the product passes the limit. */
static int64_t product(const int64_t *shape, int rank)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++) {
        if (shape[i] > count_limit / n)
            return -1;
        n *= shape[i];
    }
    return n;
}

int64_t ki_tensor_count(const struct ki_case *c, int tensor)
{
    int64_t shape[KI_MAX_RANK];
    return product(shape, ki_tensor_shape(c, tensor, shape));
}

enum ki_dtype ki_tensor_dtype(const struct ki_case *c, int tensor)
{
    enum ki_dtype d = c->operation->tensor[tensor].dtype;
    return d == KI_CASE_DTYPE ? c->dtype : d;
}

enum ki_use ki_tensor_use(const struct ki_operation *op, enum ki_pass pass, int tensor)
{
    const struct ki_tensor_spec *t = &op->tensor[tensor];
    bool backward = pass == KI_BACKWARD, forward = pass == KI_FORWARD || pass == KI_NO_GRAD;
    switch (t->role) {
    case KI_INPUT:
    case KI_PARAM:
        return KI_READ;
    case KI_OUTPUT:
        return backward ? (t->kept ? KI_READ : KI_UNUSED) : KI_WRITE;
    case KI_SAVED:
        return backward ? KI_READ : pass == KI_NO_GRAD ? KI_UNUSED : KI_WRITE;
    case KI_UPSTREAM:
        return forward ? KI_UNUSED : KI_READ;
    case KI_GRADIENT:
        return forward ? KI_UNUSED : KI_WRITE;
    default:
        return KI_UNUSED;
    }
}

static int set_axes(struct ki_case *c, const struct ki_axis_value *axes, size_t n, const char **reason)
{
    if (n != (size_t)c->operation->axes) {
        *reason = "wrong number of axes";
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        int at = 0;
        while (at < c->operation->axes && strcmp(c->operation->axis[at], axes[i].name) != 0)
            at++;
        if (at == c->operation->axes || c->axis[at] != 0) {
            *reason = "unknown or repeated axis";
            return -1;
        }
        if (axes[i].value < 1 || axes[i].value > count_limit) {
            *reason = "axis out of range";
            return -1;
        }
        c->axis[at] = axes[i].value;
    }
    return 0;
}

static int set_scalars(struct ki_case *c, const struct ki_scalar_value *scalars, size_t n, const char **reason)
{
    const struct ki_operation *op = c->operation;
    for (int i = 0; i < KI_MAX_SCALARS; i++)
        c->scalar[i] = op->scalar[i].value;
    for (size_t i = 0; i < n; i++) {
        int at = 0;
        while (at < KI_MAX_SCALARS && op->scalar[at].name && strcmp(op->scalar[at].name, scalars[i].name) != 0)
            at++;
        if (at == KI_MAX_SCALARS || !op->scalar[at].name || !isfinite(scalars[i].value)) {
            *reason = "unknown scalar, or one that is not finite";
            return -1;
        }
        c->scalar[at] = scalars[i].value;
    }
    return 0;
}

int ki_case_set(struct ki_case *c, const struct ki_operation *op, enum ki_dtype dtype, const struct ki_axis_value *axes,
    size_t n_axes, const struct ki_scalar_value *scalars, size_t n_scalars, const char **reason)
{
    *c = (struct ki_case){ .operation = op, .dtype = dtype };
    if (dtype != KI_F64 && !(op->dtypes & KI_BIT(dtype))) {
        *reason = "the operation has no kernel for this dtype";
        return -1;
    }
    if (set_axes(c, axes, n_axes, reason) != 0 || set_scalars(c, scalars, n_scalars, reason) != 0)
        return -1;
    if (op->derive && op->derive(c, reason) != 0)
        return -1;
    for (int i = 0; i < ki_tensor_total(op); i++)
        if (ki_tensor_count(c, i) < 1) {
            *reason = "a tensor has too many elements";
            return -1;
        }
    return 0;
}
