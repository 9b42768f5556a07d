/* This process, and child processes: started with given ends, talked with, reaped together. Children die when this process does. */
#ifndef KI_CORE_PROCESS_H
#define KI_CORE_PROCESS_H

#include <sys/types.h>

#include "core/arena.h"
#include "core/err.h"

/* Gives up what no program of ours needs: core dumps, and more rights from what it starts (no_new_privs). Children inherit it. */
int process_settle(struct err *e);

/* Words of a command, the program's path first. Starts zeroed. */
struct command {
	const char *words[64];
	int count;
};
void command_add(struct command *c, const char *word); /* past 62 words nothing is added: callers count on less */

/* Starts a command with the descriptors `in` and `out` as its standard ends (-1: inherited, /dev/null for `in`); both are
 * closed in this process. Returns the pid, or -1. */
pid_t process_start(const struct command *c, int in, int out, struct err *e);
/* Waits; returns the exit code, or 128 + signal. */
int process_wait(pid_t pid);
/* Runs a command to its end and appends what it wrote to standard output, a NUL after it. Returns its exit code, or -1 when it cannot
 * start or what it wrote cannot be read. */
int process_read(const struct command *c, struct buf *out, struct err *e);
/* A pipe, close-on-exec at both ends. */
int process_pipe(int ends[2], struct err *e);
/* Two, for a child that is talked with: both or none. */
int process_pipes(int to[2], int from[2], struct err *e);

enum process_heard { PROCESS_LINE, PROCESS_SILENT, PROCESS_ENDED, PROCESS_TOO_MUCH };
/* Reads what a child says into `in` until a whole line is there, the monotonic clock is past `until_ns`, the child has closed its end, or more
 * than `most` bytes came without one. */
enum process_heard process_listen(int from, struct buf *in, size_t most, int64_t until_ns);
/* The first line of `in`, which has one, without its newline; it stays there until process_drop_line(). */
struct slice process_first_line(const struct buf *in);
void process_drop_line(struct buf *in);

#endif
