#include "core/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "core/when.h"

int process_settle(struct err *e)
{
	const struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none); /* lowering one's own limit is always allowed */
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? err_errno(e, "no_new_privs", "cannot set") : 0;
}

void command_add(struct command *c, const char *word)
{
	if (c->count < (int)(sizeof c->words / sizeof *c->words) - 1)
		c->words[c->count++] = word;
	c->words[c->count] = NULL;
}

static void become(const struct command *c, int in, int out, pid_t parent)
{
	struct err e = {0};
	if (in < 0)
		in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* the parent died before it could be asked for */
		_exit(ERR_TEMP);
	if ((in >= 0 && dup2(in, STDIN_FILENO) < 0) || (out >= 0 && dup2(out, STDOUT_FILENO) < 0)) {
		err_errno(&e, c->words[0], "cannot connect");
	} else {
		execv(c->words[0], (char *const *)c->words);
		err_errno(&e, c->words[0], "cannot run");
	}
	_exit(log_failure(&e));
}

pid_t process_start(const struct command *c, int in, int out, struct err *e)
{
	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		become(c, in, out, parent);
	if (pid < 0)
		err_errno(e, c->words[0], "cannot start");
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return pid;
}

int process_wait(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 70;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int process_pipe(int ends[2], struct err *e)
{
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(e, "pipe", "cannot make");
	return 0;
}

int process_pipes(int to[2], int from[2], struct err *e)
{
	if (process_pipe(to, e))
		return -1;
	if (process_pipe(from, e) == 0)
		return 0;
	close(to[0]);
	close(to[1]);
	return -1;
}

enum process_heard process_listen(int from, struct buf *in, size_t most, int64_t until_ns)
{
	while (!in->len || !memchr(in->data, '\n', in->len)) {
		struct pollfd p = {.fd = from, .events = POLLIN};
		int64_t left = until_ns - when_monotonic_ns();
		if (left <= 0)
			return PROCESS_SILENT;
		if (in->len > most)
			return PROCESS_TOO_MUCH;
		if (poll(&p, 1, (int)(left / 1000000) + 1) <= 0)
			continue;
		buf_reserve(in, 64 * 1024);
		ssize_t got = read(from, in->data + in->len, 64 * 1024);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return PROCESS_ENDED;
		in->len += (size_t)got;
	}
	return PROCESS_LINE;
}

struct slice process_first_line(const struct buf *in)
{
	const char *end = memchr(in->data, '\n', in->len);
	return (struct slice){in->data, (size_t)(end - in->data)};
}

void process_drop_line(struct buf *in)
{
	size_t line = process_first_line(in).len + 1;
	memmove(in->data, in->data + line, in->len - line);
	in->len -= line;
}

int process_read(const struct command *c, struct buf *out, struct err *e)
{
	int ends[2];
	if (process_pipe(ends, e))
		return -1;
	pid_t pid = process_start(c, -1, ends[1], e);
	if (pid < 0) {
		close(ends[0]);
		return -1;
	}
	buf_add(out, "", 0);
	for (;;) {
		buf_reserve(out, 64 * 1024);
		ssize_t got = read(ends[0], out->data + out->len, 64 * 1024);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err_errno(e, c->words[0], "cannot read what it says");
		if (got <= 0)
			break;
		out->len += (size_t)got;
		out->data[out->len] = '\0';
	}
	close(ends[0]);
	int code = process_wait(pid);
	return e->code ? -1 : code;
}
