/* Rotary position embedding of queries and keys, for rope and llama4_rope. A position s turns pair i of a head by
 *   angle = s * theta^(-2 i / D)      a' = a cos - b sin      b' = b cos + a sin
 * forward, and by -angle backward. PAIR_STRIDE and PAIR_LEFT, from the .cu file, say which elements form pair i.
 * Physical layout [seq, heads, D]. Enumerators Q, K, Q_OUT, K_OUT, DQ_OUT, DK_OUT, DQ, DK name the tensors, SEQ and HEAD_DIM the
 * axes; scalar[0] is theta. Angles are exact: upstream's tables, rounded to bf16, are not part of the operation.
 * Scratch: cos[seq, D/2], then sin[seq, D/2].
 */
#define REF_SCRATCH(c) ((c)->work.axis[SEQ] * (c)->work.axis[HEAD_DIM])

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    return step == 0 ? c->work.axis[SEQ] * (c->work.axis[HEAD_DIM] / 2) : 0;
}

static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t i)
{
    (void)step;
    int64_t half = c->work.axis[HEAD_DIM] / 2, s = i / half, pair = i % half;
    real angle = (real)s * rpow((real)c->work.scalar[0], -(real)pair / (real)half);
    c->scratch[i] = (double)rcos(angle);
    c->scratch[c->work.axis[SEQ] * half + i] = (double)rsin(angle);
}

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t half = c->work.axis[HEAD_DIM] / 2, d = i % (2 * half);
    int64_t heads = c->tensor[tensor].count / (c->work.axis[SEQ] * 2 * half), s = i / (2 * half * heads);
    bool backward = tensor == DQ || tensor == DK, left = PAIR_LEFT(d, half);
    int from = tensor == Q_OUT ? Q : tensor == K_OUT ? K : tensor == DQ ? DQ_OUT : DK_OUT;
    int64_t at = s * half + PAIR_INDEX(d, half);
    real cosine = (real)c->scratch[at], sine = (real)c->scratch[c->work.axis[SEQ] * half + at];
    real own = REF(get)(c, from, i), other = REF(get)(c, from, left ? i + PAIR_STRIDE(half) : i - PAIR_STRIDE(half));
    return own * cosine + (left == backward ? other : -other) * sine;
}
