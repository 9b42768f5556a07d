/* The walk of a loss that is the mean over tokens of a sum over a vocabulary. The file of such an operation defines
 *     static inline KI_HD real REF(term)(const struct ki_call *c, int64_t i)     what element i adds to the sum of its row
 * includes this one, which like it is read twice, and gets all but REF(value), in which REF(batch_mean)(c) is the loss.
 * Enumerators TOKENS, VOCAB name the axes. Scratch: the sum of each row, then the loss.
 */
#define REF_SCRATCH(c) ((c)->work.axis[TOKENS] + 1)

static inline KI_HD int64_t REF(tasks)(const struct ki_call *c, int step)
{
    return c->pass == KI_BACKWARD ? 0 : step == 0 ? c->work.axis[TOKENS] : step == 1 ? 1 : 0;
}

static inline KI_HD void REF(task)(const struct ki_call *c, int step, int64_t row)
{
    int64_t tokens = c->work.axis[TOKENS], vocab = c->work.axis[VOCAB];
    struct REF(sum) sum = { 0, 0, 0 };
    if (step == 0) {
        for (int64_t i = row * vocab; i < (row + 1) * vocab; i++)
            REF(add)(&sum, REF(term)(c, i));
        c->scratch[row] = (double)REF(total)(&sum);
    } else {
        for (int64_t i = 0; i < tokens; i++)
            REF(add)(&sum, (real)c->scratch[i]);
        c->scratch[tokens] = (double)(REF(total)(&sum) / (real)tokens);
    }
}

static inline KI_HD real REF(batch_mean)(const struct ki_call *c)
{
    return (real)c->scratch[c->work.axis[TOKENS]];
}
