/* The snapshot store and a channel's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "ingest/snapshot.h"
#include "ingest/state.h"

#define SHA "00112233445566778899aabbccddeeff00112233"
/* sha256 of "hello\n" */
#define HELLO "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
#define HELLO_PATH "/snapshots/58/" HELLO

struct place {
	char root[64];
	struct snapshots *snapshots;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	struct err e = {0};
	strcpy(p->root, "/tmp/test_snapshot.XXXXXX");
	assert_non_null(mkdtemp(p->root));
	p->snapshots = snapshots_open(p->root, &e);
	assert_non_null(p->snapshots);
	*state = p;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct place *p = *state;
	snapshots_close(p->snapshots);
	nftw(p->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(p);
	return 0;
}

static const char *path_in(const struct place *p, const char *rest)
{
	static char path[512];
	snprintf(path, sizeof path, "%s%s", p->root, rest);
	return path;
}

static struct publication hello(struct content *c)
{
	struct publication p = {.channel = "committed", .commit = SHA, .file = "a.csv", .etag = "\"e\""};
	struct err e = {0};
	*c = (struct content){.memory = {"hello\n", 6}};
	assert_int_equal(content_digest(c, &p.sha256, &p.size_bytes, &e), 0);
	return p;
}

static void keep_hello(struct place *place, struct buf *provenance)
{
	struct content c;
	struct err e = {0};
	struct publication p = hello(&c);
	assert_int_equal(snapshots_keep(place->snapshots, &c, &p, provenance, &e), 0);
}

static void expect_file(const char *path, const char *text)
{
	struct buf found = {0};
	struct err e = {0};
	assert_int_equal(file_read(path, 1 << 20, &found, &e), 0);
	assert_string_equal(found.data, text);
	buf_fini(&found);
}

static void put_file(const char *path, const char *text)
{
	struct err e = {0};
	assert_int_equal(file_write(path, text, strlen(text), 0644, &e), 0);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void test_bytes_stand_under_their_digest_with_provenance_beside_them(void **state)
{
	struct place *p = *state;
	struct buf provenance = {0};
	keep_hello(p, &provenance);
	expect_file(path_in(p, HELLO_PATH), "hello\n");
	assert_int_equal(mode_of(path_in(p, HELLO_PATH)), 0444);
	assert_int_equal(mode_of(path_in(p, HELLO_PATH ".committed-001122334455.json")), 0444);
	assert_string_equal(provenance.data, "{\"channel\":\"committed\",\"commit\":\"" SHA "\",\"etag\":\"\\\"e\\\"\","
			    "\"fetchedAt\":\"1970-01-01T00:00:00.000Z\",\"file\":\"a.csv\",\"sha256\":\"sha256:" HELLO "\",\"sizeBytes\":6}");
	buf_fini(&provenance);
}

static void test_modes_do_not_depend_on_the_umask(void **state)
{
	struct place *p = *state;
	struct buf provenance = {0};
	mode_t before = umask(077);
	keep_hello(p, &provenance);
	umask(before);
	assert_int_equal(mode_of(path_in(p, HELLO_PATH)), 0444);
	assert_int_equal(mode_of(path_in(p, "/snapshots/58")), 0755);
	buf_fini(&provenance);
}

static void test_an_empty_or_wrong_file_in_a_snapshots_place_is_replaced(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	static const char *const wrong[] = {"", "hellO\n", "hello", "hello\nhello\n"};
	assert_int_equal(file_make_dirs(path_in(p, "/snapshots/58"), &e), 0);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct buf provenance = {0};
		put_file(path_in(p, HELLO_PATH), wrong[i]);
		keep_hello(p, &provenance);
		expect_file(path_in(p, HELLO_PATH), "hello\n");
		buf_fini(&provenance);
	}
}

static void test_keeping_again_writes_nothing(void **state)
{
	struct place *p = *state;
	struct stat first, second;
	struct buf provenance = {0};
	keep_hello(p, &provenance);
	assert_int_equal(stat(path_in(p, HELLO_PATH), &first), 0);
	keep_hello(p, &provenance);
	assert_int_equal(stat(path_in(p, HELLO_PATH), &second), 0);
	assert_int_equal(first.st_ino, second.st_ino);
	buf_fini(&provenance);
}

static void test_the_first_provenance_stays_and_a_damaged_one_is_replaced(void **state)
{
	struct place *p = *state;
	struct buf provenance = {0};
	struct content c;
	struct err e = {0};
	struct publication later = hello(&c);
	keep_hello(p, &provenance);
	later.fetched_ms = 86400000;
	buf_clear(&provenance);
	assert_int_equal(snapshots_keep(p->snapshots, &c, &later, &provenance, &e), 0);
	assert_non_null(strstr(provenance.data, "1970-01-01"));
	put_file(path_in(p, HELLO_PATH ".committed-001122334455.json"), "");
	buf_clear(&provenance);
	assert_int_equal(snapshots_keep(p->snapshots, &c, &later, &provenance, &e), 0);
	assert_non_null(strstr(provenance.data, "1970-01-02"));
	buf_fini(&provenance);
}

static void test_what_is_there_is_told_by_its_digest(void **state)
{
	struct place *p = *state;
	struct buf provenance = {0};
	struct content c;
	struct publication held = hello(&c);
	assert_false(snapshots_have(p->snapshots, &held, &provenance));
	keep_hello(p, &provenance);
	held.size_bytes = 0;
	assert_true(snapshots_have(p->snapshots, &held, &provenance));
	assert_int_equal(held.size_bytes, 6);
	put_file(path_in(p, HELLO_PATH), "hellO\n");
	assert_false(snapshots_have(p->snapshots, &held, &provenance));
	buf_fini(&provenance);
}

static void test_a_local_file_is_copied_in_blocks(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	struct buf big = {0}, provenance = {0}, path = {0};
	for (int i = 0; i < 100000; i++)
		buf_str(&big, "0123456789");
	assert_int_equal(file_write(path_in(p, "/big"), big.data, big.len, 0644, &e), 0);
	char *source = strdup(path_in(p, "/big"));
	struct content c = {.path = source};
	struct publication pub = {.channel = "committed", .file = "big"};
	assert_int_equal(content_digest(&c, &pub.sha256, &pub.size_bytes, &e), 0);
	assert_int_equal(pub.size_bytes, 1000000);
	assert_int_equal(snapshots_keep(p->snapshots, &c, &pub, &provenance, &e), 0);
	snapshots_path(p->snapshots, &pub.sha256, &path);
	assert_true(content_same_as(&c, 1000000, path.data));
	struct content memory = {.memory = {big.data, big.len}};
	assert_true(content_same_as(&memory, 1000000, path.data));
	big.data[999999] = 'x';
	assert_false(content_same_as(&memory, 1000000, path.data));
	buf_str(&path, ".committed-local.json");
	assert_true(file_exists(path.data));
	free(source);
	buf_fini(&big);
	buf_fini(&provenance);
	buf_fini(&path);
}

static void test_a_local_file_that_changes_while_read_is_not_kept(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	struct buf provenance = {0}, path = {0};
	struct content c;
	struct publication pub = hello(&c);
	put_file(path_in(p, "/source"), "hellO\n");
	char *source = strdup(path_in(p, "/source"));
	c = (struct content){.path = source};
	assert_int_equal(snapshots_keep(p->snapshots, &c, &pub, &provenance, &e), -1);
	assert_int_equal(e.code, ERR_TEMP);
	snapshots_path(p->snapshots, &pub.sha256, &path);
	assert_false(file_exists(path.data));
	free(source);
	buf_fini(&provenance);
	buf_fini(&path);
}

static void test_a_directory_or_a_pipe_is_no_table(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	struct digest d;
	int64_t size;
	struct content directory = {.path = p->root};
	assert_int_equal(content_digest(&directory, &d, &size, &e), -1);
	assert_int_equal(e.code, ERR_DATA);
	char *pipe_path = strdup(path_in(p, "/pipe"));
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	struct content fifo = {.path = pipe_path};
	struct err other = {0};
	assert_int_equal(content_digest(&fifo, &d, &size, &other), -1);
	assert_int_equal(other.code, ERR_DATA);
	free(pipe_path);
}

static void test_temporaries_of_a_killed_process_are_removed_at_start(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	snapshots_close(p->snapshots);
	assert_int_equal(file_make_dirs(path_in(p, "/snapshots/58"), &e), 0);
	put_file(path_in(p, HELLO_PATH ".tmp.4242"), "hel");
	put_file(path_in(p, "/snapshots/state/committed.json.tmp.1"), "{");
	put_file(path_in(p, "/snapshots/58/x.tmp.note"), "kept");
	p->snapshots = snapshots_open(p->root, &e);
	assert_non_null(p->snapshots);
	assert_false(file_exists(path_in(p, HELLO_PATH ".tmp.4242")));
	assert_false(file_exists(path_in(p, "/snapshots/state/committed.json.tmp.1")));
	assert_true(file_exists(path_in(p, "/snapshots/58/x.tmp.note")));
}

static void test_a_second_writer_is_told_to_come_back(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	assert_null(snapshots_open(p->root, &e));
	assert_int_equal(e.code, ERR_TEMP);
}

static void test_a_channels_state_survives(void **state)
{
	struct place *p = *state;
	struct err e = {0};
	struct content c;
	struct publication pub = hello(&c);
	struct state *st = state_load(p->snapshots, "committed");
	assert_int_equal(st->count, 0);
	struct state_item *item = state_add(st, SHA);
	item->sha256 = pub.sha256;
	state_set(st, &item->etag, "W/\"a-1\"");
	state_add(st, "1111111111111111111111111111111111111111")->absent = true;
	state_set(st, &st->newest, SHA);
	state_set(st, &st->etag, "\"list\"");
	assert_int_equal(state_save(st, p->snapshots, &e), 0);
	assert_false(st->dirty);
	state_free(st);
	st = state_load(p->snapshots, "committed");
	assert_int_equal(st->count, 2);
	assert_string_equal(st->newest, SHA);
	assert_string_equal(st->etag, "\"list\"");
	assert_string_equal(state_find(st, SHA)->etag, "W/\"a-1\"");
	assert_int_equal(digest_cmp(&state_find(st, SHA)->sha256, &pub.sha256), 0);
	assert_true(state_find(st, "1111111111111111111111111111111111111111")->absent);
	assert_null(state_find(st, "2222222222222222222222222222222222222222"));
	assert_false(st->dirty);
	state_free(st);
}

static void test_a_damaged_state_starts_anew(void **state)
{
	struct place *p = *state;
	static const char *const damaged[] = {
		"", "{", "[]", "{\"channel\":\"cutile\",\"items\":[]}", "{\"channel\":\"committed\",\"items\":[{}]}",
		"{\"channel\":\"committed\",\"items\":[{\"id\":\"../x\",\"sha256\":\"sha256:" HELLO "\"}]}",
		"{\"channel\":\"committed\",\"items\":[{\"id\":\"" SHA "\"}]}",
		"{\"channel\":\"committed\",\"items\":[],\"newest\":\"" SHA "\"}",
	};
	for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
		put_file(path_in(p, "/snapshots/state/committed.json"), damaged[i]);
		struct state *st = state_load(p->snapshots, "committed");
		assert_int_equal(st->count, 0);
		assert_null(st->newest);
		assert_null(st->etag);
		state_free(st);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bytes_stand_under_their_digest_with_provenance_beside_them, setup, teardown),
		cmocka_unit_test_setup_teardown(test_modes_do_not_depend_on_the_umask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_empty_or_wrong_file_in_a_snapshots_place_is_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keeping_again_writes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_first_provenance_stays_and_a_damaged_one_is_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_there_is_told_by_its_digest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_local_file_is_copied_in_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_local_file_that_changes_while_read_is_not_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_directory_or_a_pipe_is_no_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_temporaries_of_a_killed_process_are_removed_at_start, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_second_writer_is_told_to_come_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_channels_state_survives, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_damaged_state_starts_anew, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
