/* What a stage can still do once it has entered its role, tried in child processes, since nothing can be taken back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/file.h"
#include "core/log.h"
#include "core/sandbox.h"

static char root[64], inside[80], outside[80], secret[96];

/* A folder that a stage may write, one that it may not, and a file in the second. */
static int make_places(void **state)
{
	struct err e = {0};
	(void)state;
	strcpy(root, "/tmp/test_sandbox.XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(inside, sizeof inside, "%s/inside", root);
	snprintf(outside, sizeof outside, "%s/outside", root);
	snprintf(secret, sizeof secret, "%s/secret", outside);
	assert_int_equal(mkdir(inside, 0755) | mkdir(outside, 0755), 0);
	assert_int_equal(file_write(secret, "x", 1, 0644, &e), 0);
	return 0;
}

static int remove_places(void **state)
{
	char command[96];
	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command) == 0 ? 0 : -1;
}

/* Runs `body` in a child, which exits with what it returns. Returns the exit code; 128 and more for a signal. */
static int in_child(int (*body)(void))
{
	fflush(NULL);
	pid_t pid = fork();
	int status;
	if (pid == 0)
		_exit(body());
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool landlock_is_here(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

static bool enter(enum sandbox_role role)
{
	const char *writes[] = {role == SANDBOX_NORMALIZE ? NULL : inside, NULL};
	struct err e = {0};
	return sandbox_enter(&(struct sandbox){.role = role, .writes = writes, .strict = landlock_is_here()}, &e) == 0;
}

/* ---- what is tried: 0 or an errno ---- */

static int try_socket(int family)
{
	int fd = socket(family, SOCK_STREAM, 0);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int try_open(const char *directory, const char *name, int flags)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	int fd = open(path, flags | O_CLOEXEC, 0644);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int try_exec(void)
{
	execl("/bin/true", "true", (char *)NULL);
	return errno;
}

static void *nothing(void *context)
{
	return context;
}

static int try_thread(void)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, nothing, NULL);
	return rc ? rc : pthread_join(thread, NULL);
}

/* ---- the roles: each returns the number of the first surprise, or 0 ---- */

static int normalize_child(void)
{
	int out = open("/dev/null", O_WRONLY);
	if (!enter(SANDBOX_NORMALIZE))
		return 1;
	if (try_socket(AF_INET) != EPERM || try_socket(AF_UNIX) != EPERM || try_socket(AF_NETLINK) != EPERM)
		return 2;
	if (try_open(inside, "new", O_WRONLY | O_CREAT) == 0 || try_open(outside, "secret", O_WRONLY) == 0 || try_open(outside, "secret", O_RDWR) == 0)
		return 3;
	if (try_open(outside, "secret", O_RDONLY) != 0)
		return 4;
	if (write(out, "x", 1) != 1)
		return 5;
	if (unlink(secret) == 0 || mkdir("/tmp/test_sandbox.new", 0755) == 0)
		return 6;
	if (try_exec() == 0)
		return 7;
	return try_thread() ? 8 : 0;
}

static int store_child(void)
{
	char from[160], to[160];
	if (!enter(SANDBOX_STORE))
		return 1;
	if (try_socket(AF_INET) != EPERM || try_socket(AF_INET6) != EPERM)
		return 2;
	if (try_open(inside, "new", O_WRONLY | O_CREAT) != 0 || try_open(inside, "new", O_RDWR) != 0)
		return 3;
	if (landlock_is_here() && (try_open(outside, "new", O_WRONLY | O_CREAT) != EACCES || try_open(outside, "secret", O_RDWR) != EACCES))
		return 4;
	snprintf(from, sizeof from, "%s/new", inside);
	snprintf(to, sizeof to, "%s/stolen", outside);
	if (landlock_is_here() && (rename(from, to) == 0 || unlink(secret) == 0))
		return 5;
	snprintf(to, sizeof to, "%s/renamed", inside);
	if (rename(from, to) != 0 || unlink(to) != 0)
		return 6;
	if (symlink(secret, to) == 0 || try_exec() == 0)
		return 7;
	return try_thread() ? 8 : 0;
}

static int ingest_child(void)
{
	if (!enter(SANDBOX_INGEST))
		return 1;
	if (try_socket(AF_INET) != 0 || try_socket(AF_UNIX) != 0)
		return 2;
	if (try_socket(AF_PACKET) != EPERM || try_socket(AF_ALG) != EPERM)
		return 3;
	if (try_open(inside, "kept", O_WRONLY | O_CREAT) != 0 || try_open("/etc", "passwd", O_RDONLY) != 0)
		return 4;
	if (landlock_is_here() && (try_open(outside, "new", O_WRONLY | O_CREAT) != EACCES || try_open(outside, "secret", O_RDONLY) != EACCES))
		return 5;
	return try_exec() == 0 || try_thread() != 0 ? 6 : 0;
}

static int limits_child(void)
{
	struct rlimit core, files;
	if (!enter(SANDBOX_STORE) || getrlimit(RLIMIT_CORE, &core) || getrlimit(RLIMIT_NOFILE, &files))
		return 1;
	if (core.rlim_max != 0 || files.rlim_max > 256)
		return 2;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || errno == EPERM ? 0 : 3; /* nobody needs to ask either */
}

/* A folder that is not made yet: the nearest one above it may be written. */
static int missing_folder_child(void)
{
	char path[160];
	struct err e = {0};
	snprintf(path, sizeof path, "%s/a/b/c", inside);
	const char *writes[] = {path, NULL};
	if (sandbox_enter(&(struct sandbox){.role = SANDBOX_STORE, .writes = writes, .strict = true}, &e))
		return 1;
	if (file_make_dirs(path, &e) != 0 || try_open(path, "new", O_WRONLY | O_CREAT) != 0)
		return 2;
	return try_open(outside, "new", O_WRONLY | O_CREAT) == EACCES ? 0 : 3;
}

static void what_parses_has_no_network_and_writes_to_open_descriptors_only(void **state)
{
	(void)state;
	assert_int_equal(in_child(normalize_child), 0);
}

static void the_store_has_no_network_and_writes_only_where_it_was_told(void **state)
{
	(void)state;
	assert_int_equal(in_child(store_child), 0);
}

static void what_fetches_reads_and_writes_only_what_it_must(void **state)
{
	(void)state;
	assert_int_equal(in_child(ingest_child), 0);
}

static void no_stage_dumps_core_or_opens_files_without_end(void **state)
{
	(void)state;
	assert_int_equal(in_child(limits_child), 0);
}

static void a_folder_that_is_to_be_made_can_be_made(void **state)
{
	(void)state;
	if (!landlock_is_here())
		skip();
	assert_int_equal(in_child(missing_folder_child), 0);
}

/* ---- kernels that cannot ---- */

/* From now on a system call fails as on a kernel without it. */
static void take_away(int number, int error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	if (!filter || seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint16_t)error), number, 0) || seccomp_load(filter))
		_exit(99);
	seccomp_release(filter);
}

static int without(int number, int error, bool strict, const char *word)
{
	struct err e = {0};
	take_away(number, error);
	log_init("test_sandbox", true);
	int rc = sandbox_enter(&(struct sandbox){.role = SANDBOX_NORMALIZE, .strict = strict}, &e);
	if (!strict)
		return rc == 0 && e.code == ERR_NONE ? 0 : 1;
	return rc != 0 && e.code == ERR_NOPERM && strstr(e.text, word) && strstr(e.text, "--strict") ? 0 : 2;
}

static int strict_without_landlock(void)
{
	return without(SCMP_SYS(landlock_create_ruleset), ENOSYS, true, "Landlock");
}

static int strict_without_seccomp(void)
{
	return without(SCMP_SYS(seccomp), EPERM, true, "seccomp");
}

static int strict_with_a_kernel_that_will_not_restrict(void)
{
	return landlock_is_here() ? without(SCMP_SYS(landlock_restrict_self), EPERM, true, "Landlock") : 0;
}

static int lax_without_landlock(void)
{
	if (without(SCMP_SYS(landlock_create_ruleset), ENOSYS, false, ""))
		return 1;
	/* seccomp alone still keeps it from the network and from writing */
	if (try_socket(AF_INET) != EPERM || try_open(inside, "new", O_WRONLY | O_CREAT) != EPERM || try_open(outside, "secret", O_RDWR) != EPERM)
		return 2;
	return try_open(outside, "secret", O_RDONLY);
}

static void a_layer_that_cannot_be_had_is_an_error_when_strict(void **state)
{
	(void)state;
	assert_int_equal(in_child(strict_without_landlock), 0);
	assert_int_equal(in_child(strict_without_seccomp), 0);
	assert_int_equal(in_child(strict_with_a_kernel_that_will_not_restrict), 0);
}

static void without_one_layer_the_others_hold(void **state)
{
	(void)state;
	assert_int_equal(in_child(lax_without_landlock), 0);
}

/* ---- programs ---- */

static char program[4200];

static int run_program(const char *strict)
{
	take_away(SCMP_SYS(landlock_create_ruleset), ENOSYS);
	int err = open(secret, O_WRONLY | O_TRUNC);
	if (err < 0 || dup2(err, STDERR_FILENO) < 0)
		return 98;
	execl(program, program, "--config-digest", strict, (char *)NULL);
	return 97;
}

static int strict_program(void)
{
	return run_program("--strict");
}

static int lax_program(void)
{
	return run_program(NULL);
}

static void a_program_says_what_it_could_not_give_up_and_with_strict_ends_with_77(void **state)
{
	const char *build = getenv("B");
	struct buf said = {0};
	struct err e = {0};
	(void)state;
	snprintf(program, sizeof program, "%s/bin/ki-normalize", build ? build : "build");
	assert_int_equal(in_child(strict_program), 77);
	assert_int_equal(in_child(lax_program), 0);
	assert_int_equal(file_read(secret, 10000, &said, &e), 0);
	assert_non_null(strstr(said.data, "warning: not as confined as it could be: this kernel has no Landlock"));
	buf_fini(&said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_parses_has_no_network_and_writes_to_open_descriptors_only),
		cmocka_unit_test(the_store_has_no_network_and_writes_only_where_it_was_told),
		cmocka_unit_test(what_fetches_reads_and_writes_only_what_it_must),
		cmocka_unit_test(no_stage_dumps_core_or_opens_files_without_end),
		cmocka_unit_test(a_folder_that_is_to_be_made_can_be_made),
		cmocka_unit_test(a_layer_that_cannot_be_had_is_an_error_when_strict),
		cmocka_unit_test(without_one_layer_the_others_hold),
		cmocka_unit_test(a_program_says_what_it_could_not_give_up_and_with_strict_ends_with_77),
	};
	return cmocka_run_group_tests(tests, make_places, remove_places);
}
