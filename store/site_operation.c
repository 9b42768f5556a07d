#include "store/site_operation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/site_svg.h"
#include "store/site_trend.h"

/* Runs of one GPU, pass, dtype, metric, swept axis and configuration are one group, one table. */
static int compare_groups(const struct site_run *x, const struct site_run *y)
{
	const struct case_parts *a = &x->of->parts, *b = &y->of->parts;
	int order = slice_cmp(a->gpu, b->gpu);
	order = order ? order : slice_cmp(a->mode, b->mode);
	order = order ? order : slice_cmp(a->dtype, b->dtype);
	order = order ? order : (int)a->metric - (int)b->metric;
	order = order ? order : slice_cmp(a->x_name, b->x_name);
	return order ? order : slice_cmp(a->config, b->config);
}

static int compare_values(struct slice a, struct slice b)
{
	char text[2][64];
	char *end[2];
	snprintf(text[0], sizeof *text, "%.*s", (int)a.len, a.data);
	snprintf(text[1], sizeof *text, "%.*s", (int)b.len, b.data);
	double x = strtod(text[0], &end[0]), y = strtod(text[1], &end[1]);
	if (*end[0] || *end[1] || x == y)
		return slice_cmp(a, b);
	return x < y ? -1 : 1;
}

/* By operation, group, swept value, rank; unranked last. */
static int compare_runs_of(const void *a, const void *b)
{
	const struct site_run *x = a, *y = b;
	int order = slice_cmp(x->of->parts.operation_slug, y->of->parts.operation_slug);
	order = order ? order : compare_groups(x, y);
	order = order ? order : compare_values(x->of->parts.x_value, y->of->parts.x_value);
	order = order ? order : digest_cmp(&x->of->cohort, &y->of->cohort);
	order = order ? order : (x->rank - 1 > y->rank - 1) - (x->rank - 1 < y->rank - 1);
	return order ? order : (x->run > y->run) - (x->run < y->run);
}

static bool same_operation(const struct site_run *a, const struct site_run *b)
{
	return slice_same(a->of->parts.operation_slug, b->of->parts.operation_slug);
}

/* The trends of a group's cases, each once. */
static void put_trends(struct page *p, const struct site_run *runs, size_t count)
{
	char name[SITE_NAME_MAX];
	size_t shown = 0;
	for (size_t i = 0; i < count; i++) {
		size_t before = 0;
		while (before < i && runs[before].of != runs[i].of)
			before++;
		if (before < i || !site_trend_name(p->site, runs[i].of, name))
			continue;
		page_str(p, shown++ ? "<br>" : "");
		site_trend_link(p, runs[i].of);
	}
}

static void put_best(struct page *p, const struct site_run *r, size_t runs)
{
	const struct case_parts *c = &r->of->parts;
	char cohort[SITE_NAME_MAX], run[SITE_NAME_MAX];
	site_cohort_name(&r->of->cohort, cohort);
	site_run_name(&r->row.digest, run);
	page_str(p, "<tr><td>");
	page_link(p, cohort, c->workload_label);
	page_str(p, "</td><td class=\"n\">");
	page_text(p, c->x_value);
	page_printf(p, "</td><td class=\"n\">%zu</td><td>", runs);
	page_link(p, run, c->provider_title);
	page_str(p, "</td><td class=\"n\">");
	page_quantity(p, c->metric, run_units(&r->row, c->metric, r->row.value_50));
	page_str(p, "</td><td>");
	put_trends(p, r, runs);
	page_str(p, "</td></tr>\n");
}

/* ---- plot ---- */

enum { CURVES_MAX = 16 };

/* The points of a group as they are drawn: for each provider and swept value the newest run that is ranked. */
struct drawing {
	struct svg_curve curves[CURVES_MAX];
	struct svg_point *points, *floor; /* points: room for a group on each curve */
	struct site_run const **newest;   /* beside `points` */
	size_t curve_count, floor_count, room;
};

static bool swept_value(const struct site_run *r, double *out)
{
	char text[64], *end;
	snprintf(text, sizeof text, "%.*s", (int)r->of->parts.x_value.len, r->of->parts.x_value.data);
	*out = strtod(text, &end);
	return end != text && !*end && *out > 0 && isfinite(*out);
}

/* The curve of a provider; -1 when there is no more room. */
static int curve_of(struct drawing *d, struct slice name)
{
	size_t i = 0;
	while (i < d->curve_count && !slice_same(d->curves[i].name, name))
		i++;
	if (i == CURVES_MAX)
		return -1;
	if (i == d->curve_count)
		d->curves[d->curve_count++] = (struct svg_curve){name, d->points + i * d->room, 0};
	return (int)i;
}

static double units_of(const struct site_run *r, double value)
{
	int64_t units = run_units(&r->row, r->of->parts.metric, value);
	return units > 0 ? (double)units : NAN;
}

static void add_point(struct drawing *d, const struct site_run *r, double x)
{
	int number = curve_of(d, r->of->parts.provider_title);
	if (number < 0)
		return;
	struct svg_curve *c = &d->curves[number];
	size_t at = (size_t)number * d->room + c->count;
	if (c->count && d->points[at - 1].x == x) {
		if (d->newest[at - 1]->row.observed_ms >= r->row.observed_ms)
			return;
		at--;
	} else {
		c->count++;
	}
	d->points[at] = (struct svg_point){x, units_of(r, r->row.value_50), units_of(r, r->row.value_20), units_of(r, r->row.value_80)};
	d->newest[at] = r;
}

static int collect(struct site *s, struct drawing *d, const struct site_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct floor floor;
		double x;
		if (!runs[i].rank || !swept_value(&runs[i], &x))
			continue;
		add_point(d, &runs[i], x);
		if (d->floor_count && d->floor[d->floor_count - 1].x == x)
			continue;
		if (policy_floor(&s->policy, s->c, runs[i].of, &floor))
			return -1;
		if (floor.known)
			d->floor[d->floor_count++] = (struct svg_point){x, floor.ns, NAN, NAN};
	}
	return 0;
}

static int put_plot(struct page *p, const struct site_run *runs, size_t count, const char *title)
{
	struct drawing d = {.room = count, .points = xmalloc(CURVES_MAX * count * sizeof *d.points), .floor = xmalloc(count * sizeof *d.floor),
			    .newest = xmalloc(CURVES_MAX * count * sizeof *d.newest)};
	int rc = collect(p->site, &d, runs, count);
	struct svg_plot plot = {title, runs->of->parts.x_name, runs->of->parts.metric, d.curves, d.curve_count, d.floor, d.floor_count};
	if (rc == 0)
		svg_curves(p, &plot);
	free(d.points);
	free(d.floor);
	free(d.newest);
	return rc;
}

static int put_group(struct page *p, const struct site_run *runs, size_t count)
{
	const struct case_parts *c = &runs->of->parts;
	struct buf title = {0}, caption = {0}; /* a plot and a table can be met apart from their heading, so their names stand alone */
	buf_printf(&title, "%.*s \xc2\xb7 %.*s \xc2\xb7 %s, swept: %.*s", (int)c->mode.len, c->mode.data, (int)c->dtype.len, c->dtype.data,
		   c->metric == METRIC_LATENCY ? "latency" : "peak memory", (int)c->x_name.len, c->x_name.data);
	page_str(p, "<h3>");
	page_text(p, (struct slice){title.data, title.len});
	page_str(p, "</h3>\n<p class=\"sub\">Source configuration <code>");
	page_text(p, c->config);
	page_str(p, "</code></p>\n");
	buf_printf(&caption, "%s \xc2\xb7 %.*s \xc2\xb7 %.*s", title.data, (int)c->gpu.len, c->gpu.data, (int)c->config.len, c->config.data);
	int rc = put_plot(p, runs, count, caption.data);
	page_table(p, caption.data, "Comparison group|#Swept value|#Runs|First|#Median|Trends");
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i; next < count && digest_cmp(&runs[next].of->cohort, &runs[i].of->cohort) == 0;)
			next++;
		put_best(p, &runs[i], next - i);
	}
	page_table_end(p);
	buf_fini(&title);
	buf_fini(&caption);
	return rc;
}

static int write_operation(struct page *p, struct site *s, const struct site_run *runs, size_t count)
{
	char name[SITE_NAME_MAX];
	page_begin(p, s, "../", runs->of->parts.operation_title);
	page_printf(p, "<p>%zu runs.</p>\n", count);
	for (size_t i = 0, next; i < count; i = next) {
		bool new_gpu = i == 0 || !slice_same(runs[i - 1].of->parts.gpu, runs[i].of->parts.gpu);
		if (new_gpu) {
			page_str(p, "<h2>");
			page_text(p, runs[i].of->parts.gpu);
			page_str(p, "</h2>\n");
		}
		for (next = i; next < count && compare_groups(&runs[next], &runs[i]) == 0;)
			next++;
		if (put_group(p, runs + i, next - i))
			return -1;
	}
	site_list_name("operations", runs->of->parts.operation_slug, name);
	return page_end(p, name);
}

static void list_operation(struct page *list, const struct site_run *runs, size_t count)
{
	char name[SITE_NAME_MAX];
	site_list_name("operations", runs->of->parts.operation_slug, name);
	page_str(list, "<tr><td>");
	page_link(list, name, runs->of->parts.operation_title);
	page_str(list, "</td><td>");
	page_text(list, runs->of->parts.operation_slug);
	page_printf(list, "</td><td class=\"n\">%zu</td></tr>\n", count);
}

int site_operations(struct site *s)
{
	struct page p = {0}, list = {0};
	int rc = 0;
	if (s->count)
		qsort(s->runs, s->count, sizeof *s->runs, compare_runs_of);
	page_begin(&list, s, "../", slice_of("Operations"));
	page_table(&list, "Operations", "Operation|Name|#Runs");
	for (size_t i = 0, next; i < s->count && rc == 0; i = next) {
		for (next = i; next < s->count && same_operation(&s->runs[next], &s->runs[i]);)
			next++;
		list_operation(&list, s->runs + i, next - i);
		rc = write_operation(&p, s, s->runs + i, next - i);
	}
	page_table_end(&list);
	if (rc == 0)
		rc = page_end(&list, "operations/index.html");
	page_fini(&p);
	page_fini(&list);
	return rc;
}
