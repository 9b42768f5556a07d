#include "store/list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"
#include "core/when.h"
#include "store/lineage.h"
#include "store/plot.h"

bool list_format_parse(const char *text, enum list_format *out)
{
	static const char *const names[] = {"table", "tsv", "csv", "json", "jsonl"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], text) == 0) {
			*out = (enum list_format)i;
			return true;
		}
	return false;
}

enum { COLUMNS_MAX = 48 };

static int parse_columns(const char *text, const struct column **out, size_t *count, struct err *e)
{
	*count = 0;
	while (*text) {
		size_t len = strcspn(text, ",");
		const struct column *column = view_column((struct slice){text, len});
		if (!column || *count == COLUMNS_MAX) {
			struct buf names = {0};
			for (size_t i = 0; i < view_column_count; i++)
				buf_printf(&names, "%s%s", i ? ", " : "", view_columns[i].name);
			err_set(e, ERR_USAGE, "no column %.*s; there are %s", (int)len, text, names.data);
			buf_fini(&names);
			return -1;
		}
		out[(*count)++] = column;
		text += len + (text[len] == ',');
	}
	return 0;
}

static void put_csv(struct buf *line, const struct buf *field)
{
	bool quote = field->len && (memchr(field->data, ',', field->len) || memchr(field->data, '"', field->len) ||
				    memchr(field->data, '\n', field->len) || memchr(field->data, '\r', field->len));
	if (!quote) {
		buf_add(line, field->data, field->len);
		return;
	}
	buf_char(line, '"');
	for (size_t i = 0; i < field->len; i++) {
		if (field->data[i] == '"')
			buf_char(line, '"');
		buf_char(line, field->data[i]);
	}
	buf_char(line, '"');
}

/* A tab or newline inside a field would break a TSV line. */
static void put_tsv(struct buf *line, const struct buf *field)
{
	for (size_t i = 0; i < field->len; i++)
		buf_char(line, (unsigned char)field->data[i] < 0x20 ? ' ' : field->data[i]);
}

static void put_fields(const struct view *v, const struct column **columns, size_t count, enum list_format format, struct buf *line)
{
	struct buf field = {0};
	for (size_t i = 0; i < count; i++) {
		buf_clear(&field);
		columns[i]->put(v, &field);
		if (i)
			buf_char(line, format == LIST_CSV ? ',' : '\t');
		if (format == LIST_CSV)
			put_csv(line, &field);
		else
			put_tsv(line, &field);
	}
	buf_char(line, '\n');
	buf_fini(&field);
}

static void put_table_row(const struct view *v, struct buf *line)
{
	struct buf median = {0};
	char rank[24] = "-";
	int64_t units = v->m->primary;
	if (units >= 0)
		view_quantity(v->m->c->parts.metric, units, &median);
	if (v->m->rank)
		snprintf(rank, sizeof rank, "%u/%zu", v->m->rank, v->k->ranked);
	char hex[DIGEST_HEX + 1];
	digest_hex(&v->m->row.digest, hex);
	/* a two-byte µ takes one column */
	int width = 10 + (median.data && strstr(median.data, "\xc2\xb5") ? 1 : 0);
	buf_printf(line, "%.12s  %6s  %*s  %s\n", hex, rank, width, median.data ? median.data : "-", v->external_id.data);
	buf_fini(&median);
}

static int put_item(const struct view *v, const struct column **columns, size_t count, enum list_format format, struct buf *line)
{
	if (format == LIST_TABLE)
		put_table_row(v, line);
	else if (format == LIST_TSV || format == LIST_CSV)
		put_fields(v, columns, count, format, line);
	else
		return view_json(v, line, v->catalog->err);
	return 0;
}

static int write_items(struct listing *l, const struct list_options *options, const struct column **columns, size_t column_count, FILE *out)
{
	struct view v = {0};
	struct buf line = {0};
	struct lineage lineage;
	uint64_t written = 0;
	int rc = options->withdrawn ? lineage_load(l->c, &lineage) : 0;
	for (size_t i = 0; i < l->count && rc == 0 && (options->limit == 0 || written < options->limit); i++) {
		buf_clear(&line);
		rc = listing_view(l, i, &v);
		if (rc == 0 && options->withdrawn && !lineage_withdrawn(&lineage, v.m))
			continue;
		if (options->format == LIST_JSON && written)
			buf_str(&line, ",\n");
		if (rc == 0)
			rc = put_item(&v, columns, column_count, options->format, &line);
		if (options->format == LIST_JSONL)
			buf_char(&line, '\n');
		written++;
		if (rc == 0 && fwrite(line.data, 1, line.len, out) != line.len)
			rc = err_errno(l->c->err, "standard output", "cannot write");
	}
	if (options->withdrawn)
		lineage_fini(&lineage);
	view_fini(&v);
	buf_fini(&line);
	return rc;
}

static void write_header(const struct list_options *options, const struct column **columns, size_t count, FILE *out)
{
	if (options->format == LIST_CSV)
		for (size_t i = 0; i < count; i++)
			fprintf(out, "%s%s", columns[i]->name, i + 1 < count ? "," : "\n");
	else if (options->format == LIST_JSON)
		fputs("[\n", out);
	else if (options->format == LIST_TABLE && isatty(fileno(out)))
		fputs("run             rank      median  external id\n", out);
}

int list_runs(struct catalog *c, const struct list_options *options, FILE *out)
{
	const struct column *columns[COLUMNS_MAX];
	struct listing l;
	size_t count;
	const char *names = options->columns ? options->columns : "external_id,digest,comparison_key,rank,cohort_size,median_ns";
	if (parse_columns(names, columns, &count, c->err))
		return -1;
	int rc = listing_load(c, &options->filter, options->sort, &l);
	if (rc == 0) {
		write_header(options, columns, count, out);
		rc = write_items(&l, options, columns, count, out);
	}
	if (rc == 0 && options->format == LIST_JSON)
		fputs("\n]\n", out);
	listing_fini(&l);
	return rc;
}

/* ---- one cohort ---- */

static int cohort_json(struct catalog *c, const struct cohort *k, FILE *out)
{
	struct buf text = {0};
	struct view v = {0};
	char key[DIGEST_TEXT + 1];
	digest_text(&k->key, key);
	buf_printf(&text, "{\"comparisonKey\":\"%s\",\"kernels\":%zu,\"ranked\":%zu,\"runs\":[", key, k->kernels, k->ranked);
	for (size_t i = 0; i < k->count; i++) {
		if (i)
			buf_char(&text, ',');
		if (view_fill(&v, c, k, &k->members[i]) || view_json(&v, &text, c->err))
			break;
	}
	buf_str(&text, "]}\n");
	fputs(text.data, out);
	view_fini(&v);
	buf_fini(&text);
	return c->err->code ? -1 : 0;
}

enum { BAR_MIN = 4, BAR_MAX = 30, BEFORE_BAR = 33, MEDIAN_AT = 10 }; /* columns */

/* What names leave of a line. */
static unsigned bar_width(const struct screen *on, const struct cohort *k)
{
	size_t taken = BEFORE_BAR;
	for (size_t i = 0; i < k->count; i++) {
		const struct case_parts *c = &k->members[i].c->parts;
		size_t name = c->provider_title.len + (k->kernels > 1 ? c->kernel.len + 2 : 0);
		taken = BEFORE_BAR + name > taken ? BEFORE_BAR + name : taken;
	}
	unsigned left = on->width > taken ? on->width - (unsigned)taken : 0;
	return left < BAR_MIN ? BAR_MIN : left < BAR_MAX ? left : BAR_MAX;
}

/* Rank, median, ratio to the first, a bar in `width` columns, and who it is. */
static void put_standing(const struct cohort *k, const struct member *m, unsigned width, bool ascii, struct buf *line)
{
	const struct case_parts *parts = &m->c->parts;
	struct buf text = {0};
	if (m->rank && k->kernels > 1)
		buf_printf(line, "%3u %3u%s", m->rank, m->kernel_rank, m->tied ? "=" : " ");
	else if (m->rank)
		buf_printf(line, "    %3u%s", m->rank, m->tied ? "=" : " ");
	else
		buf_str(line, "      - ");
	if (m->primary >= 0)
		view_quantity(parts->metric, m->primary, &text);
	plot_pad(line, text.data ? text.data : "-", -12);
	buf_clear(&text);
	if (m->rank && k->members[0].primary > 0) {
		buf_printf(line, "  %6.2fx  ", (double)m->primary / (double)k->members[0].primary);
		plot_bar((double)m->primary / (double)k->members[k->ranked - 1].primary, width, ascii, &text);
	} else {
		buf_printf(line, "  %7s  ", m->rank ? "" : unranked_code(m->unranked));
	}
	plot_pad(line, text.data ? text.data : "", (int)width);
	buf_printf(line, "  %.*s", (int)parts->provider_title.len, parts->provider_title.data);
	if (k->kernels > 1)
		buf_printf(line, ", %.*s", (int)parts->kernel.len, parts->kernel.data);
	buf_fini(&text);
}

/* What else the page of a group says of a run. */
static void put_details(const struct view *v, struct buf *line)
{
	const struct member *m = v->m;
	enum metric metric = m->c->parts.metric;
	int64_t p20 = run_units(&m->row, metric, m->row.value_20), p80 = run_units(&m->row, metric, m->row.value_80);
	struct slice version = view_label(v, "liger_version");
	char observed[WHEN_TEXT + 1];
	when_text(m->row.observed_ms, observed);
	if (p20 >= 0 && p80 >= 0) {
		view_quantity(metric, p20, line);
		buf_str(line, " to ");
		view_quantity(metric, p80, line);
	} else {
		buf_str(line, "no spread");
	}
	buf_printf(line, ", %.10s, %.*s%s%s", observed, (int)version.len, version.data, version.len ? ", " : "", view_evidence(v));
}

/* On a terminal two lines, the second with digits of the run that name it; else one, with the external id. */
static void put_member(const struct view *v, unsigned width, const struct screen *on)
{
	struct buf line = {0}, details = {0};
	char hex[DIGEST_HEX + 1];
	put_standing(v->k, v->m, width, on->ascii, &line);
	put_details(v, &details);
	digest_hex(&v->m->row.digest, hex);
	if (on->fitted) {
		screen_line(on, MEDIAN_AT, line.data);
		screen_printf(on, MEDIAN_AT, "%*s%s, %.12s", MEDIAN_AT, "", details.data, hex);
	} else {
		screen_printf(on, 0, "%s  %s  %s", line.data, details.data, v->external_id.data);
	}
	buf_fini(&line);
	buf_fini(&details);
}

static int cohort_text(struct catalog *c, const struct cohort *k, const struct screen *on)
{
	struct view v = {0};
	char key[DIGEST_TEXT + 1];
	const struct case_parts *parts = &k->members[0].c->parts;
	unsigned width = bar_width(on, k);
	digest_text(&k->key, key);
	screen_line(on, 0, key);
	screen_printf(on, 2, "%.*s \xc2\xb7 %.*s \xc2\xb7 %.*s \xc2\xb7 %s", (int)parts->operation_title.len, parts->operation_title.data,
		      (int)parts->mode.len, parts->mode.data, (int)parts->gpu.len, parts->gpu.data, metric_name(parts->metric));
	screen_printf(on, 2, "%.*s", (int)parts->workload_label.len, parts->workload_label.data);
	screen_printf(on, 2, "%zu runs, %zu ranked", k->count, k->ranked);
	if (k->kernels > 1)
		screen_printf(on, 2, "note: holds %zu kernels whose published contracts coincide; the second number ranks within the kernel", k->kernels);
	fputc('\n', on->out);
	for (size_t i = 0; i < k->count && view_fill(&v, c, k, &k->members[i]) == 0; i++)
		put_member(&v, width, on);
	view_fini(&v);
	return c->err->code ? -1 : 0;
}

int list_cohort(struct catalog *c, const struct digest *key, bool json, const struct screen *on)
{
	struct cohort k;
	int rc = cohort_load(c, key, &k);
	if (rc == 0 && k.count == 0)
		rc = err_set(c->err, ERR_NOTFOUND, "nothing was published under this comparison key");
	else if (rc == 0)
		rc = json ? cohort_json(c, &k, on->out) : cohort_text(c, &k, on);
	cohort_fini(&k);
	return rc;
}
