/* ki-verify: reruns recorded work on this machine's GPU, checks it, times it, and signs what it found. Opens no store: jobs and
 * evidence are files (docs/verify-files.md). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <zstd.h>

#include "core/file.h"
#include "core/home.h"
#include "core/json.h"
#include "core/log.h"
#include "verify/evidence.h"
#include "verify/manifest.h"
#include "verify/worker.h"

enum { KEYS_MAX = 8, JOBS_MAX = 100000, FILE_MAX_BYTES = 1 << 30 };

struct options {
    const char *verb, *device, *out, *config, *worker;
    const char *key[KEYS_MAX];
    int keys, rounds;
    double host_delay_us;
    bool quiet;
    char **operand;
    int operands;
};

static void usage(FILE *to)
{
    fputs("usage: ki-verify run JOBS --out DIR --key FILE [--device cuda|cpu] [--config DIR] [--rounds N] [--quiet]\n"
          "       ki-verify replay EVIDENCE… [--config DIR]    recompute verdicts, no GPU needed\n"
          "       ki-verify keygen FILE                        make a key; prints its entry for config/signers.json\n"
          "       ki-verify cosign EVIDENCE --key FILE         add a signature to every envelope of a file\n"
          "       ki-verify gpu-info                           this GPU as evidence describes it\n\n"
          "run reruns every job line on the GPU: the result against an fp64 reference, then device time in 5 blocks of fresh processes.\n"
          "DIR gets evidence-<batch>.jsonl (signed) and samples/. --device cpu checks references and contracts and times nothing.\n"
          "--host-delay-us N plants a delay before every call, to show a launch-bound case; such a batch is void.\n"
          "--key may be given more than once; $KI_KEY is used when it is not given.\n"
          "exit: 0 done, whatever the verdicts; 1 done, but some job lines could not be run; 64 usage; 65 evidence that does not hold;\n"
          "      66 no such file; 69 no GPU or no nvcc here; 70 bug; 74 I/O; 78 config\n", to);
}

static void version(void)
{
    printf("ki-verify " KI_VERSION " (jansson %s, %s, zstd %s, %s)\n", jansson_version_str(), OpenSSL_version(OPENSSL_VERSION), ZSTD_versionString(),
        place_find("cuda") ? "CUDA device built in" : "no CUDA device: built without nvcc");
}

/* Read everything before a verb does anything. Returns an exit code, or -1 to go on. */
static int read_options(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {
        { "out", 1, NULL, 'o' }, { "key", 1, NULL, 'k' }, { "device", 1, NULL, 'd' }, { "config", 1, NULL, 'c' }, { "rounds", 1, NULL, 'r' },
        { "worker", 1, NULL, 'w' }, { "host-delay-us", 1, NULL, 'D' }, { "quiet", 0, NULL, 'q' }, { "help", 0, NULL, 'h' }, { "version", 0, NULL, 'V' }, { 0 },
    };
    int c;
    *o = (struct options){ .device = "cuda", .rounds = 5 };
    while ((c = getopt_long(argc, argv, "hqV", known, NULL)) != -1)
        switch (c) {
        case 'o': o->out = optarg; break;
        case 'k': if (o->keys < KEYS_MAX) o->key[o->keys++] = optarg; break;
        case 'd': o->device = optarg; break;
        case 'c': o->config = optarg; break;
        case 'r': o->rounds = atoi(optarg); break;
        case 'w': o->worker = optarg; break;
        case 'D': o->host_delay_us = atof(optarg); break;
        case 'q': o->quiet = true; break;
        case 'h': usage(stdout); return 0;
        case 'V': version(); return 0;
        default: usage(stderr); return ERR_USAGE;
        }
    o->verb = optind < argc ? argv[optind++] : NULL;
    o->operand = argv + optind;
    o->operands = argc - optind;
    if (o->keys == 0 && getenv("KI_KEY"))
        o->key[o->keys++] = getenv("KI_KEY");
    return -1;
}

/* ---- run ---- */

/* Job lines that can be run; the others are said and counted. */
static struct job *read_jobs(const char *path, struct arena *a, int *n, int *skipped, struct err *e)
{
    struct buf text = { 0 };
    struct job *jobs = NULL;
    unsigned line = 0;
    if (file_read(path, FILE_MAX_BYTES, &text, e) != 0)
        return NULL;
    jobs = arena_alloc(a, sizeof *jobs * (JOBS_MAX + 1));
    for (char *at = text.data, *end; at && at < text.data + text.len && *n < JOBS_MAX; at = end + 1) {
        struct err own = { 0 };
        char words[1200];
        end = memchr(at, '\n', (size_t)(text.data + text.len - at));
        end = end ? end : text.data + text.len;
        line++;
        if (end == at)
            continue;
        if (job_read((struct slice){ at, (size_t)(end - at) }, path, line, a, &jobs[*n], &own) == 0)
            (*n)++;
        else {
            log_error("%s", err_format(&own, words, sizeof words));
            (*skipped)++;
        }
    }
    buf_fini(&text);
    return jobs;
}

static int load_keys(const struct options *o, struct sign_key *keys[KEYS_MAX], struct err *e)
{
    if (o->keys == 0)
        return err_set(e, ERR_USAGE, "evidence has to be signed: --key FILE or $KI_KEY (ki-verify keygen FILE makes one)");
    for (int i = 0; i < o->keys; i++)
        if (!(keys[i] = sign_key_load(o->key[i], e)))
            return -1;
    return 0;
}

static void print_outcome(const struct batch *b, const struct outcome *o, const struct evidence *v, struct arena *a)
{
    printf("%-52s %-21s", job_title(o->job, a), v->status);
    if (v->timing.samples)
        printf(" %10.2f us  src %10.2f  h %6.1f  %-6s %5.0f GB/s %4.2f", v->timing.median * 1e-3, v->t_src_ns * 1e-3, v->h_ns * 1e-3,
            rerun_class_text(v->verdict.class), v->gbps, v->copy_share > 0 ? v->copy_share : 0);
    printf("  %s%s%s\n", verdict_text(v->verdict.code), o->text[0] ? ": " : "", o->text);
    (void)b;
}

static int write_evidence(struct batch *b, const struct options *o, struct sign_key *const keys[], struct err *e)
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
            rc = sign_envelope((struct slice){ payload.data, payload.len }, SIGN_PAYLOAD_TYPE, keys, o->keys, &envelope, e);
        buf_char(&envelope, '\n');
        if (rc == 0)
            rc = file_add(file, envelope.data, envelope.len, e);
        if (rc == 0)
            print_outcome(b, &b->outcome[i], &v, &b->arena);
    }
    buf_fini(&payload);
    buf_fini(&envelope);
    if (rc != 0) {
        file_abort(file);
        return -1;
    }
    return file_commit(file, e);
}

static void progress(void *state, const char *line)
{
    (void)state;
    log_info("%s", line);
}

static int environment_of(struct batch *b, struct err *e)
{
    return b->timed ? manifest_environment(&b->cuda, &b->nvml, &b->host, &b->hardware, &b->arena, &b->environment, e)
                    : manifest_environment_cpu(&b->host, &b->arena, &b->environment, e);
}

static int run_jobs(const struct options *o, const struct job *jobs, int n, const char *config, struct sign_key *const keys[], struct err *e)
{
    struct batch b;
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = 0;
    struct batch_options options = { o->device, config, o->worker ? o->worker : self, o->rounds, o->host_delay_us, progress, NULL };
    int rc = batch_run(&b, &options, jobs, n, e);
    if (rc == 0)
        rc = environment_of(&b, e);
    if (rc == 0)
        rc = write_evidence(&b, o, keys, e);
    if (rc == 0) {
        printf("batch %s: %d jobs, %d processes, %d controls refused of %d%s%s\n", b.id, b.outcomes, b.processes,
            batch_refused(&b), b.controls, b.void_reason[0] ? "; VOID: " : "", b.void_reason);
        if (!b.timed)
            printf("the CPU device checks results and times nothing\n");
    }
    batch_fini(&b);
    return rc;
}

static int command_run(const struct options *o, struct arena *a, struct err *e)
{
    struct sign_key *keys[KEYS_MAX] = { 0 };
    int n = 0, skipped = 0;
    const char *config = home_config(a, o->config, e);
    if (!config)
        return -1;
    if (o->operands != 1 || !o->out || o->rounds < 1 || o->rounds > VERDICT_BLOCKS_MAX)
        return err_set(e, ERR_USAGE, "run takes one file of jobs, --out DIR, and 1 to %d rounds", VERDICT_BLOCKS_MAX);
    if (!place_find(o->device))
        return err_set(e, ERR_UNAVAILABLE, "no %s device in this program%s", o->device, strcmp(o->device, "cuda") == 0 ? ": it was built without nvcc" : "");
    struct job *jobs = read_jobs(o->operand[0], a, &n, &skipped, e);
    int rc = jobs && load_keys(o, keys, e) == 0 && file_make_dirs(o->out, e) == 0 ? 0 : -1;
    if (rc == 0 && n > 0)
        rc = run_jobs(o, jobs, n, config, keys, e);
    for (int i = 0; i < o->keys; i++)
        sign_key_free(keys[i]);
    if (rc == 0 && skipped)
        return err_set(e, ERR_PARTIAL, "%d of %d job lines could not be run", skipped, skipped + n);
    return rc;
}

/* ---- replay ---- */

struct replays {
    struct replay *list;
    int n, room, failed;
};

static const char *directory_of(const char *path, struct arena *a)
{
    const char *slash = strrchr(path, '/');
    return slash ? arena_strndup(a, path, (size_t)(slash - path)) : ".";
}

static void replay_envelope(struct slice text, const char *path, unsigned line, const struct signers *signers, struct arena *a, struct replays *r)
{
    struct buf payload = { 0 };
    struct sign_check check;
    struct err e = { 0 };
    struct replay replay;
    char words[1200];
    int rc = sign_open(text, signers, path, line, &check, &payload, &e);
    if (rc == 0)
        rc = evidence_replay((struct slice){ payload.data, payload.len }, directory_of(path, a), path, line, a, &replay, &e);
    if (rc != 0) {
        log_error("%s", err_format(&e, words, sizeof words));
        r->failed++;
    } else {
        printf("%-52s %-18s d %+.4f u95 %.4f u99 %.4f  %s; %s\n", replay.title, verdict_text(replay.found), replay.d, replay.u95, replay.u99,
            replay.from_samples ? "from its samples" : "from its blocks", sign_accepted(&check) ? "signature good" : check.what);
        if (r->n == r->room)
            r->list = xrealloc(r->list, (size_t)(r->room = r->room ? 2 * r->room : 64) * sizeof *r->list);
        r->list[r->n++] = replay;
    }
    buf_fini(&payload);
}

/* A refutation stands only when two batches say so. */
static void print_combined(const struct replays *r)
{
    for (int i = 0; i < r->n; i++) {
        enum verdict_code codes[VERDICT_BLOCKS_MAX];
        int n = 0, newest = i;
        for (int k = 0; k < r->n && n < VERDICT_BLOCKS_MAX; k++)
            if (digest_cmp(&r->list[k].subject, &r->list[i].subject) == 0) {
                codes[n++] = r->list[k].found;
                newest = k;
            }
        if (newest == i && n > 1)
            printf("%s: %d batches together say %s\n", r->list[i].external_id, n, verdict_text(verdict_combine(codes, n)));
    }
}

static int command_replay(const struct options *o, struct arena *a, struct err *e)
{
    struct replays r = { 0 };
    const char *config = home_config(a, o->config, e);
    if (!config || o->operands < 1)
        return config ? err_set(e, ERR_USAGE, "replay takes files of evidence") : -1;
    struct signers *signers = signers_load(arena_printf(a, "%s/signers.json", config), e);
    if (!signers)
        return -1;
    for (int i = 0; i < o->operands && e->code == ERR_NONE; i++) {
        struct buf text = { 0 };
        unsigned line = 0;
        if (file_read(o->operand[i], FILE_MAX_BYTES, &text, e) == 0)
            for (char *at = text.data, *end; at && at < text.data + text.len; at = end + 1) {
                end = memchr(at, '\n', (size_t)(text.data + text.len - at));
                end = end ? end : text.data + text.len;
                line++;
                if (end > at)
                    replay_envelope((struct slice){ at, (size_t)(end - at) }, o->operand[i], line, signers, a, &r);
            }
        buf_fini(&text);
    }
    print_combined(&r);
    signers_free(signers);
    free(r.list);
    return r.failed ? err_set(e, ERR_DATA, "%d of %d statements do not hold", r.failed, r.failed + r.n) : e->code ? -1 : 0;
}

/* ---- keys, device ---- */

static int command_keygen(const struct options *o, struct err *e)
{
    struct buf entry = { 0 };
    if (o->operands != 1)
        return err_set(e, ERR_USAGE, "keygen takes the file to write");
    if (sign_keygen(o->operand[0], e) != 0)
        return -1;
    struct sign_key *k = sign_key_load(o->operand[0], e);
    if (!k)
        return -1;
    const char *slash = strrchr(o->operand[0], '/');
    sign_key_entry(k, slash ? slash + 1 : o->operand[0], &entry);
    printf("%s\n", entry.data);
    buf_fini(&entry);
    sign_key_free(k);
    return 0;
}

static int command_cosign(const struct options *o, struct err *e)
{
    struct sign_key *keys[KEYS_MAX] = { 0 };
    struct buf text = { 0 }, out = { 0 };
    int rc = o->operands == 1 ? load_keys(o, keys, e) : err_set(e, ERR_USAGE, "cosign takes one file of evidence");
    if (rc == 0)
        rc = file_read(o->operand[0], FILE_MAX_BYTES, &text, e);
    for (char *at = text.data, *end; rc == 0 && at && at < text.data + text.len; at = end + 1) {
        end = memchr(at, '\n', (size_t)(text.data + text.len - at));
        end = end ? end : text.data + text.len;
        rc = sign_add((struct slice){ at, (size_t)(end - at) }, keys[0], &out, e);
        buf_char(&out, '\n');
    }
    if (rc == 0)
        rc = file_write(o->operand[0], out.data, out.len, 0644, e);
    for (int i = 0; i < o->keys; i++)
        sign_key_free(keys[i]);
    buf_fini(&text);
    buf_fini(&out);
    return rc;
}

static int command_gpu_info(const struct options *o, struct arena *a, struct err *e)
{
    struct device_cuda cuda;
    struct device_nvml nvml;
    struct device_host host;
    struct hardware hardware;
    struct object environment;
    const char *config = home_config(a, o->config, e);
    if (!device_cuda_read)
        return err_set(e, ERR_UNAVAILABLE, "no CUDA device in this program: it was built without nvcc");
    if (!config || device_cuda_read(&cuda, e) != 0
        || hardware_find(arena_printf(a, "%s/hardware.json", config), cuda.name, cuda.major, cuda.minor, a, &hardware, e) != 0)
        return -1;
    struct nvml *n = nvml_open(cuda.pci_bus);
    nvml_read(n, &nvml);
    device_host_read(&host);
    nvml_close(n);
    if (manifest_environment(&cuda, &nvml, &host, &hardware, a, &environment, e) != 0)
        return -1;
    printf("%.*s\n", (int)environment.body.len, environment.body.data);
    fprintf(stderr, "%s: %d multiprocessors, L2 %lld MiB, SM %d of %d MHz, memory %d MHz, %d C, MIG %d, VBIOS %s%s\n", cuda.name, cuda.multiprocessors,
        (long long)(cuda.l2_bytes >> 20), nvml.sm_mhz, nvml.sm_max_mhz, nvml.memory_mhz, nvml.temperature_c, nvml.mig, nvml.vbios,
        n ? "" : " (no NVML here: what only it knows is -1)");
    return 0;
}

static int command_worker(const struct options *o, struct err *e)
{
    if (o->operands != 2)
        return err_set(e, ERR_USAGE, "worker is started by run");
    return worker_run(o->operand[0], o->operand[1], e);
}

static int dispatch(const struct options *o, struct arena *a, struct err *e)
{
    if (!o->verb)
        return err_set(e, ERR_USAGE, "what is to be done? ki-verify --help");
    if (strcmp(o->verb, "run") == 0)
        return command_run(o, a, e);
    if (strcmp(o->verb, "replay") == 0)
        return command_replay(o, a, e);
    if (strcmp(o->verb, "keygen") == 0)
        return command_keygen(o, e);
    if (strcmp(o->verb, "cosign") == 0)
        return command_cosign(o, e);
    if (strcmp(o->verb, "gpu-info") == 0)
        return command_gpu_info(o, a, e);
    if (strcmp(o->verb, "worker") == 0)
        return command_worker(o, e);
    return err_set(e, ERR_USAGE, "no such verb: %s", o->verb);
}

int main(int argc, char **argv)
{
    struct options o;
    struct arena a = { 0 };
    struct err e = { 0 };
    int code = read_options(argc, argv, &o);
    if (code >= 0)
        return code;
    log_init("ki-verify", o.quiet);
    int rc = dispatch(&o, &a, &e);
    if (rc == 0)
        rc = file_flush_stdout(&e);
    arena_fini(&a);
    return rc == 0 ? 0 : err_exit(&e, "ki-verify");
}
