#include "normalize/csv.h"

#include <csv.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"

enum { BLOCK = 256 * 1024, FIELDS_MAX = 256 };
enum { ROW_NOT_BEGUN = 0 }; /* libcsv's pstate between records */

struct csv_reader {
	int fd;
	const char *name;
	struct csv_parser parser;
	struct buf raw;         /* bytes not yet done with; the current record starts at `record` */
	size_t record, next;    /* offsets in raw: start of the current record, first byte not parsed yet */
	size_t newline;         /* when known: offset of the first LF at or after `next`, SIZE_MAX for none in raw */
	bool newline_known, eof, started, finished;
	unsigned record_line, next_line;
	struct buf text;        /* the fields' bytes, each with a NUL */
	size_t offsets[FIELDS_MAX], lengths[FIELDS_MAX], count;
	struct slice fields[FIELDS_MAX];
	bool row_done;
};

struct csv_reader *csv_reader_new(int fd, const char *name)
{
	struct csv_reader *r = xcalloc(1, sizeof *r);
	r->fd = fd;
	r->name = name;
	r->record_line = r->next_line = 1;
	csv_init(&r->parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL);
	csv_set_blk_size(&r->parser, 1024);
	return r;
}

void csv_reader_free(struct csv_reader *r)
{
	if (!r)
		return;
	csv_free(&r->parser);
	buf_fini(&r->raw);
	buf_fini(&r->text);
	free(r);
}

/* Drops what lies before the current record and reads one more block. */
static int refill(struct csv_reader *r, struct err *e)
{
	if (r->record > 0) {
		memmove(r->raw.data, r->raw.data + r->record, r->raw.len - r->record);
		r->raw.len -= r->record;
		r->next -= r->record;
		r->record = 0;
	}
	r->newline_known = false;
	buf_reserve(&r->raw, BLOCK);
	ssize_t got;
	do
		got = read(r->fd, r->raw.data + r->raw.len, BLOCK);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_errno(e, r->name, "reading");
	r->eof = got == 0;
	r->raw.len += (size_t)got;
	if (!r->started && (r->raw.len >= 3 || r->eof || r->raw.data[0] != '\xef')) {
		r->started = true;
		if (r->raw.len >= 3 && memcmp(r->raw.data, "\xef\xbb\xbf", 3) == 0)
			r->record = r->next = 3;
	}
	return 0;
}

/* The end of the physical line at `next` (behind its terminator), or 0 when more bytes are needed to tell. */
static size_t line_end(struct csv_reader *r)
{
	const char *data = r->raw.data;
	if (!r->newline_known || (r->newline != SIZE_MAX && r->newline < r->next)) {
		const char *lf = r->next < r->raw.len ? memchr(data + r->next, '\n', r->raw.len - r->next) : NULL;
		r->newline = lf ? (size_t)(lf - data) : SIZE_MAX;
		r->newline_known = true;
	}
	size_t stop = r->newline == SIZE_MAX ? r->raw.len : r->newline + 1;
	const char *cr = stop > r->next ? memchr(data + r->next, '\r', stop - r->next) : NULL;
	if (cr) {
		size_t after = (size_t)(cr - data) + 1;
		if (after < r->raw.len)
			return data[after] == '\n' ? after + 1 : after;
		return r->eof ? after : 0;
	}
	if (r->newline != SIZE_MAX || (r->eof && r->raw.len > r->next))
		return stop;
	return 0;
}

static void on_field(void *text, size_t len, void *data)
{
	struct csv_reader *r = data;
	if (r->count == FIELDS_MAX) /* counted no further: the row is ragged in any case */
		return;
	buf_reserve(&r->text, len + 1);
	char *copy = r->text.data + r->text.len;
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	r->offsets[r->count] = r->text.len;
	r->lengths[r->count++] = len;
	r->text.len += len + 1;
}

static void on_row(int terminator, void *data)
{
	(void)terminator;
	((struct csv_reader *)data)->row_done = true;
}

/* Walks over record bytes [0, len) and stops where field `index` starts: its place, and true when it is quoted. `*line` is the
 * record's first line on entry. With index SIZE_MAX it runs to the end and gives the place of the field that holds the last
 * byte; with an index beyond the fields it gives the place behind the last byte. */
static bool find_field(const char *data, size_t len, size_t index, unsigned *line, unsigned *column)
{
	bool quoted = false, at_start = true, any_quote = false;
	size_t field = 0;
	unsigned l = *line, c = 1;
	for (size_t i = 0; i < len; i++) {
		char ch = data[i];
		if (at_start && ch != ' ' && ch != '\t') {
			*line = l;
			*column = c;
			if (field == index)
				return ch == '"';
			at_start = false;
			any_quote = quoted = ch == '"';
		} else if (ch == '"') {
			quoted = !quoted;
		}
		c++;
		if (ch == '\n' || (ch == '\r' && (i + 1 == len || data[i + 1] != '\n'))) {
			l++;
			c = 1;
		}
		if (!quoted && ch == ',') {
			field++;
			at_start = true;
		}
	}
	if (index != SIZE_MAX) {
		*line = l;
		*column = c;
	}
	return any_quote;
}

void csv_position(const struct csv_reader *r, size_t index, unsigned *line, unsigned *column)
{
	*line = r->record_line;
	*column = 1;
	find_field(r->raw.data + r->record, r->next - r->record, index, line, column);
}

/* libcsv stopped at offset `at` of raw (SIZE_MAX: at the end of the file). */
static int bad_quote(struct csv_reader *r, size_t at, struct err *e)
{
	unsigned line = r->record_line, column = 1;
	size_t end = at == SIZE_MAX ? r->raw.len : at;
	bool quoted = find_field(r->raw.data + r->record, end - r->record, SIZE_MAX, &line, &column);
	r->finished = true;
	if (at == SIZE_MAX)
		return err_at(e, ERR_DATA, r->name, line, column, "the quote that opens here is never closed: the file is cut here");
	if (quoted)
		return err_at(e, ERR_DATA, r->name, line, column,
			      "the quoted field that opens here does not end before a comma or a line end: the file is cut here");
	line = r->record_line;
	find_field(r->raw.data + r->record, end - r->record, SIZE_MAX - 1, &line, &column);
	return err_at(e, ERR_DATA, r->name, line, column, "a quote inside a field without quotes: the file is cut here");
}

static bool is_ascii(const char *data, size_t len)
{
	uint64_t all = 0, word;
	for (; len >= sizeof word; data += sizeof word, len -= sizeof word) {
		memcpy(&word, data, sizeof word);
		all |= word;
	}
	for (; len; data++, len--)
		all |= (uint64_t)(unsigned char)*data << 56 | (unsigned char)*data;
	return (all & UINT64_C(0x8080808080808080)) == 0;
}

static void finish_row(struct csv_reader *r, struct csv_record *out)
{
	for (size_t i = 0; i < r->count; i++)
		r->fields[i] = (struct slice){r->text.data + r->offsets[i], r->lengths[i]};
	out->line = r->record_line;
	out->count = r->count;
	out->fields = r->fields;
	out->ascii = is_ascii(r->raw.data + r->record, r->next - r->record);
}

/* Hands one physical line to libcsv. 1: parsed, 0: the file has ended, -1: error. */
static int parse_line(struct csv_reader *r, struct err *e)
{
	size_t end;
	while ((end = line_end(r)) == 0) {
		if (r->eof)
			return 0;
		if (r->raw.len - r->record > CSV_RECORD_MAX) {
			r->finished = true;
			return err_at(e, ERR_DATA, r->name, r->record_line, 1, "a record longer than %d bytes: a quote may be open",
				      CSV_RECORD_MAX);
		}
		if (refill(r, e))
			return -1;
	}
	size_t len = end - r->next, done = csv_parse(&r->parser, r->raw.data + r->next, len, on_field, on_row, r);
	if (done != len)
		return bad_quote(r, r->next + done, e);
	r->next = end;
	r->next_line++;
	return 1;
}

int csv_next(struct csv_reader *r, struct csv_record *out, struct err *e)
{
	if (r->finished)
		return 0;
	r->record = r->next;
	r->record_line = r->next_line;
	r->row_done = false;
	r->count = 0;
	buf_clear(&r->text);
	while (!r->row_done) {
		int got = parse_line(r, e);
		if (got < 0)
			return -1;
		if (got == 0) {
			if (csv_fini(&r->parser, on_field, on_row, r))
				return bad_quote(r, SIZE_MAX, e);
			r->finished = true;
			if (!r->row_done)
				return 0;
		} else if (!r->row_done && r->count == 0 && r->parser.pstate == ROW_NOT_BEGUN) { /* an empty line */
			r->record = r->next;
			r->record_line = r->next_line;
		}
	}
	finish_row(r, out);
	return 1;
}

static const char *const column_names[COLUMNS] = {
	[COLUMN_KERNEL] = "kernel_name",
	[COLUMN_PROVIDER] = "kernel_provider",
	[COLUMN_MODE] = "kernel_operation_mode",
	[COLUMN_METRIC] = "metric_name",
	[COLUMN_UNIT] = "metric_unit",
	[COLUMN_X_NAME] = "x_name",
	[COLUMN_X_LABEL] = "x_label",
	[COLUMN_X_VALUE] = "x_value",
	[COLUMN_Y_50] = "y_value_50",
	[COLUMN_Y_20] = "y_value_20",
	[COLUMN_Y_80] = "y_value_80",
	[COLUMN_CONFIG] = "extra_benchmark_config_str",
	[COLUMN_GPU] = "gpu_name",
	[COLUMN_TIMESTAMP] = "timestamp",
	[COLUMN_VERSION] = "liger_version",
};

const char *csv_column_name(enum column c)
{
	return column_names[c];
}

static size_t find_column(struct slice name)
{
	size_t c = 0;
	while (c < COLUMNS && !slice_eq(name, column_names[c]))
		c++;
	return c;
}

static int place_columns(const struct csv_reader *r, const struct csv_record *first, struct csv_header *out, const char *name,
			 size_t *known, struct err *e)
{
	for (size_t i = 0; i < first->count; i++) {
		size_t c = find_column(first->fields[i]);
		if (c < COLUMNS && out->place[c] != SIZE_MAX) {
			unsigned line, column;
			csv_position(r, i, &line, &column);
			return err_at(e, ERR_DATA, name, line, column, "column %s appears twice", column_names[c]);
		}
		if (c < COLUMNS) {
			out->place[c] = i;
			++*known;
		} else if (json_is_utf8(first->fields[i].data, first->fields[i].len)) {
			buf_add(&out->extra, first->fields[i].data, first->fields[i].len);
			buf_char(&out->extra, '\n');
		} else {
			buf_str(&out->extra, "(not UTF-8)\n");
		}
	}
	return 0;
}

int csv_read_header(struct csv_reader *r, const char *name, struct csv_header *out, struct err *e)
{
	struct csv_record first;
	size_t known = 0;
	*out = (struct csv_header){0};
	for (size_t c = 0; c < COLUMNS; c++)
		out->place[c] = SIZE_MAX;
	int got = csv_next(r, &first, e);
	if (got < 0)
		return -1;
	if (got == 0)
		return err_at(e, ERR_DATA, name, 0, 0, "empty: no header line");
	if (place_columns(r, &first, out, name, &known, e))
		return -1;
	if (known < COLUMNS / 2)
		return err_at(e, ERR_DATA, name, first.line, 1, "header not recognised: %zu of the %d expected columns", known, COLUMNS);
	for (size_t c = 0; c < COLUMNS; c++)
		if (out->place[c] == SIZE_MAX)
			return err_at(e, ERR_DATA, name, first.line, 1, "column %s is missing", column_names[c]);
	out->width = first.count;
	return 0;
}

void csv_standard_header(struct csv_header *out)
{
	*out = (struct csv_header){.width = COLUMNS};
	for (size_t c = 0; c < COLUMNS; c++)
		out->place[c] = c;
}
