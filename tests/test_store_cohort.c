/* Cohorts as read from a real catalog: ranks, ties, supersession, kernels that share a contract. */
#include "tests/store_stream.h"

#include "store/cohort.h"

#define COMMIT_1 "1111111111111111111111111111111111111111"
#define COMMIT_2 "2222222222222222222222222222222222222222"

static const struct stream_case torch = {"rms_norm", "liger-rms-norm", "torch", "1"};
static const struct stream_case huggingface = {"rms_norm", "liger-rms-norm", "huggingface", "1"};
static const struct stream_case compiled = {"rms_norm", "liger-rms-norm", "torch_compile", "1"};
static const struct stream_case sibling = {"rms_norm_token", "liger-rms-norm-token", "liger", "1"};

/* Opens the catalog and loads the only cohort there is. */
static void load(struct place *p, struct catalog *c, struct cohort *k, struct err *e)
{
	*e = (struct err){0};
	assert_int_equal(catalog_open(c, p->root, e), 0);
	const struct catalog_case *of = catalog_case(c, 0);
	assert_non_null(of);
	assert_int_equal(cohort_load(c, &of->cohort, k), 0);
}

static void unload(struct catalog *c, struct cohort *k)
{
	cohort_fini(k);
	catalog_close(c);
}

static void test_ranks_are_dense_and_ties_share_one(void **state)
{
	struct place *p = *state;
	struct catalog c;
	struct cohort k;
	struct err e;
	stream_begin(p, COMMIT_1);
	stream_case(p, &torch);
	stream_case(p, &huggingface);
	stream_case(p, &compiled);
	stream_run(p, &liger, 0.3, 1);
	stream_run(p, &torch, 0.1, 1);
	stream_run(p, &huggingface, 0.2, 1);
	stream_run(p, &compiled, 0.1, 2);
	stream_end(p);
	put_well(p);
	load(p, &c, &k, &e);
	assert_int_equal(k.count, 4);
	assert_int_equal(k.ranked, 4);
	assert_int_equal(k.kernels, 1);
	static const uint32_t ranks[] = {1, 1, 2, 3}, runs[] = {3, 1, 2, 0}; /* of the tied ones the newer first */
	static const bool tied[] = {false, true, false, false};
	static const int64_t primary[] = {100000, 100000, 200000, 300000};
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(k.members[i].rank, ranks[i]);
		assert_int_equal(k.members[i].run, runs[i]);
		assert_int_equal(k.members[i].tied, tied[i]);
		assert_int_equal(k.members[i].primary, primary[i]);
		assert_null(unranked_code(k.members[i].unranked));
	}
	assert_int_equal(cohort_member(&k, 2)->rank, 2);
	assert_null(cohort_member(&k, 4));
	unload(&c, &k);
}

static void test_a_tie_at_one_time_is_in_the_order_of_digests(void **state)
{
	struct place *p = *state;
	struct catalog c;
	struct cohort k;
	struct err e;
	stream_begin(p, COMMIT_1);
	stream_case(p, &torch);
	stream_case(p, &huggingface);
	stream_run(p, &liger, 0.1, 1);
	stream_run(p, &torch, 0.1, 1);
	stream_run(p, &huggingface, 0.1, 1);
	stream_end(p);
	put_well(p);
	load(p, &c, &k, &e);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(k.members[i].rank, 1);
		assert_true(i == 0 || digest_cmp(&k.members[i - 1].row.digest, &k.members[i].row.digest) < 0);
	}
	unload(&c, &k);
}

static void test_in_a_file_channel_the_next_later_run_supersedes(void **state)
{
	struct place *p = *state;
	struct catalog c;
	struct cohort k;
	struct err e;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.1, 30);
	stream_run(p, &liger, 0.2, 10);
	stream_end(p);
	put_well(p);
	stream_begin(p, COMMIT_2); /* published later, observed in between */
	stream_run(p, &liger, 0.3, 20);
	stream_end(p);
	put_well(p);
	load(p, &c, &k, &e);
	assert_int_equal(k.count, 3);
	assert_int_equal(k.ranked, 1);
	assert_int_equal(cohort_member(&k, 0)->rank, 1);
	assert_string_equal(unranked_code(cohort_member(&k, 1)->unranked), "SUPERSEDED");
	assert_int_equal(cohort_member(&k, 1)->successor, 2);
	assert_string_equal(unranked_code(cohort_member(&k, 2)->unranked), "SUPERSEDED");
	assert_int_equal(cohort_member(&k, 2)->successor, 0);
	unload(&c, &k);
}

static void test_runs_of_one_time_are_superseded_together(void **state)
{
	struct place *p = *state;
	struct catalog c;
	struct cohort k;
	struct err e;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.1, 1);
	stream_run(p, &liger, 0.2, 1);
	stream_run(p, &liger, 0.3, 2);
	stream_run(p, &liger, 0.4, 2);
	stream_end(p);
	put_well(p);
	load(p, &c, &k, &e);
	assert_int_equal(k.ranked, 2);
	uint32_t least = digest_cmp(&cohort_member(&k, 2)->row.digest, &cohort_member(&k, 3)->row.digest) < 0 ? 2 : 3;
	for (uint32_t run = 0; run < 2; run++) {
		assert_int_equal(cohort_member(&k, run)->unranked, UNRANKED_SUPERSEDED);
		assert_int_equal(cohort_member(&k, run)->successor, least);
	}
	assert_int_equal(cohort_member(&k, 2)->rank, 1);
	assert_int_equal(cohort_member(&k, 3)->rank, 2);
	unload(&c, &k);
}

static void test_entries_do_not_supersede_each_other(void **state)
{
	struct place *p = *state;
	struct catalog c;
	struct cohort k;
	struct err e;
	buf_clear(&p->wire);
	stream_snapshot(p, "gh-pages", COMMIT_1, "aaaaaaa");
	stream_objects(p);
	stream_case(p, &liger);
	stream_run(p, &liger, 0.1, 1);
	stream_end(p);
	stream_snapshot(p, "gh-pages", COMMIT_2, "bbbbbbb");
	stream_run(p, &liger, 0.2, 2);
	stream_end(p);
	put_well(p);
	load(p, &c, &k, &e);
	assert_int_equal(k.ranked, 2);
	assert_int_equal(cohort_member(&k, 0)->rank, 1);
	assert_int_equal(cohort_member(&k, 1)->rank, 2);
	unload(&c, &k);

	stream_begin(p, COMMIT_1); /* the older run stands in a file, too, and a newer one replaces it there */
	stream_run(p, &liger, 0.1, 1);
	stream_run(p, &liger, 0.3, 3);
	stream_end(p);
	put_well(p);
	load(p, &c, &k, &e);
	assert_int_equal(k.count, 3);
	assert_int_equal(cohort_member(&k, 0)->unranked, UNRANKED_SUPERSEDED);
	assert_int_equal(cohort_member(&k, 0)->successor, 2);
	assert_int_equal(cohort_member(&k, 1)->rank, 1);
	assert_int_equal(cohort_member(&k, 2)->rank, 2);
	unload(&c, &k);
}

static void test_files_of_different_channels_do_not_supersede_each_other(void **state)
{
	struct place *p = *state;
	struct catalog c;
	struct cohort k;
	struct err e;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.1, 1);
	stream_end(p);
	stream_snapshot(p, "cutile", COMMIT_1, "");
	stream_run(p, &liger, 0.2, 2);
	stream_end(p);
	put_well(p);
	load(p, &c, &k, &e);
	assert_int_equal(k.ranked, 2);
	unload(&c, &k);
}

static void test_a_run_that_failed_is_not_ranked(void **state)
{
	struct place *p = *state;
	struct catalog c;
	struct cohort k;
	struct err e;
	struct buf body = {0};
	stream_begin(p, COMMIT_1);
	stream_case(p, &torch);
	stream_run(p, &torch, 0.5, 1);
	stream_run_body(p, &liger, 0.1, EPOCH, &body);
	memcpy(strstr(body.data, "\"passed\""), "\"failed\"", 8);
	struct digest d = digest_of(body.data, body.len);
	record_put_run(&p->wire, (struct slice){body.data, body.len}, &d, &p->one, words("{}"), 2);
	stream_end(p);
	put_well(p);
	load(p, &c, &k, &e);
	assert_int_equal(k.count, 2);
	assert_int_equal(k.ranked, 1);
	assert_int_equal(k.members[0].run, 0);
	assert_int_equal(k.members[1].rank, 0);
	assert_string_equal(unranked_code(k.members[1].unranked), "STATUS_FAILED");
	unload(&c, &k);
	buf_fini(&body);
}

static void test_kernels_with_one_contract_are_told_apart_beside_the_common_rank(void **state)
{
	struct place *p = *state;
	struct catalog c;
	struct cohort k;
	struct err e;
	stream_begin(p, COMMIT_1);
	stream_case(p, &torch);
	stream_case(p, &sibling);
	stream_run(p, &torch, 0.2, 1);
	stream_run(p, &sibling, 0.1, 1);
	stream_run(p, &liger, 0.3, 1);
	stream_end(p);
	put_well(p);
	load(p, &c, &k, &e);
	assert_int_equal(k.kernels, 2);
	static const uint32_t runs[] = {1, 0, 2}, kernel_ranks[] = {1, 1, 2};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(k.members[i].run, runs[i]);
		assert_int_equal(k.members[i].rank, i + 1);
		assert_int_equal(k.members[i].kernel_rank, kernel_ranks[i]);
	}
	unload(&c, &k);
}

static void test_keys_are_found_by_prefix(void **state)
{
	struct place *p = *state;
	struct catalog c;
	struct cohort k;
	struct err e;
	struct digest found;
	char text[DIGEST_TEXT + 1];
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.2, 1);
	stream_end(p);
	put_well(p);
	load(p, &c, &k, &e);
	digest_text(&k.key, text);
	assert_int_equal(cohort_find(&c, text, &found), 0);
	assert_int_equal(digest_cmp(&found, &k.key), 0);
	text[7 + 8] = '\0';
	assert_int_equal(cohort_find(&c, text, &found), 0);
	assert_int_equal(cohort_find(&c, text + 7, &found), 0);
	assert_int_equal(digest_cmp(&found, &k.key), 0);
	text[7 + 7] = '\0';
	assert_int_equal(cohort_find(&c, text, &found), -1);
	assert_int_equal(e.code, ERR_USAGE);
	e = (struct err){0};
	assert_int_equal(cohort_find(&c, "0000000000000000", &found), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	unload(&c, &k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ranks_are_dense_and_ties_share_one, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_tie_at_one_time_is_in_the_order_of_digests, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_in_a_file_channel_the_next_later_run_supersedes, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_runs_of_one_time_are_superseded_together, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_entries_do_not_supersede_each_other, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_files_of_different_channels_do_not_supersede_each_other, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_run_that_failed_is_not_ranked, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_kernels_with_one_contract_are_told_apart_beside_the_common_rank, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_keys_are_found_by_prefix, place_setup, place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
