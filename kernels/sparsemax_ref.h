/* Sparsemax of rows of `features` elements (axis[1]): the projection on the simplex.
 *   y = max(x - tau, 0), tau such that sum y = 1
 *   dx_i = dy_i - mean of dy over the support {y > 0} for i in it, else 0
 * tau by Newton's method on the piecewise linear sum: from tau = max - 1, tau = (sum of x over {x > tau} - 1) / their number,
 * until that number stays. It rises at each step and ends after as many steps as there are elements at most.
 * Backward takes the support from y as forward left it; full forms it anew.
 * Scratch: tau, then the mean of dy over the support, each [tokens].
 */
#define REF_SCRATCH(c) (2 * (c)->work.axis[TOKENS])

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    return step == 0 ? c->work.axis[TOKENS] : 0;
}

static inline KI_HD real REF(threshold)(const struct ki_call *c, int64_t from)
{
    int64_t features = c->work.axis[FEATURES], before = 0, count = -1;
    real most = REF(get)(c, X, from);
    for (int64_t i = from; i < from + features; i++)
        most = rmax(most, REF(get)(c, X, i));
    real tau = most - (real)1;
    while (count != before) {
        struct REF(sum) sum = { 0, 0, 0 };
        before = count;
        count = 0;
        for (int64_t i = from; i < from + features; i++)
            if (REF(get)(c, X, i) > tau) {
                REF(add)(&sum, REF(get)(c, X, i) - most);
                count++;
            }
        if (count == 0)
            break;
        tau = most + (REF(total)(&sum) - (real)1) / (real)count;
    }
    return tau;
}

static inline KI_HD bool REF(supported)(const struct ki_call *c, int64_t i)
{
    if (c->pass == KI_BACKWARD)
        return REF(get)(c, Y, i) > (real)0;
    return REF(get)(c, X, i) > (real)c->scratch[i / c->work.axis[FEATURES]];
}

static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t row)
{
    (void)step;
    int64_t features = c->work.axis[FEATURES], count = 0, from = row * features;
    struct REF(sum) sum = { 0, 0, 0 };
    c->scratch[row] = c->pass == KI_BACKWARD ? 0 : (double)REF(threshold)(c, from);
    for (int64_t i = from; c->tensor[DY].data && i < from + features; i++)
        if (REF(supported)(c, i)) {
            REF(add)(&sum, REF(get)(c, DY, i));
            count++;
        }
    c->scratch[c->work.axis[TOKENS] + row] = count > 0 ? (double)(REF(total)(&sum) / (real)count) : 0;
}

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t tokens = c->work.axis[TOKENS], row = i / c->work.axis[FEATURES];
    if (tensor == Y)
        return rmax(REF(get)(c, X, i) - (real)c->scratch[row], (real)0);
    return REF(supported)(c, i) ? REF(get)(c, DY, i) - (real)c->scratch[tokens + row] : (real)0;
}
