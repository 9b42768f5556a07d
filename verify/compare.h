/* A result against the fp64 reference: verification.md section 3.
 *
 * One check draws inputs, poisons outputs, makes one call, and then looks at everything the call may have touched: guard bands,
 * inputs, and every element of every tensor it delivers. A tensor passes when its maximum and its RMS error against fp64 are
 * at most `factor` times those of the plain fp32 baseline, rounded to the same type; errors up to `floor_ulps` ulps of the
 * output type are always allowed. Of few elements the baseline's error is a matter of luck (a scalar's may be 0): there a few
 * ulps at the tensor's largest value are. SAVED tensors are an implementation's own and are not compared; a backward pass would fail. */
#ifndef KI_VERIFY_COMPARE_H
#define KI_VERIFY_COMPARE_H

#include "verify/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "core/err.h"

/* How far one tensor may be off: verify/tolerance.h reads it from config/tolerances.json. */
struct tolerance {
    double factor, floor_ulps;
    double few_elements, few_floor_ulps; /* with fewer elements: always allowed, in ulps at the largest value of the tensor */
};

enum compare_status {
    COMPARE_PASSED,
    COMPARE_NUMERICAL, /* a tensor beyond its budget, or not finite where the reference is */
    COMPARE_UNWRITTEN, /* poison left in what should have been written */
    COMPARE_MUTATION,  /* an input or a guard band changed */
    COMPARE_RUNTIME,   /* a launch or a kernel failed */
    COMPARE_MEMORY,    /* out of memory */
};
/* "passed", "incorrect_numerical", … as the schema of runs has it; UNWRITTEN is incorrect_numerical, MUTATION policy_violation. */
const char *compare_status_text(enum compare_status);

struct compare_tensor {
    const char *name;
    int64_t elements, nonfinite;
    double max_error, max_allowed, rms_error, rms_allowed; /* max_error: over elements beyond the floor; 0 if none is */
    double largest_error, baseline_max, baseline_rms, exact_max, exact_rms;
    int64_t worst; /* index of the largest error, modulo 2^32 */
    bool passed;
    bool vacuous;  /* zeros would pass too */
};

struct compare_result {
    enum compare_status status;
    char text[256]; /* what failed, in words; "" when passed */
    int tensors;
    struct compare_tensor tensor[KI_MAX_TENSORS];
    uint64_t guards_changed, unwritten;
    bool inputs_changed;
    bool vacuous;   /* zeros would pass in every tensor */
};

/* Who makes the calls that are checked: the place's own code, or something else under its name. `before` and `after` (NULL: nothing to do)
 * stand round the call of the pass and belong to no timed window: what works in place, or on another type, gets its values before, once
 * the outputs are poisoned, and hands its results over after. */
struct implementation {
    int (*launch)(void *state, const struct ki_call *);
    void *state;
    int (*before)(void *state, const struct ki_call *);
    int (*after)(void *state, const struct ki_call *);
};
struct implementation compare_own(const struct place *);

/* One check of a pass, all of it. `t` must have been made for the pass. For BACKWARD, a forward call comes first. The result says
 * what is wrong; -1 only when the check itself could not be made (a failing place: the process had better end). */
int compare_pass(const struct tensors *t, enum ki_pass, struct implementation, const struct tolerance by_tensor[], uint64_t seed, void *stream,
    struct compare_result *, struct err *);

/* The comparison alone: what the tensors hold now against the reference for what the inputs hold now. */
int compare_values(const struct tensors *t, enum ki_pass, const struct tolerance by_tensor[], void *stream, struct compare_result *, struct err *);

#ifdef __cplusplus
}
#endif

#endif
