#include "verify/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "verify/control.h"
#include "verify/measure.h"
#include "verify/sentinel.h"

struct worker {
    struct measurer m;
    double *ns, *cycles;
};

static void say(struct reply *r, const char *status, const char *text)
{
    snprintf(r->status, sizeof r->status, "%s", status);
    snprintf(r->text, sizeof r->text, "%.250s", text);
}

static int answer_device(const struct worker *w, struct reply *r, struct err *e)
{
    if (strcmp(w->m.place->name, "cuda") != 0 || !device_cuda_read) {
        say(r, "runtime_error", "the device is not a GPU");
        return 0;
    }
    if (device_cuda_read(&r->device, e) != 0) {
        say(r, "runtime_error", e->text);
        return -1;
    }
    say(r, "passed", "");
    return 0;
}

static int open_bench(struct worker *w, struct reply *r, struct err *e)
{
    struct device_cuda d;
    if (w->m.bench || strcmp(w->m.place->name, "cuda") != 0)
        return 0;
    if (device_cuda_read(&d, e) == 0) {
        w->m.nvml = nvml_open(d.pci_bus);
        w->m.bench = bench_open(w->m.nvml ? nvml_throttle : NULL, w->m.nvml, e);
    }
    if (w->m.bench)
        return 0;
    say(r, e->code == ERR_TEMP ? "resource_exceeded" : "runtime_error", e->text);
    return -1;
}

static int answer_sentinels(const struct worker *w, struct reply *r, double stretch, struct err *e)
{
    r->sentinels = (struct sentinels){ .empty_ns = NAN, .copy_gbps = NAN, .matmul_tflops = NAN, .slope = NAN };
    if (!w->m.bench) {
        say(r, "passed", "the CPU device times nothing");
        return 0;
    }
    if (sentinels_read(w->m.bench, stretch, &r->sentinels, e) != 0) {
        say(r, "runtime_error", e->text);
        return -1;
    }
    say(r, "passed", "");
    return 0;
}

/* Control 5: the same reading with a clock that is off by 1% must fall outside of the limits. */
static int answer_wrong_timer(const struct worker *w, struct reply *r, struct err *e)
{
    if (answer_sentinels(w, r, 1.01, e) != 0)
        return -1;
    const struct sentinels twice[2] = { r->sentinels, r->sentinels };
    const char *why = sentinels_check(twice, 2);
    say(r, why ? "suspected_reward_hack" : "passed", why ? why : "");
    return 0;
}

/* Control 6: a block that never ran. The watchdog has to find out. */
static int answer_forged(const struct worker *w, const struct request *q, struct reply *r)
{
    bool few = strcmp(q->control, "forged_samples") == 0, slow = strcmp(q->control, "forged_time") == 0;
    r->samples = few ? 3 : 400;
    for (int64_t i = 0; i < r->samples; i++) {
        r->ns[i] = slow ? 1e10 : 120;
        r->cycles[i] = 200;
    }
    if (strcmp(q->control, "forged_nonce") == 0)
        r->nonce[0] = r->nonce[0] == '0' ? '1' : '0';
    r->timed = r->complete = true;
    r->source = (struct bench_source){ 130, 120, 140, 5000, 80000, 400 };
    say(r, "passed", "");
    (void)w;
    return 0;
}

static int answer_block(struct worker *w, const struct request *q, struct reply *r, struct err *e)
{
    const struct control *control = q->control[0] && !q->child[0] ? control_find(q->control) : NULL;
    r->ns = w->ns;
    r->cycles = w->cycles;
    r->methods = (struct bench_methods){ NAN, NAN, 0 };
    r->half_width = NAN;
    if (control && control->number == CONTROL_FORGED)
        return answer_forged(w, q, r);
    if (open_bench(w, r, e) != 0)
        return -1;
    if (control && control->number == CONTROL_TIMER)
        return answer_wrong_timer(w, r, e);
    return measure_block(&w->m, q, r, e);
}

/* One request and its answer. 0 go on, 1 the device failed and the reply says so, -1 nobody can be answered. */
static int answer(struct worker *w, struct slice line, struct err *e)
{
    struct request q;
    struct reply r = { .text = "" };
    struct buf out = { 0 };
    struct err own = { 0 };
    if (wire_read_request(line, &q, e) != 0)
        return -1;
    memcpy(r.nonce, q.nonce, sizeof r.nonce);
    int rc = q.ask == ASK_DEVICE  ? answer_device(w, &r, &own)
        : q.ask == ASK_SENTINELS ? (open_bench(w, &r, &own) != 0 ? -1 : answer_sentinels(w, &r, 1, &own))
                                 : answer_block(w, &q, &r, &own);
    wire_put_reply(q.ask, &r, &out);
    int written = file_write_all(STDOUT_FILENO, out.data, out.len, "reply", e);
    buf_fini(&out);
    return written != 0 ? -1 : rc != 0;
}

int worker_run(const char *device, const char *config, struct err *e)
{
    char path[4096], *line = NULL;
    size_t room = 0;
    ssize_t n;
    int rc = 0;
    struct worker w = { .m.place = place_find(device) };
    struct tolerances *tolerances;
    if (!w.m.place)
        return err_set(e, ERR_UNAVAILABLE, "no %s device in this program: built without nvcc", device);
    snprintf(path, sizeof path, "%s/tolerances.json", config);
    w.m.tolerances = tolerances = tolerances_load(path, e);
    if (!tolerances)
        return -1;
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    w.ns = xcalloc(WIRE_SAMPLES_MAX, sizeof *w.ns);
    w.cycles = xcalloc(WIRE_SAMPLES_MAX, sizeof *w.cycles);
    while (rc == 0 && (n = getline(&line, &room, stdin)) > 0)
        rc = answer(&w, (struct slice){ line, (size_t)n }, e);
    if (w.m.bench && rc == 0)
        bench_close(w.m.bench); /* a failed device is not waited for */
    nvml_close(w.m.nvml);
    child_end(w.m.child);
    tolerances_free(tolerances);
    free(line);
    free(w.ns);
    free(w.cycles);
    return rc < 0 ? -1 : 0;
}
