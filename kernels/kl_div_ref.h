/* Kullback-Leibler divergence, batch mean, t log t = 0 at t = 0:
 *   loss = 1/tokens sum t (log t - lp)      dlp = -t dloss / tokens
 * Enumerators LOG_PROBS, TARGET_PROBS, LOSS, DLOSS, DLOG_PROBS name the tensors; TOKENS, VOCAB the axes.
 */
static inline KI_HD real REF(term)(const struct ki_call *c, int64_t i)
{
    real t = REF(get)(c, TARGET_PROBS, i), lp = REF(get)(c, LOG_PROBS, i);
    return t > 0 ? t * (rlog(t) - lp) : -t * lp;
}
#include "batch_mean_ref.h"

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t tokens = c->work.axis[TOKENS];
    if (tensor == LOSS)
        return REF(batch_mean)(c);
    return -REF(get)(c, TARGET_PROBS, i) * REF(get)(c, DLOSS, 0) / (real)tokens;
}
