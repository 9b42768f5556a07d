#include "store/site_coverage.h"

#include <string.h>

#include "core/json.h"

static void put_counts(struct page *p, const json_t *publication)
{
	static const char *const names[] = {"rows", "duplicates"};
	const json_t *report = json_object_get(publication, "report");
	page_str(p, "<tr><td>");
	html_str(&p->out, json_text_of(publication, "channel"));
	page_str(p, "</td><td>");
	html_str(&p->out, catalog_identity(publication));
	page_str(p, "</td><td>");
	html_str(&p->out, json_text_of(publication, "publishedAt"));
	page_str(p, "</td>");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		page_printf(p, "<td class=\"n\">%lld</td>", json_whole_of(report, names[i]));
	page_printf(p, "<td class=\"n\">%lld</td><td class=\"n\">%lld</td></tr>\n", json_whole_of(publication, "carried"), json_whole_of(publication, "newRuns"));
}

/* Adds the numbers of a tree of counts to those of another. */
static void add_counts(json_t *sum, const json_t *counts)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)counts, name, value) {
		json_t *held = json_object_get(sum, name);
		if (json_is_object(value)) {
			if (!json_is_object(held)) {
				held = json_object();
				json_object_set_new(sum, name, held);
			}
			add_counts(held, value);
		} else if (json_is_integer(value) && json_integer_value(value) > 0) {
			json_object_set_new(sum, name, json_integer(json_integer_value(held) + json_integer_value(value)));
		}
	}
}

/* A line for each reason and name that was counted. */
static void put_reasons(struct page *p, const char *channel, const char *reason, const json_t *counts)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)counts, name, value) {
		if (json_is_object(value)) {
			put_reasons(p, channel, name, value);
			continue;
		}
		page_str(p, "<tr><td>");
		html_str(&p->out, channel);
		page_str(p, "</td><td>");
		html_str(&p->out, reason);
		page_str(p, "</td><td>");
		html_str(&p->out, name);
		page_printf(p, "</td><td class=\"n\">%lld</td></tr>\n", (long long)json_integer_value(value));
	}
}

static const char limits[] =
	"<section aria-labelledby=\"limits\">\n<h2 id=\"limits\">What these numbers cannot say</h2>\n<ul>\n"
	"<li>A row of the source names a GPU and nothing else of its host: no clocks, no driver, no versions but that of Liger-Kernel.</li>\n"
	"<li>The source says that a run passed; it does not publish against what it was checked.</li>\n"
	"<li>Runs are compared only within one comparison key: one operation, workload, pass, protocol and GPU.</li>\n"
	"<li>A time near the cost of a launch says little about the kernel; such runs carry a flag.</li>\n"
	"<li>Only a rerun under a controlled protocol raises the evidence level.</li>\n</ul>\n</section>\n";

int site_coverage(struct site *s)
{
	struct page p = {0};
	json_t *sums = json_object(), *sum;
	const char *channel;
	page_begin(&p, s, "", slice_of("Coverage"));
	page_section(&p, "publications", "Publications, newest first");
	page_table(&p, "Publications", "Channel|Commit or entry|Published here|#Rows|#Duplicates|#Runs carried|#New runs");
	for (uint32_t id = s->c->counts.publications; id-- > 0 && !s->c->err->code;) {
		json_t *publication = catalog_publication(s->c, id);
		const json_t *report = json_object_get(publication, "report");
		channel = json_text_of(publication, "channel");
		if (publication && !json_object_get(sums, channel))
			json_object_set_new(sums, channel, json_object());
		sum = json_object_get(sums, channel);
		add_counts(sum, json_object_get(report, "skipped"));
		add_counts(sum, json_object_get(report, "rejected"));
		put_counts(&p, publication);
		json_decref(publication);
	}
	page_table_end(&p);
	page_str(&p, "</section>\n");
	page_section(&p, "skipped", "Skipped and rejected rows");
	page_table(&p, "Rows that became no run, over all publications", "Channel|Reason|Name|#Rows");
	json_object_foreach(sums, channel, sum)
		put_reasons(&p, channel, "rejected", sum);
	page_table_end(&p);
	page_str(&p, "</section>\n");
	page_str(&p, limits);
	int rc = s->c->err->code ? -1 : page_end(&p, "coverage.html");
	json_decref(sums);
	page_fini(&p);
	return rc;
}
