/* Neighborhood attention with its projections, from the maths. For a position t and a head, N(t) = { j : |j - t| <= kernel_size/2 dilation,
 * dilation divides j - t, 0 <= j < seq }; D = head_dim, c = D^(-1/2).
 *   q, k, v = x W^T + b      p_tj = softmax over j in N(t) of c q_t . k_j      o_t = sum_j p_tj v_j      y = o Wo^T + bo
 *   do = dy Wo      ds_tj = p_tj (do_t . v_j - do_t . o_t)
 *   dq_t = c sum_j ds_tj k_j      dk_t = c sum_j ds_jt q_j      dv_t = sum_j p_jt do_j      (sums over N(t), which is symmetric)
 *   dx = dq Wq + dk Wk + dv Wv      dW = dout^T in      db = column sums of dout      db_k = 0: see the operation
 * The baseline multiplies in TF32 and stores intermediate tensors in the type of the case, as upstream does.
 * Enumerators of the operation name tensors and axes. Scratch, n = tokens hidden, m = tokens heads:
 * q, k, v, o, do, dq, dk, dv [n]; maximum, sum, do . o [m].
 */
enum { REF(at_o) = 3, REF(at_do), REF(at_dq), REF(at_stats) = 8 };
#define REF_SCRATCH(c) (8 * (c)->tensor[X].count + 3 * ((c)->tensor[X].count / (c)->work.axis[HEAD_DIM]))

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    int64_t n = c->tensor[X].count, m = n / c->work.axis[HEAD_DIM];
    bool gradients = c->pass == KI_BACKWARD || c->pass == KI_FULL;
    return step == 0 ? 3 * n : step == 1 ? m : !gradients ? 0 : step == 2 ? n : step <= 4 ? m : 0;
}

/* As an intermediate tensor holds it. */
static inline KI_HD real REF(stored)(const struct ki_call *c, real v)
{
    return sizeof(real) == sizeof(float) ? (real)ki_round(c->work.dtype, (double)v) : v;
}

/* Element (token, out) of x W^T. */
static inline KI_HD real REF(product)(const struct ki_call *c, int weight, const double *x, int64_t token, int64_t out)
{
    int64_t h = c->work.axis[HIDDEN];
    struct REF(sum) sum = { 0, 0, 0 };
    for (int64_t e = 0; e < h; e++) {
        real v = x ? (real)x[token * h + e] : REF(get)(c, X, token * h + e);
        REF(add)(&sum, rtf32(v) * rtf32(REF(get)(c, weight, out * h + e)));
    }
    return REF(total)(&sum);
}

/* Element (token, in) of dout W. dout is scratch, or dy. */
static inline KI_HD real REF(back)(const struct ki_call *c, int weight, const double *dout, int64_t token, int64_t in)
{
    int64_t h = c->work.axis[HIDDEN];
    struct REF(sum) sum = { 0, 0, 0 };
    for (int64_t o = 0; o < h; o++) {
        real v = dout ? (real)dout[token * h + o] : REF(get)(c, DY, token * h + o);
        REF(add)(&sum, rtf32(v) * rtf32(REF(get)(c, weight, o * h + in)));
    }
    return REF(total)(&sum);
}

/* a_t . b_j of a head; tensors by their place in the scratch, t and j as rows [token, head]. */
static inline KI_HD real REF(dot)(const struct ki_call *c, int a, int64_t t, int b, int64_t j)
{
    int64_t n = c->tensor[X].count, d = c->work.axis[HEAD_DIM];
    real sum = 0;
    for (int64_t e = 0; e < d; e++)
        sum += (real)c->scratch[a * n + t * d + e] * (real)c->scratch[b * n + j * d + e];
    return sum;
}

/* Row of the m-th neighbour (m from -r to r) of row t, -1 where there is none. Rows are [token, head]. */
static inline KI_HD int64_t REF(neighbour)(const struct ki_call *c, int64_t t, int64_t m)
{
    int64_t seq = c->work.axis[SEQ], heads = c->work.axis[HEADS], position = t / heads % seq, to = position + m * c->work.axis[DILATION];
    return to < 0 || to >= seq ? -1 : t + (to - position) * heads;
}

static inline KI_HD real REF(score)(const struct ki_call *c, int64_t t, int64_t j)
{
    return REF(dot)(c, 0, t, 1, j) / rroot((real)c->work.axis[HEAD_DIM]);
}

/* p_tj, once the statistics of t are known. */
static inline KI_HD real REF(weight)(const struct ki_call *c, int64_t t, int64_t j)
{
    int64_t n = c->tensor[X].count, m = n / c->work.axis[HEAD_DIM];
    const double *stats = c->scratch + REF(at_stats) * n;
    return rexp(REF(score)(c, t, j) - (real)stats[t]) / (real)stats[m + t];
}

static inline KI_HD void REF(attend)(const struct ki_call *c, int64_t t)
{
    int64_t n = c->tensor[X].count, d = c->work.axis[HEAD_DIM], m = n / d, r = c->work.axis[KERNEL_SIZE] / 2;
    double *stats = c->scratch + REF(at_stats) * n;
    real max = REF(score)(c, t, t), sum = 0;
    for (int64_t i = -r; i <= r; i++)
        if (REF(neighbour)(c, t, i) >= 0)
            max = rmax(max, REF(score)(c, t, REF(neighbour)(c, t, i)));
    for (int64_t i = -r; i <= r; i++)
        if (REF(neighbour)(c, t, i) >= 0)
            sum += rexp(REF(score)(c, t, REF(neighbour)(c, t, i)) - max);
    stats[t] = (double)max;
    stats[m + t] = (double)sum;
    for (int64_t e = 0; e < d; e++) {
        real o = 0;
        for (int64_t i = -r; i <= r; i++) {
            int64_t j = REF(neighbour)(c, t, i);
            if (j >= 0)
                o += REF(weight)(c, t, j) * (real)c->scratch[2 * n + j * d + e];
        }
        c->scratch[REF(at_o) * n + t * d + e] = (double)REF(stored)(c, o);
    }
}

/* Add f times a row of tensor `from` to a row of tensor `to`. */
static inline KI_HD void REF(add_row)(const struct ki_call *c, int to, int64_t t, real f, int from, int64_t j)
{
    int64_t n = c->tensor[X].count, d = c->work.axis[HEAD_DIM];
    for (int64_t e = 0; e < d; e++)
        c->scratch[to * n + t * d + e] = (double)((real)c->scratch[to * n + t * d + e] + f * (real)c->scratch[from * n + j * d + e]);
}

static inline KI_HD void REF(gradients)(const struct ki_call *c, int64_t t)
{
    int64_t n = c->tensor[X].count, d = c->work.axis[HEAD_DIM], r = c->work.axis[KERNEL_SIZE] / 2;
    const double *dots = c->scratch + REF(at_stats) * n + 2 * (n / d);
    real scale = 1 / rroot((real)d);
    for (int g = 0; g < 3; g++)
        for (int64_t e = 0; e < d; e++)
            c->scratch[(REF(at_dq) + g) * n + t * d + e] = 0;
    for (int64_t i = -r; i <= r; i++) {
        int64_t j = REF(neighbour)(c, t, i);
        if (j < 0)
            continue;
        real query = REF(weight)(c, t, j), key = REF(weight)(c, j, t);
        REF(add_row)(c, REF(at_dq), t, scale * query * (REF(dot)(c, REF(at_do), t, 2, j) - (real)dots[t]), 1, j);
        REF(add_row)(c, REF(at_dq) + 1, t, scale * key * (REF(dot)(c, REF(at_do), j, 2, t) - (real)dots[j]), 0, j);
        REF(add_row)(c, REF(at_dq) + 2, t, key, REF(at_do), j);
    }
    for (int g = 0; g < 3; g++)
        for (int64_t e = 0; e < d; e++) {
            double *at = &c->scratch[(REF(at_dq) + g) * n + t * d + e];
            *at = (double)REF(stored)(c, (real)*at);
        }
}

static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t i)
{
    int64_t n = c->tensor[X].count, h = c->work.axis[HIDDEN], m = n / c->work.axis[HEAD_DIM], token = i % n / h, column = i % h;
    int which = (int)(i / n);
    if (step == 0)
        c->scratch[i] = (double)(REF(stored)(c, REF(product)(c, Q_WEIGHT + which, NULL, token, column)) + REF(get)(c, Q_BIAS + which, column));
    else if (step == 1)
        REF(attend)(c, i);
    else if (step == 2)
        c->scratch[REF(at_do) * n + i] = (double)REF(stored)(c, REF(back)(c, OUT_WEIGHT, NULL, token, column));
    else if (step == 3)
        c->scratch[REF(at_stats) * n + 2 * m + i] = (double)REF(dot)(c, REF(at_do), i, REF(at_o), i);
    else
        REF(gradients)(c, i);
}

/* Element (out, in) of dout^T in, or element `out` of the column sums of dout where `weight` is not set. Place -1 is dy, and x. */
static inline KI_HD real REF(over_tokens)(const struct ki_call *c, int dout, int in, bool weight, int64_t i)
{
    int64_t n = c->tensor[X].count, h = c->work.axis[HIDDEN], row = weight ? i / h : i, column = i % h;
    struct REF(sum) sum = { 0, 0, 0 };
    for (int64_t at = 0; at < n; at += h) {
        real d = dout < 0 ? REF(get)(c, DY, at + row) : (real)c->scratch[dout * n + at + row];
        if (weight)
            d = rtf32(d) * rtf32(in < 0 ? REF(get)(c, X, at + column) : (real)c->scratch[in * n + at + column]);
        REF(add)(&sum, d);
    }
    return REF(total)(&sum);
}

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t n = c->tensor[X].count, h = c->work.axis[HIDDEN];
    if (tensor == Y)
        return REF(product)(c, OUT_WEIGHT, c->scratch + REF(at_o) * n, i / h, i % h) + REF(get)(c, OUT_BIAS, i % h);
    if (tensor == DX) {
        real sum = 0;
        for (int g = 0; g < 3; g++)
            sum += REF(back)(c, Q_WEIGHT + g, c->scratch + (REF(at_dq) + g) * n, i / h, i % h);
        return sum;
    }
    if (tensor == DK_BIAS)
        return 0;
    if (tensor == DOUT_WEIGHT)
        return REF(over_tokens)(c, -1, REF(at_o), true, i);
    if (tensor == DOUT_BIAS)
        return REF(over_tokens)(c, -1, 0, false, i);
    bool weight = tensor < DQ_BIAS;
    return REF(over_tokens)(c, REF(at_dq) + (weight ? tensor - DQ_WEIGHT : tensor - DQ_BIAS), -1, weight, i);
}
