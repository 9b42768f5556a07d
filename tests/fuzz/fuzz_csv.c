/* A table of rows, from bytes to records: read, bound, converted, written, and read again as the store reads it. The standard
 * header goes before an input that has none. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "normalize/build.h"
#include "normalize/convert.h"
#include "normalize/csv.h"
#include "normalize/record.h"

static void check_line(struct slice line)
{
	struct record r;
	struct err e = {0};
	must(record_read(line, &r, "wire", 1, &e) == 0, "every line that is written reads back");
	if (r.type == RECORD_OBJECT || r.type == RECORD_CASE || r.type == RECORD_RUN) {
		struct digest d = digest_of(r.body.data, r.body.len);
		must(digest_cmp(&d, &r.digest) == 0, "every body has the digest that is written beside it");
	}
}

static void check_wire(const struct buf *wire)
{
	struct feed feed = {(const uint8_t *)wire->data, wire->len};
	must(wire->len == 0 || wire->data[wire->len - 1] == '\n', "every line is whole");
	while (feed.left)
		check_line(feed_line(&feed));
}

/* Every field lies where the reader says, and every record after the one before. */
static void read_fields(int fd)
{
	struct csv_reader *r = csv_reader_new(fd, "input");
	struct csv_record record;
	struct err e = {0};
	unsigned line, column, before = 0;
	int found;
	while ((found = csv_next(r, &record, &e)) == 1) {
		must(record.line > before || before == 0, "records come in order");
		for (size_t i = 0; i < record.count; i++) {
			must(strlen(record.fields[i].data) <= record.fields[i].len, "a field ends in a NUL");
			csv_position(r, i, &line, &column);
			must(line >= record.line && column >= 1, "a field has a position within its record");
		}
		before = record.line;
	}
	must_agree(found < 0, &e);
	csv_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text = {0}, wire = {0};
	char path[32];
	struct err e = {0};
	struct converter cv;
	struct report *report = xcalloc(1, sizeof *report);
	if (size < 11 || memcmp(data, "kernel_name", 11) != 0) {
		for (int c = 0; c < COLUMNS; c++)
			buf_printf(&text, "%s%s", c ? "," : "", csv_column_name((enum column)c));
		buf_char(&text, '\n');
	}
	buf_add(&text, data, size);
	int in = fuzz_file(text.data, text.len, path), out = memfd_create("wire", MFD_CLOEXEC);
	struct source source = {.path = path, .file = "a.csv", .channel = "committed", .commit = "2120862ba532", .entry = ""};
	read_fields(in);
	converter_init(&cv, fuzz_config(), CONVERT_WIRE, out);
	cv.tables = "";
	int rc = convert_file(&cv, &source, report, &e);
	must_agree(rc != 0, &e);
	must(rc == 0 || e.code == ERR_DATA, "bad input is refused as input");
	must(converter_flush(&cv, &e) == 0 || rc, "output can be written");
	fuzz_read(out, &wire);
	check_wire(&wire);
	if (rc == 0)
		must(report->rows == report->bound + report_skipped(report) + report_rejected(report), "every row is accounted for");
	converter_fini(&cv);
	report_fini(report);
	free(report);
	close(in);
	close(out);
	buf_fini(&text);
	buf_fini(&wire);
	return 0;
}
