/* LayerNorm on rows of `hidden` elements; the variance is that of the population, eps inside the root.
 *   mu = mean_h x      rs = (mean_h (x - mu)^2 + eps)^(-1/2)      n = (x - mu) rs      y = n w + b
 *   q = dy w      dx = rs (q - n mean_h(q n) - mean_h q)      dw = sum over rows dy n      db = sum over rows dy
 * Scratch: mu, rs, mean(q n), mean q, each [rows]; then dw[hidden], db[hidden].
 */
#define REF_SCRATCH(c) (4 * (c)->tensor[X].count / (c)->tensor[WEIGHT].count + 2 * (c)->tensor[WEIGHT].count)

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    int64_t hidden = c->tensor[WEIGHT].count;
    bool gradients = c->pass == KI_BACKWARD || c->pass == KI_FULL;
    return step == 0 ? c->tensor[X].count / hidden : step == 1 && gradients ? hidden : 0;
}

static inline KI_HD void REF(row)(const struct ki_call *c, int64_t row)
{
    int64_t hidden = c->tensor[WEIGHT].count, rows = c->tensor[X].count / hidden, from = row * hidden;
    struct REF(sum) sum = { 0, 0, 0 }, squares = { 0, 0, 0 }, products = { 0, 0, 0 }, weighted = { 0, 0, 0 };
    for (int64_t h = 0; h < hidden; h++)
        REF(add)(&sum, REF(get)(c, X, from + h));
    real mu = REF(total)(&sum) / (real)hidden;
    for (int64_t h = 0; h < hidden; h++) {
        real x = REF(get)(c, X, from + h) - mu;
        REF(add)(&squares, x * x);
        if (c->tensor[DY].data) {
            real q = REF(get)(c, DY, from + h) * REF(get)(c, WEIGHT, h);
            REF(add)(&products, q * x);
            REF(add)(&weighted, q);
        }
    }
    real rs = (real)1 / rroot(REF(total)(&squares) / (real)hidden + (real)c->work.scalar[0]);
    c->scratch[row] = (double)mu;
    c->scratch[rows + row] = (double)rs;
    c->scratch[2 * rows + row] = (double)(rs * REF(total)(&products) / (real)hidden);
    c->scratch[3 * rows + row] = (double)(REF(total)(&weighted) / (real)hidden);
}

/* (x - mu) rs of element i. */
static inline KI_HD real REF(normal)(const struct ki_call *c, int64_t i)
{
    int64_t hidden = c->tensor[WEIGHT].count, rows = c->tensor[X].count / hidden, row = i / hidden;
    return (REF(get)(c, X, i) - (real)c->scratch[row]) * (real)c->scratch[rows + row];
}

static inline KI_HD void REF(column)(const struct ki_call *c, int64_t h)
{
    int64_t hidden = c->tensor[WEIGHT].count, rows = c->tensor[X].count / hidden;
    struct REF(sum) dw = { 0, 0, 0 }, db = { 0, 0, 0 };
    for (int64_t row = 0; row < rows; row++) {
        real dy = REF(get)(c, DY, row * hidden + h);
        REF(add)(&dw, dy * REF(normal)(c, row * hidden + h));
        REF(add)(&db, dy);
    }
    c->scratch[4 * rows + h] = (double)REF(total)(&dw);
    c->scratch[4 * rows + hidden + h] = (double)REF(total)(&db);
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
    if (tensor == DWEIGHT || tensor == DBIAS)
        return (real)c->scratch[4 * rows + (tensor == DBIAS ? hidden : 0) + i];
    real n = REF(normal)(c, i), w = REF(get)(c, WEIGHT, i % hidden);
    if (tensor == Y)
        return n * w + REF(get)(c, BIAS, i % hidden);
    real c1 = (real)c->scratch[2 * rows + row], c2 = (real)c->scratch[3 * rows + row];
    return (real)c->scratch[rows + row] * (REF(get)(c, DY, i) * w - n * c1 - c2);
}
