#include "store/report_find.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/when.h"

enum {
	HOUR_MS = 3600000,
	NIGHT_HOURS = 12,
	DAY_HOURS = 24,
	NIGHTS_BACK = 8, /* earlier nights that are asked whether they knew a change */
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

bool report_same_pass(const struct case_parts *a, const struct case_parts *b)
{
	return slice_same(a->kernel, b->kernel) && slice_same(a->mode, b->mode) && slice_same(a->gpu, b->gpu);
}

static struct group *group_of(struct groups *g, const struct case_parts *of, const char *channel, const struct series_point *since)
{
	for (size_t i = 0; i < g->count; i++) {
		struct group *x = &g->items[i];
		if (report_same_pass(x->of, of) && slice_same(x->of->provider, of->provider) && x->channel == channel &&
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
		count += s->slot == h->series->slot && s->count >= l->points_min && report_same_pass(&s->of->parts, &h->series->of->parts) &&
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
	struct flag_options options = {.config = r->options->config, .codes = 1u << FLAG_IMPOSSIBLE | 1u << FLAG_OUTLIER | 1u << FLAG_CONTRADICTED |
				       1u << FLAG_RECORD_CANDIDATE | 1u << FLAG_MANUAL};
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

int report_find(struct report *r)
{
	if (gather_publications(r))
		return -1;
	if (r->runs == 0 && json_object_size(r->odd) == 0)
		return 0;
	if (gather_changes(r) || gather_flags(r))
		return -1;
	sort_groups(&r->slower);
	sort_groups(&r->faster);
	sort_groups(&r->contradictions);
	sort_groups(&r->firsts);
	sort_groups(&r->reruns);
	return 0;
}

void report_find_fini(struct report *r)
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
