#include "verify/watch.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "core/when.h"

void watch_init(struct watch *w, const struct command *command)
{
    *w = (struct watch){ .command = *command, .to = -1, .from = -1 };
    signal(SIGPIPE, SIG_IGN); /* a worker that died is an answer, not the end of this process */
}

static int start(struct watch *w, struct err *e)
{
    int to[2], from[2];
    if (w->pid)
        return 0;
    if (process_pipes(to, from, e) != 0)
        return -1;
    w->pid = process_start(&w->command, to[0], from[1], e);
    if (w->pid < 0) {
        w->pid = 0;
        close(to[1]);
        close(from[0]);
        return -1;
    }
    w->to = to[1];
    w->from = from[0];
    w->starts++;
    buf_clear(&w->buffer);
    return 0;
}

/* Reap the worker, killed if `kill_it`. Returns its wait status; 0 when it does not end within 15 s, as a process may whose GPU
 * hangs: it is left to the system then. */
static int reap(struct watch *w, bool kill_it)
{
    int status = 0;
    if (kill_it)
        kill(w->pid, SIGKILL);
    for (int i = 0; i < 1500 && waitpid(w->pid, &status, WNOHANG) == 0; i++)
        poll(NULL, 0, 10);
    if (w->to >= 0)
        close(w->to);
    close(w->from);
    w->pid = 0;
    w->to = w->from = -1;
    return status;
}

void watch_end(struct watch *w)
{
    if (!w->pid)
        return;
    close(w->to);
    w->to = -1;
    for (int i = 0; i < 200; i++) {
        int status;
        if (waitpid(w->pid, &status, WNOHANG) == w->pid) {
            close(w->from);
            w->from = -1;
            w->pid = 0;
            return;
        }
        poll(NULL, 0, 10);
    }
    reap(w, true);
}

void watch_fini(struct watch *w)
{
    watch_end(w);
    buf_fini(&w->buffer);
}

/* What the watchdog itself has to say; it carries the question's nonce. */
static void say(struct reply *r, const char *status, const char *format, int n)
{
    snprintf(r->status, sizeof r->status, "%s", status);
    snprintf(r->text, sizeof r->text, format, n);
}

/* What the end of a worker says about what it was doing. */
static void say_end(struct reply *r, int status)
{
    if (WIFSIGNALED(status))
        say(r, "runtime_error", "the measured process was killed by signal %d", WTERMSIG(status));
    else
        say(r, "runtime_error", "the measured process ended with exit code %d before it answered", WEXITSTATUS(status));
}

/* Take the first line out of the buffer and read it. */
static int take(struct watch *w, const struct request *q, struct arena *a, struct reply *r)
{
    struct err e = { 0 };
    int rc = wire_read_reply(process_first_line(&w->buffer), q, a, r, &e);
    if (rc != 0) {
        *r = (struct reply){ .text = "" };
        memcpy(r->nonce, q->nonce, sizeof r->nonce);
        snprintf(r->status, sizeof r->status, "runtime_error");
        snprintf(r->text, sizeof r->text, "the measured process answered with no reply: %.180s", e.text);
    }
    process_drop_line(&w->buffer);
    return rc;
}

int watch_ask(struct watch *w, const struct request *q, double seconds, struct arena *a, struct reply *r, double *wall_ns, struct err *e)
{
    struct buf line = { 0 };
    struct err ignored = { 0 };
    if (start(w, e) != 0)
        return -1;
    int64_t from = when_monotonic_ns();
    *r = (struct reply){ .text = "" };
    memcpy(r->nonce, q->nonce, sizeof r->nonce);
    wire_put_request(q, &line);
    enum process_heard heard = file_write_all(w->to, line.data, line.len, "request", &ignored) == 0 ? PROCESS_LINE : PROCESS_ENDED;
    buf_fini(&line);
    if (heard == PROCESS_LINE)
        heard = process_listen(w->from, &w->buffer, WIRE_LINE_MAX, from + (int64_t)(seconds * 1e9));
    *wall_ns = (double)(when_monotonic_ns() - from);
    if (heard == PROCESS_ENDED)
        say_end(r, reap(w, false));
    else if (heard == PROCESS_SILENT) {
        reap(w, true);
        say(r, "timeout", "no answer within %d s; the measured process was killed", (int)seconds);
    } else if (heard == PROCESS_TOO_MUCH || take(w, q, a, r) != 0) {
        if (heard == PROCESS_TOO_MUCH)
            say(r, "runtime_error", "the measured process answered with more than a reply can hold%.0d", 0);
        reap(w, true);
    } else if (strcmp(r->status, "runtime_error") == 0) {
        watch_end(w);
    }
    return 0;
}
