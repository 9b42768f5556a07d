/* Add, then RMSNorm of the sum; both are outputs.
 *   s = x + residual, rounded to the case's type      r = (mean_h s^2 + eps)^(-1/2)      y = w s r
 *   m = dy w      dx = dresidual = ds + r m - s r^3 / hidden * sum_h(m s)      dw = sum over rows dy s r
 * Backward reads s as forward left it (residual_out); full forms it anew.
 * Scratch: r[rows], then c[rows] = r^3 / hidden * sum_h(m s), then dw[hidden].
 */
#define REF_SCRATCH(c) (2 * (c)->tensor[X].count / (c)->tensor[WEIGHT].count + (c)->tensor[WEIGHT].count)

static inline KI_HD real REF(sum_at)(const struct ki_call *c, int64_t i)
{
    return (real)ki_round(c->tensor[RESIDUAL_OUT].dtype, (double)(REF(get)(c, X, i) + REF(get)(c, RESIDUAL, i)));
}

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    int64_t hidden = c->tensor[WEIGHT].count;
    bool gradients = c->pass == KI_BACKWARD || c->pass == KI_FULL;
    return step == 0 ? c->tensor[X].count / hidden : step == 1 && gradients ? hidden : 0;
}

static inline KI_HD void REF(row)(const struct ki_call *c, int64_t row)
{
    int64_t hidden = c->tensor[WEIGHT].count, rows = c->tensor[X].count / hidden;
    struct REF(sum) squares = { 0, 0, 0 }, products = { 0, 0, 0 };
    for (int64_t h = 0; h < hidden; h++) {
        real s = REF(sum_at)(c, row * hidden + h);
        REF(add)(&squares, s * s);
        if (c->tensor[DY].data)
            REF(add)(&products, REF(get)(c, DY, row * hidden + h) * REF(get)(c, WEIGHT, h) * s);
    }
    real r = (real)1 / rroot(REF(total)(&squares) / (real)hidden + (real)c->work.scalar[0]);
    c->scratch[row] = (double)r;
    c->scratch[rows + row] = (double)(r * r * r / (real)hidden * REF(total)(&products));
}

static inline KI_HD void REF(column)(const struct ki_call *c, int64_t h)
{
    int64_t hidden = c->tensor[WEIGHT].count, rows = c->tensor[X].count / hidden;
    struct REF(sum) dw = { 0, 0, 0 };
    for (int64_t row = 0; row < rows; row++)
        REF(add)(&dw, REF(get)(c, DY, row * hidden + h) * REF(sum_at)(c, row * hidden + h) * (real)c->scratch[row]);
    c->scratch[2 * rows + h] = (double)REF(total)(&dw);
}

static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t i)
{
    if (step == 0)
        REF(row)(c, i);
    else
        REF(column)(c, i);
}

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t hidden = c->tensor[WEIGHT].count, rows = c->tensor[X].count / hidden, row = i / hidden;
    if (tensor == DWEIGHT)
        return (real)c->scratch[2 * rows + i];
    real s = REF(sum_at)(c, i), r = (real)c->scratch[row];
    if (tensor == RESIDUAL_OUT)
        return s;
    real w = REF(get)(c, WEIGHT, i % hidden);
    if (tensor == Y)
        return s * r * w;
    return REF(get)(c, DRESIDUAL_OUT, i) + r * w * REF(get)(c, DY, i) - s * (real)c->scratch[rows + row];
}
