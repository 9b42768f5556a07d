/* Jobs from a file, run as one batch, signed and written: what `ki-verify run` does once and a campaign many times. */
#ifndef KI_VERIFY_RUN_H
#define KI_VERIFY_RUN_H

#include "core/sign.h"
#include "verify/batch.h"

enum { RUN_KEYS_MAX = 8 };

struct run {
    const char *device, *config, *out, *worker, *bundles; /* worker NULL: this program; bundles NULL: no upstream jobs */
    const char *child;      /* program that runs upstream's code which cannot be replayed; NULL: such jobs are left out */
    bool only_child;        /* it also runs what could be replayed */
    bool terminal;          /* standard error is one, and somebody looks: a line there says how far it is */
    int rounds, keys;
    double host_delay_us, batch_seconds; /* batch_seconds: as budget_seconds of a batch */
    struct sign_key *key[RUN_KEYS_MAX];
};

/* Job lines that can be run; the others are said on standard error and counted. NULL when the file cannot be read. */
struct job *run_read_jobs(const char *path, const struct run *, struct arena *, int *n, int *skipped, struct err *);

/* Runs jobs as one batch and writes evidence-<batch>.jsonl, whole or not at all, with its samples. Prints a line a job. */
int run_batch(const struct run *, const struct job *, int n, struct err *);

#endif
