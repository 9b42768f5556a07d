/* Lines that fit a width: nothing is lost, nothing is wider, names are cut and numbers keep their units. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "store/plot.h"
#include "store/screen.h"

/* What screen_line writes at a width; 0: where lines are whole. The caller frees it. */
static char *written(unsigned width, unsigned hang, bool ascii, const char *text)
{
	char *out = NULL;
	size_t len;
	FILE *file = open_memstream(&out, &len);
	struct screen s = {file, width ? width : 100, width > 0, ascii};
	screen_line(&s, hang, text);
	fclose(file);
	return out;
}

static void is_written(unsigned width, unsigned hang, bool ascii, const char *text, const char *wanted)
{
	char *out = written(width, hang, ascii, text);
	assert_string_equal(out, wanted);
	free(out);
}

static void pack(const char *text, struct buf *out)
{
	buf_add(out, "", 0);
	for (; *text; text++)
		if (*text != ' ' && *text != '\n')
			buf_char(out, *text);
	buf_char(out, '\0');
}

static void at_every_width_lines_fit_and_nothing_is_lost(void **state)
{
	static const char *const texts[] = {
		"",
		"   ",
		"  run              sha256:521a0b1ea67f4bccad75b0d7022a153d94d2e1f54d3b3fc8d77c41310b88b107",
		"rms_norm/backward/torch/nvidia-geforce-rtx-3090/batch4-dilation1-heads12-hidden768-kernel_size7-seq2048-fp32/2025-05-27-15-10-05",
		"seq = 2048 \xc2\xb7 batch = 4 \xc2\xb7 heads = 12 \xc2\xb7 hidden = 768 \xc2\xb7 dilation = 1 \xc2\xb7 kernel_size = 7 \xc2\xb7 fp32",
		"1 = 2 = 3 = 4 = 5 = 6 = 7 = 8 = 9 = 1 = 2 = 3 = 4 = 5 = 6 = 7 = 8 = 9",
		"//////////////////////////////////////////////////////////////////////",
		"\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5\xc2\xb5",
	};
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		for (unsigned width = 20; width < 150; width++) {
			char *out = written(width, 19, false, texts[i]);
			struct buf wanted = {0}, found = {0};
			pack(texts[i], &wanted);
			pack(out, &found);
			assert_string_equal(found.data, wanted.data);
			for (char *line = out, *end; (end = strchr(line, '\n')); line = end + 1) {
				*end = '\0';
				assert_true(screen_columns(line) <= width);
			}
			free(out);
			buf_fini(&wanted);
			buf_fini(&found);
		}
}

static void lines_break_at_spaces_and_long_names_at_slashes(void **state)
{
	(void)state;
	is_written(20, 2, false, "one two three four five six", "one two three four\n  five six\n");
	is_written(20, 2, false, "one/two/three/four/five/six/seven", "one/two/three/four/\n  five/six/seven\n");
	is_written(0, 2, false, "one two three four five six", "one two three four five six\n");
}

static void a_number_keeps_its_unit_and_an_equation_its_sides(void **state)
{
	(void)state;
	is_written(20, 2, false, "it took about 12.5 ms in all", "it took about\n  12.5 ms in all\n");
	is_written(20, 2, false, "rows, hidden = 1024 too", "rows,\n  hidden = 1024 too\n");
	is_written(20, 2, false, "a line of 2048 \xc2\xb7 hidden", "a line of 2048 \xc2\xb7\n  hidden\n");
}

static void texts_are_shown_and_do_not_act(void **state)
{
	(void)state;
	is_written(0, 0, false, "a\x1b[31mb\nc", "a\\x1b[31mb\\x0ac\n");
	is_written(40, 0, true, "24 \xc2\xb5s \xc2\xb7 1\xc3\x97 \xe2\x80\x94 \xe6\xbc\xa2", "24 us | 1x - ?\n");
	is_written(0, 0, true, "24 \xc2\xb5s", "24 \xc2\xb5s\n");
}

static void names_are_cut_where_lines_are_fitted(void **state)
{
	struct buf text = {0};
	struct screen s = {.width = 80, .fitted = true};
	(void)state;
	screen_cut(&s, "hidden\xc2\xb5size", 8, &text);
	assert_string_equal(text.data, "hidden\xc2\xb5\xe2\x80\xa6");
	buf_clear(&text);
	screen_cut(&s, "hidden", 6, &text);
	assert_string_equal(text.data, "hidden");
	buf_clear(&text);
	s.ascii = true;
	screen_cut(&s, "hidden-size", 8, &text);
	assert_string_equal(text.data, "hidde...");
	buf_clear(&text);
	s.fitted = false;
	screen_cut(&s, "hidden-size", 8, &text);
	assert_string_equal(text.data, "hidden-size");
	buf_fini(&text);
}

static void bars_and_intervals_are_as_long_as_they_say(void **state)
{
	struct buf text = {0};
	(void)state;
	plot_bar(0.5, 10, true, &text);
	assert_string_equal(text.data, "#####");
	buf_clear(&text);
	plot_bar(1e-9, 10, true, &text);
	assert_string_equal(text.data, "#");
	buf_clear(&text);
	plot_bar(0.25, 10, false, &text);
	assert_string_equal(text.data, "██▌");
	buf_clear(&text);
	plot_bar(7, 2, false, &text);
	assert_string_equal(text.data, "██");
	buf_clear(&text);
	plot_interval(10, 12, 18, 9, true, &text);
	assert_string_equal(text.data, "|-*-----|");
	buf_clear(&text);
	plot_interval(10, 10, 10, 9, false, &text);
	assert_string_equal(text.data, "├───●───┤");
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_every_width_lines_fit_and_nothing_is_lost),
		cmocka_unit_test(lines_break_at_spaces_and_long_names_at_slashes),
		cmocka_unit_test(a_number_keeps_its_unit_and_an_equation_its_sides),
		cmocka_unit_test(texts_are_shown_and_do_not_act),
		cmocka_unit_test(names_are_cut_where_lines_are_fitted),
		cmocka_unit_test(bars_and_intervals_are_as_long_as_they_say),
	};
	return cmocka_run_group_tests_name("store/screen", tests, NULL, NULL);
}
