/* Total variation distance, batch mean:
 *   loss = 1/tokens sum |p - q| / 2      dp = sign(p - q) dloss / (2 tokens), 0 where p = q
 * Enumerators P, Q, LOSS, DLOSS, DP name the tensors; TOKENS, VOCAB the axes.
 */
static inline KI_HD real REF(term)(const struct ki_call *c, int64_t i)
{
    return rabs(REF(get)(c, P, i) - REF(get)(c, Q, i)) / 2;
}
#include "batch_mean_ref.h"

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t tokens = c->work.axis[TOKENS];
    if (tensor == LOSS)
        return REF(batch_mean)(c);
    real p = REF(get)(c, P, i), q = REF(get)(c, Q, i), sign = (real)((p > q) - (p < q));
    return sign * REF(get)(c, DLOSS, 0) / (2 * (real)tokens);
}
