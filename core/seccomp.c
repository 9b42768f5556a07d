#include "core/seccomp.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/arena.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* Memory, time, signals, threads, and descriptors that are open. */
static const char *const basic[] = {
	"arch_prctl", "brk", "clock_getres", "clock_gettime", "clock_nanosleep", "close", "dup", "dup2", "dup3", "exit", "exit_group", "fcntl", "futex",
	"get_robust_list", "getegid", "geteuid", "getgid", "getpid", "getppid", "getrandom", "getrlimit", "getrusage", "gettid", "gettimeofday", "getuid",
	"lseek", "madvise", "membarrier", "memfd_create", "mmap", "mprotect", "mremap", "munmap", "nanosleep", "pipe", "pipe2", "poll", "ppoll", "pread64",
	"prlimit64", "pselect6", "pwrite64", "pwritev", "preadv", "read", "readv", "restart_syscall", "rseq", "rt_sigaction", "rt_sigprocmask",
	"rt_sigreturn", "rt_sigtimedwait", "sched_getaffinity", "sched_yield", "select", "set_robust_list", "set_tid_address", "sigaltstack", "sysinfo",
	"tgkill", "time", "uname", "write", "writev", NULL,
};
/* Looking at files. Opening is a rule of its own. */
static const char *const look[] = {
	"access", "faccessat", "faccessat2", "fadvise64", "fstat", "fstatfs", "getcwd", "getdents", "getdents64", "lstat", "newfstatat", "readahead",
	"readlink", "readlinkat", "stat", "statfs", "statx", NULL,
};
/* Making, changing and removing files: where, Landlock says. */
static const char *const change[] = {
	"chmod", "copy_file_range", "fallocate", "fchmod", "fchmodat", "fdatasync", "flock", "fsync", "ftruncate", "mkdir", "mkdirat", "msync", "open",
	"openat", "rename", "renameat", "renameat2", "rmdir", "sendfile", "sync_file_range", "unlink", "unlinkat", "utimensat", NULL,
};
static const char *const network[] = {
	"bind", "connect", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait", "eventfd2", "getpeername", "getsockname", "getsockopt", "recvfrom",
	"recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown", "socketpair", NULL,
};
#ifdef SANITIZED
/* The leak check stops all threads with a helper process; a report is made readable with another. */
static const char *const sanitizer[] = {
	"clone", "kill", "mincore", "personality", "prctl", "process_vm_readv", "ptrace", "setrlimit", "tkill", "wait4", NULL,
};
#endif

static int allow(scmp_filter_ctx filter, const char *const *names)
{
	int rc = 0;
	for (; rc == 0 && *names; names++) {
		int number = seccomp_syscall_resolve_name(*names);
		if (number >= 0) /* below: this architecture has no such call */
			rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
	}
	return rc;
}

static int allow_if(scmp_filter_ctx filter, int number, struct scmp_arg_cmp condition)
{
	return number < 0 ? 0 : seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 1, &condition);
}

/* clone3 cannot be looked into, so the C library is told to use clone, which may make threads and no processes. */
static int allow_threads(scmp_filter_ctx filter)
{
	int rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
#ifndef SANITIZED
	if (rc == 0)
		rc = allow_if(filter, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
#endif
	return rc;
}

static int allow_reading(scmp_filter_ctx filter)
{
	const uint64_t writes = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);
	int rc = allow_if(filter, SCMP_SYS(open), SCMP_A1(SCMP_CMP_MASKED_EQ, writes, 0));
	return rc ? rc : allow_if(filter, SCMP_SYS(openat), SCMP_A2(SCMP_CMP_MASKED_EQ, writes, 0));
}

/* Questions to a terminal, and how much a socket holds. */
static int allow_questions(scmp_filter_ctx filter)
{
	static const scmp_datum_t questions[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO};
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < sizeof questions / sizeof *questions; i++)
		rc = allow_if(filter, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_EQ, questions[i]));
	return rc;
}

/* The net, the name service's socket, and the kernel's list of addresses, which getaddrinfo() asks for. */
static int allow_network(scmp_filter_ctx filter)
{
	static const scmp_datum_t families[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK};
	int rc = allow(filter, network);
	for (size_t i = 0; rc == 0 && i < sizeof families / sizeof *families; i++)
		rc = allow_if(filter, SCMP_SYS(socket), SCMP_A0(SCMP_CMP_EQ, families[i]));
	return rc;
}

static int allow_role(scmp_filter_ctx filter, enum sandbox_role role)
{
	int rc = allow(filter, basic);
	if (rc == 0)
		rc = allow(filter, look);
	if (rc == 0)
		rc = allow_threads(filter);
	if (rc == 0)
		rc = allow_questions(filter);
	if (rc == 0)
		rc = role == SANDBOX_NORMALIZE ? allow_reading(filter) : allow(filter, change);
	if (rc == 0 && role == SANDBOX_INGEST)
		rc = allow_network(filter);
#ifdef SANITIZED
	if (rc == 0)
		rc = allow(filter, sanitizer);
#endif
	return rc;
}

/* libseccomp 2.5 writes to memory that it asked for without a look at whether it got any. So as much as a filter takes is asked for, and
 * freed, before: its small blocks are then there to be had. */
static void find_memory(void)
{
	enum { BLOCKS = 4, BLOCK = 96 * 1024 /* from the heap, not a map of their own */ };
	void *blocks[BLOCKS];
	mallopt(M_TRIM_THRESHOLD, 2 * BLOCKS * BLOCK); /* the heap keeps what is freed */
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = xmalloc(BLOCK);
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

int seccomp_enter(enum sandbox_role role, struct err *e)
{
	find_memory();
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = filter ? allow_role(filter, role) : -ENOMEM;
	if (rc == 0)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	return rc ? err_set(e, ERR_NOPERM, "seccomp: %s", strerror(-rc)) : 0;
}
