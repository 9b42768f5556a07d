/* The part of a reference whose elements come straight from the inputs: no scratch, no tasks. To be included by a KI_REF_FILE (ref.h), once
 * for each reading of it, so it has no include guard. */
#define REF_SCRATCH(c) 0

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    (void)c;
    (void)step;
    return 0;
}

static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t i)
{
    (void)c;
    (void)step;
    (void)i;
}
