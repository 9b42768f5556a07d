/* Runs a command and, at one chosen system call of it or of a process that it starts, does what a bad day does: an error, a short
 * write, a kill. Counts what is asked of the kernel, not what a library is asked for, so nothing that a stage does escapes it:
 * a seccomp filter stops the process at each call of `calls` below, and ptrace reads and changes it there.
 *
 * A call has a name that is the same in every run: PROCESS:CALL:N, the N-th CALL that PROCESS makes from the moment main()
 * begins, which is told by file_hold_streams() opening /dev/null (the loader's calls come before it). PROCESS is the program's name
 * and the how-manieth start of it this was, as in ki-store.2; a fork that has not become another program yet is ki.1+1.
 *
 * Exits as the command did, 128 and the signal's number when one killed it, 137 after a kill of its own. */
#include <errno.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __x86_64__
int main(void)
{
	fputs("fault: knows the registers of x86-64 only\n", stderr);
	return 69;
}
#else

enum { PROCESSES = 64, THREADS = 256 };
enum { SHORT = 0, KILL = -1, NOTHING = -2 }; /* what can be done beside an error, whose numbers are above */

/* What is watched. The argument that says which file: a path (number of the argument), or a descriptor (FD, always the first). */
enum { NONE = -1, FD = -2 };
static const struct call {
	const char *name;
	int number, file;
} calls[] = {
	{"openat", SYS_openat, 1},	     {"open", SYS_open, 0},		{"read", SYS_read, FD},		 {"pread64", SYS_pread64, FD},
	{"write", SYS_write, FD},	     {"pwrite64", SYS_pwrite64, FD},	{"writev", SYS_writev, FD},	 {"pwritev", SYS_pwritev, FD},
	{"fsync", SYS_fsync, FD},	     {"fdatasync", SYS_fdatasync, FD},	{"msync", SYS_msync, NONE},	 {"close", SYS_close, FD},
	{"rename", SYS_rename, 0},	     {"renameat", SYS_renameat, 1},	{"renameat2", SYS_renameat2, 1}, {"link", SYS_link, 0},
	{"linkat", SYS_linkat, 1},	     {"symlink", SYS_symlink, 1},	{"mkdir", SYS_mkdir, 0},	 {"mkdirat", SYS_mkdirat, 1},
	{"unlink", SYS_unlink, 0},	     {"unlinkat", SYS_unlinkat, 1},	{"rmdir", SYS_rmdir, 0},	 {"chmod", SYS_chmod, 0},
	{"fchmod", SYS_fchmod, FD},	     {"ftruncate", SYS_ftruncate, FD},	{"fallocate", SYS_fallocate, FD}, {"utimensat", SYS_utimensat, 1},
	{"copy_file_range", SYS_copy_file_range, FD}, {"sendfile", SYS_sendfile, FD}, {"flock", SYS_flock, FD},	 {"fcntl", SYS_fcntl, FD},
	{"lseek", SYS_lseek, FD},	     {"newfstatat", SYS_newfstatat, 1}, {"stat", SYS_stat, 0},		 {"fstat", SYS_fstat, FD},
	{"statx", SYS_statx, 1},	     {"statfs", SYS_statfs, 0},		{"fstatfs", SYS_fstatfs, FD},	 {"access", SYS_access, 0},
	{"faccessat", SYS_faccessat, 1},     {"faccessat2", SYS_faccessat2, 1}, {"readlink", SYS_readlink, 0},	 {"getdents64", SYS_getdents64, FD},
	{"mmap", SYS_mmap, NONE},	     {"brk", SYS_brk, NONE},		{"mremap", SYS_mremap, NONE},	 {"memfd_create", SYS_memfd_create, 0},
	{"pipe2", SYS_pipe2, NONE},	     {"dup2", SYS_dup2, FD},		{"clone", SYS_clone, NONE},	 {"clone3", SYS_clone3, NONE},
	{"execve", SYS_execve, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

static const struct {
	const char *name;
	int value;
} errors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"ENOLCK", ENOLCK}, {"EROFS", EROFS},
	      {"EAGAIN", EAGAIN}, {"EDQUOT", EDQUOT}, {"EINTR", EINTR}, {"EACCES", EACCES}};

struct process {
	char name[64];
	unsigned forks, counts[CALLS];
	int started; /* main() has begun */
};
struct thread {
	pid_t id;
	struct process *of; /* NULL: stopped before its parent's event came */
	int stopped;
	int under_way; /* a call that was changed has not returned */
	int answer;    /* errno that it will be said to have had; 0: its own */
	unsigned long long first, third; /* its arguments as they were, for a call leaves them alone */
};
struct tracer {
	struct process processes[PROCESSES];
	struct thread threads[THREADS];
	int process_count, thread_count;
	unsigned total;
	/* the order */
	const char *process; /* NULL: every process */
	int call, error;     /* call -1: every call; error: what is done */
	unsigned nth;        /* 0: none */
	int onwards;         /* the N-th and all that follow */
	int list;
	FILE *log;
	int hit;
};

static void die(const char *what)
{
	fprintf(stderr, "fault: %s: %s\n", what, strerror(errno));
	exit(70);
}

/* ---- who is who ---- */

static struct process *process_new(struct tracer *t, const char *name)
{
	if (t->process_count == PROCESSES)
		die("too many processes");
	struct process *p = &t->processes[t->process_count++];
	*p = (struct process){0};
	snprintf(p->name, sizeof p->name, "%.63s", name);
	return p;
}

static struct thread *thread_of(struct tracer *t, pid_t id)
{
	struct thread *free_one = NULL;
	for (int i = 0; i < t->thread_count; i++)
		if (t->threads[i].id == id)
			return &t->threads[i];
		else if (t->threads[i].id == 0)
			free_one = &t->threads[i];
	if (!free_one && t->thread_count == THREADS)
		die("too many threads");
	free_one = free_one ? free_one : &t->threads[t->thread_count++];
	*free_one = (struct thread){.id = id};
	return free_one;
}

/* The program that a process has become, counted among those of its name. */
static struct process *became(struct tracer *t, pid_t id)
{
	char path[64], line[4096], name[48], full[64];
	unsigned before = 1;
	snprintf(path, sizeof path, "/proc/%d/cmdline", id);
	FILE *f = fopen(path, "r");
	size_t got = f ? fread(line, 1, sizeof line - 1, f) : 0;
	if (f)
		fclose(f);
	line[got] = '\0';
	const char *slash = strrchr(line, '/');
	snprintf(name, sizeof name, "%.40s", slash ? slash + 1 : line);
	for (int i = 0; i < t->process_count; i++) {
		size_t len = strlen(name);
		const char *held = t->processes[i].name;
		before += strncmp(held, name, len) == 0 && held[len] == '.' && !strchr(held, '+');
	}
	snprintf(full, sizeof full, "%s.%u", name, before);
	return process_new(t, full);
}

/* ---- one call ---- */

static void read_text(pid_t id, unsigned long long at, char *out, size_t size)
{
	struct iovec here = {out, size - 1}, there = {(void *)(uintptr_t)at, size - 1};
	out[0] = '\0';
	ssize_t got = process_vm_readv(id, &here, 1, &there, 1, 0);
	if (got < 0) { /* the end of a page, perhaps */
		here.iov_len = there.iov_len = 4096 - at % 4096 < size - 1 ? 4096 - at % 4096 : size - 1;
		got = process_vm_readv(id, &here, 1, &there, 1, 0);
	}
	out[got > 0 ? got : 0] = '\0';
}

static unsigned long long argument(const struct user_regs_struct *r, int n)
{
	const unsigned long long all[] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
	return all[n];
}

static void describe(pid_t id, const struct call *c, const struct user_regs_struct *r, char *out, size_t size)
{
	char path[64];
	out[0] = '\0';
	if (c->file >= 0)
		read_text(id, argument(r, c->file), out, size);
	if (c->file != FD)
		return;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", id, (int)r->rdi);
	ssize_t len = readlink(path, out, size - 1);
	out[len > 0 ? len : 0] = '\0';
}

static int is_call(int number, const char *name)
{
	for (int i = 0; i < CALLS; i++)
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].number == number;
	return 0;
}

/* Half of a write; of several pieces, the first. One byte cannot be halved and is written. */
static int shorten(pid_t id, struct user_regs_struct *r)
{
	int number = (int)r->orig_rax;
	if (is_call(number, "writev") || is_call(number, "pwritev"))
		r->rdx = 1;
	else if (is_call(number, "write") || is_call(number, "pwrite64"))
		r->rdx = (r->rdx + 1) / 2;
	return ptrace(PTRACE_SETREGS, id, NULL, r) == 0 ? 0 : -1;
}

static int refuse(pid_t id, struct user_regs_struct *r, int error)
{
	if (is_call((int)r->orig_rax, "brk")) {
		r->rdi = 0; /* which answers where the heap ends, as a brk does that can do no more */
	} else {
		r->orig_rax = (unsigned long long)-1; /* no call at all */
		r->rax = (unsigned long long)-(long long)error;
	}
	return ptrace(PTRACE_SETREGS, id, NULL, r) == 0 ? 0 : -1;
}

/* Memory that has run out has run out for every way of asking. */
static int is_memory(int number)
{
	return is_call(number, "brk") || is_call(number, "mmap") || is_call(number, "mremap");
}

static void strike(struct tracer *t, struct thread *thread, struct user_regs_struct *r)
{
	pid_t id = thread->id;
	thread->first = r->rdi;
	thread->third = r->rdx;
	thread->under_way = t->error >= 0;
	t->hit = 1;
	if (t->error == KILL) {
		for (int i = 0; i < t->thread_count; i++)
			if (t->threads[i].id)
				kill(t->threads[i].id, SIGKILL);
		return;
	}
	if (t->error > 0 && is_call((int)r->orig_rax, "close"))
		thread->answer = t->error; /* a close that fails has closed all the same */
	else if (t->error == SHORT ? shorten(id, r) : refuse(id, r, t->error))
		die("cannot change registers");
}

static void at_call(struct tracer *t, struct thread *thread)
{
	struct user_regs_struct r;
	struct process *p = thread->of;
	char file[512];
	int n = 0;
	if (ptrace(PTRACE_GETREGS, thread->id, NULL, &r) != 0)
		return;
	while (n < CALLS && calls[n].number != (int)r.orig_rax)
		n++;
	if (n == CALLS || (calls[n].file == FD && r.rdi == STDERR_FILENO)) /* what is said about a fault is no part of it */
		return;
	if (!p->started) {
		if (calls[n].number != SYS_openat)
			return;
		describe(thread->id, &calls[n], &r, file, sizeof file);
		p->started = strcmp(file, "/dev/null") == 0;
		return;
	}
	unsigned count = t->call < 0 ? ++t->total : ++p->counts[n];
	int chosen = (!t->process || strcmp(t->process, p->name) == 0) && (t->call < 0 || t->call == n) && t->nth &&
		     (count == t->nth || (t->onwards && count > t->nth));
	if (t->hit && t->onwards && t->error == ENOMEM && strcmp(t->process, p->name) == 0 && is_memory(calls[n].number) && is_memory(calls[t->call].number))
		chosen = 1;
	if (t->list || (chosen && !t->hit)) {
		describe(thread->id, &calls[n], &r, file, sizeof file);
		fprintf(t->log, "%s\t%s\t%u\t%s\n", p->name, calls[n].name, t->list ? ++p->counts[n] : count, file);
	}
	if (chosen)
		strike(t, thread, &r);
}

static void at_return(struct thread *thread)
{
	struct user_regs_struct r;
	if (ptrace(PTRACE_GETREGS, thread->id, NULL, &r) == 0) {
		r.rdi = thread->first;
		r.rdx = thread->third;
		if (thread->answer)
			r.rax = (unsigned long long)-(long long)thread->answer;
		ptrace(PTRACE_SETREGS, thread->id, NULL, &r);
	}
	thread->under_way = thread->answer = 0;
}

/* ---- following ---- */

static void resume(struct thread *thread, int signal)
{
	thread->stopped = 0;
	ptrace(thread->under_way ? PTRACE_SYSCALL : PTRACE_CONT, thread->id, NULL, (void *)(intptr_t)signal); /* it may have been killed */
}

static void at_birth(struct tracer *t, struct thread *parent, int event)
{
	unsigned long id = 0;
	char name[96];
	ptrace(PTRACE_GETEVENTMSG, parent->id, NULL, &id);
	struct process *of = parent->of;
	if (event != PTRACE_EVENT_CLONE) { /* a process, no thread */
		snprintf(name, sizeof name, "%s+%u", of->name, ++of->forks);
		of = process_new(t, name);
		of->started = parent->of->started;
	}
	struct thread *child = thread_of(t, (pid_t)id);
	child->of = of;
	if (child->stopped)
		resume(child, 0);
}

static void at_stop(struct tracer *t, pid_t id, int status)
{
	struct thread *thread = thread_of(t, id);
	int signal = WSTOPSIG(status), event = status >> 16;
	if (t->hit && t->error == KILL) {
		kill(id, SIGKILL);
		return;
	}
	if (!thread->of) { /* its parent's event says who it is */
		thread->stopped = 1;
		return;
	}
	if (signal == (SIGTRAP | 0x80))
		at_return(thread);
	else if (event == PTRACE_EVENT_SECCOMP)
		at_call(t, thread);
	else if (event == PTRACE_EVENT_EXEC)
		thread->of = became(t, id);
	else if (event)
		at_birth(t, thread, event);
	resume(thread, event || signal == SIGSTOP || (signal & 0x7f) == SIGTRAP ? 0 : signal);
}

static int follow(struct tracer *t, pid_t root)
{
	int status, code = 70;
	pid_t id;
	while ((id = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFSTOPPED(status)) {
			at_stop(t, id, status);
			continue;
		}
		if (id == root)
			code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		*thread_of(t, id) = (struct thread){0};
	}
	return t->hit && t->error == KILL ? 137 : code;
}

/* ---- beginning ---- */

static void watch(void)
{
	struct sock_filter filter[CALLS + 3];
	unsigned short n = 0;
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < CALLS; i++)
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, (unsigned char)(CALLS - i), 0);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	struct sock_fprog program = {n, filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(69);
}

static pid_t begin(char **argv)
{
	pid_t id = fork();
	if (id == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(69);
		raise(SIGSTOP);
		watch();
		execvp(argv[0], argv);
		_exit(66);
	}
	int status;
	if (id < 0 || waitpid(id, &status, __WALL) != id || !WIFSTOPPED(status)) {
		fputs("fault: may not trace here\n", stderr);
		exit(69);
	}
	if (ptrace(PTRACE_SETOPTIONS, id, NULL,
		   PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE) != 0)
		die("cannot trace");
	return id;
}

static const char help[] = "usage: fault --list --log FILE COMMAND…             every call: PROCESS, CALL, N and the file, a line each\n"
			   "       fault --at PROCESS:CALL:N[+] --do ERROR|short --log FILE COMMAND…    +: that call and all like it after\n"
			   "                                                   (of brk, mmap and mremap, all of them)\n"
			   "       fault --kill N --log FILE COMMAND…           kill everything before the N-th call\n";

static void usage(void)
{
	fputs(help, stderr);
	exit(64);
}

static void take_place(struct tracer *t, char *place)
{
	char *call = strchr(place, ':'), *nth = call ? strchr(call + 1, ':') : NULL, *end;
	if (!nth)
		usage();
	*call++ = *nth++ = '\0';
	t->process = place;
	for (t->call = CALLS - 1; t->call >= 0 && strcmp(calls[t->call].name, call) != 0;)
		t->call--;
	t->nth = (unsigned)strtoul(nth, &end, 10);
	t->onwards = *end == '+';
	if (t->call < 0 || !t->nth)
		usage();
}

static void take_deed(struct tracer *t, const char *deed)
{
	t->error = strcmp(deed, "short") == 0 ? SHORT : NOTHING;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (strcmp(errors[i].name, deed) == 0)
			t->error = errors[i].value;
	if (t->error == NOTHING)
		usage();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"list", no_argument, NULL, 'l'}, {"at", required_argument, NULL, 'a'}, {"do", required_argument, NULL, 'd'},
						{"kill", required_argument, NULL, 'k'}, {"log", required_argument, NULL, 'o'}, {0}};
	static struct tracer t = {.call = -1, .error = NOTHING};
	int option;
	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1)
		switch (option) {
		case 'l': t.list = 1; break;
		case 'a': take_place(&t, optarg); break;
		case 'd': take_deed(&t, optarg); break;
		case 'k': t.nth = (unsigned)strtoul(optarg, NULL, 10), t.error = KILL; break;
		case 'o': t.log = fopen(optarg, "we"); break;
		default: usage();
		}
	if (optind == argc || !t.log || (t.error == NOTHING) != t.list)
		usage();
	pid_t root = begin(argv + optind);
	struct thread *first = thread_of(&t, root);
	first->of = process_new(&t, "fault");
	resume(first, 0);
	int code = follow(&t, root);
	fclose(t.log);
	return code;
}
#endif
