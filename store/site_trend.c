#include "store/site_trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/when.h"
#include "store/site_svg.h"

enum { TREND_MIN = 2 };

struct trends {
	const struct series **order; /* by benchmark whoever provides it, then case, then channel */
	size_t count;
	uint32_t *first;             /* by case: its first in `order`, counted from 1; 0 when it has no page */
	uint32_t cases;
};

/* ---- which cases have a page ---- */

/* What all providers of one benchmark share. */
static int compare_benchmarks(const struct series *a, const struct series *b)
{
	const struct case_parts *p = &a->of->parts, *q = &b->of->parts;
	int order = slice_cmp(p->operation_slug, q->operation_slug);
	order = order ? order : slice_cmp(p->kernel, q->kernel);
	order = order ? order : slice_cmp(p->mode, q->mode);
	order = order ? order : slice_cmp(p->gpu, q->gpu);
	order = order ? order : slice_cmp(p->x_name, q->x_name);
	order = order ? order : slice_cmp(p->x_value, q->x_value);
	return order ? order : slice_cmp(p->config, q->config);
}

static int compare_series(const void *a, const void *b)
{
	const struct series *x = *(const struct series *const *)a, *y = *(const struct series *const *)b;
	int order = compare_benchmarks(x, y);
	order = order ? order : slice_cmp(x->of->parts.provider, y->of->parts.provider);
	order = order ? order : digest_cmp(&x->of->digest, &y->of->digest);
	return order ? order : (x->slot > y->slot) - (x->slot < y->slot);
}

/* Where the run of equals that begins at `i` ends. */
static size_t end_of_case(const struct trends *t, size_t i)
{
	size_t end = i + 1;
	while (end < t->count && t->order[end]->of == t->order[i]->of)
		end++;
	return end;
}

static size_t end_of_benchmark(const struct trends *t, size_t i)
{
	size_t end = i + 1;
	while (end < t->count && compare_benchmarks(t->order[end], t->order[i]) == 0)
		end++;
	return end;
}

void site_trends_load(struct site *s)
{
	const struct series_set *set = &s->changes.series;
	struct trends *t = xcalloc(1, sizeof *t);
	s->trends = t;
	t->order = xcalloc(set->count + 1, sizeof *t->order);
	t->cases = s->c->counts.cases;
	t->first = xcalloc((size_t)t->cases + 1, sizeof *t->first);
	for (size_t i = 0; i < set->count; i++)
		t->order[t->count++] = &set->items[i];
	qsort(t->order, t->count, sizeof *t->order, compare_series);
	for (size_t i = 0, end; i < t->count; i = end) {
		bool wanted = false;
		end = end_of_case(t, i);
		for (size_t k = i; k < end; k++)
			wanted = wanted || t->order[k]->count >= TREND_MIN;
		if (wanted)
			t->first[t->order[i]->of->id] = (uint32_t)i + 1;
	}
}

void site_trends_free(struct trends *t)
{
	if (!t)
		return;
	free(t->order);
	free(t->first);
	free(t);
}

/* The first series of a case that has a page; NULL when it has none. */
static const struct series *const *series_of(const struct trends *t, const struct catalog_case *of)
{
	return of->id < t->cases && t->first[of->id] ? &t->order[t->first[of->id] - 1] : NULL;
}

bool site_trend_name(const struct site *s, const struct catalog_case *of, char out[SITE_NAME_MAX])
{
	char hex[DIGEST_HEX + 1];
	if (!series_of(s->trends, of))
		return false;
	digest_hex(&of->digest, hex);
	snprintf(out, SITE_NAME_MAX, "trends/%.2s/%s.html", hex, hex);
	return true;
}

/* ---- changes in words ---- */

static void put_words(struct page *p, const struct change *h)
{
	struct buf words = {0};
	change_words(h, &words);
	page_text(p, (struct slice){words.data, words.len});
	buf_fini(&words);
}

/* The changes of a case in all channels, each after `between`. */
static void put_changes(struct page *p, const struct catalog_case *of, const char *between)
{
	const struct trends *t = p->site->trends;
	size_t i = t->first[of->id] - 1, end = end_of_case(t, i), count;
	for (; i < end; i++) {
		const struct change *h = change_of(&p->site->changes, t->order[i], &count);
		for (size_t k = 0; k < count; k++) {
			page_str(p, between);
			put_words(p, &h[k]);
		}
	}
}

void site_trend_link(struct page *p, const struct catalog_case *of)
{
	char name[SITE_NAME_MAX];
	if (!site_trend_name(p->site, of, name))
		return;
	page_link(p, name, of->parts.provider_title);
	put_changes(p, of, ", ");
}

/* ---- one series ---- */

static const char *channel_of(const struct page *p, const struct series *s)
{
	return p->site->c->channels.items[s->slot].name;
}

static double or_nan(int64_t ns)
{
	return ns > 0 ? (double)ns : NAN;
}

static double median_of(const double *logs, size_t begin, size_t end)
{
	return exp(step_median(logs + begin, end - begin));
}

static struct slice release_of(const struct series_point *at)
{
	return (struct slice){at->release->identity, (size_t)release_name_length(at->release)};
}

static void put_plot(struct page *p, const struct series *s, const struct change *changes, size_t count)
{
	struct svg_stop *stops = xmalloc(s->count * sizeof *stops);
	struct svg_step *steps = xmalloc((count + 1) * sizeof *steps);
	double *logs = series_logs(s);
	struct buf title = {0};
	for (size_t i = 0; i < s->count; i++) {
		const struct series_point *at = &s->points[i];
		stops[i] = (struct svg_stop){release_of(at), at->version, {0, (double)at->median_ns, or_nan(at->p20_ns), or_nan(at->p80_ns)}, at->observed_ms};
	}
	for (size_t i = 0; i < count; i++)
		steps[i] = (struct svg_step){changes[i].begin, changes[i].split, changes[i].end, median_of(logs, changes[i].begin, changes[i].split),
					     median_of(logs, changes[i].split, changes[i].end)};
	buf_printf(&title, "Median latency from publication to publication of %s", channel_of(p, s));
	svg_trend(p, &(struct svg_trend){title.data, METRIC_LATENCY, stops, s->count, steps, count});
	free(stops);
	free(steps);
	free(logs);
	buf_fini(&title);
}

static int put_point(struct page *p, const struct series *s, size_t i, bool caveats)
{
	const struct series_point *at = &s->points[i];
	struct run_row row;
	char name[SITE_NAME_MAX], observed[WHEN_TEXT + 1], digest[DIGEST_TEXT + 1];
	if (catalog_run(p->site->c, at->run, &row))
		return -1;
	site_run_name(&row.digest, name);
	digest_text(&row.digest, digest);
	when_text(at->observed_ms, observed);
	page_str(p, "<tr><td>");
	page_text(p, release_of(at));
	page_str(p, "</td><td>");
	page_text(p, at->version);
	page_printf(p, "</td><td>%.10s %.5s</td><td class=\"n\">", observed, observed + 11);
	page_quantity(p, METRIC_LATENCY, at->median_ns);
	page_str(p, "</td><td class=\"n\">");
	page_quantity(p, METRIC_LATENCY, at->p20_ns);
	page_str(p, " to ");
	page_quantity(p, METRIC_LATENCY, at->p80_ns);
	page_str(p, "</td><td class=\"n\">");
	if (i)
		page_printf(p, "%+.1f %%", ((double)at->median_ns / (double)s->points[i - 1].median_ns - 1) * 100);
	page_str(p, "</td><td>");
	page_link(p, name, (struct slice){digest + DIGEST_TEXT - DIGEST_HEX, 12});
	page_str(p, "</td><td>");
	site_flag_names(p->site, at->run, &p->out);
	page_str(p, caveats ? "</td><td>" : "");
	page_text(p, caveats ? at->caveats : slice_of(""));
	page_str(p, "</td></tr>\n");
	return 0;
}

static void put_verdict(struct page *p, const struct series *s, size_t changes)
{
	const struct change_list *l = &p->site->changes;
	if (s->count < l->points_min)
		page_printf(p, "<p>%zu point%s: change points are looked for from %zu on.</p>\n", s->count, s->count > 1 ? "s" : "", l->points_min);
	else if (changes == 0)
		page_printf(p, "<p>No change point in %zu points.</p>\n", s->count);
	else
		page_printf(p, "<p>%zu change point%s in %zu points, by policy %s. The cause lies between both publications: in the kernel, its libraries or the "
			       "host.</p>\n", changes, changes > 1 ? "s" : "", s->count, l->policy);
}

static int put_series(struct page *p, const struct series *s)
{
	size_t count, next = 0;
	const struct change *changes = change_of(&p->site->changes, s, &count);
	bool alike = series_caveats_alike(s);
	page_printf(p, "<section aria-labelledby=\"channel-%u\">\n<h2 id=\"channel-%u\">Channel ", s->slot, s->slot);
	html_str(&p->out, channel_of(p, s));
	page_str(p, "</h2>\n");
	put_verdict(p, s, count);
	if (alike && s->points[0].caveats.len) {
		page_str(p, "<p>Caveats of every point: ");
		page_text(p, s->points[0].caveats);
		page_str(p, "</p>\n");
	}
	if (s->count >= TREND_MIN)
		put_plot(p, s, changes, count);
	page_table(p, "Publications in the order of measurement, with the change points between them",
		   alike ? "Publication|Version|Observed|#Median|#p20 to p80|#Against the one before|Run|Flags"
			 : "Publication|Version|Observed|#Median|#p20 to p80|#Against the one before|Run|Flags|Caveats");
	for (size_t i = 0; i < s->count; i++) {
		if (next < count && changes[next].split == i) {
			page_printf(p, "<tr class=\"step\"><td colspan=\"%d\"><strong>", alike ? 8 : 9);
			put_words(p, &changes[next]);
			page_printf(p, "</strong>, %s; p %.2g, q %.2g</td></tr>\n", changes[next].ratio > 1 ? "slower" : "faster", changes[next].p, changes[next].q);
			next++;
		}
		if (put_point(p, s, i, !alike))
			return -1;
	}
	page_table_end(p);
	page_str(p, "</section>\n");
	return 0;
}

/* ---- one page ---- */

static void put_head(struct page *p, const struct catalog_case *of)
{
	const struct case_parts *c = &of->parts;
	char name[SITE_NAME_MAX];
	page_benchmark(p, c, true);
	page_str(p, "<dl>\n");
	page_row_str(p, "Metric", "median latency");
	page_row(p, "Kernel", c->kernel);
	site_list_name("providers", c->provider, name);
	page_row_open(p, "Provider");
	page_link(p, name, c->provider_title);
	page_row_close(p);
	site_cohort_name(&of->cohort, name);
	page_row_open(p, "Ranking");
	page_link(p, name, slice_of("comparison group"));
	page_row_close(p);
	page_row_open(p, "Case");
	page_digest(p, &of->digest);
	page_row_close(p);
	page_str(p, "</dl>\n");
}

/* Providers of the same benchmark: where they moved too, the cause is rather the host. */
static void put_others(struct page *p, const struct trends *t, size_t begin, size_t end, const struct catalog_case *of)
{
	size_t shown = 0;
	for (size_t i = begin; i < end; i = end_of_case(t, i)) {
		if (t->order[i]->of == of || !series_of(t, t->order[i]->of))
			continue;
		if (shown++ == 0) {
			page_section(p, "others", "Other providers of this benchmark");
			page_str(p, "<p class=\"sub\">Where they moved in the same publication, look at the host and its libraries first.</p>\n<ul>\n");
		}
		page_str(p, "<li>");
		site_trend_link(p, t->order[i]->of);
		page_str(p, "</li>\n");
	}
	page_str(p, shown ? "</ul>\n</section>\n" : "");
}

/* The page of the case whose series are order[i..end); its benchmark is order[group..group_end). */
static int write_page(struct page *p, struct site *s, size_t i, size_t end, size_t group, size_t group_end)
{
	const struct trends *t = s->trends;
	const struct catalog_case *of = t->order[i]->of;
	char name[SITE_NAME_MAX];
	struct buf title = {0};
	if (!site_trend_name(s, of, name))
		return 0;
	buf_printf(&title, "%.*s \xc2\xb7 %.*s: trend", (int)of->parts.operation_title.len, of->parts.operation_title.data, (int)of->parts.provider_title.len,
		   of->parts.provider_title.data);
	page_begin(p, s, "../../", (struct slice){title.data, title.len});
	buf_fini(&title);
	put_head(p, of);
	for (; i < end; i++)
		if (put_series(p, t->order[i]))
			return -1;
	put_others(p, t, group, group_end, of);
	return page_end(p, name);
}

/* ---- the list ---- */

static int compare_newest(const void *a, const void *b)
{
	const struct change *x = *(const struct change *const *)a, *y = *(const struct change *const *)b;
	if (x->first_after->observed_ms != y->first_after->observed_ms)
		return x->first_after->observed_ms > y->first_after->observed_ms ? -1 : 1;
	return (x > y) - (x < y);
}

static void put_listed(struct page *p, const struct change *h)
{
	const struct case_parts *c = &h->series->of->parts;
	char name[SITE_NAME_MAX], observed[WHEN_TEXT + 1];
	when_text(h->first_after->observed_ms, observed);
	page_printf(p, "<tr><td>%.10s</td><td>", observed);
	if (site_trend_name(p->site, h->series->of, name))
		page_link(p, name, c->operation_title);
	page_str(p, "</td><td>");
	page_text(p, c->mode);
	page_str(p, "</td><td>");
	page_text(p, c->provider_title);
	page_str(p, "</td><td>");
	page_text(p, c->gpu);
	page_str(p, "</td><td>");
	page_text(p, c->workload_label);
	page_str(p, "</td><td>");
	put_words(p, h);
	page_printf(p, "</td><td class=\"n\">%.2g</td></tr>\n", h->q);
}

static int write_list(struct page *p, struct site *s, size_t pages)
{
	const struct change_list *l = &s->changes;
	const struct change **newest = xmalloc((l->count + 1) * sizeof *newest);
	for (size_t i = 0; i < l->count; i++)
		newest[i] = &l->items[i];
	qsort(newest, l->count, sizeof *newest, compare_newest);
	page_begin(p, s, "../", slice_of("Trends"));
	page_printf(p, "<p>%zu benchmarks were published twice or more; each has a page, to be found from its operation and its runs. %zu series have the %zu points "
		       "from which on change points are looked for, by policy %s.</p>\n", pages, l->tested, l->points_min, l->policy);
	if (l->count == 0)
		page_str(p, "<p>No change point was found.</p>\n");
	else
		page_table(p, "Change points, newest first", "First observed|Operation|Pass|Provider|GPU|Workload|Change|#q");
	for (size_t i = 0; i < l->count; i++)
		put_listed(p, newest[i]);
	if (l->count)
		page_table_end(p);
	free(newest);
	return page_end(p, "trends/index.html");
}

int site_trends(struct site *s)
{
	const struct trends *t = s->trends;
	struct page p = {0};
	size_t pages = 0;
	int rc = 0;
	for (size_t group = 0, group_end; group < t->count && rc == 0; group = group_end) {
		group_end = end_of_benchmark(t, group);
		for (size_t i = group, end; i < group_end && rc == 0; i = end) {
			end = end_of_case(t, i);
			pages += series_of(t, t->order[i]->of) != NULL;
			rc = write_page(&p, s, i, end, group, group_end);
		}
	}
	if (rc == 0)
		rc = write_list(&p, s, pages);
	page_fini(&p);
	return rc;
}
