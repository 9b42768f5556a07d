/* SwiGLU on rows that hold gate and up side by side: y = [g, u], each of `ffn` elements (axis[2]).
 *   s = sigma(g)      out = g s u
 *   dg = dout u s (1 + g (1 - s))      du = dout g s      dy = [dg, du]
 * No scratch.
 */
#include "ref_direct.h"

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t ffn = c->work.axis[FFN], width = tensor == OUT ? ffn : 2 * ffn, row = i / width, h = i % ffn;
    bool up = i % width >= ffn;
    real g = REF(get)(c, IN, row * 2 * ffn + h), u = REF(get)(c, IN, row * 2 * ffn + ffn + h);
    real s = (real)1 / ((real)1 + rexp(-g));
    if (tensor == OUT)
        return g * s * u;
    real dout = REF(get)(c, DOUT, row * ffn + h);
    return up ? dout * g * s : dout * u * s * ((real)1 + g * ((real)1 - s));
}
