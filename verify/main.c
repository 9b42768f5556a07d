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
#include "core/process.h"
#include "verify/campaign.h"
#include "verify/evidence.h"
#include "verify/manifest.h"
#include "verify/worker.h"

enum { FILE_MAX_BYTES = 1 << 30 };

struct options {
    const char *verb, *device, *out, *config, *worker, *bundles, *child, *shard;
    const char *key[RUN_KEYS_MAX];
    int keys, rounds, chunk;
    double host_delay_us, hours;
    bool quiet, only_child;
    char **operand;
    int operands;
};

static void usage(FILE *to)
{
    fputs("usage: ki-verify run JOBS --out DIR --key FILE [option…]\n"
          "       ki-verify campaign JOBS --out DIR --key FILE [option…]\n"
          "       ki-verify replay EVIDENCE…       recompute verdicts, no GPU needed\n"
          "       ki-verify keygen FILE            make a key; prints its entry for config/signers.json\n"
          "       ki-verify cosign EVIDENCE --key FILE   add a signature to every envelope of a file\n"
          "       ki-verify gpu-info               this GPU as evidence describes it\n\n"
          "run reruns every job line on the GPU: the result against an fp64 reference, then device time in 5 blocks of fresh processes.\n"
          "DIR gets evidence-<batch>.jsonl (signed) and samples/.\n"
          "campaign runs a long list in batches, in the order of the file; the same command goes on where it stopped. DIR can be imported\n"
          "meanwhile. Shards share no job and need no common DIR.\n\n"
          "  --out DIR           where evidence goes\n"
          "  --key FILE          signing key; may be given more than once; $KI_KEY when not given\n"
          "  --device cuda|cpu   cpu checks references and contracts and times nothing\n"
          "  --rounds N          blocks of fresh processes, 5 when not given\n"
          "  --bundles DIR       what verify/capture.py wrote on this host, for jobs of runner upstream\n"
          "  --child FILE        verify/child.py: runs, sealed, what of them cannot be replayed; they are left out when not given\n"
          "  --only-child        it also runs what can be replayed\n"
          "  --hours H           campaign: until they are over; run: no block begins later, and what lacks blocks then is incomplete\n"
          "  --shard I/N         campaign: the jobs whose digest falls to I of N\n"
          "  --chunk N           campaign: jobs a batch, 16 when not given\n"
          "  --host-delay-us N   plants a delay before every call, to show a launch-bound case; such a batch is void\n"
          "  --worker FILE       the program to start for a block; this one when not given\n"
          "  --config DIR        the config; $KI_CONFIG, else the installation's, when not given\n"
          "  --quiet             print nothing that needs no person\n"
          "  --log-format text|json  of messages on standard error; $KI_LOG_FORMAT, else text, when not given\n"
          "  --help              this text\n"
          "  --version           versions of the program and its libraries\n\n"
          "exit: 0 done, whatever the verdicts; 1 done, but some job lines could not be run; 64 usage; 65 evidence that does not hold;\n"
          "      66 no such file; 69 no GPU or no nvcc here; 70 bug; 74 I/O; 78 config\n", to);
}

static void version(void)
{
    printf("ki-verify " KI_VERSION " (jansson %s, %s, zstd %s, %s)\n", jansson_version_str(), OpenSSL_version(OPENSSL_VERSION), ZSTD_versionString(),
        place_find("cuda") ? "CUDA device built in" : "no CUDA device: built without nvcc");
}

/* Read everything before a verb does anything. Returns an exit code, or -1 to go on. */
static int read_options(int argc, char **argv, struct options *o, struct err *e)
{
    static const struct option known[] = {
        { "out", 1, NULL, 'o' }, { "key", 1, NULL, 'k' }, { "device", 1, NULL, 'd' }, { "config", 1, NULL, 'c' }, { "rounds", 1, NULL, 'r' },
        { "worker", 1, NULL, 'w' }, { "bundles", 1, NULL, 'b' }, { "child", 1, NULL, 'x' }, { "only-child", 0, NULL, 'X' },
        { "shard", 1, NULL, 's' }, { "hours", 1, NULL, 'H' }, { "chunk", 1, NULL, 'C' },
        { "host-delay-us", 1, NULL, 'D' }, { "quiet", 0, NULL, 'q' }, { "log-format", 1, NULL, 'l' }, { "help", 0, NULL, 'h' }, { "version", 0, NULL, 'V' }, { 0 },
    };
    int c;
    *o = (struct options){ .device = "cuda", .rounds = 5, .chunk = 16 };
    opterr = 0;
    while ((c = getopt_long(argc, argv, "hqV", known, NULL)) != -1)
        switch (c) {
        case 'o': o->out = optarg; break;
        case 'k': if (o->keys < RUN_KEYS_MAX) o->key[o->keys++] = optarg; break;
        case 'd': o->device = optarg; break;
        case 'c': o->config = optarg; break;
        case 'r': o->rounds = atoi(optarg); break;
        case 'w': o->worker = optarg; break;
        case 'b': o->bundles = optarg; break;
        case 'x': o->child = optarg; break;
        case 'X': o->only_child = true; break;
        case 's': o->shard = optarg; break;
        case 'H': o->hours = atof(optarg); break;
        case 'C': o->chunk = atoi(optarg); break;
        case 'D': o->host_delay_us = atof(optarg); break;
        case 'q': o->quiet = true; break;
        case 'h': usage(stdout); return 0;
        case 'V': version(); return 0;
        case 'l':
            if (log_set_format(optarg, e) != 0)
                return ERR_USAGE;
            break;
        default: err_option(e, argv, "ki-verify"); return ERR_USAGE;
        }
    o->verb = optind < argc ? argv[optind++] : NULL;
    o->operand = argv + optind;
    o->operands = argc - optind;
    if (o->keys == 0 && getenv("KI_KEY"))
        o->key[o->keys++] = getenv("KI_KEY");
    return -1;
}

/* ---- run ---- */

static int load_keys(const struct options *o, struct sign_key *keys[RUN_KEYS_MAX], struct err *e)
{
    if (o->keys == 0)
        return err_set(e, ERR_USAGE, "evidence has to be signed: --key FILE or $KI_KEY (ki-verify keygen FILE makes one)");
    for (int i = 0; i < o->keys; i++)
        if (!(keys[i] = sign_key_load(o->key[i], e)))
            return -1;
    return 0;
}

/* Everything that running takes beside the jobs; what is in `r` is released by end_run(). */
static int begin_run(const struct options *o, struct arena *a, struct run *r, struct err *e)
{
    *r = (struct run){ .device = o->device, .config = home_config(a, o->config, e), .out = o->out, .worker = o->worker, .bundles = o->bundles, .child = o->child, .only_child = o->only_child,
        .rounds = o->rounds, .host_delay_us = o->host_delay_us, .terminal = isatty(STDERR_FILENO) && !o->quiet };
    if (!r->config)
        return -1;
    if (o->operands != 1 || !o->out || o->rounds < 1 || o->rounds > VERDICT_BLOCKS_MAX)
        return err_set(e, ERR_USAGE, "%s takes one file of jobs, --out DIR, and 1 to %d rounds", o->verb, VERDICT_BLOCKS_MAX);
    if (!o->worker && !place_find(o->device))
        return err_set(e, ERR_UNAVAILABLE, "no %s device in this program%s", o->device, strcmp(o->device, "cuda") == 0 ? ": it was built without nvcc" : "");
    if (load_keys(o, r->key, e) != 0)
        return -1;
    r->keys = o->keys;
    if (file_make_dirs(o->out, e))
        return -1;
    file_sweep_directory(o->out); /* what a run that was killed left half written */
    file_sweep_directory(arena_printf(a, "%s/samples", o->out));
    return 0;
}

static void end_run(struct run *r)
{
    for (int i = 0; i < RUN_KEYS_MAX; i++)
        sign_key_free(r->key[i]);
}

static int command_run(const struct options *o, struct arena *a, struct err *e)
{
    struct run r;
    int n = 0, skipped = 0, rc = begin_run(o, a, &r, e);
    r.batch_seconds = o->hours * 3600;
    struct job *jobs = rc == 0 ? run_read_jobs(o->operand[0], &r, a, &n, &skipped, e) : NULL;
    rc = jobs && n > 0 ? run_batch(&r, jobs, n, e) : jobs ? 0 : -1;
    end_run(&r);
    if (rc == 0 && skipped)
        return err_set(e, ERR_PARTIAL, "%d of %d job lines could not be run", skipped, skipped + n);
    return rc;
}

static int command_campaign(const struct options *o, struct arena *a, struct err *e)
{
    struct run r;
    struct campaign c = { .jobs = o->operand[0], .budget_seconds = o->hours * 3600, .chunk = o->chunk };
    if (o->shard && (sscanf(o->shard, "%d/%d", &c.shard, &c.shards) != 2 || c.shard < 1 || c.shard > c.shards))
        return err_set(e, ERR_USAGE, "--shard is i/n with 1 <= i <= n, not %s", o->shard);
    if (o->hours < 0 || o->chunk < 1 || o->chunk > CAMPAIGN_CHUNK_MAX)
        return err_set(e, ERR_USAGE, "--hours is a time, --chunk 1 to %d jobs", CAMPAIGN_CHUNK_MAX);
    int rc = begin_run(o, a, &r, e);
    if (rc == 0)
        rc = campaign_run(&c, &r, a, e);
    end_run(&r);
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
    int rc = sign_open(text, signers, path, line, &check, &payload, &e);
    if (rc == 0)
        rc = evidence_replay((struct slice){ payload.data, payload.len }, directory_of(path, a), path, line, a, &replay, &e);
    if (rc != 0) {
        log_failure(&e);
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
    struct sign_key *keys[RUN_KEYS_MAX] = { 0 };
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
    if (rc == 0) {
        file_sweep(o->operand[0]);
        rc = file_write(o->operand[0], out.data, out.len, 0644, e);
    }
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
    log_info("%s: %d multiprocessors, L2 %lld MiB, SM %d of %d MHz, memory %d MHz, %d C, MIG %d, VBIOS %s%s", cuda.name, cuda.multiprocessors,
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
    if (strcmp(o->verb, "campaign") == 0)
        return command_campaign(o, a, e);
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
    struct err e = { 0 }, settled = { 0 };
    int code = read_options(argc, argv, &o, &e);
    log_init("ki-verify", o.quiet);
    if (code >= 0)
        return e.code ? log_failure(&e) : code;
    if (process_settle(&settled) != 0)
        log_warn("%s", settled.text);
    int rc = dispatch(&o, &a, &e);
    if (rc == 0)
        rc = file_flush_stdout(&e);
    arena_fini(&a);
    return rc == 0 ? 0 : log_failure(&e);
}
