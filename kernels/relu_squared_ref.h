/* Squared ReLU, element by element: m = max(x, 0)      y = m^2      dx = 2 m dy
 * No scratch.
 */
#include "ref_direct.h"

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    real m = rmax(REF(get)(c, X, i), (real)0);
    return tensor == Y ? m * m : (real)2 * m * REF(get)(c, DY, i);
}
