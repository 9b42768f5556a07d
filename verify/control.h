/* Negative controls: the twelve ways of verification.md section 5 to look fast or right without being either, as real code. Each runs
 * through the same measurement as a kernel, in every batch, and has to be refused there; a batch in which one is accepted is void.
 *
 *  1 side_stream         works on a stream that nobody joins
 *  2 pointer_cache       gives the answer of the first call to every call with the same addresses
 *    fingerprint_cache   the same for inputs whose first 64 elements it has seen
 *  3 skips               right for the first calls, then does nothing
 *  4 deferred            does its work after the end event
 *  5 wrong_timer         a clock that runs 1% fast; held against known lengths, not against the reference
 *  6 forged_nonce, forged_samples, forged_time, forged_light   answers that a worker makes up
 *  7 no_op               leaves old memory
 *  8 zeros, constant     writes no more than that
 *  9 wrong_accumulation  sums in bf16
 * 10 carve_out           sets a part of L2 aside for itself
 * 11 mutation, out_of_bounds, partial_tile   changes an input, writes beyond the end, leaves the end unwritten
 * 12 empty_graph         does nothing while it is captured
 *
 * Of a child: 1 child_side_stream, 2 child_cached, 5 child_timer (its clock says half), 6 child_forged (answers without having worked),
 * 7 child_stale; and the two ends that a child can come to in the middle of a call:
 * 13 child_killed        is killed
 * 14 child_hung          says nothing any more
 *
 * Those that need a GPU's streams, events or graphs have no meaning on the CPU device and do not run there. */
#ifndef KI_VERIFY_CONTROL_H
#define KI_VERIFY_CONTROL_H

#include "verify/compare.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CONTROL_TIMER = 5, CONTROL_FORGED = 6, CONTROL_KILLED = 13, CONTROL_HUNG = 14 };

struct control {
    int number;          /* of the list */
    const char *name;
    bool needs_cuda;
    bool child;          /* a dishonest child (verify/hostile.py); runs where a job of the batch has one */
};
/* Control i, NULL past the last. */
const struct control *control_at(size_t i);
const struct control *control_find(const char *name);

/* The case that controls run on a device: rms_norm forward, fp32. */
int control_case(const char *device, struct ki_case *);

/* A dishonest implementation. `state` is freed by control_end(). ERR_UNAVAILABLE when it cannot run in this place. */
struct control_state;
int control_begin(const char *name, const struct place *, struct control_state **state, struct implementation *out, struct err *);
void control_end(struct control_state *);

/* The CUDA ones, from verify/control_cuda.cu; NULL when the name is none of them. */
struct control_cuda {
    const char *name;
    int (*begin)(void **state);
    int (*launch)(void *state, const struct ki_call *);
    void (*end)(void *state);
};
#ifdef __cplusplus
const struct control_cuda *control_cuda_find(const char *name);
#else
const struct control_cuda *control_cuda_find(const char *name) __attribute__((weak));
#endif

#ifdef __cplusplus
}
#endif

#endif
