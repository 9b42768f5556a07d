#include "verify/trial.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/when.h"

enum { UNKNOWN = 999 }; /* cudaErrorUnknown: the error's words are in the trial's result */

int trial_init(struct trial *t, const struct place *place, const struct ki_case *work, enum ki_pass pass, struct implementation by,
    const struct tolerance by_tensor[], uint64_t seed, size_t memory_bytes, struct err *e)
{
    size_t size_bytes = tensors_size_bytes(work, KI_BIT(pass));
    void *seen;
    *t = (struct trial){ .place = place, .work = *work, .pass = pass, .by = by, .seed = seed };
    memcpy(t->tolerance, by_tensor, sizeof t->tolerance);
    if (size_bytes > memory_bytes)
        return err_set(e, ERR_TEMP, "the case takes %zu bytes, its limit is %zu", size_bytes, memory_bytes);
    if (tensors_error(place, place->alloc_host(&seen, 256), "allocating", e) != 0)
        return -1;
    t->seen = seen;
    if (tensors_init(&t->set[0], place, work, KI_BIT(pass), e) != 0) {
        trial_fini(t);
        return -1;
    }
    struct err ignored = { 0 };
    bool second = 2 * size_bytes <= memory_bytes && tensors_init(&t->set[1], place, work, KI_BIT(pass), &ignored) == 0;
    t->sets = second ? 2 : 1;
    return 0;
}

void trial_fini(struct trial *t)
{
    for (int i = 0; i < TRIAL_SETS; i++)
        if (t->set[i].place)
            tensors_fini(&t->set[i]);
    if (t->seen)
        t->place->release_host(t->seen);
    *t = (struct trial){ 0 };
}

int trial_check(struct trial *t, struct err *e)
{
    t->drawn[0] = true;
    return compare_pass(&t->set[0], t->pass, t->by, t->tolerance, t->seed, NULL, &t->result, e);
}

/* What nobody can foresee who knows the job and so the seed. */
static uint64_t random_bits(const struct trial *t, uint64_t i)
{
    uint64_t r = 0;
    return getrandom(&r, sizeof r, 0) == sizeof r ? r : draw_bits(t->seed, i);
}

void trial_choose(struct trial *t, int count, uint64_t first, int64_t n)
{
    t->n_chosen = 0;
    for (int i = 0; i < count && i < TRIAL_CHOSEN_MAX && n > 0; i++)
        t->chosen[t->n_chosen++] = first + random_bits(t, (uint64_t)i) % (uint64_t)n;
}

static bool is_chosen(const struct trial *t, uint64_t sample)
{
    for (int i = 0; i < t->n_chosen; i++)
        if (t->chosen[i] == sample)
            return true;
    return false;
}

static int refuse(struct trial *t, enum compare_status status, const char *format, unsigned long long n)
{
    t->result.status = status;
    snprintf(t->result.text, sizeof t->result.text, format, n);
    return 1;
}

static int broken(struct trial *t, const struct err *e)
{
    t->result.status = e->code == ERR_TEMP ? COMPARE_MEMORY : COMPARE_RUNTIME;
    snprintf(t->result.text, sizeof t->result.text, "%.250s", e->text);
    return UNKNOWN;
}

static bool redraw_part(const struct trial *t, uint64_t sample)
{
    bool large = t->set[0].size_bytes > (size_t)1 << 30;
    return t->drawn[t->current] && draw_bits(t->seed, sample) % 8 < (large ? 7 : 6);
}

int trial_prepare(void *state, void *stream, uint64_t sample)
{
    struct trial *t = state;
    struct err e = { 0 };
    struct ki_call forward;
    t->current = t->one_set ? 0 : (int)(sample % (uint64_t)t->sets);
    const struct tensors *set = &t->set[t->current];
    uint64_t seed = draw_bits(t->seed + 1, sample);
    t->renewed = false;
    t->poison = sample / (uint64_t)t->sets % 2 ? POISON_PATTERN : poison_nan;
    int rc = redraw_part(t, sample) ? tensors_redraw(set, seed, stream, &e) : tensors_draw(set, seed, stream, &e);
    t->drawn[t->current] = true;
    if (rc != 0)
        return broken(t, &e);
    if (t->pass == KI_BACKWARD) {
        tensors_call(set, KI_FORWARD, stream, &forward);
        rc = t->by.launch(t->by.state, &forward);
        if (rc != 0)
            return rc;
    }
    if (tensors_poison(set, t->pass, t->poison, stream, &e) != 0)
        return broken(t, &e);
    struct ki_call call;
    tensors_call(set, t->pass, stream, &call);
    return t->by.before ? t->by.before(t->by.state, &call) : 0;
}

int trial_renew(void *state, void *stream, uint64_t sample)
{
    struct trial *t = state;
    struct err e = { 0 };
    const struct tensors *set = &t->set[t->current];
    t->renewed = true;
    /* of every sample, so that how long it takes does not tell which are compared */
    if (tensors_renew(set, t->pass, random_bits(t, sample), stream, &e) != 0)
        return broken(t, &e);
    return tensors_hash_async(set, t->pass, false, 3, stream, &t->seen[3]);
}

int trial_enqueue(void *state, void *stream)
{
    struct trial *t = state;
    struct ki_call call;
    int64_t until_ns = when_monotonic_ns() + (int64_t)(t->host_delay_us * 1e3);
    while (t->host_delay_us > 0 && when_monotonic_ns() < until_ns)
        ;
    tensors_call(&t->set[t->current], t->pass, stream, &call);
    return t->by.launch(t->by.state, &call);
}

int trial_after(void *state, void *stream, uint64_t sample)
{
    struct trial *t = state;
    struct ki_call call;
    (void)sample;
    tensors_call(&t->set[t->current], t->pass, stream, &call);
    int rc = t->by.after ? t->by.after(t->by.state, &call) : 0;
    if (rc == 0 && t->hash_outputs)
        rc = tensors_hash_async(&t->set[t->current], t->pass, true, 2, stream, &t->seen[1]);
    if (rc == 0)
        rc = tensors_count_async(&t->set[t->current], t->pass, t->poison, false, 1, stream, &t->seen[0]);
    return rc;
}

/* The fixed pattern can be a value of a 16-bit type by chance; NaN cannot. */
static uint64_t tolerated(const struct trial *t)
{
    return t->poison == poison_nan ? 0 : (uint64_t)tensors_delivered(&t->set[t->current], t->pass) / 1024;
}

/* Whether what the current call read, or what it gave, has changed since it was hashed. */
static int look_for_changes(struct trial *t, struct err *e)
{
    const struct tensors *set = &t->set[t->current];
    uint64_t inputs = t->seen[3], outputs = t->seen[1];
    if ((t->renewed && tensors_hash(set, t->pass, false, NULL, &inputs, e) != 0) || (t->hash_outputs && tensors_hash(set, t->pass, true, NULL, &outputs, e) != 0))
        return -1;
    if (inputs != t->seen[3])
        return refuse(t, COMPARE_MUTATION, "changed an input in a timed call", 0);
    return outputs != t->seen[1] ? refuse(t, COMPARE_UNWRITTEN, "outputs changed after a timed call had ended", 0) : 0;
}

static int compare_current(struct trial *t)
{
    struct err e = { 0 };
    t->result.status = COMPARE_PASSED;
    t->compared++;
    int rc = compare_values(&t->set[t->current], t->pass, t->tolerance, NULL, &t->result, &e);
    if (rc == 0 && t->result.status == COMPARE_PASSED)
        rc = look_for_changes(t, &e);
    if (rc < 0)
        broken(t, &e);
    return rc < 0 ? -1 : t->result.status != COMPARE_PASSED;
}

int trial_accept(void *state, uint64_t sample)
{
    struct trial *t = state;
    if (t->seen[0] > tolerated(t))
        return refuse(t, COMPARE_UNWRITTEN, "left %llu elements unwritten when a timed call ended", (unsigned long long)t->seen[0]);
    return is_chosen(t, sample) ? compare_current(t) : 0;
}

int trial_look(void *state, void *stream, bool idle)
{
    struct trial *t = state;
    const struct tensors *set = &t->set[t->current];
    int rc = idle ? tensors_hash_async(set, t->pass, true, 3, stream, &t->seen[2])
                  : tensors_count_async(set, t->pass, t->poison, true, 3, stream, &t->seen[2]);
    if (rc == 0)
        rc = t->place->sync(stream);
    if (rc != 0) {
        t->result.status = COMPARE_RUNTIME;
        snprintf(t->result.text, sizeof t->result.text, "looking at a held call: %s", t->place->text(rc));
        return -1;
    }
    if (!idle && t->seen[2] != 0)
        return refuse(t, COMPARE_UNWRITTEN, "wrote %llu elements while the stream was held", (unsigned long long)t->seen[2]);
    if (idle && t->seen[2] != t->seen[1])
        return refuse(t, COMPARE_UNWRITTEN, "outputs changed after the end event", 0);
    return 0;
}

int trial_last(struct trial *t, struct err *e)
{
    int rc = t->compared ? 0 : compare_current(t);
    return rc < 0 ? err_set(e, ERR_IO, "%s", t->result.text) : rc;
}

int trial_finish(struct trial *t, struct err *e)
{
    uint64_t changed = 0;
    for (int i = 0; i < t->sets; i++) {
        if (tensors_guards(&t->set[i], NULL, &changed, e) != 0)
            return -1;
        if (changed)
            return refuse(t, COMPARE_MUTATION, "wrote outside of a tensor in a timed call", 0);
    }
    int rc = trial_last(t, e);
    if (rc != 0)
        return rc;
    rc = compare_pass(&t->set[0], t->pass, t->by, t->tolerance, draw_bits(t->seed, 77), NULL, &t->result, e);
    return rc != 0 ? -1 : t->result.status != COMPARE_PASSED;
}

int trial_run(struct trial *t, int calls, int compared, struct err *e)
{
    trial_choose(t, compared, 1, calls - 1);
    for (uint64_t sample = 0; sample < (uint64_t)calls; sample++) {
        int rc = trial_prepare(t, NULL, sample);
        if (rc == 0)
            rc = trial_enqueue(t, NULL);
        if (rc == 0)
            rc = trial_after(t, NULL, sample);
        if (rc == 0)
            rc = t->place->sync(NULL);
        if (rc != 0)
            return err_set(e, ERR_IO, "%s", rc == UNKNOWN ? t->result.text : t->place->text(rc));
        rc = trial_accept(t, sample);
        if (rc != 0)
            return rc < 0 ? err_set(e, ERR_IO, "%s", t->result.text) : rc;
    }
    return trial_finish(t, e);
}
