/* Bundles of upstream's code: what is read, what hostile ones come to, and what a replay launches. There is no GPU here, so the driver is a
 * table of functions that computes on the host what the kernel of the fixture stands for, from the very arguments that a GPU would get. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "verify/equivalence.h"
#include "verify/job.h"
#include "verify/tolerance.h"
#include "verify/trial.h"
#include "verify/upstream.h"

static const char *const folder = "fixtures/verify/bundles";
static struct arena arena;
static struct job job;
static struct bundle bundle;
static struct buf manifest;

static void read_fixture(void)
{
    struct buf line = { 0 };
    struct err e = { 0 };
    char path[200], hex[DIGEST_HEX + 1];
    assert_int_equal(file_read("fixtures/verify/upstream.jsonl", 1 << 20, &line, &e), 0);
    assert_int_equal(job_read((struct slice){ line.data, line.len }, "upstream.jsonl", 1, &arena, &job, &e), 0);
    struct bundle_key key = { job.kernel, job.provider, job.commit, job.version, job.pass, job.workload };
    assert_int_equal(bundle_find(folder, &key, job.work.operation, &arena, &bundle, &e), 0);
    digest_hex(&bundle.digest, hex);
    snprintf(path, sizeof path, "%s/bundles/%s.json", folder, hex);
    assert_int_equal(file_read(path, 1 << 20, &manifest, &e), 0);
    buf_fini(&line);
}

static int read_bytes(const char *text, size_t len, struct bundle *b, struct err *e)
{
    *e = (struct err){ 0 };
    return bundle_read((struct slice){ text, len }, "bundle", job.work.operation, &arena, b, e);
}

/* The manifest with the first `from` replaced. */
static int read_changed(const char *from, const char *to, struct bundle *b, struct err *e)
{
    struct buf changed = { 0 };
    const char *at = strstr(manifest.data, from);
    assert_non_null(at);
    buf_add(&changed, manifest.data, (size_t)(at - manifest.data));
    buf_str(&changed, to);
    buf_add(&changed, at + strlen(from), manifest.len - (size_t)(at - manifest.data) - strlen(from));
    int rc = read_bytes(changed.data, changed.len, b, e);
    buf_fini(&changed);
    return rc;
}

static void a_bundle_is_found_by_its_case_and_read_whole(void **state)
{
    (void)state;
    assert_string_equal(bundle.triton, "3.6.0");
    assert_int_equal(bundle.buffers, 4);
    assert_int_equal(bundle.timed.count, 2);
    assert_int_equal(bundle.timed.op[1].args, 6);
    assert_int_equal(bundle.timed.op[1].grid[0], 8);
    assert_int_equal(bundle.kernels[0].threads, 128);
    assert_true(bundle.source.median_ns == 20000 && bundle.source.host_ns == 30000);
    assert_null(bundle_unfit(&bundle, &job.work, job.pass));
}

static void the_bundle_of_another_commit_or_pass_is_not_found(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct bundle b;
    struct bundle_key key = { job.kernel, job.provider, "08906d3d9cad77fcced2b9f6db0a385eff154f03", "", job.pass, job.workload };
    assert_int_equal(bundle_find(folder, &key, job.work.operation, &arena, &b, &e), -1);
    assert_int_equal(e.code, ERR_NOTFOUND);
    key.commit = job.commit;
    key.pass = KI_FULL;
    assert_int_equal(bundle_find(folder, &key, job.work.operation, &arena, &b, &e), -1);
    assert_int_equal(e.code, ERR_NOTFOUND);
}

static void hostile_manifests_are_refused_with_the_field(void **state)
{
    (void)state;
    static const char *const changes[][3] = {
        { "\"type\":\"bundle\"", "\"type\":\"bungle\"", "type: not a bundle" },
        { "\"version\":1,", "\"version\":2,", "version: out of range" },
        { "\"buffer\":3,\"offset\":0", "\"buffer\":4,\"offset\":0", "buffer: out of range" },
        { "\"buffer\":3,\"offset\":0", "\"buffer\":3,\"offset\":32", "offset: out of range" },
        { "\"buffer\":3,\"offset\":0", "\"buffer\":3,\"offset\":-1", "offset: out of range" },
        { "\"bytes\":32,\"op\":\"fill\"", "\"bytes\":33,\"op\":\"fill\"", "offset: beyond the end of its buffer" },
        { "\"bytes\":1024", "\"bytes\":0", "bytes: out of range" },
        { "\"bytes\":1024", "\"bytes\":1e300", "bytes: missing, or not a whole number" },
        { "\"reads\":\"x\"", "\"reads\":\"z\"", "reads: not a tensor of the operation" },
        { "\"dtype\":\"bf16\"", "\"dtype\":\"bf17\"", "buffers: a tensor of an unknown type" },
        { "\"grid\":[8,1,1]", "\"grid\":[8,1]", "grid: not three numbers" },
        { "\"grid\":[8,1,1]", "\"grid\":[0,1,1]", "grid: out of range" },
        { "\"grid\":[8,1,1]", "\"grid\":[8,70000,1]", "grid: out of range" },
        { "\"grid\":[8,1,1]", "\"grid\":[8,1,1,1]", "grid: not a list, or too long" },
        { "\"kernel\":0", "\"kernel\":1", "kernel: out of range" },
        { "\"threads\":128", "\"threads\":2048", "threads: out of range" },
        { "\"shared\":0", "\"shared\":1000000", "shared: out of range" },
        { "\"value\":64", "\"value\":4294967296", "value: wider than its argument" },
        { "\"op\":\"fill\"", "\"op\":\"call\"", "op: neither launch, fill nor copy" },
        { "\"kernel\":\"rms_norm\"", "\"kernel\":\"softmax\"", "kernel: of another operation, or no such pass" },
        { "\"host_ns\":30000", "\"host_ns\":0", "host_ns: out of range" },
        { "\"files\":\"sha256:e3", "\"files\":\"sha256:zz", "files: not a digest" },
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct bundle b;
        struct err e;
        assert_int_equal(read_changed(changes[i][0], changes[i][1], &b, &e), -1);
        assert_string_equal(e.text, changes[i][2]);
    }
}

/* Every prefix, and 20,000 copies with up to four bytes changed: refused, or read to something that keeps its own bounds. */
static void damaged_manifests_are_refused_or_stay_in_bounds(void **state)
{
    (void)state;
    struct bundle *b = calloc(1, sizeof *b);
    struct err e;
    uint64_t seed = 17;
    for (size_t len = 0; len < manifest.len; len += 3)
        assert_int_equal(read_bytes(manifest.data, len, b, &e), -1);
    char *copy = malloc(manifest.len);
    for (int round = 0; round < 20000; round++) {
        memcpy(copy, manifest.data, manifest.len);
        for (int k = 0; k < 1 + round % 4; k++) {
            uint64_t bits = draw_bits(seed, (uint64_t)(8 * round + k));
            copy[bits % manifest.len] = (char)(bits >> 40);
        }
        if (read_bytes(copy, manifest.len, b, &e) == 0)
            for (int i = 0; i < b->timed.count; i++)
                for (int a = 0; a < b->timed.op[i].args; a++)
                    if (b->timed.op[i].arg[a].pointer)
                        assert_true(b->timed.op[i].arg[a].at.offset < b->buffer[b->timed.op[i].arg[a].at.buffer].size_bytes);
        arena_reset(&arena);
    }
    free(copy);
    free(b);
    buf_clear(&manifest);
    read_fixture();
}

static void a_bundle_that_does_not_fit_its_case_says_why(void **state)
{
    (void)state;
    struct bundle b = bundle;
    struct ki_case other = job.work;
    other.axis[0] = 16;
    assert_string_equal(bundle_unfit(&bundle, &other, job.pass), "a tensor of another size");
    assert_string_equal(bundle_unfit(&bundle, &job.work, KI_FULL), "of another pass");
    b.timed.count = 1;
    assert_string_equal(bundle_unfit(&b, &job.work, job.pass), "it launches nothing");
    b = bundle;
    b.foreign = "at::native::reduce_kernel";
    assert_string_equal(bundle_unfit(&b, &job.work, job.pass), "it does more than Triton launches, fills and copies");
    b = bundle;
    b.buffer[2].writes = -1;
    assert_string_equal(bundle_unfit(&b, &job.work, job.pass), "a result that it does not deliver");
    b = bundle;
    b.buffer[0].reads = ki_tensor_find(job.work.operation, "dy");
    assert_string_equal(bundle_unfit(&b, &job.work, job.pass), "it reads a tensor that the pass does not give");
    b = bundle;
    b.buffer[2].writes = ki_tensor_find(job.work.operation, "x");
    assert_string_equal(bundle_unfit(&b, &job.work, job.pass), "it writes a tensor that is no result");
}

static void files_that_are_not_what_their_name_says_are_refused(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct buf blob = { 0 };
    struct digest wrong = digest_of("x", 1);
    struct bundle b;
    char temp[] = "/tmp/bundle.XXXXXX", path[300], hex[DIGEST_HEX + 1];
    assert_non_null(mkdtemp(temp));
    digest_hex(&wrong, hex);
    snprintf(path, sizeof path, "%s/bundles", temp);
    assert_int_equal(file_make_dirs(path, &e), 0);
    snprintf(path, sizeof path, "%s/bundles/%s.json", temp, hex);
    assert_int_equal(file_write(path, manifest.data, manifest.len, 0644, &e), 0);
    assert_int_equal(bundle_open(temp, &wrong, job.work.operation, &arena, &b, &e), -1);
    assert_string_equal(e.text, "other bytes than its name says");
    e = (struct err){ 0 };
    assert_int_equal(bundle_blob(folder, &wrong, &blob, &e), -1);
    assert_int_equal(e.code, ERR_NOTFOUND);
    buf_fini(&blob);
    unlink(path);
    snprintf(path, sizeof path, "%s/bundles", temp);
    rmdir(path);
    rmdir(temp);
}

/* ---- replay ---- */

/* What the fake device does with the fixture's one kernel. */
enum play { HONEST, WRONG, SKIPS, FAILS };
static enum play play;
static int launches, fills;

static int fake_load(void **module, const void *image)
{
    *module = (void *)(uintptr_t)image;
    return strncmp(image, "A stand-in", 10) == 0 ? 0 : 200;
}

static int fake_unload(void *module)
{
    return module ? 0 : 1;
}

static int fake_function(void **function, void *module, const char *name)
{
    *function = module;
    return strcmp(name, "rms_norm_rows") == 0 ? 0 : 500;
}

static int fake_shared(void *function, unsigned size_bytes)
{
    return function && size_bytes ? 0 : 1;
}

static int fake_launch(void *function, const unsigned grid[3], unsigned threads, unsigned shared_bytes, void *stream, void **args)
{
    struct ki_tensor y = { *(void **)args[0], 8 * 64, KI_BF16 }, x = { *(void **)args[1], 8 * 64, KI_BF16 }, w = { *(void **)args[2], 64, KI_F32 };
    float *rstd = *(float **)args[3], eps = *(float *)args[5];
    int hidden = *(int *)args[4];
    launches++;
    assert_true(function && grid[0] == 8 && threads == 128 && shared_bytes == 0 && !stream);
    assert_true(*(void **)args[6] == NULL && *(void **)args[7] == NULL); /* the two scratch pointers */
    if (play == FAILS)
        return 700;
    for (int row = 0; row < (int)grid[0] && play != SKIPS; row++) {
        double squares = 0;
        assert_true(rstd[row] == 0); /* the fill came first */
        for (int i = 0; i < hidden; i++)
            squares += ki_get(&x, row * hidden + i) * ki_get(&x, row * hidden + i);
        rstd[row] = (float)(1 / sqrt(squares / hidden + (double)eps));
        for (int i = 0; i < hidden; i++)
            ki_put(&y, row * hidden + i, ki_get(&x, row * hidden + i) * (double)rstd[row] * ki_get(&w, i) * (play == WRONG ? 1.1 : 1));
    }
    return 0;
}

static int fake_zero(void *at, size_t size_bytes, void *stream)
{
    fills++;
    memset(at, 0, size_bytes);
    return stream ? 1 : 0;
}

static int fake_copy(void *to, const void *from, size_t size_bytes, void *stream)
{
    memcpy(to, from, size_bytes);
    return stream ? 1 : 0;
}

static const char *fake_text(int error)
{
    return error == 200 ? "CUDA_ERROR_INVALID_IMAGE" : "an error";
}

static const struct driver fake = { fake_load, fake_unload, fake_function, fake_shared, fake_launch, fake_zero, fake_copy, fake_text };

/* What a trial of the fixture comes to: 0, 1 refused. */
static int run_trial(const struct bundle *b, enum play how, struct trial *t)
{
    struct err e = { 0 };
    struct tolerance by_tensor[KI_MAX_TENSORS];
    struct tolerances *all = tolerances_load("config/tolerances.json", &e);
    assert_non_null(all);
    assert_int_equal(tolerances_of(all, &job.work, true, by_tensor, &e), 0);
    tolerances_free(all);
    play = how;
    struct upstream *u = upstream_open(folder, b, &place_host, &fake, &job.work, &e);
    assert_non_null(u);
    assert_int_equal(trial_init(t, &place_host, &job.work, job.pass, upstream_implementation(u), by_tensor, 5, 1 << 20, &e), 0);
    int rc = trial_check(t, &e);
    assert_int_equal(rc, 0);
    rc = t->result.status == COMPARE_PASSED ? trial_run(t, 12, 2, &e) : 1;
    trial_fini(t);
    upstream_close(u);
    return rc;
}

static void a_replay_runs_fills_and_launches_in_order_on_the_tensors_of_the_call(void **state)
{
    (void)state;
    struct trial t;
    launches = fills = 0;
    assert_int_equal(run_trial(&bundle, HONEST, &t), 0);
    assert_int_equal(launches, 14); /* the check, twelve calls, the last check */
    assert_int_equal(fills, launches);
}

static void a_replay_that_computes_something_else_is_refused(void **state)
{
    (void)state;
    struct trial t;
    assert_int_equal(run_trial(&bundle, WRONG, &t), 1);
    assert_int_equal(run_trial(&bundle, SKIPS, &t), 1);
    assert_int_equal(run_trial(&bundle, FAILS, &t), 1);
}

/* The kernel writes y over x: it must get a copy, and the contract's x must not change. */
static void work_in_place_leaves_the_inputs_as_they_were(void **state)
{
    (void)state;
    struct trial t;
    struct bundle b = bundle;
    b.buffer[0].writes = b.buffer[2].writes;
    b.buffer[2].writes = -1;
    b.timed.op[1].arg[0].at.buffer = 0;
    assert_int_equal(run_trial(&b, HONEST, &t), 0);
    assert_int_equal(run_trial(&b, SKIPS, &t), 1);
    b.timed.op[1].arg[0].at.buffer = 2; /* as it was */
}

static void upstreams_own_roundings_are_allowed_to_its_own_code_alone(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct tolerance ours[KI_MAX_TENSORS], theirs[KI_MAX_TENSORS];
    struct tolerances *all = tolerances_load("config/tolerances.json", &e);
    struct ki_case fp32 = job.work;
    assert_non_null(all);
    assert_int_equal(tolerances_of(all, &job.work, false, ours, &e), 0);
    assert_int_equal(tolerances_of(all, &job.work, true, theirs, &e), 0);
    assert_true(ours[0].factor == 2 && theirs[0].factor == 3);
    fp32.dtype = KI_F32;
    assert_int_equal(tolerances_of(all, &fp32, true, theirs, &e), 0);
    assert_true(theirs[0].factor == 2);
    tolerances_free(all);
}

static void a_cubin_that_the_driver_refuses_is_said(void **state)
{
    (void)state;
    struct bundle b = bundle;
    struct err e = { 0 };
    b.kernels[0].name = "another";
    assert_null(upstream_open(folder, &b, &place_host, &fake, &job.work, &e));
    assert_string_equal(e.text, "loading another: an error");
}

/* ---- whose code, which GPU ---- */

static void code_counts_as_the_records_when_its_files_are_those_of_the_commit(void **state)
{
    (void)state;
    struct equivalence q;
    struct err e = { 0 };
    struct bundle b = bundle;
    assert_int_equal(equivalence_load("config/env-v1.json", &arena, &q, &e), 0);
    assert_string_equal(q.policy, "env-v1");
    assert_true(equivalence_same_code(&q, job.commit, job.version, &b));
    assert_false(equivalence_same_code(&q, "08906d3d9cad77fcced2b9f6db0a385eff154f03", "0.5.10", &b)); /* the commit decides, not its number */
    assert_false(equivalence_same_code(&q, "", "0.5.10", &b));
    assert_false(equivalence_same_code(&q, "", "", &b));
    assert_false(equivalence_same_code(&q, "", "99.0", &b));
    b.files = digest_of("altered", 7);
    assert_false(equivalence_same_code(&q, job.commit, job.version, &b));
}

static void a_gpu_counts_as_the_records_in_what_the_record_states(void **state)
{
    (void)state;
    struct equivalence q;
    struct err e = { 0 };
    assert_int_equal(equivalence_load("config/env-v1.json", &arena, &q, &e), 0);
    struct gpu_facts here = { "NVIDIA H100", "80GB HBM3", 85000000000 };
    const struct { struct gpu_facts record; bool same; } cases[] = {
        { { "NVIDIA H100", "80GB HBM3", 0 }, true },           { { "NVIDIA H100", "80GB HBM3", 84900000000 }, true },
        { { "NVIDIA H100", "80GB HBM3", 94000000000 }, false }, { { "NVIDIA H100", "PCIe", 0 }, false },
        { { "NVIDIA H200", "80GB HBM3", 0 }, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(equivalence_same_gpu(&q, &cases[i].record, &here), cases[i].same);
    assert_true(equivalence_is_framework(&q, "torch_compile") && equivalence_is_framework(&q, "huggingface"));
    assert_false(equivalence_is_framework(&q, "liger"));
}

static int init(void **state)
{
    (void)state;
    read_fixture();
    return 0;
}

static int fini(void **state)
{
    (void)state;
    buf_fini(&manifest);
    arena_fini(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bundle_is_found_by_its_case_and_read_whole),
        cmocka_unit_test(the_bundle_of_another_commit_or_pass_is_not_found),
        cmocka_unit_test(hostile_manifests_are_refused_with_the_field),
        cmocka_unit_test(damaged_manifests_are_refused_or_stay_in_bounds),
        cmocka_unit_test(a_bundle_that_does_not_fit_its_case_says_why),
        cmocka_unit_test(files_that_are_not_what_their_name_says_are_refused),
        cmocka_unit_test(a_replay_runs_fills_and_launches_in_order_on_the_tensors_of_the_call),
        cmocka_unit_test(a_replay_that_computes_something_else_is_refused),
        cmocka_unit_test(work_in_place_leaves_the_inputs_as_they_were),
        cmocka_unit_test(upstreams_own_roundings_are_allowed_to_its_own_code_alone),
        cmocka_unit_test(a_cubin_that_the_driver_refuses_is_said),
        cmocka_unit_test(code_counts_as_the_records_when_its_files_are_those_of_the_commit),
        cmocka_unit_test(a_gpu_counts_as_the_records_in_what_the_record_states),
    };
    return cmocka_run_group_tests(tests, init, fini);
}
