/* Cohorts as read from a real catalog: ranks, ties, supersession, kernels that share a contract. */
#include "tests/store_stream.h"

#include "store/cohort.h"

#define COMMIT_1 "1111111111111111111111111111111111111111"
#define COMMIT_2 "2222222222222222222222222222222222222222"

static const struct stream_case torch = {"rms_norm", "liger-rms-norm", "torch", "1"};
static const struct stream_case huggingface = {"rms_norm", "liger-rms-norm", "huggingface", "1"};
static const struct stream_case compiled = {"rms_norm", "liger-rms-norm", "torch_compile", "1"};
static const struct stream_case sibling = {"rms_norm_token", "liger-rms-norm-token", "liger", "1"};

struct row {
	const struct stream_case *of;
	double ms;
	int second;
};

/* Publishes rows, the last of which is empty, in one file. */
static void publish(struct place *p, const char *commit, const struct row *rows)
{
	stream_begin(p, commit);
	for (const struct row *r = rows; r->of; r++)
		if (r->of != &liger)
			stream_case(p, r->of);
	for (const struct row *r = rows; r->of; r++)
		stream_run(p, r->of, r->ms, r->second);
	stream_end(p);
	put_well(p);
}

struct held {
	struct catalog c;
	struct cohort k;
	struct err e;
};

/* Opens the catalog and loads the only cohort there is. */
static void load(struct place *p, struct held *h)
{
	h->e = (struct err){0};
	assert_int_equal(catalog_open(&h->c, p->root, &h->e), 0);
	const struct catalog_case *of = catalog_case(&h->c, 0);
	assert_non_null(of);
	assert_int_equal(cohort_load(&h->c, &of->cohort, &h->k), 0);
}

static void unload(struct held *h)
{
	cohort_fini(&h->k);
	catalog_close(&h->c);
}

static void test_ranks_are_dense_and_ties_share_one(void **state)
{
	struct place *p = *state;
	struct held h;
	publish(p, COMMIT_1, (const struct row[]){{&liger, 0.3, 1}, {&torch, 0.1, 1}, {&huggingface, 0.2, 1}, {&compiled, 0.1, 2}, {0}});
	load(p, &h);
	assert_int_equal(h.k.count, 4);
	assert_int_equal(h.k.ranked, 4);
	assert_int_equal(h.k.kernels, 1);
	static const uint32_t ranks[] = {1, 1, 2, 3}, runs[] = {3, 1, 2, 0}; /* of the tied ones the newer first */
	static const bool tied[] = {false, true, false, false};
	static const int64_t primary[] = {100000, 100000, 200000, 300000};
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(h.k.members[i].rank, ranks[i]);
		assert_int_equal(h.k.members[i].run, runs[i]);
		assert_int_equal(h.k.members[i].tied, tied[i]);
		assert_int_equal(h.k.members[i].primary, primary[i]);
		assert_null(unranked_code(h.k.members[i].unranked));
	}
	assert_int_equal(cohort_member(&h.k, 2)->rank, 2);
	assert_null(cohort_member(&h.k, 4));
	unload(&h);
}

static void test_a_tie_at_one_time_is_in_the_order_of_digests(void **state)
{
	struct place *p = *state;
	struct held h;
	publish(p, COMMIT_1, (const struct row[]){{&liger, 0.1, 1}, {&torch, 0.1, 1}, {&huggingface, 0.1, 1}, {0}});
	load(p, &h);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(h.k.members[i].rank, 1);
		assert_true(i == 0 || digest_cmp(&h.k.members[i - 1].row.digest, &h.k.members[i].row.digest) < 0);
	}
	unload(&h);
}

static void test_in_a_file_channel_the_next_later_run_supersedes(void **state)
{
	struct place *p = *state;
	struct held h;
	publish(p, COMMIT_1, (const struct row[]){{&liger, 0.1, 30}, {&liger, 0.2, 10}, {0}});
	publish(p, COMMIT_2, (const struct row[]){{&liger, 0.3, 20}, {0}}); /* published later, observed in between */
	load(p, &h);
	assert_int_equal(h.k.count, 3);
	assert_int_equal(h.k.ranked, 1);
	assert_int_equal(cohort_member(&h.k, 0)->rank, 1);
	assert_string_equal(unranked_code(cohort_member(&h.k, 1)->unranked), "SUPERSEDED");
	assert_int_equal(cohort_member(&h.k, 1)->successor, 2);
	assert_string_equal(unranked_code(cohort_member(&h.k, 2)->unranked), "SUPERSEDED");
	assert_int_equal(cohort_member(&h.k, 2)->successor, 0);
	unload(&h);
}

static void test_runs_of_one_time_are_superseded_together(void **state)
{
	struct place *p = *state;
	struct held h;
	publish(p, COMMIT_1, (const struct row[]){{&liger, 0.1, 1}, {&liger, 0.2, 1}, {&liger, 0.3, 2}, {&liger, 0.4, 2}, {0}});
	load(p, &h);
	assert_int_equal(h.k.ranked, 2);
	uint32_t least = digest_cmp(&cohort_member(&h.k, 2)->row.digest, &cohort_member(&h.k, 3)->row.digest) < 0 ? 2 : 3;
	for (uint32_t run = 0; run < 2; run++) {
		assert_int_equal(cohort_member(&h.k, run)->unranked, UNRANKED_SUPERSEDED);
		assert_int_equal(cohort_member(&h.k, run)->successor, least);
	}
	assert_int_equal(cohort_member(&h.k, 2)->rank, 1);
	assert_int_equal(cohort_member(&h.k, 3)->rank, 2);
	unload(&h);
}

static void test_entries_do_not_supersede_each_other(void **state)
{
	struct place *p = *state;
	struct held h;
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
	load(p, &h);
	assert_int_equal(h.k.ranked, 2);
	assert_int_equal(cohort_member(&h.k, 0)->rank, 1);
	assert_int_equal(cohort_member(&h.k, 1)->rank, 2);
	unload(&h);

	publish(p, COMMIT_1, (const struct row[]){{&liger, 0.1, 1}, {&liger, 0.3, 3}, {0}}); /* the older run stands in a file, too, and a newer one replaces it there */
	load(p, &h);
	assert_int_equal(h.k.count, 3);
	assert_int_equal(cohort_member(&h.k, 0)->unranked, UNRANKED_SUPERSEDED);
	assert_int_equal(cohort_member(&h.k, 0)->successor, 2);
	assert_int_equal(cohort_member(&h.k, 1)->rank, 1);
	assert_int_equal(cohort_member(&h.k, 2)->rank, 2);
	unload(&h);
}

static void test_files_of_different_channels_do_not_supersede_each_other(void **state)
{
	struct place *p = *state;
	struct held h;
	stream_begin(p, COMMIT_1);
	stream_run(p, &liger, 0.1, 1);
	stream_end(p);
	stream_snapshot(p, "cutile", COMMIT_1, "");
	stream_run(p, &liger, 0.2, 2);
	stream_end(p);
	put_well(p);
	load(p, &h);
	assert_int_equal(h.k.ranked, 2);
	unload(&h);
}

static void test_a_run_that_failed_is_not_ranked(void **state)
{
	struct place *p = *state;
	struct held h;
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
	load(p, &h);
	assert_int_equal(h.k.count, 2);
	assert_int_equal(h.k.ranked, 1);
	assert_int_equal(h.k.members[0].run, 0);
	assert_int_equal(h.k.members[1].rank, 0);
	assert_string_equal(unranked_code(h.k.members[1].unranked), "STATUS_FAILED");
	unload(&h);
	buf_fini(&body);
}

static void test_kernels_with_one_contract_are_told_apart_beside_the_common_rank(void **state)
{
	struct place *p = *state;
	struct held h;
	publish(p, COMMIT_1, (const struct row[]){{&torch, 0.2, 1}, {&sibling, 0.1, 1}, {&liger, 0.3, 1}, {0}});
	load(p, &h);
	assert_int_equal(h.k.kernels, 2);
	static const uint32_t runs[] = {1, 0, 2}, kernel_ranks[] = {1, 1, 2};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(h.k.members[i].run, runs[i]);
		assert_int_equal(h.k.members[i].rank, i + 1);
		assert_int_equal(h.k.members[i].kernel_rank, kernel_ranks[i]);
	}
	unload(&h);
}

static void test_keys_are_found_by_prefix(void **state)
{
	struct place *p = *state;
	struct held h;
	struct digest found;
	char text[DIGEST_TEXT + 1];
	publish(p, COMMIT_1, (const struct row[]){{&liger, 0.2, 1}, {0}});
	load(p, &h);
	digest_text(&h.k.key, text);
	assert_int_equal(cohort_find(&h.c, text, &found), 0);
	assert_int_equal(digest_cmp(&found, &h.k.key), 0);
	text[7 + 8] = '\0';
	assert_int_equal(cohort_find(&h.c, text, &found), 0);
	assert_int_equal(cohort_find(&h.c, text + 7, &found), 0);
	assert_int_equal(digest_cmp(&found, &h.k.key), 0);
	text[7 + 7] = '\0';
	assert_int_equal(cohort_find(&h.c, text, &found), -1);
	assert_int_equal(h.e.code, ERR_USAGE);
	h.e = (struct err){0};
	assert_int_equal(cohort_find(&h.c, "0000000000000000", &found), -1);
	assert_int_equal(h.e.code, ERR_NOTFOUND);
	unload(&h);
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
