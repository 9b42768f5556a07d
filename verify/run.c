#include "verify/run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/when.h"
#include "verify/evidence.h"
#include "verify/manifest.h"

enum { JOBS_MAX = 100000, FILE_MAX_BYTES = 1 << 30 };

/* What a job of runner upstream is replayed from, or what its child is held to. */
static int find_bundle(const struct run *r, struct job *j, struct arena *a, struct err *e)
{
    struct bundle_key key = { j->kernel, j->provider, j->commit, j->version, j->pass, j->workload };
    if (!r->bundles)
        return err_set(e, ERR_UNAVAILABLE, "%s: running upstream's code needs --bundles DIR (verify/capture.py writes them)", j->external_id);
    struct bundle *b = arena_alloc(a, sizeof *b);
    if (bundle_find(r->bundles, &key, j->work.operation, a, b, e) != 0)
        return -1;
    const char *unfit = bundle_unfit(b, &j->work, j->pass);
    j->bundle = b;
    j->by_child = r->child && (unfit || r->only_child);
    if (!unfit || j->by_child)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "%s: its bundle cannot be replayed: %s%s%s; --child verify/child.py runs it", j->external_id, unfit,
        b->foreign[0] ? ", first " : "", b->foreign);
}

struct job *run_read_jobs(const char *path, const struct run *r, struct arena *a, int *n, int *skipped, struct err *e)
{
    struct buf text = { 0 };
    struct job *jobs = NULL;
    unsigned line = 0;
    if (file_read(path, FILE_MAX_BYTES, &text, e) != 0)
        return NULL;
    jobs = arena_alloc(a, sizeof *jobs * (JOBS_MAX + 1));
    for (char *at = text.data, *end; at && at < text.data + text.len && *n < JOBS_MAX; at = end + 1) {
        struct err own = { 0 };
        end = memchr(at, '\n', (size_t)(text.data + text.len - at));
        end = end ? end : text.data + text.len;
        line++;
        if (end == at)
            continue;
        if (job_read((struct slice){ at, (size_t)(end - at) }, path, line, a, &jobs[*n], &own) == 0
            && (jobs[*n].native || find_bundle(r, &jobs[*n], a, &own) == 0))
            (*n)++;
        else {
            log_failure(&own);
            (*skipped)++;
        }
    }
    buf_fini(&text);
    return jobs;
}

static void print_outcome(const struct outcome *o, const struct evidence *v, struct arena *a)
{
    printf("%-52s %-21s", job_title(o->job, a), v->status);
    if (v->timing.samples)
        printf(" %10.2f us  src %10.2f  h %6.1f  %-6s %5.0f GB/s %4.2f", v->timing.median * 1e-3, v->t_src_ns * 1e-3, v->h_ns * 1e-3,
            rerun_class_text(v->verdict.class), v->gbps, v->copy_share > 0 ? v->copy_share : 0);
    printf("  %s%s%s\n", verdict_text(v->verdict.code), o->text[0] ? ": " : "", o->text);
}

static int write_evidence(struct batch *b, const struct run *o, struct err *e)
{
    struct buf payload = { 0 }, envelope = { 0 };
    struct file_out *file = file_begin(arena_printf(&b->arena, "%s/evidence-%s.jsonl", o->out, b->id), 0644, e);
    int rc = file ? 0 : -1;
    for (int i = 0; i < b->outcomes && rc == 0; i++) {
        struct evidence v;
        buf_clear(&payload);
        buf_clear(&envelope);
        rc = evidence_statement(b, i, o->out, &payload, &v, e);
        if (rc == 0)
            rc = sign_envelope((struct slice){ payload.data, payload.len }, SIGN_PAYLOAD_TYPE, o->key, o->keys, &envelope, e);
        buf_char(&envelope, '\n');
        if (rc == 0)
            rc = file_add(file, envelope.data, envelope.len, e);
        if (rc == 0)
            print_outcome(&b->outcome[i], &v, &b->arena);
    }
    buf_fini(&payload);
    buf_fini(&envelope);
    if (rc != 0) {
        file_abort(file);
        return -1;
    }
    return file_commit(file, e);
}

/* What goes on, for whoever looks. */
struct looking {
    bool terminal;
    int64_t begin_ns;
};

static void wipe(const struct looking *l)
{
    if (l->terminal)
        fputs("\r\033[K", stderr);
}

static void progress(void *state, const char *line)
{
    wipe(state);
    log_info("%s", line);
}

static void step(void *state, int blocks, int all)
{
    const struct looking *l = state;
    double spent = (double)(when_monotonic_ns() - l->begin_ns) * 1e-9;
    if (!l->terminal)
        return;
    wipe(l);
    fprintf(stderr, "block %d of %d", blocks + 1, all);
    if (blocks)
        fprintf(stderr, ", about %.0f s left", spent / blocks * (all - blocks));
}

static int environment_of(struct batch *b, struct err *e)
{
    return b->timed ? manifest_environment(&b->cuda, &b->nvml, &b->host, &b->hardware, &b->arena, &b->environment, e)
                    : manifest_environment_cpu(&b->host, &b->arena, &b->environment, e);
}

int run_batch(const struct run *o, const struct job *jobs, int n, struct err *e)
{
    struct batch b;
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = 0;
    struct looking looking = { o->terminal, when_monotonic_ns() };
    struct batch_options options = { .device = o->device, .config = o->config, .bundles = o->bundles, .child = o->child, .worker = o->worker ? o->worker : self,
        .rounds = o->rounds, .budget_seconds = o->batch_seconds, .host_delay_us = o->host_delay_us, .progress = progress, .step = step, .progress_state = &looking };
    int rc = batch_run(&b, &options, jobs, n, e);
    wipe(&looking);
    if (rc == 0)
        rc = environment_of(&b, e);
    if (rc == 0)
        rc = write_evidence(&b, o, e);
    if (rc == 0) {
        printf("batch %s: %d jobs, %d processes, %d controls refused of %d%s%s\n", b.id, b.outcomes, b.processes,
            batch_refused(&b), b.controls, b.void_reason[0] ? "; VOID: " : "", b.void_reason);
        if (!b.timed)
            printf("the CPU device checks results and times nothing\n");
    }
    batch_fini(&b);
    return rc;
}
