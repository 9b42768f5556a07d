#include "store/guard.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"

static char message[4352]; /* static, for a signal handler has no arguments of ours */

static void tell_and_end(void)
{
	ssize_t ignored = write(STDERR_FILENO, message, strlen(message));
	(void)ignored;
	_exit(ERR_CORRUPT);
}

/* LMDB follows what a damaged page says to anywhere. A pointer that is nearly NULL is a mistake of ours, and ends as such. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (number == SIGSEGV && info->si_code == SEGV_MAPERR && (uintptr_t)info->si_addr < 65536)
		signal(SIGSEGV, SIG_DFL); /* and again */
	else
		tell_and_end();
}

static void on_assert(MDB_env *env, const char *text)
{
	(void)env;
	(void)text;
	tell_and_end();
}

void guard(MDB_env *env, const char *file)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	snprintf(message, sizeof message, "ki-store: %s: damaged, or its disk cannot be read: run `ki check`, restore a backup\n", file);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	mdb_env_set_assert(env, on_assert);
}
