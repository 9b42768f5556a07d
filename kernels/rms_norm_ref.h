/* RMSNorm on rows of `hidden` elements (as many as weight has), for rms_norm and megatron_rms_norm.
 *   r = (mean_h x^2 + eps)^(-1/2)      y = w x r
 *   m = dy w      dx = r m - x r^3 / hidden * sum_h(m x)      dw = sum over rows dy x r
 * Enumerators X, WEIGHT, Y, DY, DX, DWEIGHT name the tensors; scalar[0] is eps.
 * Scratch: r[rows], then c[rows] = r^3 / hidden * sum_h(m x), then dw[hidden].
 */
#define REF_SCRATCH(c) (2 * (c)->tensor[X].count / (c)->tensor[WEIGHT].count + (c)->tensor[WEIGHT].count)

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
        real x = REF(get)(c, X, row * hidden + h);
        REF(add)(&squares, x * x);
        if (c->tensor[DY].data)
            REF(add)(&products, REF(get)(c, DY, row * hidden + h) * REF(get)(c, WEIGHT, h) * x);
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
        REF(add)(&dw, REF(get)(c, DY, row * hidden + h) * REF(get)(c, X, row * hidden + h) * (real)c->scratch[row]);
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
    real x = REF(get)(c, X, i), w = REF(get)(c, WEIGHT, i % hidden), r = (real)c->scratch[row];
    return tensor == Y ? x * r * w : r * w * REF(get)(c, DY, i) - x * (real)c->scratch[rows + row];
}
