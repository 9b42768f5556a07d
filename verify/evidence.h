/* Evidence: one line for each job of a batch, with everything a verdict follows from, and the way back from such a line to its verdict
 * without a GPU. docs/verify-files.md shows every field.
 *
 * The line is the predicate of an in-toto Statement v1 (test-result v0.1) whose subject is the rerun, in a signed DSSE envelope. Its
 * `records` are the objects to publish, whatever they cite before them, exactly as the wire between stages has them, so that
 * an import checks them and passes them on. */
#ifndef KI_VERIFY_EVIDENCE_H
#define KI_VERIFY_EVIDENCE_H

#include "verify/batch.h"
#include "core/sign.h"
#include "verify/stats.h"

/* What a job came to, beside the line: for a summary. */
struct evidence {
    struct digest digest;      /* of the canonical evidence */
    struct digest run;         /* of the rerun; zeros on the CPU device, which times nothing and publishes no run */
    const char *status;
    struct verdict verdict;
    struct stats_summary timing; /* samples 0 when not timed */
    double t_src_ns, h_ns;     /* medians over blocks; NAN when not timed */
    double gbps, copy_share;   /* NAN when not timed or not measured */
};

/* Appends the statement about outcome `i` of a batch, canonical JSON: the payload of an envelope. Writes its samples under `dir`. */
int evidence_statement(struct batch *, int i, const char *dir, struct buf *payload, struct evidence *, struct err *);

/* What came of recomputing one statement. */
struct replay {
    struct digest job, subject;
    const char *title, *external_id, *batch; /* in the arena */
    enum verdict_code said, found;
    double d, u95, u99;
    bool from_samples;         /* windows were there and every statistic was recomputed from them */
};

/* Recomputes the verdict of a statement from its digested inputs; `dir` is where samples/ may be (NULL: nowhere). ERR_DATA, in words,
 * when the statement is malformed, contradicts itself, or says another verdict than its inputs give. */
int evidence_replay(struct slice payload, const char *dir, const char *name, unsigned line, struct arena *, struct replay *, struct err *);

#endif
