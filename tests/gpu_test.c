/* gpu-test: holds the kernels of every operation, pass and dtype against the fp64 reference on the device, on small odd shapes and on
 * every shape of the committed tables (fixtures/gpu/cases.txt). No timing.
 *
 * Checks run in a child process; when one kills the CUDA context or hangs, the rest go on in the next child. What a check found
 * is one line of LOG/gpu-test.log; failures and a table of counts are printed last. Exit code 0 when nothing failed, 1 when
 * something did, 69 without a GPU. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_cases.h"
#include "verify/draw.h"
#include "verify/tolerance.h"

enum outcome_kind { NOT_RUN, PASSED, FAILED, REFUSED, TOO_LARGE, NO_GPU };

/* What a child says about a check, over a pipe. */
struct outcome {
    int check;
    enum outcome_kind kind;
    bool vacuous, last; /* last: the child's context is gone */
    double seconds, used; /* used: largest share of an error budget */
    char text[300];
};

static struct gpu_case cases[GPU_CASES_MAX];
static struct gpu_check checks[GPU_CHECKS_MAX];
static struct outcome outcomes[GPU_CHECKS_MAX];

static bool chosen(const struct gpu_options *o, const struct gpu_case *c, enum ki_dtype d, enum ki_pass pass)
{
    const struct ki_operation *op = c->operation;
    if (d == KI_F16 && !gpu_tagged(c, "small"))
        return false; /* the tables have no fp16 row of these operations */
    return op && op->dtypes & KI_BIT(d) && op->passes & KI_BIT(pass) && gpu_chosen(o->only, op->name) && gpu_tagged(c, o->tag)
        && gpu_chosen(o->pass, ki_pass_name(pass)) && gpu_chosen(o->dtype, ki_dtype_name(d));
}

/* Small shapes of all operations first. */
static int list_checks(const struct gpu_options *o, size_t n_cases)
{
    int n = 0;
    for (int small = 1; small >= 0; small--)
        for (size_t i = 0; i < n_cases; i++)
            for (int d = KI_F32; d <= KI_F16; d++)
                for (int pass = 0; pass < KI_PASSES; pass++)
                    if (gpu_tagged(&cases[i], "small") == small && chosen(o, &cases[i], (enum ki_dtype)d, (enum ki_pass)pass)
                        && n < GPU_CHECKS_MAX)
                        checks[n++] = (struct gpu_check){ &cases[i], (enum ki_dtype)d, (enum ki_pass)pass };
    return n;
}

/* The largest share of an error budget that a tensor used. */
static double share_used(const struct compare_tensor *t)
{
    double most = t->max_error > 0 ? t->max_error / t->max_allowed : 0;
    return t->rms_error > 0 ? fmax(most, t->rms_error / t->rms_allowed) : most;
}

static double budget_used(const struct compare_result *r)
{
    double most = 0;
    for (int i = 0; i < r->tensors; i++)
        most = fmax(most, share_used(&r->tensor[i]));
    return most;
}

/* Where few rows share a factor, the baseline's error, and so the bound, is a matter of luck: a result beyond it is held against it
 * again over DRAWS draws together, this one among them, the largest of all errors against the largest bound, and RMS likewise. */
enum { DRAWS = 16 };

static int check_again(const struct gpu_check *k, struct tensors *t, const struct tolerance by_tensor[], uint64_t seed, struct compare_result *r,
    struct err *e)
{
    struct compare_result all = *r, one;
    for (int i = 0; i < all.tensors; i++) {
        all.tensor[i].rms_error *= all.tensor[i].rms_error;
        all.tensor[i].rms_allowed *= all.tensor[i].rms_allowed;
    }
    for (int draw = 1; draw < DRAWS; draw++) {
        if (compare_pass(t, k->pass, compare_own(&place_cuda), by_tensor, draw_bits(seed, (uint64_t)draw), NULL, &one, e) != 0)
            return -1;
        if (one.status != COMPARE_PASSED && one.status != COMPARE_NUMERICAL) {
            *r = one;
            return 0;
        }
        for (int i = 0; i < all.tensors; i++) {
            struct compare_tensor *to = &all.tensor[i];
            to->nonfinite += one.tensor[i].nonfinite;
            to->max_error = fmax(to->max_error, one.tensor[i].max_error);
            to->max_allowed = fmax(to->max_allowed, one.tensor[i].max_allowed);
            to->rms_error += one.tensor[i].rms_error * one.tensor[i].rms_error;
            to->rms_allowed += one.tensor[i].rms_allowed * one.tensor[i].rms_allowed;
        }
    }
    all.status = COMPARE_PASSED;
    for (int i = 0; i < all.tensors; i++) {
        all.tensor[i].rms_error = sqrt(all.tensor[i].rms_error);
        all.tensor[i].rms_allowed = sqrt(all.tensor[i].rms_allowed);
        if (all.tensor[i].nonfinite || share_used(&all.tensor[i]) > 1)
            all.status = COMPARE_NUMERICAL;
    }
    *r = all;
    return 0;
}

static void check_tensors(const struct gpu_check *k, const struct ki_case *work, const struct tolerances *tolerances, uint64_t seed,
    struct outcome *out)
{
    struct err e = { 0 };
    struct tensors t;
    struct compare_result r;
    struct tolerance by_tensor[KI_MAX_TENSORS];
    if (tolerances_of(tolerances, work, false, by_tensor, &e) != 0) {
        snprintf(out->text, sizeof out->text, "%.280s", e.text);
        return;
    }
    if (tensors_init(&t, &place_cuda, work, KI_BIT(k->pass), &e) != 0) {
        out->kind = e.code == ERR_TEMP ? TOO_LARGE : FAILED;
        snprintf(out->text, sizeof out->text, "%.280s", e.text);
        return;
    }
    int rc = compare_pass(&t, k->pass, compare_own(&place_cuda), by_tensor, seed, NULL, &r, &e);
    bool again = rc == 0 && r.status == COMPARE_NUMERICAL;
    if (again)
        rc = check_again(k, &t, by_tensor, seed, &r, &e);
    out->kind = rc == 0 && r.status == COMPARE_PASSED ? PASSED : rc != 0 && e.code == ERR_TEMP ? TOO_LARGE : FAILED;
    out->last = (rc != 0 && e.code != ERR_TEMP) || r.status == COMPARE_RUNTIME;
    out->vacuous = rc == 0 && r.vacuous;
    out->used = rc == 0 ? budget_used(&r) : 0;
    snprintf(out->text, sizeof out->text, "%s%.260s", again ? "again: " : "", rc != 0 ? e.text : r.text);
    tensors_fini(&t);
}

/* The seed of a check: of what it checks, so that it draws the same whatever else is chosen. */
static uint64_t seed_of(const struct gpu_check *k, uint64_t seed)
{
    char name[256], shape[128];
    snprintf(name, sizeof name, "%s %s %s %s", k->of->name, ki_pass_name(k->pass), ki_dtype_name(k->dtype),
        gpu_shape(k->of, shape, sizeof shape));
    for (const char *c = name; *c; c++)
        seed = draw_mix(seed + (unsigned char)*c);
    return seed;
}

static void check_one(int at, const struct gpu_options *o, const struct tolerances *tolerances, struct outcome *out)
{
    const struct gpu_check *k = &checks[at];
    struct ki_case work;
    const char *reason = "no reason given";
    double from = gpu_seconds();
    *out = (struct outcome){ .check = at, .kind = FAILED };
    if (ki_case_set(&work, k->of->operation, k->dtype, k->of->axis, k->of->n_axes, NULL, 0, &reason) != 0) {
        out->kind = REFUSED;
        snprintf(out->text, sizeof out->text, "%s", reason);
    } else if (!place_cuda.has(k->of->operation)) {
        snprintf(out->text, sizeof out->text, "no device code");
    } else if (place_cuda.setup(&work, &reason) != 0) {
        snprintf(out->text, sizeof out->text, "setup: %s", reason);
    } else {
        check_tensors(k, &work, tolerances, seed_of(k, o->seed), out);
    }
    out->seconds = gpu_seconds() - from;
}

static void child(int from, int n, const struct gpu_options *o, int to)
{
    struct err e = { 0 };
    char path[512];
    snprintf(path, sizeof path, "%s/tolerances.json", o->config);
    struct tolerances *tolerances = tolerances_load(path, &e);
    if (!tolerances) {
        fprintf(stderr, "%s: %s\n", path, e.text);
        _exit(78);
    }
    void *probe = NULL;
    int rc = place_cuda.alloc(&probe, 256);
    if (rc != 0) {
        struct outcome none = { .check = from, .kind = NO_GPU };
        snprintf(none.text, sizeof none.text, "%s", place_cuda.text(rc));
        _exit(write(to, &none, sizeof none) == sizeof none ? 69 : 70);
    }
    for (int i = from; i < n; i++) {
        struct outcome out;
        check_one(i, o, tolerances, &out);
        if (write(to, &out, sizeof out) != sizeof out || out.last)
            _exit(0);
    }
    _exit(0);
}

/* Read one outcome within `seconds`: 1 got it, 0 the child ended, -1 too late. */
static int read_outcome(int fd, double seconds, struct outcome *out)
{
    size_t have = 0;
    double until = gpu_seconds() + seconds;
    while (have < sizeof *out) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        double left = until - gpu_seconds();
        if (left <= 0 || poll(&p, 1, (int)(left * 1e3) + 1) == 0)
            return -1;
        ssize_t n = read(fd, (char *)out + have, sizeof *out - have);
        if (n <= 0)
            return 0;
        have += (size_t)n;
    }
    return 1;
}

static void log_outcome(FILE *log, const struct outcome *out)
{
    static const char *const kinds[] = { "not run", "ok", "FAIL", "refused", "too large", "no gpu" };
    const struct gpu_check *k = &checks[out->check];
    char shape[128];
    fprintf(log, "%-9s %-28s %-15s %-4s %-28s %5.2f s budget %.2f %s%s\n", kinds[out->kind], k->of->name, ki_pass_name(k->pass),
        ki_dtype_name(k->dtype), gpu_shape(k->of, shape, sizeof shape), out->seconds, out->used, out->vacuous ? "vacuous " : "", out->text);
    fflush(log);
}

/* One child's worth of checks; returns where to go on, or -1 when there is no GPU. */
static int run_child(int from, int n, const struct gpu_options *o, double until, FILE *log)
{
    int fds[2];
    fflush(NULL);
    if (pipe(fds) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        child(from, n, o, fds[1]);
    }
    close(fds[1]);
    int at = from, got = 1;
    while (at < n && got == 1 && gpu_seconds() < until) {
        struct outcome out;
        got = read_outcome(fds[0], o->check_seconds + (at == from ? 20 : 0), &out);
        if (got == 1) {
            outcomes[at] = out;
        } else {
            outcomes[at] = (struct outcome){ .check = at, .kind = FAILED };
            snprintf(outcomes[at].text, sizeof outcomes[at].text, got == 0 ? "the process died" : "took too long");
        }
        if (outcomes[at].kind == NO_GPU) {
            at = -1;
            break;
        }
        log_outcome(log, &outcomes[at++]);
        got = got == 1 && !out.last;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(fds[0]);
    return at;
}

static void print_failures(int n)
{
    int shown = 0;
    for (int i = 0; i < n; i++)
        if (outcomes[i].kind == FAILED && shown++ < 40)
            log_outcome(stdout, &outcomes[i]);
    if (shown > 40)
        printf("… and %d more failures\n", shown - 40);
}

/* Counts of one operation in one dtype: passed of all, for each pass. */
static void print_row(const char *name, enum ki_dtype dtype, int n)
{
    bool any = false;
    double used = 0;
    char cell[KI_PASSES][24] = { { 0 } };
    for (int pass = 0; pass < KI_PASSES; pass++) {
        int passed = 0, all = 0;
        for (int i = 0; i < n; i++) {
            if (strcmp(checks[i].of->name, name) != 0 || checks[i].dtype != dtype || (int)checks[i].pass != pass
                || outcomes[i].kind == REFUSED || outcomes[i].kind == NOT_RUN)
                continue;
            all++;
            passed += outcomes[i].kind == PASSED;
            used = fmax(used, outcomes[i].used);
        }
        snprintf(cell[pass], sizeof cell[pass], all ? "%d/%d" : "-", passed, all);
        any = any || all;
    }
    if (any)
        printf("%-29s %-5s %9s %9s %9s %9s   %.2f\n", name, ki_dtype_name(dtype), cell[0], cell[1], cell[2], cell[3], used);
}

static int print_summary(int n, double from)
{
    int count[NO_GPU + 1] = { 0 }, vacuous = 0, refused_csv = 0;
    print_failures(n);
    printf("%-29s %-5s %9s %9s %9s %9s   %s\n", "operation", "dtype", "forward", "backward", "full", "no-grad", "budget used");
    for (size_t i = 0; ki_operation_at(i); i++)
        for (int d = KI_F32; d <= KI_F16; d++)
            print_row(ki_operation_at(i)->name, (enum ki_dtype)d, n);
    for (int i = 0; i < n; i++) {
        count[outcomes[i].kind]++;
        vacuous += outcomes[i].vacuous;
        refused_csv += outcomes[i].kind == REFUSED && !gpu_tagged(checks[i].of, "small");
    }
    printf("%d passed, %d failed, %d too large, %d refused (%d of them in the tables), %d not run, %d vacuous, in %.0f s\n",
        count[PASSED], count[FAILED], count[TOO_LARGE], count[REFUSED], refused_csv, count[NOT_RUN], vacuous, gpu_seconds() - from);
    return count[FAILED] || refused_csv || count[NOT_RUN] || count[PASSED] == 0;
}

int main(int argc, char **argv)
{
    struct gpu_options o = gpu_options(argc, argv, "gpu-test");
    size_t n_cases = gpu_cases_read(o.cases, cases);
    int n = list_checks(&o, n_cases), at = 0;
    double from = gpu_seconds();
    char path[512];
    setenv("CUDA_MODULE_LOADING", "EAGER", 0); /* under compute-sanitizer LAZY may be given */
    if (o.list) {
        for (int i = 0; i < n; i++)
            log_outcome(stdout, &(struct outcome){ .check = i });
        return 0;
    }
    if (!place_find("cuda")) {
        printf("SKIP: built without nvcc\n");
        return 69;
    }
    snprintf(path, sizeof path, "%s/gpu-test.log", o.log ? o.log : ".");
    FILE *log = o.log ? fopen(path, "w") : fopen("/dev/null", "w");
    if (!log) {
        perror(path);
        return 74;
    }
    while (at >= 0 && at < n && gpu_seconds() - from < o.seconds)
        at = run_child(at, n, &o, from + o.seconds, log);
    if (at < 0) {
        printf("SKIP: no GPU: %s\n", outcomes[0].text);
        return 69;
    }
    fclose(log);
    return print_summary(n, from);
}
