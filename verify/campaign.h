/* A campaign: a long list of jobs, run in batches that each stand on their own, within a time, and gone on with by the same command. What is
 * done is a list of job digests beside the evidence (`done` in the folder); it is written after a batch's evidence, so a campaign that is
 * cut off repeats at most one batch. The order is that of the list, which `ki verify plan --by-doubt` makes. */
#ifndef KI_VERIFY_CAMPAIGN_H
#define KI_VERIFY_CAMPAIGN_H

#include "verify/run.h"

enum { CAMPAIGN_CHUNK_MAX = 1000 };

struct campaign {
    const char *jobs;      /* file */
    double budget_seconds; /* no batch is begun that would end later, as far as one can tell; 0: no end */
    int chunk;             /* jobs a batch */
    int shard, shards;     /* only jobs whose digest falls to `shard` (from 1) of `shards`, wherever they are run; 0, 0: all */
};

/* ERR_PARTIAL when some job line could not be run. Running out of time is no error: what is left is said. */
int campaign_run(const struct campaign *, const struct run *, struct arena *, struct err *);

#endif
