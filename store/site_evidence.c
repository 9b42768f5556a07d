#include "store/site_evidence.h"

#include <string.h>

#include "core/json.h"
#include "store/correction.h"
#include "store/link.h"

void site_put_flags(struct page *p, uint32_t run)
{
	size_t count;
	const struct flag *const *flags = site_flags(p->site, run, &count);
	if (count == 0)
		return;
	page_str(p, "<div class=\"box\" role=\"note\" aria-label=\"Flags\">\n<ul>\n");
	for (size_t i = 0; i < count; i++) {
		page_printf(p, "<li><strong>%s</strong>: ", flag_name(flags[i]->code));
		html_str(&p->out, flags[i]->words);
		page_str(p, "</li>\n");
	}
	page_printf(p, "</ul>\n<p class=\"sub\">By policy %s. A flag asks for care; it changes neither rank nor evidence.</p>\n</div>\n", p->site->flags.policy);
}

/* ---- reruns ---- */

static void put_run_digest(struct page *p, const char *text)
{
	struct digest d;
	char name[SITE_NAME_MAX];
	if (!digest_parse(text, strlen(text), &d)) {
		html_str(&p->out, text);
		return;
	}
	site_run_name(&d, name);
	page_link(p, name, slice_of(text));
}

static void put_times(struct page *p, const json_t *link)
{
	const json_t *device = json_object_get(link, "t_dev_ns"), *source = json_object_get(link, "t_src_ns"), *floor = json_object_get(link, "floor");
	if (device) {
		page_row_open(p, "Device time");
		page_printf(p, "median %.0f ns, p20 %.0f, p80 %.0f, %lld samples", json_number_value(json_object_get(device, "median")),
			    json_number_value(json_object_get(device, "p20")), json_number_value(json_object_get(device, "p80")), json_whole_of(device, "samples"));
		page_row_close(p);
	}
	if (source) {
		page_row_open(p, "By the source's protocol");
		page_printf(p, "median %.0f ns; host %.0f ns; rho %.2f", json_number_value(json_object_get(source, "median")),
			    json_number_value(json_object_get(link, "h_ns")), json_number_value(json_object_get(link, "rho")));
		page_row_close(p);
	}
	if (json_number_value(json_object_get(floor, "bytes")) > 0) {
		page_row_open(p, "Least work");
		page_printf(p, "%.0f bytes, %.0f flops; %.0f GB/s achieved, %.0f %% of measured copy bandwidth", json_number_value(json_object_get(floor, "bytes")),
			    json_number_value(json_object_get(floor, "flops")), json_number_value(json_object_get(floor, "gbps")),
			    100 * json_number_value(json_object_get(floor, "copy_share")));
		page_row_close(p);
	}
}

static void put_link(struct page *p, const json_t *link, bool subject)
{
	static const struct {
		const char *name, *title;
	} rows[] = {{"runner", "Runner"}, {"status", "Status"}, {"class", "Class"}, {"verdict", "Verdict"}, {"policy", "Policy"},
		    {"at", "Imported"}, {"batch", "Batch"}, {"key", "Signing key"}, {"evidence", "Evidence"}, {"gpu", "GPU"}, {"machine", "Machine"}};
	page_str(p, "<dl>\n");
	page_row_open(p, subject ? "Rerun" : "Rerun of");
	put_run_digest(p, json_text_of(link, subject ? "rerun" : "subject"));
	page_row_close(p);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (*json_text_of(link, rows[i].name))
			page_row_str(p, rows[i].title, json_text_of(link, rows[i].name));
	put_times(p, link);
	page_str(p, "</dl>\n<details class=\"figures\"><summary>All figures of this rerun</summary>\n<dl>\n");
	page_leaves(p, "", link);
	page_str(p, "</dl>\n</details>\n");
}

static void put_correction(struct page *p, const json_t *entry)
{
	static const struct {
		const char *type, *title;
	} kinds[] = {{"retract", "Retracted"}, {"note", "Note"}, {"undo", "Undone"}};
	bool undone = json_is_true(json_object_get(entry, "undone"));
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i].type, json_text_of(entry, "type")) == 0)
			page_printf(p, "<dl>\n<dt>%s%s</dt><dd>", kinds[i].title, undone ? ", since undone" : "");
	if (*json_text_of(entry, "code"))
		page_printf(p, "<code>%s</code>: ", json_text_of(entry, "code"));
	html_str(&p->out, *json_text_of(entry, "text") ? json_text_of(entry, "text") : json_text_of(entry, "reason"));
	page_str(p, "</dd>\n");
	if (*json_text_of(entry, "entry"))
		page_row_str(p, "Entry that it undoes", json_text_of(entry, "entry"));
	page_row_str(p, "Signed at", json_text_of(entry, "at"));
	page_row_str(p, "Signing key", json_text_of(entry, "key"));
	page_row_str(p, "Entry", json_text_of(entry, "id"));
	page_str(p, "</dl>\n");
}

static void put_notes(struct page *p, const struct whole *w)
{
	size_t count, notes = 0, i;
	json_t *entry, *corrections = correction_of(w->c, &w->v.m->row.digest);
	const struct flag *const *flags = site_flags(p->site, w->v.m->run, &count);
	json_array_foreach(corrections, i, entry)
		put_correction(p, entry);
	notes = json_array_size(corrections);
	json_decref(corrections);
	for (i = 0; i < count; i++)
		if (flags[i]->code == FLAG_MANUAL) {
			page_str(p, "<p>Note: ");
			html_str(&p->out, flags[i]->words);
			page_str(p, "</p>\n");
			notes++;
		}
	page_printf(p, "<p class=\"sub\">%sNotes by people never change the evidence level.</p>\n", notes ? "" : "No notes. ");
}

void site_put_reruns(struct page *p, const struct whole *w)
{
	char run[DIGEST_TEXT + 1];
	size_t i;
	json_t *link, *links = link_of(w->c, &w->v.m->row.digest);
	digest_text(&w->v.m->row.digest, run);
	const char *verdict = link_verdict(links, run);
	page_section(p, "replications", "Replications and notes");
	if (json_array_size(links) == 0)
		page_str(p, "<p>Not rerun.</p>\n");
	if (verdict)
		page_printf(p, "<p>Verdict that stands: <strong>%s</strong>.</p>\n", verdict);
	json_array_foreach(links, i, link)
		put_link(p, link, strcmp(json_text_of(link, "subject"), run) == 0);
	put_notes(p, w);
	page_str(p, "</section>\n");
	json_decref(links);
}

/* ---- history ---- */

static void put_other(struct page *p, const char *title, const struct member *m)
{
	char name[SITE_NAME_MAX], digest[DIGEST_TEXT + 1];
	if (!m)
		return;
	digest_text(&m->row.digest, digest);
	site_run_name(&m->row.digest, name);
	page_row_open(p, title);
	page_link(p, name, slice_of(digest));
	page_str(p, ", ");
	page_quantity(p, m->c->parts.metric, m->primary);
	page_row_close(p);
}

static void put_publication(struct page *p, const json_t *publication)
{
	const json_t *provenance = json_object_get(publication, "provenance");
	const char *commit = json_text_of(publication, "commit"), *url = json_text_of(provenance, "finalUrl"),
		   *path = json_text_of(provenance, "path");
	page_str(p, "<tr><td>");
	html_str(&p->out, json_text_of(publication, "channel"));
	page_str(p, "</td><td>");
	html_str(&p->out, json_text_of(publication, "entry"));
	page_str(p, *json_text_of(publication, "entry") && *commit ? " " : "");
	html_str(&p->out, commit);
	page_str(p, "</td><td>");
	html_str(&p->out, json_text_of(publication, "publishedAt"));
	page_str(p, "</td><td>");
	page_url(p, *url ? url : *path ? path : json_text_of(publication, "file"));
	page_str(p, "</td><td><code>");
	html_str(&p->out, json_text_of(publication, "sha256"));
	page_printf(p, "</code></td><td class=\"n\">%lld</td><td><code>", json_whole_of(publication, "sizeBytes"));
	html_str(&p->out, json_text_of(publication, "config"));
	page_str(p, "</code></td></tr>\n");
}

static void put_labels(struct page *p, const struct whole *w)
{
	struct err ignored = {0};
	json_t *labels = json_load_text(w->v.labels.data, w->v.labels.len, "labels", &ignored);
	if (json_object_size(labels)) {
		page_str(p, "<dl>\n");
		page_leaves(p, "", labels);
		page_str(p, "</dl>\n");
	}
	json_decref(labels);
}

void site_put_history(struct page *p, const struct whole *w)
{
	const struct member *m = w->v.m;
	page_section(p, "history", "History");
	page_str(p, "<dl>\n");
	const char *state = lineage_state(&p->site->lineage, m);
	page_row_str(p, "State", strcmp(state, "withdrawn") == 0 ? "withdrawn by the source without a successor" : state);
	put_other(p, "Superseded by", m->superseded ? cohort_member(w->v.k, m->successor) : NULL);
	put_other(p, "Supersedes", lineage_predecessor(w->v.k, m));
	page_str(p, "</dl>\n");
	put_labels(p, w);
	page_table(p, "Publications that carried it", "Channel|Commit|Published here|Upstream file|Snapshot digest|#Bytes|Digest of the rules");
	for (size_t i = 0; i < w->carrier_count; i++)
		put_publication(p, whole_publication(w->cache, w->carriers[i]));
	page_table_end(p);
	page_str(p, "</section>\n");
}
