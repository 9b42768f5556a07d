#include "verify/campaign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "core/when.h"

enum { DONE_MAX = 16 << 20 };
static const double guess_seconds = 4; /* a job, before any has been run: docs/verify.md */

/* Job digests that are done, sorted. */
struct done {
    struct digest *list;
    size_t count;
};

static int compare(const void *a, const void *b)
{
    return digest_cmp(a, b);
}

/* The last line may be cut off: then its job is run again. */
static int read_done(const char *path, struct arena *a, struct done *d, struct err *e)
{
    struct buf text = { 0 };
    *d = (struct done){ 0 };
    if (!file_exists(path))
        return 0;
    if (file_read(path, DONE_MAX, &text, e) != 0)
        return -1;
    d->list = arena_alloc(a, sizeof *d->list * (text.len / (DIGEST_TEXT + 1) + 1));
    for (size_t at = 0; at + DIGEST_TEXT + 1 <= text.len; at += DIGEST_TEXT + 1)
        if (digest_parse(text.data + at, DIGEST_TEXT, &d->list[d->count]))
            d->count++;
    buf_fini(&text);
    if (d->count)
        qsort(d->list, d->count, sizeof *d->list, compare);
    return 0;
}

static bool is_done(const struct done *d, const struct job *j)
{
    return d->count && bsearch(&j->digest, d->list, d->count, sizeof *d->list, compare);
}

static int append_done(const char *path, const struct job *jobs, int n, struct err *e)
{
    struct buf all = { 0 };
    char text[DIGEST_TEXT + 1];
    int rc = file_exists(path) ? file_read(path, DONE_MAX, &all, e) : 0;
    all.len -= all.len % (DIGEST_TEXT + 1);
    for (int i = 0; i < n; i++) {
        digest_text(&jobs[i].digest, text);
        buf_printf(&all, "%s\n", text);
    }
    if (rc == 0)
        rc = file_write(path, all.data, all.len, 0644, e);
    buf_fini(&all);
    return rc;
}

static bool is_ours(const struct campaign *c, const struct job *j)
{
    uint64_t head;
    memcpy(&head, j->digest.bytes, sizeof head);
    return c->shards == 0 || (int)(head % (uint64_t)c->shards) == c->shard - 1;
}

/* Those of the shard that are not done, in order, at the front of the list. */
static int choose(const struct campaign *c, const struct done *d, struct job *jobs, int n)
{
    int left = 0;
    for (int i = 0; i < n; i++)
        if (is_ours(c, &jobs[i]) && !is_done(d, &jobs[i]))
            jobs[left++] = jobs[i];
    return left;
}

static void tell(int done, int all, double each_seconds)
{
    double minutes = each_seconds * (all - done) / 60;
    log_info("campaign: %d of %d jobs, %.1f s a job, about %.0f min left", done, all, each_seconds, ceil(minutes));
}

int campaign_run(const struct campaign *c, const struct run *r, struct arena *a, struct err *e)
{
    struct done done;
    int n = 0, skipped = 0, rc = 0, at = 0;
    double each = guess_seconds;
    const char *path = arena_printf(a, "%s/done", r->out);
    int64_t begin = when_monotonic_ns();
    struct job *jobs = run_read_jobs(c->jobs, r, a, &n, &skipped, e);
    if (!jobs || read_done(path, a, &done, e) != 0)
        return -1;
    int left = choose(c, &done, jobs, n);
    log_info("campaign: %d jobs to run, %zu done before", left, done.count);
    while (at < left && rc == 0) {
        int count = left - at < c->chunk ? left - at : c->chunk;
        double spent = (double)(when_monotonic_ns() - begin) * 1e-9;
        if (c->budget_seconds > 0 && spent + each * count > c->budget_seconds) {
            log_info("campaign: out of time with %d jobs left; the same command goes on", left - at);
            break;
        }
        rc = run_batch(r, jobs + at, count, e);
        if (rc == 0)
            rc = append_done(path, jobs + at, count, e);
        at += count;
        each = (double)(when_monotonic_ns() - begin) * 1e-9 / at;
        if (rc == 0)
            tell(at, left, each);
    }
    if (rc == 0 && skipped)
        rc = err_set(e, ERR_PARTIAL, "%d of %d job lines could not be run", skipped, skipped + n);
    return rc;
}
