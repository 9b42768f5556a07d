#include "store/guard.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"

static char message[4352]; /* static, for a signal handler has no arguments of ours */

static void tell_and_end(int number)
{
	(void)number;
	ssize_t ignored = write(STDERR_FILENO, message, strlen(message));
	(void)ignored;
	_exit(ERR_CORRUPT);
}

static void on_assert(MDB_env *env, const char *text)
{
	(void)env;
	(void)text;
	tell_and_end(0);
}

void guard(MDB_env *env, const char *file)
{
	struct sigaction action = {.sa_handler = tell_and_end};
	snprintf(message, sizeof message, "ki-store: %s: damaged, or its disk cannot be read: run `ki check`, restore a backup\n", file);
	sigaction(SIGBUS, &action, NULL);
	mdb_env_set_assert(env, on_assert);
}
