/* The watchdog: asks a worker process and never waits for longer than it said it would. Whatever the worker does, the answer is a
 * reply with a status: its own, or `timeout` (it was killed), or `runtime_error` (it died, or said something that is no
 * reply). A worker that is gone, or whose device failed, is started again for the next question. */
#ifndef KI_VERIFY_WATCH_H
#define KI_VERIFY_WATCH_H

#include <sys/types.h>

#include "core/process.h"
#include "verify/wire.h"

struct watch {
    struct command command; /* what is started */
    pid_t pid;              /* 0: none is running */
    int to, from;
    struct buf buffer;
    int starts;             /* how many were started */
};

void watch_init(struct watch *, const struct command *);
/* Ends the worker: its input is closed, and it is killed when it does not end within two seconds. */
void watch_end(struct watch *);
void watch_fini(struct watch *);

/* Asks, starting a worker when none is running. `wall_ns` is how long the answer took. -1 only when no worker can be started. */
int watch_ask(struct watch *, const struct request *, double seconds, struct arena *, struct reply *, double *wall_ns, struct err *);

#endif
