/* `ki trend`: how the latencies of a kernel went over drops and versions, with their change points (change.h). */
#ifndef KI_STORE_TREND_H
#define KI_STORE_TREND_H

#include <stdio.h>

#include "store/view.h"

struct trend_options {
	const char *config;   /* directory that holds trend.json */
	struct filter filter; /* which series; `kernel` is the operand */
	const char *text;     /* --case: part of the case key or of the workload label; NULL for any */
	const char *from, *to; /* both: compare two releases, each a liger_version, a gh-pages entry or a commit (7 digits do) */
	bool json;            /* one canonical object a line */
	bool ascii;           /* show 7-bit characters alone, whatever the locale says */
	unsigned measure;     /* --measure N: what the method does to N nights of shuffled series, instead of any series */
};

/* One series: a table of its points and a chart. Several: one line each, those of one point counted only. With from and to: a line
 * for each series that has either; where [p20, p80] overlap no change is claimed, and a missing partner is named, never made up.
 * ERR_NOTFOUND when no series passes, or a release is unknown; ERR_USAGE for from without to. */
int trend_print(struct catalog *c, const struct trend_options *options, FILE *out);

#endif
