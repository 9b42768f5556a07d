#include "verify/child.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"
#include "core/landlock.h"
#include "core/process.h"
#include "core/when.h"

enum { LINE_MAX_BYTES = 1 << 20, WORDS_BYTES = 4096, WORDS_FD = 3, END_MS = 5000 };

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

struct child {
    pid_t pid;
    int to, from, words_fd;
    struct child_words *words;
    struct buf in;
    enum child_end end;
    json_t *hello;
    char scratch[512];
};

/* ---- the seal, in the child before its program starts ---- */

/* No sockets but local ones, also not by way of io_uring; no look into another process. */
static int seal_calls(void)
{
    const unsigned refused[] = { SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_io_uring_setup, SYS_pidfd_getfd };
    enum { N = sizeof refused / sizeof refused[0], REFUSE = N + 7, ALLOW = N + 8 }; /* a jump counts from the instruction after it */
    struct sock_filter f[ALLOW + 1] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 0, REFUSE - 2), /* another ABI */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, REFUSE - 4, 0), /* x32 */
    };
    for (int i = 0; i < N; i++)
        f[4 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], (unsigned char)(REFUSE - (5 + i)), 0);
    f[N + 4] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, ALLOW - (N + 5));
    f[N + 5] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args));
    f[N + 6] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, ALLOW - (N + 7), 0);
    f[REFUSE] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    f[ALLOW] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { ALLOW + 1, f };
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void lower(__rlimit_resource_t which, rlim_t most)
{
    struct rlimit r;
    if (getrlimit(which, &r) == 0 && r.rlim_max > most) {
        r.rlim_cur = r.rlim_max = most;
        setrlimit(which, &r);
    }
}

/* NULL, or the part that could not be had: then the child does not run at all. Without Landlock it does, and that is said. */
static const char *seal(const char *scratch, struct err *e)
{
    const char *cache = getenv("TRITON_CACHE_DIR");
    const char *const writes[] = { scratch, "/dev", "/proc/self", cache, NULL }; /* CUDA names its threads */
    lower(RLIMIT_CORE, 0);
    lower(RLIMIT_NOFILE, 4096);
    lower(RLIMIT_FSIZE, (rlim_t)4 << 30);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return "no_new_privs";
    if (landlock_enter(NULL, writes, true, e) != 0) {
        if (e->code != ERR_NOPERM)
            return "Landlock";
        dprintf(2, "ki-verify: the child may write files anywhere: %s\n", e->text);
    }
    return seal_calls() != 0 ? "seccomp" : NULL;
}

static void set_environment(const char *scratch)
{
    static const char *const folders[] = { "HOME", "TMPDIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH" };
    static const char *const gone[] = { "LD_PRELOAD", "LD_AUDIT", "PYTHONSTARTUP", "KI_KEY", "CUDA_INJECTION64_PATH" };
    const char *home = getenv("HOME"), *cache = getenv("TRITON_CACHE_DIR");
    char base[4096];
    snprintf(base, sizeof base, "%s/.local", home ? home : "");
    setenv("PYTHONUSERBASE", base, 0); /* packages of the user's own are still found */
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        setenv(folders[i], scratch, 1);
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        unsetenv(gone[i]);
    if (!cache || access(cache, W_OK) != 0) /* what is not there would open the folder above it */
        setenv("TRITON_CACHE_DIR", scratch, 1);
    setenv("CUDA_MODULE_LOADING", "LAZY", 1); /* a framework has thousands of kernels; calls before the timed ones load what is used */
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    setenv("HF_HUB_OFFLINE", "1", 1);
}

static void become(const struct child *c, const char *program, int in, int out, pid_t parent)
{
    struct err e = { 0 };
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    set_environment(c->scratch);
    /* above the ones they go to, so that none is overwritten before it is moved */
    int high_in = fcntl(in, F_DUPFD, 10), high_out = fcntl(out, F_DUPFD, 10), high_words = fcntl(c->words_fd, F_DUPFD, 10);
    if (dup2(high_in, 0) < 0 || dup2(high_out, 1) < 0 || dup2(high_words, WORDS_FD) < 0)
        _exit(1);
    syscall(SYS_close_range, WORDS_FD + 1, ~0u, 0);
    const char *part = seal(c->scratch, &e);
    if (part) {
        dprintf(1, "{\"error\":\"the process cannot be sealed: %s%s%.100s\"}\n", part, e.text[0] ? ": " : "", e.text);
        _exit(1);
    }
    execlp(program, program, "serve", (char *)NULL);
    dprintf(1, "{\"error\":\"cannot run it: %s\"}\n", strerror(errno));
    _exit(1);
}

/* ---- talking ---- */

/* Whether it ends by itself within END_MS. It stays to be reaped, so that its number is still its group's. */
static bool ends(const struct child *c)
{
    siginfo_t info = { 0 };
    for (int i = 0; i < END_MS / 10 && waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0; i++)
        poll(NULL, 0, 10);
    return info.si_pid != 0;
}

/* Kills it and what is in its session; returns its wait status, 0 when it does not end within END_MS. */
static int reap(struct child *c)
{
    int status = 0;
    kill(-c->pid, SIGKILL);
    for (int i = 0; i < END_MS / 10 && waitpid(c->pid, &status, WNOHANG) == 0; i++)
        poll(NULL, 0, 10);
    c->pid = 0;
    return status;
}

/* The child is of no use any more. */
static json_t *lost(struct child *c, enum child_end end, struct err *e)
{
    bool by_itself = end == CHILD_DIED && ends(c);
    int status = reap(c);
    c->end = end;
    if (end == CHILD_TIMEOUT)
        err_set(e, ERR_TEMP, "the child gave no answer in time and was killed");
    else if (end == CHILD_NONSENSE)
        err_set(e, ERR_UNAVAILABLE, "the child said something that is no answer and was killed");
    else if (!by_itself)
        err_set(e, ERR_UNAVAILABLE, "the child said no more and was killed");
    else if (WIFSIGNALED(status))
        err_set(e, ERR_UNAVAILABLE, "the child was killed by signal %d", WTERMSIG(status));
    else
        err_set(e, ERR_UNAVAILABLE, "the child ended with exit code %d before it answered", WEXITSTATUS(status));
    return NULL;
}

static json_t *take_line(struct child *c)
{
    struct err ignored = { 0 };
    struct slice line = process_first_line(&c->in);
    json_t *o = json_load_text(line.data, line.len, "child", &ignored);
    process_drop_line(&c->in);
    return o;
}

/* Words of the child as they may stand in a report, or on a terminal. */
static void set_error(struct err *e, const char *words)
{
    char plain[221];
    size_t n = 0;
    for (; words[n] && n < sizeof plain - 1; n++)
        plain[n] = words[n] >= ' ' && words[n] <= '~' ? words[n] : '?';
    plain[n] = 0;
    err_set(e, strcmp(words, "memory") == 0 ? ERR_TEMP : ERR_UNAVAILABLE, "%s", plain);
}

static json_t *answer(struct child *c, int64_t until_ns, struct err *e)
{
    static const enum child_end end_of[] = { [PROCESS_SILENT] = CHILD_TIMEOUT, [PROCESS_ENDED] = CHILD_DIED, [PROCESS_TOO_MUCH] = CHILD_NONSENSE };
    enum process_heard heard = process_listen(c->from, &c->in, LINE_MAX_BYTES, until_ns);
    if (heard != PROCESS_LINE)
        return lost(c, end_of[heard], e);
    json_t *o = take_line(c);
    if (!json_is_object(o)) {
        json_decref(o);
        return lost(c, CHILD_NONSENSE, e);
    }
    const char *error = json_string_value(json_object_get(o, "error"));
    if (error) {
        set_error(e, error);
        json_decref(o);
        return NULL;
    }
    return o;
}

json_t *child_ask(struct child *c, json_t *question, double seconds, struct err *e)
{
    struct buf line = { 0 };
    struct err ignored = { 0 };
    int64_t until_ns = when_monotonic_ns() + (int64_t)(seconds * 1e9);
    if (c->end != CHILD_ALIVE) {
        json_decref(question);
        err_set(e, ERR_UNAVAILABLE, "the child is gone");
        return NULL;
    }
    if (c->in.len) { /* an answer to nothing would be taken for that to the next question */
        json_decref(question);
        return lost(c, CHILD_NONSENSE, e);
    }
    int rc = json_canonical(question, &line, &ignored);
    json_decref(question);
    buf_char(&line, '\n');
    if (rc == 0)
        rc = file_write_all(c->to, line.data, line.len, "child", &ignored);
    buf_fini(&line);
    return rc == 0 ? answer(c, until_ns, e) : lost(c, CHILD_DIED, e);
}

/* ---- its life ---- */

static int open_parts(struct child *c, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(c->scratch, sizeof c->scratch, "%s/ki-child-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n >= (int)sizeof c->scratch || !mkdtemp(c->scratch)) {
        err_at(e, ERR_IO, c->scratch, 0, 0, "cannot make a folder there: %s", n >= (int)sizeof c->scratch ? "its name is too long" : strerror(errno));
        c->scratch[0] = 0;
        return -1;
    }
    c->words_fd = memfd_create("ki-words", MFD_CLOEXEC);
    if (c->words_fd < 0 || ftruncate(c->words_fd, WORDS_BYTES) != 0)
        return err_errno(e, "memfd", "cannot make");
    c->words = mmap(NULL, WORDS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, c->words_fd, 0);
    if (c->words == MAP_FAILED) {
        c->words = NULL;
        return err_errno(e, "memfd", "cannot map");
    }
    return 0;
}

static int start(struct child *c, const char *program, struct err *e)
{
    int to[2], from[2];
    pid_t parent = getpid();
    if (process_pipes(to, from, e) != 0)
        return -1;
    c->to = to[1];
    c->from = from[0];
    c->pid = fork();
    if (c->pid == 0)
        become(c, program, to[0], from[1], parent);
    close(to[0]);
    close(from[1]);
    return c->pid > 0 ? 0 : err_errno(e, program, "cannot start");
}

struct child *child_start(const char *program, double seconds, struct err *e)
{
    struct child *c = xcalloc(1, sizeof *c);
    struct err why = { 0 };
    c->to = c->from = c->words_fd = -1;
    signal(SIGPIPE, SIG_IGN);
    if (open_parts(c, e) == 0 && start(c, program, e) == 0) {
        c->hello = answer(c, when_monotonic_ns() + (int64_t)(seconds * 1e9), &why);
        if (c->hello)
            return c;
        err_set(e, ERR_UNAVAILABLE, "%.100s: %.150s", program, why.text);
    }
    child_end(c);
    return NULL;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s;
    (void)kind;
    (void)at;
    (void)remove(path); /* what cannot go stays, and the rest goes */
    return 0;
}

void child_end(struct child *c)
{
    if (!c)
        return;
    if (c->pid > 0)
        reap(c);
    if (c->to >= 0)
        close(c->to);
    if (c->from >= 0)
        close(c->from);
    if (c->words)
        munmap(c->words, WORDS_BYTES);
    if (c->words_fd >= 0)
        close(c->words_fd);
    if (c->scratch[0])
        nftw(c->scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    json_decref(c->hello);
    buf_fini(&c->in);
    free(c);
}

enum child_end child_state(const struct child *c)
{
    return c->end;
}

volatile struct child_words *child_words(const struct child *c)
{
    return c->words;
}

const json_t *child_hello(const struct child *c)
{
    return c->hello;
}
