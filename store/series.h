/* Series: all latencies of one case in one channel, in the order in which they were measured.
 *
 * A case is an upstream key (kernel, provider, mode, x, config string, GPU), so the points of a series differ in code and in
 * host only. Runs of drops are ordered by observedAt like those of rewritten files: a drop is measured in one go, so this is
 * the order of the drops, whatever the order in which they reached the store. Failed runs, retracted ones and runs without a median
 * are left out; superseded ones are history and stay in. */
#ifndef KI_STORE_SERIES_H
#define KI_STORE_SERIES_H

#include "store/view.h"

/* A file that upstream published. */
struct release {
	uint32_t id;           /* number of the publication */
	uint8_t slot;          /* channel */
	int64_t published_ms;  /* ours */
	int64_t upstream_ms;   /* of upstream's commit where it is known, else ours */
	const char *identity;  /* gh-pages entry, or commit */
	const char *commit;    /* full or 12-digit commit, "" when unknown */
};

struct series_point {
	uint32_t run;
	int64_t observed_ms;
	int64_t median_ns, p20_ns, p80_ns; /* p20, p80: -1 when not published */
	const struct release *release;     /* the one that carried it first in this channel, by upstream's time */
	struct slice version;              /* liger_version as in the file */
	struct slice caveats;              /* codes joined by commas */
};

struct series {
	const struct catalog_case *of;
	uint8_t slot;
	const struct series_point *points;
	size_t count;
};

struct series_set {
	struct series *items; /* by kernel, mode, GPU, channel, provider, then size */
	size_t count;
	struct series_point *points;
	size_t point_count, point_room;
	struct release *releases; /* by id */
	size_t release_count;
	struct arena arena;
};

/* Loads every series with a point that passes the filter (its channel and since_ms included), whole, as it stood after the first
 * `publications` publications (UINT32_MAX: all). One pass over publications and runs. Free with series_fini. */
int series_load(struct catalog *c, const struct filter *filter, uint32_t publications, struct series_set *out);
void series_fini(struct series_set *s);

/* Natural logarithms of the medians; the caller frees. NULL for an empty series. */
double *series_logs(const struct series *s);
/* The scale that single samples show: the median over the points of ln(p80/p20) / 1.683, the distance of the two quantiles of
 * a normal distribution; 0 when most points have no spread. */
double series_spread(const struct series *s);

/* Appends the caveat codes that hold for one of two points only: `-code` for one that ended, `+code` for one that began, joined by
 * commas; nothing when both are alike. */
void series_explain(const struct series_point *before, const struct series_point *after, struct buf *out);

/* True when all points have the same caveats. */
bool series_caveats_alike(const struct series *s);

/* A release as people write it: a gh-pages entry whole, of a commit 12 digits. For `%.*s`. */
int release_name_length(const struct release *r);

/* What a series is, and one of its points (NULL becomes null), as JSON; the caller owns them. NULL when the store is damaged. */
json_t *series_json(struct catalog *c, const struct series *s);
json_t *series_point_json(struct catalog *c, const struct series_point *p);

#endif
