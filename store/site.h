/* A static site made of the catalog: a page for every run, cohort, operation, GPU and provider, readable from file:// or any web
 * server. Pages are a function of the catalog and config/ alone, so that a second export writes nothing; links are relative;
 * nothing is fetched from elsewhere; what a script adds (search, copying, comparing) is not needed to read.
 *
 *   index.html  coverage.html  compare.html  operations/SLUG.html  gpus/NAME.html  providers/NAME.html
 *   cohorts/AB/KEY.html  runs/AB/DIGEST.html  runs/AB/DIGEST.json  trends/AB/CASE.html  trends/index.html  assets/  data/
 *
 * AB are the first two hex digits. A run's JSON is what `ki show --json` prints. */
#ifndef KI_STORE_SITE_H
#define KI_STORE_SITE_H

#include <jansson.h>

#include "store/flag.h"
#include "store/lineage.h"
#include "store/policy.h"
#include "store/whole.h"

struct site_totals {
	uint64_t pages, files;        /* HTML pages; all files, pages included */
	uint64_t written, unchanged;  /* files */
	uint64_t size_bytes;          /* of all files */
};
/* Writes the site under `directory`, which is made when it is missing. Thresholds, floors and site.json come from `config`. */
int site_export(struct catalog *c, const char *config, const char *directory, struct site_totals *totals);

/* site.json of a config directory, checked. The caller owns it; NULL with ERR_CONFIG. */
json_t *site_config(const char *directory, struct err *e);

/* ---- for the modules that write pages ---- */

/* What is kept of each run after its page is written, for the pages that list many. */
struct site_run {
	uint32_t run, rank, ranked;   /* rank 0: none; ranked: members of its cohort that are */
	enum unranked unranked;
	struct run_row row;
	const struct catalog_case *of;
};

struct site {
	struct catalog *c;
	const char *directory;
	json_t *config;               /* site.json */
	struct whole_cache *cache;
	struct lineage lineage;
	struct policy policy;
	struct change_list changes;   /* all of the catalog */
	struct trends *trends;        /* of site_trend.h */
	struct flags flags;
	const struct flag **by_run;   /* flags by run, then in the order of `flags` */
	struct site_run *runs;        /* by cohort, then rank */
	size_t count, room;
	struct buf names;             /* pages of GPUs and providers for search: `[name,title],…` as JSON */
	struct site_totals totals;
	struct buf path;
};

/* Writes one file of the site, unless its bytes are there already. `name` is relative to the site. */
int site_write(struct site *s, const char *name, const struct buf *text);
/* A file of data for scripts: kiShard("NAME",VALUE); begun in `out`, to be continued with VALUE, and ended, which writes data/NAME.js. */
void site_shard_begin(struct buf *out, const char *name);
int site_shard_end(struct site *s, struct buf *out, const char *name);
/* A text of site.json; "" when it is not set. */
const char *site_text(const struct site *s, const char *name);
/* Flags of a run: the first of them, *count in a row. */
const struct flag *const *site_flags(const struct site *s, uint32_t run, size_t *count);
/* Appends their codes, joined by commas. */
void site_flag_names(const struct site *s, uint32_t run, struct buf *out);

/* Names of pages, relative to the site. */
enum { SITE_NAME_MAX = 160 };
void site_run_name(const struct digest *run, char out[SITE_NAME_MAX]);       /* runs/52/521a….html */
void site_cohort_name(const struct digest *key, char out[SITE_NAME_MAX]);    /* cohorts/26/26ef….html */
void site_list_name(const char *folder, struct slice name, char out[SITE_NAME_MAX]); /* folder/kebab(name).html */

#endif
