/* A store of schema 1 made by a program of that time (fixtures/store), upgraded, and damaged byte by byte. */
#include <sys/wait.h>
#include <zstd.h>

#include "core/file.h"
#include "store/check.h"
#include "store/known.h"
#include "store/pages.h"
#include "store/recover.h"
#include "store/seal.h"
#include "tests/store_stream.h"

enum { FIXTURE_RUNS = 13, FIXTURE_MAX = 1 << 20 };

static void store_path(const struct place *p, struct buf *out)
{
	buf_clear(out);
	buf_printf(out, "%s/data.mdb", p->root);
}

static void write_store(const struct place *p, const struct buf *bytes)
{
	struct buf path = {0};
	store_path(p, &path);
	FILE *f = fopen(path.data, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes->data, 1, bytes->len, f), bytes->len);
	assert_int_equal(fclose(f), 0);
	buf_fini(&path);
}

static void unpack_fixture(const struct place *p)
{
	struct buf packed = {0}, bytes = {0};
	struct err e = {0};
	if (file_read("fixtures/store/schema-1.mdb.zst", FIXTURE_MAX, &packed, &e))
		fail_msg("%s", e.text);
	buf_reserve(&bytes, FIXTURE_MAX);
	bytes.len = ZSTD_decompress(bytes.data, FIXTURE_MAX, packed.data, packed.len);
	assert_false(ZSTD_isError(bytes.len));
	write_store(p, &bytes);
	buf_fini(&packed);
	buf_fini(&bytes);
}

static void upgrade(const struct place *p)
{
	struct store st;
	struct err e = {0};
	if (store_open(&st, p->root, STORE_WRITE, &e))
		fail_msg("%s", e.text);
	store_close(&st);
}

/* Adds a value as readers have it: of objects and cases the text, for several packed forms unpack to one text. */
static int add_value(struct catalog *c, enum table table, const MDB_val *value, struct digest_stream *s)
{
	struct buf text = {0};
	struct digest d, cohort = {{0}};
	int rc = 0;
	if (table == TABLE_OBJECTS || table == TABLE_CASES) {
		rc = known_unpack(c->packer, value, &d, table == TABLE_CASES ? &cohort : NULL, &text, c->err);
		digest_stream_add(s, &d, sizeof d);
		digest_stream_add(s, &cohort, sizeof cohort);
	} else {
		buf_add(&text, value->mv_data, value->mv_size);
	}
	digest_stream_add(s, text.data, text.len);
	buf_fini(&text);
	return rc;
}

/* Every key and value of every table. */
static int content_of(struct catalog *c, struct digest *out)
{
	struct digest_stream *s = digest_stream_new();
	for (int table = 0; table < TABLES; table++) {
		MDB_cursor *cursor = table == TABLE_META ? NULL : txn_cursor(&c->t, (enum table)table);
		MDB_val key, value;
		while (cursor && txn_move(&c->t, (enum table)table, cursor, MDB_NEXT, &key, &value) == 1) {
			digest_stream_add(s, key.mv_data, key.mv_size);
			if (add_value(c, (enum table)table, &value, s))
				break;
		}
		if (cursor)
			mdb_cursor_close(cursor);
	}
	*out = digest_stream_end(s);
	return c->err->code ? -1 : 0;
}

struct state {
	struct digest content;
	struct check_totals totals;
	uint64_t shape_problems;
	uint32_t schema;
};

/* Looks at a store as `ki check` does: -1 and an error when it cannot be read. */
static int look(const struct place *p, struct state *out, struct err *e)
{
	struct pages_totals pages;
	struct catalog c;
	FILE *nowhere = fopen("/dev/null", "w");
	*out = (struct state){.shape_problems = 0};
	*e = (struct err){0};
	assert_non_null(nowhere);
	int rc = pages_check(p->root, nowhere, &pages, NULL, e);
	out->shape_problems = pages.problems;
	if (rc == 0 && pages.problems == 0) {
		rc = catalog_open(&c, p->root, e);
		out->schema = c.counts.schema;
		if (rc == 0)
			rc = check_catalog(&c, nowhere, &out->totals);
		if (rc == 0)
			rc = content_of(&c, &out->content);
		catalog_close(&c);
	}
	fclose(nowhere);
	return rc;
}

static struct state look_well(const struct place *p)
{
	struct state s;
	struct err e;
	if (look(p, &s, &e))
		fail_msg("%s", e.text);
	assert_int_equal(s.shape_problems, 0);
	assert_int_equal(s.totals.problems, 0);
	assert_int_equal(s.totals.runs, FIXTURE_RUNS);
	return s;
}

static void a_store_of_schema_1_is_read_as_it_is_and_upgraded_by_the_first_writer(void **state)
{
	struct place *p = *state;
	unpack_fixture(p);
	struct state old = look_well(p);
	assert_int_equal(old.schema, 1);
	assert_true(old.totals.unsealed);
	upgrade(p);
	struct state new = look_well(p);
	assert_int_equal(new.schema, 2);
	assert_false(new.totals.unsealed);
	assert_int_equal(digest_cmp(&old.content, &new.content), 0);
	upgrade(p);
	struct state again = look_well(p);
	assert_int_equal(digest_cmp(&old.content, &again.content), 0);
}

static void what_is_put_into_an_upgraded_store_is_sealed_too(void **state)
{
	struct place *p = *state;
	struct state s;
	struct err e;
	unpack_fixture(p);
	stream_begin(p, "222222222222");
	stream_run(p, &liger, 1.5, 1);
	stream_end(p);
	put_well(p);
	assert_int_equal(look(p, &s, &e), 0);
	assert_int_equal(s.totals.problems, 0);
	assert_int_equal(s.totals.runs, FIXTURE_RUNS + 1);
}

/* As a kill after the first of its transactions leaves it: runs are sealed, and the schema has not moved. */
static void an_upgrade_that_was_cut_off_is_taken_up_again(void **state)
{
	struct place *p = *state;
	struct key key;
	MDB_val value, raw;
	MDB_dbi runs;
	MDB_env *env;
	unpack_fixture(p);
	struct state old = look_well(p);
	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_set_maxdbs(env, TABLES), 0);
	assert_int_equal(mdb_env_open(env, p->root, 0, 0644), 0);
	MDB_txn *txn;
	assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
	assert_int_equal(mdb_dbi_open(txn, "runs", 0, &runs), 0);
	key_u32(&key, 0);
	assert_int_equal(mdb_get(txn, runs, &key.val, &value), 0);
	struct buf sealed = {0};
	buf_add(&sealed, value.mv_data, value.mv_size);
	buf_reserve(&sealed, SEAL_SIZE);
	seal_make(TABLE_RUNS, &key.val, (struct slice){sealed.data, sealed.len}, (uint8_t *)sealed.data + sealed.len);
	raw = (MDB_val){sealed.len + SEAL_SIZE, sealed.data};
	assert_int_equal(mdb_put(txn, runs, &key.val, &raw, 0), 0);
	assert_int_equal(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
	buf_fini(&sealed);
	struct state half = look_well(p);
	assert_int_equal(half.schema, 1);
	upgrade(p);
	struct state new = look_well(p);
	assert_int_equal(new.schema, 2);
	assert_int_equal(digest_cmp(&old.content, &new.content), 0);
}

enum fate { FOUND, HARMLESS, MISSED, BROKE };

/* In a process of its own, for it might not come back. */
static enum fate fate_of(const struct place *p, const struct digest *content)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		struct state s;
		struct err e;
		alarm(60);
		if (look(p, &s, &e))
			_exit(e.code == ERR_CORRUPT ? FOUND : BROKE);
		if (s.shape_problems || s.totals.problems)
			_exit(FOUND);
		_exit(digest_cmp(&s.content, content) == 0 ? HARMLESS : MISSED);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? (enum fate)WEXITSTATUS(status) : BROKE;
}

/* A byte that changes nothing that anybody reads is unused room of its page. */
static void any_flipped_byte_of_a_live_page_is_found_or_holds_nothing(void **state)
{
	struct place *p = *state;
	struct pages_totals totals;
	struct err e = {0};
	struct buf path = {0}, bytes = {0};
	uint8_t *live;
	uint64_t seed = 1, counts[4] = {0};
	unpack_fixture(p);
	upgrade(p);
	struct state whole = look_well(p);
	assert_int_equal(pages_check(p->root, stderr, &totals, &live, &e), 0);
	store_path(p, &path);
	assert_int_equal(file_read(path.data, FIXTURE_MAX, &bytes, &e), 0);
	size_t step = getenv("KI_TEST_LONG") ? 1 : 211;
	for (size_t at = 0; at < bytes.len; at += step) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		char flip = (char)(1 + (seed >> 33) % 255);
		if (!live[at / 4096])
			continue;
		bytes.data[at] ^= flip;
		write_store(p, &bytes);
		bytes.data[at] ^= flip;
		enum fate fate = fate_of(p, &whole.content);
		counts[fate]++;
		if (fate > HARMLESS)
			print_message("# byte %zu of page %zu, flipped by %02x: %s\n", at % 4096, at / 4096, (unsigned char)flip, fate == MISSED ? "missed" : "broke");
	}
	print_message("# %llu flips found, %llu in unused room, %llu missed, %llu broke the check\n", (unsigned long long)counts[FOUND],
		      (unsigned long long)counts[HARMLESS], (unsigned long long)counts[MISSED], (unsigned long long)counts[BROKE]);
	assert_int_equal(counts[MISSED] + counts[BROKE], 0);
	assert_true(counts[FOUND] > 100); /* most pages of so small a store are nearly empty */
	free(live);
	buf_fini(&bytes);
	buf_fini(&path);
}

static void a_key_of_another_length_than_its_table_has_is_damage_and_nothing_goes_for_it(void **state)
{
	struct place *p = *state;
	struct store st;
	struct txn t;
	struct err e = {0};
	struct key key;
	MDB_val value;
	stream_begin(p, "111111111111");
	stream_run(p, &liger, 1.5, 1);
	stream_end(p);
	put_well(p);
	assert_int_equal(store_open(&st, p->root, STORE_WRITE, &e), 0);
	assert_int_equal(txn_begin(&t, &st, STORE_WRITE, &e), 0);
	MDB_val *odd = key_text(&key, "\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377");
	assert_int_equal(txn_put(&t, TABLE_COHORTS, odd, "", 0), 0);
	assert_int_equal(txn_commit(&t), 0);
	assert_int_equal(recover_store(&st, &e), -1);
	assert_int_equal(e.code, ERR_CORRUPT);
	e = (struct err){0};
	assert_int_equal(txn_begin(&t, &st, STORE_READ, &e), 0);
	assert_int_equal(txn_get(&t, TABLE_COHORTS, odd, &value), 1);
	txn_abort(&t);
	store_close(&st);
}

enum { PAGE = 4096, PAGE_NUMBER = 8 /* its first bytes */ };

/* The place of the n-th page that holds `text`. */
static size_t page_with(const struct buf *file, const char *text, int n)
{
	for (size_t at = 0; at + PAGE <= file->len; at += PAGE)
		if (memmem(file->data + at, PAGE, text, strlen(text)) && n-- == 0)
			return at;
	fail_msg("no such page");
	return 0;
}

/* Whoever asks for one key after the other might never come to an end. */
static void a_key_before_the_one_asked_for_is_damage_and_no_endless_list(void **state)
{
	static const char filler[] = "a value that is long enough for some tens of entries a page, so that a thousand of them fill many pages";
	struct place *p = *state;
	struct store st;
	struct txn t;
	struct err e = {0};
	struct key key;
	MDB_val value;
	struct buf path = {0}, file = {0};
	char page[PAGE];
	assert_int_equal(store_open(&st, p->root, STORE_WRITE, &e), 0);
	assert_int_equal(txn_begin(&t, &st, STORE_WRITE, &e), 0);
	for (uint32_t id = 0; id < 10000; id += 10)
		assert_int_equal(txn_put(&t, TABLE_OBJECTS, key_u32(&key, id), filler, sizeof filler), 0);
	assert_int_equal(txn_commit(&t), 0);
	buf_str(&path, st.file);
	store_close(&st);
	assert_int_equal(file_read(path.data, 1 << 24, &file, &e), 0);
	char *early = file.data + page_with(&file, filler, 3), *late = file.data + page_with(&file, filler, 12);
	memcpy(page, early, PAGE);
	memcpy(early + PAGE_NUMBER, late + PAGE_NUMBER, PAGE - PAGE_NUMBER);
	memcpy(late + PAGE_NUMBER, page + PAGE_NUMBER, PAGE - PAGE_NUMBER);
	assert_int_equal(file_write(path.data, file.data, file.len, 0644, &e), 0);
	assert_int_equal(store_open(&st, p->root, STORE_READ, &e), 0);
	assert_int_equal(txn_begin(&t, &st, STORE_READ, &e), 0);
	int found = 1;
	for (uint32_t id = 2000, asked = 0; found == 1; id = key_read_u32(&key.val, 0) + 1) { /* from between the two on */
		assert_true(++asked <= 1000);
		key_u32(&key, id);
		found = txn_next(&t, TABLE_OBJECTS, &key, &value);
	}
	assert_int_equal(found, -1);
	assert_int_equal(e.code, ERR_CORRUPT);
	txn_abort(&t);
	store_close(&st);
	buf_fini(&path);
	buf_fini(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_store_of_schema_1_is_read_as_it_is_and_upgraded_by_the_first_writer, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(what_is_put_into_an_upgraded_store_is_sealed_too, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(an_upgrade_that_was_cut_off_is_taken_up_again, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(any_flipped_byte_of_a_live_page_is_found_or_holds_nothing, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(a_key_of_another_length_than_its_table_has_is_damage_and_nothing_goes_for_it, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(a_key_before_the_one_asked_for_is_damage_and_no_endless_list, place_setup, place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
