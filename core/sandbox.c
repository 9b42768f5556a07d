#include "core/sandbox.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/landlock.h"
#include "core/log.h"
#include "core/process.h"
#include "core/seccomp.h"

/* Where libraries, certificates and the name service keep what they read. */
static const char *const system_reads[] = {"/etc", "/usr", "/lib", "/lib64", "/dev", "/proc", "/run/systemd/resolve", "/run/nscd", "/var/run/nscd"};

/* Open files, and bytes of a file that is written: the largest thing ki-ingest writes is a table of upstream's, and what the others
 * write is as large as their input. A write beyond it is an error, not a signal. */
static const struct {
	rlim_t files, bytes;
} limits[] = {
	[SANDBOX_INGEST] = {256, (rlim_t)4 << 30},
	[SANDBOX_NORMALIZE] = {64, RLIM_INFINITY},
	[SANDBOX_STORE] = {256, RLIM_INFINITY},
};

/* A limit that is lower already stays. */
static void lower(int which, rlim_t value)
{
	struct rlimit limit;
	if (getrlimit((__rlimit_resource_t)which, &limit) != 0 || limit.rlim_max <= value)
		return;
	limit.rlim_max = value;
	if (limit.rlim_cur > value)
		limit.rlim_cur = value;
	setrlimit((__rlimit_resource_t)which, &limit); /* lowering one's own limit is always allowed */
}

static void lower_limits(enum sandbox_role role)
{
	lower(RLIMIT_NOFILE, limits[role].files);
	lower(RLIMIT_FSIZE, limits[role].bytes);
	signal(SIGXFSZ, SIG_IGN);
}

static int enter_landlock(const struct sandbox *s, struct err *e)
{
	size_t system = sizeof system_reads / sizeof *system_reads, own = 0;
	if (s->role != SANDBOX_INGEST)
		return landlock_enter(NULL, s->writes, false, e);
	while (s->reads && s->reads[own])
		own++;
	const char **reads = xcalloc(system + own + 1, sizeof *reads);
	memcpy(reads, system_reads, sizeof system_reads);
	if (own)
		memcpy(reads + system, s->reads, own * sizeof *reads);
	int rc = landlock_enter(reads, s->writes, false, e);
	free(reads);
	return rc;
}

static int missing(const struct sandbox *s, const struct err *why, struct err *e)
{
	if (s->strict)
		return err_set(e, ERR_NOPERM, "cannot give up rights, as --strict asks: %s", why->text);
	log_warn("not as confined as it could be: %s (--strict makes this an error)", why->text);
	return 0;
}

int sandbox_enter(const struct sandbox *s, struct err *e)
{
	struct err no_privileges = {0}, files = {0}, calls = {0};
	lower_limits(s->role);
	if (process_settle(&no_privileges) && missing(s, &no_privileges, e))
		return -1;
	if (enter_landlock(s, &files) && missing(s, &files, e))
		return -1;
	return seccomp_enter(s->role, &calls) ? missing(s, &calls, e) : 0;
}

void sandbox_probe(void)
{
	struct sandbox strict = {.role = SANDBOX_STORE, .strict = true};
	struct err e = {0};
	pid_t pid = fork();
	if (pid == 0) {
		if (sandbox_enter(&strict, &e))
			log_error("warning: the stages are not as confined as they could be: %s", e.text);
		_exit(0);
	}
	if (pid > 0)
		process_wait(pid);
}
