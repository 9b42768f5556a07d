/* gpu-bench: the table of device times: operation, pass, shape, device µs, GB/s, share of the measured copy bandwidth, beside the best
 * published time where there is one. By default the shapes tagged anchor or largest in fixtures/gpu/cases.txt. Times without
 * checking results: gpu-test does that. Work runs in child processes, one for each operation, as in gpu-test. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_cases.h"
#include "verify/bench.h"
#include "verify/stats.h"
#include "verify/tensors.h"

static struct gpu_case cases[GPU_CASES_MAX];
static struct gpu_check checks[GPU_CHECKS_MAX];

struct timed {
    const struct tensors *tensors;
    struct ki_call call;
    uint64_t seed;
};

static int prepare(void *state, void *stream, uint64_t sample)
{
    struct timed *t = state;
    struct err e = { 0 };
    int rc = sample == 0 ? tensors_draw(t->tensors, t->seed, stream, &e) : tensors_redraw(t->tensors, t->seed + sample, stream, &e);
    return rc == 0 ? 0 : 999; /* cudaErrorUnknown */
}

static int enqueue(void *state, void *stream)
{
    struct timed *t = state;
    (void)stream;
    return place_cuda.launch(&t->call);
}

struct row {
    double ns, p20, p80, source_ns, host_ns, mhz;
    int64_t samples;
    struct bench_methods methods;
};

static int time_call(struct bench *b, const struct bench_call *c, struct row *row, struct err *e)
{
    enum { ROOM = 2000 };
    static struct bench_sample samples[ROOM];
    static double ns[ROOM];
    struct bench_limits limits = bench_defaults;
    struct bench_block block = { .sample = samples, .room = ROOM };
    struct bench_source source;
    limits.cap_ns = 0.5e9;
    limits.least_samples = 60;
    if (bench_warm(b, c, 0.05e9, e) != 0 || bench_block(b, c, &limits, 1, &block, e) != 0
        || bench_methods(b, c, 21, 5000, &row->methods, e) != 0 || bench_source(b, c, 20, &source, e) != 0)
        return -1;
    row->samples = block.samples;
    row->source_ns = source.median_ns;
    row->host_ns = source.host_ns;
    for (int64_t i = 0; i < block.samples; i++) {
        ns[i] = samples[i].ns;
        row->mhz += (double)samples[i].clock_mhz / (double)block.samples;
    }
    row->ns = stats_quantile(ns, block.samples, 0.5);
    row->p20 = stats_quantile(ns, block.samples, 0.2);
    row->p80 = stats_quantile(ns, block.samples, 0.8);
    return 0;
}

/* | operation | pass | dtype | shape | device us | GB/s | of copy | best other us | */
static void print_markdown(FILE *out, const struct gpu_check *k, double us, double gbps, double share, double other)
{
    char shape[128], best[32] = "";
    if (other > 0)
        snprintf(best, sizeof best, "%.1f", other);
    fprintf(out, "| %s | %s | %s | %s | %.1f | %.0f | %.2f | %s |\n", k->of->name, ki_pass_name(k->pass), ki_dtype_name(k->dtype),
        gpu_shape(k->of, shape, sizeof shape), us, gbps, share, best);
    fflush(out);
}

static void print_time(FILE *out, const struct gpu_check *k, const struct ki_case *work, const struct row *row, double copy_gbps, bool markdown)
{
    char shape[128], best[64] = "";
    struct ki_floor floor = work->operation->floor(work, k->pass);
    double gbps = floor.dense_bytes / row->ns, us = row->ns * 1e-3;
    double other = k->pass == KI_FORWARD ? k->of->best_us[0] : k->pass == KI_BACKWARD ? k->of->best_us[1] : 0;
    if (markdown) {
        print_markdown(out, k, us, gbps, gbps / copy_gbps, other);
        return;
    }
    if (other > 0)
        snprintf(best, sizeof best, "best other %.1f: %.2fx%s", other, other / us, us > other ? " SLOWER" : "");
    fprintf(out, "%-28s %-8s %-4s %-20s %9.2f us %5.0f GB/s %5.2f  graph %.2f (%d) src %.2f h %.1f n %lld spread %.1f%% %4.0f MHz %s\n",
        k->of->name, ki_pass_name(k->pass), ki_dtype_name(k->dtype), gpu_shape(k->of, shape, sizeof shape), us, gbps,
        gbps / copy_gbps, row->methods.graph_ns * 1e-3, row->methods.nodes, row->source_ns * 1e-3, row->host_ns * 1e-3, (long long)row->samples, 100 * (row->p80 - row->p20) / row->ns, row->mhz, best);
    fflush(out);
}

/* Time one check; prints its row, or why there is none. */
static int bench_check(const struct gpu_check *k, const struct gpu_options *o, struct bench *b, double copy_gbps, FILE *out)
{
    struct ki_case work;
    const char *reason = "";
    struct err e = { 0 };
    struct tensors t;
    struct timed timed = { .tensors = &t, .seed = o->seed };
    struct bench_call c = { .prepare = prepare, .enqueue = enqueue, .state = &timed };
    struct row row = { 0 };
    char shape[128];
    gpu_shape(k->of, shape, sizeof shape);
    if (ki_case_set(&work, k->of->operation, k->dtype, k->of->axis, k->of->n_axes, NULL, 0, &reason) != 0 || !place_cuda.has(work.operation)
        || place_cuda.setup(&work, &reason) != 0) {
        fprintf(out, "%s %s: %s\n", k->of->name, shape, reason);
        return 0;
    }
    int rc = tensors_init(&t, &place_cuda, &work, KI_BIT(k->pass), &e);
    if (rc == 0) {
        struct ki_call forward;
        tensors_call(&t, k->pass, bench_stream(b), &timed.call);
        tensors_call(&t, KI_FORWARD, bench_stream(b), &forward);
        rc = tensors_draw(&t, o->seed, bench_stream(b), &e);
        if (rc == 0 && k->pass == KI_BACKWARD)
            rc = tensors_error(&place_cuda, place_cuda.launch(&forward), "forward", &e);
        if (rc == 0)
            rc = time_call(b, &c, &row, &e);
        tensors_fini(&t);
    }
    if (rc == 0)
        print_time(out, k, &work, &row, copy_gbps, o->markdown);
    else
        fprintf(out, "%s %s %s %s: %s\n", k->of->name, ki_pass_name(k->pass), ki_dtype_name(k->dtype), shape, e.text);
    return rc != 0 && e.code != ERR_TEMP ? -1 : 0;
}

struct copied {
    void *to, *from;
    size_t size_bytes;
};

static int enqueue_copy(void *state, void *stream)
{
    struct copied *c = state;
    return bench_copy(stream, c->to, c->from, c->size_bytes);
}

static int enqueue_spin(void *state, void *stream)
{
    return bench_spin(stream, *(double *)state);
}

static double median_of(struct bench *b, int (*enqueue_it)(void *, void *), void *state, int n, struct err *e)
{
    struct bench_call call = { .enqueue = enqueue_it, .state = state };
    double ns[31] = { 0 };
    for (int i = 0; i < n; i++) {
        struct bench_sample s = { 0 };
        if (bench_one(b, &call, (uint64_t)i, &s, e) != 0)
            return NAN;
        ns[i] = s.ns;
    }
    return stats_quantile(ns, n, 0.5);
}

/* The best of large copies from one buffer to three others, bytes read and written: where two buffers lie makes a copy in six slower by
 * a tenth. 0 without the memory for it. */
static double copy_bandwidth(struct bench *b, FILE *out, struct err *e)
{
    enum { BUFFERS = 4 };
    const size_t size_bytes = (size_t)2 << 30;
    void *buffer[BUFFERS] = { NULL };
    double best = 0;
    bool all = true;
    for (int i = 0; i < BUFFERS; i++)
        all = all && place_cuda.alloc(&buffer[i], size_bytes) == 0 && buffer[i];
    for (int i = 1; all && i < BUFFERS; i++) {
        struct copied c = { buffer[i], buffer[0], size_bytes };
        double gbps = 2 * (double)size_bytes / median_of(b, enqueue_copy, &c, 9, e);
        fprintf(out, "%s%.0f", i > 1 ? ", " : "copies of 2 GiB: ", gbps);
        best = fmax(best, gbps);
    }
    fprintf(out, " GB/s (bytes read and written)\n");
    for (int i = 0; i < BUFFERS; i++)
        place_cuda.release(buffer[i]);
    return best;
}

static void print_spins(struct bench *b, FILE *out, struct err *e)
{
    const double known[] = { 0, 10e3, 50e3, 200e3, 1000e3 };
    fprintf(out, "known lengths, us:");
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        double length = known[k];
        fprintf(out, " %g: %.2f", length * 1e-3, median_of(b, enqueue_spin, &length, 21, e) * 1e-3);
    }
    fprintf(out, "\n");
}

static struct bench *open_bench(struct err *e)
{
    struct bench *b = bench_open(NULL, NULL, e);
    if (!b)
        printf("SKIP: no GPU: %s\n", e->text);
    return b;
}

/* In a child: bandwidth and spins. Its answer comes through `to`. */
static void measure_machine(int to, FILE *out)
{
    struct err e = { 0 };
    struct bench *b = open_bench(&e);
    double gbps = b ? copy_bandwidth(b, out, &e) : -1;
    if (b) {
        fprintf(out, "copy bandwidth %.0f GB/s, L2 %lld MiB\n", gbps, (long long)bench_l2_bytes(b) >> 20);
        print_spins(b, out, &e);
    }
    if (b && e.text[0])
        fprintf(out, "%s\n", e.text);
    fflush(NULL);
    _exit(write(to, &gbps, sizeof gbps) == sizeof gbps ? 0 : 70);
}

static double machine(FILE *out)
{
    int fds[2];
    double gbps = -1;
    if (pipe(fds) != 0)
        abort();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        measure_machine(fds[1], out);
    close(fds[1]);
    if (read(fds[0], &gbps, sizeof gbps) != sizeof gbps)
        gbps = -1;
    close(fds[0]);
    waitpid(pid, NULL, 0);
    return gbps;
}

static void child(const struct gpu_options *o, int from, int to, double until, double copy_gbps, FILE *out)
{
    struct err e = { 0 };
    struct bench *b = open_bench(&e);
    for (int i = from; b && i < to && gpu_seconds() < until; i++) {
        alarm((unsigned)o->check_seconds + 1);
        if (bench_check(&checks[i], o, b, copy_gbps, out) != 0)
            break;
    }
    _exit(0);
}

static int list_checks(const struct gpu_options *o, size_t n_cases)
{
    int n = 0;
    for (size_t i = 0; i < n_cases; i++)
        for (int d = KI_F32; d <= KI_F16; d++)
            for (int pass = 0; pass < KI_PASSES; pass++) {
                const struct ki_operation *op = cases[i].operation;
                if (!op || !gpu_chosen(cases[i].dtypes, ki_dtype_name((enum ki_dtype)d)) || !(op->dtypes & KI_BIT(d))
                    || !(op->passes & KI_BIT(pass)) || !gpu_chosen(o->only, op->name)
                    || !gpu_tagged(&cases[i], o->tag ? o->tag : "anchor,largest")
                    || !gpu_chosen(o->pass ? o->pass : "forward,backward,full", ki_pass_name((enum ki_pass)pass))
                    || !gpu_chosen(o->dtype, ki_dtype_name((enum ki_dtype)d)) || n == GPU_CHECKS_MAX)
                    continue;
                checks[n++] = (struct gpu_check){ &cases[i], (enum ki_dtype)d, (enum ki_pass)pass };
            }
    return n;
}

static void print_file(const char *path)
{
    char line[512];
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        fputs(line, stdout);
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    struct gpu_options o = gpu_options(argc, argv, "gpu-bench");
    int n = list_checks(&o, gpu_cases_read(o.cases, cases)), at = 0;
    double from = gpu_seconds(), until = from + o.seconds;
    char path[512];
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    if (!place_find("cuda")) {
        printf("SKIP: built without nvcc\n");
        return 69;
    }
    snprintf(path, sizeof path, "%s/gpu-bench.log", o.log ? o.log : "/tmp");
    FILE *out = fopen(path, "w");
    if (!out) {
        perror(path);
        return 74;
    }
    double copy_gbps = machine(out);
    if (copy_gbps < 0)
        return 69;
    while (at < n && gpu_seconds() < until) {
        int next = at + 1;
        while (next < n && checks[next].of->operation == checks[at].of->operation)
            next++;
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            child(&o, at, next, until, copy_gbps, out);
        int status = 0;
        waitpid(pid, &status, 0);
        if (WIFSIGNALED(status))
            fprintf(out, "%s: the process was killed by signal %d\n", checks[at].of->name, WTERMSIG(status));
        at = next;
    }
    fclose(out);
    print_file(path);
    printf("%d of %d groups of checks reached, in %.0f s\n", at, n, gpu_seconds() - from);
    return at < n;
}
