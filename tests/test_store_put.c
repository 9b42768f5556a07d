/* The writer: what it takes, what it refuses, and that nothing is published twice or by half. */
#include "tests/store_stream.h"

#include "store/catalog.h"
#include "store/check.h"

#define COMMIT_1 "1111111111111111111111111111111111111111"
#define COMMIT_2 "2222222222222222222222222222222222222222"
#define COMMIT_3 "3333333333333333333333333333333333333333"

/* Published counts; all zero when there is nothing to read yet. */
static struct meta_counts counts_of(struct place *p)
{
	struct catalog c;
	struct err e = {0};
	struct meta_counts counts = {0};
	if (catalog_open(&c, p->root, &e) == 0)
		counts = c.counts;
	catalog_close(&c);
	return counts;
}

static void expect_clean(struct place *p)
{
	struct catalog c;
	struct err e = {0};
	struct check_totals totals;
	assert_int_equal(catalog_open(&c, p->root, &e), 0);
	assert_int_equal(check_catalog(&c, stderr, &totals), 0);
	assert_int_equal(totals.problems, 0);
	catalog_close(&c);
}

/* The stream is refused with ERR_DATA and a text that holds `part`, and no publication comes of it. */
static void expect_refused(struct place *p, const char *part)
{
	struct put_totals totals;
	struct err e;
	uint32_t before = counts_of(p).publications;
	assert_int_equal(put_wire(p, false, &totals, &e), -1);
	assert_int_equal(e.code, ERR_DATA);
	if (!strstr(e.text, part))
		fail_msg("\"%s\" does not hold \"%s\"", e.text, part);
	assert_int_equal(counts_of(p).publications, before);
	assert_int_equal(counts_of(p).runs, 0);
}

static char *find(struct place *p, const char *text)
{
	buf_char(&p->wire, '\0');
	p->wire.len--;
	char *at = strstr(p->wire.data, text);
	assert_non_null(at);
	return at;
}

static void test_a_stream_is_published(void **state)
{
	struct place *p = *state;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 1);
	stream_run(p, &liger, 0.6, 2);
	stream_end(p);
	struct put_totals t = put_well(p);
	assert_int_equal(t.files, 1);
	assert_int_equal(t.published, 1);
	assert_int_equal(t.runs_new, 2);
	assert_int_equal(t.objects_new, 6);
	assert_int_equal(t.cases_new, 1);
	assert_int_equal(t.conflicts, 0);
	struct meta_counts c = counts_of(p);
	assert_int_equal(c.schema, SCHEMA_VERSION);
	assert_int_equal(c.runs, 2);
	assert_int_equal(c.publications, 1);
	expect_clean(p);
}

static void test_putting_the_same_stream_twice_changes_nothing(void **state)
{
	struct place *p = *state;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 1);
	stream_end(p);
	put_well(p);
	struct put_totals t = put_well(p);
	assert_int_equal(t.known, 1);
	assert_int_equal(t.published, 0);
	assert_int_equal(t.runs_new, 0);
	assert_int_equal(counts_of(p).publications, 1);
	expect_clean(p);
}

static void test_the_same_rows_at_another_commit_are_carried_not_added(void **state)
{
	struct place *p = *state;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 1);
	stream_end(p);
	put_well(p);
	stream_begin(p, COMMIT_2);
	stream_run(p, &liger, 0.5, 1);
	stream_run(p, &liger, 0.7, 2);
	stream_end(p);
	struct put_totals t = put_well(p);
	assert_int_equal(t.published, 1);
	assert_int_equal(t.runs_new, 1);
	assert_int_equal(t.objects_new, 0);
	struct catalog c;
	struct err e = {0};
	size_t count;
	assert_int_equal(catalog_open(&c, p->root, &e), 0);
	uint32_t *carriers = catalog_carriers(&c, 0, &count);
	assert_int_equal(count, 2);
	assert_int_equal(carriers[0], 0);
	assert_int_equal(carriers[1], 1);
	free(carriers);
	carriers = catalog_carriers(&c, 1, &count);
	assert_int_equal(count, 1);
	assert_int_equal(carriers[0], 1);
	free(carriers);
	catalog_close(&c);
	expect_clean(p);
}

static void test_a_digest_that_does_not_fit_its_bytes_is_refused(void **state)
{
	struct place *p = *state;
	const char *const kinds[] = {"\"kind\":\"OperationSpec\"", "\"operationSlug\"", "\"status\":\"passed\""};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		stream_begin(p, COMMIT_1);
		stream_run(p, &liger, 0.5, 1);
		stream_end(p);
		char *line = find(p, kinds[i]), *digest = strstr(line, "\"digest\":\"sha256:");
		digest[17] = digest[17] == '0' ? '1' : '0';
		expect_refused(p, "the record says sha256:");
	}
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 1);
	stream_end(p);
	*strstr(find(p, "\"latencyNs\":{\"median\":"), "500000") = '6';
	expect_refused(p, "the record says sha256:");
}

static void test_what_is_cited_must_have_been_sent(void **state)
{
	struct place *p = *state;
	struct digest nowhere = digest_of("x", 1);
	buf_clear(&p->wire);
	stream_snapshot(p, "committed", COMMIT_1, "");
	stream_citing(p, "ImplementationRevision", "{\"operation\":{\"specDigest\":\"DIGEST\"}}", &nowhere);
	stream_end(p);
	expect_refused(p, "which is not in the store and was not sent before it");

	buf_clear(&p->wire);
	stream_snapshot(p, "committed", COMMIT_1, "");
	stream_objects(p);
	p->protocol = nowhere;
	stream_case(p, &liger);
	stream_end(p);
	expect_refused(p, "a case cites protocol");

	buf_clear(&p->wire);
	stream_snapshot(p, "committed", COMMIT_1, "");
	stream_objects(p);
	stream_run(p, &liger, 0.5, 1);
	stream_end(p);
	expect_refused(p, "a run cites a case that is not in the store");
}

static void test_an_object_may_not_come_after_what_cites_it(void **state)
{
	struct place *p = *state;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 1);
	stream_end(p);
	/* The implementation cites the operation: swap their lines. */
	char *from = p->wire.data, *operation = strstr(from, "{\"body\":{\"apiVersion\":\"kernelindex.dev/v1alpha1\",\"kind\":\"OperationSpec\"");
	char *after = strchr(operation, '\n') + 1, *implementation = strstr(after, "{\"body\":{\"apiVersion\":\"kernelindex.dev/v1alpha1\",\"kind\":\"ImplementationRevision\"");
	char *end = strchr(implementation, '\n') + 1;
	struct buf swapped = {0};
	buf_add(&swapped, from, (size_t)(operation - from));
	buf_add(&swapped, after, (size_t)(end - after));
	buf_add(&swapped, operation, (size_t)(after - operation));
	buf_add(&swapped, end, p->wire.len - (size_t)(end - from));
	buf_fini(&p->wire);
	p->wire = swapped;
	expect_refused(p, "which is not in the store and was not sent before it");
}

static void test_a_stream_without_its_end_publishes_nothing(void **state)
{
	struct place *p = *state;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 1);
	expect_refused(p, "the stream ended before the report of a.csv");
	p->wire.len -= 5;
	expect_refused(p, "");
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 1);
	stream_end(p);
	put_well(p);
	assert_int_equal(counts_of(p).runs, 1);
	expect_clean(p);
}

static void test_lines_out_of_order_are_refused(void **state)
{
	struct place *p = *state;
	buf_clear(&p->wire);
	stream_objects(p);
	expect_refused(p, "a record before the snapshot line");
	buf_clear(&p->wire);
	stream_end(p);
	expect_refused(p, "a record before the snapshot line");
	stream_begin(p, COMMIT_1);
	buf_str(&p->wire, "\n");
	expect_refused(p, "not a record of wire version 1");
	stream_begin(p, COMMIT_1);
	buf_str(&p->wire, "{\"type\":\"other\"}\n");
	expect_refused(p, "not a record of wire version 1");
}

static void test_a_cut_file_does_not_keep_the_next_one_out(void **state)
{
	struct place *p = *state;
	struct put_totals totals;
	struct err e;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 1);
	stream_snapshot(p, "committed", COMMIT_2, "");
	stream_objects(p);
	stream_case(p, &liger);
	stream_run(p, &liger, 0.6, 2);
	stream_end(p);
	put_wire(p, false, &totals, &e);
	assert_int_equal(totals.published, 1);
	assert_int_equal(totals.runs_new, 1);
	assert_int_equal(counts_of(p).runs, 1);
	expect_clean(p);
}

static void test_a_row_given_three_times_is_one_run(void **state)
{
	struct place *p = *state;
	stream_begin(p, COMMIT_1);
	for (int i = 0; i < 3; i++)
		stream_run(p, &liger, 0.5, 1);
	stream_run(p, &liger, 0.6, 2);
	stream_run(p, &liger, 0.5, 1);
	stream_end(p);
	struct put_totals t = put_well(p);
	assert_int_equal(t.runs_read, 5);
	assert_int_equal(t.runs_new, 2);
	assert_int_equal(t.conflicts, 0);
	expect_clean(p);
}

static void test_repeats_are_seen_across_batches(void **state)
{
	struct place *p = *state;
	enum { DISTINCT = 32768 + 100, REPEATED = 50 };
	stream_begin(p, COMMIT_1);
	for (int i = 0; i < DISTINCT; i++)
		stream_run(p, &liger, 0.5, i);
	for (int i = 0; i < REPEATED; i++)
		stream_run(p, &liger, 0.5, i * 7);
	stream_end(p);
	struct put_totals t = put_well(p);
	assert_int_equal(t.runs_read, DISTINCT + REPEATED);
	assert_int_equal(t.runs_new, DISTINCT);
	assert_int_equal(counts_of(p).runs, DISTINCT);
	expect_clean(p);
}

static void test_a_file_that_fails_in_its_second_batch_leaves_nothing_to_see(void **state)
{
	struct place *p = *state;
	struct put_totals totals;
	struct err e;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 0);
	stream_end(p);
	put_well(p);
	stream_begin(p, COMMIT_2);
	for (int i = 1; i < 32768 + 100; i++)
		stream_run(p, &liger, 0.5, i);
	assert_int_equal(put_wire(p, false, &totals, &e), -1);
	assert_int_equal(counts_of(p).runs, 1);
	expect_clean(p);
	stream_end(p);
	struct put_totals t = put_well(p);
	assert_int_equal(t.runs_new, 32768 + 99);
	assert_int_equal(counts_of(p).runs, 32768 + 100);
	expect_clean(p);
}

static void test_the_same_case_and_time_with_another_value_is_a_conflict(void **state)
{
	struct place *p = *state;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 1);
	stream_run(p, &liger, 0.6, 1);
	stream_run(p, &liger, 0.7, 2);
	stream_end(p);
	assert_int_equal(put_well(p).conflicts, 1);
	stream_begin(p, COMMIT_2);
	stream_run(p, &liger, 0.8, 2);
	stream_end(p);
	struct put_totals t = put_well(p);
	assert_int_equal(t.conflicts, 1);
	assert_int_equal(t.runs_new, 1);
	assert_int_equal(counts_of(p).runs, 4);
	expect_clean(p);
}

static void test_labels_are_kept_once_and_read_back(void **state)
{
	struct place *p = *state;
	static const char *const labels[] = {"{\"liger_version\":\"0.5.5\"}", "{}", "{\"liger_version\":\"0.5.6\"}", "{\"liger_version\":\"0.5.5\"}"};
	stream_begin(p, COMMIT_1);
	for (int i = 0; i < 4; i++)
		stream_run_labelled(p, &liger, 0.5, EPOCH + i * SECOND, labels[i]);
	stream_end(p);
	put_well(p);
	stream_begin(p, COMMIT_2);
	stream_run_labelled(p, &liger, 0.5, EPOCH + 4 * SECOND, labels[2]);
	stream_end(p);
	put_well(p);
	assert_int_equal(counts_of(p).labels, 3);
	struct catalog c;
	struct err e = {0};
	assert_int_equal(catalog_open(&c, p->root, &e), 0);
	for (uint32_t run = 0; run < 5; run++) {
		struct run_row row;
		assert_int_equal(catalog_run(&c, run, &row), 0);
		assert_true(slice_eq(catalog_labels(&c, row.labels), labels[run == 4 ? 2 : run]));
	}
	catalog_close(&c);
	expect_clean(p);
}

static void test_a_body_of_another_layout_is_kept_whole(void **state)
{
	struct place *p = *state;
	struct buf body = {0}, held = {0}, id = {0};
	stream_begin(p, COMMIT_1);
	stream_run_body(p, &liger, 0.5, EPOCH, &body);
	memcpy(strstr(body.data, "\"passed\""), "\"failed\"", 8);
	struct digest d = digest_of(body.data, body.len);
	record_put_run(&p->wire, (struct slice){body.data, body.len}, &d, &p->one, words("{}"), 2);
	stream_end(p);
	put_well(p);
	struct catalog c;
	struct err e = {0};
	struct run_row row;
	assert_int_equal(catalog_open(&c, p->root, &e), 0);
	assert_int_equal(catalog_run(&c, 0, &row), 0);
	assert_int_equal(row.flags, RUN_WHOLE | RUN_UNITS | RUN_FAILED);
	assert_int_equal(run_units(&row, METRIC_LATENCY, row.value_50), 500000);
	assert_int_equal(catalog_body(&c, &row, &held), 0);
	assert_int_equal(held.len, body.len);
	assert_memory_equal(held.data, body.data, body.len);
	assert_int_equal(catalog_external_id(&c, &row, &id), 0);
	assert_string_equal(id.data, "rms_norm/forward/liger/gpu/hidden1-bf16/2025-01-01-00-00-00");
	catalog_close(&c);
	expect_clean(p);
	buf_fini(&body);
	buf_fini(&held);
	buf_fini(&id);
}

/* A body that is kept whole may state any number. */
static void test_a_passed_run_without_a_median_that_an_integer_holds_is_refused(void **state)
{
	struct place *p = *state;
	struct buf body = {0}, other = {0};
	stream_begin(p, COMMIT_1);
	stream_run_body(p, &liger, 0.5, EPOCH, &body);
	const char *at = strstr(body.data, "\"median\":500000");
	assert_non_null(at);
	buf_add(&other, body.data, (size_t)(at - body.data));
	buf_str(&other, "\"median\":1e+300");
	buf_str(&other, at + strlen("\"median\":500000"));
	struct digest d = digest_of(other.data, other.len);
	record_put_run(&p->wire, (struct slice){other.data, other.len}, &d, &p->one, words("{}"), 2);
	stream_end(p);
	expect_refused(p, "a run that passed has no median within 0 and 2^53");
	buf_fini(&body);
	buf_fini(&other);
}

static void test_a_run_must_cite_what_its_case_cites(void **state)
{
	struct place *p = *state;
	struct buf body = {0};
	stream_begin(p, COMMIT_1);
	stream_run_body(p, &liger, 0.5, EPOCH, &body);
	char *cited = strstr(body.data, "\"workloadDigest\":\"sha256:") + 25;
	*cited = *cited == '0' ? '1' : '0';
	struct digest d = digest_of(body.data, body.len);
	record_put_run(&p->wire, (struct slice){body.data, body.len}, &d, &p->one, words("{}"), 2);
	stream_end(p);
	expect_refused(p, "a run cites other objects than its case does");
	buf_fini(&body);
}

/* Digests prove bytes, not that they are JSON: what no reader could load must not get in. */
static void test_what_is_not_canonical_json_is_refused(void **state)
{
	struct place *p = *state;
	static const char *const bodies[] = {"{\"a\" 1}", "{\"a\": 1}", "{\"b\":1,\"a\":1}", "{\"a\":\"\xff\"}"};
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		stream_begin(p, COMMIT_1);
		stream_object(p, bodies[i], "{\"name\":\"x\"}");
		stream_end(p);
		expect_refused(p, "JSON");
	}
	stream_begin(p, COMMIT_1);
	stream_object(p, "{\"a\":1}", "{\"name\" \"x\"}");
	stream_end(p);
	expect_refused(p, "JSON");
	stream_begin(p, COMMIT_1);
	stream_run_labelled(p, &liger, 0.5, EPOCH, "{\"a\" 1}");
	stream_end(p);
	expect_refused(p, "JSON");
	struct stream_case odd = {"rms_norm", "liger-rms-norm", "li\xffger", "1"};
	stream_begin(p, COMMIT_1);
	stream_case(p, &odd);
	stream_end(p);
	expect_refused(p, "JSON");
}

static void test_a_dry_run_leaves_nothing(void **state)
{
	struct place *p = *state;
	struct put_totals totals;
	struct err e;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.5, 1);
	stream_end(p);
	assert_int_equal(put_wire(p, true, &totals, &e), 0);
	assert_int_equal(totals.runs_new, 1);
	struct meta_counts c = counts_of(p);
	assert_int_equal(c.runs + c.objects + c.cases + c.publications, 0);
	assert_int_equal(put_well(p).runs_new, 1);
	expect_clean(p);
}

/* Puts a value of `len` bytes under `id`, deletes that under `dropped`, and commits. */
static void put_and_delete(struct store *st, uint32_t id, size_t len, uint32_t dropped)
{
	struct txn t;
	struct err e = {0};
	struct key key;
	char *value = calloc(1, len);
	assert_int_equal(txn_begin(&t, st, STORE_WRITE, &e), 0);
	assert_int_equal(txn_put(&t, TABLE_EVENTS, key_u32(&key, id), value, len), 0);
	assert_int_equal(txn_delete(&t, TABLE_EVENTS, key_u32(&key, dropped)), 0);
	assert_int_equal(txn_commit(&t), 0);
	free(value);
}

/* LMDB does not write pages that one transaction took and freed once it has a list of free pages at hand, yet its account of the
 * file counts them. */
static void test_a_commit_that_freed_its_last_pages_leaves_a_store_that_opens(void **state)
{
	struct place *p = *state;
	struct store st;
	struct err e = {0};
	assert_int_equal(store_open(&st, p->root, STORE_WRITE, &e), 0);
	for (uint32_t id = 1; id < 8; id++)
		put_and_delete(&st, id, 20000, id - 1);
	put_and_delete(&st, 8, 1 << 20, 8);
	store_close(&st);
	if (store_open(&st, p->root, STORE_READ, &e))
		fail_msg("%s", e.text);
	store_close(&st);
}

static void test_a_newer_schema_is_refused(void **state)
{
	struct place *p = *state;
	struct store st;
	struct txn t;
	struct err e = {0};
	struct meta_counts c;
	assert_int_equal(store_open(&st, p->root, STORE_WRITE, &e), 0);
	assert_int_equal(txn_begin(&t, &st, STORE_WRITE, &e), 0);
	assert_int_equal(txn_counts(&t, &c), 0);
	c.schema = SCHEMA_VERSION + 1;
	assert_int_equal(txn_put_counts(&t, &c), 0);
	assert_int_equal(txn_commit(&t), 0);
	store_close(&st);
	for (int mode = STORE_READ; mode <= STORE_WRITE; mode++) {
		e = (struct err){0};
		assert_int_equal(store_open(&st, p->root, (enum store_mode)mode, &e), -1);
		assert_int_equal(e.code, ERR_CONFIG);
		store_close(&st);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_stream_is_published, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_putting_the_same_stream_twice_changes_nothing, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_the_same_rows_at_another_commit_are_carried_not_added, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_digest_that_does_not_fit_its_bytes_is_refused, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_what_is_cited_must_have_been_sent, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_an_object_may_not_come_after_what_cites_it, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_stream_without_its_end_publishes_nothing, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_lines_out_of_order_are_refused, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_cut_file_does_not_keep_the_next_one_out, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_row_given_three_times_is_one_run, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_repeats_are_seen_across_batches, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_file_that_fails_in_its_second_batch_leaves_nothing_to_see, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_the_same_case_and_time_with_another_value_is_a_conflict, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_labels_are_kept_once_and_read_back, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_body_of_another_layout_is_kept_whole, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_passed_run_without_a_median_that_an_integer_holds_is_refused, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_run_must_cite_what_its_case_cites, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_what_is_not_canonical_json_is_refused, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_dry_run_leaves_nothing, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_commit_that_freed_its_last_pages_leaves_a_store_that_opens, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_newer_schema_is_refused, place_setup, place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
