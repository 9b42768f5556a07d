#include "store/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/when.h"
#include "store/correction.h"
#include "store/step.h"

/* ---- what upstream published ---- */

/* Leaves *out alone when the text is no time. */
static void read_time(const char *text, int64_t *out)
{
	int64_t ms;
	if (when_parse(text, strlen(text), &ms) || when_parse_text(text, strlen(text), &ms))
		*out = ms;
}

static int load_release(struct catalog *c, uint32_t id, struct arena *a, struct release *out)
{
	json_t *p = catalog_publication(c, id);
	const json_t *provenance = json_object_get(p, "provenance");
	const char *channel = json_text_of(p, "channel"), *commit = json_text_of(p, "commit");
	int slot = channels_find(&c->channels, (struct slice){channel, strlen(channel)});
	if (p && slot < 0)
		err_at(c->err, ERR_CORRUPT, c->st.file, 0, 0, "publication %u names a channel that is not listed; run `ki check`", id);
	if (p && slot >= 0) {
		*out = (struct release){.id = id, .slot = (uint8_t)slot};
		read_time(json_text_of(p, "publishedAt"), &out->published_ms);
		out->upstream_ms = out->published_ms;
		read_time(json_text_of(provenance, "committedAt"), &out->upstream_ms);
		out->identity = arena_strdup(a, catalog_identity(p));
		out->commit = arena_strdup(a, *commit ? commit : json_text_of(provenance, "commit"));
	}
	json_decref(p);
	return c->err->code ? -1 : 0;
}

static int load_releases(struct catalog *c, uint32_t publications, struct series_set *out)
{
	uint32_t count = publications < c->counts.publications ? publications : c->counts.publications;
	out->releases = xcalloc((size_t)count + 1, sizeof *out->releases);
	for (uint32_t id = 0; id < count; id++)
		if (load_release(c, id, &out->arena, &out->releases[out->release_count++]))
			return -1;
	return 0;
}

/* By run: the release of a channel that carried it first; NULL for none. `first` has room for all runs. */
static int note_carried(struct catalog *c, const struct release *r, const struct release **first)
{
	struct ranges carried = {0};
	if (catalog_carried(c, r->id, &carried)) {
		ranges_fini(&carried);
		return -1;
	}
	for (size_t i = 0; i < carried.count; i++)
		for (uint32_t n = 0; n < carried.items[i].count && carried.items[i].first + n < c->counts.runs; n++) {
			const struct release **held = &first[carried.items[i].first + n];
			if (!*held || r->upstream_ms < (*held)->upstream_ms)
				*held = r;
		}
	ranges_fini(&carried);
	return 0;
}

/* ---- points ---- */

static struct slice label(struct slice labels, const char *name)
{
	struct view v = {.labels = labels};
	return view_label(&v, name);
}

static void add_point(struct series_set *out, const struct series_point *p)
{
	if (out->point_count == out->point_room) {
		out->point_room = out->point_room ? out->point_room * 2 : 1024;
		out->points = xrealloc(out->points, out->point_room * sizeof *out->points);
	}
	out->points[out->point_count++] = *p;
}

/* Which cases a filter lets through, asked once a case; time and channel are looked at apart. */
struct passing {
	const struct filter *filter;
	uint8_t *answers; /* by case: 0 not asked yet, 1 yes, 2 no */
};

static bool case_passes(struct passing *p, const struct catalog_case *of)
{
	if (!p->answers[of->id]) {
		struct filter untimed = *p->filter;
		struct member m = {.c = of};
		untimed.since_ms = INT64_MIN;
		p->answers[of->id] = of->parts.metric == METRIC_LATENCY && filter_match(&untimed, &m) ? 1 : 2;
	}
	return p->answers[of->id] == 1;
}

/* A point, its case number kept beside it until the series are cut. */
struct placed {
	struct series_point point;
	const struct catalog_case *of;
	struct digest digest;
	const char *channel;
	uint8_t slot;
};
struct placing {
	struct placed *items;
	size_t count, room;
};

static int place_run(struct catalog *c, uint32_t run, const struct release *first, struct passing *passing, struct placing *out)
{
	struct run_row row;
	const struct catalog_case *of;
	if (catalog_run(c, run, &row) || !(of = catalog_case(c, row.case_id)))
		return -1;
	int64_t median = run_units(&row, of->parts.metric, row.value_50);
	if (!case_passes(passing, of) || row.flags & RUN_FAILED || median <= 0 || correction_retraction(c, &row.digest))
		return 0;
	if (out->count == out->room) {
		out->room = out->room ? out->room * 2 : 1024;
		out->items = xrealloc(out->items, out->room * sizeof *out->items);
	}
	struct slice labels = catalog_labels(c, row.labels);
	out->items[out->count++] = (struct placed){
		.point = {.run = run,
			  .observed_ms = row.observed_ms,
			  .median_ns = median,
			  .p20_ns = run_units(&row, of->parts.metric, row.value_20),
			  .p80_ns = run_units(&row, of->parts.metric, row.value_80),
			  .release = first,
			  .version = label(labels, "liger_version"),
			  .caveats = label(labels, "caveats")},
		.of = of,
		.digest = row.digest,
		.channel = c->channels.items[first->slot].name,
		.slot = first->slot,
	};
	return c->err->code ? -1 : 0;
}

/* Places the runs that a channel carried. */
static int place_channel(struct catalog *c, uint8_t slot, const struct series_set *set, struct passing *passing, struct placing *out)
{
	const struct release **first = xcalloc((size_t)c->counts.runs + 1, sizeof *first);
	int rc = 0;
	for (size_t i = 0; i < set->release_count && rc == 0; i++)
		if (set->releases[i].slot == slot)
			rc = note_carried(c, &set->releases[i], first);
	for (uint32_t run = 0; run < c->counts.runs && rc == 0; run++)
		if (first[run])
			rc = place_run(c, run, first[run], passing, out);
	free(first);
	return rc;
}

/* ---- order ---- */

static int compare_sizes(struct slice a, struct slice b)
{
	char x[32], y[32];
	snprintf(x, sizeof x, "%.*s", (int)a.len, a.data);
	snprintf(y, sizeof y, "%.*s", (int)b.len, b.data);
	double first = strtod(x, NULL), second = strtod(y, NULL);
	return first != second ? (first > second) - (first < second) : slice_cmp(a, b);
}

static int by_series(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	const struct case_parts *p = &x->of->parts, *q = &y->of->parts;
	int order;
	if (x->of != y->of || x->slot != y->slot) {
		if ((order = slice_cmp(p->kernel, q->kernel)) || (order = slice_cmp(p->mode, q->mode)) ||
		    (order = slice_cmp(p->gpu, q->gpu)) || (order = strcmp(x->channel, y->channel)) ||
		    (order = slice_cmp(p->provider, q->provider)) || (order = slice_cmp(p->x_name, q->x_name)) ||
		    (order = compare_sizes(p->x_value, q->x_value)))
			return order;
		return digest_cmp(&x->of->digest, &y->of->digest);
	}
	if (x->point.observed_ms != y->point.observed_ms)
		return x->point.observed_ms < y->point.observed_ms ? -1 : 1;
	return digest_cmp(&x->digest, &y->digest);
}

static bool has_recent(const struct placed *from, size_t count, int64_t since_ms)
{
	return since_ms == 0 || from[count - 1].point.observed_ms >= since_ms;
}

static void cut_series(const struct placing *placed, const struct filter *filter, struct series_set *out)
{
	for (size_t i = 0, end; i < placed->count; i = end) {
		const struct placed *from = &placed->items[i];
		for (end = i + 1; end < placed->count && placed->items[end].of == from->of && placed->items[end].slot == from->slot;)
			end++;
		if (!has_recent(from, end - i, filter->since_ms))
			continue;
		if ((out->count & (out->count - 1)) == 0)
			out->items = xrealloc(out->items, (out->count ? out->count * 2 : 1) * sizeof *out->items);
		out->items[out->count++] = (struct series){.of = from->of, .slot = from->slot, .count = end - i};
		for (size_t k = i; k < end; k++)
			add_point(out, &placed->items[k].point);
	}
	for (size_t i = 0, at = 0; i < out->count; at += out->items[i++].count)
		out->items[i].points = &out->points[at];
}

int series_load(struct catalog *c, const struct filter *filter, uint32_t publications, struct series_set *out)
{
	struct placing placed = {0};
	struct passing passing = {filter, xcalloc((size_t)c->counts.cases + 1, 1)};
	*out = (struct series_set){0};
	int rc = load_releases(c, publications, out);
	for (size_t slot = 0; slot < c->channels.count && rc == 0; slot++)
		if (!filter->channel || strcmp(filter->channel, c->channels.items[slot].name) == 0)
			rc = place_channel(c, (uint8_t)slot, out, &passing, &placed);
	if (rc == 0 && placed.count)
		qsort(placed.items, placed.count, sizeof *placed.items, by_series);
	if (rc == 0)
		cut_series(&placed, filter, out);
	free(placed.items);
	free(passing.answers);
	return rc;
}

void series_fini(struct series_set *s)
{
	free(s->items);
	free(s->points);
	free(s->releases);
	arena_fini(&s->arena);
	*s = (struct series_set){0};
}

/* ---- numbers ---- */

double *series_logs(const struct series *s)
{
	double *out = s->count ? xmalloc(s->count * sizeof *out) : NULL;
	for (size_t i = 0; i < s->count; i++)
		out[i] = log((double)s->points[i].median_ns);
	return out;
}

double series_spread(const struct series *s)
{
	double *scales = xcalloc(s->count + 1, sizeof *scales);
	for (size_t i = 0; i < s->count; i++)
		if (s->points[i].p20_ns > 0 && s->points[i].p80_ns > s->points[i].p20_ns)
			scales[i] = log((double)s->points[i].p80_ns / (double)s->points[i].p20_ns) / 1.683;
	double median = s->count ? step_median(scales, s->count) : 0;
	free(scales);
	return median;
}

/* ---- what differs on both sides ---- */

static bool has_code(struct slice codes, struct slice code)
{
	while (codes.len) {
		const char *comma = memchr(codes.data, ',', codes.len);
		size_t len = comma ? (size_t)(comma - codes.data) : codes.len;
		if (len == code.len && memcmp(codes.data, code.data, len) == 0)
			return true;
		len += comma != NULL;
		codes = (struct slice){codes.data + len, codes.len - len};
	}
	return false;
}

/* Appends the codes of `codes` that `other` lacks, after what began at `start`. */
static void put_missing(struct slice codes, struct slice other, char sign, size_t start, struct buf *out)
{
	while (codes.len) {
		const char *comma = memchr(codes.data, ',', codes.len);
		size_t len = comma ? (size_t)(comma - codes.data) : codes.len;
		if (!has_code(other, (struct slice){codes.data, len})) {
			if (out->len > start)
				buf_char(out, ',');
			buf_char(out, sign);
			buf_add(out, codes.data, len);
		}
		len += comma != NULL;
		codes = (struct slice){codes.data + len, codes.len - len};
	}
}

void series_explain(const struct series_point *before, const struct series_point *after, struct buf *out)
{
	size_t start = out->len;
	put_missing(before->caveats, after->caveats, '-', start, out);
	put_missing(after->caveats, before->caveats, '+', start, out);
}

bool series_caveats_alike(const struct series *s)
{
	for (size_t i = 1; i < s->count; i++)
		if (!slice_same(s->points[i].caveats, s->points[0].caveats))
			return false;
	return true;
}

/* ---- text ---- */

int release_name_length(const struct release *r)
{
	size_t len = strlen(r->identity);
	return len == 40 ? 12 : (int)len;
}

/* ---- JSON ---- */

json_t *series_json(struct catalog *c, const struct series *s)
{
	const struct case_parts *p = &s->of->parts;
	char digest[DIGEST_TEXT + 1];
	json_t *out = json_object();
	digest_text(&s->of->digest, digest);
	json_object_set_new(out, "case", json_string(digest));
	json_object_set_new(out, "channel", json_string(c->channels.items[s->slot].name));
	json_set_slice(out, "caseKey", p->case_key);
	json_set_slice(out, "dtype", p->dtype);
	json_set_slice(out, "gpu", p->gpu);
	json_set_slice(out, "kernel", p->kernel);
	json_set_slice(out, "mode", p->mode);
	json_set_slice(out, "provider", p->provider);
	json_set_slice(out, "workloadLabel", p->workload_label);
	json_set_slice(out, "xName", p->x_name);
	json_set_slice(out, "xValue", p->x_value);
	return out;
}

json_t *series_point_json(struct catalog *c, const struct series_point *p)
{
	struct run_row row;
	char digest[DIGEST_TEXT + 1], observed[WHEN_TEXT + 1];
	if (!p)
		return json_null();
	if (catalog_run(c, p->run, &row))
		return NULL;
	digest_text(&row.digest, digest);
	when_text(p->observed_ms, observed);
	json_t *out = json_pack("{s:s, s:s, s:s, s:s, s:I}", "run", digest, "observedAt", observed, "release", p->release->identity, "commit",
				p->release->commit, "median", (json_int_t)p->median_ns);
	if (p->p20_ns >= 0)
		json_object_set_new(out, "p20", json_integer((json_int_t)p->p20_ns));
	if (p->p80_ns >= 0)
		json_object_set_new(out, "p80", json_integer((json_int_t)p->p80_ns));
	json_set_slice(out, "ligerVersion", p->version);
	if (p->caveats.len)
		json_set_slice(out, "caveats", p->caveats);
	return out;
}
