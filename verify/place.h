/* Where the tensors of a case live, and what can be done to bytes there: on the host, or on a CUDA device.
 *
 * `place_host` is always there and is the CPU device: its implementation of an operation is the fp32 baseline of the operation's
 * own reference, so it checks references and contracts and times nothing. `place_cuda` is there when nvcc built it (its
 * address is NULL otherwise: ask place_find). Functions return 0 or an error number of the place (a cudaError_t); text() names
 * it. Work goes to `stream` (NULL on the host) and may be unfinished on return, except for read(), which waits. Nothing
 * here knows what a correct result is, or measures time. */
#ifndef KI_VERIFY_PLACE_H
#define KI_VERIFY_PLACE_H

#include "kernels/kernel.h"
#include "verify/draw.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What measure() adds up over elements of a result; lies in memory of the place, starts as zeros. Maxima are of magnitudes, kept
 * as the bits of a double (non-negative doubles order as integers), so that a device can take them atomically. */
struct error_sums {
    uint64_t elements;
    uint64_t nonfinite;        /* not finite where the reference is, or the other way round */
    uint64_t max_error;        /* |got - exact| */
    uint64_t max_beyond;       /* the same, over elements off by more than the floor (so many ulps at the exact value) */
    uint64_t worst;            /* fp32 bits of the largest error << 32 | low 32 bits of its index */
    uint64_t baseline_max;     /* |baseline rounded to the type - exact| */
    uint64_t exact_max;
    double squares, baseline_squares, exact_squares, ulp_squares;
};

enum { POISON_PATTERN = 0x5a5a5a5a };
static const uint32_t poison_nan = 0xffffffffu; /* NaN in every float type */

/* Where another process finds an allocation of a place: CUDA's own bytes; for the host a name under /dev/shm. */
struct place_share {
    unsigned char handle[64];
    int64_t offset; /* of the allocation in what the handle opens */
};

struct place {
    const char *name;
    int (*alloc)(void **out, size_t size_bytes); /* 256-byte aligned; *out NULL when memory is short */
    void (*release)(void *);
    int (*share)(void *allocation, struct place_share *out); /* NULL: not to be shared */
    const char *(*text)(int error);
    bool (*is_memory)(int error); /* the error says that memory ran out */

    /* Set whole 4-byte words, and the bytes of a last partial one, to `word`. Where `at` is aligned to 2 bytes only, both halves
     * of `word` must be equal. */
    int (*fill)(void *at, size_t size_bytes, uint32_t word, void *stream);
    /* Draw elements [first, first + n) of a tensor; whole rows where the fill is a softmax. */
    int (*draw)(const struct ki_tensor *, const struct draw *, int64_t first, int64_t n, void *stream);
    /* Add to *slot (in the place) an order-free hash of the bytes, position by position. */
    int (*hash)(const void *at, size_t size_bytes, uint64_t *slot, void *stream);
    /* Add to *slot how many elements of `width` bytes (2, 4 or 8) are all `word`, or with `differ`, how many are not. */
    int (*count)(const void *at, size_t size_bytes, int width, uint32_t word, bool differ, uint64_t *slot, void *stream);
    /* Compare elements [first, first + n) with exact[] and baseline[], n doubles each. */
    int (*measure)(const struct ki_tensor *, int64_t first, int64_t n, const double *exact, const double *baseline,
        double floor_ulps, struct error_sums *sums, void *stream);
    int (*read)(void *to_host, const void *from, size_t size_bytes, void *stream);
    /* Copy between any two of: memory of the place, memory from alloc_host(). Does not wait. */
    int (*copy)(void *to, const void *from, size_t size_bytes, void *stream);
    /* Values of one tensor to another of as many elements and any float type. */
    int (*convert)(const struct ki_tensor *to, const struct ki_tensor *from, void *stream);
    /* Host memory that copy() may write without waiting. */
    int (*alloc_host)(void **out, size_t size_bytes);
    void (*release_host)(void *);
    int (*sync)(void *stream);

    bool (*has)(const struct ki_operation *);
    int (*setup)(const struct ki_case *, const char **reason);
    int (*launch)(const struct ki_call *);
    const struct ki_reference *(*reference)(const struct ki_operation *);
};

extern const struct place place_host;
extern const struct place place_cuda __attribute__((weak));

/* The same place with memory that share() can give to another process. */
const struct place *place_shared(const struct place *);

/* By name: "cpu" or "cuda"; NULL if unknown or not built in. */
const struct place *place_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif
