/* Embedding lookup: y[n,:] = weight[id_n,:], zeros where id_n lies outside the table; dweight[v,:] = sum of dy[n,:] over n with id_n = v.
 * Enumerators IDS, WEIGHT, Y, DY, DWEIGHT name the tensors; HIDDEN, VOCAB the axes.
 * Scratch: the first place of each id, then for each place the next one of the same id; -1 where there is none.
 */
#define REF_SCRATCH(c) ((c)->work.axis[VOCAB] + (c)->tensor[IDS].count)

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    if (c->pass != KI_BACKWARD && c->pass != KI_FULL)
        return 0;
    return step == 0 ? c->work.axis[VOCAB] : step == 1 ? c->tensor[IDS].count : 0;
}

static inline KI_HD bool REF(known)(const struct ki_call *c, int64_t id)
{
    return id >= 0 && id < c->work.axis[VOCAB];
}

/* Places are linked from first to last: a place writes its own link, and the first of its id writes the head. */
static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t i)
{
    int64_t vocab = c->work.axis[VOCAB], places = c->tensor[IDS].count;
    if (step == 0) {
        c->scratch[i] = -1;
        return;
    }
    int64_t id = ki_index(&c->tensor[IDS], i), next = i + 1, before = i - 1;
    while (next < places && ki_index(&c->tensor[IDS], next) != id)
        next++;
    while (before >= 0 && ki_index(&c->tensor[IDS], before) != id)
        before--;
    c->scratch[vocab + i] = next < places ? (double)next : -1;
    if (before < 0 && REF(known)(c, id))
        c->scratch[id] = (double)i;
}

static inline KI_HD real REF(value)(const struct ki_call *c, int tensor, int64_t i)
{
    int64_t hidden = c->work.axis[HIDDEN], vocab = c->work.axis[VOCAB], row = i / hidden, h = i % hidden;
    if (tensor == Y) {
        int64_t id = ki_index(&c->tensor[IDS], row);
        return REF(known)(c, id) ? REF(get)(c, WEIGHT, id * hidden + h) : 0;
    }
    struct REF(sum) sum = { 0, 0, 0 };
    for (int64_t n = (int64_t)c->scratch[row]; n >= 0; n = (int64_t)c->scratch[vocab + n])
        REF(add)(&sum, REF(get)(c, DY, n * hidden + h));
    return REF(total)(&sum);
}
