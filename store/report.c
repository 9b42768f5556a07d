#include "store/report_find.h"

#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/when.h"

enum {
	LINES = 10,
	KERNELS_MANY = 4, /* so many kernels that change in one drop are hardly a change of each */
};

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
		if (x == g || x->channel != g->channel || x->since->release != g->since->release || !report_same_pass(x->of, g->of))
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
	put_flags(r, "Impossible, outliers or flagged by hand: rerun", &r->reruns, "ki flags --code IMPOSSIBLE --code OUTLIER --code MANUAL", out);
	return r->c->err->code ? -1 : 0;
}

/* ---- JSON ---- */

static json_t *publication_json(const json_t *p)
{
	return json_pack("{s:I, s:s, s:s, s:s, s:I, s:I}", "id", json_whole_of(p, "id"), "channel", json_text_of(p, "channel"), "identity", catalog_identity(p),
			 "publishedAt", json_text_of(p, "publishedAt"), "newRuns", json_whole_of(p, "newRuns"), "newCases",
			 json_whole_of(p, "newCases"));
}

static json_t *group_json(struct catalog *c, const struct group *g)
{
	json_t *o = json_pack("{s:I, s:f, s:f}", "count", (json_int_t)g->count, "low", g->low, "high", g->high);
	json_set_slice(o, "kernel", g->of->kernel);
	json_set_slice(o, "mode", g->of->mode);
	json_set_slice(o, "provider", g->of->provider);
	json_set_slice(o, "gpu", g->of->gpu);
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

int report_print(struct catalog *c, const struct report_options *options, FILE *out)
{
	struct report r = {.c = c, .options = options};
	int rc = report_find(&r);
	bool quiet = r.runs == 0 && json_object_size(r.odd) == 0;
	if (rc == 0 && !quiet)
		rc = options->json ? put_json(&r, out) : put_text(&r, out);
	report_find_fini(&r);
	return rc;
}
