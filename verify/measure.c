#include "verify/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/control.h"
#include "verify/guest.h"
#include "verify/stats.h"
#include "verify/trial.h"
#include "verify/upstream.h"

enum { CPU_BYTES_MAX = 1 << 28, CPU_CALLS = 12, GRAPH_SAMPLES = 21, EMPTY_SAMPLES = 21 };
static const double agree = 0.03, agree_node_ns = 1000; /* two methods: 3%, or a microsecond for each kernel of the call */
static const double agree_clock_ns = 5000; /* the clock outside of a child's call against the child's own: 3%, or as much */
static const double child_seconds = 90;    /* until it is there: a framework is loaded */

static void say(struct reply *r, const char *status, const char *text)
{
    snprintf(r->status, sizeof r->status, "%s", status);
    snprintf(r->text, sizeof r->text, "%.250s", text);
}

/* A call was refused by the checks round a timed call: it passed on its own, so it knows when it is watched. */
static int refused(struct reply *r, const struct trial *t, const struct bench *b)
{
    const char *by_timer = b ? bench_refused(b) : NULL;
    if (by_timer)
        say(r, "suspected_reward_hack", by_timer);
    else
        say(r, t->result.status == COMPARE_MUTATION ? "policy_violation" : "suspected_reward_hack", t->result.text);
    return 0;
}

static int failed(struct reply *r, const struct trial *t, struct err *e)
{
    const char *text = t->result.status == COMPARE_RUNTIME && t->result.text[0] ? t->result.text : e->text;
    say(r, e->code == ERR_TEMP ? "resource_exceeded" : "runtime_error", "");
    snprintf(r->text, sizeof r->text, "%.250s", text);
    return e->code == ERR_TEMP ? 0 : -1;
}

/* The whole check of one call. 0 go on, 1 it failed (the reply says how), -1. */
static int check(struct trial *t, struct reply *r, struct err *e)
{
    if (trial_check(t, e) != 0)
        return failed(r, t, e) < 0 ? -1 : 1;
    r->checked = t->result.tensors > 0;
    r->result = t->result;
    if (t->result.status == COMPARE_PASSED)
        return 0;
    say(r, compare_status_text(t->result.status), t->result.text);
    return t->result.status == COMPARE_RUNTIME ? -1 : 1;
}

/* Hold a call with everything queued, look on, and look again when all is over. */
static int hold(struct bench *b, struct bench_call *c, struct trial *t, struct err *e)
{
    t->hash_outputs = true;
    int rc = bench_held(b, c, 2e6, 0, trial_look, e);
    t->hash_outputs = false;
    return rc;
}

static int second_method(struct bench *b, struct bench_call *c, struct trial *t, struct reply *r, struct err *e)
{
    t->one_set = true;
    t->current = 0;
    int rc = bench_methods(b, c, GRAPH_SAMPLES, 100000, &r->methods, e);
    t->one_set = false;
    if (rc == 0 && r->methods.nodes < 1) {
        t->result.status = COMPARE_UNWRITTEN;
        snprintf(t->result.text, sizeof t->result.text, "did nothing while it was captured");
        rc = 1;
    }
    return rc;
}

static void keep(struct reply *r, const struct bench_block *block)
{
    r->samples = block->samples;
    r->throttled = block->throttled;
    r->complete = block->complete;
    r->half_width = block->half_width;
    for (int64_t i = 0; i < block->samples; i++) {
        r->ns[i] = block->sample[i].ns;
        r->cycles[i] = block->sample[i].cycles;
    }
}

/* Of a call in a child: the median by the clock outside of it. */
static double median_outer(const struct bench_block *block)
{
    double *ns = xmalloc((size_t)(block->samples + 1) * sizeof *ns);
    for (int64_t i = 0; i < block->samples; i++)
        ns[i] = block->sample[i].outer_ns;
    double median = stats_quantile(ns, block->samples, 0.5);
    free(ns);
    return median;
}

/* Two ways to measure the same must give the same. */
static bool methods_agree(const struct bench_methods *m)
{
    return fabs(m->graph_ns - m->stream_ns) <= fmax(agree * m->stream_ns, agree_node_ns * m->nodes);
}

static int timed_calls(struct bench *b, struct bench_call *c, struct trial *t, const struct request *q, struct reply *r, struct err *e)
{
    struct bench_limits limits = bench_defaults;
    struct bench_block block = { .sample = xmalloc(WIRE_SAMPLES_MAX * sizeof *block.sample), .room = WIRE_SAMPLES_MAX };
    if (q->control[0]) {
        limits.least_samples = 60;
        limits.cap_ns = 0;
    }
    limits.warm_ns = q->control[0] ? 1e6 : q->first ? 1e9 : limits.warm_ns;
    trial_choose(t, q->control[0] ? TRIAL_CHOSEN_MAX : 2, 1, t->set[0].size_bytes > (size_t)1 << 30 ? 20 : 60);
    int rc = bench_warm(b, c, limits.warm_ns, e);
    if (rc == 0)
        rc = bench_block(b, c, &limits, 1, &block, e);
    if (rc == 0) {
        keep(r, &block);
        if (c->remote)
            r->methods = (struct bench_methods){ median_outer(&block), stats_median(r->ns, r->samples), 1 };
    }
    free(block.sample);
    return rc;
}

/* All that has to do with the clock. 0, 1 (refused) or -1. */
static int time_calls(struct bench *b, struct trial *t, const struct request *q, struct reply *r, struct err *e)
{
    struct bench_call c = { trial_prepare, trial_enqueue, trial_after, trial_accept, t, NULL, NULL };
    int rc = q->whole ? hold(b, &c, t, e) : 0;
    if (rc == 0)
        rc = timed_calls(b, &c, t, q, r, e);
    if (rc == 0 && q->whole)
        rc = second_method(b, &c, t, r, e);
    if (rc == 0 && !q->control[0])
        rc = bench_source(b, &c, q->source_budget_ms, &r->source, e);
    r->timed = rc == 0;
    return rc;
}

/* The same for a call in a child. Every sample of it is held, and gets news while it is; the second method is the clock outside. */
static int time_guest(struct bench *b, struct trial *t, struct guest *g, const struct request *q, struct reply *r, struct err *e)
{
    struct bench_call c = { trial_prepare, trial_enqueue, trial_after, trial_accept, t, guest_remote(g), trial_renew };
    double round_ns = 0;
    t->hash_outputs = true;
    int rc = timed_calls(b, &c, t, q, r, e);
    if (rc == 0)
        rc = trial_last(t, e); /* before empty calls, which deliver once more what may no longer be there */
    if (rc == 0)
        rc = bench_outer(b, &c, EMPTY_SAMPLES, &round_ns, e);
    r->methods.graph_ns -= round_ns;
    if (rc == 0 && !q->control[0])
        rc = guest_source(g, q->source_budget_ms, &r->source);
    r->timed = rc == 0;
    return rc;
}

/* What the child's clock and the one outside say against each other. 0, or 1: the reply says how. */
static int judge_clocks(struct reply *r)
{
    double outer = r->methods.graph_ns, inner = r->methods.stream_ns;
    if (fabs(inner - outer) <= fmax(agree * outer, agree_clock_ns))
        return 0;
    say(r, inner < outer ? "suspected_reward_hack" : "incomplete_evidence", "");
    snprintf(r->text, sizeof r->text, "the child says %.1f us, the clock outside of it %.1f us", inner * 1e-3, outer * 1e-3);
    return 1;
}

static void note_device(struct nvml *nvml, struct reply *r)
{
    struct device_nvml d;
    nvml_read(nvml, &d);
    r->temperature_c = d.temperature_c;
    r->power_mw = d.power_mw;
    r->power_capped = nvml && nvml_power_capped(nvml);
}

static int run(const struct measurer *m, struct trial *t, struct guest *g, const struct request *q, struct reply *r, struct err *e)
{
    struct bench *b = m->bench;
    int rc = q->whole ? check(t, r, e) : 0;
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (g && b && !guest_remote(g)) {
        say(r, "incomplete_evidence", "the call waits for the device by itself: its device time cannot be told apart");
        return 0;
    }
    if (b)
        rc = g ? time_guest(b, t, g, q, r, e) : time_calls(b, t, q, r, e);
    else
        rc = trial_run(t, CPU_CALLS, q->control[0] ? TRIAL_CHOSEN_MAX : 2, e);
    r->compared = t->compared;
    note_device(m->nvml, r);
    if (rc == 0 && b)
        rc = trial_finish(t, e);
    if (rc != 0)
        return rc < 0 ? failed(r, t, e) : refused(r, t, b);
    if (g && b && judge_clocks(r) != 0)
        return 0;
    if (!b || q->control[0])
        say(r, "passed", "");
    else if (!r->complete)
        say(r, "incomplete_evidence", r->throttled ? "no clean samples: the clock was held down" : "the wall clock ended the block early");
    else if (!g && q->whole && !methods_agree(&r->methods))
        say(r, "incomplete_evidence", "two methods of timing disagree by more than 3%");
    else
        say(r, "passed", "");
    return 0;
}

/* What a request replays in place of the kernel. */
struct replayed {
    struct arena arena;
    struct bundle bundle;
    struct upstream *upstream;
};

/* 0, 1 (the reply says why not) or -1. */
static int begin_replay(const struct place *place, const struct request *q, struct replayed *p, struct implementation *by, struct reply *r, struct err *e)
{
    const struct driver *driver = strcmp(place->name, "cuda") == 0 ? driver_find(e) : NULL;
    if (!driver) {
        say(r, "runtime_error", e->text[0] ? e->text : "upstream's kernels need a GPU");
        return 1;
    }
    if (bundle_open(q->bundles, &q->bundle, q->work.operation, &p->arena, &p->bundle, e) == 0)
        p->upstream = upstream_open(q->bundles, &p->bundle, place, driver, &q->work, e);
    if (!p->upstream) {
        say(r, e->code == ERR_TEMP ? "resource_exceeded" : "runtime_error", e->text);
        return e->code == ERR_IO ? -1 : 1;
    }
    *by = upstream_implementation(p->upstream);
    return 0;
}

/* Whose code the child is to run. 0 or 1 (the reply says why not). */
static int begin_guest(const struct request *q, struct replayed *p, struct reply *r, struct err *e)
{
    if (bundle_open(q->bundles, &q->bundle, q->work.operation, &p->arena, &p->bundle, e) == 0)
        return 0;
    say(r, "runtime_error", e->text);
    return 1;
}

static int begin(const struct place *place, const struct request *q, struct control_state **control, struct implementation *by, struct reply *r,
    struct err *e)
{
    const char *reason = "";
    *by = compare_own(place);
    if (!place->has(q->work.operation)) {
        say(r, "compile_error", "no device code for the operation in this program");
        return 1;
    }
    if (place->setup(&q->work, &reason) != 0) {
        say(r, "runtime_error", reason);
        return 1;
    }
    if (q->control[0] && !q->child[0] && control_begin(q->control, place, control, by, e) != 0) {
        say(r, "policy_violation", "no such control");
        return 1;
    }
    return 0;
}

/* ---- a child in place of the kernel ---- */

/* The child of a request: the one that is there, or a new one. What has been dishonest never runs upstream's code. */
static struct child *child_for(struct measurer *m, const struct request *q, struct err *e)
{
    if (m->child && (child_state(m->child) != CHILD_ALIVE || (m->dishonest && !q->control[0]))) {
        child_end(m->child);
        m->child = NULL;
    }
    if (!m->child)
        m->child = child_start(q->child, child_seconds, e);
    m->dishonest = q->control[0];
    return m->child;
}

/* What became of the child is what became of the block. */
static void say_guest(struct reply *r, const struct measurer *m, const struct err *why)
{
    bool timeout = m->child && child_state(m->child) == CHILD_TIMEOUT, memory = !timeout && why->code == ERR_TEMP;
    r->timed = false;
    r->samples = 0;
    say(r, timeout ? "timeout" : memory ? "resource_exceeded" : "runtime_error", why->text);
}

/* The files that the child found before it ran any are those that the bundle was made with. */
static bool same_files(const struct child *child, const struct bundle *b, struct err *e)
{
    const char *files = json_string_value(json_object_get(child_hello(child), "files"));
    struct digest d;
    if (files && digest_parse(files, strlen(files), &d) && digest_cmp(&d, &b->files) == 0)
        return true;
    err_set(e, ERR_UNAVAILABLE, "the child has other files of liger-kernel than its bundle was captured with");
    return false;
}

static int run_guest(struct measurer *m, struct trial *t, const struct bundle *b, const struct request *q, struct reply *r, struct err *e)
{
    struct child *child = child_for(m, q, e);
    bool fit = child && (q->control[0] || same_files(child, b, e));
    struct guest *g = fit ? guest_open(child, q->control[0] ? "" : b->provider, q->control, t, e) : NULL;
    if (!g) {
        say_guest(r, m, e);
        return 0;
    }
    t->by = guest_implementation(g);
    int rc = run(m, t, g, q, r, e);
    if (guest_error(g)->code != ERR_NONE) {
        say_guest(r, m, guest_error(g));
        rc = 0;
    }
    guest_close(g);
    return rc;
}

/* ---- a block ---- */

static int run_block(struct measurer *m, const struct request *q, const struct tolerance by_tensor[], struct reply *r, struct err *e)
{
    struct control_state *control = NULL;
    struct replayed replayed = { 0 };
    struct implementation by;
    struct trial t = { 0 };
    const struct place *place = q->child[0] ? place_shared(m->place) : m->place;
    size_t memory = q->memory_bytes > 0 ? (size_t)q->memory_bytes : SIZE_MAX / 4;
    if (begin(place, q, &control, &by, r, e) != 0)
        return 0;
    int rc = 0;
    if (q->bundles[0])
        rc = q->child[0] ? begin_guest(q, &replayed, r, e) : begin_replay(place, q, &replayed, &by, r, e);
    if (rc == 0) {
        rc = trial_init(&t, place, &q->work, q->pass, by, by_tensor, q->seed, memory, e);
        t.host_delay_us = q->host_delay_us;
        rc = rc != 0 ? failed(r, &t, e) : q->child[0] ? run_guest(m, &t, &replayed.bundle, q, r, e) : run(m, &t, NULL, q, r, e);
    }
    control_end(control);
    upstream_close(replayed.upstream);
    arena_fini(&replayed.arena);
    if (t.place)
        trial_fini(&t);
    return rc < 0 ? -1 : 0;
}

int measure_block(struct measurer *m, const struct request *q, struct reply *r, struct err *e)
{
    struct tolerance by_tensor[KI_MAX_TENSORS];
    struct trial none = { 0 };
    r->methods = (struct bench_methods){ NAN, NAN, 0 };
    r->tensor_bytes = (int64_t)tensors_size_bytes(&q->work, KI_BIT(q->pass));
    if (tolerances_of(m->tolerances, &q->work, q->bundles[0] != 0, by_tensor, e) != 0)
        return failed(r, &none, e);
    if (!m->bench && r->tensor_bytes > CPU_BYTES_MAX) {
        say(r, "resource_exceeded", "too large for the CPU device");
        return 0;
    }
    return run_block(m, q, by_tensor, r, e);
}
