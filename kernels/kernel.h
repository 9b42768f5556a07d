/* What an operation is, to those who run, check or time one.
 *
 * An operation is one `struct ki_operation`: its contract (tensors, axes, passes, types, floors), its reference, and, where
 * nvcc was there to build it, its device code. The contract and the host reference are plain C and need no GPU. Nothing here
 * measures: a launch puts work on a stream and returns. Contracts follow the operations that the index publishes (names,
 * argument names and logical shapes); floors are those of the operations' minimal traffic: every needed input read once,
 * every delivered output written once, nothing else.
 *
 * kernels/README.md says how to add an operation.
 */
#ifndef KI_KERNEL_H
#define KI_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "number.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KI_MAX_AXES = 8, KI_MAX_SCALARS = 4, KI_MAX_TENSORS = 28, KI_MAX_RANK = 5 };

/* FULL is forward and backward in one call. NO_GRAD is forward that keeps nothing for a backward pass. */
enum ki_pass { KI_FORWARD, KI_BACKWARD, KI_FULL, KI_NO_GRAD, KI_PASSES };

#define KI_BIT(n) (1u << (n))
#define KI_ALL_PASSES (KI_BIT(KI_PASSES) - 1u)
#define KI_FLOAT_DTYPES (KI_BIT(KI_F32) | KI_BIT(KI_BF16) | KI_BIT(KI_F16))

/* The part a tensor plays; ki_tensor_use() derives from it what each pass reads and writes. SAVED is written by forward for
 * backward (row statistics); full may use it as scratch; in the no-grad pass its data is NULL and nothing is kept. */
enum ki_role { KI_NO_ROLE, KI_INPUT, KI_PARAM, KI_OUTPUT, KI_SAVED, KI_UPSTREAM, KI_GRADIENT };

/* How input values are drawn. NORMAL: mean + deviation * N(0,1). UNIFORM: mean + deviation * U[-1,1). SOFTMAX and LOG_SOFTMAX:
 * of N(0,1) over the last axis. INDEX: uniform integers in [0, axis[range]). */
enum ki_fill { KI_FILL_NORMAL, KI_FILL_UNIFORM, KI_FILL_SOFTMAX, KI_FILL_LOG_SOFTMAX, KI_FILL_INDEX };

/* A shape entry is 1 + the index of an axis, KI_ONE for a literal 1, or 0 after the last. */
#define KI_AXIS(n) ((n) + 1)
enum { KI_ONE = -1 };

struct ki_tensor_spec {
    const char *name;
    enum ki_role role;
    enum ki_dtype dtype;           /* KI_CASE_DTYPE: the float type of the case */
    int shape[KI_MAX_RANK];        /* logical; the physical order is row-major unless the operation says otherwise */
    const char *of[2];             /* GRADIENT: of these inputs (two when equal); UPSTREAM: gradient of this output */
    bool kept;                     /* OUTPUT that backward reads */
    enum ki_fill fill;
    double mean, deviation;        /* deviation 0 means 1 */
    int range;                     /* INDEX: the axis (not KI_AXIS) that bounds the values */
};

/* One case of an operation: its axes and scalars by position in the operation's lists, and its float type. */
struct ki_case {
    const struct ki_operation *operation; /* host only; device code does not follow it */
    enum ki_dtype dtype;
    int64_t axis[KI_MAX_AXES];
    double scalar[KI_MAX_SCALARS];
};

/* One call: tensors by position in the operation's list. Data of tensors that the pass does not use is NULL. */
struct ki_call {
    struct ki_case work;
    enum ki_pass pass;
    struct ki_tensor tensor[KI_MAX_TENSORS];
    void *workspace;   /* launch: scratch of ki_operation.workspace_bytes, contents unspecified before and after */
    double *scratch;   /* reference: scratch of ki_reference.scratch_count doubles */
    void *stream;      /* cudaStream_t */
};

enum ki_math { KI_MATH_NONE, KI_MATH_FP32, KI_MATH_TF32, KI_MATH_BF16 };

/* The least a pass can cost. `bytes` no correct implementation can undercut where `hard`; `dense_bytes` is what a
 * straightforward one moves (the figure for achieved GB/s). Even a hard floor binds only where bytes are several times the
 * L2 size, because writes may stay there: the caller, who knows the GPU, decides. */
struct ki_floor {
    double bytes, dense_bytes, flops;
    enum ki_math math;
    bool hard;
};

/* KI_EXACT computes in fp64. KI_BASELINE is the same text in fp32: the plain implementation whose error sets the tolerance. */
enum ki_precision { KI_EXACT, KI_BASELINE };

/* A reference reads a call's inputs (the real, already rounded ones) and writes only its scratch; the values of outputs are
 * then asked for by range, so that nothing of the tensor's size has to be held in fp64. */
struct ki_reference {
    int64_t (*scratch_count)(const struct ki_call *);
    /* Fill the scratch. 0, or a cudaError_t on the device. */
    int (*prepare)(const struct ki_call *, enum ki_precision);
    /* out[j] = element first + j of an OUTPUT or GRADIENT tensor that the pass writes, unrounded. Needs prepare(). */
    int (*values)(const struct ki_call *, enum ki_precision, int tensor, int64_t first, int64_t n, double *out);
};

/* Device code. All work goes to call->stream; after setup() nothing allocates, synchronizes or writes other host state, so a
 * call can be captured in a graph. Pointers are 256-byte aligned. */
struct ki_device {
    /* Once a process and case, before the first launch: libraries, attributes. NULL if there is nothing to do. 0 or -1. */
    int (*setup)(const struct ki_case *, const char **reason);
    /* Enqueue one pass. 0 or a cudaError_t. */
    int (*launch)(const struct ki_call *);
    /* The reference on the device: all pointers are device memory, work goes to call->stream. */
    struct ki_reference reference;
};

struct ki_operation {
    const char *name;                  /* kernel name of the upstream rows, and of the .cu file */
    unsigned passes, dtypes;           /* KI_BIT sets */
    int axes;                          /* how many of axis[] a case gives; derived ones follow */
    const char *axis[KI_MAX_AXES];
    struct { const char *name; double value; } scalar[KI_MAX_SCALARS]; /* value where a case does not say */
    struct ki_tensor_spec tensor[KI_MAX_TENSORS];
    const char *tolerance;             /* class in config/tolerances.json */
    /* Compute derived axes; -1 with a reason when the case is none that this code can run. NULL: nothing to do. */
    int (*derive)(struct ki_case *, const char **reason);
    size_t (*workspace_bytes)(const struct ki_case *, enum ki_pass); /* NULL: none */
    struct ki_floor (*floor)(const struct ki_case *, enum ki_pass);
    const struct ki_reference *reference;
    const struct ki_device *device;    /* NULL: linked without it */
};

/* The operation of that name, or NULL. */
const struct ki_operation *ki_operation_find(const char *name);
/* Operation i, NULL past the last. */
const struct ki_operation *ki_operation_at(size_t i);

/* A named integer of a case, as its workload gives it. */
struct ki_axis_value { const char *name; int64_t value; };
struct ki_scalar_value { const char *name; double value; };

/* Fill a case. Every given axis must be there once, positive and at most 2^40, and no other; element counts must stay below
 * 2^40. Scalars not given take their defaults, unknown ones are refused. -1 with a reason (static text) if it cannot be. */
int ki_case_set(struct ki_case *, const struct ki_operation *, enum ki_dtype, const struct ki_axis_value *, size_t n_axes,
    const struct ki_scalar_value *, size_t n_scalars, const char **reason);

int ki_tensor_total(const struct ki_operation *);                         /* how many tensors */
int ki_tensor_find(const struct ki_operation *, const char *name);        /* index or -1 */
int ki_tensor_shape(const struct ki_case *, int tensor, int64_t shape[KI_MAX_RANK]); /* rank */
int64_t ki_tensor_count(const struct ki_case *, int tensor);              /* elements */
enum ki_dtype ki_tensor_dtype(const struct ki_case *, int tensor);

/* What a pass does with a tensor. */
enum ki_use { KI_UNUSED, KI_READ, KI_WRITE };
enum ki_use ki_tensor_use(const struct ki_operation *, enum ki_pass, int tensor);

const char *ki_pass_name(enum ki_pass);   /* "forward", "backward", "full", "no-grad-forward" */
int ki_pass_find(const char *name);       /* or -1 */
const char *ki_dtype_name(enum ki_dtype); /* "fp32", "bf16", "fp16", "fp64", "int64" */
enum ki_dtype ki_dtype_find(const char *name); /* KI_CASE_DTYPE if unknown */

#ifdef __cplusplus
}
#endif

#endif
