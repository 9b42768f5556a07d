#include "store/view.h"

#include <ctype.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/when.h"
#include "store/link.h"

int view_fill(struct view *v, struct catalog *c, const struct cohort *k, const struct member *m)
{
	v->catalog = c;
	v->m = m;
	v->k = k;
	v->labels = catalog_labels(c, m->row.labels);
	return c->err->code ? -1 : catalog_external_id(c, &m->row, &v->external_id);
}

void view_fini(struct view *v)
{
	buf_fini(&v->external_id);
}

const char *view_evidence(const struct view *v)
{
	return level_name(link_level(v->catalog, &v->m->row.digest));
}

/* Labels are canonical JSON objects of plain strings, so a member can be found by its text. */
struct slice view_label(const struct view *v, const char *name)
{
	char pattern[64];
	int len = snprintf(pattern, sizeof pattern, "\"%s\":\"", name);
	const char *at = memmem(v->labels.data, v->labels.len, pattern, (size_t)len);
	if (!at)
		return (struct slice){"", 0};
	at += len;
	const char *end = at, *stop = v->labels.data + v->labels.len;
	while (end < stop && *end != '"')
		end += *end == '\\' ? 2 : 1;
	return end < stop ? (struct slice){at, (size_t)(end - at)} : (struct slice){"", 0};
}

/* ---- columns ---- */

static void put_slice(struct buf *out, struct slice s)
{
	buf_add(out, s.data, s.len);
}

static void put_digest(struct buf *out, const struct digest *d)
{
	char text[DIGEST_TEXT + 1];
	digest_text(d, text);
	buf_add(out, text, DIGEST_TEXT);
}

static void put_units(const struct view *v, double value, enum metric wanted, struct buf *out)
{
	int64_t units = run_units(&v->m->row, v->m->c->parts.metric, value);
	if (units >= 0 && v->m->c->parts.metric == wanted)
		buf_i64(out, units);
}

/* A label's text itself. */
static void put_label(const struct view *v, const char *name, struct buf *out)
{
	struct slice text = view_label(v, name);
	struct buf quoted = {0};
	struct err ignored = {0};
	if (!text.len || !memchr(text.data, '\\', text.len)) {
		put_slice(out, text);
		return;
	}
	buf_printf(&quoted, "\"%.*s\"", (int)text.len, text.data);
	json_t *plain = json_load_text(quoted.data, quoted.len, name, &ignored);
	buf_add(out, json_string_value(plain), json_string_length(plain));
	json_decref(plain);
	buf_fini(&quoted);
}

#define PART(name, member) \
	static void name(const struct view *v, struct buf *out) { put_slice(out, v->m->c->parts.member); }
#define PART_DIGEST(name, member) \
	static void name(const struct view *v, struct buf *out) { put_digest(out, &v->m->c->parts.member); }
#define VALUE(name, member, metric) \
	static void name(const struct view *v, struct buf *out) { put_units(v, v->m->row.member, metric, out); }
#define LABEL(name, label) \
	static void name(const struct view *v, struct buf *out) { put_label(v, label, out); }
PART(column_kernel, kernel)
PART(column_mode, mode)
PART(column_provider, provider)
PART(column_gpu, gpu)
PART(column_dtype, dtype)
PART(column_workload_label, workload_label)
PART(column_operation_slug, operation_slug)
PART(column_x_name, x_name)
PART(column_x_value, x_value)
PART_DIGEST(column_operation, operation)
PART_DIGEST(column_workload, workload)
PART_DIGEST(column_implementation, implementation)
PART_DIGEST(column_protocol, protocol)
PART_DIGEST(column_environment, environment)
VALUE(column_median_ns, value_50, METRIC_LATENCY)
VALUE(column_p20_ns, value_20, METRIC_LATENCY)
VALUE(column_p80_ns, value_80, METRIC_LATENCY)
VALUE(column_median_bytes, value_50, METRIC_PEAK_MEMORY)
VALUE(column_p20_bytes, value_20, METRIC_PEAK_MEMORY)
VALUE(column_p80_bytes, value_80, METRIC_PEAK_MEMORY)
LABEL(column_version, "liger_version")
LABEL(column_commit, "upstream_commit")
LABEL(column_caveats, "caveats")
#undef PART
#undef PART_DIGEST
#undef VALUE
#undef LABEL

static void column_external_id(const struct view *v, struct buf *out)
{
	buf_add(out, v->external_id.data, v->external_id.len);
}

static void column_digest(const struct view *v, struct buf *out)
{
	put_digest(out, &v->m->row.digest);
}

static void column_comparison_key(const struct view *v, struct buf *out)
{
	put_digest(out, &v->k->key);
}

static void column_rank(const struct view *v, struct buf *out)
{
	if (v->m->rank)
		buf_i64(out, v->m->rank);
}

static void column_kernel_rank(const struct view *v, struct buf *out)
{
	if (v->m->rank && v->k->kernels > 1)
		buf_i64(out, v->m->kernel_rank);
}

static void column_cohort_size(const struct view *v, struct buf *out)
{
	buf_i64(out, (int64_t)v->k->ranked);
}

static void column_tied(const struct view *v, struct buf *out)
{
	buf_str(out, v->m->tied ? "true" : "false");
}

static void column_unranked(const struct view *v, struct buf *out)
{
	if (v->m->unranked != RANKED)
		buf_str(out, unranked_code(v->m->unranked));
}

static void column_evidence(const struct view *v, struct buf *out)
{
	buf_str(out, view_evidence(v));
}

static void column_status(const struct view *v, struct buf *out)
{
	buf_str(out, v->m->row.flags & RUN_FAILED ? "failed" : "passed");
}

static void column_metric(const struct view *v, struct buf *out)
{
	buf_str(out, metric_name(v->m->c->parts.metric));
}

static void column_observed_at(const struct view *v, struct buf *out)
{
	char text[WHEN_TEXT + 1];
	when_text(v->m->row.observed_ms, text);
	buf_add(out, text, WHEN_TEXT);
}

static void column_type(const struct view *v, struct buf *out)
{
	(void)v;
	buf_str(out, "run");
}

static void column_name(const struct view *v, struct buf *out)
{
	struct buf name = {0};
	catalog_run_name((struct slice){v->external_id.data, v->external_id.len}, &name);
	buf_add(out, name.data, name.len);
	buf_fini(&name);
}

static void column_title(const struct view *v, struct buf *out)
{
	const struct case_parts *c = &v->m->c->parts;
	put_slice(out, c->operation_title);
	buf_str(out, " \xc2\xb7 ");
	put_slice(out, c->provider);
	buf_str(out, " \xc2\xb7 ");
	put_slice(out, c->mode);
}

const struct column view_columns[] = {
	{"external_id", "externalId", COLUMN_TEXT, column_external_id},
	{"digest", "digest", COLUMN_TEXT, column_digest},
	{"comparison_key", "comparisonKey", COLUMN_TEXT, column_comparison_key},
	{"rank", "rank", COLUMN_NUMBER, column_rank},
	{"cohort_size", "cohortSize", COLUMN_NUMBER, column_cohort_size},
	{"tied", "tied", COLUMN_NUMBER, column_tied},
	{"kernel_rank", "kernelRank", COLUMN_NUMBER, column_kernel_rank},
	{"unranked", "unranked", COLUMN_TEXT, column_unranked},
	{"evidence", "evidence", COLUMN_TEXT, column_evidence},
	{"status", "status", COLUMN_TEXT, column_status},
	{"metric", "metric", COLUMN_TEXT, column_metric},
	{"median_ns", "median", COLUMN_NUMBER, column_median_ns},
	{"p20_ns", "p20", COLUMN_NUMBER, column_p20_ns},
	{"p80_ns", "p80", COLUMN_NUMBER, column_p80_ns},
	{"median_bytes", "medianBytes", COLUMN_NUMBER, column_median_bytes},
	{"p20_bytes", "p20Bytes", COLUMN_NUMBER, column_p20_bytes},
	{"p80_bytes", "p80Bytes", COLUMN_NUMBER, column_p80_bytes},
	{"kernel", "kernel", COLUMN_TEXT, column_kernel},
	{"mode", "mode", COLUMN_TEXT, column_mode},
	{"provider", "provider", COLUMN_TEXT, column_provider},
	{"gpu", "gpu", COLUMN_TEXT, column_gpu},
	{"dtype", "dtype", COLUMN_TEXT, column_dtype},
	{"workload_label", "workloadLabel", COLUMN_TEXT, column_workload_label},
	{"observed_at", "observedAt", COLUMN_TEXT, column_observed_at},
	{"liger_version", "ligerVersion", COLUMN_TEXT, column_version},
	{"upstream_commit", "upstreamCommit", COLUMN_TEXT, column_commit},
	{"caveats", "caveats", COLUMN_TEXT, column_caveats},
	{"name", "name", COLUMN_TEXT, column_name},
	{"title", "title", COLUMN_TEXT, column_title},
	{"type", "type", COLUMN_TEXT, column_type},
	{"operation_slug", "operationSlug", COLUMN_TEXT, column_operation_slug},
	{"x_name", "xName", COLUMN_TEXT, column_x_name},
	{"x_value", "xValue", COLUMN_TEXT, column_x_value},
	{"operation", "operation", COLUMN_TEXT, column_operation},
	{"workload", "workload", COLUMN_TEXT, column_workload},
	{"implementation", "implementation", COLUMN_TEXT, column_implementation},
	{"protocol", "protocol", COLUMN_TEXT, column_protocol},
	{"environment", "environment", COLUMN_TEXT, column_environment},
};
const size_t view_column_count = sizeof view_columns / sizeof *view_columns;

const struct column *view_column(struct slice name)
{
	for (size_t i = 0; i < view_column_count; i++)
		if (slice_eq(name, view_columns[i].name))
			return &view_columns[i];
	return NULL;
}

/* Names in UTF-16 order: the columns sorted once by their JSON name. */
static const struct column *const *sorted_columns(void)
{
	static const struct column *sorted[sizeof view_columns / sizeof *view_columns];
	if (sorted[0])
		return sorted;
	for (size_t i = 0; i < view_column_count; i++) {
		size_t at = i;
		for (; at > 0 && strcmp(sorted[at - 1]->json, view_columns[i].json) > 0; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = &view_columns[i];
	}
	return sorted;
}

int view_json(const struct view *v, struct buf *out, struct err *e)
{
	const struct column *const *columns = sorted_columns();
	struct buf text = {0};
	bool labels_done = false;
	buf_char(out, '{');
	for (size_t i = 0; i <= view_column_count; i++) {
		if (!labels_done && (i == view_column_count || strcmp(columns[i]->json, "labels") > 0)) {
			if (i)
				buf_char(out, ',');
			buf_str(out, "\"labels\":");
			buf_add(out, v->labels.data, v->labels.len);
			labels_done = true;
		}
		if (i == view_column_count)
			break;
		buf_clear(&text);
		columns[i]->put(v, &text);
		if (text.len == 0)
			continue;
		if (out->data[out->len - 1] != '{')
			buf_char(out, ',');
		json_put_str(out, columns[i]->json);
		buf_char(out, ':');
		if (columns[i]->type == COLUMN_NUMBER)
			buf_add(out, text.data, text.len);
		else
			json_put_string(out, text.data, text.len);
	}
	buf_char(out, '}');
	buf_fini(&text);
	return e->code ? -1 : 0;
}

/* ---- quantities ---- */

void view_quantity(enum metric m, int64_t value, struct buf *out)
{
	static const struct {
		enum metric m;
		double below; /* in stored units */
		double unit;
		const char *name;
	} steps[] = {
		{METRIC_LATENCY, 1e3, 1, "ns"},
		{METRIC_LATENCY, 1e6, 1e3, "\xc2\xb5s"},
		{METRIC_LATENCY, 1e9, 1e6, "ms"},
		{METRIC_LATENCY, 1e300, 1e9, "s"},
		{METRIC_PEAK_MEMORY, 1024, 1, "B"},
		{METRIC_PEAK_MEMORY, 1048576, 1024, "KiB"},
		{METRIC_PEAK_MEMORY, 1073741824, 1048576, "MiB"},
		{METRIC_PEAK_MEMORY, 1e300, 1073741824, "GiB"},
	};
	size_t i = 0;
	while (steps[i].m != m || (double)value >= steps[i].below)
		i++;
	double shown = (double)value / steps[i].unit;
	if (steps[i].unit == 1)
		buf_printf(out, "%lld %s", (long long)value, steps[i].name);
	else
		buf_printf(out, shown < 10 ? "%.2f %s" : "%.1f %s", shown, steps[i].name);
}

/* ---- filters and order ---- */

static bool matches(const char *wanted, struct slice text)
{
	return !wanted || slice_eq(text, wanted);
}

static bool matches_gpu(const char *wanted, struct slice gpu)
{
	struct buf kebab = {0};
	if (matches(wanted, gpu))
		return true;
	text_kebab(gpu, &kebab);
	bool same = strcmp(kebab.data, wanted) == 0;
	buf_fini(&kebab);
	return same;
}

bool filter_match(const struct filter *f, const struct member *m)
{
	const struct case_parts *c = &m->c->parts;
	if ((f->latency || f->memory) && !(c->metric == METRIC_LATENCY ? f->latency : f->memory))
		return false;
	return matches(f->kernel, c->kernel) && matches(f->mode, c->mode) && matches(f->provider, c->provider) && matches(f->dtype, c->dtype) &&
	       matches_gpu(f->gpu, c->gpu) && m->row.observed_ms >= f->since_ms;
}

static uint64_t take_number(struct slice *s)
{
	uint64_t value = 0;
	while (s->len && s->data[0] >= '0' && s->data[0] <= '9') {
		value = value < UINT64_MAX / 16 ? value * 10 + (uint64_t)(s->data[0] - '0') : value;
		s->data++;
		s->len--;
	}
	return value;
}

static struct slice take_word(struct slice *s)
{
	struct slice word = {s->data, 0};
	while (s->len && (s->data[0] < '0' || s->data[0] > '9')) {
		s->data++;
		s->len--;
		word.len++;
	}
	return word;
}

/* How a word between numbers sorts: dev, then a, b, rc, then nothing (the release), then anything that continues it. */
static int word_class(struct slice word)
{
	while (word.len && strchr(".-_+", word.data[0])) {
		word.data++;
		word.len--;
	}
	if (word.len >= 3 && memcmp(word.data, "dev", 3) == 0)
		return -4;
	if (word.len && word.data[0] == 'a')
		return -3;
	if (word.len && word.data[0] == 'b')
		return -2;
	if (word.len && word.data[0] == 'r')
		return -1;
	return 0;
}

int view_compare_versions(struct slice a, struct slice b)
{
	while (a.len || b.len) {
		uint64_t x = take_number(&a), y = take_number(&b);
		if (x != y)
			return x < y ? -1 : 1;
		struct slice word_a = take_word(&a), word_b = take_word(&b);
		int class_a = word_class(word_a), class_b = word_class(word_b);
		if (class_a != class_b)
			return class_a < class_b ? -1 : 1;
		if ((word_a.len == 0) != (word_b.len == 0))
			return word_a.len == 0 ? -1 : 1;
	}
	return 0;
}
