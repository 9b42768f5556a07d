/* Generalised Jensen-Shannon divergence, batch mean: Q = exp X, P = exp Y, M = beta P + (1 - beta) Q,
 *   loss = 1/tokens sum [beta P (Y - log M) + (1 - beta) Q (X - log M)]      dX = (1 - beta) Q (X - log M) dloss / tokens
 * Enumerators STUDENT (X), TEACHER (Y), LOSS, DLOSS, DSTUDENT name the tensors; TOKENS, VOCAB the axes; scalar[0] is beta.
 */
static inline KI_HD real REF(term)(const struct ki_call *c, int64_t i)
{
    real beta = (real)c->work.scalar[0], x = REF(get)(c, STUDENT, i), y = REF(get)(c, TEACHER, i), q = rexp(x), p = rexp(y);
    real log_m = rlog(beta * p + (1 - beta) * q);
    return beta * p * (y - log_m) + (1 - beta) * q * (x - log_m);
}
#include "batch_mean_ref.h"

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t tokens = c->work.axis[TOKENS];
    if (tensor == LOSS)
        return REF(batch_mean)(c);
    real beta = (real)c->work.scalar[0], x = REF(get)(c, STUDENT, i), q = rexp(x), p = rexp(REF(get)(c, TEACHER, i));
    return (1 - beta) * q * (x - rlog(beta * p + (1 - beta) * q)) * REF(get)(c, DLOSS, 0) / (real)tokens;
}
