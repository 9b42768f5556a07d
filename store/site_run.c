#include "store/site_run.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "core/json.h"
#include "core/when.h"
#include "store/compare.h"
#include "store/link.h"
#include "store/site_compare.h"
#include "store/site_evidence.h"
#include "store/site_trend.h"

static const json_t *spec(const json_t *body)
{
	return json_object_get(body, "spec");
}

static int64_t units(const struct whole *w, double value)
{
	return run_units(&w->v.m->row, w->parts->metric, value);
}

static struct slice slice_of_buf(const struct buf *b)
{
	return (struct slice){b->data ? b->data : "", b->len};
}

static bool controlled(const struct whole *w)
{
	return w->v.m->row.flags & RUN_WHOLE;
}

/* ---- head and measurement ---- */

static void put_head(struct page *p, struct whole *w)
{
	char digest[DIGEST_TEXT + 1];
	digest_text(&w->v.m->row.digest, digest);
	page_benchmark(p, w->parts, true);
	page_str(p, "<p class=\"sub\">Run ");
	page_digest(p, &w->v.m->row.digest);
	page_printf(p, "</p>\n<dl>\n<dt>Status</dt><dd>%s</dd>\n<dt>Evidence level</dt><dd>%s</dd>\n<dt>Data</dt><dd><a href=\"%s.json\">JSON of this record</a></dd>\n</dl>\n",
		    w->v.m->row.flags & RUN_FAILED ? "failed" : "passed", view_evidence(&w->v), digest + 7);
}

static void put_number(struct page *p, double value)
{
	char text[JSON_NUMBER_MAX] = "\xe2\x80\x94";
	if (!isnan(value))
		json_number(value, text);
	page_str(p, text);
}

/* `ms 20 · ms 50 · ms 80`, as parsed. */
static void put_source_values(struct page *p, const struct whole *w)
{
	const struct run_row *row = &w->v.m->row;
	const char *unit = w->parts->metric == METRIC_LATENCY ? "ms" : "mib";
	const double values[] = {row->value_20, row->value_50, row->value_80};
	if (row->flags & RUN_UNITS)
		return;
	page_printf(p, "<dt>Source-native values</dt><dd>%s 20 \xc2\xb7 %s 50 \xc2\xb7 %s 80: <code>", unit, unit, unit);
	for (size_t i = 0; i < 3; i++) {
		page_str(p, i ? " \xc2\xb7 " : "");
		put_number(p, values[i]);
	}
	page_str(p, "</code></dd>\n");
}

static void put_rank(struct page *p, const struct whole *w)
{
	const struct member *m = w->v.m;
	page_row_open(p, "Rank");
	if (m->rank)
		page_printf(p, "Rank %u in its comparison group (%u of %zu%s)", m->rank, m->rank, w->v.k->ranked, m->tied ? ", tied" : "");
	else
		page_printf(p, "None: <code>%s</code>", unranked_code(m->unranked));
	page_row_close(p);
	page_row_str(p, "Comparison", controlled(w) ? "strict exact comparison" : "source-native comparison");
	if (w->v.k->kernels > 1 && m->rank) {
		page_row_open(p, "Within its kernel");
		page_printf(p, "rank %u; the group holds %zu kernels whose published contracts coincide", m->kernel_rank, w->v.k->kernels);
		page_row_close(p);
	}
}

/* The ratio to the first of its group, and a link to both side by side; or to this one, where others can be added. */
static void put_compare(struct page *p, const struct whole *w)
{
	const struct member *m = w->v.m, *first = w->v.k->members;
	char name[SITE_NAME_MAX];
	if (!w->v.k->ranked || first->run == m->run || m->primary < 0 || first->primary <= 0) {
		page_row_open(p, "Against others");
		site_compare_link(p, (const struct digest *const[]){&m->row.digest}, 1, "Compare with other runs");
		page_row_close(p);
		return;
	}
	page_row_open(p, "Against the first");
	page_printf(p, "%.4g\xc3\x97 the median of #1, ", (double)m->primary / (double)first->primary);
	site_run_name(&first->row.digest, name);
	page_link(p, name, first->c->parts.provider_title);
	page_printf(p, "; %s. ", compare_claim_words(first, m));
	site_compare_link(p, (const struct digest *const[]){&first->row.digest, &m->row.digest}, 2, "Compare with #1");
	page_row_close(p);
}

static void put_trend(struct page *p, const struct whole *w)
{
	char name[SITE_NAME_MAX];
	if (!site_trend_name(p->site, w->v.m->c, name))
		return;
	page_row_open(p, "Trend");
	page_link(p, name, slice_of("This benchmark from publication to publication"));
	page_row_close(p);
}

static void put_measurement(struct page *p, const struct whole *w)
{
	char observed[WHEN_TEXT + 1];
	int64_t p20 = units(w, w->v.m->row.value_20), p80 = units(w, w->v.m->row.value_80);
	when_text(w->v.m->row.observed_ms, observed);
	page_section(p, "measurement", "Primary measurement");
	page_str(p, "<p class=\"figure\">");
	page_quantity(p, w->parts->metric, w->v.m->primary);
	page_printf(p, " <small>median %s", w->parts->metric == METRIC_LATENCY ? "latency" : "of peak memory");
	if (p20 >= 0 && p80 >= 0) {
		page_str(p, ", p20\xe2\x80\x93p80 ");
		page_quantity(p, w->parts->metric, p20);
		page_str(p, " to ");
		page_quantity(p, w->parts->metric, p80);
	}
	page_str(p, "</small></p>\n<dl>\n");
	put_rank(p, w);
	put_compare(p, w);
	page_printf(p, "<dt>Observed</dt><dd><time datetime=\"%s\">%s</time></dd>\n", observed, observed);
	put_source_values(p, w);
	put_trend(p, w);
	page_str(p, "</dl>\n</section>\n");
}

/* ---- identity, correctness, workload ---- */

static void put_digest_row(struct page *p, const char *name, const struct digest *d)
{
	page_row_open(p, name);
	page_digest(p, d);
	page_row_close(p);
}

static void put_identity(struct page *p, const struct whole *w)
{
	const json_t *revision = json_object_get(spec(w->implementation), "projectRevision"), *licence = json_object_get(spec(w->implementation), "licensing");
	const char *version = json_text_of(revision, "version"), *commit = json_text_of(revision, "commit");
	char cohort[SITE_NAME_MAX], key[DIGEST_TEXT + 1];
	page_section(p, "identity", "Identity");
	page_str(p, "<dl>\n");
	put_digest_row(p, "Run digest", &w->v.m->row.digest);
	site_list_name("providers", w->parts->provider, cohort);
	page_row_open(p, "Provider");
	page_link(p, cohort, w->parts->provider_title);
	page_row_close(p);
	page_row(p, "Provider code", w->parts->provider);
	put_digest_row(p, "Implementation", &w->parts->implementation);
	page_leaves(p, "Implementation callable", json_object_get(spec(w->implementation), "callable"));
	page_row_open(p, "Project");
	html_str(&p->out, json_text_of(spec(w->project), "name"));
	page_str(p, ", ");
	page_url(p, json_text_of(spec(w->project), "repository"));
	page_row_close(p);
	page_row_str(p, "Revision", *version ? version : *commit ? commit : "unknown");
	page_leaves(p, "Licensing", licence);
	page_row(p, "Operation code", w->parts->operation_slug);
	put_digest_row(p, "Operation", &w->parts->operation);
	put_digest_row(p, "Workload", &w->parts->workload);
	put_digest_row(p, "Protocol", &w->parts->protocol);
	put_digest_row(p, "Environment", &w->parts->environment);
	digest_text(&w->v.k->key, key);
	site_cohort_name(&w->v.k->key, cohort);
	page_row_open(p, "Comparison key");
	page_printf(p, "<code>%s</code> <button type=\"button\" class=\"copy\">Copy</button> ", key);
	page_link(p, cohort, slice_of("comparison group"));
	page_row_close(p);
	page_row_str(p, "Source", controlled(w) ? "controlled rerun" : site_text(p->site, "sourceSlug"));
	if (!controlled(w))
		page_row(p, "Source benchmark", w->parts->benchmark);
	page_row(p, "External id", slice_of_buf(&w->v.external_id));
	page_str(p, "</dl>\n</section>\n");
}

static void put_correctness(struct page *p, const struct whole *w, const json_t *manifest)
{
	const json_t *policy = json_object_get(spec(w->workload), "correctness"), *errors = json_object_get(spec(manifest), "correctness");
	page_section(p, "correctness", "Correctness");
	page_str(p, "<dl>\n");
	page_leaves(p, "Policy", policy);
	if (errors)
		page_leaves(p, "Result", errors);
	page_row_str(p, "Status", w->v.m->row.flags & RUN_FAILED ? "failed" : "passed");
	page_str(p, "</dl>\n");
	if (!errors && strcmp(json_text_of(policy, "comparator"), "not_asserted") == 0)
		page_str(p, "<p>Marked passed by the source; the correctness policy was not published.</p>\n");
	page_str(p, "</section>\n");
}

static void put_tensor(struct page *p, const char *role, const char *name, const json_t *tensor)
{
	struct buf shape = {0};
	struct err ignored = {0};
	json_canonical(json_object_get(tensor, "shape"), &shape, &ignored);
	page_printf(p, "<tr><td>%s</td><td>", role);
	html_str(&p->out, name);
	page_str(p, "</td><td>");
	html_str(&p->out, json_text_of(tensor, "dtype"));
	page_str(p, "</td><td><code>");
	page_text(p, slice_of_buf(&shape));
	page_str(p, "</code></td></tr>\n");
	buf_fini(&shape);
}

static void put_tensors(struct page *p, const struct whole *w)
{
	const char *name;
	json_t *value;
	size_t i;
	page_table(p, "Tensors", "Role|Name|dtype|Shape");
	json_object_foreach(json_object_get(spec(w->workload), "tensors"), name, value)
		put_tensor(p, "input", name, value);
	json_array_foreach(json_object_get(spec(w->operation), "outputs"), i, value)
		put_tensor(p, "output", json_text_of(value, "name"), json_object_get(value, "tensor"));
	page_table_end(p);
}

static void put_workload(struct page *p, const struct whole *w)
{
	const json_t *s = spec(w->workload), *scalars = json_object_get(s, "scalars"), *value;
	const char *name;
	page_section(p, "workload", "Workload");
	page_str(p, "<dl>\n");
	page_row(p, "Operation", w->parts->operation_title);
	page_row_str(p, "Family", json_text_of(spec(w->operation), "family"));
	page_row(p, "Case", w->parts->case_key);
	page_leaves(p, "Axis", json_object_get(s, "axes"));
	json_object_foreach((json_t *)scalars, name, value) {
		page_row_open(p, "Scalar");
		html_str(&p->out, name);
		page_str(p, " = ");
		put_number(p, json_number_value(json_object_get(value, "value")));
		page_printf(p, " (%s)", json_text_of(value, "dtype"));
		page_row_close(p);
	}
	page_row(p, "Swept in the source", w->parts->x_name);
	page_row(p, "Swept label", w->parts->x_label);
	page_row(p, "Swept value", w->parts->x_value);
	page_row_open(p, "Source configuration");
	page_str(p, "<code>");
	page_text(p, w->parts->config);
	page_str(p, "</code>");
	page_row_close(p);
	page_row_str(p, "Comparator", json_text_of(json_object_get(s, "correctness"), "comparator"));
	page_str(p, "</dl>\n");
	put_tensors(p, w);
	page_str(p, "</section>\n");
}

/* ---- measurements, protocol, environment, artifacts ---- */

static void put_measured(void *context, const char *metric, const char *statistic, const json_t *value, const char *unit)
{
	struct page *p = context;
	page_str(p, "<tr><td>");
	html_str(&p->out, metric);
	page_str(p, "</td><td>");
	html_str(&p->out, statistic);
	page_str(p, "</td><td class=\"n\">");
	put_number(p, json_number_value(value));
	page_str(p, "</td><td>");
	html_str(&p->out, unit);
	page_str(p, "</td></tr>\n");
}

static void put_measurements(struct page *p, const json_t *manifest)
{
	page_section(p, "measurements", "Measurements");
	page_table(p, "All that was measured, with units", "Metric|Statistic|#Value|Unit");
	whole_measurements(manifest, put_measured, p);
	page_table_end(p);
	page_str(p, "</section>\n");
}

static void put_tree(struct page *p, const char *id, const char *title, const json_t *body)
{
	page_section(p, id, title);
	page_str(p, "<dl>\n");
	page_leaves(p, "", spec(body));
	page_str(p, "</dl>\n</section>\n");
}

static void put_artifacts(struct page *p, const struct whole *w, const json_t *manifest)
{
	const json_t *samples = json_object_get(json_object_get(spec(manifest), "timing"), "rawSamples");
	const char *digest = json_text_of(samples, "digest");
	struct digest d;
	page_section(p, "artifacts", "Artifacts");
	if (!digest_parse(digest, strlen(digest), &d)) {
		page_str(p, "<p>No artifacts published with this run.</p>\n</section>\n");
		return;
	}
	struct buf path = {0};
	struct stat st;
	buf_printf(&path, "%s/samples/%s.json.zst", w->c->st.directory, digest + 7);
	page_str(p, "<dl>\n");
	put_digest_row(p, "Raw samples", &d);
	page_row_str(p, "Named", json_text_of(samples, "uri"));
	page_row_open(p, "Size");
	if (stat(path.data, &st) == 0)
		page_printf(p, "%lld bytes, compressed with zstd", (long long)st.st_size);
	else
		page_str(p, "not kept here");
	page_row_close(p);
	page_str(p, "</dl>\n</section>\n");
	buf_fini(&path);
}

/* ---- manifest, citation, footer ---- */

static int put_manifest(struct page *p, const struct whole *w, const struct buf *body)
{
	struct buf text = {0};
	buf_str(&text, "{\"environment\":");
	json_canonical(w->environment, &text, w->c->err);
	buf_str(&text, ",\"protocol\":");
	json_canonical(w->protocol, &text, w->c->err);
	buf_printf(&text, ",\"run\":%s}", body->data);
	page_section(p, "manifest", "Canonical manifest");
	page_str(p, "<details><summary>Run, protocol and environment as canonical JSON</summary>\n<pre>");
	page_text(p, slice_of_buf(&text));
	page_str(p, "</pre></details>\n</section>\n");
	buf_fini(&text);
	return w->c->err->code ? -1 : 0;
}

static void put_permalink(struct buf *out, const struct page *p, const char *name)
{
	const char *base = site_text(p->site, "base");
	buf_printf(out, "%s%s%s", base, *base ? "/" : "", name);
}

/* The report template with its two places filled. */
static void put_report_link(struct page *p, const struct whole *w, const char *permalink)
{
	struct buf subject = {0}, body = {0}, url = {0};
	char digest[DIGEST_TEXT + 1];
	digest_text(&w->v.m->row.digest, digest);
	buf_printf(&subject, "Record %.19s", digest);
	buf_printf(&body, "Run: %s\nExternal id: %s\nPage: %s\n\nWhat is wrong: ", digest, w->v.external_id.data, permalink);
	for (const char *at = site_text(p->site, "report"); *at; at++)
		if (strncmp(at, "{subject}", 9) == 0) {
			html_percent(&url, subject.data);
			at += 8;
		} else if (strncmp(at, "{body}", 6) == 0) {
			html_percent(&url, body.data);
			at += 5;
		} else {
			buf_char(&url, *at);
		}
	page_str(p, "<p><a href=\"");
	html_text(&p->out, slice_of_buf(&url));
	page_str(p, "\">Report an issue with this record</a></p>\n");
	buf_fini(&subject);
	buf_fini(&body);
	buf_fini(&url);
}

static void put_cite(struct page *p, const struct whole *w, const char *name)
{
	struct buf permalink = {0};
	char digest[DIGEST_TEXT + 1];
	digest_text(&w->v.m->row.digest, digest);
	put_permalink(&permalink, p, name);
	page_section(p, "cite", "Cite this record");
	page_str(p, "<p>");
	page_text(p, w->parts->operation_title);
	page_str(p, " \xc2\xb7 ");
	page_text(p, w->parts->provider_title);
	page_str(p, ", ");
	page_text(p, w->parts->gpu);
	page_str(p, ", ");
	page_text(p, w->parts->workload_label);
	page_printf(p, ". Run %s. ", digest);
	html_str(&p->out, site_text(p->site, "title"));
	page_str(p, ", ");
	page_text(p, slice_of_buf(&permalink));
	page_str(p, ". Accessed <span data-today>on the day of reading</span>.</p>\n");
	put_report_link(p, w, permalink.data);
	page_str(p, "</section>\n");
	buf_fini(&permalink);
}

static void put_footer(struct page *p, const struct whole *w)
{
	const json_t *first = w->carrier_count ? whole_publication(w->cache, w->carriers[0]) : NULL;
	char name[SITE_NAME_MAX];
	page_str(p, "<footer><p>Published ");
	html_str(&p->out, json_text_of(first, "publishedAt"));
	if (!controlled(w)) {
		page_str(p, ". Source: <a href=\"");
		html_str(&p->out, site_text(p->site, "sourceUrl"));
		page_str(p, "\">");
		html_str(&p->out, site_text(p->site, "source"));
		page_str(p, "</a>, licence ");
		html_str(&p->out, site_text(p->site, "licence"));
		page_str(p, ", ");
		html_str(&p->out, site_text(p->site, "holder"));
	}
	page_str(p, ". ");
	site_list_name("operations", w->parts->operation_slug, name);
	struct buf all = {0};
	buf_printf(&all, "All results for %.*s", (int)w->parts->operation_title.len, w->parts->operation_title.data);
	page_link(p, name, slice_of_buf(&all));
	page_str(p, ".</p></footer>\n");
	buf_fini(&all);
}

static int write_json(struct site *s, struct whole *w, const char *page_name)
{
	struct buf text = {0}, name = {0};
	json_t *root = whole_json(w);
	int rc = root ? json_canonical(root, &text, w->c->err) : -1;
	buf_char(&text, '\n');
	buf_printf(&name, "%.*s.json", (int)(strlen(page_name) - strlen(".html")), page_name);
	if (rc == 0)
		rc = site_write(s, name.data, &text);
	json_decref(root);
	buf_fini(&text);
	buf_fini(&name);
	return w->c->err->code ? -1 : rc;
}

static int write_page(struct page *p, struct whole *w, const char *name, const struct buf *body, const json_t *manifest)
{
	struct buf title = {0};
	buf_printf(&title, "%.*s \xc2\xb7 %.*s", (int)w->parts->operation_title.len, w->parts->operation_title.data, (int)w->parts->provider_title.len,
		   w->parts->provider_title.data);
	page_begin(p, p->site, "../../", slice_of_buf(&title));
	buf_fini(&title);
	put_head(p, w);
	site_put_flags(p, w->v.m->run);
	put_measurement(p, w);
	put_identity(p, w);
	put_correctness(p, w, manifest);
	put_workload(p, w);
	put_measurements(p, manifest);
	put_tree(p, "protocol", "Protocol", w->protocol);
	put_tree(p, "environment", "Environment", w->environment);
	put_artifacts(p, w, manifest);
	site_put_reruns(p, w);
	site_put_history(p, w);
	if (put_manifest(p, w, body))
		return -1;
	put_cite(p, w, name);
	put_footer(p, w);
	return page_end(p, name);
}

int site_run_page(struct page *p, struct whole *w, struct site *s, const struct cohort *k, const struct member *m)
{
	struct buf body = {0};
	char name[SITE_NAME_MAX];
	json_t *manifest = NULL;
	p->site = s;
	site_run_name(&m->row.digest, name);
	if (whole_load(w, s->cache, k, m) == 0 && catalog_body(s->c, &m->row, &body) == 0)
		manifest = json_load_text(body.data, body.len, name, s->c->err);
	int rc = manifest && write_page(p, w, name, &body, manifest) == 0 ? write_json(s, w, name) : -1;
	json_decref(manifest);
	buf_fini(&body);
	return rc;
}
