#include "store/trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/when.h"
#include "store/change.h"
#include "store/pair.h"
#include "store/plot.h"
#include "store/screen.h"

/* The series that were asked for, each with its changes. */
struct chosen {
	const struct series **items;
	size_t count;
	const struct change_list *changes;
};

static bool holds(struct slice text, const char *part)
{
	return memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static bool is_chosen(const struct catalog *c, const struct series *s, const struct trend_options *o)
{
	struct member m = {.c = s->of, .row = {.observed_ms = s->points[s->count - 1].observed_ms}};
	if (o->filter.channel && strcmp(o->filter.channel, c->channels.items[s->slot].name) != 0)
		return false;
	return filter_match(&o->filter, &m) && (!o->text || holds(s->of->parts.case_key, o->text) || holds(s->of->parts.workload_label, o->text));
}

static void choose(const struct catalog *c, const struct change_list *l, const struct trend_options *o, struct chosen *out)
{
	*out = (struct chosen){xcalloc(l->series.count + 1, sizeof *out->items), 0, l};
	for (size_t i = 0; i < l->series.count; i++)
		if (is_chosen(c, &l->series.items[i], o))
			out->items[out->count++] = &l->series.items[i];
}

static void put_slice(struct buf *out, struct slice text)
{
	buf_add(out, text.data, text.len);
}

/* ---- several series ---- */

static bool same_group(const struct series *a, const struct series *b)
{
	const struct case_parts *p = &a->of->parts, *q = &b->of->parts;
	return a->slot == b->slot && slice_same(p->kernel, q->kernel) && slice_same(p->mode, q->mode) && slice_same(p->gpu, q->gpu);
}

static void put_heading(const struct catalog *c, const struct series *s, const struct screen *on)
{
	const struct case_parts *p = &s->of->parts;
	screen_printf(on, 2, "%.*s, %.*s, %.*s, %s", (int)p->kernel.len, p->kernel.data, (int)p->mode.len, p->mode.data, (int)p->gpu.len, p->gpu.data,
		c->channels.items[s->slot].name);
}

struct widths {
	int key, provider, spark;
};

enum { MEDIAN = 11, KEY_MIN = 12 }; /* columns */

static void add_width(struct widths *w, const struct series *s)
{
	const struct case_parts *p = &s->of->parts;
	w->key = (int)p->case_key.len > w->key ? (int)p->case_key.len : w->key;
	w->provider = (int)p->provider.len > w->provider ? (int)p->provider.len : w->provider;
	w->spark = (int)s->count > w->spark ? (int)s->count : w->spark;
}

/* Keys give way first, then the older points. */
static void fit_widths(struct widths *w, const struct screen *on)
{
	int room = (int)on->width - 2 - w->provider - 2 - MEDIAN - 2;
	if (!on->fitted)
		return;
	if (w->spark > room - KEY_MIN)
		w->spark = room - KEY_MIN > 1 ? room - KEY_MIN : 1;
	if (w->key > room - w->spark)
		w->key = room - w->spark > KEY_MIN ? room - w->spark : KEY_MIN;
}

static void put_line(const struct change_list *l, const struct series *s, const struct widths *w, const struct screen *on)
{
	struct buf line = {0}, text = {0}, key = {0};
	double *logs = series_logs(s);
	size_t count, shown = s->count < (size_t)w->spark ? s->count : (size_t)w->spark;
	const struct change *h = change_of(l, s, &count);
	buf_str(&line, "  ");
	put_slice(&text, s->of->parts.case_key);
	screen_cut(on, text.data, (size_t)w->key, &key);
	plot_pad(&line, key.data, w->key + 2);
	buf_clear(&text);
	put_slice(&text, s->of->parts.provider);
	plot_pad(&line, text.data, w->provider + 2);
	buf_clear(&text);
	plot_spark(logs + s->count - shown, shown, on->ascii, &text);
	plot_pad(&line, text.data, w->spark);
	buf_clear(&text);
	view_quantity(METRIC_LATENCY, s->points[s->count - 1].median_ns, &text);
	plot_pad(&line, text.data, -MEDIAN);
	for (size_t i = 0; i < count; i++) {
		buf_str(&line, i ? "; " : "  ");
		change_words(&h[i], &line);
	}
	screen_line(on, 4, line.data);
	free(logs);
	buf_fini(&key);
	buf_fini(&line);
	buf_fini(&text);
}

static void put_many(struct catalog *c, const struct chosen *chosen, const struct screen *on)
{
	struct widths w = {0};
	const struct series *last = NULL;
	size_t single = 0;
	for (size_t i = 0; i < chosen->count; i++)
		if (chosen->items[i]->count >= 2)
			add_width(&w, chosen->items[i]);
	fit_widths(&w, on);
	for (size_t i = 0; i < chosen->count; i++) {
		const struct series *s = chosen->items[i];
		if (s->count < 2) {
			single++;
			continue;
		}
		if (!last || !same_group(last, s)) {
			fputs(last ? "\n" : "", on->out);
			put_heading(c, s, on);
		}
		put_line(chosen->changes, s, &w, on);
		last = s;
	}
	if (single && last)
		fputc('\n', on->out);
	if (single)
		screen_printf(on, 2, "%zu series of one point are not shown; --case or --json shows them", single);
}

/* ---- one series ---- */

static void put_point(const struct series_point *p, bool caveats, const struct screen *on)
{
	struct buf line = {0}, text = {0};
	char observed[WHEN_TEXT + 1];
	when_text(p->observed_ms, observed);
	buf_printf(&line, "  %-14.*s  %-8.*s  %.10s %.5s", release_name_length(p->release), p->release->identity, (int)p->version.len, p->version.data, observed, observed + 11);
	view_quantity(METRIC_LATENCY, p->median_ns, &text);
	plot_pad(&line, text.data, -MEDIAN);
	if (p->p20_ns >= 0 && p->p80_ns >= 0) {
		buf_clear(&text);
		view_quantity(METRIC_LATENCY, p->p20_ns, &text);
		plot_pad(&line, text.data, -MEDIAN);
		buf_str(&line, " - ");
		buf_clear(&text);
		view_quantity(METRIC_LATENCY, p->p80_ns, &text);
		buf_add(&line, text.data, text.len);
	}
	if (caveats && p->caveats.len)
		buf_printf(&line, "  %.*s", (int)p->caveats.len, p->caveats.data);
	screen_line(on, 18, line.data);
	buf_fini(&line);
	buf_fini(&text);
}

static void label_log(double value, struct buf *out)
{
	view_quantity(METRIC_LATENCY, llround(exp(value)), out);
}

static void put_chart(const struct series *s, const struct change *changes, size_t count, const struct screen *on)
{
	double *logs = series_logs(s), *low = xcalloc(s->count, sizeof *low), *high = xcalloc(s->count, sizeof *high);
	bool *marks = xcalloc(s->count, sizeof *marks);
	struct buf text = {0};
	for (size_t i = 0; i < s->count; i++) {
		const struct series_point *p = &s->points[i];
		low[i] = p->p20_ns > 0 ? log((double)p->p20_ns) : NAN;
		high[i] = p->p80_ns > 0 ? log((double)p->p80_ns) : NAN;
	}
	for (size_t i = 0; i < count; i++)
		marks[changes[i].split] = true;
	struct plot_chart chart = {logs, low, high, s->count, marks, label_log, {on->ascii, on->width}};
	plot_chart(&chart, &text);
	fputc('\n', on->out);
	screen_block(on, text.data ? text.data : "");
	free(logs);
	free(low);
	free(high);
	free(marks);
	buf_fini(&text);
}

static void put_one(struct catalog *c, const struct series *s, const struct change_list *l, const struct screen *on)
{
	const struct case_parts *p = &s->of->parts;
	size_t count, next = 0;
	const struct change *changes = change_of(l, s, &count);
	bool alike = series_caveats_alike(s);
	put_heading(c, s, on);
	screen_printf(on, 2, "%.*s, %.*s", (int)p->provider.len, p->provider.data, (int)p->workload_label.len, p->workload_label.data);
	if (alike && s->points[0].caveats.len)
		screen_printf(on, 2, "caveats: %.*s", (int)s->points[0].caveats.len, s->points[0].caveats.data);
	fputc('\n', on->out);
	for (size_t i = 0; i < s->count; i++) {
		if (next < count && changes[next].split == i) {
			struct buf text = {0};
			change_words(&changes[next], &text);
			screen_printf(on, 5, "  -- %s, p %.2g, q %.2g", text.data, changes[next].p, changes[next].q);
			buf_fini(&text);
			next++;
		}
		put_point(&s->points[i], !alike, on);
	}
	put_chart(s, changes, count, on);
}

/* ---- JSON ---- */

static json_t *change_json(const struct change *h)
{
	const struct release *r = h->first_after->release;
	return json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:s}", "since", r->identity, "commit", r->commit, "direction",
			 h->ratio > 1 ? "slower" : "faster", "split", (json_int_t)h->split, "ratio", h->ratio, "p", h->p, "q", h->q, "explained",
			 h->explained);
}

static int put_json(struct catalog *c, const struct series *s, const struct change_list *l, FILE *out)
{
	size_t count;
	const struct change *h = change_of(l, s, &count);
	json_t *o = series_json(c, s), *points = json_array(), *changes = json_array();
	for (size_t i = 0; i < s->count; i++)
		json_array_append_new(points, series_point_json(c, &s->points[i]));
	for (size_t i = 0; i < count; i++)
		json_array_append_new(changes, change_json(&h[i]));
	json_object_set_new(o, "type", json_string("series"));
	json_object_set_new(o, "policy", json_string(l->policy));
	json_object_set_new(o, "points", points);
	json_object_set_new(o, "changes", changes);
	int rc = c->err->code ? -1 : json_put_line(o, out, c->err);
	json_decref(o);
	return rc;
}

/* ---- the method itself ---- */

static double percent(size_t part, size_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

static int put_measure(struct catalog *c, const struct trend_options *o, FILE *out)
{
	struct change_measure m;
	if (change_measure(c, o->config, o->measure, 1.15, &m))
		return -1;
	if (o->json) {
		fprintf(out,
			"{\"falseAlarms\":%zu,\"found\":%zu,\"nights\":%zu,\"nightsWithAlarm\":%zu,\"planted\":%zu,\"quietFound\":%zu,\"quietPlanted\":%zu,"
			"\"series\":%zu,\"steadyAlarms\":%zu,\"type\":\"measure\"}\n",
			m.false_alarms, m.found, m.shuffles, m.nights_with_alarm, m.planted, m.quiet_found, m.quiet_planted, m.series, m.steady_alarms);
		return 0;
	}
	fprintf(out, "shuffled: %zu of %zu series raise a change (%.3f %%), in %zu of %zu nights of %zu series\n", m.false_alarms,
		m.series * m.shuffles, percent(m.false_alarms, m.series * m.shuffles), m.nights_with_alarm, m.shuffles, m.series);
	fprintf(out, "  of these %zu in series that have no change as they are\n", m.steady_alarms);
	fprintf(out, "slower by 15 %% from a random point on: found in %zu of %zu series; in %zu of the %zu that stray by under 2 %%\n", m.found,
		m.planted, m.quiet_found, m.quiet_planted);
	return 0;
}

/* ---- the verb ---- */

static int print_chosen(struct catalog *c, const struct chosen *chosen, const struct trend_options *o, FILE *out)
{
	struct screen on = screen_of(out, o->ascii);
	int rc = 0;
	if (chosen->count == 0)
		return err_set(c->err, ERR_NOTFOUND, "no latency of %s passes the filter", o->filter.kernel ? o->filter.kernel : "any kernel");
	if (o->from)
		return pair_print(c, chosen->items, chosen->count, o->from, o->to, o->json, &on);
	for (size_t i = 0; o->json && i < chosen->count && rc == 0; i++)
		rc = put_json(c, chosen->items[i], chosen->changes, out);
	if (!o->json && chosen->count == 1)
		put_one(c, chosen->items[0], chosen->changes, &on);
	else if (!o->json)
		put_many(c, chosen, &on);
	return rc;
}

int trend_print(struct catalog *c, const struct trend_options *o, FILE *out)
{
	struct change_options options = {.config = o->config};
	struct change_list changes;
	struct chosen chosen;
	if (!o->from != !o->to)
		return err_set(c->err, ERR_USAGE, "--from and --to go together");
	if (o->measure)
		return put_measure(c, o, out);
	int rc = change_points(c, &options, &changes);
	if (rc == 0) {
		choose(c, &changes, o, &chosen);
		rc = print_chosen(c, &chosen, o, out);
		free(chosen.items);
	}
	change_list_fini(&changes);
	return rc;
}
