/* Cross entropy of rows of logits x [rows, vocab], for cross_entropy (MEAN_LOSS 1) and megatron_cross_entropy (MEAN_LOSS 0):
 *   loss_r = log sum_v exp x_v - x_y, 0 where the target y is ignored (outside the vocabulary)
 *   MEAN_LOSS: loss = sum_r loss_r / M, M rows that are not ignored
 *   dx = (softmax(x) - onehot_y) g, g = dloss / M, or dloss_r; 0 for ignored rows
 * Enumerators LOGITS, TARGET, LOSS, DLOSS, DLOGITS name the tensors; MEAN_LOSS is a macro.
 * Scratch: max_v x_v of each row, sum_v exp(x_v - max) of each, loss of each; then MEAN_LOSS: loss, M.
 */
#define REF_SCRATCH(c) (3 * (c)->tensor[TARGET].count + 2)

static inline KI_HD int64_t REF(vocab)(const struct ki_call *c)
{
    return c->tensor[LOGITS].count / c->tensor[TARGET].count;
}

static inline KI_HD bool REF(ignored)(const struct ki_call *c, int64_t row)
{
    int64_t y = ki_index(&c->tensor[TARGET], row);
    return y < 0 || y >= REF(vocab)(c);
}

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    return step == 0 ? c->tensor[TARGET].count : step == 1 && MEAN_LOSS ? 1 : 0;
}

static inline KI_HD void REF(row)(const struct ki_call *c, int64_t row)
{
    int64_t rows = c->tensor[TARGET].count, vocab = REF(vocab)(c);
    real max = REF(get)(c, LOGITS, row * vocab);
    struct REF(sum) sum = { 0, 0, 0 };
    for (int64_t v = 1; v < vocab; v++)
        max = rmax(max, REF(get)(c, LOGITS, row * vocab + v));
    for (int64_t v = 0; v < vocab; v++)
        REF(add)(&sum, rexp(REF(get)(c, LOGITS, row * vocab + v) - max));
    real loss = 0;
    if (!REF(ignored)(c, row))
        loss = rlog(REF(total)(&sum)) + max - REF(get)(c, LOGITS, row * vocab + ki_index(&c->tensor[TARGET], row));
    c->scratch[row] = (double)max;
    c->scratch[rows + row] = (double)REF(total)(&sum);
    c->scratch[2 * rows + row] = (double)loss;
}

static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t i)
{
    int64_t rows = c->tensor[TARGET].count, valid = 0;
    struct REF(sum) sum = { 0, 0, 0 };
    if (step == 0) {
        REF(row)(c, i);
        return;
    }
    for (int64_t row = 0; row < rows; row++) {
        REF(add)(&sum, (real)c->scratch[2 * rows + row]);
        valid += !REF(ignored)(c, row);
    }
    c->scratch[3 * rows] = (double)(REF(total)(&sum) / (real)valid);
    c->scratch[3 * rows + 1] = (double)valid;
}

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t rows = c->tensor[TARGET].count, vocab = REF(vocab)(c), row = i / vocab;
    if (tensor == LOSS)
        return (real)c->scratch[MEAN_LOSS ? 3 * rows : 2 * rows + i];
    if (REF(ignored)(c, row))
        return 0;
    real p = rexp(REF(get)(c, LOGITS, i) - (real)c->scratch[row]) / (real)c->scratch[rows + row];
    real d = ki_index(&c->tensor[TARGET], row) == i % vocab ? p - 1 : p;
    return MEAN_LOSS ? d * REF(get)(c, DLOSS, 0) / (real)c->scratch[3 * rows + 1] : d * REF(get)(c, DLOSS, row);
}
