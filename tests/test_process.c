/* Child processes: their ends, their exit codes, and that they do not outlive their parent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/process.h"

static struct command shell(const char *script)
{
	struct command c = {0};
	command_add(&c, "/bin/sh");
	command_add(&c, "-c");
	command_add(&c, script);
	return c;
}

static void test_output_and_exit_code_come_back(void **state)
{
	(void)state;
	struct err e = {0};
	struct buf out = {0};
	struct command c = shell("printf 'one\\ntwo'; exit 7");
	assert_int_equal(process_read(&c, &out, &e), 7);
	assert_string_equal(out.data, "one\ntwo");
	buf_clear(&out);
	c = shell("dd if=/dev/zero bs=1000 count=3000 2>/dev/null");
	assert_int_equal(process_read(&c, &out, &e), 0);
	assert_int_equal(out.len, 3000000);
	buf_fini(&out);
}

static void test_without_input_a_child_reads_nothing(void **state)
{
	(void)state;
	struct err e = {0};
	struct buf out = {0};
	struct command c = shell("wc -c");
	assert_int_equal(process_read(&c, &out, &e), 0);
	assert_int_equal(strtol(out.data, NULL, 10), 0);
	buf_fini(&out);
}

static void test_a_signal_is_told_as_128_more(void **state)
{
	(void)state;
	struct err e = {0};
	struct buf out = {0};
	struct command c = shell("kill -9 $$");
	assert_int_equal(process_read(&c, &out, &e), 137);
	buf_fini(&out);
}

static void test_stages_are_joined_by_pipes_and_see_no_other_ends(void **state)
{
	(void)state;
	struct err e = {0};
	int first[2], second[2];
	char text[32] = "";
	struct buf alone = {0};
	struct command a = shell("echo hello"), b = shell("tr a-z A-Z; ls /proc/self/fd | wc -l");
	assert_int_equal(process_read(&b, &alone, &e), 0); /* how many ends there are when there is one child */
	assert_int_equal(process_pipe(first, &e), 0);
	assert_int_equal(process_pipe(second, &e), 0);
	pid_t one = process_start(&a, -1, first[1], &e), two = process_start(&b, first[0], second[1], &e);
	assert_true(one > 0 && two > 0);
	assert_int_equal(process_wait(one), 0);
	assert_int_equal(process_wait(two), 0);
	for (ssize_t got, len = 0; (got = read(second[0], text + len, sizeof text - 1 - (size_t)len)) > 0;)
		len += got;
	assert_memory_equal(text, "HELLO\n", 6);
	assert_string_equal(text + 6, alone.data);
	buf_fini(&alone);
	assert_int_equal(read(second[0], text, 1), 0);
	close(second[0]);
}

static void test_a_program_that_is_not_there_is_not_found(void **state)
{
	(void)state;
	struct err e = {0};
	struct buf out = {0};
	struct command c = {0};
	command_add(&c, "/nonexistent/program");
	int held = dup(2), null = open("/dev/null", O_WRONLY);
	dup2(null, 2); /* the child says so on stderr */
	assert_int_equal(process_read(&c, &out, &e), 66);
	dup2(held, 2);
	close(held);
	close(null);
	buf_fini(&out);
}

static void test_a_child_dies_with_its_parent(void **state)
{
	(void)state;
	int alive[2];
	char byte;
	assert_int_equal(pipe(alive), 0);
	pid_t parent = fork();
	if (parent == 0) {
		struct err e = {0};
		struct command c = shell("echo x; exec sleep 100");
		process_start(&c, -1, alive[1], &e);
		for (;;)
			pause();
	}
	close(alive[1]);
	assert_int_equal(read(alive[0], &byte, 1), 1); /* the child runs */
	assert_int_equal(read(alive[0], &byte, 1), 1);
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	assert_int_equal(read(alive[0], &byte, 1), 0); /* nobody holds the other end: the child is gone, long before 100 seconds */
	close(alive[0]);
}

static void test_more_words_than_there_is_room_for_are_left_out(void **state)
{
	(void)state;
	struct command c = {0};
	for (int i = 0; i < 100; i++)
		command_add(&c, "x");
	assert_int_equal(c.count, 63);
	assert_null(c.words[63]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output_and_exit_code_come_back),
		cmocka_unit_test(test_without_input_a_child_reads_nothing),
		cmocka_unit_test(test_a_signal_is_told_as_128_more),
		cmocka_unit_test(test_stages_are_joined_by_pipes_and_see_no_other_ends),
		cmocka_unit_test(test_a_program_that_is_not_there_is_not_found),
		cmocka_unit_test(test_a_child_dies_with_its_parent),
		cmocka_unit_test(test_more_words_than_there_is_room_for_are_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
