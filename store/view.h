/* A run as people and scripts see it: its row with all that is derived on reading, and the one table of columns that every
 * listing and export uses. */
#ifndef KI_STORE_VIEW_H
#define KI_STORE_VIEW_H

#include "store/cohort.h"

struct view {
	struct catalog *catalog;
	const struct member *m;
	const struct cohort *k;
	struct slice labels;
	struct buf external_id; /* filled by view_fill */
};
/* `v` starts zeroed and may be filled again and again; view_fini frees it. */
int view_fill(struct view *v, struct catalog *c, const struct cohort *k, const struct member *m);
void view_fini(struct view *v);

/* `reported` until a rerun's evidence raises it (link.h). */
const char *view_evidence(const struct view *v);
/* A label's text as it stands in the JSON, escapes and all, so that it can be shown; empty when the run does not carry it. */
struct slice view_label(const struct view *v, const char *name);

enum column_type { COLUMN_TEXT, COLUMN_NUMBER };
struct column {
	const char *name; /* snake_case, for --columns and CSV */
	const char *json; /* camelCase, for JSON */
	enum column_type type;
	void (*put)(const struct view *v, struct buf *out); /* appends plain text; nothing when absent */
};
extern const struct column view_columns[];
extern const size_t view_column_count;
const struct column *view_column(struct slice name); /* NULL when unknown */

/* Appends the fields of a run as canonical JSON: all columns that are not empty, and labels. */
int view_json(const struct view *v, struct buf *out, struct err *e);

/* Appends a duration or a size the way manifests.md section 6 shows it: `24.1 ms`, `621.5 µs`, `7.81 µs`, `1.23 GiB`. */
void view_quantity(enum metric m, int64_t value, struct buf *out);

/* Which runs a listing shows; NULL and 0 mean any. Texts match a field whole; `gpu` also its kebab form. */
struct filter {
	const char *kernel, *gpu, *mode, *provider, *dtype, *channel;
	int64_t since_ms;
	bool memory, latency; /* both false: both */
};
bool filter_match(const struct filter *f, const struct member *m);

/* -1, 0 or 1 by version order: numbers by value, 0.5.9 < 0.5.10, and a pre-release (dev, rc) before its release. */
int view_compare_versions(struct slice a, struct slice b);

#endif
