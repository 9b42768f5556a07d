/* Jobs: what a GPU host is asked to rerun, one JSON object a line, whole in itself. docs/verify-files.md shows every field.
 *
 * A job names one record by digest and carries what is needed to rerun it and to judge it: operation, workload and protocol bodies,
 * the pass, what the record reports, whose code and GPU it was, and limits. Written by whoever holds a store; read here and
 * trusted in nothing: every number has a range, every digest is recomputed, an unknown field is skipped, a wrong one is
 * ERR_DATA. Strings live in the arena given. */
#ifndef KI_VERIFY_JOB_H
#define KI_VERIFY_JOB_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/digest.h"
#include "core/err.h"
#include "verify/bundle.h"
#include "verify/light.h"

enum { JOB_LINE_MAX = 1 << 20 };

struct job {
    struct digest digest;             /* of the line's canonical text */
    const char *id, *nonce, *policy;
    struct digest subject;            /* the record's run */
    const char *external_id, *kernel, *provider;
    bool native;                      /* runner: native; false: upstream */
    const char *commit, *version;     /* upstream: whose code the record ran; "" where it does not say */
    struct slice implementation_body; /* upstream: the record's, canonical */
    const struct bundle *bundle;      /* upstream: what to replay; set by who has the folder of bundles */
    bool by_child;                    /* upstream: its code runs in a child instead; set likewise */
    struct digest operation, workload, protocol; /* of the bodies in the line */
    struct slice operation_body, workload_body;  /* canonical */
    struct ki_case work;
    enum ki_pass pass;
    struct {
        double median_ns, p20_ns, p80_ns; /* p20, p80: 0 when the record has none */
        int64_t samples;
        double width_p90;                 /* of its size class; 0 when the plan does not say */
    } reported;
    const char *product, *form_factor;    /* the record's GPU; form_factor "" when it has none */
    int64_t gpu_memory_bytes;             /* 0 when the record does not say */
    struct peak peak;                     /* of that GPU; zeros when unknown */
    double source_budget_ms;              /* the source's `rep`; 100 when absent */
    double wall_seconds;                  /* for one block; 120 when absent */
    int64_t memory_bytes;                 /* 0: what the device has */
};

/* Reads one line. ERR_DATA when it is no job, ERR_UNAVAILABLE when it is one that cannot be run here (an operation, dtype or
 * runner this program does not have). `name` and `line` are for the error. */
int job_read(struct slice text, const char *name, unsigned line, struct arena *, struct job *, struct err *);

/* "rows = 2048 · hidden = 4096 · bf16"-like text is the store's; this one is for progress: "rms_norm backward 2048x4096 bf16". */
const char *job_title(const struct job *, struct arena *);

#endif
