/* Numbers that deserve doubt, and why. Derived on reading from what is published, the floors of config/floors.json and the
 * thresholds of config/flags.json; only MANUAL flags are entries of their own. Sources of the rules: verification.md sections 1
 * and 5, bindings.md section 10. */
#ifndef KI_STORE_FLAG_H
#define KI_STORE_FLAG_H

#include <stdio.h>

#include "store/change.h"

enum flag_code {
	FLAG_IMPOSSIBLE,       /* under the hard floor of the GPU's data sheet */
	FLAG_CONTRADICTED,     /* another publication of the same version disagrees beyond both spreads */
	FLAG_REGRESSION,       /* a change point, slower */
	FLAG_IMPROVEMENT,      /* a change point, faster */
	FLAG_LAUNCH_SUSPECT,   /* looks like launch cost, not like work */
	FLAG_NON_MONOTONE,     /* a larger size takes much less time */
	FLAG_OUTLIER,          /* so far behind the first of its cohort that one of the two measured something else */
	FLAG_WIDE_SPREAD,
	FLAG_SINGLE_SAMPLE,
	FLAG_RECORD_CANDIDATE, /* new first of its cohort */
	FLAG_ALIAS,            /* two providers that run the same code */
	FLAG_MANUAL,
	FLAG_CODES
};
const char *flag_name(enum flag_code code);
bool flag_parse(const char *text, enum flag_code *out);
/* Codes as a bit set of 1 << code; ERR_USAGE lists those there are. */
int flag_codes_parse(const char *const texts[], int count, unsigned *out, struct err *e);

struct flag {
	enum flag_code code;
	uint32_t run;
	uint32_t other;       /* the run it is held against, or the same run */
	double severity;      /* larger is worse; comparable within a code */
	char *evidence;       /* canonical JSON object of numbers, on the heap */
	char *words;          /* one sentence for people, on the heap */
};

struct flags {
	struct flag *items;   /* by code, then falling severity, then run */
	size_t count;
	char *policy;         /* `flags-v1`, from config/flags.json; on the heap */
};

struct flag_options {
	const char *config;   /* directory */
	unsigned codes;       /* bit set of 1 << code; 0 for all */
	const struct change_list *changes; /* all of the catalog as it stands, by a caller that has them; NULL: found here */
};
/* Works out all flags. Free with flags_fini. */
int flags_derive(struct catalog *c, const struct flag_options *options, struct flags *out);
/* The same flags, but those of one run alone, a member of `k`. Looks at its cohort and at the other sizes of its sweep, and only where its
 * series is long enough for a change point at all series. */
int flags_of_run(struct catalog *c, const char *config, const struct cohort *k, const struct member *m, struct flags *out);
void flags_fini(struct flags *f);

/* flag_list.c: lists those whose run passes the filter. */
int flags_print(struct catalog *c, const struct flags *f, const struct filter *filter, uint64_t limit, bool json, FILE *out);

#endif
