/* The tensors of one case in a place: guard bands on both sides of each, inputs drawn from a seed, outputs poisoned, one call
 * for each pass. Owns the memory; knows nothing of correctness or time. */
#ifndef KI_VERIFY_TENSORS_H
#define KI_VERIFY_TENSORS_H

#include "verify/place.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "core/err.h"

enum { TENSORS_GUARD_BYTES = 4096, TENSORS_SLOTS = 4 };

struct tensors {
    const struct place *place;
    struct ki_case work;
    int total;
    struct ki_tensor tensor[KI_MAX_TENSORS]; /* data NULL where no pass asked for needs it */
    void *workspace;
    size_t workspace_bytes;
    uint64_t *slot;                          /* TENSORS_SLOTS counters in the place, one for each stream that may be busy */
    void *memory[KI_MAX_TENSORS + 2];        /* allocations, for tensors_fini */
    int allocations;
    size_t size_bytes;                       /* of all of it */
};

/* Bytes that tensors_init will take for a set of passes (KI_BIT), guards included. */
size_t tensors_size_bytes(const struct ki_case *, unsigned passes);

/* Allocate what the passes need (a backward pass needs forward's tensors too) and fill guard bands. ERR_TEMP when memory is
 * short, ERR_IO for another failure of the place. */
int tensors_init(struct tensors *, const struct place *, const struct ki_case *, unsigned passes, struct err *);
void tensors_fini(struct tensors *);

/* Draw all inputs, parameters and upstream gradients that the passes read. The same seed gives the same values. */
int tensors_draw(const struct tensors *, uint64_t seed, void *stream, struct err *);
/* Draw again a part of each input and upstream gradient: about 1/64 of its elements, at a place that `seed` chooses. */
int tensors_redraw(const struct tensors *, uint64_t seed, void *stream, struct err *);

/* The same of what the call of a pass is the first to see: for a backward pass the upstream gradients, as forward has used the rest. */
int tensors_renew(const struct tensors *, enum ki_pass, uint64_t seed, void *stream, struct err *);
/* How another process finds a tensor: its allocation, and the offset of its data in it. */
int tensors_share(const struct tensors *, int tensor, struct place_share *, struct err *);

/* The call of a pass; data of tensors it does not use is NULL. */
void tensors_call(const struct tensors *, enum ki_pass, void *stream, struct ki_call *);

/* Fill what a pass writes, and the workspace, with `word`. */
int tensors_poison(const struct tensors *, enum ki_pass, uint32_t word, void *stream, struct err *);
/* How many elements of OUTPUT and GRADIENT tensors that the pass writes still hold `word`. Waits. */
int tensors_unwritten(const struct tensors *, enum ki_pass, uint32_t word, void *stream, uint64_t *elements, struct err *);
/* The same, or with `differ` how many hold something else, without waiting: by counter `slot` into *to, which is from the
 * place's alloc_host(). Returns the place's error number. */
int tensors_count_async(const struct tensors *, enum ki_pass, uint32_t word, bool differ, int slot, void *stream, uint64_t *to);
/* The hash of all that a pass reads (or, with `writes`, of what it delivers), without waiting. */
int tensors_hash_async(const struct tensors *, enum ki_pass, bool writes, int slot, void *stream, uint64_t *to);
/* How many elements the pass delivers. */
int64_t tensors_delivered(const struct tensors *, enum ki_pass);
/* Hash of all that a pass reads (or, with `writes`, of what it delivers). Waits. */
int tensors_hash(const struct tensors *, enum ki_pass, bool writes, void *stream, uint64_t *hash, struct err *);
/* How many guard words were changed. Waits. */
int tensors_guards(const struct tensors *, void *stream, uint64_t *changed, struct err *);

/* 0, or -1 with the place's error in words: `what` says what was being done. */
int tensors_error(const struct place *, int rc, const char *what, struct err *);

#ifdef __cplusplus
}
#endif

#endif
