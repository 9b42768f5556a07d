/* The store's end of verify: jobs planned from records, and evidence brought back in. Shapes of both: docs/verify-files.md.
 *
 * A job line is self-contained, so a GPU host needs no store. Evidence comes back as signed in-toto statements (core/sign.h);
 * what it is worth is decided by config/signers.json alone, and nothing of a bad or unknown signature enters the store. */
#ifndef KI_STORE_RERUN_H
#define KI_STORE_RERUN_H

#include <stdio.h>

#include "store/listing.h"

struct plan_options {
	const char *config;          /* directory */
	const struct filter *filter; /* used when no runs are named */
	const uint32_t *runs;        /* the runs named, or NULL */
	size_t run_count;
	bool flagged;                /* only runs that carry a flag */
	unsigned flag_codes;         /* of these codes; 0 for any but ALIAS and RECORD_CANDIDATE */
	uint64_t limit;              /* 0: all */
	bool by_doubt;               /* flagged runs first, then leaders of their groups, then the rest; else by external id */
	bool upstream;               /* replay the record's own code; else this project's kernel */
};
/* Writes one job line a latency run that is not itself a rerun; `*count` of them. */
int rerun_plan(struct catalog *c, const struct plan_options *options, uint64_t *count, FILE *out);

struct import_totals {
	unsigned statements, accepted, refused, known, published, artifacts;
};
/* Takes every evidence-*.jsonl of a directory: checks signatures and digests, keeps file (by digest) and samples under the store, publishes
 * the reruns, and links subject and rerun. A refused line is reported to `report`, and the others are taken; the return is then
 * -1 with ERR_DATA. The same evidence twice changes nothing. */
int rerun_import(struct store *st, const char *config, const char *directory, struct import_totals *totals, FILE *report, struct err *e);

#endif
