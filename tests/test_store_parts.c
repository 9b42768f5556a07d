/* The store's small parts: sets of run numbers, packed texts, keys, lines, and how values and versions are shown. */
#include "tests/store_stream.h"

#include "store/catalog.h"
#include "store/lines.h"
#include "store/pack.h"
#include "store/ranges.h"
#include "store/run.h"
#include "store/view.h"

/* ---- ranges ---- */

static void test_numbers_become_ranges_whatever_their_order(void **state)
{
	(void)state;
	static const uint32_t numbers[] = {9, 1, 2, 3, 2, 7, 8, 100, 4, 1, UINT32_MAX - 1};
	struct ranges r = {0};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		ranges_add(&r, numbers[i]);
	ranges_sort(&r);
	assert_int_equal(r.count, 4);
	static const struct range wanted[] = {{1, 4}, {7, 3}, {100, 1}, {UINT32_MAX - 1, 1}};
	assert_memory_equal(r.items, wanted, sizeof wanted);
	assert_int_equal(ranges_total(&r), 9);
	for (uint32_t n = 0; n < 12; n++)
		assert_int_equal(ranges_has(&r, n), (n >= 1 && n <= 4) || (n >= 7 && n <= 9));
	assert_true(ranges_has(&r, 100));
	assert_false(ranges_has(&r, 101));
	assert_true(ranges_has(&r, UINT32_MAX - 1));
	ranges_fini(&r);
}

static void test_ranges_survive_writing_and_reading(void **state)
{
	(void)state;
	struct ranges r = {0}, back = {0};
	struct buf text = {0};
	for (uint32_t n = 0; n < 1000; n++)
		ranges_add(&r, n < 500 ? n : n * 100000);
	ranges_sort(&r);
	ranges_write(&r, &text);
	assert_true(ranges_read((struct slice){text.data, text.len}, &back));
	assert_int_equal(back.count, 501);
	assert_memory_equal(back.items, r.items, r.count * sizeof *r.items);
	ranges_fini(&back);
	assert_false(ranges_read((struct slice){text.data, text.len - 1}, &back));
	ranges_fini(&r);
	ranges_fini(&back);
	buf_fini(&text);
}

static void test_an_empty_set_is_a_set(void **state)
{
	(void)state;
	struct ranges r = {0}, back = {0};
	struct buf text = {0};
	ranges_sort(&r);
	assert_int_equal(ranges_total(&r), 0);
	assert_false(ranges_has(&r, 0));
	ranges_write(&r, &text);
	assert_int_equal(text.len, 0);
	assert_true(ranges_read((struct slice){"", 0}, &back));
	assert_int_equal(back.count, 0);
	buf_fini(&text);
}

static void test_bytes_that_are_no_ranges_are_refused(void **state)
{
	(void)state;
	static const struct slice wrong[] = {{"\x01", 1}, {"\x80", 1}, {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01", 12}, {"\x01\x00", 2}};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct ranges r = {0};
		if (ranges_read(wrong[i], &r))
			fail_msg("case %zu was taken", i);
		ranges_fini(&r);
	}
}

/* ---- packed texts ---- */

static void test_packed_texts_come_back_and_are_small(void **state)
{
	(void)state;
	static const char usual[] = "{\"apiVersion\":\"kernelindex.dev/v1alpha1\",\"kind\":\"OperationSpec\",\"spec\":{\"axes\":{},\"family\":\"x\"}}";
	static const char *const texts[] = {"", "{}", usual, "\xc2\xb5 \xf0\x9f\x98\x80"};
	struct packer *p = packer_new();
	struct buf packed = {0}, back = {0};
	struct err e = {0};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		buf_clear(&packed);
		buf_clear(&back);
		pack(p, words(texts[i]), &packed);
		assert_int_equal(unpack(p, (struct slice){packed.data, packed.len}, &back, &e), 0);
		assert_int_equal(back.len, strlen(texts[i]));
		assert_string_equal(back.data, texts[i]);
	}
	buf_clear(&packed);
	pack(p, words(usual), &packed);
	assert_true(packed.len < sizeof usual / 2);
	struct buf again = {0};
	pack(p, words(usual), &again);
	assert_int_equal(again.len, packed.len);
	assert_memory_equal(again.data, packed.data, packed.len);
	packer_free(p);
	packer_free(NULL);
	buf_fini(&packed);
	buf_fini(&again);
	buf_fini(&back);
}

static void test_bytes_that_are_not_packed_are_damage(void **state)
{
	(void)state;
	struct packer *p = packer_new();
	struct buf packed = {0}, back = {0};
	pack(p, words("{\"kind\":\"OperationSpec\",\"other\":\"text that no dictionary has, zqxj\"}"), &packed);
	for (size_t len = 0; len < packed.len; len++) {
		struct err e = {0};
		buf_clear(&back);
		assert_int_equal(unpack(p, (struct slice){packed.data, len}, &back, &e), -1);
		assert_int_equal(e.code, ERR_CORRUPT);
	}
	struct err e = {0};
	assert_int_equal(unpack(p, words("not zstd at all"), &back, &e), -1);
	assert_int_equal(e.code, ERR_CORRUPT);
	packer_free(p);
	buf_fini(&packed);
	buf_fini(&back);
}

/* ---- keys ---- */

static int order(const MDB_val *a, const MDB_val *b)
{
	size_t len = a->mv_size < b->mv_size ? a->mv_size : b->mv_size;
	int rc = memcmp(a->mv_data, b->mv_data, len);
	return rc ? rc : (a->mv_size > b->mv_size) - (a->mv_size < b->mv_size);
}

static void test_byte_order_of_keys_is_the_order_of_values(void **state)
{
	(void)state;
	static const uint32_t ids[] = {0, 1, 255, 256, 65535, 65536, UINT32_MAX};
	struct key a, b;
	for (size_t i = 1; i < sizeof ids / sizeof *ids; i++) {
		assert_true(order(key_u32(&a, ids[i - 1]), key_u32(&b, ids[i])) < 0);
		assert_true(order(key_u64_u32(&a, 5, ids[i - 1]), key_u64_u32(&b, 5, ids[i])) < 0);
		assert_true(order(key_u64_u32(&a, ids[i - 1], 9), key_u64_u32(&b, ids[i], 0)) < 0);
		assert_true(order(key_index(&a, INDEX_CASE, 1, ids[i - 1], 65535), key_index(&b, INDEX_CASE, 1, ids[i], 0)) < 0);
		assert_int_equal(key_read_u32(key_u32(&a, ids[i]), 0), ids[i]);
		struct digest d = digest_of("x", 1);
		assert_int_equal(key_read_u32(key_digest_u32(&a, &d, ids[i]), DIGEST_SIZE), ids[i]);
		assert_int_equal(key_read_u32(key_u32_digest(&a, ids[i], &d), 0), ids[i]);
	}
	assert_true(order(key_index(&a, INDEX_DIGEST, 255, UINT32_MAX, 0), key_index(&b, INDEX_CASE, 0, 0, 0)) < 0);
	assert_true(order(key_index(&a, INDEX_CASE, 0, UINT32_MAX, 0), key_index(&b, INDEX_CASE, 1, 0, 0)) < 0);
}

static void test_a_case_key_orders_by_case_then_time(void **state)
{
	(void)state;
	assert_int_equal(key_of_case(7, 1735689600000), (uint64_t)7 << 32 | 1735689600);
	assert_true(key_of_case(7, 1735689600000) < key_of_case(7, 1735689601000));
	assert_true(key_of_case(7, 4102444800000) < key_of_case(8, 0));
	struct digest d;
	assert_true(digest_parse_hex("0123456789abcdef000000000000000000000000000000000000000000000000", 64, &d));
	assert_true(key_of_digest(&d) == 0x0123456789abcdefULL);
}

/* ---- lines ---- */

static int lines_of(const char *text, size_t len)
{
	int fd = memfd_create("lines", MFD_CLOEXEC);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void test_lines_are_read_without_their_ends(void **state)
{
	(void)state;
	struct lines l;
	struct slice line;
	struct err e = {0};
	int fd = lines_of("one\n\nthree\n", 11);
	lines_init(&l, fd);
	static const char *const wanted[] = {"one", "", "three"};
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(lines_next(&l, 100, &line, &e), 1);
		assert_true(slice_eq(line, wanted[i]));
		assert_int_equal(l.number, i + 1);
	}
	assert_int_equal(lines_next(&l, 100, &line, &e), 0);
	assert_int_equal(lines_next(&l, 100, &line, &e), 0);
	lines_fini(&l);
	close(fd);
}

static void test_lines_longer_than_a_block_are_read_and_longer_than_the_limit_refused(void **state)
{
	(void)state;
	enum { LEN = 300000 };
	struct lines l;
	struct slice line;
	struct err e = {0};
	char *text = malloc(2 * LEN + 2);
	memset(text, 'a', LEN);
	text[LEN] = '\n';
	memset(text + LEN + 1, 'b', LEN);
	text[2 * LEN + 1] = '\n';
	int fd = lines_of(text, 2 * LEN + 2);
	lines_init(&l, fd);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(lines_next(&l, LEN, &line, &e), 1);
		assert_int_equal(line.len, LEN);
		assert_int_equal(line.data[0], "ab"[i]);
		assert_int_equal(line.data[LEN - 1], "ab"[i]);
	}
	assert_int_equal(lines_next(&l, LEN, &line, &e), 0);
	lines_fini(&l);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	lines_init(&l, fd);
	assert_int_equal(lines_next(&l, LEN - 1, &line, &e), -1);
	assert_int_equal(e.code, ERR_DATA);
	lines_fini(&l);
	close(fd);
	free(text);
}

static void test_a_last_line_without_its_end_is_refused(void **state)
{
	(void)state;
	struct lines l;
	struct slice line;
	struct err e = {0};
	int fd = lines_of("one\ntwo", 7);
	lines_init(&l, fd);
	assert_int_equal(lines_next(&l, 100, &line, &e), 1);
	assert_int_equal(lines_next(&l, 100, &line, &e), -1);
	assert_int_equal(e.code, ERR_DATA);
	lines_fini(&l);
	close(fd);
}

/* ---- what is shown ---- */

static void test_versions_are_in_order(void **state)
{
	(void)state;
	static const char *const ascending[] = {"", "0.2.1", "0.5.8.dev20250101", "0.5.8a1", "0.5.8b1", "0.5.8rc1", "0.5.8rc2", "0.5.8", "0.5.9", "0.5.10",
						"0.6.0.dev20250401", "0.6.0rc1", "0.6.0", "0.10.0", "1.0", "1.0.0", "2"};
	size_t count = sizeof ascending / sizeof *ascending;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++) {
			int wanted = (i > k) - (i < k);
			if (view_compare_versions(words(ascending[i]), words(ascending[k])) != wanted)
				fail_msg("%s against %s is not %d", ascending[i], ascending[k], wanted);
		}
}

static void test_quantities_are_shown_with_a_fitting_unit(void **state)
{
	(void)state;
	static const struct {
		enum metric m;
		int64_t value;
		const char *text;
	} cases[] = {
		{METRIC_LATENCY, 0, "0 ns"},
		{METRIC_LATENCY, 999, "999 ns"},
		{METRIC_LATENCY, 1000, "1.00 \xc2\xb5s"},
		{METRIC_LATENCY, 7812, "7.81 \xc2\xb5s"},
		{METRIC_LATENCY, 621504, "621.5 \xc2\xb5s"},
		{METRIC_LATENCY, 24104448, "24.1 ms"},
		{METRIC_LATENCY, 3053160000, "3.05 s"},
		{METRIC_LATENCY, 12000000000, "12.0 s"},
		{METRIC_PEAK_MEMORY, 1023, "1023 B"},
		{METRIC_PEAK_MEMORY, 1024, "1.00 KiB"},
		{METRIC_PEAK_MEMORY, 1048576, "1.00 MiB"},
		{METRIC_PEAK_MEMORY, 1288490189, "1.20 GiB"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buf out = {0};
		view_quantity(cases[i].m, cases[i].value, &out);
		assert_string_equal(out.data, cases[i].text);
		buf_fini(&out);
	}
}

/* A value just below ten rounds up to ten, and one just below a thousand to a thousand, in the unit it has. */
static void test_quantities_at_the_edges_of_their_rounding(void **state)
{
	(void)state;
	struct buf out = {0};
	view_quantity(METRIC_LATENCY, 999999, &out);
	assert_string_equal(out.data, "1000.0 \xc2\xb5s");
	buf_clear(&out);
	view_quantity(METRIC_LATENCY, 9994, &out);
	assert_string_equal(out.data, "9.99 \xc2\xb5s");
	buf_clear(&out);
	view_quantity(METRIC_LATENCY, 10000, &out);
	assert_string_equal(out.data, "10.0 \xc2\xb5s");
	buf_fini(&out);
}

static void test_names_are_cut_to_a_hundred_characters(void **state)
{
	(void)state;
	struct buf out = {0};
	catalog_run_name(words("cross_entropy/forward/liger/nvidia-a100-sxm4-80gb/tokens16384-vocab4096-fp32/2024-09-03-15-31-39"), &out);
	assert_string_equal(out.data, "liger-cross-entropy-forward-liger-nvidia-a100-sxm4-80gb-tokens16384-vocab4096-fp32-2024-09-03-15-31-");
	assert_int_equal(out.len, 100);
	buf_fini(&out);
}

static void test_a_rows_time_ends_its_external_id(void **state)
{
	(void)state;
	char suffix[RUN_SUFFIX + 1];
	run_suffix(1725377999000, suffix);
	assert_string_equal(suffix, "2024-09-03-15-39-59");
}

static void test_stored_units_follow_from_source_values(void **state)
{
	(void)state;
	struct run_row row = {.value_50 = 24.104448318481445};
	assert_int_equal(run_units(&row, METRIC_LATENCY, row.value_50), 24104448);
	assert_int_equal(run_units(&row, METRIC_LATENCY, NAN), -1);
	assert_int_equal(run_units(&row, METRIC_PEAK_MEMORY, 0.5), 524288);
	row.flags = RUN_UNITS;
	assert_int_equal(run_units(&row, METRIC_LATENCY, 18432), 18432);
}

static void test_every_column_has_a_name_of_its_own(void **state)
{
	(void)state;
	assert_null(view_column(words("no_such_column")));
	assert_null(view_column(words("")));
	for (size_t i = 0; i < view_column_count; i++) {
		assert_ptr_equal(view_column(words(view_columns[i].name)), &view_columns[i]);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(view_columns[i].json, view_columns[k].json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_become_ranges_whatever_their_order),
		cmocka_unit_test(test_ranges_survive_writing_and_reading),
		cmocka_unit_test(test_an_empty_set_is_a_set),
		cmocka_unit_test(test_bytes_that_are_no_ranges_are_refused),
		cmocka_unit_test(test_packed_texts_come_back_and_are_small),
		cmocka_unit_test(test_bytes_that_are_not_packed_are_damage),
		cmocka_unit_test(test_byte_order_of_keys_is_the_order_of_values),
		cmocka_unit_test(test_a_case_key_orders_by_case_then_time),
		cmocka_unit_test(test_lines_are_read_without_their_ends),
		cmocka_unit_test(test_lines_longer_than_a_block_are_read_and_longer_than_the_limit_refused),
		cmocka_unit_test(test_a_last_line_without_its_end_is_refused),
		cmocka_unit_test(test_versions_are_in_order),
		cmocka_unit_test(test_quantities_are_shown_with_a_fitting_unit),
		cmocka_unit_test(test_quantities_at_the_edges_of_their_rounding),
		cmocka_unit_test(test_names_are_cut_to_a_hundred_characters),
		cmocka_unit_test(test_a_rows_time_ends_its_external_id),
		cmocka_unit_test(test_stored_units_follow_from_source_values),
		cmocka_unit_test(test_every_column_has_a_name_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
