/* DyT, element by element: y = gamma_h tanh(alpha x) + beta_h; without DYT_BETA the last term is missing.
 * No scratch.
 */
#include "ref_direct.h"

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t h = i % c->tensor[GAMMA].count;
    real y = REF(get)(c, GAMMA, h) * rtanh(REF(get)(c, ALPHA, 0) * REF(get)(c, X, i));
    (void)tensor;
#ifdef DYT_BETA
    y += REF(get)(c, DYT_BETA, h);
#endif
    return y;
}
