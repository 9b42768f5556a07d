#include "store/site_cohort.h"

#include <math.h>
#include <stdlib.h>

#include "core/when.h"
#include "store/link.h"
#include "store/site_compare.h"
#include "store/site_svg.h"

static void put_head(struct page *p, const struct cohort *k)
{
	const struct case_parts *c = &k->members[0].c->parts;
	page_benchmark(p, c, false);
	page_str(p, "<dl>\n");
	page_row_str(p, "Metric", c->metric == METRIC_LATENCY ? "median latency" : "median of peak memory");
	page_row_open(p, "Runs");
	page_printf(p, "%zu, of which %zu ranked", k->count, k->ranked);
	page_row_close(p);
	page_row_open(p, "Comparison key");
	page_digest(p, &k->key);
	page_row_close(p);
	page_str(p, "</dl>\n");
	if (k->kernels > 1)
		page_printf(p, "<p class=\"box\">The group holds %zu kernels whose published contracts coincide; the rank within the kernel stands beside the "
			       "published rank.</p>\n", k->kernels);
}

static void put_rank(struct page *p, const struct cohort *k, const struct member *m)
{
	if (!m->rank) {
		page_printf(p, "<td><code>%s</code></td>", unranked_code(m->unranked));
		return;
	}
	page_printf(p, "<td class=\"n\">%u%s", m->rank, m->tied ? " tied" : "");
	if (k->kernels > 1)
		page_printf(p, " (kernel: %u)", m->kernel_rank);
	page_str(p, "</td>");
}

static void put_member(struct page *p, const struct cohort *k, const struct member *m)
{
	enum metric metric = m->c->parts.metric;
	int64_t p20 = run_units(&m->row, metric, m->row.value_20), p80 = run_units(&m->row, metric, m->row.value_80);
	struct view v = {.catalog = p->site->c, .m = m, .k = k, .labels = catalog_labels(p->site->c, m->row.labels)};
	char name[SITE_NAME_MAX], observed[WHEN_TEXT + 1];
	site_run_name(&m->row.digest, name);
	when_text(m->row.observed_ms, observed);
	page_str(p, "<tr>");
	put_rank(p, k, m);
	page_str(p, "<td>");
	page_link(p, name, m->c->parts.provider_title);
	page_str(p, k->kernels > 1 ? ", " : "");
	page_text(p, k->kernels > 1 ? m->c->parts.kernel : (struct slice){"", 0});
	page_str(p, "</td><td class=\"n\">");
	page_quantity(p, metric, m->primary);
	page_str(p, "</td><td class=\"n\">");
	page_quantity(p, metric, p20);
	page_str(p, " to ");
	page_quantity(p, metric, p80);
	page_str(p, "</td><td class=\"n\">");
	if (m->primary >= 0 && k->ranked && k->members[0].primary > 0)
		page_printf(p, "%.2f\xc3\x97", (double)m->primary / (double)k->members[0].primary);
	page_printf(p, "</td><td>%.10s</td><td>", observed);
	page_text(p, view_label(&v, "liger_version"));
	page_printf(p, "</td><td>%s</td></tr>\n", view_evidence(&v));
}

enum { DRAWN_MAX = 40 }; /* runs in the plot; the table has all */

static double or_nan(int64_t units)
{
	return units > 0 ? (double)units : NAN;
}

static int put_plot(struct page *p, const struct cohort *k)
{
	const struct member *first = &k->members[0];
	size_t count = k->ranked < DRAWN_MAX ? k->ranked : DRAWN_MAX;
	struct floor floor;
	if (policy_floor(&p->site->policy, p->site->c, first->c, &floor))
		return -1;
	struct svg_bar *bars = xmalloc((count + 1) * sizeof *bars);
	for (size_t i = 0; i < count; i++) {
		const struct member *m = &k->members[i];
		enum metric metric = m->c->parts.metric;
		bars[i] = (struct svg_bar){m->c->parts.provider_title,
					   {1, (double)m->primary, or_nan(run_units(&m->row, metric, m->row.value_20)), or_nan(run_units(&m->row, metric, m->row.value_80))}};
	}
	svg_ranking(p, "Medians with the range from p20 to p80, best first", first->c->parts.metric, bars, count, floor.known ? floor.ns : 0);
	if (count < k->ranked)
		page_printf(p, "<p class=\"sub\">The first %zu of %zu.</p>\n", count, k->ranked);
	free(bars);
	return 0;
}

static void put_side_by_side(struct page *p, const struct cohort *k)
{
	const struct digest *runs[COMPARE_MAX];
	size_t count = k->ranked < COMPARE_MAX ? k->ranked : COMPARE_MAX;
	struct buf text = {0};
	if (count < 2)
		return;
	for (size_t i = 0; i < count; i++)
		runs[i] = &k->members[i].row.digest;
	buf_printf(&text, count < k->ranked ? "Compare the first %zu side by side" : "Compare all %zu side by side", count);
	page_str(p, "<p>");
	site_compare_link(p, runs, count, text.data);
	page_str(p, "</p>\n");
	buf_fini(&text);
}

int site_cohort_page(struct page *p, struct site *s, const struct cohort *k)
{
	const struct case_parts *c = &k->members[0].c->parts;
	char name[SITE_NAME_MAX];
	struct buf title = {0};
	buf_printf(&title, "%.*s, %.*s: comparison group", (int)c->operation_title.len, c->operation_title.data, (int)c->mode.len, c->mode.data);
	page_begin(p, s, "../../", (struct slice){title.data, title.len});
	buf_fini(&title);
	put_head(p, k);
	page_section(p, "ranking", "Ranking");
	if (put_plot(p, k))
		return -1;
	page_table(p, "Runs of the group, best first", "#Rank|Implementation|#Median|#p20 to p80|#Ratio to #1|Observed|Version|Evidence");
	for (size_t i = 0; i < k->count; i++)
		put_member(p, k, &k->members[i]);
	page_table_end(p);
	put_side_by_side(p, k);
	page_str(p, "</section>\n");
	site_cohort_name(&k->key, name);
	return page_end(p, name);
}
