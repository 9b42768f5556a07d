/* Read by ref.h once for each `real`: reading elements, and long sums as a careful plain implementation makes them, in blocks
 * of 128 whose totals are added up, so that the fp32 baseline does not owe its error to one long chain. */

struct REF(sum) {
    real total, block;
    int n;
};

static inline KI_HD void REF(add)(struct REF(sum) *s, real v)
{
    s->block += v;
    if (++s->n == 128) {
        s->total += s->block;
        s->block = 0;
        s->n = 0;
    }
}

static inline KI_HD real REF(total)(const struct REF(sum) *s)
{
    return s->total + s->block;
}

/* Element i of tensor `at`. */
static inline KI_HD real REF(get)(const struct ki_call *c, int at, int64_t i)
{
    return (real)ki_get(&c->tensor[at], i);
}
