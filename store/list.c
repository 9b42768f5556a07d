#include "store/list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"
#include "store/lineage.h"

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

static int cohort_text(struct catalog *c, const struct cohort *k, FILE *out)
{
	struct view v = {0};
	struct buf row = {0};
	char key[DIGEST_TEXT + 1];
	const struct case_parts *parts = &k->members[0].c->parts;
	digest_text(&k->key, key);
	fprintf(out, "%s\n%.*s \xc2\xb7 %.*s \xc2\xb7 %.*s \xc2\xb7 %s\n%.*s\n", key, (int)parts->operation_title.len, parts->operation_title.data,
		(int)parts->mode.len, parts->mode.data, (int)parts->gpu.len, parts->gpu.data, metric_name(parts->metric),
		(int)parts->workload_label.len, parts->workload_label.data);
	fprintf(out, "%zu runs, %zu ranked\n", k->count, k->ranked);
	if (k->kernels > 1)
		fprintf(out, "note: holds %zu kernels whose published contracts coincide; the second number ranks within the kernel\n", k->kernels);
	fputc('\n', out);
	for (size_t i = 0; i < k->count; i++) {
		const struct member *m = &k->members[i];
		if (view_fill(&v, c, k, m))
			break;
		buf_clear(&row);
		if (m->primary >= 0)
			view_quantity(parts->metric, m->primary, &row);
		fprintf(out, "%4s", "");
		if (m->rank && k->kernels > 1)
			fprintf(out, "%3u %3u%s", m->rank, m->kernel_rank, m->tied ? "=" : " ");
		else if (m->rank)
			fprintf(out, "%3u%s", m->rank, m->tied ? "=" : " ");
		else
			fprintf(out, "  - ");
		fprintf(out, "  %*s", 10 + (row.data && strstr(row.data, "\xc2\xb5") ? 1 : 0), row.data ? row.data : "-");
		if (m->rank && k->members[0].primary > 0)
			fprintf(out, "  %6.2fx", (double)m->primary / (double)k->members[0].primary);
		else
			fprintf(out, "  %7s", m->rank ? "" : unranked_code(m->unranked));
		fprintf(out, "  %s\n", v.external_id.data);
	}
	view_fini(&v);
	buf_fini(&row);
	return c->err->code ? -1 : 0;
}

int list_cohort(struct catalog *c, const struct digest *key, bool json, FILE *out)
{
	struct cohort k;
	int rc = cohort_load(c, key, &k);
	if (rc == 0 && k.count == 0)
		rc = err_set(c->err, ERR_NOTFOUND, "nothing was published under this comparison key");
	else if (rc == 0)
		rc = json ? cohort_json(c, &k, out) : cohort_text(c, &k, out);
	cohort_fini(&k);
	return rc;
}
