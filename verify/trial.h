/* One implementation of one case under the rules of an honest rerun (verification.md sections 3 and 5), without a clock: what goes on
 * before, after and between the calls that somebody else times. The same rules serve the project's kernels and the dishonest
 * implementations of verify/control.h.
 *
 * Each call gets inputs it has not seen: drawn anew, or drawn anew in a part of 1/64 that lies anywhere; input sets rotate where memory
 * allows. Outputs are poisoned before every call, with NaN and a fixed pattern in turn, and right behind the end of every call
 * it is counted what is still poison. Calls chosen at random after they were made, and the last one, are compared whole. */
#ifndef KI_VERIFY_TRIAL_H
#define KI_VERIFY_TRIAL_H

#include "verify/compare.h"

enum { TRIAL_SETS = 2, TRIAL_CHOSEN_MAX = 16 };

struct trial {
    const struct place *place;
    struct ki_case work;
    enum ki_pass pass;
    struct implementation by;
    struct tolerance tolerance[KI_MAX_TENSORS];
    uint64_t seed;
    struct tensors set[TRIAL_SETS];
    bool drawn[TRIAL_SETS];       /* the set has been drawn whole once */
    int sets, current;
    bool one_set;                 /* stay with set 0: a captured graph knows its addresses */
    double host_delay_us;         /* the host waits so long before each call */
    bool hash_outputs;            /* after() also hashes what was delivered; a call that is compared must still have left that then */
    bool renewed;                 /* the current call got news while it was held */
    uint32_t poison;              /* what the outputs held before the current call */
    uint64_t *seen;               /* from alloc_host: [0] unwritten, [1] hash at the end, [2] for look(), [3] hash of what a renewed call reads */
    uint64_t chosen[TRIAL_CHOSEN_MAX]; /* samples that will be compared whole */
    int n_chosen;
    int64_t compared;             /* how many calls were */
    struct compare_result result; /* of the last comparison; why a call was refused */
};

/* Allocate and draw. `memory_bytes` caps what the sets take together; the second set is given up first. ERR_TEMP when there is
 * not enough. */
int trial_init(struct trial *, const struct place *, const struct ki_case *, enum ki_pass, struct implementation,
    const struct tolerance by_tensor[], uint64_t seed, size_t memory_bytes, struct err *);
void trial_fini(struct trial *);

/* The whole check of one call, on its own: compare_pass(). */
int trial_check(struct trial *, struct err *);

/* Choose, by the system's randomness, `count` of the samples [first, first + n) to be compared whole. */
void trial_choose(struct trial *, int count, uint64_t first, int64_t n);

/* The callbacks of a bench_call, with the trial as state. accept() gives 1 when a call is refused: result says why. */
int trial_prepare(void *trial, void *stream, uint64_t sample);
int trial_enqueue(void *trial, void *stream);
/* Between the two, for a call that is queued and held in another process: news that it cannot have computed with, by the system's randomness.
 * A call that is compared must have left all that it reads as it was then. Waits. */
int trial_renew(void *trial, void *stream, uint64_t sample);
int trial_after(void *trial, void *stream, uint64_t sample);
int trial_accept(void *trial, uint64_t sample);
/* For bench_held: while held, all outputs must still be poison; when idle, they must be what they were at the end event. */
int trial_look(void *trial, void *stream, bool idle);

/* What the last timed call left, compared whole if none was yet. 0, 1 (refused) or -1. */
int trial_last(struct trial *, struct err *);

/* After the last timed call: guard bands, trial_last(), and one more whole check of a call, which a call that changed its ways meanwhile does
 * not pass. 0, 1 (refused) or -1. */
int trial_finish(struct trial *, struct err *);

/* The same calls without a clock, `compared` of them compared whole, for a place that has no clock. 0, 1 (refused) or -1. */
int trial_run(struct trial *, int calls, int compared, struct err *);

#endif
