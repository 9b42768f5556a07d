#include "store/show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/when.h"
#include "store/compare.h"
#include "store/flag.h"
#include "store/leaf.h"
#include "store/plot.h"
#include "store/show_evidence.h"

/* A run, its cohort, and the cache that holds what it cites. */
struct shown {
	struct whole_cache *cache;
	struct cohort k;
	struct whole w;
};

static int load(struct shown *s, struct catalog *c, uint32_t run)
{
	struct run_row row;
	const struct catalog_case *of;
	*s = (struct shown){.cache = whole_cache_new(c)};
	if (catalog_run(c, run, &row) || !(of = catalog_case(c, row.case_id)) || cohort_load(c, &of->cohort, &s->k))
		return -1;
	const struct member *m = cohort_member(&s->k, run);
	if (!m)
		return err_set(c->err, ERR_CORRUPT, "run number %u is not in its own cohort; run `ki check`", run);
	return whole_load(&s->w, s->cache, &s->k, m);
}

static void unload(struct shown *s)
{
	whole_fini(&s->w);
	cohort_fini(&s->k);
	whole_cache_free(s->cache);
}

/* ---- text ---- */

static void slice_field(const struct screen *on, const char *name, struct slice s)
{
	screen_field(on, name, "%.*s", (int)s.len, s.data);
}

static void digest_field(const struct screen *on, const char *name, const struct digest *d)
{
	char text[DIGEST_TEXT + 1];
	digest_text(d, text);
	screen_field(on, name, "%s", text);
}

static const char *text_at(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "unknown";
}

static const json_t *spec(const json_t *body)
{
	return json_object_get(body, "spec");
}

enum { INTERVAL = 30, LEAF = 32 }; /* columns */

static void put_leaf(void *context, const char *name, struct slice text)
{
	screen_printf(context, LEAF, "  %-*s %.*s", LEAF - 3, name, (int)text.len, text.data);
}

/* All leaves of a JSON tree. */
static void put_leaves(const struct screen *on, const char *name, const json_t *value)
{
	struct screen context = *on;
	leaf_each(name, value, put_leaf, &context);
}

/* A command about the runs that share this one's kernel, pass, provider and GPU. */
static void put_command(struct whole *w, const struct screen *on, const char *name, const char *command)
{
	const struct case_parts *c = w->parts;
	struct buf gpu = {0};
	text_kebab(c->gpu, &gpu);
	screen_field(on, name, "%s %.*s --mode %.*s --provider %.*s --gpu %s", command, (int)c->kernel.len, c->kernel.data, (int)c->mode.len, c->mode.data,
		     (int)c->provider.len, c->provider.data, gpu.data);
	buf_fini(&gpu);
}

/* What the rules and people hold against the record, or why that is not known here. */
static int put_doubts(struct whole *w, const char *config, const struct screen *on)
{
	struct flags flags = {0};
	struct err held = {0}, *outer = w->c->err;
	w->c->err = w->c->t.err = &held;
	int rc = config ? flags_of_run(w->c, config, w->v.k, w->v.m, &flags) : 0;
	w->c->err = w->c->t.err = outer;
	if (!config || held.code == ERR_CONFIG)
		screen_field(on, "doubts", "unknown here: %s", config ? held.text : "no config");
	else if (rc)
		*outer = held;
	else if (flags.count == 0)
		screen_field(on, "doubts", "none by policy %s", flags.policy);
	for (size_t i = 0; i < flags.count && !held.code; i++)
		screen_field(on, i ? "" : "doubts", "%s: %s", flag_name(flags.items[i].code), flags.items[i].words);
	flags_fini(&flags);
	return outer->code ? -1 : 0;
}

static int put_head(struct whole *w, const char *config, const struct screen *on)
{
	const struct case_parts *c = w->parts;
	screen_line(on, 2, w->v.external_id.data);
	screen_printf(on, 2, "%.*s \xc2\xb7 %.*s \xc2\xb7 %.*s", (int)c->operation_title.len, c->operation_title.data, (int)c->provider.len, c->provider.data,
		      (int)c->mode.len, c->mode.data);
	screen_printf(on, 2, "%.*s", (int)c->workload_label.len, c->workload_label.data);
	fputc('\n', on->out);
	screen_field(on, "status", "%s", w->v.m->row.flags & RUN_FAILED ? "failed" : "passed");
	screen_field(on, "evidence", "%s", view_evidence(&w->v));
	digest_field(on, "run", &w->v.m->row.digest);
	return put_doubts(w, config, on);
}

/* ---- measurement and comparison ---- */

static int64_t units(const struct whole *w, double value)
{
	return run_units(&w->v.m->row, w->parts->metric, value);
}

static void put_quantity(struct whole *w, const struct screen *on, const char *name, double value)
{
	struct buf text = {0}, padded = {0};
	if (units(w, value) >= 0) {
		view_quantity(w->parts->metric, units(w, value), &text);
		plot_pad(&padded, text.data, 12);
		screen_field(on, name, "%s %lld %s", padded.data, (long long)units(w, value), w->parts->metric == METRIC_LATENCY ? "ns" : "bytes");
	} else {
		screen_field(on, name, "not published");
	}
	buf_fini(&text);
	buf_fini(&padded);
}

static void put_spread(struct whole *w, const struct screen *on)
{
	int64_t p20 = units(w, w->v.m->row.value_20), p80 = units(w, w->v.m->row.value_80), median = w->v.m->primary;
	struct buf drawn = {0};
	if (p20 < 0 || p80 < p20 || median <= 0)
		return;
	plot_interval((double)p20, (double)median, (double)p80, INTERVAL, on->ascii, &drawn);
	screen_field(on, "p20 to p80", "%s  %.2f %%", drawn.data, 100 * (double)(p80 - p20) / (double)median);
	buf_fini(&drawn);
}

static void put_source_values(struct whole *w, const struct screen *on)
{
	const struct run_row *row = &w->v.m->row;
	char p20[JSON_NUMBER_MAX] = "\xe2\x80\x94", p50[JSON_NUMBER_MAX], p80[JSON_NUMBER_MAX] = "\xe2\x80\x94";
	const char *unit = w->parts->metric == METRIC_LATENCY ? "ms" : "mib";
	if (row->flags & RUN_UNITS)
		return;
	json_number(row->value_50, p50);
	if (!isnan(row->value_20))
		json_number(row->value_20, p20);
	if (!isnan(row->value_80))
		json_number(row->value_80, p80);
	screen_field(on, "as published", "%s_20 %s \xc2\xb7 %s_50 %s \xc2\xb7 %s_80 %s", unit, p20, unit, p50, unit, p80);
}

static void put_measurement(struct whole *w, const struct screen *on)
{
	char observed[WHEN_TEXT + 1];
	when_text(w->v.m->row.observed_ms, observed);
	fputc('\n', on->out);
	screen_printf(on, 0, "Measurement (%s)", metric_name(w->parts->metric));
	put_quantity(w, on, "median", w->v.m->row.value_50);
	put_quantity(w, on, "p20", w->v.m->row.value_20);
	put_quantity(w, on, "p80", w->v.m->row.value_80);
	put_spread(w, on);
	put_source_values(w, on);
	screen_field(on, "observed", "%s", observed);
}

static void put_against_first(struct whole *w, const struct screen *on)
{
	const struct member *m = w->v.m, *first = w->v.k->members;
	char one[DIGEST_HEX + 1], other[DIGEST_HEX + 1];
	if (!w->v.k->ranked || first->run == m->run || m->primary < 0 || first->primary <= 0)
		return;
	digest_hex(&first->row.digest, one);
	digest_hex(&m->row.digest, other);
	screen_field(on, "against #1", "%.4gx its median, %.*s; %s", (double)m->primary / (double)first->primary, (int)first->c->parts.provider_title.len,
		     first->c->parts.provider_title.data, compare_claim_words(first, m));
	screen_field(on, "", "ki compare %.12s %.12s", one, other);
}

/* Runs of this case: its points over time. */
static size_t points_of(const struct whole *w)
{
	size_t points = 0;
	for (size_t i = 0; i < w->v.k->count; i++)
		points += w->v.k->members[i].c == w->v.m->c;
	return points;
}

static void put_comparison(struct whole *w, const struct screen *on)
{
	const struct member *m = w->v.m;
	screen_heading(on, "Comparison");
	digest_field(on, "comparison key", &w->v.k->key);
	if (m->rank)
		screen_field(on, "rank", "%u of %zu%s in its comparison group", m->rank, w->v.k->ranked, m->tied ? ", tied," : "");
	else
		screen_field(on, "rank", "none: %s", unranked_code(m->unranked));
	screen_field(on, "kind", "%s", m->row.flags & RUN_WHOLE ? "strict exact comparison" : "source-native comparison");
	if (w->v.k->kernels > 1) {
		screen_field(on, "note", "the group holds %zu kernels whose published contracts coincide", w->v.k->kernels);
		if (m->rank)
			screen_field(on, "within kernel", "rank %u", m->kernel_rank);
	}
	put_against_first(w, on);
	if (w->parts->metric == METRIC_LATENCY && points_of(w) > 1)
		put_command(w, on, "trend", "ki trend");
}

/* ---- what was run ---- */

static void put_identity(struct whole *w, const struct screen *on)
{
	const json_t *of = spec(w->implementation), *revision = json_object_get(of, "projectRevision");
	const char *version = json_string_value(json_object_get(revision, "version")), *commit = json_string_value(json_object_get(revision, "commit"));
	screen_heading(on, "Identity");
	digest_field(on, "implementation", &w->parts->implementation);
	slice_field(on, "provider", w->parts->provider_title);
	screen_field(on, "project", "%s (%s)", text_at(spec(w->project), "name"), text_at(spec(w->project), "repository"));
	screen_field(on, "revision", "%s", version ? version : commit ? commit : "unknown");
	put_leaves(on, "callable", json_object_get(of, "callable"));
	put_leaves(on, "licensing", json_object_get(of, "licensing"));
	digest_field(on, "operation", &w->parts->operation);
	digest_field(on, "workload", &w->parts->workload);
	digest_field(on, "protocol", &w->parts->protocol);
	digest_field(on, "environment", &w->parts->environment);
	if (w->v.m->row.flags & RUN_WHOLE)
		screen_field(on, "source", "controlled rerun");
	else
		slice_field(on, "source benchmark", w->parts->benchmark);
}

static void put_correctness(struct whole *w, const json_t *manifest, const struct screen *on)
{
	const json_t *policy = json_object_get(spec(w->workload), "correctness"), *result = json_object_get(spec(manifest), "correctness");
	screen_heading(on, "Correctness");
	put_leaves(on, "policy", policy);
	if (result)
		put_leaves(on, "result", result);
	else if (strcmp(json_text_of(policy, "comparator"), "not_asserted") == 0)
		screen_line(on, 2, "  Marked passed by the source; the correctness policy was not published.");
}

static void put_tensor(const struct screen *on, const char *role, const char *name, const json_t *tensor)
{
	struct buf shape = {0};
	size_t i;
	json_t *size;
	json_array_foreach(json_object_get(tensor, "shape"), i, size)
		buf_printf(&shape, "%s%lld", i ? ", " : "", (long long)json_integer_value(size));
	screen_field(on, role, "%s %s [%s]", name, text_at(tensor, "dtype"), shape.data ? shape.data : "");
	buf_fini(&shape);
}

static void put_workload(struct whole *w, const struct screen *on)
{
	const json_t *s = spec(w->workload);
	const char *name;
	json_t *value;
	size_t i;
	char number[JSON_NUMBER_MAX];
	screen_heading(on, "Workload");
	screen_field(on, "operation", "%.*s (%.*s), family %s", (int)w->parts->operation_title.len, w->parts->operation_title.data,
		     (int)w->parts->operation_slug.len, w->parts->operation_slug.data, text_at(spec(w->operation), "family"));
	slice_field(on, "case", w->parts->case_key);
	json_object_foreach(json_object_get(s, "axes"), name, value)
		screen_field(on, "axis", "%s = %lld", name, (long long)json_integer_value(value));
	json_object_foreach(json_object_get(s, "tensors"), name, value)
		put_tensor(on, "input", name, value);
	json_array_foreach(json_object_get(spec(w->operation), "outputs"), i, value)
		put_tensor(on, "output", json_text_of(value, "name"), json_object_get(value, "tensor"));
	json_object_foreach(json_object_get(s, "scalars"), name, value) {
		json_number(json_number_value(json_object_get(value, "value")), number);
		screen_field(on, "scalar", "%s = %s (%s)", name, number, text_at(value, "dtype"));
	}
	screen_field(on, "source row", "kernel %.*s, %.*s = %.*s, config %.*s", (int)w->parts->kernel.len, w->parts->kernel.data, (int)w->parts->x_name.len,
		     w->parts->x_name.data, (int)w->parts->x_value.len, w->parts->x_value.data, (int)w->parts->config.len, w->parts->config.data);
}

static void put_measured(void *on, const char *metric, const char *statistic, const json_t *value, const char *unit)
{
	char number[JSON_NUMBER_MAX];
	json_number(json_number_value(value), number);
	screen_field(on, metric, "%s %s %s", statistic, number, unit);
}

static void put_measurements(const json_t *manifest, const struct screen *on)
{
	struct screen context = *on;
	screen_heading(on, "Measurements");
	whole_measurements(manifest, put_measured, &context);
}

static void put_tree(const struct screen *on, const char *title, const json_t *body)
{
	screen_heading(on, title);
	put_leaves(on, "", spec(body));
}

/* The sections of the run's page on the site, in its order. */
static int put_all(struct whole *w, const json_t *manifest, const char *config, const struct screen *on)
{
	if (put_head(w, config, on))
		return -1;
	put_measurement(w, on);
	put_comparison(w, on);
	put_identity(w, on);
	put_correctness(w, manifest, on);
	put_workload(w, on);
	put_measurements(manifest, on);
	put_tree(on, "Protocol", w->protocol);
	put_tree(on, "Environment", w->environment);
	show_artifacts(w, manifest, on);
	show_reruns(w, on);
	if (show_history(w, on))
		return -1;
	return show_citation(w, config, on);
}

int show_text(struct catalog *c, uint32_t run, const char *config, const struct screen *on)
{
	struct shown s;
	struct buf body = {0};
	json_t *manifest = NULL;
	int rc = load(&s, c, run);
	if (rc == 0)
		rc = catalog_body(c, &s.w.v.m->row, &body);
	if (rc == 0)
		manifest = json_load_text(body.data, body.len, "manifest", c->err);
	rc = manifest ? put_all(&s.w, manifest, config, on) : -1;
	json_decref(manifest);
	buf_fini(&body);
	unload(&s);
	return rc;
}

int show_json(struct catalog *c, uint32_t run, FILE *out)
{
	struct shown s;
	int rc = load(&s, c, run);
	json_t *root = rc == 0 ? whole_json(&s.w) : NULL;
	rc = root ? json_put_line(root, out, c->err) : -1;
	json_decref(root);
	unload(&s);
	return c->err->code ? -1 : rc;
}

int show_object(struct catalog *c, const struct digest *d, FILE *out)
{
	struct buf text = {0};
	struct digest stored;
	uint32_t id;
	char name[DIGEST_TEXT + 1];
	int found = catalog_object_id(c, d, &id);
	digest_text(d, name);
	if (found == 1 && catalog_object(c, id, &stored, &text) == 0)
		fprintf(out, "%s\n", text.data);
	else if (found == 0)
		err_set(c->err, ERR_NOTFOUND, "%s: no such object", name);
	buf_fini(&text);
	return c->err->code ? -1 : 0;
}
