#include "verify/batch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/when.h"
#include "verify/sentinel.h"
#include "verify/stats.h"
#include "verify/watch.h"

enum { SENTINELS_EVERY = 16 };
static const double device_seconds = 120, control_seconds = 30, child_control_seconds = 150;
static const double source_ms = 50; /* of the source's protocol in a block; there are five */

/* A batch while it runs. */
struct running {
    struct batch *batch;
    struct watch watch;
    struct nvml *nvml;
    bool gone; /* no usable device any more */
    int64_t begin_ns;
    bool late; /* out of time */
};

static void tell(const struct batch *b, const char *format, const char *what, const char *how)
{
    char line[600];
    if (!b->options.progress)
        return;
    snprintf(line, sizeof line, format, what, how);
    b->options.progress(b->options.progress_state, line);
}

static void make_void(struct batch *b, const char *format, const char *what)
{
    if (!b->void_reason[0])
        snprintf(b->void_reason, sizeof b->void_reason, format, what);
}

static void random_hex(char *out, size_t bytes)
{
    unsigned char raw[32] = { 0 };
    if (getrandom(raw, bytes, 0) != (ssize_t)bytes)
        memset(raw, 0x5a, sizeof raw);
    for (size_t i = 0; i < bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

static struct request request_of(enum ask ask)
{
    struct request q = { .ask = ask };
    random_hex(q.nonce, 16);
    return q;
}

/* Ask, and give the device up when no process can be started. */
static int ask(struct running *r, const struct request *q, double seconds, struct reply *reply, double *wall_ns)
{
    struct err e = { 0 };
    if (!r->gone && watch_ask(&r->watch, q, seconds, &r->batch->arena, reply, wall_ns, &e) == 0)
        return 0;
    r->gone = true;
    *reply = (struct reply){ .text = "no measured process can be started any more" };
    memcpy(reply->nonce, q->nonce, sizeof reply->nonce);
    snprintf(reply->status, sizeof reply->status, "runtime_error");
    return -1;
}

static bool passed(const struct reply *r)
{
    return strcmp(r->status, "passed") == 0;
}

/* What the device is; after a process was lost, whether it is still there. */
static int ask_device(struct running *r, struct device_cuda *out, char *why, size_t why_size)
{
    struct request q = request_of(ASK_DEVICE);
    struct reply reply;
    double wall_ns;
    int rc = ask(r, &q, device_seconds, &reply, &wall_ns);
    if (rc == 0 && passed(&reply)) {
        *out = reply.device;
        return 0;
    }
    snprintf(why, why_size, "%s", reply.text);
    return -1;
}

static void read_sentinels(struct running *r)
{
    struct batch *b = r->batch;
    struct request q = request_of(ASK_SENTINELS);
    struct reply reply;
    double wall_ns;
    if (!b->timed || r->gone || b->sentinels == BATCH_SENTINELS_MAX)
        return;
    ask(r, &q, device_seconds, &reply, &wall_ns);
    if (passed(&reply))
        b->sentinel[b->sentinels++] = reply.sentinels;
    else
        make_void(b, "sentinels could not be read: %.200s", reply.text);
}

/* Whether a control came to the end that it has to come to. */
static bool is_refused(const struct control *c, const struct reply *r)
{
    if (c->number == CONTROL_KILLED)
        return strcmp(r->status, "runtime_error") == 0 && strstr(r->text, "killed by signal");
    if (c->number == CONTROL_HUNG)
        return strcmp(r->status, "timeout") == 0;
    if (c->number == CONTROL_TIMER && c->child) /* its results are right */
        return strcmp(r->status, "suspected_reward_hack") == 0 && strstr(r->text, "clock outside");
    return strcmp(r->status, "suspected_reward_hack") == 0 || strcmp(r->status, "policy_violation") == 0
        || strcmp(r->status, "incorrect_numerical") == 0;
}

/* Run one control and note how it was refused. */
static void run_control(struct running *r, const struct control *c)
{
    struct batch *b = r->batch;
    struct control_outcome *o = &b->control[b->controls++];
    struct request q = request_of(ASK_BLOCK);
    struct reply reply;
    double wall_ns;
    *o = (struct control_outcome){ .control = c };
    q.pass = KI_FORWARD;
    q.whole = true;
    q.seed = 11;
    q.source_budget_ms = 1;
    snprintf(q.control, sizeof q.control, "%s", c->name);
    if (c->child)
        snprintf(q.child, sizeof q.child, "%s", b->options.child);
    if (control_case(b->options.device, &q.work) != 0)
        return;
    ask(r, &q, c->child ? child_control_seconds : control_seconds, &reply, &wall_ns);
    bool forges = c->number == CONTROL_FORGED;
    struct ki_floor floor = q.work.operation->floor(&q.work, q.pass);
    double light = b->timed ? light_ns(&floor, &b->hardware.peak, (double)b->cuda.l2_bytes) : 0;
    const char *forged = reply_check(&q, &reply, wall_ns, forges ? light : 0);
    o->ran = true;
    if (forges && !c->child) {
        o->refused = forged != NULL;
        snprintf(o->how, sizeof o->how, "%s", forged ? forged : "the answer was believed");
    } else {
        o->refused = is_refused(c, &reply) || (forges && forged);
        snprintf(o->how, sizeof o->how, "%.200s", forges && forged ? forged : reply.text[0] ? reply.text : reply.status);
    }
    tell(b, o->refused ? "control %s: refused, %s" : "control %s: ACCEPTED, %s", c->name, o->how);
    if (!o->refused)
        make_void(b, "the control %s was not refused", c->name);
}

static void run_controls(struct running *r)
{
    const struct batch *b = r->batch;
    bool child = false;
    for (int i = 0; i < b->outcomes; i++)
        child = child || b->outcome[i].job->by_child;
    for (size_t i = 0; control_at(i); i++)
        if ((b->timed || !control_at(i)->needs_cuda) && (child || !control_at(i)->child))
            run_control(r, control_at(i));
}

static double light_here(const struct batch *b, const struct job *j)
{
    struct ki_floor floor = j->work.operation->floor(&j->work, j->pass);
    return b->timed ? light_ns(&floor, &b->hardware.peak, (double)b->cuda.l2_bytes) : 0;
}

static void keep_block(struct outcome *o, const struct reply *r)
{
    struct block *k = &o->block[o->blocks++];
    double mhz = 0;
    *k = (struct block){ .samples = r->samples, .throttled = r->throttled, .compared = r->compared, .ns = r->ns, .cycles = r->cycles,
        .half_width = r->half_width, .source = r->source, .power_capped = r->power_capped, .temperature_c = r->temperature_c,
        .power_mw = r->power_mw };
    k->median_ns = stats_median(r->ns, r->samples);
    for (int64_t i = 0; i < r->samples; i++)
        mhz += r->cycles[i] / r->ns[i] * 1e3 / (double)r->samples;
    k->clock_mhz = mhz;
}

/* Take a reply into the outcome of its job. */
static void settle(struct batch *b, struct outcome *o, const struct request *q, const struct reply *r, double wall_ns)
{
    const char *forged = reply_check(q, r, wall_ns, light_here(b, o->job));
    snprintf(o->status, sizeof o->status, "%s", forged ? "suspected_reward_hack" : r->status);
    snprintf(o->text, sizeof o->text, "%s", forged ? forged : r->text);
    o->compared += r->compared;
    if (r->checked) {
        o->checked = true;
        o->check = r->result;
    }
    if (q->whole) {
        o->methods = r->methods;
        o->tensor_bytes = r->tensor_bytes;
    }
    if (!forged && passed(r) && r->timed)
        keep_block(o, r);
}

/* The job and the round decide what the inputs are. Below 2^52, so that JSON can hold it. */
static uint64_t seed_of(const struct job *j, int round)
{
    uint64_t head;
    memcpy(&head, j->digest.bytes, sizeof head);
    return draw_bits(head, (uint64_t)round) >> 12;
}

/* A process was lost, or ended itself because its device failed: is the device still there? */
static void look_for_device(struct running *r)
{
    struct device_cuda now;
    char why[256];
    if (r->gone || !r->batch->timed || r->watch.pid || ask_device(r, &now, why, sizeof why) == 0)
        return;
    r->gone = true;
    make_void(r->batch, "the GPU is gone: %.200s", why);
}

/* One block of one case. */
static void run_case(struct running *r, struct outcome *o, int round, bool first)
{
    struct batch *b = r->batch;
    struct request q = request_of(ASK_BLOCK);
    struct reply reply;
    double wall_ns = 0;
    q.work = o->job->work;
    q.pass = o->job->pass;
    q.seed = seed_of(o->job, round);
    q.memory_bytes = o->job->memory_bytes ? o->job->memory_bytes : b->timed ? b->cuda.memory_bytes / 20 * 17 : 0;
    q.source_budget_ms = o->job->source_budget_ms < source_ms ? o->job->source_budget_ms : source_ms;
    q.host_delay_us = b->options.host_delay_us;
    q.first = first;
    q.whole = round == 0;
    if (o->job->bundle) {
        snprintf(q.bundles, sizeof q.bundles, "%s", b->options.bundles);
        q.bundle = o->job->bundle->digest;
        snprintf(q.child, sizeof q.child, "%s", o->job->by_child ? b->options.child : "");
    }
    if (round == 0)
        o->observed_ms = when_now_ms();
    ask(r, &q, o->job->wall_seconds, &reply, &wall_ns);
    settle(b, o, &q, &reply, wall_ns);
    if (strcmp(o->status, "passed") != 0)
        tell(b, "%s: %s", job_title(o->job, &b->arena), o->text[0] ? o->text : o->status);
    look_for_device(r);
}

static bool is_late(struct running *r)
{
    const struct batch *b = r->batch;
    double spent = (double)(when_monotonic_ns() - r->begin_ns) * 1e-9;
    if (b->options.budget_seconds > 0 && spent > b->options.budget_seconds && !r->late) {
        tell(b, "out of time: no further block begins%s%s", "", "");
        r->late = true;
    }
    return r->late;
}

/* One round in a fresh process. Where a round begins moves on, so that no case is always the first. */
static void run_round(struct running *r, int round)
{
    struct batch *b = r->batch;
    char which[32];
    snprintf(which, sizeof which, "%d of %d", round + 1, b->timed ? b->options.rounds : 1);
    tell(b, "round %s%s", which, "");
    read_sentinels(r);
    if (round == 0)
        run_controls(r);
    for (int i = 0; i < b->outcomes; i++) {
        struct outcome *o = &b->outcome[(i + round * b->outcomes / b->options.rounds) % b->outcomes];
        if (b->options.step)
            b->options.step(b->options.progress_state, round * b->outcomes + i, (b->timed ? b->options.rounds : 1) * b->outcomes);
        if (strcmp(o->status, "passed") == 0 && !is_late(r))
            run_case(r, o, round, round == 0 && i == 0);
        if (i % SENTINELS_EVERY == SENTINELS_EVERY - 1 && i + 1 < b->outcomes)
            read_sentinels(r);
    }
    read_sentinels(r);
    watch_end(&r->watch);
}

static int open_device(struct running *r, struct err *e)
{
    struct batch *b = r->batch;
    char why[256], path[4096];
    device_host_read(&b->host);
    snprintf(path, sizeof path, "%s/env-v1.json", b->options.config);
    if (equivalence_load(path, &b->arena, &b->equivalence, e) != 0)
        return -1;
    if (!b->timed)
        return 0;
    if (ask_device(r, &b->cuda, why, sizeof why) != 0)
        return err_set(e, ERR_UNAVAILABLE, "%s", why);
    r->nvml = nvml_open(b->cuda.pci_bus);
    nvml_read(r->nvml, &b->nvml);
    nvml_health(r->nvml, &b->before);
    snprintf(path, sizeof path, "%s/hardware.json", b->options.config);
    return hardware_find(path, b->cuda.name, b->cuda.major, b->cuda.minor, &b->arena, &b->hardware, e);
}

/* What the batch as a whole says about itself. */
static void close_device(struct running *r)
{
    struct batch *b = r->batch;
    nvml_health(r->nvml, &b->after);
    if (b->after.xid > b->before.xid)
        make_void(b, "the driver reported an error (Xid) during the batch%s", "");
    if (b->after.ecc_uncorrected > b->before.ecc_uncorrected)
        make_void(b, "uncorrected memory errors during the batch%s", "");
    if (b->options.host_delay_us > 0)
        make_void(b, "a host delay was planted%s", "");
    const char *drift = b->timed ? sentinels_check(b->sentinel, b->sentinels) : NULL;
    if (drift)
        make_void(b, "%s", drift);
    nvml_close(r->nvml);
}

static void prepare_outcomes(struct batch *b, const struct job *jobs, int n)
{
    b->outcome = arena_alloc(&b->arena, ((size_t)n + 1) * sizeof *b->outcome);
    b->outcomes = n;
    for (int i = 0; i < n; i++) {
        b->outcome[i].job = &jobs[i];
        b->outcome[i].methods = (struct bench_methods){ NAN, NAN, 0 };
        snprintf(b->outcome[i].status, sizeof b->outcome[i].status, "passed");
    }
}

int batch_run(struct batch *b, const struct batch_options *options, const struct job *jobs, int n, struct err *e)
{
    struct command command = { .count = 0 };
    *b = (struct batch){ .options = *options, .timed = strcmp(options->device, "cuda") == 0 };
    struct running r = { .batch = b, .begin_ns = when_monotonic_ns() };
    random_hex(b->id, 16);
    prepare_outcomes(b, jobs, n);
    command_add(&command, options->worker);
    command_add(&command, "worker");
    command_add(&command, options->device);
    command_add(&command, options->config);
    watch_init(&r.watch, &command);
    int rc = open_device(&r, e);
    for (int round = 0; round < (b->timed ? options->rounds : 1) && rc == 0; round++)
        run_round(&r, round);
    b->processes = r.watch.starts;
    watch_fini(&r.watch);
    close_device(&r);
    return rc;
}

void batch_fini(struct batch *b)
{
    arena_fini(&b->arena);
}

int batch_refused(const struct batch *b)
{
    int n = 0;
    for (int i = 0; i < b->controls; i++)
        n += b->control[i].refused;
    return n;
}

double *batch_pool(const struct outcome *o, struct arena *a, int64_t count[VERDICT_BLOCKS_MAX], int64_t *total)
{
    *total = 0;
    for (int i = 0; i < o->blocks; i++) {
        count[i] = o->block[i].samples;
        *total += count[i];
    }
    double *all = arena_alloc(a, (size_t)(*total + 1) * sizeof *all), *at = all;
    for (int i = 0; i < o->blocks; i++) {
        memcpy(at, o->block[i].ns, (size_t)count[i] * sizeof *all);
        at += count[i];
    }
    return all;
}
