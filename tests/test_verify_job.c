/* Job lines: what is read, and what hostile ones come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "verify_jobs.h"

static struct arena arena;

static int read_text(const char *text, struct job *j, struct err *e)
{
    return job_read((struct slice){ text, strlen(text) }, "jobs", 3, &arena, j, e);
}

static int read_job(const struct job_text *t, struct job *j, struct err *e)
{
    struct buf b = { 0 };
    *e = (struct err){ 0 };
    job_write(t, &b);
    int rc = read_text(b.data, j, e);
    buf_fini(&b);
    return rc;
}

/* The line with the first `from` replaced by `to`. */
static enum err_code read_changed(const char *from, const char *to, struct err *e)
{
    struct buf b = { 0 }, changed = { 0 };
    struct job j;
    *e = (struct err){ 0 };
    job_write(&job_usual, &b);
    const char *at = strstr(b.data, from);
    assert_non_null(at);
    buf_add(&changed, b.data, (size_t)(at - b.data));
    buf_str(&changed, to);
    buf_str(&changed, at + strlen(from));
    int rc = read_text(changed.data, &j, e);
    buf_fini(&b);
    buf_fini(&changed);
    assert_int_equal(rc != 0, e->code != ERR_NONE);
    return e->code;
}

static void a_job_is_read_whole(void **state)
{
    (void)state;
    struct job j;
    struct err e;
    char text[DIGEST_TEXT + 1];
    assert_int_equal(read_job(&job_usual, &j, &e), 0);
    assert_string_equal(j.id, "job-1");
    assert_string_equal(j.kernel, "rms_norm");
    assert_true(j.native);
    assert_int_equal(j.pass, KI_FORWARD);
    assert_int_equal(j.work.dtype, KI_BF16);
    assert_int_equal(j.work.axis[0], 4);
    assert_int_equal(j.work.axis[1], 64);
    assert_true(j.reported.median_ns == 20000);
    assert_int_equal(j.reported.samples, 100);
    assert_true(j.peak.gbps == 4800);
    assert_string_equal(job_title(&j, &arena), "rms_norm forward 4x64 bf16");
    digest_text(&j.operation, text);
    assert_string_equal(text, "sha256:8ba8d8c445e8bd111c485ff037391ce3ba744145e55c2b755cf1a312600e8260");
}

static void the_digest_of_a_job_does_not_depend_on_how_it_is_written(void **state)
{
    (void)state;
    struct job a, b;
    struct err e;
    struct buf line = { 0 }, other = { 0 };
    const char *const head = "{\"type\":\"job\",\"id\":\"job-1\",";
    job_write(&job_usual, &line);
    assert_memory_equal(line.data, head, strlen(head));
    buf_str(&other, "{ \"id\" : \"job-1\", \"type\":\"job\",");
    buf_str(&other, line.data + strlen(head));
    assert_int_equal(read_job(&job_usual, &a, &e), 0);
    assert_int_equal(read_text(other.data, &b, &e), 0);
    assert_int_equal(digest_cmp(&a.digest, &b.digest), 0);
    buf_fini(&line);
    buf_fini(&other);
}

static void what_cannot_run_here_is_unavailable_not_malformed(void **state)
{
    (void)state;
    struct err e;
    assert_int_equal(read_changed("\"kernel\":\"rms_norm\"", "\"kernel\":\"fused_moe\"", &e), ERR_UNAVAILABLE);
    assert_int_equal(read_changed("\"dtype\":\"bf16\"}", "\"dtype\":\"fp64\"}", &e), ERR_UNAVAILABLE);
    assert_string_equal(e.text, "no kernel here for tensors of fp64");
    assert_int_equal(e.line, 3);
}

static void an_upstream_job_says_whose_code_the_record_ran(void **state)
{
    (void)state;
    struct err e;
    struct job j;
    struct job_text t = job_usual;
    t.runner = "upstream";
    assert_int_equal(read_job(&t, &j, &e), -1);
    assert_string_equal(e.text, "source: names neither commit nor version");
    t.extra = "\"source\":{\"version\":\"0.5.10\",\"commit\":\"main\"},";
    assert_int_equal(read_job(&t, &j, &e), -1);
    assert_string_equal(e.text, "source.commit: not 40 hex digits");
    t.extra = "\"source\":{\"version\":\"0.5.10\"},";
    assert_int_equal(read_job(&t, &j, &e), -1);
    assert_string_equal(e.text, "implementation: missing");
    t.extra = "\"source\":{\"version\":\"0.5.10\"},\"implementation\":{\"kind\":\"ImplementationRevision\"},";
    assert_int_equal(read_job(&t, &j, &e), 0);
    assert_false(j.native);
    assert_string_equal(j.commit, "");
    assert_string_equal(j.version, "0.5.10");
}

static void hostile_lines_are_refused_with_the_field(void **state)
{
    (void)state;
    struct err e;
    static const char *const changes[][3] = {
        { "\"type\":\"job\"", "\"type\":\"jab\"", "type: not job" },
        { "\"policy\":\"verify-v1\"", "\"policy\":\"verify-v2\"", "policy: another policy than verify-v1" },
        { "\"quantity\":\"latency\"", "\"quantity\":\"memory\"", "quantity: only latency is rerun" },
        { "\"runner\":\"native\"", "\"runner\":\"mine\"", "runner: neither native nor upstream" },
        { "\"nonce\":\"00112233\"", "\"nonce\":17", "nonce: not a text of a sensible length" },
        { "\"run\":\"sha256:00", "\"run\":\"sha256:0g", "subject.run: not a digest" },
        { "\"median_ns\":20000", "\"median_ns\":-1", "reported.median_ns: out of range" },
        { "\"median_ns\":20000", "\"median_ns\":\"20000\"", "reported.median_ns: not a number" },
        { "\"median_ns\":20000,", "", "reported.median_ns: missing" },
        { "\"wall_seconds\":60", "\"wall_seconds\":1e9", "limits.wall_seconds: out of range" },
        { "\"rows\":4,", "\"rows\":5,", "workload.spec.tensors: a shape that does not follow from the axes" },
        { "\"rows\":4,", "\"rows\":4.5,", "workload.spec.axes: too many, or not a whole number" },
        { "\"dtype\":\"bf16\"}", "\"dtype\":7}", "workload.spec.tensors: a tensor without a dtype" },
        { "\"dtype\":\"bf16\"}", "\"dtype\":\"fp32\"}", "workload.spec.tensors: more than one float type" },
        { "\"x\":{\"shape\"", "\"z\":{\"shape\"", "workload.spec.tensors: a tensor that the operation does not have, or of another rank" },
        { "\"family\":\"rmsnorm\"", "\"family\":\"rmsnorn\"", "workload.spec.operationSpecDigest: not the digest of the operation in the line" },
        { "\"pass\":\"forward\"", "\"pass\":\"sideways\"", "pass: no such pass" },
        { "\"gpu\":{\"product\":\"NVIDIA H200\"", "\"gpu\":{\"product\":\"\"", "gpu.product: not a text of a sensible length" },
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        assert_int_equal(read_changed(changes[i][0], changes[i][1], &e), ERR_DATA);
        assert_string_equal(e.text, changes[i][2]);
    }
}

static void what_is_no_json_object_is_refused(void **state)
{
    (void)state;
    static const char *const lines[] = { "", "{", "[]", "null", "\"job\"", "{\"type\":\"job\",\"type\":\"job\"}", "{\"type\":\"job\"} {}",
        "{\"axes\":{\"rows\":1e999}}" };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct err e = { 0 };
        struct job j;
        assert_int_equal(read_text(lines[i], &j, &e), -1);
        assert_int_equal(e.code, ERR_DATA);
        assert_int_equal(e.line, 3);
    }
}

static void a_line_that_nests_or_grows_without_end_is_refused(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct job j;
    struct buf b = { 0 };
    for (int i = 0; i < 5000; i++)
        buf_str(&b, "{\"a\":");
    assert_int_equal(read_text(b.data, &j, &e), -1);
    buf_clear(&b);
    for (int i = 0; i < JOB_LINE_MAX + 10; i++)
        buf_char(&b, ' ');
    e = (struct err){ 0 };
    assert_int_equal(job_read((struct slice){ b.data, b.len }, "jobs", 1, &arena, &j, &e), -1);
    assert_string_equal(e.text, "line: too long");
    buf_fini(&b);
}

static void axes_that_ask_for_more_than_any_memory_are_refused(void **state)
{
    (void)state;
    struct job_text t = job_usual;
    struct err e;
    struct job j;
    t.rows = 2000000000;
    t.hidden = 2000000000;
    assert_int_equal(read_job(&t, &j, &e), -1);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_string_equal(e.text, "rms_norm: a tensor has too many elements");
}

static int fini(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_read_whole),
        cmocka_unit_test(the_digest_of_a_job_does_not_depend_on_how_it_is_written),
        cmocka_unit_test(what_cannot_run_here_is_unavailable_not_malformed),
        cmocka_unit_test(an_upstream_job_says_whose_code_the_record_ran),
        cmocka_unit_test(hostile_lines_are_refused_with_the_field),
        cmocka_unit_test(what_is_no_json_object_is_refused),
        cmocka_unit_test(a_line_that_nests_or_grows_without_end_is_refused),
        cmocka_unit_test(axes_that_ask_for_more_than_any_memory_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, fini);
}
