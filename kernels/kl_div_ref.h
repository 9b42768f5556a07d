/* Kullback-Leibler divergence, batch mean, t log t = 0 at t = 0:
 *   loss = 1/tokens sum t (log t - lp)      dlp = -t dloss / tokens
 * Enumerators LOG_PROBS, TARGET_PROBS, LOSS, DLOSS, DLOG_PROBS name the tensors; TOKENS, VOCAB the axes.
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
        for (int64_t i = row * vocab; i < (row + 1) * vocab; i++) {
            real t = REF(get)(c, TARGET_PROBS, i), lp = REF(get)(c, LOG_PROBS, i);
            REF(add)(&sum, t > 0 ? t * (rlog(t) - lp) : -t * lp);
        }
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
    return -REF(get)(c, TARGET_PROBS, i) * REF(get)(c, DLOSS, 0) / (real)tokens;
}
