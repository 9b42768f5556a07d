/* CSV through libcsv (strict: quotes only around whole fields), read in blocks, one record at a time, with positions.
 *
 * libcsv's callbacks carry no position. The bytes of the current record are therefore kept, and the place of a field is found
 * by looking at them again, only when somebody asks. A line ends with LF, CRLF or CR, also inside quotes; empty lines are no
 * records; a byte order mark at the start is skipped. Memory is bounded by the longest record, not by the file.
 *
 * The table part reads columns by the names of the header line, so their order does not matter (upstream's header:
 * benchmark/scripts/utils.py of Liger-Kernel). */
#ifndef KI_NORMALIZE_CSV_H
#define KI_NORMALIZE_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/err.h"

enum { CSV_RECORD_MAX = 1 << 20 }; /* bytes of one record; more is ERR_DATA */

struct csv_reader;
struct csv_record {
	unsigned line; /* where the record starts, 1-based */
	size_t count;
	const struct slice *fields; /* NUL-terminated each; valid until the next csv_next */
	bool ascii;                 /* no byte above 0x7f in the whole record */
};

/* Reads from `fd`, which stays the caller's; `name` is for messages and must outlive the reader. */
struct csv_reader *csv_reader_new(int fd, const char *name);
void csv_reader_free(struct csv_reader *r);
/* 1 with a record, 0 at the end, -1 with `e` filled. ERR_DATA for a quote that is not closed (at the line and column where it
 * opened), a quote inside an unquoted field, or an oversized record; nothing can be read after that. */
int csv_next(struct csv_reader *r, struct csv_record *out, struct err *e);
/* Line and byte column (1-based) where field `index` of the current record starts. */
void csv_position(const struct csv_reader *r, size_t index, unsigned *line, unsigned *column);

enum column {
	COLUMN_KERNEL,
	COLUMN_PROVIDER,
	COLUMN_MODE,
	COLUMN_METRIC,
	COLUMN_UNIT,
	COLUMN_X_NAME,
	COLUMN_X_LABEL,
	COLUMN_X_VALUE,
	COLUMN_Y_50,
	COLUMN_Y_20,
	COLUMN_Y_80,
	COLUMN_CONFIG,
	COLUMN_GPU,
	COLUMN_TIMESTAMP,
	COLUMN_VERSION,
	COLUMNS,
};
const char *csv_column_name(enum column c);

struct csv_header {
	size_t place[COLUMNS]; /* which field holds the column */
	size_t width;          /* fields of a record */
	struct buf extra;      /* names of unknown columns, each followed by a newline; free with buf_fini */
};
/* Takes the first record as the header. ERR_DATA when it is not that of the expected table, or a column is missing or there
 * twice (named in the message). Unknown columns are collected: that is drift, to be reported and not to be refused. */
int csv_read_header(struct csv_reader *r, const char *name, struct csv_header *out, struct err *e);
/* The header of a row in the standard column order. */
void csv_standard_header(struct csv_header *out);

#endif
