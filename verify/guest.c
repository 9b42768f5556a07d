#include "verify/guest.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/when.h"

enum { FAILED = 999 }; /* cudaErrorUnknown: the words are in the guest's error */
static const double first_seconds = 90; /* a first call may compile */
static const double call_seconds = 10, done_seconds = 4, beat_seconds = 3;

struct guest {
    struct child *child;
    const struct trial *trial;
    bool waits, called;
    uint32_t ticket;
    struct bench_remote remote;
    struct err error;
};

const struct err *guest_error(const struct guest *g)
{
    return &g->error;
}

/* Asks, and lets go of the answer. */
static int ask(struct guest *g, json_t *question, double seconds)
{
    json_t *answer = child_ask(g->child, question, seconds, &g->error);
    json_decref(answer);
    return answer ? 0 : FAILED;
}

/* ---- the case ---- */

static int put_tensor(const struct tensors *set, int i, json_t *to, struct err *e)
{
    const struct ki_operation *op = set->work.operation;
    const struct ki_tensor *t = &set->tensor[i];
    struct place_share share;
    char hex[2 * sizeof share.handle + 1];
    int64_t shape[KI_MAX_RANK];
    int rank = ki_tensor_shape(&set->work, i, shape);
    if (tensors_share(set, i, &share, e) != 0)
        return -1;
    for (size_t k = 0; k < sizeof share.handle; k++)
        snprintf(hex + 2 * k, 3, "%02x", share.handle[k]);
    json_t *dims = json_array();
    for (int k = 0; k < rank; k++)
        json_array_append_new(dims, json_integer(shape[k]));
    return json_object_set_new(to, op->tensor[i].name, json_pack("{s:s,s:I,s:I,s:s,s:o}", "handle", hex, "offset", (json_int_t)share.offset, "bytes",
        (json_int_t)(t->count * ki_dtype_bytes(t->dtype)), "dtype", ki_dtype_name(t->dtype), "shape", dims));
}

static json_t *sets_of(const struct trial *t, struct err *e)
{
    json_t *sets = json_array();
    for (int s = 0; s < t->sets; s++) {
        json_t *one = json_object();
        json_array_append_new(sets, one);
        for (int i = 0; i < t->set[s].total; i++)
            if (t->set[s].tensor[i].data && t->work.operation->tensor[i].role != KI_SAVED && put_tensor(&t->set[s], i, one, e) != 0) {
                json_decref(sets);
                return NULL;
            }
    }
    return sets;
}

/* The case in the words of a job's workload, as far as upstream's scripts look at it. */
static json_t *workload_of(const struct ki_case *c)
{
    json_t *axes = json_object(), *scalars = json_object(), *tensors = json_object();
    const struct ki_operation *op = c->operation;
    for (int i = 0; i < op->axes; i++)
        json_object_set_new(axes, op->axis[i], json_integer(c->axis[i]));
    for (int i = 0; i < KI_MAX_SCALARS && op->scalar[i].name; i++)
        json_object_set_new(scalars, op->scalar[i].name, json_pack("{s:f}", "value", c->scalar[i]));
    for (int i = 0; i < ki_tensor_total(op); i++)
        json_object_set_new(tensors, op->tensor[i].name, json_pack("{s:s}", "dtype", ki_dtype_name(ki_tensor_dtype(c, i))));
    return json_pack("{s:{s:o,s:o,s:o}}", "spec", "axes", axes, "scalars", scalars, "tensors", tensors);
}

struct guest *guest_open(struct child *child, const char *provider, const char *role, const struct trial *t, struct err *e)
{
    json_t *sets = sets_of(t, e);
    if (!sets)
        return NULL;
    json_t *job = json_pack("{s:s,s:s,s:s,s:o}", "kernel", t->work.operation->name, "pass", ki_pass_name(t->pass), "provider", provider, "workload",
        workload_of(&t->work));
    json_t *answer = child_ask(child, json_pack("{s:s,s:s,s:o,s:o}", "ask", "case", "role", role, "job", job, "sets", sets), first_seconds, e);
    if (!answer)
        return NULL;
    struct guest *g = xcalloc(1, sizeof *g);
    g->child = child;
    g->trial = t;
    g->waits = json_is_true(json_object_get(answer, "waits"));
    g->ticket = child_words(child)->ticket;
    json_decref(answer);
    return g;
}

void guest_close(struct guest *g)
{
    if (!g)
        return;
    if (child_state(g->child) == CHILD_ALIVE)
        ask(g, json_pack("{s:s}", "ask", "forget"), call_seconds);
    free(g);
}

/* ---- as an implementation: asked and waited for ---- */

static int set_of(const struct trial *t, const struct ki_call *call)
{
    for (int s = 0; s < t->sets; s++)
        for (int i = 0; i < t->set[s].total; i++)
            if (call->tensor[i].data && call->tensor[i].data == t->set[s].tensor[i].data)
                return s;
    return 0;
}

static int launch(void *state, const struct ki_call *call)
{
    struct guest *g = state;
    int rc = g->trial->place->sync(call->stream);
    if (rc != 0)
        return rc;
    double seconds = g->called ? call_seconds : first_seconds;
    g->called = true;
    return ask(g, json_pack("{s:s,s:s,s:i}", "ask", "call", "pass", ki_pass_name(call->pass), "set", set_of(g->trial, call)), seconds);
}

struct implementation guest_implementation(struct guest *g)
{
    return (struct implementation){ .launch = launch, .state = g };
}

/* ---- as a window of the timer ---- */

/* `empty`: everything round the call, and no call. */
static int queue(void *state, bool empty)
{
    struct guest *g = state;
    volatile struct child_words *w = child_words(g->child);
    w->expired = 0;
    int rc = ask(g, json_pack("{s:s,s:I,s:i,s:b}", "ask", "run", "ticket", (json_int_t)++g->ticket, "set", g->trial->current, "empty", empty), call_seconds);
    if (rc != 0)
        w->ticket = g->ticket; /* whatever is held after all may go */
    return rc;
}

static bool until(double seconds, volatile uint32_t *word, uint32_t wanted, bool change)
{
    int64_t end = when_monotonic_ns() + (int64_t)(seconds * 1e9);
    while (change ? *word == wanted : *word != wanted)
        if (when_monotonic_ns() > end)
            return false;
    return true;
}

/* The device holds the call now: its beat has moved twice since everything of this process's was done. */
static bool is_held(volatile struct child_words *w)
{
    uint32_t beat = w->beat;
    if (!until(beat_seconds, &w->beat, beat, true))
        return false;
    beat = w->beat;
    return until(beat_seconds, &w->beat, beat, true);
}

static int fault(struct guest *g, const char *what)
{
    err_set(&g->error, ERR_UNAVAILABLE, "%s", what);
    return FAILED;
}

static int release(void *state, double *outer_ns)
{
    struct guest *g = state;
    volatile struct child_words *w = child_words(g->child);
    bool held = is_held(w), early = w->done == g->ticket;
    int64_t from = when_monotonic_ns();
    w->ticket = g->ticket;
    bool done = until(done_seconds, &w->done, g->ticket, false);
    *outer_ns = (double)(when_monotonic_ns() - from);
    if (!held || w->expired)
        return fault(g, "the child's call was not held");
    if (early)
        return fault(g, "the child's call was over before it was let go");
    return done ? 0 : fault(g, "the child's call did not end");
}

static int times(void *state, double *inner_ns)
{
    struct guest *g = state;
    json_t *answer = child_ask(g->child, json_pack("{s:s}", "ask", "times"), call_seconds, &g->error);
    json_t *ns = json_object_get(answer, "ns");
    *inner_ns = json_is_number(ns) ? json_number_value(ns) : NAN;
    json_decref(answer);
    if (!answer)
        return FAILED;
    return isfinite(*inner_ns) && *inner_ns >= 0 ? 0 : fault(g, "the child gave no time");
}

const struct bench_remote *guest_remote(struct guest *g)
{
    if (g->waits)
        return NULL;
    g->remote = (struct bench_remote){ queue, release, times, g };
    return &g->remote;
}

static double number(const json_t *o, const char *name)
{
    json_t *v = json_object_get(o, name);
    return json_is_number(v) && json_number_value(v) > 0 ? json_number_value(v) : NAN;
}

int guest_source(struct guest *g, double budget_ms, struct bench_source *out)
{
    int64_t from = when_monotonic_ns();
    json_t *o = child_ask(g->child, json_pack("{s:s,s:f}", "ask", "source", "budget_ms", budget_ms), first_seconds, &g->error);
    double wall_ns = (double)(when_monotonic_ns() - from);
    if (!o)
        return -1;
    *out = (struct bench_source){ number(o, "median_ns"), number(o, "p20_ns"), number(o, "p80_ns"), number(o, "host_ns"), number(o, "flush_ns"),
        json_integer_value(json_object_get(o, "samples")) };
    json_decref(o);
    if (!isfinite(out->median_ns + out->p20_ns + out->p80_ns + out->host_ns + out->flush_ns) || out->samples < 1)
        return err_set(&g->error, ERR_UNAVAILABLE, "the child's times by the source's protocol are no times");
    /* half of the samples lasted the median or longer, and they ran one after the other */
    if (out->median_ns * (double)out->samples / 2 > wall_ns)
        return err_set(&g->error, ERR_UNAVAILABLE, "the child claims more time than it took");
    return 0;
}
