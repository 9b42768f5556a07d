/* The watchdog and the batch, with this very program as the measured process (`test_verify_batch worker cuda CONFIG`), because there is no
 * GPU here: it answers as a GPU host would, or hangs, dies, lies and drifts as $PLAY says. What it is asked for, what becomes of
 * each case, when a batch is void, what is signed and what a replay makes of it are the real thing. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "core/sign.h"
#include "verify/batch.h"
#include "verify/evidence.h"
#include "verify/manifest.h"
#include "verify/sentinel.h"
#include "verify_jobs.h"

/* ---- the measured process ---- */

static bool play(const char *what)
{
    const char *p = getenv("PLAY");
    return p && strcmp(p, what) == 0;
}

static void answer_device(struct reply *r)
{
    r->device = (struct device_cuda){ .name = "NVIDIA H200", .uuid = "GPU-00", .pci_bus = "0000:00:00.0", .compiler = "nvcc 13.0.88", .cublas = "13.0.2",
        .major = 9, .minor = 0, .multiprocessors = 132, .runtime = 13000, .driver = 13000, .memory_bytes = 150000000000, .l2_bytes = 62914560, .ecc = true };
    if (play("gone") && getenv("GONE_FILE") && access(getenv("GONE_FILE"), F_OK) == 0)
        snprintf(r->status, sizeof r->status, "runtime_error"), snprintf(r->text, sizeof r->text, "no usable GPU here");
}

static void answer_sentinels(struct reply *r, int n)
{
    r->sentinels = (struct sentinels){ 3000, play("drift") && n > 3 ? 3000 : 4200, 780, { 12800, 52800, 202800, 1002800 }, play("clock") ? 1.006 : 1.0001, 1980 };
}

static bool control_is(const struct request *q, const char *name)
{
    return strcmp(q->control, name) == 0;
}

static void answer_control(const struct request *q, struct reply *r)
{
    bool accepted = play("accept") && control_is(q, "zeros");
    snprintf(r->status, sizeof r->status, "%s", accepted ? "passed" : "suspected_reward_hack");
    snprintf(r->text, sizeof r->text, "%s", accepted ? "" : "found out");
    if (q->control[0] == 'f' && q->control[1] == 'o') { /* forged_… */
        r->timed = r->complete = true;
        r->samples = control_is(q, "forged_samples") ? 3 : 400;
        for (int64_t i = 0; i < r->samples; i++)
            r->ns[i] = control_is(q, "forged_time") ? 1e10 : 120;
        r->source = (struct bench_source){ 130, 120, 140, 5000, 80000, 400 };
        if (control_is(q, "forged_nonce"))
            r->nonce[0] ^= 1;
        snprintf(r->status, sizeof r->status, "passed");
    }
}

static void answer_block(const struct request *q, struct reply *r)
{
    double base = q->work.axis[0] == 8 ? 30000 : 20000;
    r->timed = r->complete = true;
    r->samples = 250;
    for (int64_t i = 0; i < r->samples; i++) {
        r->ns[i] = base + (double)((i * 7919 + (int64_t)(q->seed % 97)) % 201) - 100;
        r->cycles[i] = round(r->ns[i] * 1.98);
    }
    usleep(12000); /* the watchdog believes no samples that do not fit into its own clock */
    r->half_width = 0.001;
    r->source = (struct bench_source){ base + 900, base + 800, base + 1000, play("slow host") ? 300000 : 12000, 82000, 100 };
    if (q->whole)
        r->methods = (struct bench_methods){ base, base, 1 };
    r->compared = 2;
    r->checked = q->whole;
    r->result = (struct compare_result){ .tensors = 1, .tensor = { { .name = "y", .elements = 256, .max_allowed = 0.02, .rms_error = 0.001,
        .rms_allowed = 0.002, .largest_error = 0.01, .passed = true } } };
    r->tensor_bytes = 4096;
}

/* What goes wrong in a block of the case with 8 rows. */
static void misbehave(const struct request *q, struct reply *r)
{
    if (q->work.axis[0] != 8 || q->control[0])
        return;
    if (play("hang"))
        pause();
    if (play("die"))
        raise(SIGKILL);
    if (play("exit"))
        _exit(3);
    if (play("garbage"))
        _exit(write(STDOUT_FILENO, "no reply at all\n", 16) == 16 ? 0 : 1);
    if (play("memory"))
        snprintf(r->status, sizeof r->status, "resource_exceeded"), snprintf(r->text, sizeof r->text, "out of memory");
    if (play("wrong"))
        snprintf(r->status, sizeof r->status, "incorrect_numerical"), snprintf(r->text, sizeof r->text, "y: error max 1");
    if (play("throttled")) {
        snprintf(r->status, sizeof r->status, "incomplete_evidence"), snprintf(r->text, sizeof r->text, "no clean samples");
        r->complete = false;
        r->throttled = 900;
    }
    if (play("light"))
        for (int64_t i = 0; i < r->samples; i++)
            r->ns[i] = 0;
    if (play("gone")) {
        FILE *f = fopen(getenv("GONE_FILE"), "w");
        if (f)
            fclose(f);
        snprintf(r->status, sizeof r->status, "runtime_error"), snprintf(r->text, sizeof r->text, "unspecified launch failure");
    }
}

/* Whether this is the first measured process of its batch: it leaves a mark for those after it. */
static void mark_path(char out[64], pid_t watchdog)
{
    snprintf(out, 64, "/tmp/ki-test-drift-%ld", (long)watchdog);
}

static bool first_process(void)
{
    char path[64];
    mark_path(path, getppid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int be_worker(void)
{
    static double ns[WIRE_SAMPLES_MAX], cycles[WIRE_SAMPLES_MAX];
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    bool later = play("drift") && !first_process();
    while ((n = getline(&line, &room, stdin)) > 0) {
        struct request q;
        struct err e = { 0 };
        struct reply r = { .status = "passed", .ns = ns, .cycles = cycles, .methods = { NAN, NAN, 0 }, .half_width = NAN };
        struct buf out = { 0 };
        if (wire_read_request((struct slice){ line, (size_t)n }, &q, &e) != 0)
            return 1;
        memcpy(r.nonce, q.nonce, sizeof r.nonce);
        if (q.ask == ASK_DEVICE)
            answer_device(&r);
        else if (q.ask == ASK_SENTINELS)
            answer_sentinels(&r, later ? 4 : 0);
        else if (q.control[0])
            answer_control(&q, &r);
        else
            answer_block(&q, &r);
        misbehave(&q, &r);
        wire_put_reply(q.ask, &r, &out);
        if (file_write_all(STDOUT_FILENO, out.data, out.len, "reply", &e) != 0)
            return 1;
        buf_fini(&out);
    }
    free(line);
    return 0;
}

/* ---- the tests ---- */

static char self[4096], dir[] = "/tmp/ki-batch-XXXXXX";

struct ran {
    struct arena arena;
    struct job job[2];
    struct batch batch;
    struct evidence evidence[2];
    struct buf payload[2];
};

static double budget_seconds; /* of the next batch */

/* Two cases, of 4 and of 8 rows, through a batch. */
static struct ran *run(const char *how, double wall_seconds)
{
    struct ran *r = calloc(1, sizeof *r);
    struct err e = { 0 };
    struct buf line = { 0 };
    struct batch_options options = { .device = "cuda", .config = "config", .worker = self, .rounds = 5, .budget_seconds = budget_seconds };
    setenv("PLAY", how, 1);
    for (int i = 0; i < 2; i++) {
        struct job_text t = job_usual;
        t.rows = i ? 8 : 4;
        t.wall_seconds = wall_seconds;
        buf_clear(&line);
        job_write(&t, &line);
        assert_int_equal(job_read((struct slice){ line.data, line.len }, "jobs", 1, &r->arena, &r->job[i], &e), 0);
    }
    buf_fini(&line);
    assert_int_equal(batch_run(&r->batch, &options, r->job, 2, &e), 0);
    assert_int_equal(manifest_environment(&r->batch.cuda, &r->batch.nvml, &r->batch.host, &r->batch.hardware, &r->batch.arena, &r->batch.environment, &e), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(evidence_statement(&r->batch, i, dir, &r->payload[i], &r->evidence[i], &e), 0);
    return r;
}

static void end(struct ran *r)
{
    for (int i = 0; i < 2; i++)
        buf_fini(&r->payload[i]);
    batch_fini(&r->batch);
    arena_fini(&r->arena);
    free(r);
}

static void a_good_batch_stands(void **state)
{
    (void)state;
    struct ran *r = run("well", 60);
    assert_string_equal(r->batch.void_reason, "");
    assert_int_equal(r->batch.processes, 5);
    assert_int_equal(r->batch.controls, 19);
    assert_int_equal(batch_refused(&r->batch), 19);
    assert_int_equal(r->batch.sentinels, 10);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(r->evidence[i].status, "passed");
        assert_int_equal(r->batch.outcome[i].blocks, 5);
        assert_int_equal(r->evidence[i].timing.samples, 1250);
        assert_int_equal(r->evidence[i].verdict.class, CLASS_DEVICE);
    }
    assert_int_equal(r->evidence[0].verdict.code, VERDICT_PLAUSIBLE);
    assert_true(fabs(r->evidence[0].timing.median - 20000) < 5);
    assert_true(fabs(r->evidence[0].gbps - (2 * 4 * 64 * 2 + 64 * 2) / r->evidence[0].timing.median) < 1e-9);
    end(r);
}

static void a_planted_host_delay_makes_a_case_launch_bound(void **state)
{
    (void)state;
    struct ran *r = run("slow host", 60);
    assert_int_equal(r->evidence[0].verdict.class, CLASS_LAUNCH);
    assert_true(fabs(r->evidence[0].verdict.rho - 300000.0 / (82000 + r->evidence[0].timing.median)) < 1e-9);
    end(r);
}

static void a_batch_that_is_out_of_time_has_incomplete_cases(void **state)
{
    (void)state;
    budget_seconds = 1e-9;
    struct ran *r = run("well", 60);
    budget_seconds = 0;
    assert_int_equal(batch_refused(&r->batch), 19);
    assert_int_equal(r->batch.outcome[0].blocks, 0);
    assert_string_equal(r->evidence[0].status, "incomplete_evidence");
    assert_int_equal(r->evidence[0].verdict.code, VERDICT_INVALID_RUN);
    end(r);
}

/* Whatever the measured process does, its case gets a status and the other one goes on. */
static void each_end_of_a_process_has_its_status(void **state)
{
    (void)state;
    static const struct { const char *how, *status, *text; } ends[] = {
        { "hang", "timeout", "no answer within 1 s; the measured process was killed" },
        { "die", "runtime_error", "the measured process was killed by signal 9" },
        { "exit", "runtime_error", "the measured process ended with exit code 3 before it answered" },
        { "garbage", "runtime_error", NULL },
        { "memory", "resource_exceeded", "out of memory" },
        { "wrong", "incorrect_numerical", "y: error max 1" },
        { "throttled", "incomplete_evidence", "no clean samples" },
        { "light", "suspected_reward_hack", "a sample of no length" },
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct ran *r = run(ends[i].how, strcmp(ends[i].how, "hang") == 0 ? 1 : 60);
        assert_string_equal(r->evidence[1].status, ends[i].status);
        if (ends[i].text)
            assert_string_equal(r->batch.outcome[1].text, ends[i].text);
        assert_int_equal(r->evidence[1].verdict.code, VERDICT_INVALID_RUN);
        assert_int_equal(r->batch.outcome[1].blocks, 0);
        assert_string_equal(r->batch.void_reason, "");
        assert_string_equal(r->evidence[0].status, "passed");
        assert_int_equal(r->batch.outcome[0].blocks, 5);
        end(r);
    }
}

static void a_gpu_that_disappears_ends_in_statuses_not_in_a_hang(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/gone", dir);
    setenv("GONE_FILE", path, 1);
    struct ran *r = run("gone", 60);
    assert_string_equal(r->batch.void_reason, "the GPU is gone: no usable GPU here");
    assert_string_equal(r->evidence[0].status, "runtime_error");
    assert_string_equal(r->evidence[1].status, "runtime_error");
    assert_string_equal(r->batch.outcome[1].text, "unspecified launch failure");
    end(r);
    unlink(path);
}

static void a_batch_that_accepts_a_control_is_void(void **state)
{
    (void)state;
    struct ran *r = run("accept", 60);
    assert_string_equal(r->batch.void_reason, "the control zeros was not refused");
    assert_true(r->evidence[0].verdict.rho > 0); /* the times are facts all the same */
    assert_string_equal(r->evidence[0].status, "incomplete_evidence");
    assert_int_equal(r->evidence[0].verdict.code, VERDICT_INVALID_RUN);
    end(r);
}

static void a_batch_whose_sentinels_drift_is_void(void **state)
{
    (void)state;
    char mark[64];
    struct ran *r = run("drift", 60);
    mark_path(mark, getpid());
    unlink(mark);
    assert_string_equal(r->batch.void_reason, "the large copy drifted");
    end(r);
    r = run("clock", 60);
    assert_string_equal(r->batch.void_reason, "the timer does not measure spins of known length");
    assert_int_equal(r->evidence[0].verdict.code, VERDICT_INVALID_RUN);
    end(r);
}

static void one_slow_copy_is_where_its_buffers_lie(void **state)
{
    struct sentinels s[6];
    (void)state;
    for (int i = 0; i < 6; i++)
        s[i] = (struct sentinels){ 3000, 4250, 780, { 12800, 52800, 202800, 1002800 }, 1.0001, 1980 };
    s[0].copy_gbps = s[3].copy_gbps = 3815;
    assert_null(sentinels_check(s, 6));
    s[4].copy_gbps = s[5].copy_gbps = 3815;
    assert_string_equal(sentinels_check(s, 6), "the large copy drifted");
}

static int replay(const char *text, const char *where, struct replay *out, struct err *e)
{
    static struct arena a;
    *e = (struct err){ 0 };
    return evidence_replay((struct slice){ text, strlen(text) }, where, "evidence", 1, &a, out, e);
}

static void a_replay_gives_the_same_verdict(void **state)
{
    (void)state;
    struct ran *r = run("well", 60);
    struct replay with, without;
    struct err e;
    assert_int_equal(replay(r->payload[0].data, dir, &with, &e), 0);
    assert_true(with.from_samples);
    assert_int_equal(with.found, VERDICT_PLAUSIBLE);
    assert_true(with.d == r->evidence[0].verdict.d && with.u95 == r->evidence[0].verdict.u95 && with.u99 == r->evidence[0].verdict.u99);
    assert_int_equal(replay(r->payload[0].data, NULL, &without, &e), 0);
    assert_false(without.from_samples);
    assert_true(without.d == with.d);
    end(r);
}

/* The payload with the first `from` behind `after` replaced by `to`. */
static enum err_code replay_changed(const struct buf *payload, const char *after, const char *from, const char *to, struct err *e)
{
    struct buf changed = { 0 };
    struct replay out;
    const char *at = strstr(payload->data, after);
    assert_non_null(at);
    at = strstr(at, from);
    assert_non_null(at);
    buf_add(&changed, payload->data, (size_t)(at - payload->data));
    buf_str(&changed, to);
    buf_str(&changed, at + strlen(from));
    int rc = replay(changed.data, dir, &out, e);
    buf_fini(&changed);
    return rc == 0 ? ERR_NONE : e->code;
}

static void a_replay_finds_what_was_altered(void **state)
{
    (void)state;
    struct ran *r = run("well", 60);
    const struct buf *p = &r->payload[0];
    struct err e;
    assert_int_equal(replay_changed(p, "\"verdict\":{", "plausible", "confirmed", &e), ERR_DATA);
    assert_string_equal(e.text, "verdict: says confirmed, its inputs give plausible");
    assert_int_equal(replay_changed(p, "\"judged\":{", "\"h_ns\":12000", "\"h_ns\":12001", &e), ERR_DATA);
    assert_string_equal(e.text, "judged: other times than the line has");
    assert_int_equal(replay_changed(p, "\"judged\":{", "\"gate\":true", "\"gate\":false", &e), ERR_DATA);
    assert_string_equal(e.text, "judged.gate: does not follow from the status and the batch");
    assert_int_equal(replay_changed(p, "\"judged\":{", "\"median_ns\":20000", "\"median_ns\":900000", &e), ERR_DATA);
    assert_string_equal(e.text, "verdict: says plausible, its inputs give far");
    assert_int_equal(replay_changed(p, "\"controls\":[", "\"refused\":true", "\"refused\":false", &e), ERR_DATA);
    assert_string_equal(e.text, "controls: one was accepted and the batch still stands");
    assert_int_equal(replay_changed(p, "\"t_dev_ns\":{\"conf", "\"p95\":2", "\"p95\":3", &e), ERR_DATA);
    assert_string_equal(e.text, "t_dev_ns: a statistic does not follow from the samples");
    assert_int_equal(replay_changed(p, "\"evidence\":{", "\"type\":\"evidence\"", "\"type\":\"evidense\"", &e), ERR_DATA);
    end(r);
}

/* What is published is cited before it is used, and each digest is that of its bytes. */
static void the_records_of_a_statement_can_be_published(void **state)
{
    (void)state;
    struct ran *r = run("well", 60);
    struct err e = { 0 };
    static const char *const kinds[] = { "SoftwareProject", "ImplementationRevision", "BenchmarkProtocol", "ExecutionEnvironment", "BenchmarkRun" };
    json_t *o = json_load_text(r->payload[0].data, r->payload[0].len, "payload", &e), *record;
    json_t *records = json_object_get(json_object_get(json_object_get(o, "predicate"), "evidence"), "records");
    size_t i;
    assert_int_equal(json_array_size(records), 5);
    json_array_foreach(records, i, record) {
        struct buf text = { 0 };
        char digest[DIGEST_TEXT + 1];
        assert_int_equal(json_canonical(json_object_get(record, "body"), &text, &e), 0);
        struct digest d = digest_of(text.data, text.len);
        digest_text(&d, digest);
        assert_string_equal(digest, json_string_value(json_object_get(record, "digest")));
        assert_string_equal(kinds[i], json_string_value(json_object_get(json_object_get(record, "body"), "kind")));
        assert_string_equal("object", json_string_value(json_object_get(record, "type")));
        buf_fini(&text);
    }
    json_t *spec = json_object_get(json_object_get(json_array_get(records, 4), "body"), "spec");
    char workload[DIGEST_TEXT + 1];
    digest_text(&r->job[0].workload, workload);
    assert_string_equal(json_string_value(json_object_get(spec, "workloadDigest")), workload);
    assert_string_equal(json_string_value(json_object_get(spec, "environmentDigest")), json_string_value(json_object_get(json_array_get(records, 3), "digest")));
    assert_string_equal(json_string_value(json_object_get(spec, "status")), "passed");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json_object_get(spec, "timing"), "latencyNs"), "median")),
        (int)floor(r->evidence[0].timing.median + 0.5));
    json_decref(o);
    end(r);
}

/* For a schema check from outside: statements of a batch, one a line. */
static int print_statements(void)
{
    if (!mkdtemp(dir))
        return 74;
    struct ran *r = run("well", 60);
    for (int i = 0; i < 2; i++)
        printf("%s\n", r->payload[i].data);
    end(r);
    return 0;
}

static int init(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int fini(void **state)
{
    char command[160];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_batch_stands),
        cmocka_unit_test(a_planted_host_delay_makes_a_case_launch_bound),
        cmocka_unit_test(a_batch_that_is_out_of_time_has_incomplete_cases),
        cmocka_unit_test(each_end_of_a_process_has_its_status),
        cmocka_unit_test(a_gpu_that_disappears_ends_in_statuses_not_in_a_hang),
        cmocka_unit_test(a_batch_that_accepts_a_control_is_void),
        cmocka_unit_test(a_batch_whose_sentinels_drift_is_void),
        cmocka_unit_test(one_slow_copy_is_where_its_buffers_lie),
        cmocka_unit_test(a_replay_gives_the_same_verdict),
        cmocka_unit_test(a_replay_finds_what_was_altered),
        cmocka_unit_test(the_records_of_a_statement_can_be_published),
    };
    if (argc > 1 && strcmp(argv[1], "worker") == 0)
        return be_worker();
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = 0;
    if (argc > 1 && strcmp(argv[1], "statements") == 0)
        return print_statements();
    return cmocka_run_group_tests(tests, init, fini);
}
