/* GroupNorm of x [batch, channels, hidden] over groups of channels that follow one another; n = channels / groups * hidden
 * elements a group; the variance is that of the population, eps inside the root.
 *   mu = mean of the group      rs = (mean (x - mu)^2 + eps)^(-1/2)      n = (x - mu) rs      y = n w_c + b_c
 *   q = dy w_c      dx = rs (q - n mean(q n) - mean q)      dw_c = sum over samples, hidden of dy n      db_c = sum of dy
 * axis[BATCH], axis[CHANNELS], axis[HIDDEN], axis[GROUPS]. A group of a sample is a row below.
 * Scratch: mu, rs, mean(q n), mean q, each [batch * groups]; then dw[channels], db[channels].
 */
#define REF_SCRATCH(c) (4 * (c)->work.axis[BATCH] * (c)->work.axis[GROUPS] + 2 * (c)->work.axis[CHANNELS])

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    bool gradients = c->pass == KI_BACKWARD || c->pass == KI_FULL;
    return step == 0 ? c->work.axis[BATCH] * c->work.axis[GROUPS] : step == 1 && gradients ? c->work.axis[CHANNELS] : 0;
}

static inline KI_HD void REF(row)(const struct ki_call *c, int64_t row)
{
    int64_t rows = c->work.axis[BATCH] * c->work.axis[GROUPS], count = c->tensor[X].count / rows, from = row * count;
    int64_t hidden = c->work.axis[HIDDEN], channels = c->work.axis[CHANNELS];
    struct REF(sum) sum = { 0, 0, 0 }, squares = { 0, 0, 0 }, products = { 0, 0, 0 }, weighted = { 0, 0, 0 };
    for (int64_t i = from; i < from + count; i++)
        REF(add)(&sum, REF(get)(c, X, i));
    real mu = REF(total)(&sum) / (real)count;
    for (int64_t i = from; i < from + count; i++) {
        real x = REF(get)(c, X, i) - mu;
        REF(add)(&squares, x * x);
        if (c->tensor[DY].data) {
            real q = REF(get)(c, DY, i) * REF(get)(c, WEIGHT, i / hidden % channels);
            REF(add)(&products, q * x);
            REF(add)(&weighted, q);
        }
    }
    real rs = (real)1 / rroot(REF(total)(&squares) / (real)count + (real)c->work.scalar[0]);
    c->scratch[row] = (double)mu;
    c->scratch[rows + row] = (double)rs;
    c->scratch[2 * rows + row] = (double)(rs * REF(total)(&products) / (real)count);
    c->scratch[3 * rows + row] = (double)(REF(total)(&weighted) / (real)count);
}

/* (x - mu) rs of element i. */
static inline KI_HD real REF(normal)(const struct ki_call *c, int64_t i)
{
    int64_t rows = c->work.axis[BATCH] * c->work.axis[GROUPS], row = i / (c->tensor[X].count / rows);
    return (REF(get)(c, X, i) - (real)c->scratch[row]) * (real)c->scratch[rows + row];
}

static inline KI_HD void REF(channel)(const struct ki_call *c, int64_t channel)
{
    int64_t batch = c->work.axis[BATCH], channels = c->work.axis[CHANNELS], hidden = c->work.axis[HIDDEN];
    struct REF(sum) dw = { 0, 0, 0 }, db = { 0, 0, 0 };
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < hidden; h++) {
            int64_t i = (b * channels + channel) * hidden + h;
            REF(add)(&dw, REF(get)(c, DY, i) * REF(normal)(c, i));
            REF(add)(&db, REF(get)(c, DY, i));
        }
    double *to = c->scratch + 4 * batch * c->work.axis[GROUPS];
    to[channel] = (double)REF(total)(&dw);
    to[channels + channel] = (double)REF(total)(&db);
}

static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t i)
{
    if (step == 0)
        REF(row)(c, i);
    else
        REF(channel)(c, i);
}

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t rows = c->work.axis[BATCH] * c->work.axis[GROUPS], row = i / (c->tensor[X].count / rows);
    int64_t channels = c->work.axis[CHANNELS], channel = i / c->work.axis[HIDDEN] % channels;
    if (tensor == DWEIGHT || tensor == DBIAS)
        return (real)c->scratch[4 * rows + (tensor == DBIAS ? channels : 0) + i];
    real n = REF(normal)(c, i), w = REF(get)(c, WEIGHT, channel);
    if (tensor == Y)
        return n * w + REF(get)(c, BIAS, channel);
    real c1 = (real)c->scratch[2 * rows + row], c2 = (real)c->scratch[3 * rows + row];
    return (real)c->scratch[rows + row] * (REF(get)(c, DY, i) * w - n * c1 - c2);
}
