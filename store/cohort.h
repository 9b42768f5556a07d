/* Cohorts: runs that may be compared, ranked by policy ranking-v1 (manifests.md section 4). Derived on reading, never stored. */
#ifndef KI_STORE_COHORT_H
#define KI_STORE_COHORT_H

#include "store/catalog.h"

enum unranked { RANKED, UNRANKED_STATUS, UNRANKED_RETRACTED, UNRANKED_SUPERSEDED, UNRANKED_MISSING_METRIC };
/* `STATUS_FAILED`, `RETRACTED`, `SUPERSEDED`, `MISSING_PRIMARY_METRIC`; NULL for a ranked run. */
const char *unranked_code(enum unranked u);

struct member {
	uint32_t run;
	struct run_row row;
	const struct catalog_case *c;
	int64_t primary;          /* median in stored units; -1 when there is none */
	int64_t low95, high95;    /* of a controlled run: the 95% interval of the median; -1 for others */
	enum unranked unranked;
	uint32_t rank;            /* from 1, dense; 0 when unranked */
	uint32_t kernel_rank;     /* the same among the runs of its own kernel */
	bool tied;                /* with the member before it, as published records have it */
	bool superseded;          /* whatever else it is: a retracted run stays superseded */
	uint32_t successor;       /* the run that supersedes it, when superseded */
};

struct cohort {
	struct digest key;
	struct member *members;   /* ranked ones first, in order; then the others by run number */
	size_t count, ranked;
	size_t kernels;           /* distinct operations by name; 1 unless upstream contracts coincide */
};

/* Reads the cohort of a comparison key. An unknown key gives an empty cohort. Free with cohort_fini. */
int cohort_load(struct catalog *c, const struct digest *key, struct cohort *out);
void cohort_fini(struct cohort *k);
/* Orders the members and ranks them anew, by what `unranked` says of each. */
void cohort_rank(struct cohort *k);
const struct member *cohort_member(const struct cohort *k, uint32_t run);

/* Calls `visit` for every cohort in key order until it returns non-zero, which is passed on. */
int cohort_each(struct catalog *c, int (*visit)(const struct cohort *k, void *context), void *context);

/* Comparison keys of which a text is the digest or a prefix of 8 or more hex digits; exactly one must match. */
int cohort_find(struct catalog *c, const char *text, struct digest *key);

#endif
