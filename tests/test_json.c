/* Canonical JSON: the vectors of fixtures/canonical, and the whole list of numbers where ../shared has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/json.h"
#include "core/text.h"

#define VECTORS "fixtures/canonical/"

static double from_bits(const char *hex)
{
	uint64_t bits = strtoull(hex, NULL, 16);
	double value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* Each line: 16 hex digits of a double, a tab, its text. */
static int check_numbers(const char *path)
{
	char line[128], text[JSON_NUMBER_MAX];
	int count = 0;
	FILE *f = fopen(path, "r");
	if (!f)
		return 0;
	for (; fgets(line, sizeof line, f); count++) {
		double value = from_bits(line);
		line[strcspn(line, "\n")] = '\0';
		assert_int_equal('\t', line[16]);
		assert_int_equal(strlen(line + 17), json_number(value, text));
		assert_string_equal(line + 17, text);
		double back = strtod(text, NULL);
		assert_true(value == 0 ? back == 0 : memcmp(&back, &value, sizeof back) == 0);
	}
	fclose(f);
	return count;
}

static void numbers_have_their_ecmascript_text(void **state)
{
	(void)state;
	assert_int_equal(993, check_numbers(VECTORS "numbers.tsv"));
}

static void all_known_numbers_have_their_text(void **state)
{
	(void)state;
	int count = check_numbers("../shared/cases/inputs/jcs_numbers.tsv");
	if (count == 0)
		skip();
	assert_int_equal(6538, count);
}

static void numbers_that_are_not_finite_cannot_be_written(void **state)
{
	char line[128];
	int count = 0;
	FILE *f = fopen(VECTORS "numbers-refused.tsv", "r");
	(void)state;
	assert_non_null(f);
	for (; fgets(line, sizeof line, f); count++) {
		json_t *value = json_real(from_bits(line)); /* the tree holds no such number */
		assert_null(value);
	}
	fclose(f);
	assert_int_equal(6, count);
}

static json_t *next_case(FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len = getline(&line, &room, f);
	json_t *item = len > 0 ? json_loadb(line, (size_t)len, JSON_ALLOW_NUL, NULL) : NULL;
	free(line);
	return item;
}

static int canonical(const char *text, size_t len, struct buf *out, struct err *e)
{
	json_t *value = json_load_numbers_as_double(text, len, "vector", e);
	int rc = value ? json_canonical(value, out, e) : -1;
	json_decref(value);
	return rc;
}

static void documents_have_their_canonical_text(void **state)
{
	int count = 0;
	FILE *f = fopen(VECTORS "documents.jsonl", "r");
	(void)state;
	assert_non_null(f);
	for (json_t *item; (item = next_case(f)); count++) {
		json_t *input = json_object_get(item, "input");
		const char *alt = json_string_value(json_object_get(item, "alt"));
		struct buf out = {0};
		struct err e = {0};
		int rc = canonical(json_string_value(input), json_string_length(input), &out, &e);
		if (rc == 0)
			assert_string_equal(json_string_value(json_object_get(item, "expected")), out.data);
		else if (!alt || strcmp(alt, "reject") != 0)
			fail_msg("%s: %s", json_string_value(json_object_get(item, "id")), e.text);
		buf_fini(&out);
		json_decref(item);
	}
	fclose(f);
	assert_int_equal(39, count);
}

static size_t unhex(const char *hex, char *out)
{
	size_t len = strlen(hex) / 2;
	for (size_t i = 0; i < len; i++)
		out[i] = (char)strtoul((char[]){hex[2 * i], hex[2 * i + 1], '\0'}, NULL, 16);
	return len;
}

static void other_documents_are_refused_with_a_position(void **state)
{
	int count = 0;
	FILE *f = fopen(VECTORS "documents-refused.jsonl", "r");
	(void)state;
	assert_non_null(f);
	for (json_t *item; (item = next_case(f)); count++) {
		char bytes[256];
		struct buf out = {0};
		struct err e = {0};
		size_t len = unhex(json_string_value(json_object_get(item, "input_hex")), bytes);
		if (canonical(bytes, len, &out, &e) == 0)
			fail_msg("%s was accepted", json_string_value(json_object_get(item, "id")));
		assert_int_equal(ERR_DATA, e.code);
		assert_string_equal("vector", e.file);
		buf_fini(&out);
		json_decref(item);
	}
	fclose(f);
	assert_int_equal(16, count);
}

static void nesting_is_limited(void **state)
{
	char deep[2 * (JSON_DEPTH_MAX + 1) + 1];
	struct err e = {0};
	(void)state;
	memset(deep, '[', JSON_DEPTH_MAX);
	memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	json_t *value = json_load_text(deep, 2 * JSON_DEPTH_MAX, "deep", &e);
	assert_non_null(value);
	json_decref(value);
	memset(deep, '[', JSON_DEPTH_MAX + 1);
	memset(deep + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	assert_null(json_load_text(deep, 2 * (JSON_DEPTH_MAX + 1), "deep", &e));
	assert_int_equal(ERR_DATA, e.code);
	assert_int_equal(JSON_DEPTH_MAX + 1, e.column);
}

static void integers_may_be_written_as_reals(void **state)
{
	static const struct {
		const char *text;
		bool whole;
		int64_t value;
	} cases[] = {
		{"2048", true, 2048}, {"2048.0", true, 2048}, {"2.048e3", true, 2048}, {"-3", true, -3}, {"0.5", false, 0},
		{"9007199254740991", true, 9007199254740991}, {"9007199254740992", false, 0}, {"9007199254740992.0", false, 0},
		{"true", false, 0}, {"\"7\"", false, 0}, {"null", false, 0},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e = {0};
		int64_t value = 0;
		json_t *json = json_load_text(cases[i].text, strlen(cases[i].text), "", &e);
		assert_non_null(json);
		assert_int_equal(cases[i].whole, json_whole(json, &value));
		if (cases[i].whole)
			assert_int_equal(cases[i].value, value);
		json_decref(json);
	}
}

static void whole_numbers_beyond_64_bits_are_the_nearest_doubles(void **state)
{
	const char text[] = "[1e20,100000000000000000000,-9223372036854775809,9007199254740991,2.5,[3.0,{\"a\":7}]]";
	struct err e = {0};
	struct buf out = {0};
	(void)state;
	json_t *json = json_load_text(text, strlen(text), "", &e);
	assert_non_null(json);
	assert_true(json_is_integer(json_array_get(json, 3)));
	assert_int_equal(json_canonical(json, &out, &e), 0);
	assert_string_equal(out.data, "[100000000000000000000,100000000000000000000,-9223372036854776000,9007199254740991,2.5,[3,{\"a\":7}]]");
	json_decref(json);
	assert_null(json_load_text("[1e400]", 7, "", &e));
	buf_fini(&out);
}

static void what_is_not_canonical_is_refused(void **state)
{
	static const char *const texts[] = {"{\"a\": 1}", "{\"b\":1,\"a\":1}", "[1]", "{\"a\":1.0}", "{\"a\":\"\\u0041\"}", "{\"a\":1,\"a\":1}", "{\"a\"}", ""};
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct err e = {0};
		assert_int_equal(json_check_canonical(slice_of(texts[i]), "text", &e), -1);
		assert_int_equal(e.code, ERR_DATA);
	}
	struct err e = {0};
	assert_int_equal(json_check_canonical(slice_of("{\"a\":100000000000000000000,\"b\":\"\\u0001\"}"), "text", &e), 0);
}

static void what_has_no_json_is_refused(void **state)
{
	struct buf out = {0};
	struct err e = {0};
	json_t *not_utf8 = json_pack("{s:s}", "name", "\xff"), *infinite = json_pack("{s:f}", "ratio", INFINITY);
	(void)state;
	assert_null(not_utf8);
	assert_null(infinite);
	assert_int_equal(-1, json_canonical(not_utf8, &out, &e));
	assert_int_equal(ERR_DATA, e.code);
	assert_int_equal(0, out.len);
	assert_string_equal("", json_text_of(NULL, "name"));
	assert_int_equal(0, json_whole_of(NULL, "name"));
	buf_fini(&out);
}

static void text_of_others_cannot_drive_a_terminal(void **state)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
		{"NVIDIA H200 \xc2\xb5", "NVIDIA H200 \xc2\xb5"}, {"a\x1b[31mb\x07", "a\\x1b[31mb\\x07"}, {"two\nlines\t\x7f", "two\\x0alines\\x09\\x7f"},
		{"csi \xc2\x9b" "2J", "csi \\x9b2J"}, {"cut \xc3", "cut \\xc3"}, {"\xc2\xa0", "\xc2\xa0"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buf out = {0};
		text_put_printable(&out, cases[i].text, strlen(cases[i].text));
		assert_string_equal(cases[i].shown, out.data);
		buf_fini(&out);
	}
}

static void names_sort_by_utf16_code_units(void **state)
{
	const char *bmp = "\xee\x80\x80", *astral = "\xf0\x90\x80\x80"; /* U+E000 and U+10000 */
	(void)state;
	assert_true(json_compare_names(astral, 4, bmp, 3) < 0);
	assert_true(json_compare_names(bmp, 3, astral, 4) > 0);
	assert_true(json_compare_names("a", 1, "ab", 2) < 0);
	assert_true(json_compare_names("a", 1, "B", 1) > 0);
	assert_int_equal(0, json_compare_names("ab", 2, "ab", 2));
}

static void utf8_is_checked_strictly(void **state)
{
	static const char *const good[] = {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {"\xc3", "\xa9", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
					  "\xf0\x80\x80\x80", "\xff", "\xe2\x82", "a\xe9" "b"};
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(json_is_utf8(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(json_is_utf8(bad[i], strlen(bad[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_their_ecmascript_text),
		cmocka_unit_test(all_known_numbers_have_their_text),
		cmocka_unit_test(numbers_that_are_not_finite_cannot_be_written),
		cmocka_unit_test(documents_have_their_canonical_text),
		cmocka_unit_test(other_documents_are_refused_with_a_position),
		cmocka_unit_test(nesting_is_limited),
		cmocka_unit_test(integers_may_be_written_as_reals),
		cmocka_unit_test(whole_numbers_beyond_64_bits_are_the_nearest_doubles),
		cmocka_unit_test(what_is_not_canonical_is_refused),
		cmocka_unit_test(what_has_no_json_is_refused),
		cmocka_unit_test(text_of_others_cannot_drive_a_terminal),
		cmocka_unit_test(names_sort_by_utf16_code_units),
		cmocka_unit_test(utf8_is_checked_strictly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
