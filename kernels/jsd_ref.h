/* Generalised Jensen-Shannon divergence, batch mean: Q = exp X, P = exp Y, M = beta P + (1 - beta) Q,
 *   loss = 1/tokens sum [beta P (Y - log M) + (1 - beta) Q (X - log M)]      dX = (1 - beta) Q (X - log M) dloss / tokens
 * Enumerators STUDENT (X), TEACHER (Y), LOSS, DLOSS, DSTUDENT name the tensors; TOKENS, VOCAB the axes; scalar[0] is beta.
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
    real beta = (real)c->work.scalar[0];
    struct REF(sum) sum = { 0, 0, 0 };
    if (step == 0) {
        for (int64_t i = row * vocab; i < (row + 1) * vocab; i++) {
            real x = REF(get)(c, STUDENT, i), y = REF(get)(c, TEACHER, i), q = rexp(x), p = rexp(y);
            real log_m = rlog(beta * p + (1 - beta) * q);
            REF(add)(&sum, beta * p * (y - log_m) + (1 - beta) * q * (x - log_m));
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
    real beta = (real)c->work.scalar[0], x = REF(get)(c, STUDENT, i), q = rexp(x), p = rexp(REF(get)(c, TEACHER, i));
    return (1 - beta) * q * (x - rlog(beta * p + (1 - beta) * q)) * REF(get)(c, DLOSS, 0) / (real)tokens;
}
