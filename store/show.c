#include "store/show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/when.h"
#include "store/correction.h"
#include "store/link.h"
#include "store/whole.h"

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

static void line(FILE *out, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void line(FILE *out, const char *name, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(out, "  %-16s ", name);
	vfprintf(out, format, args);
	fputc('\n', out);
	va_end(args);
}

static void slice_line(FILE *out, const char *name, struct slice s)
{
	line(out, name, "%.*s", (int)s.len, s.data);
}

static void digest_line(FILE *out, const char *name, const struct digest *d)
{
	char text[DIGEST_TEXT + 1];
	digest_text(d, text);
	line(out, name, "%s", text);
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

static void show_head(struct whole *w, FILE *out)
{
	const struct case_parts *c = w->parts;
	fprintf(out, "%.*s\n", (int)w->v.external_id.len, w->v.external_id.data);
	fprintf(out, "%.*s \xc2\xb7 %.*s \xc2\xb7 %.*s\n", (int)c->operation_title.len, c->operation_title.data, (int)c->provider.len, c->provider.data,
		(int)c->mode.len, c->mode.data);
	fprintf(out, "%.*s\n\n", (int)c->workload_label.len, c->workload_label.data);
	line(out, "status", "%s", w->v.m->row.flags & RUN_FAILED ? "failed" : "passed");
	line(out, "evidence", "%s", view_evidence(&w->v));
	digest_line(out, "run", &w->v.m->row.digest);
}

static void quantity_line(struct whole *w, FILE *out, const char *name, double value)
{
	struct buf text = {0};
	int64_t units = run_units(&w->v.m->row, w->parts->metric, value);
	const char *unit = w->parts->metric == METRIC_LATENCY ? "ns" : "bytes";
	if (units >= 0) {
		view_quantity(w->parts->metric, units, &text);
		line(out, name, "%-12s %lld %s", text.data, (long long)units, unit);
	} else {
		line(out, name, "not published");
	}
	buf_fini(&text);
}

static void show_source_values(struct whole *w, FILE *out)
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
	line(out, "as published", "%s_20 %s \xc2\xb7 %s_50 %s \xc2\xb7 %s_80 %s", unit, p20, unit, p50, unit, p80);
}

static void show_measurement(struct whole *w, FILE *out)
{
	char observed[WHEN_TEXT + 1];
	when_text(w->v.m->row.observed_ms, observed);
	fprintf(out, "\nMeasurement (%s)\n", metric_name(w->parts->metric));
	quantity_line(w, out, "median", w->v.m->row.value_50);
	quantity_line(w, out, "p20", w->v.m->row.value_20);
	quantity_line(w, out, "p80", w->v.m->row.value_80);
	show_source_values(w, out);
	line(out, "observed", "%s", observed);
}

static void show_rank(struct whole *w, FILE *out)
{
	const struct member *m = w->v.m;
	fprintf(out, "\nComparison\n");
	digest_line(out, "comparison key", &w->v.k->key);
	if (m->rank)
		line(out, "rank", "%u of %zu%s in its comparison group", m->rank, w->v.k->ranked, m->tied ? ", tied," : "");
	else
		line(out, "rank", "none: %s", unranked_code(m->unranked));
	line(out, "kind", "%s", m->row.flags & RUN_WHOLE ? "strict exact comparison" : "source-native comparison");
	if (w->v.k->kernels > 1) {
		line(out, "note", "the group holds %zu kernels whose published contracts coincide", w->v.k->kernels);
		if (m->rank)
			line(out, "within kernel", "rank %u", m->kernel_rank);
	}
	if (m->superseded) {
		struct run_row next;
		if (catalog_run(w->c, m->successor, &next) == 0)
			digest_line(out, "superseded by", &next.digest);
	}
}

static double number_at(const json_t *o, const char *name)
{
	return json_number_value(json_object_get(o, name));
}

static void show_times(const json_t *link, FILE *out)
{
	const json_t *device = json_object_get(link, "t_dev_ns"), *source = json_object_get(link, "t_src_ns"), *floor = json_object_get(link, "floor");
	if (!device)
		return;
	line(out, "", "device time %.0f ns (p20 %.0f, p80 %.0f, %lld samples), source protocol %.0f ns, host %.0f ns, rho %.2f", number_at(device, "median"),
	     number_at(device, "p20"), number_at(device, "p80"), (long long)json_integer_value(json_object_get(device, "samples")),
	     number_at(source, "median"), number_at(link, "h_ns"), number_at(link, "rho"));
	if (number_at(floor, "bytes") > 0)
		line(out, "", "%.0f bytes, %.0f flops at least; %.0f GB/s achieved, %.0f %% of measured copy bandwidth", number_at(floor, "bytes"),
		     number_at(floor, "flops"), number_at(floor, "gbps"), 100 * number_at(floor, "copy_share"));
}

/* What reruns say of this record, or what this rerun says of another. */
static void show_reruns(struct whole *w, FILE *out)
{
	char run[DIGEST_TEXT + 1];
	size_t i;
	json_t *link, *links = link_of(w->c, &w->v.m->row.digest);
	digest_text(&w->v.m->row.digest, run);
	const char *verdict = link_verdict(links, run);
	if (json_array_size(links))
		fprintf(out, "\nReruns\n");
	if (verdict)
		line(out, "verdict", "%s", verdict);
	json_array_foreach(links, i, link) {
		bool subject = strcmp(text_at(link, "subject"), run) == 0;
		line(out, subject ? "rerun" : "rerun of", "%s", text_at(link, subject ? "rerun" : "subject"));
		line(out, "", "%s runner, %s, %s class, %s by %s, batch %s", text_at(link, "runner"), text_at(link, "status"), text_at(link, "class"),
		     text_at(link, "verdict"), text_at(link, "policy"), text_at(link, "batch"));
		show_times(link, out);
	}
	json_decref(links);
}

/* What people have signed about this record. */
static void show_corrections(struct whole *w, FILE *out)
{
	size_t i;
	json_t *entry, *corrections = correction_of(w->c, &w->v.m->row.digest);
	if (json_array_size(corrections))
		fprintf(out, "\nCorrections and notes\n");
	json_array_foreach(corrections, i, entry) {
		const char *words = json_text_of(entry, *json_text_of(entry, "text") ? "text" : "reason"), *code = json_text_of(entry, "code");
		const char *type = json_text_of(entry, "type");
		struct buf text = {0};
		text_put_printable(&text, words, strlen(words));
		line(out, strcmp(type, "retract") == 0 ? "retracted" : type, "%s%s%s%s", code, *code ? ": " : "", text.data ? text.data : "",
		     json_is_true(json_object_get(entry, "undone")) ? " (undone)" : "");
		line(out, "", "entry %.15s, %.10s, key %.16s%s%.15s", json_text_of(entry, "id") + strlen("sha256:"), json_text_of(entry, "at"), json_text_of(entry, "key"),
		     *json_text_of(entry, "entry") ? ", of entry " : "",
		     *json_text_of(entry, "entry") ? json_text_of(entry, "entry") + strlen("sha256:") : "");
		buf_fini(&text);
	}
	json_decref(corrections);
}

static void show_identity(struct whole *w, FILE *out)
{
	const json_t *revision = json_object_get(spec(w->implementation), "projectRevision"), *licence = json_object_get(spec(w->implementation), "licensing");
	const char *version = json_string_value(json_object_get(revision, "version")), *commit = json_string_value(json_object_get(revision, "commit"));
	fprintf(out, "\nIdentity\n");
	digest_line(out, "implementation", &w->parts->implementation);
	slice_line(out, "provider", w->parts->provider_title);
	line(out, "project", "%s (%s)", text_at(spec(w->project), "name"), text_at(spec(w->project), "repository"));
	line(out, "revision", "%s", version ? version : commit ? commit : "unknown");
	line(out, "language", "%s", text_at(json_object_get(spec(w->implementation), "callable"), "language"));
	line(out, "licence", "declared %s, concluded %s", text_at(licence, "declared"), text_at(licence, "concluded"));
	digest_line(out, "operation", &w->parts->operation);
	digest_line(out, "workload", &w->parts->workload);
	digest_line(out, "protocol", &w->parts->protocol);
	digest_line(out, "environment", &w->parts->environment);
}

static void put_shape(const json_t *tensor, struct buf *out)
{
	size_t i;
	json_t *size;
	buf_printf(out, "%s [", text_at(tensor, "dtype"));
	json_array_foreach(json_object_get(tensor, "shape"), i, size)
		buf_printf(out, "%s%lld", i ? ", " : "", (long long)json_integer_value(size));
	buf_str(out, "]");
}

static void show_workload(struct whole *w, FILE *out)
{
	const json_t *s = spec(w->workload);
	struct buf text = {0};
	const char *name;
	json_t *value;
	fprintf(out, "\nWorkload\n");
	line(out, "operation", "%.*s (%.*s)", (int)w->parts->operation_title.len, w->parts->operation_title.data,
	     (int)w->parts->operation_slug.len, w->parts->operation_slug.data);
	line(out, "case", "%.*s", (int)w->parts->case_key.len, w->parts->case_key.data);
	json_object_foreach(json_object_get(s, "axes"), name, value)
		line(out, "axis", "%s = %lld", name, (long long)json_integer_value(value));
	json_object_foreach(json_object_get(s, "tensors"), name, value) {
		buf_clear(&text);
		put_shape(value, &text);
		line(out, "tensor", "%s %s", name, text.data);
	}
	json_object_foreach(json_object_get(s, "scalars"), name, value) {
		buf_clear(&text);
		json_put_number(&text, json_number_value(json_object_get(value, "value")));
		line(out, "scalar", "%s = %s (%s)", name, text.data, text_at(value, "dtype"));
	}
	line(out, "correctness", "%s", text_at(json_object_get(s, "correctness"), "comparator"));
	if (strcmp(text_at(json_object_get(s, "correctness"), "comparator"), "not_asserted") == 0)
		line(out, "", "marked passed by the source; the correctness policy was not published");
	buf_fini(&text);
}

static void show_protocol(struct whole *w, FILE *out)
{
	const json_t *s = spec(w->protocol), *hardware = json_object_get(spec(w->environment), "hardware");
	fprintf(out, "\nProtocol and environment\n");
	line(out, "harness", "%s", text_at(json_object_get(s, "harness"), "name"));
	line(out, "timer", "%s", text_at(json_object_get(s, "measurement"), "timer"));
	line(out, "notes", "%s", text_at(json_object_get(s, "comparability"), "notes"));
	slice_line(out, "GPU", w->parts->gpu);
	line(out, "hardware", "%s %s, %s%s%s", text_at(hardware, "vendor"), text_at(hardware, "product"), text_at(hardware, "architecture"),
	     json_object_get(hardware, "formFactor") ? ", " : "", json_object_get(hardware, "formFactor") ? text_at(hardware, "formFactor") : "");
	line(out, "software", "%s", json_object_size(json_object_get(spec(w->environment), "software")) ? "see --json" : "not published");
}

static int show_source(struct whole *w, FILE *out)
{
	fprintf(out, "\nSource\n");
	line(out, "row", "kernel %.*s, %.*s = %.*s, config %.*s", (int)w->parts->kernel.len, w->parts->kernel.data, (int)w->parts->x_name.len,
	     w->parts->x_name.data, (int)w->parts->x_value.len, w->parts->x_value.data, (int)w->parts->config.len, w->parts->config.data);
	struct slice version = view_label(&w->v, "liger_version"), caveats = view_label(&w->v, "caveats");
	if (version.len)
		slice_line(out, "liger version", version);
	if (caveats.len)
		slice_line(out, "caveats", caveats);
	for (size_t i = 0; i < w->carrier_count; i++) {
		const json_t *p = whole_publication(w->cache, w->carriers[i]);
		if (!p)
			return -1;
		const char *commit = json_string_value(json_object_get(p, "commit")), *entry = json_string_value(json_object_get(p, "entry"));
		const char *url = json_string_value(json_object_get(json_object_get(p, "provenance"), "finalUrl"));
		line(out, i ? "" : "published in", "%s %s, snapshot %s", text_at(p, "channel"), entry ? entry : commit ? commit : "(no commit)",
		     text_at(p, "sha256"));
		if (url)
			line(out, "", "%s", url);
	}
	return 0;
}

int show_text(struct catalog *c, uint32_t run, FILE *out)
{
	struct shown s;
	int rc = load(&s, c, run);
	if (rc == 0) {
		show_head(&s.w, out);
		show_measurement(&s.w, out);
		show_rank(&s.w, out);
		show_corrections(&s.w, out);
		show_reruns(&s.w, out);
		show_identity(&s.w, out);
		show_workload(&s.w, out);
		show_protocol(&s.w, out);
		rc = show_source(&s.w, out);
	}
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
