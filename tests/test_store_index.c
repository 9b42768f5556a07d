/* Sorted index segments in a real catalog: look-ups across segments and blocks, merging, what is published. */
#include "tests/store_stream.h"

#include "store/index.h"

struct bench {
	struct place *place;
	struct store st;
	struct txn t;
	struct err e;
	struct index x;
	uint32_t next_segment;
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof *b);
	place_setup((void **)&b->place);
	assert_int_equal(store_open(&b->st, b->place->root, STORE_WRITE, &b->e), 0);
	assert_int_equal(txn_begin(&b->t, &b->st, STORE_WRITE, &b->e), 0);
	assert_int_equal(index_load(&b->t, INDEX_DIGEST, 0, &b->x), 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;
	index_fini(&b->x);
	txn_abort(&b->t);
	store_close(&b->st);
	place_teardown((void **)&b->place);
	free(b);
	return 0;
}

/* Adds a segment of `count` entries: keys first, first + step, …; runs count on from `run`. */
static void add(struct bench *b, size_t count, uint64_t first, uint64_t step, uint32_t run)
{
	struct index_entry *entries = calloc(count, sizeof *entries);
	for (size_t i = 0; i < count; i++)
		entries[i] = (struct index_entry){first + step * i, run + (uint32_t)i};
	assert_int_equal(index_add(&b->t, &b->x, entries, count, &b->next_segment), 0);
	free(entries);
}

struct hits {
	uint64_t count, first_key, last_key, runs;
};

static void hit(const struct index_entry *entry, void *context)
{
	struct hits *h = context;
	if (h->count++ == 0)
		h->first_key = entry->key;
	h->last_key = entry->key;
	h->runs += entry->run;
}

static struct hits range(struct bench *b, uint64_t low, uint64_t high)
{
	struct hits h = {0};
	assert_int_equal(index_range(&b->t, &b->x, low, high, hit, &h), 0);
	return h;
}

static void expect_blocks(struct bench *b, size_t wanted)
{
	MDB_stat stat;
	mdb_stat(b->t.mdb, b->st.tables[TABLE_INDEX], &stat);
	assert_int_equal(stat.ms_entries, wanted);
}

/* The walk gives entries in strict order; their number. */
static size_t walk(struct bench *b)
{
	struct index_walk *w = index_walk_new(&b->t, &b->x, 0);
	struct index_entry last = {0};
	const struct index_entry *entry;
	size_t count = 0;
	for (; (entry = index_walk_next(w)); count++) {
		if (count && index_entry_cmp(&last, entry) >= 0)
			fail_msg("entry %zu is out of order", count);
		last = *entry;
	}
	index_walk_free(w);
	return count;
}

static void reload(struct bench *b)
{
	assert_int_equal(txn_commit(&b->t), 0);
	assert_int_equal(txn_begin(&b->t, &b->st, STORE_WRITE, &b->e), 0);
	index_fini(&b->x);
	assert_int_equal(index_load(&b->t, INDEX_DIGEST, 0, &b->x), 0);
}

static void test_an_index_that_was_never_written_is_empty(void **state)
{
	struct bench *b = *state;
	assert_int_equal(b->x.count, 0);
	assert_int_equal(range(b, 0, UINT64_MAX).count, 0);
	assert_int_equal(walk(b), 0);
	assert_int_equal(index_add(&b->t, &b->x, NULL, 0, &b->next_segment), 0);
	assert_int_equal(b->x.count, 0);
	assert_int_equal(index_publish(&b->t, &b->x, &b->next_segment), 0);
}

static void test_keys_are_found_at_and_across_the_ends_of_blocks(void **state)
{
	struct bench *b = *state;
	static const uint64_t edges[] = {0, 1, ENTRIES_PER_BLOCK - 1, ENTRIES_PER_BLOCK, ENTRIES_PER_BLOCK + 1, 2 * ENTRIES_PER_BLOCK - 1,
					 2 * ENTRIES_PER_BLOCK, 11999};
	assert_int_equal(ENTRIES_PER_BLOCK, 5460);
	add(b, 12000, 10, 2, 0);
	expect_blocks(b, 3);
	for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
		uint64_t key = 10 + 2 * edges[i];
		struct hits h = range(b, key, key);
		assert_int_equal(h.count, 1);
		assert_int_equal(h.runs, edges[i]);
		assert_int_equal(range(b, key + 1, key + 1).count, 0);
	}
	struct hits h = range(b, 10 + 2 * 5000, 10 + 2 * 6000);
	assert_int_equal(h.count, 1001);
	assert_int_equal(h.first_key, 10 + 2 * 5000);
	assert_int_equal(h.last_key, 10 + 2 * 6000);
	assert_int_equal(range(b, 0, UINT64_MAX).count, 12000);
	assert_int_equal(range(b, 0, 9).count, 0);
	assert_int_equal(range(b, 24009, UINT64_MAX).count, 0);
	assert_int_equal(range(b, 24008, UINT64_MAX).count, 1);
	assert_int_equal(walk(b), 12000);
}

static void test_one_key_may_fill_more_than_a_block(void **state)
{
	struct bench *b = *state;
	struct index_entry *entries = calloc(12000, sizeof *entries);
	for (uint32_t i = 0; i < 12000; i++)
		entries[i] = (struct index_entry){i < 3000 ? 5 : i < 9000 ? 7 : 9, i};
	assert_int_equal(index_add(&b->t, &b->x, entries, 12000, &b->next_segment), 0);
	free(entries);
	assert_int_equal(range(b, 5, 5).count, 3000);
	assert_int_equal(range(b, 7, 7).count, 6000);
	assert_int_equal(range(b, 9, 9).count, 3000);
	assert_int_equal(range(b, 6, 8).count, 6000);
	assert_int_equal(range(b, 6, 6).count, 0);
}

static void test_a_key_is_found_in_every_segment(void **state)
{
	struct bench *b = *state;
	add(b, 100, 0, 1, 0);
	add(b, 100, 50, 1, 1000);
	add(b, 1, 60, 1, 5000);
	struct hits h = range(b, 60, 60);
	assert_int_equal(h.count, 3);
	assert_int_equal(h.runs, 60 + 1010 + 5000);
	assert_int_equal(range(b, 0, UINT64_MAX).count, 201);
	assert_int_equal(walk(b), 201);
}

static void test_only_published_segments_are_there_afterwards(void **state)
{
	struct bench *b = *state;
	add(b, 10, 0, 1, 0);
	assert_int_equal(index_publish(&b->t, &b->x, &b->next_segment), 0);
	add(b, 10, 100, 1, 10);
	assert_int_equal(b->x.published, 1);
	assert_int_equal(range(b, 0, UINT64_MAX).count, 20);
	reload(b);
	assert_int_equal(b->x.count, 1);
	assert_int_equal(range(b, 0, UINT64_MAX).count, 10);
}

static void test_four_of_a_size_are_merged_and_their_blocks_freed(void **state)
{
	struct bench *b = *state;
	for (uint32_t s = 0; s < 4; s++)
		add(b, 6000, s, 4, s * 6000);
	expect_blocks(b, 8);
	assert_int_equal(index_publish(&b->t, &b->x, &b->next_segment), 0);
	assert_int_equal(b->x.count, 1);
	assert_int_equal(b->x.segments[0].count, 24000);
	expect_blocks(b, 5);
	assert_int_equal(walk(b), 24000);
	for (uint64_t key = 0; key < 24000; key += 997) {
		struct hits h = range(b, key, key);
		assert_int_equal(h.count, 1);
		assert_int_equal(h.runs, key % 4 * 6000 + key / 4);
	}
	reload(b);
	assert_int_equal(b->x.count, 1);
	assert_int_equal(walk(b), 24000);
}

static void test_many_small_publications_leave_few_segments(void **state)
{
	struct bench *b = *state;
	for (uint32_t n = 0; n < 200; n++) {
		add(b, 100, n * 7919 % 200 * 100, 1, n * 100);
		assert_int_equal(index_publish(&b->t, &b->x, &b->next_segment), 0);
		if (b->x.count > 9)
			fail_msg("%zu segments after %u publications", b->x.count, n + 1);
	}
	reload(b);
	assert_int_equal(walk(b), 20000);
	assert_int_equal(range(b, 0, UINT64_MAX).count, 20000);
	assert_int_equal(range(b, 12345, 12345).count, 1);
}

static void test_compacting_leaves_published_segments_alone(void **state)
{
	struct bench *b = *state;
	for (uint32_t s = 0; s < 3; s++)
		add(b, 10, s * 100, 1, s * 10);
	assert_int_equal(index_publish(&b->t, &b->x, &b->next_segment), 0);
	assert_int_equal(b->x.count, 3);
	for (uint32_t s = 3; s < 7; s++)
		add(b, 10, s * 100, 1, s * 10);
	assert_int_equal(index_compact(&b->t, &b->x, &b->next_segment), 0);
	assert_int_equal(b->x.count, 4);
	assert_int_equal(b->x.published, 3);
	assert_int_equal(b->x.segments[3].count, 40);
	assert_int_equal(walk(b), 70);
}

static void test_a_missing_block_is_damage(void **state)
{
	struct bench *b = *state;
	struct key key;
	add(b, 12000, 0, 1, 0);
	assert_int_equal(txn_delete(&b->t, TABLE_INDEX, key_index(&key, INDEX_DIGEST, 0, 0, 1)), 0);
	struct hits h = {0};
	assert_int_equal(index_range(&b->t, &b->x, 6000, 6000, hit, &h), -1);
	assert_int_equal(b->e.code, ERR_CORRUPT);
}

static void test_indexes_of_other_kinds_and_slots_are_apart(void **state)
{
	struct bench *b = *state;
	struct index other;
	add(b, 10, 0, 1, 0);
	assert_int_equal(index_publish(&b->t, &b->x, &b->next_segment), 0);
	assert_int_equal(index_load(&b->t, INDEX_CASE, 0, &other), 0);
	assert_int_equal(other.count, 0);
	assert_int_equal(index_load(&b->t, INDEX_DIGEST, 1, &other), 0);
	assert_int_equal(other.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_an_index_that_was_never_written_is_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keys_are_found_at_and_across_the_ends_of_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_key_may_fill_more_than_a_block, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_key_is_found_in_every_segment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only_published_segments_are_there_afterwards, setup, teardown),
		cmocka_unit_test_setup_teardown(test_four_of_a_size_are_merged_and_their_blocks_freed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_small_publications_leave_few_segments, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compacting_leaves_published_segments_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_missing_block_is_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_indexes_of_other_kinds_and_slots_are_apart, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
