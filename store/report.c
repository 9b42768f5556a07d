#include "store/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/when.h"
#include "store/change.h"
#include "store/flag.h"

enum {
	HOUR_MS = 3600000,
	NIGHT_HOURS = 12,
	DAY_HOURS = 24,
	LINES = 10,
	NIGHTS_BACK = 8,  /* earlier nights that are asked whether they knew a change */
	KERNELS_MANY = 4, /* so many kernels that change in one drop are hardly a change of each */
};

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

/* ---- what is new ---- */

static int64_t published_ms(const json_t *p)
{
	int64_t ms = 0;
	when_parse_text(json_text_of(p, "publishedAt"), strlen(json_text_of(p, "publishedAt")), &ms);
	return ms;
}

static int set_since(struct report *r)
{
	uint32_t count = r->c->counts.publications;
	json_t *newest;
	r->since_ms = r->options->since_ms ? r->options->since_ms : when_now_ms() - DAY_HOURS * (int64_t)HOUR_MS;
	if (!r->options->last || count == 0)
		return 0;
	if (!(newest = catalog_publication(r->c, count - 1)))
		return -1;
	r->since_ms = published_ms(newest) - NIGHT_HOURS * (int64_t)HOUR_MS;
	json_decref(newest);
	return 0;
}

static void add_odd(struct report *r, const char *what, const char *name, json_int_t rows)
{
	struct buf key = {0};
	buf_str(&key, what);
	for (char *at = key.data; *at; at++)
		*at = *at == '_' ? ' ' : *at;
	if (name)
		buf_printf(&key, " %s", name);
	json_object_set_new(r->odd, key.data, json_integer(json_integer_value(json_object_get(r->odd, key.data)) + rows));
	buf_fini(&key);
}

/* Skipped is {reason: {name: rows}}, rejected {reason: rows}. */
static void gather_odd(struct report *r, const json_t *report)
{
	const char *reason, *name;
	json_t *names, *rows;
	json_object_foreach(json_object_get(report, "skipped"), reason, names)
		json_object_foreach(names, name, rows)
			add_odd(r, reason, name, json_integer_value(rows));
	json_object_foreach(json_object_get(report, "rejected"), reason, rows)
		if (json_integer_value(rows))
			add_odd(r, reason, NULL, json_integer_value(rows));
}

static int gather_publications(struct report *r)
{
	r->publications = json_array();
	r->odd = json_object();
	r->first_publication = r->c->counts.publications;
	r->published_ms = xcalloc((size_t)r->first_publication + 1, sizeof *r->published_ms);
	if (set_since(r))
		return -1;
	for (uint32_t id = 0; id < r->c->counts.publications; id++) {
		json_t *p = catalog_publication(r->c, id);
		if (!p)
			return -1;
		r->published_ms[id] = published_ms(p);
		bool is_new = r->first_publication < id || r->published_ms[id] >= r->since_ms;
		if (is_new && r->first_publication > id)
			r->first_publication = id;
		if (!is_new)
			r->first_run += (uint32_t)json_whole_of(p, "newRuns");
		if (is_new) {
			r->runs += (uint64_t)json_whole_of(p, "newRuns");
			r->cases += (uint64_t)json_whole_of(p, "newCases");
			gather_odd(r, json_object_get(p, "report"));
			json_array_append(r->publications, p);
		}
		json_decref(p);
	}
	return 0;
}

/* ---- findings in groups ---- */

static bool same_pass(const struct case_parts *a, const struct case_parts *b)
{
	return slice_same(a->kernel, b->kernel) && slice_same(a->mode, b->mode) && slice_same(a->gpu, b->gpu);
}

static struct group *group_of(struct groups *g, const struct case_parts *of, const char *channel, const struct series_point *since)
{
	for (size_t i = 0; i < g->count; i++) {
		struct group *x = &g->items[i];
		if (same_pass(x->of, of) && slice_same(x->of->provider, of->provider) && x->channel == channel &&
		    (!since || x->since->release == since->release))
			return x;
	}
	if ((g->count & (g->count - 1)) == 0)
		g->items = xrealloc(g->items, (g->count ? g->count * 2 : 1) * sizeof *g->items);
	g->items[g->count] = (struct group){.of = of, .channel = channel, .since = since, .low = INFINITY, .explained = ""};
	return &g->items[g->count++];
}

static void add_to(struct group *g, double ratio)
{
	g->count++;
	g->low = ratio < g->low ? ratio : g->low;
	g->high = ratio > g->high ? ratio : g->high;
}

/* True when the list has a change of this series at the same point or one beside it, in the same direction. */
static bool was_known(const struct change_list *before, const struct change *h)
{
	const struct series *s = h->series;
	for (size_t i = 0; i < before->count; i++) {
		const struct change *x = &before->items[i];
		if (x->series->of != s->of || x->series->slot != s->slot || (x->ratio > 1) != (h->ratio > 1))
			continue;
		for (size_t k = h->split - 1; k <= h->split + 1 && k < s->count; k++)
			if (s->points[k].run == x->first_after->run)
				return true;
	}
	return false;
}

/* How many series of a change's group were searched. */
static size_t count_searched(const struct change_list *l, const struct change *h)
{
	size_t count = 0;
	for (size_t i = 0; i < l->series.count; i++) {
		const struct series *s = &l->series.items[i];
		count += s->slot == h->series->slot && s->count >= l->points_min && same_pass(&s->of->parts, &h->series->of->parts) &&
			 slice_same(s->of->parts.provider, h->series->of->parts.provider);
	}
	return count;
}

/* Marks the changes that the catalog had after its first `publications` publications. Returns how many are not marked yet. */
static int mark_known(struct report *r, uint32_t publications, bool *known, size_t *left)
{
	struct change_options options = {.config = r->options->config, .publications = publications};
	struct change_list before;
	int rc = change_points(r->c, &options, &before);
	*left = 0;
	for (size_t i = 0; i < r->changes.count && rc == 0; i++) {
		known[i] = known[i] || was_known(&before, &r->changes.items[i]);
		*left += !known[i];
	}
	change_list_fini(&before);
	return rc;
}

/* A change near the threshold may be found one night, lost the next and found again: it is news the first time only. */
static int find_known(struct report *r, bool *known)
{
	size_t left = r->changes.count;
	uint32_t at = r->first_publication;
	for (int night = 0; at > 0 && left > 0 && night < NIGHTS_BACK; night++) {
		if (mark_known(r, at, known, &left))
			return -1;
		int64_t night_ms = r->published_ms[at - 1] - NIGHT_HOURS * (int64_t)HOUR_MS;
		while (at > 0 && r->published_ms[at - 1] >= night_ms)
			at--;
	}
	return 0;
}

static void group_changes(struct report *r, const bool *known)
{
	for (size_t i = 0; i < r->changes.count; i++) {
		const struct change *h = &r->changes.items[i];
		if (known[i])
			continue;
		struct group *g = group_of(h->ratio > 1 ? &r->slower : &r->faster, &h->series->of->parts,
					   r->c->channels.items[h->series->slot].name, h->first_after);
		add_to(g, h->ratio);
		g->before = h->last_before;
		g->all = g->count == 1 ? count_searched(&r->changes, h) : g->all;
		g->explained = *g->explained ? g->explained : h->explained;
	}
}

static int gather_changes(struct report *r)
{
	struct change_options options = {.config = r->options->config};
	if (change_points(r->c, &options, &r->changes))
		return -1;
	bool *known = xcalloc(r->changes.count + 1, sizeof *known);
	int rc = find_known(r, known);
	if (rc == 0)
		group_changes(r, known);
	free(known);
	return rc;
}

static struct groups *section_of(struct report *r, enum flag_code code)
{
	switch (code) {
	case FLAG_CONTRADICTED: return &r->contradictions;
	case FLAG_RECORD_CANDIDATE: return &r->firsts;
	default: return &r->reruns;
	}
}

static int gather_flags(struct report *r)
{
	struct flag_options options = {.config = r->options->config, .codes = 1u << FLAG_IMPOSSIBLE | 1u << FLAG_CONTRADICTED | 1u << FLAG_RECORD_CANDIDATE | 1u << FLAG_MANUAL};
	if (flags_derive(r->c, &options, &r->flags))
		return -1;
	for (size_t i = 0; i < r->flags.count; i++) {
		const struct flag *f = &r->flags.items[i];
		const struct catalog_case *of;
		struct run_row row;
		if (f->run < r->first_run && f->other < r->first_run && f->code != FLAG_MANUAL)
			continue;
		if (catalog_run(r->c, f->run, &row) || !(of = catalog_case(r->c, row.case_id)))
			return -1;
		struct group *g = group_of(section_of(r, f->code), &of->parts, NULL, NULL);
		add_to(g, f->severity);
		g->worst = g->worst ? g->worst : f; /* they come by falling severity */
	}
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	double first = x->since ? fmax(fabs(log(x->low)), fabs(log(x->high))) : x->high;
	double second = y->since ? fmax(fabs(log(y->low)), fabs(log(y->high))) : y->high;
	if (first != second)
		return first > second ? -1 : 1;
	return (x > y) - (x < y);
}

static void sort_groups(struct groups *g)
{
	if (g->count)
		qsort(g->items, g->count, sizeof *g->items, by_size);
}

/* ---- text ---- */

static void put_new(const struct report *r, FILE *out)
{
	const char *name;
	json_t *rows, *p;
	size_t i;
	size_t count = json_array_size(r->publications);
	fprintf(out, "%zu %s, %llu new runs, %llu new cases\n\n", count, count == 1 ? "publication" : "publications", (unsigned long long)r->runs,
		(unsigned long long)r->cases);
	for (size_t slot = 0; slot < r->c->channels.count; slot++) {
		const char *channel = r->c->channels.items[slot].name, *newest = NULL;
		unsigned long long files = 0, runs = 0;
		json_array_foreach(r->publications, i, p) {
			if (strcmp(json_text_of(p, "channel"), channel) != 0)
				continue;
			files++;
			runs += (uint64_t)json_whole_of(p, "newRuns");
			newest = catalog_identity(p);
		}
		if (files)
			fprintf(out, "  %-10s %6llu runs in %llu %s, the last %s\n", channel, runs, files, files == 1 ? "file" : "files", newest);
	}
	json_object_foreach(r->odd, name, rows) {
		struct buf shown = {0}; /* upstream's own names */
		text_put_printable(&shown, name, strlen(name));
		fprintf(out, "  left out: %lld rows, %s\n", (long long)json_integer_value(rows), shown.data);
		buf_fini(&shown);
	}
}

static void put_name(const struct case_parts *p, FILE *out)
{
	fprintf(out, "%.*s %.*s %.*s, %.*s", (int)p->kernel.len, p->kernel.data, (int)p->mode.len, p->mode.data, (int)p->provider.len, p->provider.data,
		(int)p->gpu.len, p->gpu.data);
}

static void put_range(const struct group *g, FILE *out)
{
	double near = g->high > 1 ? g->low : g->high, far = g->high > 1 ? g->high : g->low;
	if (g->count == 1)
		fprintf(out, "%+.1f %%", (far - 1) * 100);
	else
		fprintf(out, "%+.1f to %+.1f %%", (near - 1) * 100, (far - 1) * 100);
}

/* Other providers of the same kernel, pass and GPU that moved the same way at the same release: then the cause is likely not in
 * this provider's code. */
static void put_company(const struct groups *all, const struct group *g, FILE *out)
{
	bool first = true;
	for (size_t i = 0; i < all->count; i++) {
		const struct group *x = &all->items[i];
		if (x == g || x->channel != g->channel || x->since->release != g->since->release || !same_pass(x->of, g->of))
			continue;
		fprintf(out, "%s%.*s ", first ? "; also " : ", ", (int)x->of->provider.len, x->of->provider.data);
		put_range(x, out);
		first = false;
	}
}

static size_t shown_of(const struct report *r, const struct groups *g)
{
	size_t limit = r->options->limit ? (size_t)r->options->limit : LINES;
	return g->count < limit ? g->count : limit;
}

static void put_rest(const struct report *r, const struct groups *g, const char *where, FILE *out)
{
	if (g->count > shown_of(r, g))
		fprintf(out, "  and %zu more: %s\n", g->count - shown_of(r, g), where);
}

/* Kernels among groups that changed at a release, each counted once. */
static size_t count_kernels(const struct groups *g, const struct group *at)
{
	size_t count = 0;
	for (size_t i = 0; i < g->count; i++) {
		const struct group *x = &g->items[i];
		bool first = x->since->release == at->since->release;
		for (size_t k = 0; k < i && first; k++)
			first = g->items[k].since->release != at->since->release || !slice_same(g->items[k].of->kernel, x->of->kernel);
		count += first;
	}
	return count;
}

static void put_many(const struct groups *g, FILE *out)
{
	for (size_t i = 0; i < g->count; i++) {
		const struct release *release = g->items[i].since->release;
		bool first = true;
		for (size_t k = 0; k < i && first; k++)
			first = g->items[k].since->release != release;
		size_t kernels = first ? count_kernels(g, &g->items[i]) : 0;
		if (kernels >= KERNELS_MANY)
			fprintf(out, "  %zu kernels at once since %.*s: look at its host, driver and libraries before the kernels\n", kernels,
				release_name_length(release), release->identity);
	}
}

static void put_changes(const struct report *r, const char *title, const struct groups *g, const char *where, FILE *out)
{
	if (g->count)
		fprintf(out, "\n%s\n", title);
	for (size_t i = 0; i < shown_of(r, g); i++) {
		const struct group *x = &g->items[i];
		char day[WHEN_TEXT + 1];
		when_text(x->since->observed_ms, day);
		fputs("  ", out);
		put_name(x->of, out);
		fputs(": ", out);
		put_range(x, out);
		fprintf(out, "\n      at %zu of %zu sizes since %.*s (%.*s, %.10s), not yet in %.*s", x->count, x->all, release_name_length(x->since->release),
			x->since->release->identity, (int)x->since->version.len, x->since->version.data, day, release_name_length(x->before->release),
			x->before->release->identity);
		put_company(g, x, out);
		fprintf(out, "%s%s\n", *x->explained ? "; caveats differ: " : "", x->explained);
	}
	put_rest(r, g, where, out);
	put_many(g, out);
}

static void put_flags(const struct report *r, const char *title, const struct groups *g, const char *where, FILE *out)
{
	if (g->count)
		fprintf(out, "\n%s\n", title);
	for (size_t i = 0; i < shown_of(r, g); i++) {
		const struct group *x = &g->items[i];
		struct run_row row;
		char hex[DIGEST_HEX + 1];
		if (catalog_run(r->c, x->worst->run, &row))
			return;
		struct buf words = {0};
		text_put_printable(&words, x->worst->words, strlen(x->worst->words));
		digest_hex(&row.digest, hex);
		fputs("  ", out);
		put_name(x->of, out);
		if (x->count == 1)
			fprintf(out, ": run %.12s\n      %s\n", hex, words.data);
		else
			fprintf(out, ": %zu runs, such as %.12s\n      %s\n", x->count, hex, words.data);
		buf_fini(&words);
	}
	put_rest(r, g, where, out);
}

static int put_text(const struct report *r, FILE *out)
{
	put_new(r, out);
	put_changes(r, "Slower", &r->slower, "ki flags --code REGRESSION", out);
	put_changes(r, "Faster", &r->faster, "ki flags --code IMPROVEMENT", out);
	put_flags(r, "Contradicted by another publication of the same version", &r->contradictions, "ki flags --code CONTRADICTED", out);
	put_flags(r, "New first of a group", &r->firsts, "ki flags --code RECORD_CANDIDATE", out);
	put_flags(r, "Impossible or flagged by hand: rerun", &r->reruns, "ki flags --code IMPOSSIBLE --code MANUAL", out);
	return r->c->err->code ? -1 : 0;
}

/* ---- JSON ---- */

static json_t *publication_json(const json_t *p)
{
	return json_pack("{s:I, s:s, s:s, s:s, s:I, s:I}", "id", json_whole_of(p, "id"), "channel", json_text_of(p, "channel"), "identity", catalog_identity(p),
			 "publishedAt", json_text_of(p, "publishedAt"), "newRuns", json_whole_of(p, "newRuns"), "newCases",
			 json_whole_of(p, "newCases"));
}

static void set_slice(json_t *object, const char *name, struct slice text)
{
	json_object_set_new(object, name, json_stringn(text.data, text.len));
}

static json_t *group_json(struct catalog *c, const struct group *g)
{
	json_t *o = json_pack("{s:I, s:f, s:f}", "count", (json_int_t)g->count, "low", g->low, "high", g->high);
	set_slice(o, "kernel", g->of->kernel);
	set_slice(o, "mode", g->of->mode);
	set_slice(o, "provider", g->of->provider);
	set_slice(o, "gpu", g->of->gpu);
	if (g->since) {
		json_object_set_new(o, "sizes", json_integer((json_int_t)g->all));
		json_object_set_new(o, "channel", json_string(g->channel));
		json_object_set_new(o, "since", series_point_json(c, g->since));
		json_object_set_new(o, "before", series_point_json(c, g->before));
		json_object_set_new(o, "explained", json_string(g->explained));
	}
	if (g->worst) {
		struct run_row row;
		char digest[DIGEST_TEXT + 1];
		if (catalog_run(c, g->worst->run, &row) == 0) {
			digest_text(&row.digest, digest);
			json_object_set_new(o, "run", json_string(digest));
		}
		json_object_set_new(o, "code", json_string(flag_name(g->worst->code)));
		json_object_set_new(o, "words", json_string(g->worst->words));
	}
	return o;
}

static json_t *groups_json(struct catalog *c, const struct groups *g)
{
	json_t *list = json_array();
	for (size_t i = 0; i < g->count; i++)
		json_array_append_new(list, group_json(c, &g->items[i]));
	return list;
}

static int put_json(const struct report *r, FILE *out)
{
	char since[WHEN_TEXT + 1];
	json_t *p, *publications = json_array();
	size_t i;
	when_text(r->since_ms > 0 ? r->since_ms : 0, since);
	json_array_foreach(r->publications, i, p)
		json_array_append_new(publications, publication_json(p));
	json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:O, s:o, s:o, s:o, s:o, s:o}", "type", "report", "since", since, "policy", r->changes.policy,
			      "newRuns", (json_int_t)r->runs, "newCases", (json_int_t)r->cases, "publications", publications, "leftOut", r->odd, "slower",
			      groups_json(r->c, &r->slower), "faster", groups_json(r->c, &r->faster), "contradicted",
			      groups_json(r->c, &r->contradictions), "newFirsts", groups_json(r->c, &r->firsts), "reruns",
			      groups_json(r->c, &r->reruns));
	int rc = r->c->err->code ? -1 : json_put_line(o, out, r->c->err);
	json_decref(o);
	return rc;
}

/* ---- the verb ---- */

static void report_fini(struct report *r)
{
	json_decref(r->publications);
	json_decref(r->odd);
	free(r->published_ms);
	change_list_fini(&r->changes);
	flags_fini(&r->flags);
	free(r->slower.items);
	free(r->faster.items);
	free(r->contradictions.items);
	free(r->firsts.items);
	free(r->reruns.items);
}

int report_print(struct catalog *c, const struct report_options *options, FILE *out)
{
	struct report r = {.c = c, .options = options};
	int rc = gather_publications(&r);
	bool quiet = r.runs == 0 && json_object_size(r.odd) == 0;
	if (rc == 0 && !quiet)
		rc = gather_changes(&r) || gather_flags(&r) ? -1 : 0;
	if (rc == 0 && !quiet) {
		sort_groups(&r.slower);
		sort_groups(&r.faster);
		sort_groups(&r.contradictions);
		sort_groups(&r.firsts);
		sort_groups(&r.reruns);
		rc = options->json ? put_json(&r, out) : put_text(&r, out);
	}
	report_fini(&r);
	return rc;
}
