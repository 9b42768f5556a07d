/* Squared ReLU, element by element: m = max(x, 0)      y = m^2      dx = 2 m dy
 * No scratch.
 */
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

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    real m = rmax(REF(get)(c, X, i), (real)0);
    return tensor == Y ? m * m : (real)2 * m * REF(get)(c, DY, i);
}
