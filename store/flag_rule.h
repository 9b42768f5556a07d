/* The rules behind flags, on runs that flag.c has gathered. Which numbers they look at: config/flags.json. */
#ifndef KI_STORE_FLAG_RULE_H
#define KI_STORE_FLAG_RULE_H

#include "store/flag.h"
#include "store/policy.h"

/* One latency run that is not superseded, with what the rules look at. */
struct sample {
	uint32_t run, rank;
	const struct catalog_case *c;
	struct slice labels, version;
	int64_t observed_ms;
	double median, p20, p80; /* ns; NAN when absent */
	double x;                /* the swept value; 0 when it is no number */
	struct floor floor;
};

struct deriver {
	struct catalog *c;
	const struct flag_options *options;
	struct policy policy;
	struct flags *out;
	struct sample *samples;
	size_t count, room;
	size_t flag_room;
};

/* A number of the evidence. */
struct fact {
	const char *name;
	double value;
};

/* Adds a flag unless its code is not wanted; numbers that are not finite are left out of the evidence. */
void flag_raise(struct deriver *d, enum flag_code code, const struct sample *s, uint32_t other, double severity, const struct fact *facts,
		size_t count, const char *format, ...) __attribute__((format(printf, 8, 9)));
bool flag_wanted(const struct deriver *d, enum flag_code code);

void flag_rules_of_cohort(struct deriver *d, const struct cohort *k);
void flag_rules_of_one(struct deriver *d);    /* each sample alone */
void flag_rules_of_sweeps(struct deriver *d); /* one kernel, pass, provider, GPU, config and publication, by size */
void flag_rules_of_cases(struct deriver *d);  /* across publications of one case */

#endif
