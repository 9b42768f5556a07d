/* Files: written whole or not at all, with the modes we say; locks that die with their process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"

static char root[64], path[256];

static int setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/test_file.XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof path, "%s/file", root);
	return 0;
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(name);
}

static int teardown(void **state)
{
	(void)state;
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static void expect_content(const char *name, const char *text)
{
	struct buf b = {0};
	struct err e = {0};
	assert_int_equal(file_read(name, 1 << 20, &b, &e), 0);
	assert_string_equal(b.data, text);
	buf_fini(&b);
}

static int names_in_root(void)
{
	DIR *d = opendir(root);
	int count = -2; /* . and .. */
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

static void test_what_is_written_is_read(void **state)
{
	(void)state;
	struct err e = {0};
	assert_int_equal(file_write(path, "one", 3, 0644, &e), 0);
	expect_content(path, "one");
	assert_int_equal(file_write(path, "", 0, 0644, &e), 0);
	expect_content(path, "");
	assert_int_equal(names_in_root(), 1);
	assert_true(file_exists(path));
}

static void test_modes_do_not_depend_on_the_umask(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st;
	char directory[300];
	mode_t before = umask(077);
	assert_int_equal(file_write(path, "x", 1, 0444, &e), 0);
	snprintf(directory, sizeof directory, "%s/a/b", root);
	assert_int_equal(file_make_dirs(directory, &e), 0);
	umask(before);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0444);
	assert_int_equal(stat(directory, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(file_make_dirs(directory, &e), 0);
}

static void test_the_old_file_stands_until_the_new_one_is_whole(void **state)
{
	(void)state;
	struct err e = {0};
	assert_int_equal(file_write(path, "old", 3, 0644, &e), 0);
	struct file_out *f = file_begin(path, 0644, &e);
	assert_non_null(f);
	assert_int_equal(file_add(f, "ne", 2, &e), 0);
	expect_content(path, "old");
	assert_int_equal(file_add(f, "w", 1, &e), 0);
	assert_int_equal(file_commit(f, &e), 0);
	expect_content(path, "new");
	assert_int_equal(names_in_root(), 1);
}

static void test_an_aborted_file_leaves_no_trace(void **state)
{
	(void)state;
	struct err e = {0};
	assert_int_equal(file_write(path, "old", 3, 0644, &e), 0);
	struct file_out *f = file_begin(path, 0644, &e);
	assert_int_equal(file_add(f, "new", 3, &e), 0);
	file_abort(f);
	file_abort(NULL);
	expect_content(path, "old");
	assert_int_equal(names_in_root(), 1);
}

static void test_a_file_may_be_named_when_it_is_done(void **state)
{
	(void)state;
	struct err e = {0};
	char other[300];
	snprintf(other, sizeof other, "%s/other", root);
	struct file_out *f = file_begin(path, 0644, &e);
	assert_int_equal(file_add(f, "x", 1, &e), 0);
	assert_int_equal(file_commit_as(f, other, &e), 0);
	expect_content(other, "x");
	assert_false(file_exists(path));
	assert_int_equal(names_in_root(), 1);
}

static void test_a_file_over_the_limit_is_refused(void **state)
{
	(void)state;
	struct err e = {0};
	struct buf b = {0};
	char *large = calloc(1, 200000);
	assert_int_equal(file_write(path, large, 200000, 0644, &e), 0);
	assert_int_equal(file_read(path, 199999, &b, &e), -1);
	assert_int_equal(e.code, ERR_DATA);
	e = (struct err){0};
	buf_clear(&b);
	assert_int_equal(file_read(path, 200000, &b, &e), 0);
	assert_int_equal(b.len, 200000);
	buf_fini(&b);
	free(large);
}

static void test_errors_tell_what_was_wrong(void **state)
{
	(void)state;
	struct err e = {0};
	struct buf b = {0};
	assert_int_equal(file_read(path, 10, &b, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	assert_string_equal(e.file, path);
	e = (struct err){0};
	assert_int_equal(file_read(root, 10, &b, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	e = (struct err){0};
	assert_int_equal(file_write("/proc/none", "x", 1, 0644, &e), -1);
	assert_int_not_equal(e.code, 0);
	buf_fini(&b);
	int full = open("/dev/full", O_WRONLY);
	if (full < 0)
		return;
	e = (struct err){0};
	assert_int_equal(file_write_all(full, "x", 1, "full", &e), -1);
	assert_int_equal(e.code, ERR_IO);
	assert_non_null(strstr(e.text, "No space left"));
	close(full);
}

static void test_a_lock_is_held_once_and_dies_with_its_process(void **state)
{
	(void)state;
	struct err e = {0};
	int ends[2];
	char byte;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		int fd = file_lock(path, &e);
		if (fd < 0 || write(ends[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(file_lock(path, &e), -1);
	assert_int_equal(e.code, ERR_TEMP);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	e = (struct err){0};
	int fd = file_lock(path, &e);
	assert_true(fd >= 0);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void set_time(const char *name, time_t seconds, long nanoseconds)
{
	struct timespec times[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
	assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

static void test_two_files_have_the_same_time_to_the_nanosecond_or_not(void **state)
{
	(void)state;
	struct err e = {0};
	char other[300];
	snprintf(other, sizeof other, "%s/other", root);
	assert_false(file_same_time(path, other));
	assert_int_equal(file_write(path, "x", 1, 0644, &e), 0);
	assert_false(file_same_time(path, other));
	assert_false(file_same_time(other, path));
	assert_int_equal(file_write(other, "x", 1, 0644, &e), 0);
	static const struct {
		time_t a, b;
		long a_ns, b_ns;
		bool same;
	} cases[] = {{100, 99, 0, 0, false}, {99, 100, 999, 999, false}, {100, 100, 2, 1, false}, {100, 100, 1, 1, true}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		set_time(path, cases[i].a, cases[i].a_ns);
		set_time(other, cases[i].b, cases[i].b_ns);
		assert_int_equal(file_same_time(path, other), cases[i].same);
	}
}

static const char *in_root(const char *name)
{
	static char paths[4][512];
	static int at;
	char *full = paths[at++ % 4];
	snprintf(full, sizeof paths[0], "%s/%s", root, name);
	return full;
}

static void test_a_sweep_takes_what_dead_makers_left_and_nothing_else(void **state)
{
	(void)state;
	struct err e = {0};
	struct buf live_directory = {0};
	static const char *const dead[] = {"a.tmp.1", "a.tmp.22"}, *const other[] = {"b.tmp.1", "a.tmp.x", "a.tmp.", "xa.tmp.1", "a"};
	for (size_t i = 0; i < sizeof dead / sizeof *dead; i++)
		assert_int_equal(file_write(in_root(dead[i]), "x", 1, 0444, &e), 0);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		assert_int_equal(file_write(in_root(other[i]), "x", 1, 0644, &e), 0);
	assert_int_equal(file_make_dirs(in_root("a.tmp.333/deep/er"), &e), 0);
	assert_int_equal(file_write(in_root("a.tmp.333/deep/file"), "x", 1, 0444, &e), 0);
	struct file_out *live = file_begin(in_root("a"), 0644, &e);
	assert_non_null(live);
	int fd = file_begin_directory(in_root("c"), &live_directory, &e);
	assert_true(fd >= 0);
	file_sweep(in_root("a"));
	file_sweep(in_root("c"));
	for (size_t i = 0; i < sizeof dead / sizeof *dead; i++)
		assert_false(file_exists(in_root(dead[i])));
	assert_false(file_exists(in_root("a.tmp.333")));
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		assert_true(file_exists(in_root(other[i])));
	assert_true(file_exists(live_directory.data));
	assert_int_equal(file_commit(live, &e), 0); /* its temporary was still there */
	file_sweep_directory(root);
	assert_false(file_exists(in_root("b.tmp.1")));
	assert_true(file_exists(in_root("a")));
	assert_true(file_exists(live_directory.data));
	close(fd);
	file_sweep(in_root("c"));
	assert_false(file_exists(live_directory.data));
	assert_int_equal(e.code, 0);
	buf_fini(&live_directory);
}

static void test_closed_standard_streams_are_held(void **state)
{
	(void)state;
	pid_t child = fork();
	int status;
	if (child == 0) {
		close(0);
		close(1);
		close(2);
		file_hold_streams();
		int fd = open(root, O_RDONLY | O_DIRECTORY);
		_exit(fd > 2 && write(1, "x", 1) == -1 && write(2, "x", 1) == -1 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_written_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_modes_do_not_depend_on_the_umask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_old_file_stands_until_the_new_one_is_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_aborted_file_leaves_no_trace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_file_may_be_named_when_it_is_done, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_file_over_the_limit_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors_tell_what_was_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_lock_is_held_once_and_dies_with_its_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_files_have_the_same_time_to_the_nanosecond_or_not, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_sweep_takes_what_dead_makers_left_and_nothing_else, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed_standard_streams_are_held, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
