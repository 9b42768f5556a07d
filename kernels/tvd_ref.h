/* Total variation distance, batch mean:
 *   loss = 1/tokens sum |p - q| / 2      dp = sign(p - q) dloss / (2 tokens), 0 where p = q
 * Enumerators P, Q, LOSS, DLOSS, DP name the tensors; TOKENS, VOCAB the axes.
 * Scratch: the sum of each row, then the loss.
 */
#define REF_SCRATCH(c) ((c)->work.axis[TOKENS] + 1)

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    return c->pass == KI_BACKWARD ? 0 : step == 0 ? c->work.axis[TOKENS] : step == 1 ? 1 : 0;
}

static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t row)
{
    int64_t tokens = c->work.axis[TOKENS], vocab = c->work.axis[VOCAB];
    struct REF(sum) sum = { 0, 0, 0 };
    if (step == 0) {
        for (int64_t i = row * vocab; i < (row + 1) * vocab; i++)
            REF(add)(&sum, rabs(REF(get)(c, P, i) - REF(get)(c, Q, i)) / 2);
        c->scratch[row] = (double)REF(total)(&sum);
    } else {
        for (int64_t i = 0; i < tokens; i++)
            REF(add)(&sum, (real)c->scratch[i]);
        c->scratch[tokens] = (double)(REF(total)(&sum) / (real)tokens);
    }
}

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t tokens = c->work.axis[TOKENS];
    if (tensor == LOSS)
        return (real)c->scratch[tokens];
    real p = REF(get)(c, P, i), q = REF(get)(c, Q, i), sign = (real)((p > q) - (p < q));
    return sign * REF(get)(c, DLOSS, 0) / (2 * (real)tokens);
}
