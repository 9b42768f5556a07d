#include "store/site_facet.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"

/* What pages are made by. */
struct facet {
	const char *folder, *title, *head;
	struct slice (*name)(const struct site_run *r);  /* what its runs share */
	struct slice (*shown)(const struct site_run *r);
	struct slice (*other)(const struct site_run *r); /* second column: the other facet */
	void (*facts)(struct page *p, const struct site_run *r);
};

static struct slice gpu_of(const struct site_run *r)
{
	return r->of->parts.gpu;
}

static struct slice provider_of(const struct site_run *r)
{
	return r->of->parts.provider;
}

static struct slice provider_title_of(const struct site_run *r)
{
	return r->of->parts.provider_title;
}

static void put_peak(struct page *p, struct slice gpu, const char *name, const char *title, const char *unit)
{
	double peak = policy_peak(&p->site->policy, gpu, name);
	if (peak <= 0)
		return;
	page_row_open(p, title);
	page_printf(p, "%g %s", peak, unit);
	page_row_close(p);
}

static void gpu_facts(struct page *p, const struct site_run *r)
{
	page_str(p, "<dl>\n");
	page_leaves(p, "", json_object_get(json_object_get(whole_object(p->site->cache, &r->of->parts.environment), "spec"), "hardware"));
	put_peak(p, r->of->parts.gpu, "GBps", "Data sheet: memory", "GB/s");
	put_peak(p, r->of->parts.gpu, "bf16TFLOPs", "Data sheet: bf16 matrix", "TFLOP/s");
	put_peak(p, r->of->parts.gpu, "tf32TFLOPs", "Data sheet: tf32 matrix", "TFLOP/s");
	put_peak(p, r->of->parts.gpu, "fp32TFLOPs", "Data sheet: fp32", "TFLOP/s");
	page_str(p, "</dl>\n");
}

static void provider_facts(struct page *p, const struct site_run *r)
{
	const json_t *project = json_object_get(whole_object(p->site->cache, &r->of->parts.project), "spec");
	page_str(p, "<dl>\n");
	page_row(p, "Provider code", r->of->parts.provider);
	page_row_open(p, "Project");
	page_url(p, json_string_value(json_object_get(project, "repository")) ? json_string_value(json_object_get(project, "repository")) : "unknown");
	page_row_close(p);
	page_str(p, "</dl>\n");
}

static const struct facet facets[] = {
	{"gpus", "GPUs", "Provider", gpu_of, gpu_of, provider_title_of, gpu_facts},
	{"providers", "Providers", "GPU", provider_of, provider_title_of, gpu_of, provider_facts},
};

/* ---- one page ---- */

/* By name, operation, other facet, pass. */
static int compare(const void *a, const void *b, void *context)
{
	const struct facet *f = context;
	const struct site_run *x = a, *y = b;
	int order = slice_cmp(f->name(x), f->name(y));
	order = order ? order : slice_cmp(x->of->parts.operation_slug, y->of->parts.operation_slug);
	order = order ? order : slice_cmp(f->other(x), f->other(y));
	order = order ? order : slice_cmp(x->of->parts.mode, y->of->parts.mode);
	return order ? order : (x->run > y->run) - (x->run < y->run);
}

static bool same_line(const struct facet *f, const struct site_run *x, const struct site_run *y)
{
	return slice_same(f->name(x), f->name(y)) && slice_same(x->of->parts.operation_slug, y->of->parts.operation_slug) &&
	       slice_same(f->other(x), f->other(y)) && slice_same(x->of->parts.mode, y->of->parts.mode);
}

static void put_line(struct page *p, const struct facet *f, const struct site_run *runs, size_t count)
{
	size_t ranked = 0, first = 0;
	char name[SITE_NAME_MAX];
	for (size_t i = 0; i < count; i++) {
		ranked += runs[i].rank > 0;
		first += runs[i].rank == 1 && runs[i].ranked > 1;
	}
	site_list_name("operations", runs->of->parts.operation_slug, name);
	page_str(p, "<tr><td>");
	page_link(p, name, runs->of->parts.operation_title);
	page_str(p, "</td><td>");
	page_text(p, f->other(runs));
	page_str(p, "</td><td>");
	page_text(p, runs->of->parts.mode);
	page_printf(p, "</td><td class=\"n\">%zu</td><td class=\"n\">%zu</td><td class=\"n\">%zu</td></tr>\n", count, ranked, first);
}

static void put_runs(struct page *p, const struct facet *f, const struct site_run *runs, size_t count)
{
	struct buf heads = {0};
	f->facts(p, runs);
	buf_printf(&heads, "Operation|%s|Pass|#Runs|#Ranked|#First of two or more", f->head);
	page_table(p, "Runs by operation", heads.data);
	buf_fini(&heads);
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i; next < count && same_line(f, &runs[next], &runs[i]);)
			next++;
		put_line(p, f, runs + i, next - i);
	}
	page_table_end(p);
}

static void put_listed(struct page *list, const struct facet *f, const struct site_run *r, size_t count, const char *name)
{
	page_str(list, "<tr><td>");
	page_link(list, name, f->shown(r));
	page_str(list, "</td><td>");
	page_text(list, f->name(r));
	page_printf(list, "</td><td class=\"n\">%zu</td></tr>\n", count);
	buf_printf(&list->site->names, ",[\"%s\",", name);
	html_json(&list->site->names, f->shown(r));
	buf_char(&list->site->names, ']');
}

/* Ends the page at hand, unless the runs at `next` belong on it too. */
static bool page_is_done(const struct site *s, const struct facet *f, size_t next, const char *name)
{
	char other[SITE_NAME_MAX] = "";
	if (next < s->count)
		site_list_name(f->folder, f->name(&s->runs[next]), other);
	return strcmp(name, other) != 0;
}

static int write_facet(struct site *s, const struct facet *f)
{
	struct page p = {0}, list = {0};
	char name[SITE_NAME_MAX];
	bool open = false;
	int rc = 0;
	if (s->count)
		qsort_r(s->runs, s->count, sizeof *s->runs, compare, (void *)f);
	page_begin(&list, s, "../", slice_of(f->title));
	page_table(&list, f->title, "Title|Name|#Runs");
	for (size_t i = 0, next; i < s->count && rc == 0; i = next) {
		for (next = i; next < s->count && slice_same(f->name(&s->runs[next]), f->name(&s->runs[i]));)
			next++;
		site_list_name(f->folder, f->name(&s->runs[i]), name);
		if (!open)
			page_begin(&p, s, "../", f->shown(&s->runs[i]));
		put_listed(&list, f, &s->runs[i], next - i, name);
		put_runs(&p, f, s->runs + i, next - i);
		open = !page_is_done(s, f, next, name);
		if (!open)
			rc = page_end(&p, name);
	}
	page_table_end(&list);
	snprintf(name, sizeof name, "%s/index.html", f->folder);
	if (rc == 0)
		rc = page_end(&list, name);
	page_fini(&p);
	page_fini(&list);
	return s->c->err->code ? -1 : rc;
}

int site_facets(struct site *s)
{
	for (size_t i = 0; i < sizeof facets / sizeof *facets; i++)
		if (write_facet(s, &facets[i]))
			return -1;
	return 0;
}
