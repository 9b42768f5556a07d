/* What the morning mail is about: found here, written by report.c. */
#ifndef KI_STORE_REPORT_FIND_H
#define KI_STORE_REPORT_FIND_H

#include <jansson.h>

#include "store/change.h"
#include "store/flag.h"
#include "store/report.h"

/* Findings of one sort about one kernel, pass, provider, GPU and channel; for changes also of one release. */
struct group {
	const struct case_parts *of;
	const char *channel;            /* NULL for flags */
	const struct series_point *before, *since; /* last point before and first after the change; NULL for flags */
	size_t count, all;              /* findings; series of the group that were searched */
	double low, high;               /* ratios */
	const struct flag *worst;       /* flags only */
	const char *explained;
};
struct groups {
	struct group *items;
	size_t count;
};

struct report {
	struct catalog *c;
	const struct report_options *options;
	json_t *publications;           /* the new ones, oldest first */
	uint32_t first_publication, first_run; /* numbers of the first new ones */
	int64_t since_ms;
	int64_t *published_ms;          /* by publication */
	uint64_t runs, cases;
	json_t *odd;                    /* names skipped and rows rejected: {what: rows} */
	struct change_list changes;
	struct flags flags;
	struct groups slower, faster, contradictions, firsts, reruns;
};

/* Fills `r`, of which `c` and `options` are set and all else is zero. Without new runs and rows left out there are no findings. Free with
 * report_find_fini, also when it failed. */
int report_find(struct report *r);
void report_find_fini(struct report *r);

/* One kernel, pass and GPU. */
bool report_same_pass(const struct case_parts *a, const struct case_parts *b);

#endif
