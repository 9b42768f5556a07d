/* The CSV reader: records, positions, line ends, damage; whatever the sizes of the blocks it gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "normalize/csv.h"

/* A descriptor that gives `text` in pieces of `piece` bytes (0: a file that gives all at once). */
static int give(const char *text, size_t len, size_t piece, pid_t *child)
{
	int ends[2];
	*child = 0;
	if (piece == 0) {
		FILE *f = tmpfile();
		assert_non_null(f);
		assert_int_equal(len, fwrite(text, 1, len, f));
		rewind(f);
		int fd = dup(fileno(f));
		fclose(f);
		lseek(fd, 0, SEEK_SET);
		return fd;
	}
	assert_int_equal(0, pipe(ends));
	*child = fork();
	if (*child == 0) {
		for (size_t at = 0; at < len; at += piece) {
			size_t now = len - at < piece ? len - at : piece;
			if (write(ends[1], text + at, now) < 0)
				_exit(1);
			usleep(200);
		}
		_exit(0);
	}
	close(ends[1]);
	return ends[0];
}

static void done(int fd, pid_t child)
{
	close(fd);
	if (child)
		waitpid(child, NULL, 0);
}

/* Writes what the reader makes of `text`: `line[field|field]` for each record, then the error, if any. */
static const char *read_all(const char *text, size_t len, size_t piece)
{
	static char out[4096];
	struct csv_record row;
	struct err e = {0};
	pid_t child;
	size_t used = 0;
	int got, fd = give(text, len, piece, &child);
	struct csv_reader *r = csv_reader_new(fd, "t");
	out[0] = '\0';
	while ((got = csv_next(r, &row, &e)) > 0) {
		used += (size_t)sprintf(out + used, "%u[", row.line);
		for (size_t i = 0; i < row.count; i++)
			used += (size_t)sprintf(out + used, "%s%.*s", i ? "|" : "", (int)row.fields[i].len, row.fields[i].data);
		used += (size_t)sprintf(out + used, "]");
	}
	if (got < 0)
		err_format(&e, out + used, sizeof out - used);
	if (got < 0)
		assert_int_equal(0, csv_next(r, &row, &(struct err){0}));
	csv_reader_free(r);
	done(fd, child);
	return out;
}

static void check(const char *text, const char *expected)
{
	size_t len = strlen(text);
	assert_string_equal(expected, read_all(text, len, 0));
	for (size_t piece = 1; piece < 4; piece++)
		assert_string_equal(expected, read_all(text, len, piece));
}

static void lines_end_with_lf_crlf_or_cr(void **state)
{
	(void)state;
	check("a,b\nc,d\n", "1[a|b]2[c|d]");
	check("a,b\r\nc,d\r\n", "1[a|b]2[c|d]");
	check("a,b\rc,d\r", "1[a|b]2[c|d]");
	check("a\r\nb\nc\rd", "1[a]2[b]3[c]4[d]");
	check("a\n\r\n\r\nb", "1[a]4[b]");
}

static void empty_lines_are_no_records(void **state)
{
	(void)state;
	check("\r\n\r\na,b\r\n\r\n  \r\nc,d\r\n\r\n", "3[a|b]6[c|d]");
	check("", "");
	check("\n\n", "");
}

static void the_last_line_needs_no_end(void **state)
{
	(void)state;
	check("a,b\nc,\"d\"", "1[a|b]2[c|d]");
	check("a,", "1[a|]");
}

static void quoted_fields_hold_anything(void **state)
{
	(void)state;
	check("\"a,\"\"b\"\"\",c\n", "1[a,\"b\"|c]");
	check("\"a\nb\r\nc\",d\ne\n", "1[a\nb\r\nc|d]4[e]");
	check("x,\"\"\n\"\",y\n", "1[x|]2[|y]");
	check(" a , \"b \" ,c\n", "1[a|b |c]"); /* blanks around a field go, blanks in quotes stay */
}

static void a_byte_order_mark_is_skipped_only_at_the_start(void **state)
{
	(void)state;
	check("\xef\xbb\xbf" "a,b\n\xef\xbb\xbf" "c\n", "1[a|b]2[\xef\xbb\xbf" "c]");
	check("\xef\xbb" "a\n", "1[\xef\xbb" "a]");
}

static void an_open_quote_is_found_where_it_opened(void **state)
{
	(void)state;
	check("a,b\nc,\"d\ne\nf\n", "1[a|b]t:2:3: the quote that opens here is never closed: the file is cut here");
	check("a,b\nc,\"d\"e\nf\n",
	      "1[a|b]t:2:3: the quoted field that opens here does not end before a comma or a line end: the file is cut here");
	check("a\nb,\"c\nd,\"e\"\n",
	      "1[a]t:2:3: the quoted field that opens here does not end before a comma or a line end: the file is cut here");
}

static void a_quote_inside_a_bare_field_is_found_too(void **state)
{
	(void)state;
	check("a\nbc,de\"f\n", "1[a]t:2:6: a quote inside a field without quotes: the file is cut here");
	check("a\n\"x\ny\",de\"f\n", "1[a]t:3:6: a quote inside a field without quotes: the file is cut here");
}

static void fields_know_their_place(void **state)
{
	static const char text[] = "h\r\n\"a\r\nb\",  c,\"d\"\"\ne\",f\r\ng,h\r\n";
	static const unsigned places[][2] = {{2, 1}, {3, 6}, {3, 8}, {4, 4}, {4, 5}};
	struct csv_record row;
	struct err e = {0};
	pid_t child;
	unsigned line, column;
	int fd = give(text, strlen(text), 0, &child);
	struct csv_reader *r = csv_reader_new(fd, "t");
	(void)state;
	assert_int_equal(1, csv_next(r, &row, &e));
	assert_int_equal(1, csv_next(r, &row, &e));
	assert_int_equal(2, row.line);
	assert_int_equal(4, row.count);
	for (size_t i = 0; i < 4; i++) {
		csv_position(r, i, &line, &column);
		assert_int_equal(places[i][0], line);
		assert_int_equal(places[i][1], column);
	}
	assert_int_equal(1, csv_next(r, &row, &e));
	csv_position(r, 1, &line, &column);
	assert_int_equal(5, line);
	assert_int_equal(3, column);
	csv_reader_free(r);
	done(fd, child);
}

static void records_cross_blocks(void **state)
{
	struct buf text = {0};
	struct csv_record row;
	struct err e = {0};
	pid_t child;
	(void)state;
	for (int i = 0; i < 40000; i++) /* about 800 KiB, so several blocks */
		buf_printf(&text, "%d,\"x\r\n%d\",y%d\r\n", i, i, i);
	int fd = give(text.data, text.len, 0, &child);
	struct csv_reader *r = csv_reader_new(fd, "t");
	for (int i = 0; i < 40000; i++) {
		char third[16];
		assert_int_equal(1, csv_next(r, &row, &e));
		assert_int_equal(2 * i + 1, row.line);
		assert_int_equal(3, row.count);
		snprintf(third, sizeof third, "y%d", i);
		assert_string_equal(third, row.fields[2].data);
	}
	assert_int_equal(0, csv_next(r, &row, &e));
	csv_reader_free(r);
	done(fd, child);
	buf_fini(&text);
}

static void a_record_without_end_is_refused(void **state)
{
	size_t len = 3 * CSV_RECORD_MAX;
	char *text = malloc(len);
	struct csv_record row;
	struct err e = {0};
	pid_t child;
	(void)state;
	memset(text, 'x', len);
	memcpy(text, "a\nb,\"", 5);
	int fd = give(text, len, 0, &child);
	struct csv_reader *r = csv_reader_new(fd, "t");
	assert_int_equal(1, csv_next(r, &row, &e));
	assert_int_equal(-1, csv_next(r, &row, &e));
	assert_int_equal(ERR_DATA, e.code);
	assert_int_equal(2, e.line);
	csv_reader_free(r);
	done(fd, child);
	free(text);
}

static void many_fields_are_counted_not_stored(void **state)
{
	char text[2000];
	(void)state;
	memset(text, ',', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	struct csv_record row;
	struct err e = {0};
	pid_t child;
	int fd = give(text, strlen(text), 0, &child);
	struct csv_reader *r = csv_reader_new(fd, "t");
	assert_int_equal(1, csv_next(r, &row, &e));
	assert_int_equal(256, row.count);
	csv_reader_free(r);
	done(fd, child);
}

static void records_know_whether_they_are_ascii(void **state)
{
	static const char text[] = "plain,text that is longer than eight bytes\nplain,\xc3\xa9\n1234567\xff\n";
	struct csv_record row;
	struct err e = {0};
	pid_t child;
	int fd = give(text, strlen(text), 0, &child);
	struct csv_reader *r = csv_reader_new(fd, "t");
	(void)state;
	assert_int_equal(1, csv_next(r, &row, &e));
	assert_true(row.ascii);
	assert_int_equal(1, csv_next(r, &row, &e));
	assert_false(row.ascii);
	assert_int_equal(1, csv_next(r, &row, &e));
	assert_false(row.ascii);
	csv_reader_free(r);
	done(fd, child);
}

static void a_nul_byte_is_a_byte(void **state)
{
	struct csv_record row;
	struct err e = {0};
	pid_t child;
	int fd = give("a,b\0c\n", 6, 0, &child);
	struct csv_reader *r = csv_reader_new(fd, "t");
	(void)state;
	assert_int_equal(1, csv_next(r, &row, &e));
	assert_int_equal(2, row.count);
	assert_int_equal(3, row.fields[1].len);
	assert_memory_equal("b\0c", row.fields[1].data, 4);
	csv_reader_free(r);
	done(fd, child);
}

#define NAMES \
	"kernel_name,kernel_provider,kernel_operation_mode,metric_name,metric_unit,x_name,x_label,x_value,y_value_50,y_value_20," \
	"y_value_80,extra_benchmark_config_str,gpu_name,timestamp"

static int header(const char *text, struct csv_header *h, struct err *e)
{
	pid_t child;
	int fd = give(text, strlen(text), 0, &child);
	struct csv_reader *r = csv_reader_new(fd, "t");
	int rc = csv_read_header(r, "t", h, e);
	csv_reader_free(r);
	done(fd, child);
	return rc;
}

static void columns_go_by_name(void **state)
{
	struct csv_header h;
	struct err e = {0};
	(void)state;
	assert_int_equal(0, header("liger_version,commit," NAMES "\n", &h, &e));
	assert_int_equal(16, h.width);
	assert_int_equal(0, h.place[COLUMN_VERSION]);
	assert_int_equal(2, h.place[COLUMN_KERNEL]);
	assert_int_equal(15, h.place[COLUMN_TIMESTAMP]);
	assert_string_equal("commit\n", h.extra.data);
	buf_fini(&h.extra);
}

static void headers_of_other_tables_are_refused(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{NAMES "\n", "t:1:1: column liger_version is missing"},
		{NAMES ",liger_version,gpu_name\n", "t:1:191: column gpu_name appears twice"},
		{"version https://git-lfs.github.com/spec/v1\n", "t:1:1: header not recognised: 0 of the 15 expected columns"},
		{"", "t: empty: no header line"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct csv_header h;
		struct err e = {0};
		char text[1200];
		assert_int_equal(-1, header(cases[i].text, &h, &e));
		assert_int_equal(ERR_DATA, e.code);
		assert_string_equal(cases[i].expected, err_format(&e, text, sizeof text));
		buf_fini(&h.extra);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_end_with_lf_crlf_or_cr),
		cmocka_unit_test(empty_lines_are_no_records),
		cmocka_unit_test(the_last_line_needs_no_end),
		cmocka_unit_test(quoted_fields_hold_anything),
		cmocka_unit_test(a_byte_order_mark_is_skipped_only_at_the_start),
		cmocka_unit_test(an_open_quote_is_found_where_it_opened),
		cmocka_unit_test(a_quote_inside_a_bare_field_is_found_too),
		cmocka_unit_test(fields_know_their_place),
		cmocka_unit_test(records_cross_blocks),
		cmocka_unit_test(a_record_without_end_is_refused),
		cmocka_unit_test(many_fields_are_counted_not_stored),
		cmocka_unit_test(records_know_whether_they_are_ascii),
		cmocka_unit_test(a_nul_byte_is_a_byte),
		cmocka_unit_test(columns_go_by_name),
		cmocka_unit_test(headers_of_other_tables_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
