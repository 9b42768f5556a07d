/* Softmax of rows of `hidden` elements (axis[1]).
 *   m = max_h x      y = exp(x - m) / sum_h exp(x - m)      dx = y (dy - sum_h(y dy))
 * Backward reads y as forward left it; full forms it anew.
 * Scratch: m, sum_h exp(x - m), sum_h(y dy), each [rows].
 */
#define REF_SCRATCH(c) (3 * (c)->work.axis[ROWS])

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    return step == 0 ? c->work.axis[ROWS] : 0;
}

/* y of element i, from m and the sum of its row or as it was kept. */
static inline KI_HD real REF(probability)(const struct ki_call *c, int64_t i)
{
    int64_t rows = c->work.axis[ROWS], row = i / c->work.axis[HIDDEN];
    if (c->pass == KI_BACKWARD)
        return REF(get)(c, Y, i);
    return rexp(REF(get)(c, X, i) - (real)c->scratch[row]) / (real)c->scratch[rows + row];
}

static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t row)
{
    (void)step;
    int64_t rows = c->work.axis[ROWS], hidden = c->work.axis[HIDDEN], from = row * hidden;
    struct REF(sum) sum = { 0, 0, 0 }, products = { 0, 0, 0 };
    real most = REF(get)(c, X, from);
    for (int64_t h = 1; h < hidden; h++)
        most = rmax(most, REF(get)(c, X, from + h));
    for (int64_t h = 0; h < hidden; h++)
        REF(add)(&sum, rexp(REF(get)(c, X, from + h) - most));
    c->scratch[row] = (double)most;
    c->scratch[rows + row] = (double)REF(total)(&sum);
    for (int64_t h = 0; c->tensor[DY].data && h < hidden; h++)
        REF(add)(&products, REF(probability)(c, from + h) * REF(get)(c, DY, from + h));
    c->scratch[2 * rows + row] = (double)REF(total)(&products);
}

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t rows = c->work.axis[ROWS], row = i / c->work.axis[HIDDEN];
    real y = REF(probability)(c, i);
    return tensor == Y ? y : y * (REF(get)(c, DY, i) - (real)c->scratch[2 * rows + row]);
}
