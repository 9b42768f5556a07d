/* Listings: runs by filter, and one cohort. */
#ifndef KI_STORE_LIST_H
#define KI_STORE_LIST_H

#include <stdio.h>

#include "store/listing.h"
#include "store/screen.h"

enum list_format { LIST_TABLE, LIST_TSV, LIST_CSV, LIST_JSON, LIST_JSONL };
bool list_format_parse(const char *text, enum list_format *out);

struct list_options {
	struct filter filter;
	enum list_format format;
	enum sort sort;
	const char *columns; /* comma-separated names; NULL for the usual ones */
	uint64_t limit;      /* 0: all */
	bool withdrawn;      /* only runs that upstream took back without a successor */
};
/* Writes the runs that match. tsv has no header line; csv has one. ERR_USAGE for an unknown column. */
int list_runs(struct catalog *c, const struct list_options *options, FILE *out);
/* Writes one cohort, best first, with the ratio to the first and bars as long as the medians. */
int list_cohort(struct catalog *c, const struct digest *key, bool json, const struct screen *on);

#endif
