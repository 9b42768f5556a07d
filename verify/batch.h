/* A batch: jobs rerun together on one device, with what must hold for all of them. Round after round a fresh process makes one block of
 * every case; sentinels are read at the start and end of each round and between the cases, negative controls run in the
 * first. A batch that accepts a control, or whose sentinels or health counters move, is void, and says why. */
#ifndef KI_VERIFY_BATCH_H
#define KI_VERIFY_BATCH_H

#include "normalize/build.h"
#include "verify/control.h"
#include "verify/equivalence.h"
#include "verify/hardware.h"
#include "verify/job.h"
#include "verify/verdict.h"
#include "verify/wire.h"

enum { BATCH_SENTINELS_MAX = 256, BATCH_CONTROLS_MAX = 32 };

struct batch_options {
    const char *device;         /* "cuda" or "cpu" */
    const char *config;         /* directory */
    const char *bundles;        /* folder of the bundles of upstream jobs; NULL without such jobs */
    const char *child;          /* program that runs upstream's code for jobs that say so; NULL without such jobs */
    const char *worker;         /* program that is the measured process: this one, with the word `worker` */
    int rounds;                 /* blocks of each case */
    double budget_seconds;      /* no block begins later than that after the start; 0: no limit. A case without all its blocks is incomplete */
    double host_delay_us;       /* planted in every call; such a batch is void */
    void (*progress)(void *state, const char *line); /* may be NULL */
    void (*step)(void *state, int blocks, int all);   /* before each block: how many are over; may be NULL */
    void *progress_state;
};

/* A block of a case. Arrays live in the batch's arena. */
struct block {
    int64_t samples, throttled, compared;
    double *ns, *cycles;
    double median_ns, half_width, clock_mhz;
    struct bench_source source;
    bool power_capped;
    int temperature_c, power_mw;
};

/* What became of a job. */
struct outcome {
    const struct job *job;
    char status[32], text[256];
    struct block block[VERDICT_BLOCKS_MAX];
    int blocks;
    bool checked;
    struct compare_result check;
    struct bench_methods methods; /* NAN when the second method was not used */
    int64_t compared, tensor_bytes, observed_ms;
};

struct control_outcome {
    const struct control *control;
    bool ran, refused;
    char how[256];
};

struct batch {
    struct arena arena;
    char id[33];
    struct batch_options options;
    bool timed;                 /* a GPU; the CPU device times nothing */
    struct device_cuda cuda;
    struct device_nvml nvml;
    struct device_host host;
    struct hardware hardware;
    struct equivalence equivalence;
    struct object environment;
    struct device_health before, after;
    struct sentinels sentinel[BATCH_SENTINELS_MAX];
    int sentinels;
    struct control_outcome control[BATCH_CONTROLS_MAX];
    int controls;
    struct outcome *outcome;
    int outcomes;
    char void_reason[256];      /* "" when the batch stands */
    int processes;              /* measured processes that were started */
};

/* Runs the jobs. ERR_UNAVAILABLE when there is no such device here; whatever happens to a job is in its outcome. */
int batch_run(struct batch *, const struct batch_options *, const struct job *jobs, int n, struct err *);
void batch_fini(struct batch *);

/* How many controls were refused. */
int batch_refused(const struct batch *);

/* The pooled windows of an outcome, block after block, and how many in each. */
double *batch_pool(const struct outcome *, struct arena *, int64_t count[VERDICT_BLOCKS_MAX], int64_t *total);

#endif
